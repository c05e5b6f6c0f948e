//! The simulator of Fencepost: a recorded program replayed on a simulated machine.
//!
//! ```text
//! record ──► core ──► cache ──► host bridge ──► link ──► switch ──► link ──► device
//!            └── host ──┘                                  │
//!                                                   persist buffer
//! ```
//! In the place of a host there may be synthetic [`traffic`].
//!
//! It takes readers and texts with a source name; it knows no paths, no terminals and no Python.

pub mod cache;
pub mod config;
pub mod core;
pub mod device;
pub mod global_flush;
pub mod host;
pub mod host_bridge;
pub mod kernel;
pub mod livelock;
pub mod message;
pub mod power;
pub mod record;
pub mod results;
pub mod sampling;
pub mod simulation;
pub mod sparse_table;
pub mod stats;
pub mod switch;
pub mod system;
pub mod timeline;
pub mod traffic;
