//! How hosts share a device of a CXL memory pool fairly, as a pure control law.
//!
//! A thread that uses a device has a [`Channel`] to it. In each scheduling window the channel runs for a part of the
//! window and is then paused; it measures the bandwidth that it got and the bandwidth that it would take unpaused, and
//! publishes both as its [`Claim`]. The [`Owner`] of a device collects the claims of all hosts once per interval,
//! probes the device's capacity from congestion signals ([`Capacity`]), and publishes a fair share per unit of weight
//! ([`Grant`]). A channel obeys the least grant on its path.
//!
//! Two laws compute the share ([`Law`]): the iterative one of "Building a CSFQ-Inspired Transport for Switched CXL
//! Memory Pooling" (NSDI'26), with the slips of its pseudo-code mended, and exact weighted water-filling.
//!
//! Nothing here reads a clock, starts a thread or does I/O. The simulator and the preloaded runtime call this crate and
//! nothing else, so there is one model of the transport.

mod average;
mod bandwidth;
mod capacity;
mod channel;
mod debt;
mod grant;
mod hierarchy;
mod law;
mod members;
mod owner;

pub use average::Average;
pub use bandwidth::Bandwidth;
pub use capacity::{Capacity, Probing};
pub use channel::{Channel, Slice, Timing, Used};
pub use debt::Debt;
pub use grant::{Grant, path_minimum};
pub use hierarchy::{Hierarchy, HierarchyError, Node};
pub use law::{Claim, Law, granted};
pub use members::{Members, Row};
pub use owner::Owner;
