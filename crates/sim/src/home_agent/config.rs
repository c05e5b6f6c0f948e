//! The `[sockets]` and `[socket_link]` tables of a machine file.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use fencepost_kernel::link::{FlitFormat, LinkConfig};
use fencepost_kernel::message::{Credits, coherence};

/// The sockets of each host. They divide its cores; each has caches like those of `[cache]` and DRAM like that of
/// `[dram]`. Links and local connections of the fabric start at the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct SocketsConfig {
    /// How many each host has.
    #[garde(range(min = 1, max = 8))]
    #[schemars(range(min = 1, max = 8))]
    pub count: u16,
    /// Whether home agents store beside each line of a socket's DRAM, in memory, that another socket may have it. The
    /// first copy that another socket gets of a line, and the first after each write-back of it, then costs an
    /// additional write to memory.
    #[garde(skip)]
    #[serde(default)]
    pub memory_directory: bool,
}

/// The link between any two sockets of a host, both directions alike. Its messages are packed as those of CXL are into
/// flits of 68 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct SocketLinkConfig {
    /// Raw bandwidth of one direction, in GB/s (10^9 bytes a second): what flits, with all their overhead, may take.
    #[garde(range(min = 0.1, max = 10_000.0))]
    #[schemars(range(min = 0.1, max = 10_000.0))]
    pub bandwidth_gb_per_s: f64,
    /// One way, serialisation excluded, in ns.
    #[garde(range(min = 0.0, max = 100_000.0))]
    #[schemars(range(min = 0.0, max = 100_000.0))]
    pub latency_ns: f64,
    /// Buffer places at the receiver for each class of messages: requests, lines that are written back, snoops, answers
    /// without data and answers with data.
    #[garde(range(min = 1, max = 4096))]
    #[schemars(range(min = 1, max = 4096))]
    pub credits: u16,
    /// Additional time, in ns, before a home agent begins another socket's read of a line behind a link or local
    /// connection of the fabric: the way from the socket link to the ports is longer than that to DRAM. 0 if not given.
    #[garde(range(min = 0.0, max = 100_000.0))]
    #[schemars(range(min = 0.0, max = 100_000.0))]
    #[serde(default)]
    pub to_ports_ns: f64,
}

impl SocketLinkConfig {
    /// As a link of the kernel.
    pub fn link(&self) -> LinkConfig {
        let credits =
            coherence::CLASSES.into_iter().fold(Credits::NONE, |credits, class| credits.with(class, self.credits));
        LinkConfig { credits, ..LinkConfig::new(FlitFormat::Bytes68, self.bandwidth_gb_per_s, self.latency_ns, 0) }
    }
}
