//! The `[type2]` table of a machine file: the coherence engine of accelerators, and the load generator on it.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use fencepost_kernel::line::LINE_BYTES;
use fencepost_kernel::time::Duration;

/// The logic of accelerators that speak CXL.cache and CXL.mem (Type-2 devices). All of its stages take a request in
/// every cycle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct Type2Config {
    /// Its clock, in GHz.
    #[garde(range(min = 0.01, max = 10.0))]
    #[schemars(range(min = 0.01, max = 10.0))]
    pub clock_ghz: f64,
    /// Cycles from one request of the load generator to the next one.
    #[garde(range(min = 1, max = 1000))]
    #[schemars(range(min = 1, max = 1000))]
    pub issue_cycles: u32,
    /// Cycles from the load generator to the coherence engine, and again as many for the answer.
    #[garde(range(max = 10_000))]
    #[schemars(range(max = 10_000))]
    pub generator_cycles: u32,
    /// Cycles to look a line up in the tags of its caches.
    #[garde(range(max = 10_000))]
    #[schemars(range(max = 10_000))]
    pub lookup_cycles: u32,
    /// Cycles to read a line from a cache, once it is found.
    #[garde(range(max = 10_000))]
    #[schemars(range(max = 10_000))]
    pub read_cycles: u32,
    /// Cycles to write a line into a cache.
    #[garde(range(max = 10_000))]
    #[schemars(range(max = 10_000))]
    pub fill_cycles: u32,
    /// Cycles between the coherence engine and the port of its link, each way.
    #[garde(range(max = 10_000))]
    #[schemars(range(max = 10_000))]
    pub port_cycles: u32,
    /// Requests of CXL.cache under way at a time.
    #[garde(range(min = 1, max = 4096))]
    #[schemars(range(min = 1, max = 4096))]
    pub transactions: u16,
    /// The cache of host memory.
    #[garde(dive)]
    pub host_memory_cache: DeviceCacheConfig,
    /// The cache of the device's own memory.
    #[garde(dive)]
    pub device_memory_cache: DeviceCacheConfig,
    /// What keeps the content of the device's memory.
    #[serde(default, skip_serializing_if = "AcceleratorMedium::is_dram")]
    #[garde(skip)]
    pub medium: AcceleratorMedium,
    /// What the device knows of its host's copies of its memory, where it snoops them (`fabric.bias`): the size is that
    /// of the memory that the host may have in its caches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub snoop_filter: Option<DeviceCacheConfig>,
}

/// What an accelerator keeps the content of its memory in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AcceleratorMedium {
    /// DRAM, whose content no power cut survives.
    #[default]
    Dram,
    /// DRAM that a battery keeps, queues included: persistent memory of its host. What lies in the device's caches is
    /// lost.
    BatteryBackedDram,
}

impl AcceleratorMedium {
    fn is_dram(&self) -> bool {
        *self == AcceleratorMedium::Dram
    }
}

/// A cache of an accelerator, or its snoop filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct DeviceCacheConfig {
    /// Its size, in KiB; as many sets as lines in a way.
    #[garde(range(min = 1, max = 1 << 20))]
    #[schemars(range(min = 1, max = 1 << 20))]
    pub size_kib: u32,
    /// Lines of a set; 1 makes it direct-mapped.
    #[garde(range(min = 1, max = 64))]
    #[schemars(range(min = 1, max = 64))]
    pub ways: u16,
}

impl DeviceCacheConfig {
    /// Sets of so many ways; at least one.
    pub fn sets(&self) -> u64 {
        (u64::from(self.size_kib) * 1024 / LINE_BYTES / u64::from(self.ways)).max(1)
    }
}

impl Type2Config {
    /// So many cycles of its clock.
    pub fn cycles(&self, cycles: u32) -> Duration {
        Duration::from_ghz(self.clock_ghz) * u64::from(cycles)
    }
}
