//! What a thread did lately, to look back at, and what it did in a round of a loop.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};

use super::outlines::Outlines;

/// Blocks and events of a thread that a round may have begun at.
const HISTORY: u64 = 1 << 14;
/// So many are kept: rounds of a run are summed up late, if at all.
const KEPT: u64 = 1 << 15;
/// So many calls deep a thread's blocks are known.
const DEPTHS: usize = 1 << 12;
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

/// With the counts before it, as far as a round can go back.
#[derive(Clone, Copy, Debug, Default)]
struct Passed {
    step: u64,
    token: Token,
    /// The one before it in the same call, or this one itself.
    before: u32,
    instructions: u32,
    looks: u32,
    loud: u16,
    locks: i16,
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
    /// The last ones, each at its number modulo [`KEPT`].
    passed: Vec<Passed>,
    looks: VecDeque<Look>,
    counts: Counts,
    depth: usize,
    /// By depth, from `depth_known` on, the number of the last one, and one more; 0 for none. What has returned is not
    /// there.
    last: Vec<u64>,
    depth_known: usize,
}

impl History {
    pub(super) fn mark(&self, step: u64) -> Mark {
        Mark { step, counts: self.counts }
    }

    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    pub(super) fn call(&mut self) {
        self.depth += 1;
    }

    pub(super) fn give_back(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// Whether it is time to sum up what [will be forgotten](Self::will_forget), here and below.
    #[inline]
    pub(super) fn pass_block(&mut self, step: u64, id: u32, instructions: u32) -> bool {
        self.pass(step, Token::of_block(id));
        self.counts.instructions += u64::from(instructions);
        self.counts.passed.is_multiple_of(SUMMED_UP_EVERY)
    }

    pub(super) fn pass_event(&mut self, step: u64, token: Token, is_loud: bool, takes_lock: i64) -> bool {
        self.pass(step, token);
        self.counts.loud += u64::from(is_loud);
        self.counts.locks += takes_lock;
        self.counts.passed.is_multiple_of(SUMMED_UP_EVERY)
    }

    #[inline]
    fn pass(&mut self, step: u64, token: Token) {
        let Counts { passed, looks, instructions, loud, locks, .. } = self.counts;
        if self.depth_known + self.last.len() != self.depth + 1 {
            self.change_depth();
        }
        let last = self.last.last_mut().map_or(0, |last| std::mem::replace(last, passed + 1));
        let before = if last == 0 { passed } else { last - 1 } as u32;
        let (instructions, looks, loud, locks) = (instructions as u32, looks as u32, loud as u16, locks as i16);
        let passed_now = Passed { step, token, before, instructions, looks, loud, locks };
        match self.passed.get_mut((passed % KEPT) as usize) {
            Some(place) => *place = passed_now,
            None => self.passed.push(passed_now),
        }
        self.counts.passed += 1;
    }

    fn change_depth(&mut self) {
        self.depth_known = self.depth_known.min(self.depth);
        self.last.resize(self.depth + 1 - self.depth_known, 0);
        // Calls that never return make it no longer.
        if self.last.len() > DEPTHS {
            self.depth_known += DEPTHS / 2;
            self.last.drain(..DEPTHS / 2);
        }
    }

    /// Forgets accesses of what is forgotten itself.
    pub(super) fn forget(&mut self) {
        let Some(first) = self.counts.passed.checked_sub(KEPT) else { return };
        let first = self.passed[(first % KEPT) as usize].step;
        while self.looks.front().is_some_and(|look| look.step < first) {
            self.looks.pop_front();
        }
    }

    /// Of the block that came last.
    #[inline]
    pub(super) fn look(&mut self, look: Look) {
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

    fn passed_between(&self, from: &Counts, to: &Counts) -> impl Iterator<Item = &Passed> {
        (from.passed..to.passed).map(|number| &self.passed[(number % KEPT) as usize])
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
        let now = &self.counts;
        let known = self.depth.checked_sub(self.depth_known)?;
        let mut number = self.last.get(known)?.checked_sub(1)?;
        while now.passed - number <= ROUND_STEPS_MAX {
            let passed = &self.passed[(number % KEPT) as usize];
            if let Some(block) = passed.token.block() {
                let block = outlines.block(block);
                if (block.address..block.end).contains(&head) {
                    return Some(Mark { step: passed.step, counts: self.counts_before(number, passed) });
                }
                if !(head..end).contains(&block.address) {
                    return None;
                }
            }
            let further = u64::from((number as u32).wrapping_sub(passed.before));
            if further == 0 {
                return None;
            }
            number -= further;
        }
        None
    }

    fn counts_before(&self, number: u64, passed: &Passed) -> Counts {
        let now = &self.counts;
        let mut counts = Counts {
            passed: number,
            looks: now.looks - u64::from((now.looks as u32).wrapping_sub(passed.looks)),
            changes: now.changes,
            instructions: now.instructions - u64::from((now.instructions as u32).wrapping_sub(passed.instructions)),
            loud: now.loud - u64::from((now.loud as u16).wrapping_sub(passed.loud)),
            locks: now.locks - i64::from((now.locks as i16).wrapping_sub(passed.locks)),
        };
        counts.changes -= self.looks_between(&counts, now).filter(|look| look.act.changes()).count() as u64;
        counts
    }
}
