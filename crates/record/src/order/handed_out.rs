//! Loops whose rounds threads take from a word that they share: iterations from a counter, tasks from a queue. Which
//! thread does which round is the recording's, whatever the machine.
//!
//! A thread *takes* from a word if it updates it atomically and uses what it found, or changes it under a lock. Nothing
//! is left if it leaves the loop soon behind an update that found a number beyond all with which threads went on; or,
//! where rounds begin under a lock, soon behind a look behind which it goes on as it never did before in the loop.

use rustc_hash::{FxHashMap, FxHashSet};

use super::history::Place;

/// Instructions between the look that finds nothing left and the end of the loop, and between a round's begin and its
/// first change under a lock, polls apart.
const SOON: u64 = 100;
/// Loops that update more words so hand nothing out.
const COUNTERS_MAX: usize = 4;

/// Numbers that were found, from the least to the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Found {
    least: i64,
    greatest: i64,
}

impl Found {
    const NONE: Self = Self { least: i64::MAX, greatest: i64::MIN };

    fn add(&mut self, other: Self) {
        *self = Self { least: self.least.min(other.least), greatest: self.greatest.max(other.greatest) };
    }

    fn is_beyond(self, other: Self) -> bool {
        self.least > other.greatest || self.greatest < other.least
    }
}

/// A word that a thread updates and uses what it finds.
#[derive(Clone, Copy, Debug)]
struct Counter {
    word: u64,
    before: Found,
    /// What it found last, and its instructions then.
    last: (i64, u64),
}

/// What a loop that a thread is in takes.
#[derive(Clone, Debug, Default)]
pub(super) struct Taking {
    counters: Vec<Counter>,
    /// The first word that it changes under a lock soon behind the begin of a round, and the instructions then.
    locked: Option<(u64, u64)>,
    /// The step of the first take.
    from: Option<u64>,
    /// How the thread went on behind looks at shared words: a look's block and slot, and the block that came next.
    ways: FxHashSet<(Place, u32)>,
    /// The thread's instructions at a look behind which it went on as never before.
    last_new: u64,
}

impl Taking {
    pub(super) fn clear(&mut self) {
        self.counters.clear();
        self.ways.clear();
        (self.locked, self.from, self.last_new) = (None, None, 0);
    }

    /// An atomic update has found a number, which the thread uses.
    pub(super) fn update(&mut self, word: u64, step: u64, found: i64, instructions: u64) {
        self.from.get_or_insert(step);
        let last = (found, instructions);
        if let Some(counter) = self.counters.iter_mut().find(|counter| counter.word == word) {
            let (found, _) = std::mem::replace(&mut counter.last, last);
            counter.before.add(Found { least: found, greatest: found });
        } else if self.counters.len() <= COUNTERS_MAX {
            self.counters.push(Counter { word, before: Found::NONE, last });
        }
    }

    /// A word is changed under a lock, so many instructions behind the begin of a round.
    pub(super) fn change_locked(&mut self, word: u64, step: u64, behind_begin: u64, instructions: u64) {
        if behind_begin <= SOON {
            self.from.get_or_insert(step);
            self.locked.get_or_insert((word, instructions));
        }
    }

    /// From which of the thread's instructions on it matters how it goes on.
    pub(super) fn looks_since(&self) -> Option<u64> {
        self.locked.map(|(_, since)| since)
    }

    /// Behind a look the thread goes on with a block: whether it has done so before.
    pub(super) fn go_on(&mut self, place: Place, next: u32, instructions: u64) -> bool {
        let is_new = self.ways.insert((place, next));
        if is_new {
            self.last_new = instructions;
        }
        !is_new
    }
}

/// Of a thread, from one step to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span {
    pub thread: usize,
    pub from: u64,
    pub to: u64,
}

/// Of a loop and a word.
#[derive(Clone, Debug)]
struct OfWord {
    spans: Vec<Span>,
    /// The numbers with which threads went on, and those with which they left.
    went_on: Found,
    left: Found,
}

/// Loops that ended so, by where they are and the word.
#[derive(Clone, Debug, Default)]
pub(super) struct HandedOut(FxHashMap<(u64, u64), OfWord>);

