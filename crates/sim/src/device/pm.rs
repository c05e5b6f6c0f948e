//! A persistent medium.

pub mod config;

pub use config::{AckAt, PmConfig};
