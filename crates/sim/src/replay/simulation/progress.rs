//! How far a replay has come, for other threads to read.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[cfg(doc)]
use crate::error::SimulationError;

/// How far a replay has come; other threads read it while it runs.
#[derive(Debug, Default)]
pub struct Progress {
    pub(super) simulated_ps: AtomicU64,
    pub(super) instructions: AtomicU64,
    pub(super) is_cancelled: AtomicBool,
}

impl Progress {
    /// Simulated picoseconds so far.
    pub fn simulated_ps(&self) -> u64 {
        self.simulated_ps.load(Ordering::Relaxed)
    }

    /// Instructions replayed so far, including those that only warm.
    pub fn instructions(&self) -> u64 {
        self.instructions.load(Ordering::Relaxed)
    }

    /// Makes the replay end soon, with [`SimulationError::Cancelled`].
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }
}
