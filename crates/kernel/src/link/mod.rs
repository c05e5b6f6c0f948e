//! One direction of a link: messages packed into flits, credits for each message class, and retries of flits that
//! arrive wrong.
//!
//! Each end of a link owns a [`Transmitter`]: it sends messages as credits allow, and returns the credits of what came
//! in at the same port. Bandwidth is a reservation of the next free slot, not a queue of events; a message waits in the
//! transmitter only for credits. What flits look like is in `flit.rs`, which slots a message gets in `packing_68.rs`
//! and `packing_256.rs`, when flits go in `schedule.rs`, what an error costs in `retry.rs`. Which classes there are,
//! and what their headers and data need, the messages say (`headers.rs` has it in the form that packing needs).

mod backpressure;
mod config;
mod flit;
mod headers;
mod packing;
mod packing_256;
mod packing_68;
pub mod pair;
mod retry;
mod schedule;
mod transmitter;

#[cfg(test)]
mod tests;

pub use backpressure::BackpressureAverage;
pub use config::LinkConfig;
pub use flit::FlitFormat;
pub use transmitter::{Transmitter, TransmitterStats};
