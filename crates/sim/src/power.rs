//! What would have to be saved if power failed at the worst instant of a replay, and how long that takes.
//!
//! The replay is looked at every so many events. It then goes once more, up to the look at which the most was volatile or buffered, and a
//! [Global Persistent Flush](crate::global_flush) there says how long a hold-up source has to last.

use serde::Serialize;

use crate::global_flush::{self, FlushLimits, FlushReport};
use crate::simulation::{Progress, Simulation, SimulationError};

/// Events between two looks at what would have to be saved.
pub const EVENTS_PER_LOOK: u64 = 1024;

/// The most that a switch's persist buffer held at any look.
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
    /// How often was looked.
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
        let (worst_look, looks, fullest) = self.find_worst_look(progress)?;
        for _ in 0..worst_look * EVENTS_PER_LOOK {
            again.step();
        }
        let system = again.system();
        let (time_ps, cache_bytes, buffer_bytes) =
            (system.now().as_ps(), global_flush::cache_bytes(system), global_flush::buffered_bytes(system));
        let needed = again.clone().global_persistent_flush(FlushLimits::AMPLE);
        let flush = again.global_persistent_flush(limits);
        Ok(PowerReport { time_ps, looks, cache_bytes, buffer_bytes, fullest, needed, flush })
    }

    /// The number of the look at which the most had to be saved, how many there were, and the most of each switch.
    fn find_worst_look(mut self, progress: &Progress) -> Result<(u64, u64, Vec<FullestBuffer>), SimulationError> {
        let (mut worst, mut looks) = ((0, 0), 0);
        let mut fullest: Vec<FullestBuffer> = Vec::new();
        loop {
            self.look(progress)?;
            let system = self.system();
            let (now, buffers) = (system.now().as_ps(), global_flush::buffered_bytes(system));
            let bytes = global_flush::cache_bytes(system) + buffers.iter().map(|(_, bytes)| bytes).sum::<u64>();
            if bytes > worst.0 {
                worst = (bytes, looks);
            }
            for (index, (switch, bytes)) in buffers.into_iter().enumerate() {
                match fullest.get_mut(index) {
                    Some(most) if most.bytes < bytes => (most.bytes, most.time_ps) = (bytes, now),
                    Some(_) => {}
                    None => fullest.push(FullestBuffer { switch, bytes, time_ps: now }),
                }
            }
            looks += 1;
            for _ in 0..EVENTS_PER_LOOK {
                if !self.step() {
                    self.look(progress)?;
                    return self.finish().map(|_| (worst.1, looks, fullest));
                }
            }
        }
    }
}
