//! The out-of-order core.
//!
//! A core takes the micro-operations of its thread in program order and computes for each when it dispatches, issues,
//! completes and commits. What depends on something unknown (a line that is missing, a flush under way) waits for it in
//! the reorder buffer or the store queue, while what is independent goes on; so misses overlap as far as the structures
//! allow, and nothing is simulated cycle by cycle.
//!
//! Reading order: [`micro_op`](fencepost_isa::micro_op) (what is executed), [`thread`] (where it comes from),
//! [`pipeline`] (the core and commit), [`front_end`], [`dispatch`] and [`execution`], [`memory`] (loads),
//! [`store_queue`] and [`stores`] (stores, flushes, fences), then the parts they use.

pub mod access_sites;
pub mod branch_predictor;
pub mod callers;
pub mod config;
mod departures;
pub mod dispatch;
pub mod environment;
pub mod events;
pub mod execution;
pub mod front_end;
pub mod issue;
pub mod memory;
mod page_walks;
mod passed_clocks;
pub mod persist;
mod persist_site;
pub mod pipeline;
pub mod reorder_buffer;
pub mod split;
pub mod stats;
pub mod store_log;
pub mod store_queue;
pub mod store_sets;
pub mod stores;
pub mod synchronisation;
pub mod thread;
pub mod translation;
pub mod warm;
pub mod watched;
pub mod write_combining;
pub mod write_order;

#[cfg(test)]
mod tests;

pub use environment::{CoreRequest, Environment};
pub use pipeline::{Core, Pause};
