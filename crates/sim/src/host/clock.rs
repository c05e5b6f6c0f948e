//! The clock that a host's cores and caches share.

use fencepost_kernel::Divisor;
use fencepost_kernel::time::{Duration, Time};

/// Converts between simulated time and cycles.
#[derive(Clone, Debug)]
pub(super) struct CycleClock {
    pub period: Duration,
    /// The period as a divisor.
    divisor: Divisor,
}

impl CycleClock {
    pub fn new(clock_ghz: f64) -> CycleClock {
        let period = Duration::from_ghz(clock_ghz);
        CycleClock { period, divisor: Divisor::new(period.as_ps()) }
    }

    /// How many cycles `ns` takes, rounded up.
    pub fn cycles(&self, ns: f64) -> u64 {
        Duration::from_ns(ns).as_ps().div_ceil(self.period.as_ps())
    }

    /// The first cycle that does not begin before `now`.
    #[inline]
    pub fn cycle(&self, now: Time) -> u64 {
        self.divisor.divide_up(now.as_ps())
    }

    /// When `cycle` begins.
    #[inline]
    pub fn time(&self, cycle: u64) -> Time {
        Time::ZERO + self.period * cycle
    }
}
