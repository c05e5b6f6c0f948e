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
    /// The interval that `load_weight` and the fall of the estimate are meant for: a longer one counts for more.
    pub interval: Duration,
    /// The weight of a new sample of the load factor, `g`.
    pub load_weight: f64,
    /// The load factor above which the device counts as congested, `δ`.
    pub load_limit: f64,
    /// How fast the estimate rises, in parts of `capacity_max` per second at a load factor of 0: `λ δ`.
    pub rise_per_second: f64,
}

/// A value with which no capacity can be probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbingError {
    /// `capacity_max` is zero.
    CapacityMax,
    /// `capacity_min_share` is not above 0 and at most 1.
    CapacityMinShare,
    /// `interval` is zero.
    Interval,
    /// `load_weight` is not above 0 and at most 1.
    LoadWeight,
    /// `load_limit` is not between 0 and 1.
    LoadLimit,
    /// `rise_per_second` is not above 0, or not finite.
    RisePerSecond,
}

impl std::fmt::Display for ProbingError {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(match self {
            ProbingError::CapacityMax => "capacity_max: must be above 0",
            ProbingError::CapacityMinShare => "capacity_min_share: must be above 0 and at most 1",
            ProbingError::Interval => "interval: must be above 0",
            ProbingError::LoadWeight => "load_weight: must be above 0 and at most 1",
            ProbingError::LoadLimit => "load_limit: must be above 0 and below 1",
            ProbingError::RisePerSecond => "rise_per_second: must be above 0 and finite",
        })
    }
}

impl std::error::Error for ProbingError {}

impl Probing {
    /// The values that studies use here: intervals of 1 ms, `g` = 1/8, `δ` = 0.75, and a rise from nothing to all
    /// within 20 ms.
    ///
    /// `δ` sets how much of the device is used. Threads that are paused independently do not spread their load evenly:
    /// when 32 of them use nine tenths of a device, seven tenths of its answers say that it is loaded. A `δ` of 0.1
    /// leaves a third of the device idle and more, one of 0.75 the tenth that is idle in the study too.
    pub fn new(capacity_max: Bandwidth) -> Probing {
        Probing {
            capacity_max,
            capacity_min_share: 1.0 / 64.0,
            interval: Duration::from_millis(1),
            load_weight: 1.0 / 8.0,
            load_limit: 0.75,
            rise_per_second: 50.0,
        }
    }

    fn check(&self) -> Result<(), ProbingError> {
        let is_part = |value: f64| value > 0.0 && value <= 1.0;
        let checks = [
            (!self.capacity_max.is_zero(), ProbingError::CapacityMax),
            (is_part(self.capacity_min_share), ProbingError::CapacityMinShare),
            (!self.interval.is_zero(), ProbingError::Interval),
            (is_part(self.load_weight), ProbingError::LoadWeight),
            (is_part(self.load_limit) && self.load_limit < 1.0, ProbingError::LoadLimit),
            (self.rise_per_second > 0.0 && self.rise_per_second.is_finite(), ProbingError::RisePerSecond),
        ];
        checks.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, error)| Err(error))
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
    ///
    /// # Errors
    /// The first value of `probing` with which no capacity can be probed.
    pub fn new(probing: Probing) -> Result<Capacity, ProbingError> {
        probing.check()?;
        Ok(Capacity { probing, estimate: probing.capacity_max, load: 0.0 })
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

    /// The time `elapsed` has passed, in which `used` went through the device and the part `congested` (0 to 1) of its
    /// answers said that it was loaded beyond the optimum.
    ///
    /// The average, the rise and the fall all follow `elapsed`. Only a fall never takes more than half, however late
    /// the owner comes: its channels could not follow meanwhile.
    pub fn interval(&mut self, used: Bandwidth, congested: f64, elapsed: Duration) {
        let Probing { capacity_max, interval, load_weight, load_limit, rise_per_second, .. } = self.probing;
        let congested = if congested.is_nan() { 0.0 } else { congested.clamp(0.0, 1.0) };
        let intervals = elapsed.div_duration_f64(interval);
        let keep = (1.0 - load_weight).powf(intervals);
        self.load = (1.0 - keep) * congested + keep * self.load;
        if self.load <= load_limit {
            let part = (load_limit - self.load) / load_limit;
            self.estimate = self.estimate + capacity_max.times(rise_per_second * part * elapsed.as_secs_f64());
        } else if used < self.estimate {
            // Above the estimate, usage falls anyway once the shares follow.
            let excess = (self.load - load_limit) / (1.0 - load_limit);
            self.estimate = self.estimate.times((1.0 - excess / 2.0).powf(intervals).max(0.5));
        }
        self.limit();
    }

    fn limit(&mut self) {
        let most = self.probing.capacity_max;
        self.estimate = self.estimate.min(most).max(most.times(self.probing.capacity_min_share));
    }
}
