//! What a device can carry, probed from congestion signals.

use std::time::Duration;

use crate::Bandwidth;

/// How the capacity is probed. The study does not publish its values.
#[derive(Clone, Copy, Debug)]
pub struct Probing {
    /// The most that the device can carry.
    pub capacity_max: Bandwidth,
    /// The part of `capacity_max` below which the estimate never falls, so that it can rise again.
    pub capacity_min_share: f64,
    /// The weight of a new sample of the load factor, `g`.
    pub load_weight: f64,
    /// The load factor above which the device counts as congested, `δ`.
    pub load_limit: f64,
    /// How fast the estimate rises, in parts of `capacity_max` per second at a load factor of 0: `λ δ`.
    pub rise_per_second: f64,
}

impl Probing {
    /// The values that studies use here: `g` = 1/8, `δ` = 0.1, and a rise from nothing to all within 20 ms.
    pub fn new(capacity_max: Bandwidth) -> Probing {
        let (load_weight, load_limit) = (1.0 / 8.0, 0.1);
        Probing { capacity_max, capacity_min_share: 1.0 / 64.0, load_weight, load_limit, rise_per_second: 50.0 }
    }
}

/// The estimate of a device's capacity.
#[derive(Clone, Copy, Debug)]
pub struct Capacity {
    probing: Probing,
    estimate: Bandwidth,
    load: f64,
}

impl Capacity {
    /// Begins with the most that the device can carry.
    pub fn new(probing: Probing) -> Capacity {
        Capacity { probing, estimate: probing.capacity_max, load: 0.0 }
    }

    /// Begins anew with `estimate`, within what the device can carry.
    pub fn assume(&mut self, estimate: Bandwidth) {
        self.estimate = estimate;
        self.limit();
    }

    /// The most that the device can carry.
    pub fn max(&self) -> Bandwidth {
        self.probing.capacity_max
    }

    /// The estimate.
    pub fn estimate(&self) -> Bandwidth {
        self.estimate
    }

    /// The averaged load factor, from 0 to 1.
    pub fn load(&self) -> f64 {
        self.load
    }

    /// An interval has passed in which `used` went through the device, and the part `congested` (0 to 1) of its answers
    /// said that it was loaded beyond the optimum.
    pub fn interval(&mut self, used: Bandwidth, congested: f64, elapsed: Duration) {
        let Probing { capacity_max, load_weight, load_limit, rise_per_second, .. } = self.probing;
        let congested = if congested.is_nan() { 0.0 } else { congested.clamp(0.0, 1.0) };
        self.load += load_weight * (congested - self.load);
        if self.load <= load_limit {
            let part = (load_limit - self.load) / load_limit;
            self.estimate = self.estimate + capacity_max.times(rise_per_second * part * elapsed.as_secs_f64());
        } else if used < self.estimate {
            // Above the estimate, usage falls anyway once the shares follow.
            let excess = (self.load - load_limit) / (1.0 - load_limit);
            self.estimate = self.estimate.times(1.0 - excess / 2.0);
        }
        self.limit();
    }

    fn limit(&mut self) {
        let most = self.probing.capacity_max;
        self.estimate = self.estimate.min(most).max(most.times(self.probing.capacity_min_share));
    }
}
