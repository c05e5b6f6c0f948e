//! Small explorations: pinned counts, every mutant, and the symmetries against their absence.

mod counts;
mod killing;
mod symmetry;

use std::ops::ControlFlow;

use super::bounds::{Bounds, DeviceMemoryKind};
use super::model::Model;
use super::prove::{Report, prove, sound};
use crate::exploration::Means;

fn explored(model: &Model) -> Report {
    prove(model, Means { memory_max: u64::MAX, threads: 0 }, &mut |_| ControlFlow::Continue(()))
}

/// States, transitions and depth of what holds.
fn proved(bounds: Bounds) -> [u64; 3] {
    let report = explored(&sound(bounds.clone()).unwrap());
    assert_eq!(report.counterexample, None, "{bounds:?}");
    [report.progress.states, report.progress.transitions, report.progress.depth.into()]
}

fn of_sizes(devices: u8, cores: u8, lines: u8) -> Bounds {
    Bounds { devices, cores, lines, ..Bounds::default() }
}

fn with_requests(devices: u8, cores: u8, requests: &[&str]) -> Bounds {
    Bounds { requests: requests.iter().map(|name| (*name).to_owned()).collect(), ..of_sizes(devices, cores, 1) }
}
