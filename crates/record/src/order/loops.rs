//! The loops that a thread is in, and the rounds of each that may have waited.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};

use super::history::{History, Look, Mark, Memory, Summary, Token};

/// A quiet round that is over.
#[derive(Clone, Debug)]
pub(super) struct Round {
    pub from: Mark,
    pub end: Mark,
    /// The end of the last one that did the same.
    pub to: u64,
    /// Nearly no round's is asked for.
    pub summary: Option<Box<Summary>>,
}

#[derive(Default)]
pub(super) struct Loop {
    pub depth: usize,
    pub head: u64,
    /// The block that it begins with, when it comes there again.
    pub head_block: u32,
    /// The furthest end of its code that was seen.
    pub end: u64,
    pub begun: Mark,
    pub run: VecDeque<Round>,
    /// As the thread's, when the round began.
    pub looks_from: u64,
    pub run_from: Mark,
    pub run_looks_from: u64,
    /// Words that the thread looked at up to the run, and behind which step it began to. Found when it is asked for, or
    /// about to be forgotten.
    pub looked: Option<Vec<(u64, u64)>>,
    pub run_length: u64,
    pub fresh: u64,
    /// Of what the round does so far, and of the round before it.
    pub digest: u64,
    pub last_digest: Option<u64>,
    /// Whether a wait has ended in the round: it got on.
    pub has_waited: bool,
}

/// The loops that a thread is in, the innermost last. There are so many that room for them is used again.
#[derive(Default)]
pub(super) struct Loops {
    all: Vec<Loop>,
    count: usize,
}

impl Loops {
    /// A new one, in which all but the run is what it was in another.
    pub(super) fn enter(&mut self) -> &mut Loop {
        if self.count == self.all.len() {
            self.all.push(Loop::default());
        }
        self.count += 1;
        let of = &mut self.all[self.count - 1];
        of.forget_run();
        of
    }

    pub(super) fn leave(&mut self) {
        self.count -= 1;
    }

    pub(super) fn clear(&mut self) {
        self.count = 0;
    }
}

impl Deref for Loops {
    type Target = [Loop];

    #[inline]
    fn deref(&self) -> &[Loop] {
        &self.all[..self.count]
    }
}

impl DerefMut for Loops {
    #[inline]
    fn deref_mut(&mut self) -> &mut [Loop] {
        &mut self.all[..self.count]
    }
}

impl Loop {
    pub(super) fn forget_run(&mut self) {
        self.run.clear();
        (self.run_length, self.fresh) = (0, 0);
    }

    /// Where looks at the words of the run's first round began before it, if one was soon behind the other.
    pub(super) fn look_back(&mut self, history: &History, memory: Memory<'_>) {
        let Some(first) = self.run.front_mut().filter(|_| self.looked.is_none()) else { return };
        let mut words: Vec<u64> = first.sum_up(history, memory).reads.iter().map(|look| look.word).collect();
        words.sort_unstable();
        words.dedup();
        let number = self.run_from.counts.passed;
        let first = |word| Some((word, history.first_look(memory, word, number, self.run_looks_from)?));
        self.looked = Some(words.into_iter().filter_map(first).collect());
    }
}

impl Round {
    pub(super) fn sum_up(&mut self, history: &History, memory: Memory<'_>) -> &Summary {
        self.summary.get_or_insert_with(|| history.summary(memory, &self.from.counts, &self.end.counts).into())
    }

    pub(super) fn path(&self) -> &[Token] {
        self.summary.as_ref().map_or(&[], |summary| &summary.path)
    }

    pub(super) fn reads(&self) -> impl DoubleEndedIterator<Item = &Look> {
        self.summary.iter().flat_map(|summary| &summary.reads)
    }

    pub(super) fn instructions(&self) -> u64 {
        self.end.counts.instructions - self.from.counts.instructions
    }
}
