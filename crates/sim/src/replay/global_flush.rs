//! The Global Persistent Flush (GPF) of CXL: power is about to fail, and a hold-up source gives time to save what is
//! volatile.
//!
//! Phase 1: traffic stops, and every host writes back what its caches have of the fabric's memory. Phase 2: what
//! buffers it inside the fabric passes it on to its media. Each phase has a time limit; what is over it is an error,
//! and phase 2 comes all the same. A shutdown with an error is *dirty*: on the next start the devices say so, and
//! nobody may rely on what the flush should have saved. (CXL 3.1, section 9.8, and the GPF registers of ports and
//! devices in section 8.1; recalled.) What a core has not performed yet, in its store queue or its write-combining
//! buffers, is no part of a cache and is lost; a core may have computed ahead by `simulation.run_ahead_ns`, and what it
//! stored in that time is saved.

use std::fmt;

use serde::Serialize;

use crate::host::Host;
use crate::replay::simulation::Simulation;
use crate::switch::Switch;
use crate::system::{Stepped, System};
use fencepost_kernel::line::LINE_BYTES;
use fencepost_kernel::time::{Duration, Time};

/// How long each phase may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlushLimits {
    /// Phase 1, for the hosts together.
    pub phase_1: Duration,
    /// Phase 2, for the fabric.
    pub phase_2: Duration,
}

impl FlushLimits {
    /// A hundred seconds for each phase: no limit to speak of.
    pub const AMPLE: FlushLimits = FlushLimits {
        phase_1: Duration::from_ps(100_000_000_000_000),
        phase_2: Duration::from_ps(100_000_000_000_000),
    };
}

/// What a phase did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FlushPhase {
    /// How long it took.
    pub duration_ps: u64,
    /// Bytes that there were to save when it began.
    pub bytes: u64,
    /// Bytes of them that were still unsaved when its time was over.
    pub bytes_left: u64,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "error", rename_all = "snake_case")]
pub enum FlushError {
    /// A host had not written everything back in time.
    Phase1TimedOut {
        /// The host.
        host: String,
        /// Bytes in its caches, or on their way, that nothing has acknowledged.
        bytes_left: u64,
    },
    /// A switch had not passed everything on in time, or a device had not written it.
    Phase2TimedOut {
        /// The switch or the device.
        place: String,
        /// Bytes in the switch's persist buffer; of a device, those that have come to it and are not on its medium.
        bytes_left: u64,
    },
}

impl fmt::Display for FlushError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FlushError::Phase1TimedOut { host, bytes_left } => {
                write!(formatter, "GPF phase 1: {host} has {bytes_left} bytes left when its time is over")
            }
            FlushError::Phase2TimedOut { place, bytes_left } => {
                write!(formatter, "GPF phase 2: {place} has {bytes_left} bytes left when its time is over")
            }
        }
    }
}

/// What came of a Global Persistent Flush.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlushReport {
    /// Caches to fabric.
    pub phase_1: FlushPhase,
    /// Fabric to media. Its bytes are those of the persist buffers, in [`Self::switches`] one by one.
    pub phase_2: FlushPhase,
    /// Bytes in the persist buffer of each switch that has one, when phase 2 began.
    pub switches: Vec<(String, u64)>,
    /// What went wrong.
    pub errors: Vec<FlushError>,
}

impl FlushReport {
    /// Whether the devices will say on the next start that the shutdown was dirty.
    pub fn is_dirty_shutdown(&self) -> bool {
        !self.errors.is_empty()
    }
}

impl Simulation {
    /// Saves what is volatile within these limits. The power is still on then, and no program goes on:
    /// [`Simulation::power_fail`] is to follow.
    pub fn global_persistent_flush(&mut self, limits: FlushLimits) -> FlushReport {
        let mut errors = Vec::new();
        let system = self.system_mut();
        let in_caches = cache_bytes(system);
        let begun = system.now();
        system.begin_flush_of_hosts();
        let ended = run(system, begun + limits.phase_1, |system| {
            system.hosts().all(|host| host.caches().is_globally_flushed())
        });
        let names: Vec<String> = system.host_names().map(str::to_owned).collect();
        let left: Vec<u64> = system.hosts().map(unsaved_bytes).collect();
        for (host, bytes_left) in names.into_iter().zip(left.iter().copied()).filter(|(_, left)| *left > 0) {
            errors.push(FlushError::Phase1TimedOut { host, bytes_left });
        }
        let phase_1 =
            FlushPhase { duration_ps: ended.since(begun).as_ps(), bytes: in_caches, bytes_left: left.iter().sum() };
        system.hosts_mut().for_each(Host::abandon_global_flush);

        let switches = buffered_bytes(system);
        let begun = ended;
        system.begin_flush_of_switches();
        let is_saved = |system: &System| {
            buffered_lines(system) == 0 && system.devices().all(|(_, device)| device.unwritten_bytes() == 0)
        };
        let ended = run(system, begun + limits.phase_2, is_saved);
        let in_buffers = buffered_bytes(system);
        let in_devices = system.devices().map(|(name, device)| (name.to_owned(), device.unwritten_bytes()));
        let left = in_buffers.iter().cloned().chain(in_devices).filter(|(_, bytes)| *bytes > 0);
        errors.extend(left.map(|(place, bytes_left)| FlushError::Phase2TimedOut { place, bytes_left }));
        let total = |buffers: &[(String, u64)]| buffers.iter().map(|(_, bytes)| bytes).sum();
        let phase_2 = FlushPhase {
            duration_ps: ended.since(begun).as_ps(),
            bytes: total(&switches),
            bytes_left: total(&in_buffers),
        };
        FlushReport { phase_1, phase_2, switches, errors }
    }
}

/// Handles events until `is_done`, or up to `limit`; gives when that was.
fn run(system: &mut System, limit: Time, is_done: impl Fn(&System) -> bool) -> Time {
    while !is_done(system) {
        match system.next_time() {
            Some(next) if next <= limit => assert_ne!(system.step(), Stepped::Nowhere),
            _ => return limit,
        }
    }
    system.now()
}

/// Bytes of PM that are dirty in the caches of all hosts, or on their way from there.
pub(crate) fn cache_bytes(system: &System) -> u64 {
    system.hosts().map(unsaved_bytes).sum()
}

/// Bytes of PM in the caches of a host and on their way from there that no acknowledgement has come for.
fn unsaved_bytes(host: &Host) -> u64 {
    host.caches().dirty_pm_lines() as u64 * LINE_BYTES + leaving_bytes_of(host)
}

/// Bytes of PM that have left the caches of all hosts, or wait for that, and that no acknowledgement has come for.
pub(crate) fn leaving_bytes(system: &System) -> u64 {
    system.hosts().map(leaving_bytes_of).sum()
}

fn leaving_bytes_of(host: &Host) -> u64 {
    let caches = host.caches();
    (caches.pm_writes_waiting() + caches.pm_writes_under_way()) as u64 * LINE_BYTES
}

/// Lines in all persist buffers.
pub(crate) fn buffered_lines(system: &System) -> u64 {
    system.switches().filter_map(|(_, switch)| Some(switch.persist_buffer()?.state().occupied() as u64)).sum()
}

/// Bytes in the persist buffer of each switch that has one.
pub(crate) fn buffered_bytes(system: &System) -> Vec<(String, u64)> {
    let bytes = |switch: &Switch| Some(switch.persist_buffer()?.state().occupied() as u64 * LINE_BYTES);
    system.switches().filter_map(|(name, switch)| Some((name.to_owned(), bytes(switch)?))).collect()
}
