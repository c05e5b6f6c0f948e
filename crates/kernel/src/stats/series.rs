//! A level over time, as means over equal intervals: whatever time goes by, there are never more of them than
//! [`INTERVALS_MAX`].

use serde_json::{Value, json};

use crate::time::{Duration, Time};

/// When they would be more, intervals become twice as long.
const INTERVALS_MAX: usize = 256;
/// How long they are at first.
const SHORTEST: Duration = Duration::from_ps(10_000);

/// Takes down a level over time, from [`Self::begin`] on.
#[derive(Clone, Debug, Default)]
pub struct LevelOverTime {
    start: Time,
    interval_ps: u64,
    /// The end of the last interval that there is; everything lies behind it before it has begun.
    end: Time,
    /// Level times time in each interval, in ps.
    level_ps: Vec<u64>,
}

impl LevelOverTime {
    /// From `now` on; only the first call counts.
    pub fn begin(&mut self, now: Time) {
        if self.interval_ps == 0 {
            self.start = now;
            self.interval_ps = SHORTEST.as_ps();
            self.end = now + SHORTEST;
            self.level_ps.push(0);
        }
    }

    /// The level was `level` from `since`, where the last call ended, to `now`.
    #[inline]
    pub fn add(&mut self, level: usize, since: Time, now: Time) {
        if now <= self.end {
            if let Some(last) = self.level_ps.last_mut() {
                *last += level as u64 * now.since(since).as_ps();
            }
        } else if self.interval_ps > 0 {
            self.add_beyond(level as u64, since, now);
        }
    }

    #[cold]
    fn add_beyond(&mut self, level: u64, mut since: Time, now: Time) {
        while now > self.end {
            *self.level_ps.last_mut().expect("it has begun") += level * self.end.since(since).as_ps();
            since = self.end;
            if self.level_ps.len() == INTERVALS_MAX {
                self.interval_ps *= 2;
                self.level_ps = coarser(&self.level_ps, 2);
            }
            self.level_ps.push(0);
            self.end += Duration::from_ps(self.interval_ps);
        }
        *self.level_ps.last_mut().expect("it has begun") += level * now.since(since).as_ps();
    }

    /// What has been taken down until `now`, where the last call of [`Self::add`] ended.
    pub fn series(&self, now: Time) -> Series {
        let full = self.level_ps.len().saturating_sub(1);
        let mut time_ps = vec![self.interval_ps; full];
        if full < self.level_ps.len() {
            let last = self.start + Duration::from_ps(self.interval_ps) * full as u64;
            time_ps.push(now.since(last).as_ps());
        }
        Series { start: self.start, interval_ps: self.interval_ps, level_ps: self.level_ps.clone(), time_ps }
    }
}

/// Each `factor` intervals as one.
fn coarser(sums: &[u64], factor: u64) -> Vec<u64> {
    sums.chunks(factor as usize).map(|several| several.iter().sum()).collect()
}

/// A level over some of the time: that of a region of interest, say. Empty if nothing was taken down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    start: Time,
    interval_ps: u64,
    /// Level times time in each interval, in ps.
    level_ps: Vec<u64>,
    /// How much of each interval is meant, in ps.
    time_ps: Vec<u64>,
}

impl Series {
    /// The same without what `earlier` has, which is this series at an earlier time.
    pub fn since(&self, earlier: &Series) -> Series {
        self.with(earlier, |now, then| now - then, |now, then| now - then)
    }

    /// This and `other`, the same level at another time.
    pub fn plus(&self, other: &Series) -> Series {
        self.with(other, |one, two| one + two, |one, two| one + two)
    }

    /// The sum of this level and of `other`, another one over the same time.
    pub fn beside(&self, other: &Series) -> Series {
        self.with(other, |one, two| one + two, u64::max)
    }

    fn with(&self, other: &Series, levels: fn(u64, u64) -> u64, times: fn(u64, u64) -> u64) -> Series {
        if other.level_ps.is_empty() {
            return self.clone();
        }
        if self.level_ps.is_empty() {
            return other.clone();
        }
        assert_eq!(self.start, other.start, "all series of a replay begin together");
        let interval_ps = self.interval_ps.max(other.interval_ps);
        let combine = |one: &[u64], two: &[u64], combine: fn(u64, u64) -> u64| {
            let one = coarser(one, interval_ps / self.interval_ps);
            let two = coarser(two, interval_ps / other.interval_ps);
            let at = |sums: &[u64], index| sums.get(index).copied().unwrap_or(0);
            (0..one.len().max(two.len())).map(|index| combine(at(&one, index), at(&two, index))).collect()
        };
        Series {
            start: self.start,
            interval_ps,
            level_ps: combine(&self.level_ps, &other.level_ps, levels),
            time_ps: combine(&self.time_ps, &other.time_ps, times),
        }
    }

