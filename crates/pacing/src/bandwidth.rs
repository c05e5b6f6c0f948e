//! Bytes per second: finite and not negative.

use std::iter::Sum;
use std::ops::{Add, Sub};
use std::time::Duration;

/// A bandwidth in bytes per second, finite and not negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Bandwidth(f64);

impl Bandwidth {
    /// Nothing.
    pub const ZERO: Bandwidth = Bandwidth(0.0);

    /// `bytes_per_second`, or the nearest bandwidth that there is: negative values become zero, infinite ones the
    /// largest finite one, and what is no number becomes zero. What another process publishes may be any bit pattern.
    pub fn new(bytes_per_second: f64) -> Bandwidth {
        // Adding zero makes a negative zero, by which a quotient would be negative, a positive one.
        Bandwidth(if bytes_per_second.is_nan() { 0.0 } else { bytes_per_second.clamp(0.0, f64::MAX) + 0.0 })
    }

    /// So many bytes in so much time; zero if no time has passed.
    pub fn of(bytes: u64, time: Duration) -> Bandwidth {
        if time.is_zero() { Bandwidth::ZERO } else { Bandwidth::new(bytes as f64 / time.as_secs_f64()) }
    }

    /// Bytes per second.
    pub fn bytes_per_second(self) -> f64 {
        self.0
    }

    /// Bytes in `time`.
    pub fn bytes_in(self, time: Duration) -> f64 {
        self.0 * time.as_secs_f64()
    }

    /// Whether it is nothing.
    pub fn is_zero(self) -> bool {
        self.0 == 0.0
    }

    /// `factor` times as much.
    pub fn times(self, factor: f64) -> Bandwidth {
        Bandwidth::new(self.0 * factor)
    }

    /// How many times `other` it is; nothing where `other` is zero.
    pub fn over(self, other: Bandwidth) -> Option<f64> {
        (!other.is_zero()).then(|| self.0 / other.0)
    }

    /// The smaller one.
    pub fn min(self, other: Bandwidth) -> Bandwidth {
        Bandwidth(self.0.min(other.0))
    }

    /// The larger one.
    pub fn max(self, other: Bandwidth) -> Bandwidth {
        Bandwidth(self.0.max(other.0))
    }
}

impl Add for Bandwidth {
    type Output = Bandwidth;

    fn add(self, other: Bandwidth) -> Bandwidth {
        Bandwidth::new(self.0 + other.0)
    }
}

/// Zero where `other` is more.
impl Sub for Bandwidth {
    type Output = Bandwidth;

    fn sub(self, other: Bandwidth) -> Bandwidth {
        Bandwidth::new(self.0 - other.0)
    }
}

impl Sum for Bandwidth {
    fn sum<I: Iterator<Item = Bandwidth>>(all: I) -> Bandwidth {
        all.fold(Bandwidth::ZERO, Add::add)
    }
}
