//! What a thread did lately, to look back at, and what it did in a round of a loop.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};

use super::outlines::Outlines;

/// Blocks and events of a thread that a round may have begun at.
const HISTORY: u64 = 1 << 14;
/// So many are kept: rounds of a run are summed up late, if at all.
const KEPT: u64 = 1 << 15;
const SUMMED_UP_EVERY: u64 = 1 << 12;
/// A round with more of them is no waiting.
pub(super) const ROUND_STEPS_MAX: u64 = 4096;

/// An instruction's access: its block and the slot in it.
pub(super) type Place = (u32, u16);

/// The last store to a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Version {
    /// Place in the one sequence, from 1; 0 for none.
    pub number: u64,
    pub thread: usize,
    pub step: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Reads,
    Stores,
    /// An atomic update that leaves the word as it was, or changes it by so much.
    Updates(i64),
}

impl Act {
    pub(super) fn changes(self) -> bool {
        !matches!(self, Self::Reads | Self::Updates(0))
    }
}

/// An access to a shared word.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub step: u64,
    pub place: Place,
    pub word: u64,
    pub act: Act,
    pub seen: Version,
}

/// A block, or an event, by which name it goes and what it means for waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token(u32);

const EVENT: u32 = 1 << 31;

impl Token {
    pub(super) fn of_block(id: u32) -> Self {
        Self(id)
    }

    pub(super) fn of_event(name: &str) -> Self {
        Self(EVENT | u32::from(name.as_bytes()[0]) << 8 | name.len() as u32)
    }

    pub(super) fn block(self) -> Option<u32> {
        (self.0 & EVENT == 0).then_some(self.0)
    }

    pub(super) fn digest(self) -> u64 {
        self.0.into()
    }
}

#[derive(Clone, Copy, Debug)]
struct Passed {
    step: u64,
    token: Token,
    depth: u32,
    /// Accesses of a block to shared words.
    looks: u32,
    is_loud: bool,
    takes_lock: i8,
}

/// All that a thread has done up to some place: the difference of two is what it did between them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    passed: u64,
    looks: u64,
    /// Of these, those that change their word.
    changes: u64,
    pub instructions: u64,
    /// Events that are more than waiting may do.
    loud: u64,
    /// Locks that it has taken and not given back.
    locks: i64,
}

/// Where a round begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub step: u64,
    pub counts: Counts,
}

/// What a round did.
#[derive(Clone, Debug, Default)]
pub(super) struct Summary {
    /// The blocks and events in the order in which they first came.
    pub path: Vec<Token>,
    /// The last read of each word at each place.
    pub reads: Vec<Look>,
}

#[derive(Default)]
pub(super) struct History {
    passed: VecDeque<Passed>,
    looks: VecDeque<Look>,
    counts: Counts,
    pub depth: u32,
}

impl History {
    pub(super) fn mark(&self, step: u64) -> Mark {
        Mark { step, counts: self.counts }
    }

    /// Whether it is time to sum up what [will be forgotten](Self::will_forget), here and below.
    #[inline]
    pub(super) fn pass_block(&mut self, step: u64, id: u32, instructions: u32) -> bool {
        let token = Token::of_block(id);
        self.pass(Passed { step, token, depth: self.depth, looks: 0, is_loud: false, takes_lock: 0 });
        self.counts.instructions += u64::from(instructions);
        self.counts.passed.is_multiple_of(SUMMED_UP_EVERY)
    }

    pub(super) fn pass_event(&mut self, step: u64, token: Token, is_loud: bool, takes_lock: i8) -> bool {
        self.pass(Passed { step, token, depth: self.depth, looks: 0, is_loud, takes_lock });
        self.counts.loud += u64::from(is_loud);
        self.counts.locks += i64::from(takes_lock);
        self.counts.passed.is_multiple_of(SUMMED_UP_EVERY)
    }

    #[inline]
    fn pass(&mut self, passed: Passed) {
        if self.passed.len() as u64 == KEPT {
            self.passed.pop_front();
            let first = self.passed[0].step;
            while self.looks.front().is_some_and(|look| look.step < first) {
                self.looks.pop_front();
            }
        }
        self.passed.push_back(passed);
        self.counts.passed += 1;
    }

