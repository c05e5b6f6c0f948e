//! The persist buffer (PB) of a persistent CXL switch.
//!
//! The logic is a pure state machine without time: [`state`], [`packet`], [`rules`] and the one [`transition()`]
//! function over them, with the [`selector`] (PBCS), the [`drain_policy`] of the scheme and [`recovery`];
//! [`invariants`] says what always holds. Around it stands the [`PersistBuffer`] of the simulator, which adds when
//! things happen: the controller (PBC) handles one packet at a time and takes the time of its accesses for it; what it
//! sends waits in its [`output`] (PO) for switch allocation. Under `pb_adaptive` it also watches which writes and reads
//! come when, and how long drains take (`forecast.rs`), and tells the policy how many entries may be held back.
//! `cost.rs` says what the hardware would take.

mod controller;
mod cost;
mod counters;
pub mod drain_policy;
mod forecast;
mod held;
pub mod invariants;
pub mod output;
pub mod packet;
pub mod parameters;
pub mod recovery;
pub mod rules;
pub mod selector;
pub mod state;
pub mod transition;

#[cfg(test)]
mod tests;

pub use controller::{Admission, PersistBuffer};
pub use cost::Cost;
pub use counters::PersistBufferStats;
pub use drain_policy::DrainPolicy;
pub use packet::{Acknowledgement as DrainId, Input, Output, Packet, Reaction};
pub use parameters::Parameters;
pub use rules::{Rules, Sound};
pub use state::State;
pub use transition::transition;
