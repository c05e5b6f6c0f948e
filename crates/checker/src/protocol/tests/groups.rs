//! States that are expanded together lead to what each of them leads to alone, up to the first that breaks something.

use super::super::bounds::{INPUTS, SLOTS};
use super::super::expand::Expander;
use super::super::mutants;
use super::*;
use crate::exploration::explore::explore;
use crate::exploration::{Block, Broken, Expand, Expanded, Exploration, Words};

/// The numbers, and what was found: the state, and that which it was found from.
type Said<const K: usize> = (u32, u64, Vec<(Words<K>, u32)>, Option<Broken<K>>);

fn said<const K: usize>(expanded: Expanded<K>) -> Said<K> {
    let found = expanded.found.iter().map(|found| (found.words, found.parent)).collect();
    (expanded.end, expanded.transitions, found, expanded.broken)
}

fn one_by_one<const B: usize, const K: usize>(
    expander: &Expander<'_, B, SLOTS, INPUTS>,
    states: &[Words<K>],
) -> Said<K> {
    let mut all: Said<K> = (0, 0, Vec::new(), None);
    for (first, words) in (0..).zip(states) {
        let block = Block { first, states: vec![*words] };
        let (end, transitions, found, broken) = said(expander.expand(&block, &mut Default::default()));
        all.0 = end;
        all.1 += transitions;
        all.2.extend(found);
        all.3 = broken;
        if all.3.is_some() {
            break;
        }
    }
    all
}

/// Expands the way to what is broken, with more and more states before it, so that it is at all places of a group.
/// Whether it is an action that breaks it.
fn agree<const B: usize, const K: usize>(name: &str, model: &Explored) -> bool {
    let means = Means { memory_max: u64::MAX, threads: 0 };
    let expander: Expander<'_, B, SLOTS, INPUTS> = Expander::new(model);
    let exploration: Exploration<K> = explore(&expander, means, &mut |_| ControlFlow::Continue(()));
    let way = exploration.counterexample.expect("mutants are killed").states;
    let mut scratch = Default::default();
    let mut is_by_action = false;
    for before in 0..20 {
        let mut states = vec![way[0]; before];
        states.extend(&way);
        states.extend(&way[..1]);
        let expected = one_by_one(&expander, &states);
        assert!(expected.3.is_some(), "{name}");
        let together = said(expander.expand(&Block { first: 0, states }, &mut scratch));
        assert_eq!(together, expected, "{name}, {before} before");
        is_by_action = expected.3.is_some_and(|(.., words)| words.is_some());
    }
    is_by_action
}

#[test]
fn a_group_leads_to_what_its_states_lead_to_one_by_one() {
    let by_action = mutants::ALL.iter().filter(|mutant| {
        let model = mutant.model();
        match model.buffers() {
            0 => agree::<0, 5>(mutant.name, &model),
            1 => agree::<1, 8>(mutant.name, &model),
            _ => agree::<2, 13>(mutant.name, &model),
        }
    });
    let by_action = by_action.count();
    assert!(by_action > 0 && by_action < mutants::ALL.len(), "some break a predicate by an action, some in a state");
}
