//! CXL switches: volatile ones, and persistent ones with a persist buffer.

pub mod config;
pub mod scheme;

pub use config::{PersistBufferConfig, SwitchConfig};
pub use scheme::Scheme;
