//! The loop that handles a system's events, and the watch over it that finds out that it only seems to go on: events
//! are handled, and nothing comes of them. Replays, traffic and recovery after a power cut all run under this watch.
//!
//! Progress is a micro-operation that dispatches, an instruction that is warmed, or a request that is answered at its
//! host. Between two such there can only be events of what is under way, and that is little: in a component some
//! hundreds of messages at most (its queues, credits, MSHRs and entries), each of which takes some tens of events
//! there. Waiting itself takes none: a long system call, a sleep, a refresh are one event each, however long. So the
//! bounds count events, not time. One is for the whole system and grows with the number of components. One is for each
//! host alone, and counts its own events only: a host that wakes itself for ever is found beside others that go on. A
//! host that waits for what never comes has no events; it is found when nothing else can go on, as a deadlock.

use crate::error::SimulationError;
use crate::system::System;
use fencepost_kernel::HostActivity;
use fencepost_kernel::time::Time;

#[cfg(test)]
mod tests;

/// How many events are handled between two looks: so many,
const EVENTS_PER_LOOK: u32 = 4096;
/// … or for each host so many, because a look goes through all hosts.
const EVENTS_PER_LOOK_OF_HOST: u32 = 64;

/// Events without progress that any system may have.
const EVENTS: u64 = 4_000_000;
/// … and for each of its components: hundreds of messages, tens of events each, ten times over.
const EVENTS_PER_COMPONENT: u64 = 100_000;
/// Events of a host without progress of its own: thousands of requests (its MSHRs and write buffers), some wakes each,
/// a hundred times over.
const EVENTS_OF_HOST: u64 = 1_000_000;
/// … and for each of its cores or streams: hundreds of entries of queues that may all drain while no other core comes
/// on, likewise.
const EVENTS_OF_CORE: u64 = 100_000;

/// Since when a number has stood still.
#[derive(Clone, Copy, Debug, Default)]
struct Standstill {
    progress: u64,
    /// The number of events at which there was progress last.
    since: u64,
}

impl Standstill {
    /// After `events` events in all there has been so much `progress` in all: for how many events it has stood still.
    fn length(&mut self, progress: u64, events: u64) -> u64 {
        if progress != self.progress {
            *self = Standstill { progress, since: events };
        }
        events - self.since
    }
}

/// Watches one system.
#[derive(Clone, Debug)]
pub struct LivelockWatch {
    events_max: u64,
    system: Standstill,
    hosts: Vec<Standstill>,
}

impl LivelockWatch {
    /// Of `system`, from now on.
    pub fn new(system: &System) -> LivelockWatch {
        let events_max = EVENTS + system.names().len() as u64 * EVENTS_PER_COMPONENT;
        let now = |(_, host): (_, HostActivity)| Standstill { progress: host.progress, since: host.events };
        let hosts: Vec<_> = system.activities().map(now).collect();
        let progress = hosts.iter().map(|host| host.progress).sum();
        LivelockWatch { events_max, system: Standstill { progress, since: system.events() }, hosts }
    }

    /// How many events are handled between two looks.
    pub fn events_per_look(&self) -> u32 {
        EVENTS_PER_LOOK.max(self.hosts.len() as u32 * EVENTS_PER_LOOK_OF_HOST)
    }

    /// Looks whether anything comes of what `system` does.
    ///
    /// # Errors
    /// If not, for too long: with who waits for whom.
    pub fn look(&mut self, system: &System) -> Result<(), SimulationError> {
        let mut found = Vec::new();
        let mut progress = 0;
        for ((name, activity), host) in system.activities().zip(&mut self.hosts) {
            progress += activity.progress;
            let events = host.length(activity.progress, activity.events);
            if events > EVENTS_OF_HOST + activity.cores * EVENTS_OF_CORE {
                found.push(format!("{name}: has handled {events} events since it came on last"));
            }
        }
        let is_stuck = self.system.length(progress, system.events()) > self.events_max;
        if found.is_empty() && !is_stuck {
            return Ok(());
        }
        found.extend(system.waiting());
        Err(SimulationError::Livelock { time: system.now(), waiting: found })
    }
}

/// Handles all events of `system` up to `time`; whether any are left.
///
/// # Errors
/// If nothing comes of them.
pub fn run_until(system: &mut System, watch: &mut LivelockWatch, time: Time) -> Result<bool, SimulationError> {
    loop {
        watch.look(system)?;
        for _ in 0..watch.events_per_look() {
            match system.next_time() {
                None => return Ok(false),
                Some(next) if next > time => return Ok(true),
                Some(_) => {
                    system.step();
                }
            }
        }
    }
}
