//! The order of events, and what every component of a machine shares: time, lines, messages, statistics.
//!
//! Components never call each other: they send messages through ports, and this crate decides which component receives
//! what, when. It knows no component; a system lists its own.

mod activity;
pub mod address_map;
pub mod component;
mod credits;
pub mod divisor;
pub mod event;
mod heap;
pub mod id;
pub mod line;
pub mod link;
pub mod message;
pub mod queue;
pub mod sparse_table;
pub mod stats;
pub mod time;
pub mod trace;

pub use activity::HostActivity;
pub use component::{Component, Context, Wires};
pub use divisor::Divisor;
pub use event::Event;
pub use id::{ComponentId, PortId};
pub use queue::EventQueue;
