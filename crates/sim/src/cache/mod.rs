//! The caches of a host: set-associative arrays, miss-status holding registers, and coherence among cores.
//!
//! A core looks into its own first level itself; everything behind it is the [`hierarchy`], which sends CXL.mem
//! messages to the host bridge for what it does not hold.

pub mod array;
mod between;
pub mod config;
pub mod hierarchy;
pub mod lru;
pub mod mshr;
pub mod observation_log;
pub mod persist_log;
pub mod persist_sites;
pub mod prefetcher;
pub mod sockets;
pub mod stats;

#[cfg(test)]
pub(crate) mod tests;
