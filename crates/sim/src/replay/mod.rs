//! A replay from start to end, and what watches over it.

pub mod global_flush;
pub mod livelock;
pub mod power;
pub mod sampling;
pub mod simulation;
