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

pub mod address_space;
pub mod bursts;
pub mod cache;
pub mod coherent_host;
pub mod config;
pub mod core;
pub mod device;
pub mod error;
pub mod flow;
pub mod home_agent;
pub mod host;
pub mod host_bridge;
pub mod nearest;
pub mod pcie;
pub mod replay;
pub mod results;
pub mod switch;
pub mod system;
pub mod timeline;
pub mod traffic;
pub mod traffic_experiment;
pub mod transport;
