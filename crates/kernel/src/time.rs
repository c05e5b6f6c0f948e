//! Simulated time in integer picoseconds, so that equal inputs give equal results on every machine.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub};

/// An instant of simulated time, in picoseconds since the start of the simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A length of simulated time, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

impl Time {
    /// The start of the simulation.
    pub const ZERO: Time = Time(0);
    /// Later than any event; stands for "not known yet".
    pub const NEVER: Time = Time(u64::MAX);

    /// The instant `ps` picoseconds after the start.
    #[inline]
    pub const fn from_ps(ps: u64) -> Time {
        Time(ps)
    }

    /// Picoseconds since the start.
    #[inline]
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Nanoseconds since the start, for people.
    #[inline]
    pub fn as_ns(self) -> f64 {
        self.0 as f64 / 1000.0
    }

    /// How long ago `earlier` was; zero if it is still to come.
    #[inline]
    pub const fn since(self, earlier: Time) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Duration = Duration(0);

    /// A duration of `ps` picoseconds.
    #[inline]
    pub const fn from_ps(ps: u64) -> Duration {
        Duration(ps)
    }

    /// A duration given in nanoseconds by a person, rounded to the nearest picosecond.
    pub fn from_ns(ns: f64) -> Duration {
        Duration((ns * 1000.0).round() as u64)
    }

    /// The period of a clock of `ghz` gigahertz, rounded to the nearest picosecond.
    pub fn from_ghz(ghz: f64) -> Duration {
        Duration((1000.0 / ghz).round() as u64)
    }

    /// In picoseconds.
    #[inline]
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// In nanoseconds, for people.
    #[inline]
    pub fn as_ns(self) -> f64 {
        self.0 as f64 / 1000.0
    }
}

impl Add<Duration> for Time {
    type Output = Time;
    #[inline]
    fn add(self, later: Duration) -> Time {
        Time(self.0 + later.0)
    }
}

impl AddAssign<Duration> for Time {
    #[inline]
    fn add_assign(&mut self, later: Duration) {
        self.0 += later.0;
    }
}

impl Sub<Duration> for Time {
    type Output = Time;
    #[inline]
    fn sub(self, earlier: Duration) -> Time {
        Time(self.0 - earlier.0)
    }
}

impl Add for Duration {
    type Output = Duration;
    #[inline]
    fn add(self, other: Duration) -> Duration {
        Duration(self.0 + other.0)
    }
}

impl AddAssign for Duration {
    #[inline]
    fn add_assign(&mut self, other: Duration) {
        self.0 += other.0;
    }
}

impl Mul<u64> for Duration {
    type Output = Duration;
    #[inline]
    fn mul(self, times: u64) -> Duration {
        Duration(self.0 * times)
    }
}

impl Div<u64> for Duration {
    type Output = Duration;
    #[inline]
    fn div(self, parts: u64) -> Duration {
        Duration(self.0 / parts)
    }
}

impl Sum for Duration {
    #[inline]
    fn sum<I: Iterator<Item = Duration>>(parts: I) -> Duration {
        parts.fold(Duration::ZERO, Add::add)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:.3} ns", self.as_ns())
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:.3} ns", self.as_ns())
    }
}
