//! The `[link]` table of a machine file.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::flit::FlitFormat;
use crate::line::LINE_BYTES;
use crate::message::Credits;
use crate::time::Duration;

/// A header and four pieces of data.
const SLOTS_OF_LINE: u32 = 5;

/// A link, both directions alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct LinkConfig {
    /// Raw bandwidth of one direction, in GB/s (10^9 bytes a second): what flits, with all their overhead, may take.
    #[garde(range(min = 0.1, max = 10_000.0))]
    #[schemars(range(min = 0.1, max = 10_000.0))]
    pub bandwidth_gb_per_s: f64,
    /// How messages are packed.
    #[garde(skip)]
    pub flit_format: FlitFormat,
    /// Whether the header of a message takes a slot of its own. If not, headers share slots as the formats of CXL
    /// allow.
    #[garde(skip)]
    #[serde(default)]
    pub one_header_per_slot: bool,
    /// One way, from the transmitter's port to the receiver's buffer, both ports' logic included and serialisation
    /// excluded, in ns.
    #[garde(range(min = 0.0, max = 100_000.0))]
    #[schemars(range(min = 0.0, max = 100_000.0))]
    pub latency_ns: f64,
    /// Share of the bits that arrive wrong, independently. A flit whose CRC fails (with 256 bytes, one that the FEC
    /// cannot correct) is sent again, with everything behind it. 0 if not given.
    #[garde(range(min = 0.0, max = 0.001))]
    #[schemars(range(min = 0.0, max = 0.001))]
    #[serde(default)]
    pub bit_error_rate: f64,
    /// Flits that a transmitter keeps until they are acknowledged, to send them again; it waits when all places are
    /// taken. 255 if not given: as many as the 8-bit sequence numbers of 68-byte flits allow.
    #[garde(range(min = 8, max = 255))]
    #[schemars(range(min = 8, max = 255))]
    #[serde(default = "retry_buffer_flits_max")]
    pub retry_buffer_flits: u16,
    /// Buffer places at the receiver for each class of messages that the link carries.
    #[garde(custom(Credits::check))]
    #[serde(flatten)]
    pub credits: Credits,
}

impl LinkConfig {
    /// A link without errors, with `credits` places for each class that every link carries.
    pub fn new(flit_format: FlitFormat, bandwidth_gb_per_s: f64, latency_ns: f64, credits: u16) -> LinkConfig {
        LinkConfig {
            bandwidth_gb_per_s,
            flit_format,
            one_header_per_slot: false,
            latency_ns,
            bit_error_rate: 0.0,
            retry_buffer_flits: retry_buffer_flits_max(),
            credits: Credits::on_every_link(credits),
        }
    }

    /// Bandwidth of lines with a header each, in bytes a second: what one direction carries at most of data alone.
    pub fn data_bytes_per_second(&self) -> f64 {
        let flits_per_line = f64::from(SLOTS_OF_LINE) / f64::from(self.flit_format.slots());
        self.bandwidth_gb_per_s * 1e9 * LINE_BYTES as f64 / (flits_per_line * f64::from(self.flit_format.bytes()))
    }

    /// How long one flit occupies the link.
    pub fn flit_time(&self) -> Duration {
        Duration::from_ps((f64::from(self.flit_format.bytes()) * 1000.0 / self.bandwidth_gb_per_s).round() as u64)
    }
}

fn retry_buffer_flits_max() -> u16 {
    255
}
