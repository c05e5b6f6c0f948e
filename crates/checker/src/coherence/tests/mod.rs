//! Small explorations: pinned counts, every mutant, and the symmetries against their absence.

use std::ops::ControlFlow;

use super::bounds::Bounds;
use super::model::Model;
use super::mutants;
use super::predicates::{Looks, PROGRESS};
use super::prove::{Report, prove, sound};
use crate::exploration::Means;

fn explored(model: &Model) -> Report {
    prove(model, Means { memory_max: u64::MAX, threads: 0 }, &mut |_| ControlFlow::Continue(()))
}

fn proved(bounds: Bounds) -> [u64; 3] {
    let report = explored(&sound(bounds.clone()).unwrap());
    assert_eq!(report.counterexample, None, "{bounds:?}");
    [report.progress.states, report.progress.transitions, report.progress.depth.into()]
}

fn of_sizes(devices: u8, cores: u8, lines: u8) -> Bounds {
    Bounds { devices, cores, lines, ..Bounds::default() }
}

#[test]
fn counts() {
    eprintln!("1 {:?}", proved(of_sizes(1, 0, 1)));
    eprintln!("1 {:?}", proved(of_sizes(1, 1, 1)));
    eprintln!("2 {:?}", proved(of_sizes(2, 0, 1)));
    eprintln!("3 {:?}", proved(of_sizes(1, 2, 1)));
}

#[test]
fn mutants_die() {
    for m in mutants::ALL {
        let r = explored(&m.model());
        eprintln!("{} {:?} {}", m.name, r.counterexample.map(|s| (s.predicate, s.steps.len())), r.progress.states);
    }
}
