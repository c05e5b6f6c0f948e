//! What a device reports of its load in each answer: the larger one of its internal load and its egress port's state
//! (CXL 3.1, 3.3.4.3; recalled). Nothing here reduces its throughput for a time, so that third part is left out.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use fencepost_kernel::link::BackpressureAverage;
use fencepost_kernel::message::DevLoad;
use fencepost_kernel::time::{Duration, Time};

/// From when on a load counts as more than light. The specification leaves the internal ones to the device: overload is
/// moderate where it limits the throughput of requests, as a queue does that is full, or nearly. For egress ports it
/// has 10 and 25 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct LoadThresholds {
    /// The part of a queue of the medium from which on the load is optimal.
    #[garde(range(min = 0.0, max = 1.0))]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub optimal: f64,
    /// ... moderate.
    #[garde(range(min = 0.0, max = 1.0))]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub moderate: f64,
    /// ... severe.
    #[garde(range(min = 0.0, max = 1.0))]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub severe: f64,
    /// The backpressure average of an egress port from which on the load is moderate.
    #[garde(range(min = 0.0, max = 1.0))]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub egress_moderate: f64,
    /// ... severe.
    #[garde(range(min = 0.0, max = 1.0))]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub egress_severe: f64,
    /// Between two samples of an egress port, in ns: 0 to 31.
    #[garde(range(min = 0.0, max = 31.0))]
    #[schemars(range(min = 0.0, max = 31.0))]
    pub egress_sample_ns: f64,
}

impl Default for LoadThresholds {
    fn default() -> LoadThresholds {
        LoadThresholds {
            optimal: 0.5,
            moderate: 0.9,
            severe: 1.0,
            egress_moderate: 0.10,
            egress_severe: 0.25,
            egress_sample_ns: 31.0,
        }
    }
}

impl LoadThresholds {
    /// The backpressure average of a port.
    pub fn average(&self) -> BackpressureAverage {
        BackpressureAverage::new(Duration::from_ns(self.egress_sample_ns))
    }

    /// The load of a device whose fullest queue is filled by that part.
    pub fn internal(&self, filled: f64) -> DevLoad {
        match filled {
            _ if filled >= self.severe => DevLoad::Severe,
            _ if filled >= self.moderate => DevLoad::Moderate,
            _ if filled >= self.optimal => DevLoad::Optimal,
            _ => DevLoad::Light,
        }
    }

    /// The load that an egress port makes whose backpressure average is `part`.
    pub fn egress(&self, part: f64) -> DevLoad {
        match part {
            _ if part >= self.egress_severe => DevLoad::Severe,
            _ if part >= self.egress_moderate => DevLoad::Moderate,
            _ => DevLoad::Light,
        }
    }
}

/// The reports of one device.
#[derive(Clone, Debug)]
pub(super) struct LoadReport {
    thresholds: LoadThresholds,
    /// By port.
    egress: Vec<BackpressureAverage>,
}

impl LoadReport {
    /// Of a device with so many ports.
    pub fn new(thresholds: LoadThresholds, ports: usize) -> LoadReport {
        LoadReport { thresholds, egress: vec![thresholds.average(); ports] }
    }

    /// From `now` on answers wait for credits at `port`, or not.
    pub fn note_egress(&mut self, port: usize, is_held: bool, now: Time) {
        self.egress[port].set(is_held, now);
    }

    /// What an answer by `port` says, with the medium's fullest queue filled by that part.
    pub fn load(&mut self, port: usize, filled: f64, now: Time) -> DevLoad {
        let internal = self.thresholds.internal(filled);
        internal.max(self.thresholds.egress(self.egress[port].part(now)))
    }
}
