//! What is simulated, and what comes of it.

use super::stack::Stack;
use super::task::TASKS;
use crate::linux::ksm::Contents;
use crate::linux::preset::Preset;
use crate::recorded::Operation;
use crate::service::costs::Costs;
use crate::service::scheduler::Nanoseconds;

/// What is simulated.
pub struct Setting<'a> {
    /// The kernel.
    pub preset: &'static Preset,
    /// The backend.
    pub costs: &'a Costs,
    /// What the service can do.
    pub operations: &'a [Operation],
    /// Which of that each operation does, over and over.
    pub sequence: &'a [Vec<u32>],
    /// By page: whether it is anonymous.
    pub is_anonymous: &'a [bool],
    /// What pages hold at first.
    pub contents: Contents<'a>,
    /// ns of an instruction whose accesses hit.
    pub instruction_ns: f64,
    /// ns that a miss of the last level adds.
    pub miss_ns: f64,
    /// Arrivals a second; none: an operation arrives when the one before it is done.
    pub arrivals_per_second: Option<f64>,
    /// Operations before those that are measured, and all.
    pub operations_counted: (u64, u64),
    /// Whether ksmd runs.
    pub has_ksm: bool,
    /// Whether kswapd and ksmd have the server's core, or cores of their own.
    pub shares_core: bool,
    /// Whether their work passes caches.
    pub pollutes: bool,
    /// Of the arrivals.
    pub seed: u64,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// ns of each measured operation with what they went into.
    pub latencies: Vec<(Nanoseconds, Stack)>,
    /// From the first measured operation's beginning to the end, in ns.
    pub elapsed: Nanoseconds,
    /// Of each task, in ns.
    pub busy: [Nanoseconds; TASKS],
    /// Of the server: lines that left the second level, and those that memory had.
    pub last_level: (u64, u64),
    /// Over the device's link.
    pub link_bytes: u64,
    /// Whole scans of ksmd.
    pub scans: u64,
}
