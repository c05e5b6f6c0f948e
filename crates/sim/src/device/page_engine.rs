//! The `[page_engine]` and `[swap_device]` tables of a machine file: what takes pages that memory has no room for.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What works on whole pages in an accelerator: it compresses, decompresses, hashes and compares them, one after the
/// other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct PageEngineConfig {
    /// Bytes of pages that it compresses, in GB/s.
    #[garde(range(min = 0.001, max = 10_000.0))]
    #[schemars(range(min = 0.001, max = 10_000.0))]
    pub compress_gb_per_s: f64,
    /// Bytes of pages that come of decompression, in GB/s.
    #[garde(range(min = 0.001, max = 10_000.0))]
    #[schemars(range(min = 0.001, max = 10_000.0))]
    pub decompress_gb_per_s: f64,
    /// Bytes that it hashes or compares, in GB/s.
    #[garde(range(min = 0.001, max = 10_000.0))]
    #[schemars(range(min = 0.001, max = 10_000.0))]
    pub look_gb_per_s: f64,
}

/// The device that pages are swapped to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct SwapDeviceConfig {
    /// From the submission of a page's read to its completion, in ns.
    #[garde(range(min = 0.0, max = 1e9))]
    #[schemars(range(min = 0.0, max = 1e9))]
    pub read_ns: f64,
}
