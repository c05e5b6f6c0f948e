//! The loops that a thread is in, and the rounds of each that may have waited.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};

use super::flow::Flow;
use super::handed_out::Taking;
use super::history::{FirstLook, History, Look, Mark, Memory, Place, Summary, Token};
use super::outlines::Outlines;
use super::polling::Polled;

const LONG_ROUND: u64 = 100;

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
    /// Of words that the thread looked at up to the run. Found when it is asked for, or about to be forgotten.
    pub looked: Option<Vec<FirstLook>>,
    pub run_length: u64,
    pub fresh: u64,
    /// Instructions of the run's rounds that did again what the one before did: that read what others had stored, and
    /// that read what nobody had.
    pub polled: u64,
    pub perhaps_polled: u64,
    /// Of what the round does so far, and of the round before it.
    pub digest: u64,
    pub last_digest: Option<u64>,
    /// Of the words that it reads and no other thread has stored to yet, likewise.
    pub reads_digest: u64,
    pub last_reads_digest: u64,
    /// Whether a wait has ended in the round: it got on.
    pub has_waited: bool,
    pub taking: Taking,
    /// The latest of the moments from which on it matters to this loop, and to those around it, how the thread goes on.
    pub latest_look: Option<u64>,
    /// Instructions of the thread's quiet rounds when the round began.
    pub quiet: u64,
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
        let latest_look = self.count.checked_sub(2).and_then(|around| self.all[around].latest_look);
        let of = &mut self.all[self.count - 1];
        of.forget_run();
        of.taking.clear();
        of.latest_look = latest_look;
        of
    }

    /// To some loops it may matter from now on how the thread goes on.
    pub(super) fn find_who_looks(&mut self) {
        let mut latest = None;
        for of in self.iter_mut() {
            latest = latest.max(of.taking.looks_since());
            of.latest_look = latest;
        }
    }

    /// Behind a look the thread goes on with a block. A loop around one that has seen that before has seen it too, if
    /// it has looked for as long: the ways of an interpreter's many loops are more than a cache holds.
    pub(super) fn go_on(&mut self, place: Place, next: u32, instructions: u64) {
        let mut known = None;
        for of in self.iter_mut().rev() {
            if of.latest_look <= known {
                break;
            }
            let since = of.taking.looks_since();
            if since > known && of.taking.go_on(place, next, instructions) {
                known = since;
            }
        }
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
        (self.run_length, self.fresh, self.polled, self.perhaps_polled) = (0, 0, 0, 0);
    }

    /// A round has come to its end that did what the one before did, and nothing that others could see.
    #[inline]
    pub(super) fn poll(&mut self, instructions: u64, looks_at_others: bool) {
        if looks_at_others {
            self.polled += instructions;
        } else {
            self.perhaps_polled += instructions;
        }
    }

    /// What the last round has read of words that nobody had stored to, others have stored to meanwhile.
    pub(super) fn settle_polled(&mut self, history: &History, memory: Memory<'_>) {
        let perhaps = std::mem::take(&mut self.perhaps_polled);
        let Some(last) = self.run.back_mut().filter(|_| perhaps > 0) else { return };
        let reads = &last.sum_up(history, memory).reads;
        if reads.iter().any(|look| look.seen.number == 0 && memory.is_newer(look)) {
            self.polled += perhaps;
        }
    }

    /// Of the run that is over.
    pub(super) fn polled(&self, is_ended_by_count: bool) -> Polled {
        let to = self.run.back().map_or(self.run_from.step, |round| round.to);
        let (instructions, by_count) = if is_ended_by_count { (0, self.polled) } else { (self.polled, 0) };
        Polled { from: self.run_from.step, to, instructions, by_count }
    }

    /// Where looks at the words of the run's first round began before it, if one was soon behind the other.
    pub(super) fn look_back(&mut self, history: &History, memory: Memory<'_>) {
        let Some(first) = self.run.front_mut().filter(|_| self.looked.is_none()) else { return };
        let mut words: Vec<u64> = first.sum_up(history, memory).reads.iter().map(|look| look.word).collect();
        words.sort_unstable();
        words.dedup();
        let number = self.run_from.counts.passed;
        let first = |word| history.first_look(memory, word, number, self.run_looks_from);
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

/// The word whose new value ended the run.
pub(super) fn exit_word(outlines: &Outlines, thread: usize, of: &Loop, last: &Summary) -> Option<u64> {
    let common = |round: &Round| round.path().iter().zip(&last.path).take_while(|(own, other)| own == other).count();
    let best = of.run.iter().map(common).max()?;
    if best == 0 {
        return None;
    }
    let is_long = of.run.iter().map(Round::instructions).sum::<u64>() > LONG_ROUND * of.run.len() as u64;
    if is_long && of.fresh * 2 > of.run_length && of.run_length >= 3 {
        return None;
    }
    // A lock that long rounds took and gave back is one under which they worked.
    let is_of_work =
        |word: u64| is_long && of.run.iter().flat_map(Round::reads).any(|look| look.word == word && look.act.changes());
    // The reads that feed the branch with which it leaves.
    for (count, token) in last.path[..best].iter().rev().enumerate() {
        let block = token.block();
        if count > 0 && block.is_some_and(|block| outlines.block(block).flow == Flow::Branches) {
            break;
        }
        for look in last.reads.iter().filter(|look| Some(look.place.0) == block) {
            if is_newer_than_run(look, &of.run, thread) && !is_of_work(look.word) {
                return Some(look.word);
            }
        }
    }
    None
}

pub(super) fn is_newer(look: &Look, before: &Round, thread: usize) -> bool {
    let mut before = before.reads().filter(|other| other.word == look.word).peekable();
    look.seen.thread != thread
        && look.seen.number > 0
        && before.peek().is_some()
        && before.all(|other| other.seen.number < look.seen.number)
}

/// Whether it saw a store of another thread that is newer than the last one which the run saw of this word.
pub(super) fn is_newer_than_run(look: &Look, run: &VecDeque<Round>, thread: usize) -> bool {
    if look.seen.number == 0 || look.seen.thread == thread {
        return false;
    }
    let last = run.iter().rev().find_map(|round| round.reads().rev().find(|other| other.word == look.word));
    last.is_some_and(|other| other.seen.number < look.seen.number)
}

#[cfg(test)]
mod tests {
    use super::Loops;

    #[test]
    fn loops_around_one_learn_the_ways_that_only_they_do_not_know() {
        let mut loops = Loops::default();
        loops.enter();
        loops.enter();
        // The inner one looks first, and then the outer one, too.
        loops[1].taking.change_locked(7, 5, 0, 100);
        loops.find_who_looks();
        assert_eq!((loops[0].latest_look, loops[1].latest_look), (None, Some(100)));
        loops.go_on((1, 0), 2, 110);
        loops[0].taking.change_locked(7, 6, 0, 120);
        loops.find_who_looks();
        loops.go_on((1, 0), 2, 130);
        let mut knows = |at: usize, next: u32| loops[at].taking.go_on((1, 0), next, 200);
        assert!(knows(0, 2) && knows(1, 2) && !knows(0, 3));
        // One that is entered later knows nothing, and those around it do.
        loops.enter();
        assert_eq!(loops[2].latest_look, Some(120));
        loops[2].taking.change_locked(7, 7, 0, 210);
        loops.find_who_looks();
        loops.go_on((1, 0), 2, 220);
        assert!(loops[2].taking.go_on((1, 0), 2, 230));
    }
}
