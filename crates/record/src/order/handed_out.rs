//! Loops whose rounds threads take from a word that they share: iterations from a counter, tasks from a queue. Which
//! thread does which round is the recording's, whatever the machine.
//!
//! A thread *takes* from a word if it updates it atomically and uses what it found, or stores to it under a lock. It
//! leaves the loop because nothing is left if it does so soon behind an access to that word, and goes on behind this
//! access as it never did before in the loop.

use rustc_hash::{FxHashMap, FxHashSet};

use super::history::Place;

/// Instructions between the look that finds nothing left and the end of the loop.
const LEAVES_WITHIN: u64 = 100;
/// Loops that take from more words, or go on in more ways, hand nothing out.
const WORDS_MAX: usize = 4;
const WAYS_MAX: usize = 32;

/// What a loop that a thread is in takes.
#[derive(Clone, Debug, Default)]
pub(super) struct Taking {
    words: Vec<u64>,
    /// The step of the first take.
    from: u64,
    /// How the thread went on behind accesses to these words: their block and slot, and the block that came next.
    ways: Vec<(u64, Place, u32)>,
    /// An access behind which it went on as never before, and the thread's instructions there.
    last_new: Option<(u64, u64)>,
}

impl Taking {
    pub(super) fn clear(&mut self) {
        self.words.clear();
        self.ways.clear();
        self.last_new = None;
    }

    pub(super) fn take(&mut self, word: u64, step: u64) {
        if !self.words.contains(&word) && self.words.len() <= WORDS_MAX {
            if self.words.is_empty() {
                self.from = step;
            }
            self.words.push(word);
        }
    }

    pub(super) fn takes(&self, word: u64) -> bool {
        self.words.contains(&word)
    }

    /// Behind an access to a word the thread goes on with a block.
    pub(super) fn go_on(&mut self, word: u64, place: Place, next: u32, instructions: u64) {
        let way = (word, place, next);
        if self.words.contains(&word) && self.ways.len() <= WAYS_MAX && !self.ways.contains(&way) {
            self.ways.push(way);
            self.last_new = Some((word, instructions));
        }
    }

    /// The loop is over: the word that had nothing left, and the step from which on the thread took from it.
    pub(super) fn ended(&self, instructions: u64) -> Option<(u64, u64)> {
        let (word, at) = self.last_new?;
        let is_one = self.words.len() <= WORDS_MAX && self.ways.len() <= WAYS_MAX;
        (is_one && instructions - at <= LEAVES_WITHIN).then_some((word, self.from))
    }
}

/// Of a thread, from one step to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span {
    pub thread: usize,
    pub from: u64,
    pub to: u64,
}

/// Loops that ended so, by where they are and the word.
#[derive(Clone, Debug, Default)]
pub(super) struct HandedOut(FxHashMap<(u64, u64), Vec<Span>>);

impl HandedOut {
    pub(super) fn add(&mut self, head: u64, word: u64, span: Span) {
        self.0.entry((head, word)).or_default().push(span);
    }

    /// Those that several threads took from, each step once.
    pub(super) fn spans(&self) -> Vec<Span> {
        let is_shared = |spans: &&Vec<Span>| spans.iter().map(|span| span.thread).collect::<FxHashSet<_>>().len() > 1;
        let mut spans: Vec<Span> = self.0.values().filter(is_shared).flatten().copied().collect();
        spans.sort_unstable();
        spans.dedup_by(|span, before| {
            let is_one = span.thread == before.thread && span.from <= before.to;
            if is_one {
                before.to = before.to.max(span.to);
            }
            is_one
        });
        spans
    }
}

#[cfg(test)]
mod tests {
    use super::{HandedOut, LEAVES_WITHIN, Span, Taking};

    const WORD: u64 = 7;
    const TAKES: (u32, u16) = (1, 0);
    const WORKS: u32 = 2;
    const ENDS: u32 = 3;

    fn taking(ways: &[u32]) -> Taking {
        let mut taking = Taking::default();
        for (round, &way) in (0..).zip(ways) {
            taking.take(WORD, 10 + round);
            taking.go_on(WORD, TAKES, way, 1000 * round);
        }
        taking
    }

    #[test]
    fn a_loop_that_ends_where_nothing_is_left_handed_out_its_rounds() {
        let ended = taking(&[WORKS, WORKS, ENDS]);
        assert_eq!(ended.ended(2000 + LEAVES_WITHIN), Some((WORD, 10)));
        assert_eq!(ended.ended(2001 + LEAVES_WITHIN), None, "it did something else first");
    }

    #[test]
    fn a_loop_that_ends_as_it_went_on_before_did_not() {
        assert_eq!(taking(&[WORKS, ENDS, WORKS, ENDS]).ended(3000), None);
        assert_eq!(Taking::default().ended(0), None);
    }

    #[test]
    fn what_only_one_thread_takes_is_not_handed_out() {
        let mut loops = HandedOut::default();
        let span = |thread, from, to| Span { thread, from, to };
        loops.add(1, WORD, span(0, 0, 9));
        loops.add(2, WORD, span(0, 10, 19));
        assert_eq!(loops.spans(), []);
        loops.add(2, WORD, span(1, 3, 5));
        loops.add(2, WORD, span(0, 15, 25));
        assert_eq!(loops.spans(), [span(0, 10, 25), span(1, 3, 5)]);
    }
}
