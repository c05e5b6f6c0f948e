//! Keeps a segment: computes the grants as the owner of its devices, and frees the rows of the dead.
//!
//! Two keepers run for each host, so that one may be killed: the owner, and one that stands by. Each starts another
//! where it finds itself alone. When pacing has ended, or no launcher holds the segment and no thread has a row, they
//! remove the segment and end.

mod dead;
mod owners;
mod state;

pub use dead::Reaper;
pub use owners::Owners;
pub use state::{ChannelState, State, ThreadState};
