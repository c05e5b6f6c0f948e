//! A transport for pooled memory, at the hosts: threads are paused, or their requests delayed, so that they share links
//! and devices fairly.
//!
//! An [`Agent`] stands for the runtimes of all hosts and for the owners of all resources. It calls `fencepost_pacing`
//! for the law, and nothing else: what it adds is which channels there are, over which links and devices each of them
//! goes, and when windows and intervals end. It is told what threads moved and what resources signalled, and says how
//! long each thread may run; `system` carries that between it and the components. Its messages are not simulated: they
//! are a line a window, and are counted.

mod agent;
mod config;
mod resource;

#[cfg(test)]
mod tests;

pub use agent::{Agent, Due, Pace, Sample, Thread, Way};
pub use config::{CongestionSignal, Counting, Transport, TransportConfig};
pub use resource::{Place, Resource};
