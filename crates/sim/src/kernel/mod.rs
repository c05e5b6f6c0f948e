//! The order of events, and the contract every component keeps.
//!
//! Components never call each other: they send messages through ports, and this room decides which component receives
//! what, when.

mod activity;
#[cfg(test)]
pub mod broken;
pub mod component;
mod credits;
pub mod divisor;
pub mod events;
mod heap;
pub mod link;
pub mod trace;

pub use activity::HostActivity;
pub use component::{Component, ComponentId, Context, Event, PortId, Wires};
pub use divisor::Divisor;
pub use events::EventQueue;
