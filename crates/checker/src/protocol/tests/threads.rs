//! The number of threads changes no state's number, and so no count and no counterexample.

use super::super::bounds::{INPUTS, SLOTS};
use super::super::expand::Expander;
use super::super::mutants::Mutant;
use super::*;
use crate::exploration::explore::explore;
use crate::exploration::{Counterexample, Exploration};

/// States, transitions, depth, and the first states that the search found in their order.
fn explored_by(threads: usize, model: &Explored) -> Found {
    let means = Means { memory_max: u64::MAX, threads };
    let expander: Expander<'_, 1, SLOTS, INPUTS> = Expander::new(model);
    let exploration: Exploration<4> = explore(&expander, means, &mut |_| ControlFlow::Continue(()));
    let progress = exploration.progress;
    ([progress.states, progress.transitions, progress.expanded, progress.depth.into()], exploration.counterexample)
}

type Found = ([u64; 4], Option<Counterexample<4>>);

#[test]
fn everything_is_found_in_the_same_order() {
    let model = sound(small(Scheme::Pb)).unwrap();
    let alone = explored_by(0, &model);
    assert!(alone.0[0] > 40 * 256, "there are blocks for every thread, again and again: {alone:?}");
    for threads in [1, 3] {
        assert_eq!(explored_by(threads, &model), alone);
    }
}

#[test]
fn a_counterexample_is_the_same() {
    let mutant = Mutant::named("coalesces-into-drain").unwrap().model();
    let alone = explored_by(0, &mutant);
    assert!(alone.1.is_some());
    assert_eq!(explored_by(3, &mutant), alone);
}
