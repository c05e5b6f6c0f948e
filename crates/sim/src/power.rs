//! What would have to be saved if power failed at the worst instant of a replay, and how long that takes.
//!
//! Persist buffers are looked at after every event, caches every so many: each such look goes through all their lines. The replay then goes once more,
//! up to the look at which the most was volatile or buffered, and a [Global Persistent Flush](crate::global_flush) there says how long a hold-up
//! source has to last.

use serde::Serialize;

use crate::global_flush::{self, FlushLimits, FlushReport};
use crate::message::LINE_BYTES;
use crate::simulation::{Progress, Simulation, SimulationError};
use crate::system::System;

/// Events between two looks at the caches: of the first `LOOKS_AT_DISTANCE` looks, of as many after them twice as many, and so on up to the most.
const EVENTS_PER_LOOK_LEAST: u64 = 16;
const EVENTS_PER_LOOK_MOST: u64 = 1024;
const LOOKS_AT_DISTANCE: u64 = 1024;

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
    /// How often the caches were looked at.
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

impl Simulation {
    /// Replays to the end to find the worst instant, and flushes there within `limits`.
    ///
    /// # Errors
    /// As [`Simulation::run`].
    pub fn find_worst_power_cut(
        self,
        limits: FlushLimits,
        progress: &Progress,
    ) -> Result<PowerReport, SimulationError> {
        let mut again = self.clone();
        let (worst_event, looks, fullest) = self.find_worst_event(progress)?;
        for _ in 0..worst_event {
            again.step();
        }
        let system = again.system();
        let (time_ps, cache_bytes, buffer_bytes) =
            (system.now().as_ps(), global_flush::cache_bytes(system), global_flush::buffered_bytes(system));
        let needed = again.clone().global_persistent_flush(FlushLimits::AMPLE);
        let flush = again.global_persistent_flush(limits);
        Ok(PowerReport { time_ps, looks, cache_bytes, buffer_bytes, fullest, needed, flush })
    }

    /// After how many events the most had to be saved, how many looks there were, and the most of each switch.
    fn find_worst_event(mut self, progress: &Progress) -> Result<(u64, u64, Vec<FullestBuffer>), SimulationError> {
        let (mut worst, mut looks, mut events) = ((0, 0), 0, 0);
        let mut fullest: Vec<FullestBuffer> = Vec::new();
        loop {
            self.look(progress)?;
            let system = self.system();
            let buffered: u64 = global_flush::buffered_bytes(system).iter().map(|(_, bytes)| bytes).sum();
            let bytes = global_flush::cache_bytes(system) + buffered;
            if bytes > worst.0 {
                worst = (bytes, events);
            }
            let distance = EVENTS_PER_LOOK_LEAST << (looks / LOOKS_AT_DISTANCE).min(16);
            looks += 1;
            for _ in 0..distance.min(EVENTS_PER_LOOK_MOST) {
                if !self.step() {
                    self.look(progress)?;
                    return self.finish().map(|_| (worst.1, looks, fullest));
                }
                events += 1;
                note_fullest(self.system(), &mut fullest);
            }
        }
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
