//! The transport on real processes, without the hooks.
//!
//! Processes share a [`segment`]. Each paced thread has a row in it, which only that thread writes: what it used, and
//! what it would use unpaced; where it does not say so itself, a [`meter`] counts. The [`keeper`], a process of its
//! own, reads the rows and publishes what the owner of each device grants. A thread's [`pacer`] reads the grants and
//! says when the thread has to pause, and until when. All arithmetic of shares is that of `fencepost_pacing`.
//!
//! `preload/` is the library that is preloaded into programs: signals, hooks and the C interface.

#[cfg(not(loom))]
pub mod counters;
#[cfg(not(loom))]
pub mod joined;
#[cfg(not(loom))]
pub mod keeper;
#[cfg(not(loom))]
pub mod mapping;
#[cfg(not(loom))]
pub mod meter;
#[cfg(not(loom))]
pub mod monitoring;
#[cfg(not(loom))]
pub mod pacer;
#[cfg(not(loom))]
pub mod pattern;
#[cfg(not(loom))]
pub mod perf;
pub mod segment;
#[cfg(not(loom))]
pub mod system;
#[cfg(not(loom))]
pub mod trigger;
