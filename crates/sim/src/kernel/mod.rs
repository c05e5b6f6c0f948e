//! Simulated time, the order of events, and the contract every component keeps.
//!
//! Components never call each other: they send messages through ports, and this room decides who receives what, when.

pub mod component;
mod credits;
pub mod divisor;
pub mod events;
mod heap;
pub mod link;
pub mod time;
pub mod trace;

pub use component::{Component, ComponentId, Context, Event, PortId, Wires};
pub use divisor::Divisor;
pub use events::EventQueue;
pub use time::{Duration, Time};
