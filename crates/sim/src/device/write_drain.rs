//! When queued writes go, and when waiting reads.
//!
//! With [`WriteTurns::ReadsFirst`] reads come first, because a core waits for them. When the write queue reaches its
//! high watermark, a batch of writes has its turn: down to the low watermark, but never more lines than lie between the
//! two marks while reads wait. After a batch at least the reads that waited for its end are served before the next one
//! begins. Without reads the queue is written down from its idle watermark, and the first read interrupts that. With
//! [`WriteTurns::Batches`] the data bus has a direction, and keeps it for a number of requests. Under either neither
//! kind can starve the other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How reads and writes take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WriteTurns {
    /// A read goes before every write, except in a batch that began at the high watermark.
    ReadsFirst,
    /// The bus turns to writes when no read waits and more than `write_idle_watermark` writes do, or when the last read
    /// of a turn, or of all, was served at or above the high watermark. It turns back when no more than
    /// `write_low_watermark` writes are left, or the turn is over and reads wait. A turn is `requests_per_turn` long.
    /// What gem5's memory controller does.
    Batches,
}

/// Whose turn it is.
#[derive(Clone, Debug)]
pub struct WriteDrain {
    turns: WriteTurns,
    high: usize,
    low: usize,
    idle: usize,
    /// Whether more than `idle` waited, and not yet so few are left that the rest stays.
    is_idle_batch: bool,
    /// While a batch is under way: how many lines it may still write although reads wait.
    batch_left: Option<usize>,
    /// Reads to be served before the next batch.
    reads_owed: usize,
    per_turn: usize,
    batches: u64,
}

/// What decides whose turn it is.
#[derive(Clone, Copy, Debug)]
pub struct WriteDrainConfig {
    /// How reads and writes take turns.
    pub turns: WriteTurns,
    /// Writes with which a batch begins.
    pub high: u16,
    /// Writes with which it ends; fewer.
    pub low: u16,
    /// Writes that stay while no read waits; fewer than `high`.
    pub idle: u16,
    /// Requests of a turn, with [`WriteTurns::Batches`].
    pub per_turn: u16,
}

impl WriteDrain {
    /// Nothing has been served yet.
    pub fn new(config: &WriteDrainConfig) -> WriteDrain {
        debug_assert!(config.low < config.high && config.idle < config.high);
        WriteDrain {
            turns: config.turns,
            high: config.high.into(),
            low: config.low.into(),
            idle: config.idle.into(),
            is_idle_batch: false,
            batch_left: None,
            reads_owed: 0,
            per_turn: config.per_turn.into(),
            batches: 0,
        }
    }

    /// Decides anew, with so many reads and writes queued. True if writes go first.
    pub fn writes_first(&mut self, reads: usize, writes: usize) -> bool {
        match self.turns {
            WriteTurns::ReadsFirst => self.batch_goes_first(reads, writes),
            WriteTurns::Batches => self.is_turn_of_writes(reads, writes),
        }
    }

    fn batch_goes_first(&mut self, reads: usize, writes: usize) -> bool {
        match self.batch_left {
            Some(left) if writes <= self.low || (left == 0 && reads > 0) => {
                self.batch_left = None;
                self.reads_owed = reads;
            }
            None if writes >= self.high && (reads == 0 || self.reads_owed == 0) => {
                self.batch_left = Some(self.high - self.low);
                self.batches += 1;
            }
            _ => {}
        }
        self.batch_left.is_some()
    }

    fn is_turn_of_writes(&mut self, reads: usize, writes: usize) -> bool {
        match self.batch_left {
            Some(left) if writes <= self.low.min(self.idle) || (left == 0 && reads > 0) => {
                self.batch_left = None;
                self.reads_owed = self.per_turn;
            }
            None if reads == 0 && writes > self.idle => self.begin_turn(),
            _ => {}
        }
        self.batch_left.is_some()
    }

    fn begin_turn(&mut self) {
        self.batch_left = Some(self.per_turn);
        self.batches += 1;
    }

    /// Decides anew whether some of so many writes are to be written although nothing presses: more than the idle
    /// watermark are written down to it, or to the low watermark if that is less.
    pub fn writes_when_idle(&mut self, writes: usize) -> bool {
        self.is_idle_batch = self.would_write_when_idle(writes);
        self.is_idle_batch
    }

    /// The same without deciding.
    pub fn would_write_when_idle(&self, writes: usize) -> bool {
        let is_batch = self.is_idle_batch || (self.turns == WriteTurns::Batches && self.batch_left.is_some());
        writes > if is_batch { self.idle.min(self.low) } else { self.idle }
    }

