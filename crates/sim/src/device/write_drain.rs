//! When queued writes go before waiting reads.
//!
//! Reads come first, because a core waits for them. When the write queue reaches its high watermark, a batch of writes has its turn: down to
//! the low watermark, but never more lines than lie between the two marks while reads wait. After a batch at least the reads that waited for
//! its end are served before the next one begins. So neither kind can starve the other.

/// Whose turn it is.
#[derive(Clone, Debug)]
pub struct WriteDrain {
    high: usize,
    low: usize,
    idle: usize,
    /// Whether more than `idle` waited, and not yet half of that are left.
    is_idle_batch: bool,
    /// While a batch is under way: how many lines it may still write although reads wait.
    batch_left: Option<usize>,
    /// Reads to be served before the next batch.
    reads_owed: usize,
    batches: u64,
}

impl WriteDrain {
    /// Batches between the watermarks `high` and `low`, which is less; `idle` writes stay while no read waits.
    pub fn new(high: usize, low: usize, idle: usize) -> WriteDrain {
        debug_assert!(low < high && idle < high);
        WriteDrain { high, low, idle, is_idle_batch: false, batch_left: None, reads_owed: 0, batches: 0 }
    }

    /// Decides anew, with so many reads and writes queued. True if writes go first.
    pub fn writes_first(&mut self, reads: usize, writes: usize) -> bool {
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

    /// Decides anew whether some of so many writes are to be written although nothing presses: more than the idle watermark are written down to
    /// half of it.
    pub fn writes_when_idle(&mut self, writes: usize) -> bool {
        self.is_idle_batch = self.would_write_when_idle(writes);
        self.is_idle_batch
    }

    /// The same without deciding.
    pub fn would_write_when_idle(&self, writes: usize) -> bool {
        writes > if self.is_idle_batch { self.idle / 2 } else { self.idle }
    }

    /// A read was served.
    pub fn read_served(&mut self) {
        self.reads_owed = self.reads_owed.saturating_sub(1);
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

    #[test]
    fn idle_writes_go_down_to_half_the_watermark_and_rest_up_to_it() {
        let mut drain = WriteDrain::new(16, 2, 4);
        assert!(!drain.writes_when_idle(4));
        for writes in [5, 4, 3] {
            assert!(drain.writes_when_idle(writes));
        }
        assert!(!drain.writes_when_idle(2));
        assert!(!drain.writes_when_idle(4));
    }

    #[test]
    fn a_batch_begins_at_the_high_watermark_and_ends_at_the_low_one() {
        let mut drain = WriteDrain::new(4, 1, 0);
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
        let mut drain = WriteDrain::new(4, 1, 0);
        assert!(drain.writes_first(2, 4));
        for _ in 0..3 {
            assert!(drain.writes_first(2, 4));
            drain.write_served();
        }
        assert!(!drain.writes_first(2, 4), "three lines lie between the marks");
        drain.read_served();
        assert!(!drain.writes_first(2, 4), "a second read was waiting");
        drain.read_served();
        assert!(drain.writes_first(2, 4));
    }

    #[test]
    fn without_reads_a_batch_goes_on_to_the_low_watermark() {
        let mut drain = WriteDrain::new(4, 1, 0);
        for writes in [9, 8, 7, 6, 5, 4, 3, 2] {
            assert!(drain.writes_first(0, writes));
            drain.write_served();
        }
        assert!(!drain.writes_first(0, 1));
    }
}
