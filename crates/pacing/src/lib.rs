//! How hosts share a device of a CXL memory pool fairly, as a pure control law.
//!
//! A thread that uses a device has a [`Channel`] to it. In each scheduling window the channel runs for a part of the
//! window and is then paused; it measures the bandwidth that it got and the bandwidth that it would take unpaused, and
//! publishes both as its [`Claim`] to each device on its path. The [`Owner`] of a device collects the claims of all
//! hosts once per interval, probes the device's capacity from congestion signals ([`Capacity`]), and publishes a fair
//! share per unit of weight ([`Grant`]), for each group where the device is divided among groups ([`Hierarchy`]). A
//! channel keeps to the least share on its path.
//!
//! Two laws compute the share ([`Law`]): the iterative one of "Building a CSFQ-Inspired Transport for Switched CXL
//! Memory Pooling" (NSDI'26), with the slips of its pseudo-code mended, and exact weighted water-filling.
//!
//! Nothing here reads a clock, starts a thread or does I/O. The simulator and the preloaded runtime call this crate and
//! nothing else, so there is one model of the transport.
//!
//! # What a channel can gain by lying
//!
//! A channel that moves `u` bytes for each byte that is counted gets `u` times its share. How large `u` can be depends
//! on who counts ([`Source`]):
//!
//! | source | what is not counted | `u` at most |
//! |---|---|---|
//! | counter or cache monitoring, with writes | nothing; cache monitoring charges other memory too | 1 |
//! | counter or cache monitoring, of reads | write-backs (2 if all that is read is written), other stores | none |
//! | self-reported | whatever the program keeps to itself | none |
//! | charged by CPU time | nothing: a program cannot move bytes without running | link / charge |
//!
//! - With equal weights and everybody greedy, the probed capacity falls until all real traffic fits. `n` honest
//!   channels beside one with `u` then get `C / (n + u)` each, and the liar `u` times as much.
//! - A channel that reports more than it moves only loses: it gets `1 / f` of its share.
//! - A forged row cannot push another channel below `w C / W`, `W` being the weight of all claims: no share is below
//!   that. Weights come from the configuration, not from rows. No rate counts as use of the device beyond its share, or
//!   a row could keep the estimate of a congested device from falling.

mod average;
mod bandwidth;
mod capacity;
mod channel;
mod congestion;
mod debt;
mod grant;
mod hierarchy;
mod law;
mod members;
mod owner;
mod received;
mod source;
mod weight;

pub use average::Average;
pub use bandwidth::Bandwidth;
pub use capacity::{Capacity, Probing, ProbingError};
pub use channel::{Channel, Slice, Timing, Used};
pub use congestion::{DevLoad, DevLoadCounts, backpressure};
pub use debt::Debt;
pub use grant::Grant;
pub use hierarchy::{Hierarchy, HierarchyError, Node};
pub use law::{Claim, Law, granted};
pub use members::{Members, Row};
pub use owner::Owner;
pub use source::Source;
pub use weight::{Weight, WeightError};
