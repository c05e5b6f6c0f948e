//! What the checker is asked: bounds of the protocol's exploration, as JSON, and tables of litmus tests. Whatever they
//! say, the answer is one error or something that can be explored, and what is explored holds.
//!
//! An input that begins with `{` is bounds; any other is a table.
#![no_main]

use std::ops::ControlFlow;

use fencepost_checker::exploration::Means;
use fencepost_checker::memory_model::{FabricTest, LitmusTest, model, published};
use fencepost_checker::protocol::bounds::Bounds;
use fencepost_checker::protocol::prove::{prove, sound};
use libfuzzer_sys::fuzz_target;

/// The first states are explored, where bounds are wide.
const STATES_MAX: u64 = 2_000;
const MEANS: Means = Means { memory_max: 64 << 20, threads: 0 };
/// Tests of so many statements and threads are asked of their models: there are as many states as interleavings.
const STATEMENTS_MAX: usize = 8;

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if text.starts_with('{') {
        let Ok(bounds) = serde_json::from_str(text) else { return };
        explore(bounds);
    } else if let Ok((of_processors, of_fabric)) = published::tests_of(text) {
        of_processors.iter().for_each(ask);
        of_fabric.iter().for_each(ask_fabric);
    }
});

fn explore(bounds: Bounds) {
    let Ok(model) = sound(bounds) else { return };
    let report = prove(&model, MEANS, &mut |progress| {
        if progress.states < STATES_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    assert_eq!(report.counterexample, None, "{bounds:?}");
}

fn ask_fabric(test: &FabricTest) {
    if test.operations.len() > STATEMENTS_MAX || test.locations.len() > STATEMENTS_MAX {
        return;
    }
    for state in test.readable() {
        assert_eq!(state.len(), test.locations.len());
    }
}

fn ask(test: &LitmusTest) {
    if test.threads.iter().map(Vec::len).sum::<usize>() > STATEMENTS_MAX {
        return;
    }
    let states = model::states(test);
    assert!(states.contains(&vec![0; test.locations.len()]), "a power cut may come before anything");
    for state in &states {
        test.query.holds(state);
        assert!(!test.display(state).is_empty());
    }
}
