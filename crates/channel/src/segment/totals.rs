//! What the threads of a channel used that have ended, and when any of its threads ran.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::row::Row;
use super::words::Words;
use crate::system::nanoseconds;

const SUMS: usize = 8;
/// Where the bytes came from, behind the sums.
const SOURCE: usize = SUMS;
/// Until when a thread of the channel is known to run. With the next word on a line of its own: threads write them in
/// each window.
const UNTIL: usize = 16;
/// For how long any thread of the channel ran until then.
const RUNNING: usize = 17;

/// Sums over rows. Several threads of a host may add to them at once.
#[derive(Clone, Copy)]
pub struct Totals<'a>(Words<'a>);

impl<'a> Totals<'a> {
    /// How many words they have.
    pub const WORDS: usize = 24;

    /// The sums that these words are.
    pub fn new(words: Words<'a>) -> Totals<'a> {
        Totals(words)
    }

    /// Adds what is in a row.
    pub fn add(self, row: &Row) {
        let sums: [u64; SUMS] = [
            row.bytes,
            row.demanded_bytes,
            row.granted_bytes,
            row.running_ns,
            row.paused_ns,
            row.handler_ns,
            row.processor_ns,
            1,
        ];
        for (at, value) in sums.into_iter().enumerate() {
            self.0.word(at).fetch_add(value, Ordering::Relaxed);
        }
        if row.source != 0 {
            self.0.word(SOURCE).store(u64::from(row.source), Ordering::Relaxed);
        }
    }

    /// The sums, as a row, and how many rows they are of.
    pub fn sums(self) -> (Row, u64) {
        let [bytes, demanded_bytes, granted_bytes, running_ns, paused_ns, handler_ns, processor_ns, threads]: [u64;
            SUMS] = std::array::from_fn(|at| self.0.word(at).load(Ordering::Relaxed));
        let source = self.0.word(SOURCE).load(Ordering::Relaxed) as u32;
        let sums = Row {
            source,
            bytes,
            demanded_bytes,
            granted_bytes,
            running_ns,
            paused_ns,
            handler_ns,
            processor_ns,
            ..Row::default()
        };
        (sums, threads)
    }

    /// A thread of the channel ran from `from`, and does `until` then.
    ///
    /// Windows come in the order in which they end. What another thread does in a window that has not ended is unknown,
    /// so up to `silence_max` between two windows counts: for as long, a silent thread keeps its share.
    pub fn ran(self, from: Duration, until: Duration, silence_max: Duration) {
        let until = nanoseconds(until);
        let before = self.0.word(UNTIL).fetch_max(until, Ordering::Relaxed);
        let from = nanoseconds(from);
        let begun = if from.saturating_sub(before) > nanoseconds(silence_max) { from } else { before };
        self.0.word(RUNNING).fetch_add(until.saturating_sub(begun), Ordering::Relaxed);
    }

    /// For how long any thread of the channel has run by `now`.
    pub fn running(self, now: Duration) -> Duration {
        let to_come = self.0.word(UNTIL).load(Ordering::Relaxed).saturating_sub(nanoseconds(now));
        Duration::from_nanos(self.0.word(RUNNING).load(Ordering::Relaxed).saturating_sub(to_come))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::{Coherence, Word};

    const SILENCE_MAX: Duration = Duration::from_millis(300);

    /// For how long a channel ran whose threads ended these windows, in milliseconds; the clock is at `now`.
    fn running(windows: &[(u64, u64)], now: u64) -> u128 {
        let words: Vec<Word> = (0..Totals::WORDS).map(|_| Word::new(0)).collect();
        let totals = Totals::new(Words::new(&words, Coherence::Hardware));
        let milliseconds = Duration::from_millis;
        for &(from, until) in windows {
            totals.ran(milliseconds(from), milliseconds(until), SILENCE_MAX);
        }
        totals.running(milliseconds(now)).as_millis()
    }

    #[test]
    fn a_channel_runs_while_any_of_its_threads_does() {
        // Two threads at once, and one after them.
        assert_eq!(running(&[(5000, 5100), (5000, 5110), (5100, 5200), (5190, 5210)], 6000), 210);
        // A short one, while another is in a longer window.
        assert_eq!(running(&[(5000, 5010), (5040, 5050), (5010, 5100)], 6000), 100);
    }

    #[test]
    fn a_channel_whose_threads_are_all_silent_does_not_run() {
        assert_eq!(running(&[(5000, 5010), (9000, 9005)], 9005), 15);
        // For so long each keeps its share.
        assert_eq!(running(&[(5000, 5010), (5310, 5320)], 9000), 320);
    }

    #[test]
    fn a_pause_that_is_not_over_counts_up_to_now() {
        assert_eq!(running(&[(5000, 5100)], 5040), 40);
        assert_eq!(running(&[], 5040), 0);
    }
}
