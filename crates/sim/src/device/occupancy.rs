//! How full a queue is over time.

use fencepost_kernel::stats::StatsNode;
use fencepost_kernel::time::Time;

/// The number of occupied places of a queue, weighted with time.
#[derive(Clone, Debug, Default)]
pub struct Occupancy {
    level: u64,
    since: Time,
    /// Places times picoseconds, up to the last change.
    place_ps: u64,
    /// The most places that were occupied at a time.
    max: u64,
}

impl Occupancy {
    /// From `now` on `level` places are occupied.
    pub fn set(&mut self, level: usize, now: Time) {
        self.place_ps += self.level * now.since(self.since).as_ps();
        self.level = level as u64;
        self.since = now;
        self.max = self.max.max(self.level);
    }

    /// `place_ps` up to `now` (divided by a time it is the mean occupancy) and `max`.
    pub fn stats(&self, now: Time) -> StatsNode {
        let place_ps = self.place_ps + self.level * now.since(self.since).as_ps();
        StatsNode::group([("place_ps", StatsNode::Counter(place_ps)), ("max", StatsNode::Level(self.max))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_counts_for_as_long_as_it_lasted() {
        let mut occupancy = Occupancy::default();
        for (level, ps) in [(2, 100), (5, 110), (1, 111)] {
            occupancy.set(level, Time::from_ps(ps));
        }
        let stats = occupancy.stats(Time::from_ps(200));
        assert_eq!(stats.counter("place_ps"), 2 * 10 + 5 + 89);
        assert_eq!(stats.counter("max"), 5);
    }
}
