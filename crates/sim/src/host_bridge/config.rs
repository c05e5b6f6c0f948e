//! The `[host_bridge]` table of a machine file, and what the bridge has to know of each of its ports.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use fencepost_kernel::link::LinkConfig;

/// The part of a host between its last-level cache and its memory ports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct HostBridgeConfig {
    /// One way through the on-chip fabric, from the last-level cache to the port that a request leaves by, and again as
    /// much for the answer on its way back, in ns.
    #[garde(range(min = 0.0, max = 10_000.0))]
    #[schemars(range(min = 0.0, max = 10_000.0))]
    pub latency_ns: f64,
}

/// One memory port of a host bridge: a CXL root port, or the local connection to a DRAM or PM controller.
#[derive(Clone, Debug, PartialEq)]
pub struct PortDescription {
    /// The link behind the port; both directions are alike.
    pub link: LinkConfig,
    /// Whether requests for a line reach the medium in the order in which they left: in a host's own memory controller,
    /// not over CXL.mem.
    pub keeps_order: bool,
}
