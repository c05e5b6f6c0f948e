//! Why a simulation ends before it is done.

use crate::record::RecordError;
use crate::time::Time;

/// Why a replay did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    /// The machine cannot run this.
    #[error("{0}")]
    Impossible(String),
    /// The record cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Somebody asked for that.
    #[error("cancelled")]
    Cancelled,
    /// Events follow each other and nothing comes of them; says who waits for whom.
    #[error("at {time} events follow each other and nothing comes of them:\n{}", .waiting.join("\n"))]
    Livelock {
        /// When.
        time: Time,
        /// Who waits for what.
        waiting: Vec<String>,
    },
    /// Nothing can go on any more; says who waits for whom.
    #[error("at {time} nothing can go on any more:\n{}", .waiting.join("\n"))]
    Deadlock {
        /// When.
        time: Time,
        /// Who waits for what.
        waiting: Vec<String>,
    },
}
