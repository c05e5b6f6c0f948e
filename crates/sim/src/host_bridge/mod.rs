//! The host bridge: the way from a host's last-level cache to its memory ports.

pub mod address_map;
pub mod config;

pub use address_map::{PM_BASE, is_pm};
pub use config::{HostBridgeConfig, PortDescription};
