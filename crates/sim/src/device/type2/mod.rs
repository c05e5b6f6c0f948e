//! A CXL Type-2 device: an accelerator that caches host memory.
//!
//! Both ends of CXL.cache are pure state machines without time, one line at a time: the device's coherence engine
//! ([`dcoh`]) and the host's side ([`host_side`]: home agent with its directory, last-level cache and cores, as far as
//! CXL.cache sees them). They take [`messages`] and give messages. What a line's data are is a type parameter
//! ([`messages::Payload`]): the checker runs them with data that only know whether they are the newest.
//!
//! Every rule that a wrong implementation might break is a switch in [`rules`].

pub mod accelerator;
pub mod burst;
pub mod config;
pub mod dcoh;
pub mod device_memory;
pub mod host_side;
pub mod litmus;
pub mod messages;
pub mod rules;
pub mod steps;
pub mod wire;

#[cfg(test)]
mod tests;

pub use accelerator::{Accelerator, DeviceAccess, Waits};
pub use config::{DeviceCacheConfig, Type2Config};
pub use rules::Rules;

/// How many devices a home agent can tell apart.
pub const DEVICES_MAX: usize = 4;
