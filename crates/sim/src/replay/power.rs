//! What would have to be saved if power failed at the worst instant of a replay, and how long that takes.
//!
//! It is looked for after every event that is timed; which lines of the caches are dirty is followed from event to
//! event ([`DirtyLines`]). The replay then goes once more from the last checkpoint before, up to the event after which
//! the most was volatile or buffered, and a [Global Persistent Flush](crate::replay::global_flush) there says how long
//! a hold-up source has to last.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::error::SimulationError;
use crate::host::{DirtyLineChange, Host};
use crate::replay::global_flush::{self, FlushLimits, FlushReport};
use crate::replay::simulation::{Outcome, Progress, Simulation};
use crate::system::System;
use fencepost_kernel::line::{LINE_BYTES, LineAddress, Version};

/// Events between two looks at whether somebody wants to know how far it is, or that it ends.
const EVENTS_BETWEEN_REPORTS: u64 = 1024;

/// What is usual between two checkpoints at first: a fraction of a second to do again.
pub const EVENTS_BETWEEN_CHECKPOINTS: u64 = 1 << 18;

/// Later ones are a quarter of the way apart: each holds all caches and all of PM, and making one must not outweigh the
/// replay.
const CHECKPOINTS_LATER: u64 = 4;

/// The most that a switch's persist buffer ever held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FullestBuffer {
    /// The switch.
    pub switch: String,
    /// Bytes that it held.
    pub bytes: u64,
    /// When.
    pub time_ps: u64,
}

/// What there was to save at the worst instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PowerReport {
    /// When that was.
    pub time_ps: u64,
    /// After how many events it was looked for.
    pub looks: u64,
    /// Bytes of PM that were dirty in the caches of all hosts then, or on their way.
    pub cache_bytes: u64,
    /// Bytes in the persist buffer of each switch that has one then.
    pub buffer_bytes: Vec<(String, u64)>,
    /// The most of each switch, whenever that was.
    pub fullest: Vec<FullestBuffer>,
    /// The flush that was begun then, without limits: what a hold-up source has to last for.
    pub needed: FlushReport,
    /// The same within the limits.
    pub flush: FlushReport,
}

/// The simulation as it was after so many events.
struct Checkpoint {
    events: u64,
    simulation: Simulation,
}

/// The event after which the most had to be saved so far.
struct Worst {
    bytes: u64,
    events: u64,
    /// The last one before it.
    checkpoint: Rc<Checkpoint>,
}

impl Simulation {
    /// As [`Simulation::run`], and finds the worst instant for a power cut on the way; flushes there within `limits`.
    /// At least so many events lie between two of the checkpoints from one of which it comes there again: that changes
    /// the time it takes, and no result.
    ///
    /// # Errors
    /// As [`Simulation::run`].
    pub fn run_to_worst_power_cut(
        mut self,
        limits: FlushLimits,
        events_between_checkpoints: u64,
        progress: &Progress,
    ) -> Result<(Outcome, PowerReport), SimulationError> {
        self.needs_one_socket("a power cut")?;
        let mut checkpoint = Rc::new(Checkpoint { events: 0, simulation: self.clone() });
        let mut worst = Worst { bytes: 0, events: 0, checkpoint: Rc::clone(&checkpoint) };
        let (mut looks, mut events) = (0, 0);
        let mut fullest: Vec<FullestBuffer> = Vec::new();
        let mut dirty = DirtyLines::follow(&mut self);
        loop {
            if events % EVENTS_BETWEEN_REPORTS == 0 {
                self.look(progress)?;
            }
            if events - checkpoint.events >= events_between_checkpoints.max(events / CHECKPOINTS_LATER) {
                checkpoint = Rc::new(Checkpoint { events, simulation: self.clone() });
            }
            if !self.step() {
                break;
            }
            events += 1;
            if !dirty.go_on(&mut self) {
                continue;
            }
            looks += 1;
            let system = self.system();
            note_fullest(system, &mut fullest);
            let buffered: u64 = global_flush::buffered_lines(system) * LINE_BYTES;
            let bytes = dirty.lines() as u64 * LINE_BYTES + global_flush::leaving_bytes(system) + buffered;
            if bytes > worst.bytes {
                worst = Worst { bytes, events, checkpoint: Rc::clone(&checkpoint) };
            }
        }
        self.look(progress)?;
        let outcome = self.finish()?;
        drop((self, checkpoint));
        Ok((outcome, worst.report(looks, fullest, limits)))
    }
}

