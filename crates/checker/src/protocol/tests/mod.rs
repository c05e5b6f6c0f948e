//! Small explorations: pinned counts, every mutant, and the reductions against their absence.

mod arrival;
mod counts;
mod documented_counts;
mod failure;
mod groups;
mod killing;
mod orbits;
mod reductions;
mod second_count;
mod threads;
mod walks;

use std::ops::ControlFlow;

use fencepost_sim::switch::Scheme;

use super::bounds::{Bounds, Topology};
use super::mutants::Explored;
use super::prove::{Report, prove, sound};
use crate::exploration::Means;

/// Explores without being told to stop.
fn explored(model: &Explored) -> Report {
    prove(model, Means { memory_max: u64::MAX, threads: 0 }, &mut |_| ControlFlow::Continue(()))
}

/// One address, one host, one entry: two writes and a read, a power cut and a repeated acknowledgement.
fn tiny(scheme: Scheme, topology: Topology) -> Bounds {
    let hosts = if topology == Topology::Shared { 2 } else { 1 };
    Bounds { scheme, topology, entries: 1, addresses: 1, hosts, writes: 2, reads: 1, crashes: 1, ..Bounds::default() }
}

/// Everything twice, but one power cut and one entry.
fn small(scheme: Scheme) -> Bounds {
    Bounds { scheme, entries: 1, addresses: 2, hosts: 2, writes: 1, reads: 1, crashes: 1, ..Bounds::default() }
}

fn proved(bounds: Bounds) -> [u64; 3] {
    let report = explored(&sound(bounds).unwrap());
    assert_eq!(report.counterexample, None, "{bounds:?}");
    [report.progress.states, report.progress.transitions, report.progress.depth.into()]
}
