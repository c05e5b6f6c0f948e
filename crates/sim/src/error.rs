//! Why a simulation ends before it is done.

use fencepost_kernel::time::Time;
use fencepost_record::RecordError;

/// Why a replay did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    /// The machine cannot run this.
    #[error("{0}")]
    Impossible(String),
    /// The record cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The run was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// Events follow each other without progress.
    #[error("at {time} events follow each other and nothing comes of them:\n{}", .waiting.join("\n"))]
    Livelock {
        /// Simulated time.
        time: Time,
        /// What each stalled component waits for.
        waiting: Vec<String>,
    },
    /// No component can make progress.
    #[error("at {time} nothing can go on any more:\n{}", .waiting.join("\n"))]
    Deadlock {
        /// Simulated time.
        time: Time,
        /// What each stalled component waits for.
        waiting: Vec<String>,
    },
}
