//! What the threads of a channel used that have ended.

use std::sync::atomic::Ordering;

use super::row::Row;
use super::words::Words;

/// Where the bytes came from, behind the sums.
const SOURCE: usize = 7;

/// Sums over rows. Several threads of a host may add to them at once; not in the fast path.
#[derive(Clone, Copy)]
pub struct Totals<'a>(Words<'a>);

impl<'a> Totals<'a> {
    /// How many words they have.
    pub const WORDS: usize = 8;

    /// The sums that these words are.
    pub fn new(words: Words<'a>) -> Totals<'a> {
        Totals(words)
    }

    /// Adds what is in a row.
    pub fn add(self, row: &Row) {
        let sums = [row.bytes, row.granted_bytes, row.lived_ns, row.paused_ns, row.handler_ns, row.processor_ns, 1];
        for (at, value) in sums.into_iter().enumerate() {
            self.0.word(at).fetch_add(value, Ordering::Relaxed);
        }
        if row.source != 0 {
            self.0.word(SOURCE).store(u64::from(row.source), Ordering::Relaxed);
        }
    }

    /// The sums, as a row, and how many rows they are of.
    pub fn sums(self) -> (Row, u64) {
        let [bytes, granted_bytes, lived_ns, paused_ns, handler_ns, processor_ns, threads] =
            std::array::from_fn(|at| self.0.word(at).load(Ordering::Relaxed));
        let source = self.0.word(SOURCE).load(Ordering::Relaxed) as u32;
        let sums =
            Row { source, bytes, granted_bytes, lived_ns, paused_ns, handler_ns, processor_ns, ..Row::default() };
        (sums, threads)
    }
}
