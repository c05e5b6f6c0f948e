//! Exponential averages of samples that come at any distance in time.

use std::time::Duration;

/// An exponential average: a sample that covers the time `t` counts `1 − e^(−t/K)`, where `K` is the time constant
/// (CSFQ 1998, equation 1). The first sample is the average.
#[derive(Clone, Copy, Debug)]
pub struct Average {
    constant: Duration,
    value: Option<f64>,
}

impl Average {
    /// With the time constant `constant`; no average before the first sample.
    pub fn new(constant: Duration) -> Average {
        Average { constant, value: None }
    }

    /// Takes in a sample that covers `elapsed`.
    pub fn add(&mut self, sample: f64, elapsed: Duration) {
        let Some(old) = self.value else {
            self.value = Some(sample);
            return;
        };
        let keep =
            if self.constant.is_zero() { 0.0 } else { (-elapsed.as_secs_f64() / self.constant.as_secs_f64()).exp() };
        self.value = Some((1.0 - keep) * sample + keep * old);
    }

    /// The average so far.
    pub fn value(&self) -> Option<f64> {
        self.value
    }
}
