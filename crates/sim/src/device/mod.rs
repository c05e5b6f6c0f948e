//! Memory devices: a controller that speaks CXL.mem at its ports, and the medium behind it.
//!
//! A device answers each request once: a read with the youngest version of its line, a write with a completion when the
//! medium's rules say that it is complete. It knows nothing of hosts and switches; it receives what the links at its
//! ports deliver.

pub mod block_pm;
pub mod controller;
pub mod dram;
mod line_versions;
mod load;
pub mod medium;
mod occupancy;
pub mod page_engine;
pub mod pcie;
pub mod pm;
mod port;
pub mod probe;
pub mod type2;
mod write_drain;

pub use block_pm::{BlockConfig, BlockPm};
pub use controller::{DEVICE_PORT, Device, DeviceStats, MEMORY_PORT};
pub use dram::{AddressMapping, Dram, DramConfig, PagePolicy};
pub use load::LoadThresholds;
pub use medium::{Completion, Medium, MediumConfig};
pub use page_engine::{PageEngineConfig, SwapDeviceConfig};
pub use pcie::PcieConfig;
pub use pm::{AckAt, Pm, PmConfig, PmMedium};

#[cfg(test)]
mod tests;
