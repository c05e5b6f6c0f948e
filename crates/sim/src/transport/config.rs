//! The `[transport]` table of a machine file, and which transport runs on it.

use std::fmt;
use std::str::FromStr;

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::device::LoadThresholds;
use crate::nearest::there_is_no;
use fencepost_kernel::time::Duration;

/// Who sees to it that streams share links and devices fairly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// Nobody.
    #[default]
    None,
    /// The hosts delay each request until its channel has credit for it, at the rate that the published law grants.
    Credits,
    /// The hosts pause threads, by the published law.
    Memchannel,
    /// The hosts pause threads, by exact weighted water-filling on the same inputs.
    Waterfill,
    /// The switches queue by stream, and serve the stream that has got the least.
    SwitchWfq,
}

impl Transport {
    /// All of them.
    pub const ALL: [Transport; 5] =
        [Transport::None, Transport::Credits, Transport::Memchannel, Transport::Waterfill, Transport::SwitchWfq];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Transport::None => "none",
            Transport::Credits => "credits",
            Transport::Memchannel => "memchannel",
            Transport::Waterfill => "waterfill",
            Transport::SwitchWfq => "switch_wfq",
        }
    }

    /// Whether it can run where programs are replayed: a request of a core cannot be delayed without its core.
    pub fn paces_programs(self) -> bool {
        self != Transport::Credits
    }

    /// Whether hosts take part in it.
    pub fn has_agent(self) -> bool {
        !matches!(self, Transport::None | Transport::SwitchWfq)
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Transport {
    type Err = String;

    fn from_str(word: &str) -> Result<Transport, String> {
        let found = Transport::ALL.into_iter().find(|transport| transport.name() == word);
        found.ok_or_else(|| there_is_no("transport", word, &Transport::ALL.map(Transport::name)))
    }
}

/// Which signal of congestion lowers the estimate of what a resource carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CongestionSignal {
    /// None: it carries what its configuration says.
    None,
    /// The DevLoad in the answers of devices.
    DevLoad,
    /// The backpressure average of the switches' egress ports.
    Backpressure,
    /// Both, each for its kind of resource.
    #[default]
    Both,
}

/// Which bytes a channel sees itself move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Counting {
    /// Lines read: what the counters of processors have. A stream that only writes is not seen.
    #[default]
    Reads,
    /// Lines read, and lines written by non-temporal stores and write-backs.
    ReadsAndWrites,
}

/// How the transport of a pool is set, where one runs. The study publishes only the window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct TransportConfig {
    /// The scheduling window of a thread, in us.
    #[garde(range(min = 1.0, max = 100_000.0))]
    #[schemars(range(min = 1.0, max = 100_000.0))]
    pub window_us: f64,
    /// The interval of owners and the time constant of averages, in us; a window where that is longer.
    #[garde(range(min = 1.0, max = 1_000_000.0))]
    #[schemars(range(min = 1.0, max = 1_000_000.0))]
    pub interval_us: f64,
    /// The part of what a resource could carry that is given away.
    #[garde(range(min = 0.1, max = 1.0))]
    #[schemars(range(min = 0.1, max = 1.0))]
    pub utilisation: f64,
    /// The load factor (the part of answers, or of samples, that report congestion) above which a resource counts as
    /// congested.
    #[garde(range(min = 0.01, max = 0.99))]
    #[schemars(range(min = 0.01, max = 0.99))]
    pub load_limit: f64,
    /// What the newest interval counts in the average of the load factor; 1: all.
    #[garde(range(min = 0.01, max = 1.0))]
    #[schemars(range(min = 0.01, max = 1.0))]
    pub load_weight: f64,
    /// Which signal of congestion lowers the estimate of what a resource carries.
    #[garde(skip)]
    pub congestion: CongestionSignal,
    /// Which bytes a channel sees itself move.
    #[garde(skip)]
    pub counting: Counting,
    /// How devices and switches report their load.
    #[garde(dive)]
    pub load: LoadThresholds,
}

impl Default for TransportConfig {
    /// The published window; intervals of ten windows; the utilisation that the study measured, 96.1 %. Bursts of
    /// threads that are paused independently fill queues for a while even where all of them fit, so three quarters of
    /// the answers may say so. Congestion that is over is forgotten within three intervals: otherwise the estimate
    /// would fall on.
    fn default() -> TransportConfig {
        TransportConfig {
            window_us: 100.0,
            interval_us: 1000.0,
            utilisation: 0.961,
            load_limit: 0.75,
            load_weight: 0.5,
            congestion: CongestionSignal::default(),
            counting: Counting::default(),
            load: LoadThresholds::default(),
        }
    }
}

impl TransportConfig {
    /// The scheduling window.
    pub fn window(&self) -> Duration {
        Duration::from_ns(self.window_us * 1000.0)
    }

    /// The interval of owners, at least a window.
    pub fn interval(&self) -> Duration {
        Duration::from_ns(self.interval_us.max(self.window_us) * 1000.0)
    }
}
