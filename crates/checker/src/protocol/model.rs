//! What is explored: the transition function of the persist buffer, its sizes, and the rules of what stands around it.

use fencepost_sim::switch::Scheme;
use fencepost_sim::switch::persist_buffer::packet::Input;
use fencepost_sim::switch::persist_buffer::{Packet, Parameters, Reaction, Rules, Sound, State, transition};

use super::bounds::{Bounds, Topology};
use super::predicates::Watch;
use super::world::{Host, InUse, Link, World};

/// The persist buffer's logic, under some rules.
pub type Logic<const S: usize, const I: usize> = fn(&Parameters, &mut State<S, I>, Input) -> Reaction;

/// What the surroundings of the persist buffers keep to. The defaults are right; a mutant breaks one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surroundings {
    /// A host bridge holds a request for a line whose write has no `Cmp` yet.
    pub bridge_holds_requests: bool,
    /// When power comes, what was on its way to PM before is known to have arrived or to be lost.
    pub old_writes_are_dead: bool,
    /// PM acknowledges a drain when it holds it durably.
    pub pm_keeps_before_it_acknowledges: bool,
    /// PM acknowledges every drain that it keeps sooner or later, as long as it has not declared a failure.
    pub pm_acknowledges_in_the_end: bool,
    /// Nobody acknowledges a drain that PM, which has failed, drops.
    pub dropped_drains_stay_unacknowledged: bool,
    /// A persist buffer acknowledges the drain of another like any write, when an entry holds it.
    pub next_buffer_keeps_before_it_acknowledges: bool,
    /// The persist point of a line is the first switch that every path to it passes, not the first switch of each path.
    pub shared_persist_point: bool,
}

impl Default for Surroundings {
    fn default() -> Surroundings {
        Surroundings {
            bridge_holds_requests: true,
            old_writes_are_dead: true,
            pm_keeps_before_it_acknowledges: true,
            pm_acknowledges_in_the_end: true,
            dropped_drains_stay_unacknowledged: true,
            next_buffer_keeps_before_it_acknowledges: true,
            shared_persist_point: true,
        }
    }
}

/// What of a rule the reductions have to know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// Some rule reads the numbers of slots, so that slots are not interchangeable.
    pub slot_numbers: bool,
    /// Some rule reads the line that comes with an acknowledgement.
    pub acknowledged_lines: bool,
    /// The controller goes by what the selector saw: a read in the input names a slot.
    pub selector_sight: bool,
    /// Some rule reads how acknowledgements and requests stand in the input among each other.
    pub input_order: bool,
}

/// A protocol within bounds.
#[derive(Clone, Copy, Debug)]
pub struct Model<const S: usize, const I: usize> {
    /// The bounds.
    pub bounds: Bounds,
    /// Sizes and policy of the persist buffers, if there are any.
    pub parameters: Option<Parameters>,
    /// The logic of the persist buffers.
    pub logic: Logic<S, I>,
    /// The rules of the surroundings.
    pub surroundings: Surroundings,
    /// What the rules read.
    pub reads: Reads,
    /// The only predicate that is looked at; all if there is none.
    pub only: Option<&'static str>,
}

impl<const S: usize, const I: usize> Model<S, I> {
    /// The protocol as it should be.
    pub fn sound(bounds: Bounds) -> Self {
        Self::with_rules::<Sound>(bounds)
    }

    /// The protocol with other rules of the persist buffer.
    pub fn with_rules<R: Rules>(bounds: Bounds) -> Self {
        Model {
            bounds,
            parameters: bounds.parameters(),
            logic: transition::<R, S, I>,
            surroundings: Surroundings::default(),
            reads: Reads::default(),
            only: None,
        }
    }

    /// How many persist buffers there are.
    pub fn buffers(&self) -> usize {
        match (self.bounds.scheme, self.bounds.topology) {
            (Scheme::Nopb, _) => 0,
            (_, Topology::Single) => 1,
            (_, Topology::Chain) => 2,
            (_, Topology::Shared) if self.surroundings.shared_persist_point => 1,
            (_, Topology::Shared) => 2,
        }
    }

    /// How many persist buffers lie on the way of `host`, all of them from the first on.
    pub fn buffers_of(&self, host: usize) -> usize {
        match self.bounds.topology {
            Topology::Shared if host == 0 => self.buffers().min(1),
            _ => self.buffers(),
        }
    }

    /// How many hops lie between `host` and the first persist buffer or PM. With the reduction, the first is not made:
    /// a request is issued at its end.
    pub fn hops_of(&self, host: usize) -> u8 {
        let switches = match self.bounds.topology {
            Topology::Single => 1,
            Topology::Chain => 2,
            Topology::Shared => 1 + u8::from(host > 0),
        };
        let volatile = switches - self.buffers_of(host) as u8;
        volatile + u8::from(!self.bounds.reductions.arrival)
    }

    /// How many addresses and hosts there are.
    pub fn in_use(&self) -> InUse {
        InUse { addresses: self.bounds.addresses.into(), hosts: self.bounds.hosts.into() }
    }

    /// A number for the place that a host stands at.
    pub fn place_of(&self, host: usize) -> usize {
        usize::from(self.bounds.topology == Topology::Shared && host > 0)
    }

    /// Whether two hosts stand at the same place.
    pub fn are_alike(&self, one: usize, other: usize) -> bool {
        self.place_of(one) == self.place_of(other)
    }

    /// Whether slots may change places.
    pub fn may_permute_slots(&self) -> bool {
        self.bounds.reductions.slots && !self.reads.slot_numbers
    }

    /// A new look at the predicates.
    pub fn watch(&self) -> Watch {
        Watch::new(self.only)
    }

    /// The first state.
    pub fn initial<const B: usize>(&self) -> World<B, S, I> {
        debug_assert_eq!(B, self.buffers());
        let mut world = World {
            buffers: std::array::from_fn(|_| State::new(self.parameters.as_ref().expect("a buffer has sizes"))),
            links: [Link::default(); B],
            hosts: Default::default(),
            memory: Default::default(),
            promised: Default::default(),
            crashes_left: self.bounds.crashes,
            duplicates_left: self.bounds.duplicates,
            pm_has_failed: false,
        };
        for host in &mut world.hosts[..usize::from(self.bounds.hosts)] {
            *host = Host { writes_left: self.bounds.writes, reads_left: self.bounds.reads, ..Host::default() };
        }
        world
    }

    /// Applies `input` to persist buffer number `buffer`.
    pub fn apply<const B: usize>(&self, world: &mut World<B, S, I>, buffer: usize, input: Input) -> Reaction {
        let parameters = self.parameters.as_ref().expect("a buffer has sizes");
        (self.logic)(parameters, &mut world.buffers[buffer], input)
    }

    /// A packet arrives at persist buffer number `buffer`.
    pub fn arrive<const B: usize>(&self, world: &mut World<B, S, I>, buffer: usize, packet: Packet) -> Reaction {
        self.apply(world, buffer, Input::Arrive(packet))
    }

    /// The line that goes into an acknowledgement: nothing where no rule reads it.
    pub fn acknowledged_line(&self, line: u8) -> u8 {
        if self.reads.acknowledged_lines { line } else { 0 }
    }
}
