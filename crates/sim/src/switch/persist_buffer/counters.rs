//! What a persist buffer counts.

use fencepost_kernel::message::Cause;
use fencepost_kernel::stats::{LatencySum, LevelOverTime, StatsNode};
use fencepost_kernel::time::{Duration, Time};

/// Counters of a persist buffer.
#[derive(Clone, Debug, Default)]
pub struct PersistBufferStats {
    /// Writes that entered the controller's input.
    pub writes: u64,
    /// … that flush instructions caused.
    pub writes_flush: u64,
    /// … that evictions from a last-level cache caused.
    pub writes_eviction: u64,
    /// … that non-temporal stores caused.
    pub writes_non_temporal: u64,
    /// … that another persist buffer drained.
    pub writes_drain: u64,
    /// Writes that were merged into a Dirty entry.
    pub writes_coalesced: u64,
    /// Reads of lines that persist here.
    pub reads: u64,
    /// … answered from an entry.
    pub read_hits: u64,
    /// … that the selector passed on to the memory device.
    pub reads_passed: u64,
    /// … that the controller passed on: the line had gone meanwhile, or reads do not pass it by.
    pub reads_missed: u64,
    /// … that had to wait until an entry with a part of the line was drained.
    pub reads_parked: u64,
    /// Time that those waited parked, in ps.
    pub reads_parked_ps: u64,
    /// Entries sent to the memory device.
    pub drains: u64,
    /// … of them after a power failure.
    pub recovery_drains: u64,
    /// The same as requests of their own: from the end of the controller's work until the acknowledgement is in the
    /// controller's input.
    pub drain: LatencySum,
    /// Acknowledgements of the memory device that freed an entry.
    pub acknowledgements: u64,
    /// Acknowledgements that named nothing under way.
    pub acknowledgements_ignored: u64,
    /// Writes that were parked because no entry could be had.
    pub stalls: u64,
    /// Time that they were parked, in ps.
    pub stall_ps: u64,
    /// Reads and writes that found the controller's input full.
    pub input_full_stalls: u64,
    /// Time that they waited for room there at the head of an ingress buffer, in ps.
    pub input_full_stall_ps: u64,
    /// Messages for other destinations that waited behind them, counted for each they waited behind.
    pub input_full_bystanders: u64,
    /// Time that those waited for nothing else, in ps.
    pub input_full_bystander_ps: u64,
    /// Acknowledgements of the memory device that found the controller's input full, the places for them alone too.
    pub acknowledgement_stalls: u64,
    /// Time that they waited for room there at the head of an ingress buffer, in ps.
    pub acknowledgement_stall_ps: u64,
    /// Time during which the controller was at work, in ps.
    pub controller_busy_ps: u64,
    /// Tag accesses.
    pub tag_accesses: u64,
    /// Data accesses.
    pub data_accesses: u64,
    /// Entries occupied over time.
    pub occupancy: Occupancy,
}

impl PersistBufferStats {
    /// Counts a write by its cause.
    pub fn count_write(&mut self, cause: Cause) {
        self.writes += 1;
        match cause {
            Cause::Flush | Cause::FlushWithoutPromise => self.writes_flush += 1,
            Cause::NonTemporalStore => self.writes_non_temporal += 1,
            Cause::Drain => self.writes_drain += 1,
            Cause::Writeback => self.writes_eviction += 1,
            Cause::DemandRead | Cause::InstructionFetch | Cause::PageWalk | Cause::Prefetch => {
                unreachable!("{cause:?} causes no write")
            }
        }
    }