    /// Where it begins and ends, without intervals of which nothing is meant.
    fn known(&self) -> (usize, usize) {
        let end = self.time_ps.iter().rposition(|time| *time > 0).map_or(0, |last| last + 1);
        (self.time_ps.iter().position(|time| *time > 0).unwrap_or(end), end)
    }

    /// `start_ns`, `interval_ns` and the `mean` of each interval, null where nothing of it is meant; null if that is
    /// all of them.
    pub fn means(&self) -> Value {
        let (begin, end) = self.known();
        if begin == end {
            return Value::Null;
        }
        let sums = self.level_ps[begin..end].iter().zip(&self.time_ps[begin..end]);
        let means: Vec<Value> =
            sums.map(|(level, time)| if *time == 0 { Value::Null } else { json!(mean(*level, *time)) }).collect();
        let start = self.start + Duration::from_ps(self.interval_ps) * begin as u64;
        let interval = Duration::from_ps(self.interval_ps);
        json!({"start_ns": start.as_ns(), "interval_ns": interval.as_ns(), "mean": means})
    }

    /// The raw sums, in ps.
    pub fn to_json(&self) -> Value {
        let (begin, end) = self.known();
        json!({
            "start_ps": (self.start + Duration::from_ps(self.interval_ps) * begin as u64).as_ps(),
            "interval_ps": self.interval_ps,
            "level_ps": self.level_ps[begin..end],
            "time_ps": self.time_ps[begin..end],
        })
    }
}

/// To a thousandth: the series is for a picture, and a document has many.
fn mean(level_ps: u64, time_ps: u64) -> f64 {
    (level_ps as f64 / time_ps as f64 * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Time {
        Time::from_ps(ns * 1000)
    }

    /// The level is `level(n)` from n times `step` ns on.
    fn taken_down(steps: u64, step: u64, level: fn(u64) -> usize) -> Series {
        let mut taken = LevelOverTime::default();
        taken.begin(Time::ZERO);
        (0..steps).for_each(|n| taken.add(level(n), at(n * step), at((n + 1) * step)));
        taken.series(at(steps * step))
    }

    #[test]
    fn nothing_is_taken_down_before_the_beginning() {
        let mut taken = LevelOverTime::default();
        taken.add(3, Time::ZERO, at(25));
        assert_eq!(taken.series(at(25)).means(), Value::Null);
        taken.begin(at(25));
        taken.begin(at(30));
        taken.add(2, at(25), at(40));
        assert_eq!(taken.series(at(40)).means(), json!({"start_ns": 25.0, "interval_ns": 10.0, "mean": [2.0, 2.0]}));
    }

    #[test]
    fn a_step_within_an_interval_is_weighted_by_time() {
        let series = taken_down(3, 6, |n| [0, 5, 1][n as usize]);
        assert_eq!(series.level_ps, [4 * 5_000, 2 * 5_000 + 6_000]);
        assert_eq!(series.time_ps, [10_000, 8_000]);
    }

    #[test]
    fn intervals_become_longer_when_they_run_out_and_nothing_is_lost() {
        let series = taken_down(100_000, 7, |n| (n % 5) as usize);
        assert!(series.level_ps.len() <= INTERVALS_MAX && series.level_ps.len() > INTERVALS_MAX / 2);
        assert_eq!(series.interval_ps, 10_000 * 512, "256 intervals of 5,120 ns are the first that hold 700,000 ns");
        assert_eq!(series.level_ps.iter().sum::<u64>(), (0..100_000).map(|n| n % 5 * 7_000).sum::<u64>());
        assert_eq!(series.time_ps.iter().sum::<u64>(), 700_000_000);
        // One long step gives the same.
        let (long, short) = (taken_down(1, 700_000, |_| 2), taken_down(100_000, 7, |_| 2));
        assert_eq!(long, short);
    }

    #[test]
    fn a_region_is_its_end_minus_its_start_whatever_the_interval_was_then() {
        let level = |n: u64| (n % 3) as usize;
        let (first, second, third) =
            (taken_down(90, 10, level), taken_down(400, 10, level), taken_down(900, 10, level));
        let region = second.since(&first);
        assert_eq!(region.interval_ps, 20_000);
        assert_eq!(region.time_ps.iter().sum::<u64>(), 310 * 10_000);
        assert_eq!(region.means()["start_ns"], json!(900.0));
        assert_eq!(first.plus(&region).plus(&third.since(&second)), third);
    }

    #[test]
    fn two_levels_beside_each_other_are_added_and_their_time_is_not() {
        let both = taken_down(4, 10, |_| 3).beside(&taken_down(4, 10, |n| n as usize));
        assert_eq!(both.means()["mean"], json!([3.0, 4.0, 5.0, 6.0]));
    }
}