impl Worst {
    /// Goes there again, and flushes.
    fn report(self, looks: u64, fullest: Vec<FullestBuffer>, limits: FlushLimits) -> PowerReport {
        let Checkpoint { events, simulation: mut there } =
            Rc::into_inner(self.checkpoint).expect("the last one is gone");
        for _ in events..self.events {
            there.step();
        }
        let system = there.system();
        let (time_ps, cache_bytes, buffer_bytes) =
            (system.now().as_ps(), global_flush::cache_bytes(system), global_flush::buffered_bytes(system));
        let bytes = cache_bytes + buffer_bytes.iter().map(|(_, bytes)| bytes).sum::<u64>();
        assert_eq!(bytes, self.bytes, "the same replay comes to the same instant");
        let limited = (limits != FlushLimits::AMPLE).then(|| there.clone().global_persistent_flush(limits));
        let needed = there.global_persistent_flush(FlushLimits::AMPLE);
        let flush = limited.unwrap_or_else(|| needed.clone());
        PowerReport { time_ps, looks, cache_bytes, buffer_bytes, fullest, needed, flush }
    }
}

/// The dirty lines of PM in the caches of all hosts, followed from event to event.
pub struct DirtyLines {
    /// By host, each line with its newest version.
    of_hosts: Vec<FxHashMap<LineAddress, Version>>,
    /// Whether they are not known, as something was not timed.
    is_lost: bool,
}

impl DirtyLines {
    /// From here on.
    pub fn follow(simulation: &mut Simulation) -> DirtyLines {
        let system = simulation.system_mut();
        system.hosts_mut().for_each(Host::log_dirty_lines);
        DirtyLines { of_hosts: system.hosts().map(|_| FxHashMap::default()).collect(), is_lost: true }
    }

    /// To be called after each event; false where what only warms caches goes on, in which nothing has an instant.
    pub fn go_on(&mut self, simulation: &mut Simulation) -> bool {
        let system = simulation.system_mut();
        let is_timed = !system.hosts().any(Host::is_warming);
        let is_found_out = is_timed && self.is_lost;
        for (lines, host) in self.of_hosts.iter_mut().zip(system.hosts_mut()) {
            host.dirty_lines_changed(|change| match change {
                DirtyLineChange::Stored(line, version) => {
                    lines.insert(line, version);
                }
                DirtyLineChange::WrittenBack(line, version) => {
                    if lines.get(&line).is_some_and(|newest| *newest <= version) {
                        lines.remove(&line);
                    }
                }
            });
            if is_found_out {
                *lines = host.caches().dirty_pm().collect();
            }
        }
        self.is_lost = !is_timed;
        is_timed
    }

    /// How many there are.
    pub fn lines(&self) -> usize {
        self.of_hosts.iter().map(FxHashMap::len).sum()
    }
}

/// Compares what each persist buffer holds with the most that it held.
fn note_fullest(system: &System, fullest: &mut Vec<FullestBuffer>) {
    let buffers = system.switches().filter_map(|(name, switch)| Some((name, switch.persist_buffer()?)));
    for (index, (switch, buffer)) in buffers.enumerate() {
        let bytes = buffer.state().occupied() as u64 * LINE_BYTES;
        if index == fullest.len() {
            fullest.push(FullestBuffer { switch: switch.to_owned(), bytes: 0, time_ps: 0 });
        }
        if bytes > fullest[index].bytes {
            (fullest[index].bytes, fullest[index].time_ps) = (bytes, system.now().as_ps());
        }
    }
}
