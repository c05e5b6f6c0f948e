//! Which version of its line each load of PM observed, and each store made: what a program could have seen.
//!
//! Allocated only when enabled. Entries are in the order in which cores compute. A load that is forwarded its bytes by
//! a store of its own core observes no line.

use std::collections::HashMap;

use fencepost_kernel::address_map::is_pm;
use fencepost_kernel::line::{LineAddress, Version};
use fencepost_kernel::time::{Duration, Time};

/// How a core came by a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A load found it in the first level.
    Hit,
    /// It came into the core's first level, for whatever asked for it.
    Brought,
    /// A load that had waited for that got it.
    Fill,
    /// A store made it.
    Store,
}

/// What one access did with one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// Whose access.
    pub core: usize,
    /// When the load had its data, or the store took effect.
    pub time: Time,
    /// The line.
    pub line: LineAddress,
    /// The version that was observed or made.
    pub version: Version,
    /// How.
    pub access: Access,
}

/// All observations of one host so far.
#[derive(Clone, Debug)]
pub struct ObservationLog {
    period: Duration,
    observations: Vec<Observation>,
}

impl ObservationLog {
    /// An empty log of cores with that clock.
    pub fn new(period: Duration) -> ObservationLog {
        ObservationLog { period, observations: Vec::new() }
    }

    /// All of them, in the order in which they were computed.
    pub fn observations(&self) -> &[Observation] {
        &self.observations
    }

    /// Takes one down.
    pub fn record(&mut self, core: usize, cycle: u64, line: LineAddress, version: Version, access: Access) {
        if is_pm(line) {
            let time = Time::ZERO + self.period * cycle;
            self.observations.push(Observation { core, time, line, version, access });
        }
    }

    /// The first access of a core that goes back behind what it has observed of the line before, or that found a copy
    /// in its first level that another core's store should have taken away.
    pub fn first_stale(&self) -> Option<Observation> {
        let mut observed: HashMap<(usize, LineAddress), Version> = HashMap::new();
        let mut brought: HashMap<(usize, LineAddress), Version> = HashMap::new();
        let mut stored: HashMap<LineAddress, Version> = HashMap::new();
        self.observations.iter().copied().find(|observation| {
            let Observation { core, line, version, access, .. } = *observation;
            let own = observed.entry((core, line)).or_default();
            let last = stored.entry(line).or_default();
            let is_stale = match access {
                Access::Brought => version < *own,
                // The core may have stored to the line since it came; the load's own bytes are those that came.
                Access::Fill => brought.get(&(core, line)) != Some(&version),
                Access::Hit | Access::Store => version < *own || version < *last,
            };
            *own = version.max(*own);
            match access {
                Access::Brought => {
                    brought.insert((core, line), version);
                }
                Access::Store => *last = version.max(*last),
                Access::Hit | Access::Fill => {}
            }
            is_stale
        })
    }
}
