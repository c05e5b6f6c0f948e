//! What counts the bytes of a thread that does not say how many it moves.

use std::ffi::CStr;
use std::time::Duration;

use fencepost_pacing::Bandwidth;

use crate::counters::{Counters, Events};
use crate::monitoring::{Group, Monitoring};
use crate::segment::Source;
use crate::trigger::Quantum;

/// The variable with the events that count bytes.
pub const EVENTS: &CStr = c"FENCEPOST_CHANNEL_EVENTS";
/// The variable with the root of resctrl, and the one with its last levels.
pub const MONITORING: [&CStr; 2] = [c"FENCEPOST_CHANNEL_RESCTRL", c"FENCEPOST_CHANNEL_DOMAINS"];

/// With what a process counts.
#[derive(Clone, Copy, Debug)]
pub enum Means {
    /// Nothing: its threads report, or are charged.
    Nothing,
    /// Hardware counters.
    Counters(Events),
    /// Monitoring groups.
    Monitoring(Monitoring),
}

impl Means {
    /// After how much a thread's handler is called, whose path carries `link`.
    pub fn quantum(self, time: Duration, link: Bandwidth) -> Quantum {
        let event = match self {
            Means::Counters(events) => events.first(link.bytes_in(time)),
            Means::Nothing | Means::Monitoring(_) => None,
        };
        Quantum { time, event }
    }

    /// What the launcher put into the environment for this source. `None` if that is missing or wrong.
    pub fn of(source: Source, variable: impl Fn(&CStr) -> Option<&'static CStr>) -> Option<Means> {
        match source {
            Source::Reported | Source::Charged => Some(Means::Nothing),
            Source::Counter => Some(Means::Counters(Events::parse(variable(EVENTS)?.to_str().ok()?)?)),
            Source::Mbm => {
                let [root, domains] = MONITORING.map(variable);
                Some(Means::Monitoring(Monitoring::parse(root?, domains?.to_str().ok()?)?))
            }
        }
    }
}

/// What counts the calling thread's bytes.
#[expect(clippy::large_enum_variant, reason = "it lies in its channel: where it is made, nothing may be allocated")]
#[derive(Clone, Copy, Debug)]
pub enum Meter {
    /// Nothing.
    Nothing,
    /// Hardware counters.
    Counters(Counters),
    /// A monitoring group.
    Group(Group),
}

impl Meter {
    /// For `thread`, which is the calling one and has this row of the segment of this fingerprint. `None` where its
    /// bytes cannot be counted.
    pub fn open(means: Means, fingerprint: u64, row: usize, thread: u32) -> Option<Meter> {
        match means {
            Means::Nothing => Some(Meter::Nothing),
            Means::Counters(events) => Counters::open(events).map(Meter::Counters),
            Means::Monitoring(monitoring) => Group::open(monitoring, fingerprint, row, thread).map(Meter::Group),
        }
    }

    /// Bytes since the last call.
    pub fn bytes(&mut self) -> u64 {
        match self {
            Meter::Nothing => 0,
            Meter::Counters(counters) => counters.bytes(),
            Meter::Group(group) => group.bytes(),
        }
    }

    /// Ends counting.
    pub fn close(self) {
        match self {
            Meter::Nothing => {}
            Meter::Counters(counters) => counters.close(),
            Meter::Group(group) => group.close(),
        }
    }

    /// Lets go of what a forked child has of its parent's.
    pub fn forget(self) {
        if let Meter::Counters(counters) = self {
            counters.close();
        }
    }
}
