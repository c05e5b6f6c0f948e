//! Loops whose rounds threads take from a word that they share: iterations from a counter, tasks from a queue. Which
//! thread does which round is the recording's, whatever the machine.
//!
//! A thread *takes* from a word if it updates it atomically and uses what it found, or changes it under a lock. Nothing
//! is left if it leaves the loop soon behind a look at that word, and goes on behind this look as it never did before in
//! the loop; or, where rounds begin under a lock, soon behind a look that sees another thread's store for the first time.

use rustc_hash::{FxHashMap, FxHashSet};

use super::history::Place;

/// Instructions between the look that finds nothing left and the end of the loop, and between a round's begin and its
/// first change under a lock, polls apart.
const SOON: u64 = 100;
/// Loops that take from more words, or go on in more ways, hand nothing out.
const WORDS_MAX: usize = 4;
const WAYS_MAX: usize = 32;

/// What a loop that a thread is in takes.
#[derive(Clone, Debug, Default)]
pub(super) struct Taking {
    words: Vec<u64>,
    /// The step of the first take.
    from: u64,
    begins_under_lock: bool,
    /// How the thread went on behind looks at these words: their block and slot, and the block that came next.
    ways: Vec<(u64, Place, u32)>,
    /// A look behind which it went on as never before, and the thread's instructions there.
    last_new: Option<(u64, u64)>,
}

impl Taking {
    pub(super) fn clear(&mut self) {
        self.words.clear();
        self.ways.clear();
        self.last_new = None;
        self.begins_under_lock = false;
    }

    /// So many instructions behind the begin of a round.
    pub(super) fn take(&mut self, word: u64, step: u64, is_locked: bool, instructions: u64) {
        self.begins_under_lock |= is_locked && instructions <= SOON;
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

    /// Behind a look at a word the thread goes on with a block.
    pub(super) fn go_on(&mut self, word: u64, place: Place, next: u32, instructions: u64) {
        let way = (word, place, next);
        if self.words.contains(&word) && self.ways.len() <= WAYS_MAX && !self.ways.contains(&way) {
            self.ways.push(way);
            self.last_new = Some((word, instructions));
        }
    }

    /// The loop is over: the word that the thread took from until nothing was left, and from which step on. The last news
    /// were at `news`, in instructions.
    pub(super) fn ended(&self, instructions: u64, news: u64) -> Option<(u64, u64)> {
        if self.words.len() > WORDS_MAX || self.ways.len() > WAYS_MAX {
            return None;
        }
        let found_none = self.last_new.filter(|(_, at)| instructions - at <= SOON).map(|(word, _)| word);
        let was_told = self.words.first().copied().filter(|_| self.begins_under_lock && instructions - news <= SOON);
        Some((found_none.or(was_told)?, self.from))
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
    use super::{HandedOut, SOON, Span, Taking};

    const WORD: u64 = 7;
    const TAKES: (u32, u16) = (1, 0);
    const WORKS: u32 = 2;
    const ENDS: u32 = 3;

    fn taking(ways: &[u32]) -> Taking {
        let mut taking = Taking::default();
        for (round, &way) in (0..).zip(ways) {
            taking.take(WORD, 10 + round, false, 0);
            taking.go_on(WORD, TAKES, way, 1000 * round);
        }
        taking
    }

    #[test]
    fn a_loop_that_ends_where_nothing_is_left_handed_out_its_rounds() {
        let ended = taking(&[WORKS, WORKS, ENDS]);
        assert_eq!(ended.ended(2000 + SOON, 0), Some((WORD, 10)));
        assert_eq!(ended.ended(2001 + SOON, 0), None, "it did something else first");
    }

    #[test]
    fn a_loop_that_ends_as_it_went_on_before_did_not() {
        assert_eq!(taking(&[WORKS, ENDS, WORKS, ENDS]).ended(3000, 0), None);
        assert_eq!(Taking::default().ended(0, 0), None);
    }

    #[test]
    fn a_loop_whose_rounds_begin_under_a_lock_may_be_told_that_it_ends() {
        let mut taking = Taking::default();
        taking.take(WORD, 10, true, SOON + 1);
        assert_eq!(taking.ended(2000, 2000), None);
        taking.take(WORD, 20, true, SOON);
        assert_eq!(taking.ended(2000 + SOON, 2000), Some((WORD, 10)));
        assert_eq!(taking.ended(2001 + SOON, 2000), None);
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
