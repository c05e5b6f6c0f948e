//! What the walk knows of a thread.

use std::ops::Range;

use super::history::{History, Place};
use super::loops::{Loop, Loops};
use super::rounds::WideReads;

#[derive(Default)]
pub(super) struct OfThread {
    pub history: History,
    pub in_call: bool,
    pub wide_reads: WideReads,
    pub loops: Loops,
    pub last_block: u32,
    /// Its own stack's words.
    pub stack: Range<u64>,
    /// When it last saw a store of another thread for the first time, by its number in the history.
    pub news: u64,
    /// Behind what others can see of it, or is more than waiting may do, likewise.
    pub looks_from: u64,
    /// Looks in the block that came last, where it matters how the thread goes on.
    pub looks: Vec<Place>,
    /// Instructions of its quiet rounds so far.
    pub quiet: u64,
    /// Instructions up to where a call last gave up waiting at a condition.
    pub gave_up_at: Option<u64>,
    /// Of each other thread, the furthest step that it has seen a store of.
    seen: Vec<u64>,
}

impl OfThread {
    /// Whether it may come to something newer where another thread has stored up to a step.
    pub(super) fn is_news(&self, other: usize, step: u64) -> bool {
        self.seen.get(other).is_none_or(|seen| step > *seen)
    }

    /// It comes to what another thread has stored at a step.
    pub(super) fn see(&mut self, other: usize, step: u64) {
        if self.seen.len() <= other {
            self.seen.resize(other + 1, 0);
        }
        self.seen[other] = self.seen[other].max(step);
    }

    /// Of a word that no other thread has stored to yet.
    #[inline]
    pub(super) fn read_private(&mut self, word: u64) {
        if let Some(of) = self.loops.last_mut() {
            of.reads_digest = (of.reads_digest.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }

    /// Of the round of the innermost loop; of those around it nobody knows what comes of that.
    #[inline]
    pub(super) fn digest(&mut self, what: u64) {
        if let Some(of) = self.loops.last_mut() {
            of.digest = (of.digest.rotate_left(5) ^ what).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }

    /// It changes a shared word, which loops may take from; `found` is what an update found there, if that is used.
    #[inline]
    pub(super) fn take(&mut self, step: u64, word: u64, found: Option<i64>) {
        if self.loops.is_empty() {
            return;
        }
        let (counts, quiet) = (self.history.counts(), self.quiet);
        let instructions = counts.instructions;
        if let Some(found) = found {
            self.loops.iter_mut().for_each(|of| of.taking.update(word, step, found, instructions));
        }
        if counts.locks > 0 {
            let since = |of: &Loop| (instructions - of.begun.counts.instructions).saturating_sub(quiet - of.quiet);
            self.loops.iter_mut().for_each(|of| of.taking.change_locked(word, step, since(of), instructions));
            self.loops.find_who_looks();
        }
    }

    /// It looks at a shared word: loops may come to an end behind that.
    #[inline]
    pub(super) fn look(&mut self, place: Place) {
        if self.loops.last().is_some_and(|of| of.latest_look.is_some()) {
            self.looks.push(place);
        }
    }

    /// It comes to a block.
    #[inline]
    pub(super) fn go_on(&mut self, block: u32) {
        let instructions = self.history.counts().instructions;
        for place in self.looks.drain(..) {
            self.loops.go_on(place, block, instructions);
        }
    }
}
