//! The data bus that all banks of a persistent medium share.

use std::collections::VecDeque;

use fencepost_kernel::time::{Duration, Time};

/// Reservations of the bus, each as long as one line takes. A read reserves it ahead for the time its data will be
/// there, so a later request may find a gap before that.
#[derive(Clone, Debug)]
pub struct Bus {
    burst: Duration,
    /// Starts of what is reserved and not yet over, ascending, at least a burst apart.
    reserved: VecDeque<Time>,
}

impl Bus {
    /// A bus that a line occupies for `burst`; zero for a bus that is no limit.
    pub fn new(burst: Duration) -> Bus {
        Bus { burst, reserved: VecDeque::new() }
    }

    /// Reserves the bus for one line from the first time that is free for long enough, not before `from`; gives the
    /// end.
    pub fn reserve(&mut self, from: Time, now: Time) -> Time {
        if self.burst == Duration::ZERO {
            return from;
        }
        while self.reserved.front().is_some_and(|start| *start + self.burst <= now) {
            self.reserved.pop_front();
        }
        let mut start = from;
        let mut index = 0;
        while let Some(&taken) = self.reserved.get(index) {
            if start + self.burst <= taken {
                break;
            }
            start = start.max(taken + self.burst);
            index += 1;
        }
        self.reserved.insert(index, start);
        start + self.burst
    }

    /// Power is gone.
    pub fn power_fail(&mut self) {
        self.reserved.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reserve(bus: &mut Bus, from: u64) -> u64 {
        bus.reserve(Time::from_ps(from), Time::ZERO).as_ps()
    }

    #[test]
    fn lines_follow_each_other_and_fill_gaps_that_are_long_enough() {
        let mut bus = Bus::new(Duration::from_ps(10));
        assert_eq!(reserve(&mut bus, 100), 110);
        assert_eq!(reserve(&mut bus, 105), 120);
        assert_eq!(reserve(&mut bus, 85), 95);
        assert_eq!(reserve(&mut bus, 86), 130, "5 ps between 95 and 100 are too few");
        assert_eq!(reserve(&mut bus, 0), 10);
        assert_eq!(bus.reserved.len(), 5);
        bus.reserve(Time::from_ps(200), Time::from_ps(110));
        assert_eq!(bus.reserved.len(), 3);
    }

    #[test]
    fn a_bus_without_a_burst_time_is_no_limit() {
        let mut bus = Bus::new(Duration::ZERO);
        assert_eq!([reserve(&mut bus, 7), reserve(&mut bus, 7)], [7, 7]);
    }
}
