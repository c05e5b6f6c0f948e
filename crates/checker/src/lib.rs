//! No power cut loses an acknowledged persist: three levels at which that claim is checked.
//!
//! - [`protocol`]: every interleaving, within stated bounds, of the very state machine that the simulator's persist
//!   buffer runs.
//! - [`memory_model`]: published litmus tests of persistency through the whole simulator, against enumerators of the
//!   formal models.
//! - [`crash`]: the states that a power cut can leave of a recorded program's persistent memory on a simulated fabric.
//!
//! Beside these, [`coherence`] explores what a device that caches host memory and the host do to a line;
//! [`exploration`] is what explores it and the protocol.
//!
//! Uses `fencepost-sim`, which never imports this crate.

pub mod coherence;
pub mod crash;
pub mod exploration;
pub mod memory_model;
pub mod protocol;