impl HandedOut {
    /// A thread leaves a loop at a step, after so many instructions.
    pub(super) fn leave(&mut self, head: u64, taking: &Taking, thread: usize, to: u64, instructions: u64) {
        let Some(from) = taking.from else { return };
        let mut add = |word: u64, went_on: Found, left: Found| {
            let none = || OfWord { spans: Vec::new(), went_on: Found::NONE, left: Found::NONE };
            let of = self.0.entry((head, word)).or_insert_with(none);
            of.spans.push(Span { thread, from, to });
            of.went_on.add(went_on);
            of.left.add(left);
        };
        if taking.counters.len() <= COUNTERS_MAX {
            for counter in taking.counters.iter().filter(|counter| instructions - counter.last.1 <= SOON) {
                let (left, _) = counter.last;
                add(counter.word, counter.before, Found { least: left, greatest: left });
            }
        }
        if let Some((word, _)) = taking.locked.filter(|_| instructions - taking.last_new <= SOON) {
            add(word, Found::NONE, Found::NONE);
        }
    }

    /// Those that several threads took from, each step once.
    pub(super) fn spans(&self) -> Vec<Span> {
        let is_shared = |of: &&OfWord| of.spans.iter().map(|span| span.thread).collect::<FxHashSet<_>>().len() > 1;
        let ended = self.0.values().filter(is_shared).filter(|of| of.left.is_beyond(of.went_on));
        let mut spans: Vec<Span> = ended.flat_map(|of| &of.spans).copied().collect();
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
    const HEAD: u64 = 1;

    /// Threads that find these numbers, one a round, and leave the loop behind the last of them.
    fn spans(found: &[&[i64]], behind: u64) -> Vec<Span> {
        let mut loops = HandedOut::default();
        for (thread, numbers) in found.iter().enumerate() {
            let mut taking = Taking::default();
            for (round, &number) in (0..).zip(*numbers) {
                taking.update(WORD, 10 * round, number, 1000 * round);
            }
            let rounds = numbers.len() as u64;
            loops.leave(HEAD, &taking, thread, 10 * rounds, 1000 * (rounds - 1) + behind);
        }
        loops.spans()
    }

    fn span(thread: usize, from: u64, to: u64) -> Span {
        Span { thread, from, to }
    }

    #[test]
    fn threads_that_leave_with_numbers_beyond_those_of_all_rounds_were_handed_rounds() {
        assert_eq!(spans(&[&[0, 2, 4], &[1, 3, 5]], SOON), [span(0, 0, 30), span(1, 0, 30)]);
        assert_eq!(spans(&[&[9, 7, 0], &[8, 0]], SOON), [span(0, 0, 30), span(1, 0, 20)], "so many are left");
        assert_eq!(spans(&[&[0, 2, 4], &[1, 3, 5]], SOON + 1), [], "they did something else first");
        assert_eq!(spans(&[&[0, 1, 2]], 0), [], "another thread took nothing");
    }

    #[test]
    fn arrivals_at_a_barrier_are_none() {
        assert_eq!(spans(&[&[0, 1, 1], &[1, 0, 0]], 0), []);
    }

    #[test]
    fn rounds_that_begin_under_a_lock_end_where_the_thread_goes_on_as_never_before() {
        let ends = |begin: u64, last: u32, behind: u64| {
            let mut loops = HandedOut::default();
            for thread in 0..2 {
                let mut taking = Taking::default();
                taking.change_locked(WORD, 5, begin, 5);
                taking.go_on((1, 0), 2, 10);
                taking.go_on((1, 0), last, 1000);
                loops.leave(HEAD, &taking, thread, 50, 1000 + behind);
            }
            loops.spans().len()
        };
        assert_eq!(ends(SOON, 3, SOON), 2);
        assert_eq!(ends(SOON + 1, 3, SOON), 0, "it worked first");
        assert_eq!(ends(SOON, 2, SOON), 0, "it went on so before");
        assert_eq!(ends(SOON, 3, SOON + 1), 0, "it did something else then");
    }

    #[test]
    fn each_step_counts_once() {
        let mut loops = HandedOut::default();
        for (thread, head, to) in [(0, 1, 30), (1, 1, 30), (0, 2, 50), (1, 2, 20)] {
            let mut taking = Taking::default();
            taking.update(WORD, 3 * head, 0, 0);
            taking.update(WORD, 9, 1, 1);
            loops.leave(head, &taking, thread, to, 1);
        }
        assert_eq!(loops.spans(), [span(0, 3, 50), span(1, 3, 30)]);
    }
}
