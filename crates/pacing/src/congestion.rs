//! What devices and switches say of their load, as the load factor `L` that [`Capacity`](crate::Capacity) probes with.

/// What a CXL.mem answer says of its device's load (CXL specification, 3.3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DevLoad {
    /// Little queued. Devices of CXL 1.1 always say so.
    Light,
    /// As much as the device can take without delay.
    Optimal,
    /// Requests begin to be delayed.
    Moderate,
    /// Requests are delayed much.
    Severe,
}

/// How many answers said what, in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DevLoadCounts {
    /// Answers marked [`DevLoad::Light`].
    pub light: u64,
    /// Answers marked [`DevLoad::Optimal`].
    pub optimal: u64,
    /// Answers marked [`DevLoad::Moderate`].
    pub moderate: u64,
    /// Answers marked [`DevLoad::Severe`].
    pub severe: u64,
}

impl DevLoadCounts {
    /// One more answer.
    pub fn count(&mut self, load: DevLoad) {
        let count = match load {
            DevLoad::Light => &mut self.light,
            DevLoad::Optimal => &mut self.optimal,
            DevLoad::Moderate => &mut self.moderate,
            DevLoad::Severe => &mut self.severe,
        };
        *count = count.saturating_add(1);
    }

    /// `L`: the part of the answers that were marked Moderate or Severe; 0 without answers, as an idle device is not
    /// congested.
    pub fn congested(&self) -> f64 {
        let beyond = self.moderate as f64 + self.severe as f64;
        let all = self.light as f64 + self.optimal as f64 + beyond;
        if all > 0.0 { beyond / all } else { 0.0 }
    }
}

/// `L` of a switch's Backpressure Average Percentage: 100 samples of whether an egress port was backpressured.
pub fn backpressure(average_percent: f64) -> f64 {
    if average_percent.is_nan() { 0.0 } else { (average_percent / 100.0).clamp(0.0, 1.0) }
}