    /// A read was served, and so many reads and writes are left.
    pub fn read_served(&mut self, reads: usize, writes: usize) {
        self.reads_owed = self.reads_owed.saturating_sub(1);
        let has_turned = self.turns == WriteTurns::Batches && writes >= self.high;
        if has_turned && (reads == 0 || self.reads_owed == 0) && self.batch_left.is_none() {
            self.begin_turn();
        }
    }

    /// A write was served.
    pub fn write_served(&mut self) {
        self.batch_left = self.batch_left.map(|left| left.saturating_sub(1));
    }

    /// How many batches there were.
    pub fn batches(&self) -> u64 {
        self.batches
    }

    /// Power is gone: no batch is under way.
    pub fn power_fail(&mut self) {
        self.batch_left = None;
        self.reads_owed = 0;
        self.is_idle_batch = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads_first(high: u16, low: u16, idle: u16) -> WriteDrain {
        WriteDrain::new(&WriteDrainConfig { turns: WriteTurns::ReadsFirst, high, low, idle, per_turn: 1 })
    }

    fn batches(high: u16, low: u16, idle: u16, per_turn: u16) -> WriteDrain {
        WriteDrain::new(&WriteDrainConfig { turns: WriteTurns::Batches, high, low, idle, per_turn })
    }

    #[test]
    fn a_turn_of_writes_is_not_interrupted_before_its_end() {
        let mut drain = batches(16, 2, 4, 3);
        assert!(!drain.writes_first(0, 4));
        assert!(drain.writes_first(0, 5));
        for writes in [8, 7, 6] {
            assert!(drain.writes_first(1, writes), "a read waits");
            drain.write_served();
        }
        assert!(!drain.writes_first(1, 5));
    }

    #[test]
    fn a_turn_of_writes_goes_on_down_to_the_low_watermark_while_no_read_comes() {
        let mut drain = batches(16, 2, 4, 3);
        for writes in [5, 4, 3] {
            assert!(drain.writes_first(0, writes) && drain.would_write_when_idle(writes));
            drain.write_served();
        }
        assert!(!drain.would_write_when_idle(2) && !drain.writes_first(0, 2));
        assert!(!drain.writes_first(0, 4) && !drain.would_write_when_idle(4));
    }

    #[test]
    fn waiting_reads_have_a_turn_before_a_full_queue_is_written() {
        let mut drain = batches(4, 1, 3, 2);
        drain.read_served(1, 4);
        assert!(drain.writes_first(1, 4), "nothing was written before, so the turn of reads is over");
        for _ in 0..2 {
            drain.write_served();
        }
        assert!(!drain.writes_first(9, 9));
        drain.read_served(8, 9);
        assert!(!drain.writes_first(8, 9));
        drain.read_served(7, 9);
        assert!(drain.writes_first(7, 9));
    }

    #[test]
    fn idle_writes_go_down_to_the_low_watermark_and_rest_up_to_the_idle_one() {
        let mut drain = reads_first(16, 2, 4);
        assert!(!drain.writes_when_idle(4));
        for writes in [5, 4, 3] {
            assert!(drain.writes_when_idle(writes));
        }
        assert!(!drain.writes_when_idle(2));
        assert!(!drain.writes_when_idle(4));
    }

    #[test]
    fn a_batch_begins_at_the_high_watermark_and_ends_at_the_low_one() {
        let mut drain = reads_first(4, 1, 0);
        assert!(!drain.writes_first(1, 3));
        assert!(drain.writes_first(1, 4));
        for writes in [3, 2] {
            drain.write_served();
            assert!(drain.writes_first(1, writes));
        }
        drain.write_served();
        assert!(!drain.writes_first(1, 1));
        assert_eq!(drain.batches(), 1);
    }

    #[test]
    fn a_flood_of_writes_lets_waiting_reads_through_after_each_batch() {
        let mut drain = reads_first(4, 1, 0);
        assert!(drain.writes_first(2, 4));
        for _ in 0..3 {
            assert!(drain.writes_first(2, 4));
            drain.write_served();
        }
        assert!(!drain.writes_first(2, 4), "three lines lie between the marks");
        drain.read_served(2, 4);
        assert!(!drain.writes_first(2, 4), "a second read was waiting");
        drain.read_served(2, 4);
        assert!(drain.writes_first(2, 4));
    }

    #[test]
    fn without_reads_a_batch_goes_on_to_the_low_watermark() {
        let mut drain = reads_first(4, 1, 0);
        for writes in [9, 8, 7, 6, 5, 4, 3, 2] {
            assert!(drain.writes_first(0, writes));
            drain.write_served();
        }
        assert!(!drain.writes_first(0, 1));
    }
}
