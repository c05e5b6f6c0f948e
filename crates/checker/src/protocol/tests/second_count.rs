//! The number of states, counted by another model checker: the same actions, its own search and its own set, over
//! states that are not packed.

use stateright::{Checker, Model as _};

use super::super::action::Ways;
use super::super::bounds::{INPUTS, Reductions, SLOTS};
use super::super::world::World;
use super::*;

/// The protocol as Stateright sees it. An action is named by its place among all that are possible.
struct Protocol<const B: usize>(Explored);

impl<const B: usize> Protocol<B> {
    fn next_states(&self, world: &World<B, SLOTS, INPUTS>) -> Vec<World<B, SLOTS, INPUTS>> {
        let mut ways = Ways::default();
        self.0.each_next(world, &mut ways);
        ways.iter_mut().for_each(|way| self.0.make_canonical(&mut way.next));
        ways.iter().map(|way| way.next).collect()
    }
}

impl<const B: usize> stateright::Model for Protocol<B> {
    type State = World<B, SLOTS, INPUTS>;
    type Action = usize;

    fn init_states(&self) -> Vec<Self::State> {
        let mut first = self.0.initial();
        self.0.make_canonical(&mut first);
        vec![first]
    }

    fn actions(&self, state: &Self::State, actions: &mut Vec<usize>) {
        actions.extend(0..self.next_states(state).len());
    }

    fn next_state(&self, state: &Self::State, action: usize) -> Option<Self::State> {
        Some(self.next_states(state).swap_remove(action))
    }

    fn properties(&self) -> Vec<stateright::Property<Self>> {
        // Without one it would stop at once.
        vec![stateright::Property::always("nothing", |_, _| true)]
    }
}

/// States, and transitions with the first state, which Stateright counts as led to.
fn counted<const B: usize>(bounds: Bounds) -> [u64; 2] {
    let checker = Protocol::<B>(sound(bounds).unwrap()).checker().spawn_bfs().join();
    [checker.unique_state_count() as u64, checker.state_count() as u64]
}

fn agree<const B: usize>(bounds: Bounds) {
    let [states, transitions, _] = proved(bounds);
    assert_eq!(counted::<B>(bounds), [states, transitions + 1], "{bounds:?}");
}

#[test]
fn stateright_counts_the_same_states_and_transitions() {
    agree::<0>(small(Scheme::Nopb));
    agree::<1>(small(Scheme::Pb));
    agree::<1>(small(Scheme::PbRf));
    agree::<1>(small(Scheme::PbAdaptive));
    agree::<1>(Bounds { acknowledgement_inputs: 2, ..small(Scheme::Pb) });
    agree::<1>(Bounds { failures: 1, ..tiny(Scheme::Pb, Topology::Single) });
    agree::<2>(Bounds { writes: 1, ..tiny(Scheme::Pb, Topology::Chain) });
    agree::<1>(Bounds { reductions: Reductions::NONE, crashes: 0, ..tiny(Scheme::Pb, Topology::Single) });
}