    /// Of the block that came last.
    #[inline]
    pub(super) fn look(&mut self, look: Look) {
        self.passed.back_mut().expect("a block has passed").looks += 1;
        self.counts.looks += 1;
        self.counts.changes += u64::from(look.act.changes());
        self.looks.push_back(look);
    }

    /// Whether what came at `counts` is too long ago for a round.
    pub(super) fn has_forgotten(&self, counts: &Counts) -> bool {
        self.counts.passed - counts.passed > HISTORY
    }

    /// Whether a round that began there has to be summed up now, if it ever is.
    pub(super) fn will_forget(&self, counts: &Counts) -> bool {
        self.counts.passed - counts.passed > KEPT - 2 * SUMMED_UP_EVERY
    }

    fn passed_between(&self, from: &Counts, to: &Counts) -> impl DoubleEndedIterator<Item = &Passed> {
        let gone = self.counts.passed - self.passed.len() as u64;
        self.passed.range((from.passed - gone) as usize..(to.passed - gone) as usize)
    }

    /// Accesses to shared words.
    pub(super) fn looks_between(&self, from: &Counts, to: &Counts) -> impl DoubleEndedIterator<Item = &Look> {
        let gone = self.counts.looks - self.looks.len() as u64;
        self.looks.range((from.looks - gone) as usize..(to.looks - gone) as usize)
    }

    /// Whether a round up to here leaves shared memory as it found it, gives back its locks, and does nothing loud.
    pub(super) fn is_quiet_since(&self, from: &Counts) -> bool {
        if self.counts.loud != from.loud || self.counts.locks != from.locks {
            return false;
        }
        if self.counts.changes == from.changes {
            return true;
        }
        let mut changes: FxHashMap<u64, Option<i64>> = FxHashMap::default();
        for look in self.looks_between(from, &self.counts) {
            match look.act {
                Act::Reads => {}
                Act::Updates(by) => {
                    if let Some(change) = changes.entry(look.word).or_insert(Some(0)) {
                        *change += by;
                    }
                }
                Act::Stores => {
                    // A word that it has updated before is a lock that it gives back.
                    let given_back = changes.get(&look.word).is_some_and(|change| *change != Some(0));
                    changes.insert(look.word, if given_back { Some(0) } else { None });
                }
            }
        }
        changes.values().all(|change| *change == Some(0))
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// What the thread did between these places.
    pub(super) fn summary(&self, from: &Counts, to: &Counts) -> Summary {
        let mut known: FxHashSet<u32> = FxHashSet::default();
        let path = self.passed_between(from, to).map(|passed| passed.token).filter(|token| known.insert(token.0));
        let path = path.collect();
        let mut known: FxHashSet<(u64, Place)> = FxHashSet::default();
        let last = self.looks_between(from, to).rev().filter(|look| look.act != Act::Stores);
        let mut reads: Vec<Look> = last.filter(|look| known.insert((look.word, look.place))).copied().collect();
        reads.reverse();
        Summary { path, reads }
    }

    /// Where the first round of the loop at [head, end) began: where the thread came to its head, perhaps in the middle
    /// of a block, and has not left it since.
    pub(super) fn began(&self, head: u64, end: u64, outlines: &Outlines) -> Option<Mark> {
        let mut counts = self.counts;
        for passed in self.passed.iter().rev().take(ROUND_STEPS_MAX as usize) {
            if passed.depth < self.depth {
                return None;
            }
            counts.passed -= 1;
            counts.looks -= u64::from(passed.looks);
            counts.loud -= u64::from(passed.is_loud);
            counts.locks -= i64::from(passed.takes_lock);
            let Some(block) = passed.token.block() else { continue };
            let block = outlines.block(block);
            counts.instructions -= u64::from(block.instructions);
            if passed.depth > self.depth {
                continue;
            }
            if (block.address..block.end).contains(&head) {
                counts.changes -= self.looks_between(&counts, &self.counts).filter(|look| look.act.changes()).count() as u64;
                return Some(Mark { step: passed.step, counts });
            }
            if !(head..end).contains(&block.address) {
                return None;
            }
        }
        None
    }
}
