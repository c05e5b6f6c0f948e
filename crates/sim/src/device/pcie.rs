//! The `[pcie]` table of a machine file.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A PCIe device to compare coherent ones with: registers that cores read and write, and a DMA engine that is given
/// descriptors and doorbells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct PcieConfig {
    /// Raw bandwidth of one direction, in GB/s.
    #[garde(range(min = 0.1, max = 10_000.0))]
    #[schemars(range(min = 0.1, max = 10_000.0))]
    pub bandwidth_gb_per_s: f64,
    /// One way, from port to port, serialisation excluded, in ns.
    #[garde(range(min = 0.0, max = 100_000.0))]
    #[schemars(range(min = 0.0, max = 100_000.0))]
    pub latency_ns: f64,
    /// Between the host's last level and its port: root complex and on-chip fabric, one way, in ns.
    #[garde(range(min = 0.0, max = 100_000.0))]
    #[schemars(range(min = 0.0, max = 100_000.0))]
    pub root_ns: f64,
    /// Between the device's port and its logic, one way, in ns.
    #[garde(range(min = 0.0, max = 100_000.0))]
    #[schemars(range(min = 0.0, max = 100_000.0))]
    pub endpoint_ns: f64,
    /// What the device's logic takes to read or write a register, in ns.
    #[garde(range(min = 0.0, max = 100_000.0))]
    #[schemars(range(min = 0.0, max = 100_000.0))]
    pub register_ns: f64,
    /// What a packet takes besides its data: header, sequence number and checksum, in bytes.
    #[garde(range(min = 1, max = 256))]
    #[schemars(range(min = 1, max = 256))]
    pub header_bytes: u32,
    /// The largest payload of a packet, in bytes.
    #[garde(range(min = 64, max = 4096))]
    #[schemars(range(min = 64, max = 4096))]
    pub payload_bytes_max: u32,
    /// The largest read request, in bytes.
    #[garde(range(min = 64, max = 4096))]
    #[schemars(range(min = 64, max = 4096))]
    pub read_bytes_max: u32,
    /// Read requests under way at a time.
    #[garde(range(min = 1, max = 4096))]
    #[schemars(range(min = 1, max = 4096))]
    pub reads_max: u32,
    /// What a core's access to a register carries at most, in bytes.
    #[garde(range(min = 1, max = 64))]
    #[schemars(range(min = 1, max = 64))]
    pub register_bytes: u32,
    /// Bytes of a descriptor.
    #[garde(range(min = 8, max = 256))]
    #[schemars(range(min = 8, max = 256))]
    pub descriptor_bytes: u32,
    /// Descriptors that the engine reads ahead.
    #[garde(range(min = 1, max = 4096))]
    #[schemars(range(min = 1, max = 4096))]
    pub descriptors_ahead: u32,
    /// What the engine takes for a descriptor, in ns; one after the other.
    #[garde(range(min = 0.0, max = 100_000.0))]
    #[schemars(range(min = 0.0, max = 100_000.0))]
    pub descriptor_ns: f64,
    /// What the data path between port and logic carries, headers included, in GB/s.
    #[garde(range(min = 0.1, max = 10_000.0))]
    #[schemars(range(min = 0.1, max = 10_000.0))]
    pub data_path_gb_per_s: f64,
}
