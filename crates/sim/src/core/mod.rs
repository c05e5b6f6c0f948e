//! The out-of-order core.

pub mod config;
