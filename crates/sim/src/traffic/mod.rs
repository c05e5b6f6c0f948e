//! Synthetic traffic: the second source of requests, beside a record's replay.
//!
//! A [`Generator`] stands where a host's cores and caches would, at port 0 of its host bridge, and sends what its
//! streams say: which memory, in which order, how large, how many reads for each write, how many under way, how long
//! apart. An [`Experiment`](crate::traffic_experiment::Experiment) runs them on a machine for some simulated time after
//! a warm-up, and gives what every stream got: bandwidth, latency and where that latency went. The same machine,
//! streams and seed give the same figures, bit for bit.
//!
//! Streams that share their lines, of one host or of all, are the clients of a key-value store ([`Keys`]): a read is a
//! get, a write is a put that is over when its persist is, and a get that sees less than was acknowledged before it is
//! counted as stale.

pub mod config;
mod entries;
pub mod footprint;
mod generator;
mod keys;
pub mod pacing;
mod random;
mod stats;
mod stream;
mod zipf;

#[cfg(test)]
mod tests;

pub use config::{Pattern, SharedBy, StreamConfig};
pub use footprint::Footprint;
pub use generator::Generator;
pub use keys::{Keys, Member, StaleRead};
pub use random::Random;
pub use stats::StreamStats;
