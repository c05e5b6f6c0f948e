//! The backpressure average of an egress port (CXL 3.1, 3.3.4.3.5 and 7.6.7; recalled): of the last hundred samples the
//! part in which the port had something to send and could not.

use crate::time::{Duration, Time};

/// Samples that the average is over.
const SAMPLES: u64 = 100;

/// The average, and what it is made of. It is told of changes only: a sample between two changes finds what the first
/// of them left.
#[derive(Clone, Copy, Debug)]
pub struct BackpressureAverage {
    /// Between two samples.
    distance: Duration,
    /// The next sample.
    next: Time,
    is_held: bool,
    /// A bit for each of the last samples, the latest lowest.
    history: u128,
}

impl BackpressureAverage {
    /// Samples `distance` apart, none of them held so far. The specification has 0 to 31 ns; zero is one picosecond.
    pub fn new(distance: Duration) -> BackpressureAverage {
        let distance = distance.max(Duration::from_ps(1));
        BackpressureAverage { distance, next: Time::ZERO + distance, is_held: false, history: 0 }
    }

    /// From `now` on the port is held, or not.
    #[inline]
    pub fn set(&mut self, is_held: bool, now: Time) {
        if is_held != self.is_held {
            self.sample(now);
            self.is_held = is_held;
        }
    }

    /// The part of the last hundred samples before `now` in which the port was held, 0 to 1.
    #[inline]
    pub fn part(&mut self, now: Time) -> f64 {
        self.sample(now);
        f64::from((self.history & ((1 << SAMPLES) - 1)).count_ones()) / SAMPLES as f64
    }

    /// Takes the samples that are due before `now`.
    fn sample(&mut self, now: Time) {
        if now <= self.next {
            return;
        }
        let due = (now.since(self.next).as_ps() - 1) / self.distance.as_ps() + 1;
        let bits = due.min(SAMPLES) as u32;
        let held = if self.is_held { (1 << bits) - 1 } else { 0 };
        self.history = self.history << bits | held;
        self.next += self.distance * due;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Time {
        Time::from_ps(ns * 1000)
    }

    #[test]
    fn it_is_the_part_of_a_hundred_samples_that_were_held() {
        let mut average = BackpressureAverage::new(Duration::from_ns(10.0));
        assert_eq!(average.part(at(5)), 0.0);
        average.set(true, at(100));
        // Samples at 100, 110 … 340: the one at the instant of the change finds what the change left.
        average.set(false, at(350));
        assert_eq!(average.part(at(1000)), 0.25);
        assert_eq!(average.part(at(1100)), 0.25, "the sample at 100 is the oldest of a hundred");
        assert_eq!(average.part(at(1101)), 0.24);
        assert_eq!(average.part(at(100_000)), 0.0);
    }

    #[test]
    fn a_port_that_stays_held_is_held_in_all_samples() {
        let mut average = BackpressureAverage::new(Duration::from_ns(31.0));
        average.set(true, at(0));
        assert_eq!(average.part(at(31 * 40 + 1)), 0.4);
        assert_eq!(average.part(at(1_000_000)), 1.0);
    }

    #[test]
    fn what_lies_between_two_samples_is_not_seen() {
        let mut average = BackpressureAverage::new(Duration::from_ns(10.0));
        for burst in 0..100 {
            average.set(true, at(10 * burst + 1));
            average.set(false, at(10 * burst + 9));
        }
        assert_eq!(average.part(at(1000)), 0.0);
    }
}
