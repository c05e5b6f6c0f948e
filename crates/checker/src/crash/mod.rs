//! The states that a power cut can leave of a recorded program's persistent memory on a simulated fabric.
//!
//! A record made with `--values` is replayed once in its recorded order, and two things are taken down: which store
//! made which version of a line, and which versions the host was promised to be durable. From them come, for each
//! instant, the versions that every line may have after a power cut: from the last one promised, which the persistent
//! domain holds, to the newest visible one, which an eviction may have brought there. An [`Exploration`] goes from
//! instant to instant and gives the images of the pool that these versions make; whoever runs the user's check on them
//! learns from it which stores a failure depends on, and what is missing in the program.
//!
//! In the order of the flow: [`recorded_stores`] (what the record says), [`pool_file`] (where it lies in the file),
//! [`replay`] (when it became visible and durable), [`operations`] and [`named_functions`] (what the program does as a
//! whole), [`exploration`] (instants), [`line_states`] (what of a line is durable), [`choices`] (images of one
//! instant), [`explanation`], [`diagnosis`] and [`image_stores`] (what went wrong), [`redundant_flushes`],
//! [`sites`], [`source_lines`] and [`origins`] (where it comes from); [`mapped_reads`] (which lines a check reads).
//! Paths and commands are the business of whoever uses this.

pub mod choices;
pub mod content_hash;
pub mod diagnosis;
#[cfg(test)]
mod exhaustive_model;
pub mod explanation;
pub mod exploration;
pub mod image_stores;
pub mod line_states;
pub mod mapped_reads;
pub mod named_functions;
pub mod operations;
pub mod origins;
pub mod pool_file;
pub mod recorded_stores;
pub mod redundant_flushes;
pub mod replay;
pub mod sites;
pub mod source_lines;
#[cfg(test)]
mod tests;

pub use exploration::Exploration;

use fencepost_record::RecordError;
use fencepost_sim::error::SimulationError;

/// Why the crash states of a record cannot be explored.
#[derive(Debug, thiserror::Error)]
pub enum CrashError {
    /// The record lacks something, or holds what this cannot deal with.
    #[error("{0}")]
    Unsuitable(String),
    /// The record cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The replay did not come to its end.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
}