    /// As a tree.
    pub fn to_node(&self) -> StatsNode {
        let counters = [
            ("writes", self.writes),
            ("writes_flush", self.writes_flush),
            ("writes_eviction", self.writes_eviction),
            ("writes_non_temporal", self.writes_non_temporal),
            ("writes_drain", self.writes_drain),
            ("writes_coalesced", self.writes_coalesced),
            ("reads", self.reads),
            ("read_hits", self.read_hits),
            ("reads_passed", self.reads_passed),
            ("reads_missed", self.reads_missed),
            ("reads_parked", self.reads_parked),
            ("reads_parked_ps", self.reads_parked_ps),
            ("drains", self.drains),
            ("recovery_drains", self.recovery_drains),
            ("acknowledgements", self.acknowledgements),
            ("acknowledgements_ignored", self.acknowledgements_ignored),
            ("stalls", self.stalls),
            ("stall_ps", self.stall_ps),
            ("input_full_stalls", self.input_full_stalls),
            ("input_full_stall_ps", self.input_full_stall_ps),
            ("input_full_bystanders", self.input_full_bystanders),
            ("input_full_bystander_ps", self.input_full_bystander_ps),
            ("acknowledgement_stalls", self.acknowledgement_stalls),
            ("acknowledgement_stall_ps", self.acknowledgement_stall_ps),
            ("controller_busy_ps", self.controller_busy_ps),
            ("tag_accesses", self.tag_accesses),
            ("data_accesses", self.data_accesses),
        ];
        let mut nodes: Vec<(&str, StatsNode)> =
            counters.into_iter().map(|(name, value)| (name, StatsNode::Counter(value))).collect();
        nodes.push(("drain", self.drain.stats()));
        nodes.push(("occupancy", self.occupancy.to_node()));
        StatsNode::group(nodes)
    }
}

/// How many entries were occupied (Dirty or Drain), weighted by time.
#[derive(Clone, Debug, Default)]
pub struct Occupancy {
    level: usize,
    since: Time,
    /// Time at each level, in ps.
    time_at_level_ps: Vec<u64>,
    over_time: LevelOverTime,
}

impl Occupancy {
    /// Of a buffer with `entries` entries, none of them occupied.
    pub fn new(entries: u16) -> Occupancy {
        Occupancy { time_at_level_ps: vec![0; usize::from(entries) + 1], ..Occupancy::default() }
    }

    /// Begins its series at `now`, unless it has begun.
    pub fn begin_series(&mut self, now: Time) {
        self.settle(now);
        self.over_time.begin(now);
    }

    /// From `now` on, `level` entries are occupied. After a power cut an entry may have two contents, one of them in
    /// the slot for merging; more entries than there are do not count.
    pub fn set(&mut self, level: usize, now: Time) {
        let level = level.min(self.time_at_level_ps.len() - 1);
        if level != self.level {
            self.settle(now);
            self.level = level;
        }
    }

    /// Counts the time up to `now`.
    pub fn settle(&mut self, now: Time) {
        self.time_at_level_ps[self.level] += now.since(self.since).as_ps();
        self.over_time.add(self.level, self.since, now);
        self.since = now;
    }

    /// Entries times the time they were occupied, up to the last change or [`Self::settle`].
    pub fn entry_time(&self) -> Duration {
        let weighted = self.time_at_level_ps.iter().enumerate().map(|(level, time)| level as u64 * time);
        Duration::from_ps(weighted.sum())
    }

    /// Time during which exactly so many entries were occupied, in ps, from 0 on.
    pub fn time_at_level_ps(&self) -> &[u64] {
        &self.time_at_level_ps
    }

    /// `entry_ps` (entries times time; divided by the time it is the mean), `now`, and the time at each level: the
    /// highest with any is the maximum, of whatever part of a replay the tree is of; and `over_time`, a series.
    fn to_node(&self) -> StatsNode {
        let levels = self.time_at_level_ps.iter().enumerate();
        StatsNode::group([
            ("entry_ps", StatsNode::Counter(self.entry_time().as_ps())),
            ("now", StatsNode::Level(self.level as u64)),
            ("over_time", StatsNode::Series(Box::new(self.over_time.series(self.since)))),
            ("level_ps", StatsNode::group(levels.map(|(level, time)| (level.to_string(), StatsNode::Counter(*time))))),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occupancy_is_weighted_by_time() {
        let mut occupancy = Occupancy::new(4);
        for (level, ps) in [(1, 100), (3, 150), (3, 170), (2, 250)] {
            occupancy.set(level, Time::from_ps(ps));
        }
        occupancy.settle(Time::from_ps(300));
        assert_eq!(occupancy.time_at_level_ps(), [100, 50, 50, 100, 0]);
        assert_eq!(occupancy.entry_time().as_ps(), 50 + 2 * 50 + 3 * 100);
    }
}
