//! A channel of DRAM.

pub mod config;

pub use config::{AddressMapping, DramConfig, PagePolicy};
