//! What a thread did lately, to look back at, and what it did in a round of a loop.

use rustc_hash::{FxHashMap, FxHashSet};

use super::outlines::{Access, Outlines, address_in};
use super::updates::update_of;
use super::words::{WORD_BYTES, Words};
use crate::code::{Program, SlotKind};

/// Blocks and events of a thread that a round may have begun at.
const HISTORY: u64 = 1 << 14;
/// So many are kept: rounds of a run are summed up late, if at all.
const KEPT: u64 = 1 << 15;
/// So many values of their slots are kept.
const KEPT_SLOTS: u64 = 1 << 17;
/// Nobody returns from more calls than he was in when there came to be a second thread.
const DEPTH_FIRST: usize = 1 << 20;
/// Between two looks of one wait.
pub(super) const LOOK_INSTRUCTIONS_MAX: u64 = 100;
/// A store to a word is looked for among so many blocks before one that stored nearby.
const STORE_AGO_MAX: usize = 512;
/// So many calls deep a thread's blocks are known.
const DEPTHS: usize = 1 << 12;
/// Blocks and events, and slots, after which it is looked for what will be forgotten.
const SUMMED_UP_EVERY: u64 = 1 << 12;
const SLOTS_SUMMED_UP_EVERY: u64 = 1 << 14;
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

/// An access to a word.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub place: Place,
    pub address: u64,
    pub word: u64,
    pub act: Act,
    pub seen: Version,
}

/// What the looks of a thread are found with.
#[derive(Clone, Copy)]
pub(super) struct Memory<'a> {
    pub thread: usize,
    pub program: &'a Program,
    pub outlines: &'a Outlines,
    pub words: &'a Words,
}

impl Memory<'_> {
    /// Whether another thread has stored to a word since the thread looked.
    pub(super) fn is_newer(&self, look: &Look) -> bool {
        self.words.is_newer(self.thread, look.word, look.seen)
    }

    pub(super) fn act(&self, id: u32, access: Access, slots: &[u64]) -> Act {
        let update = || update_of(self.program.block(id), access.slot.into(), slots);
        match access.kind {
            SlotKind::Load => Act::Reads,
            SlotKind::Update => update().map_or(Act::Stores, |(old, new)| Act::Updates(new.wrapping_sub(old) as i64)),
            _ => Act::Stores,
        }
    }
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
    instructions: u32,
    slots: u32,
    /// How far the one before it in the same call is, or 0.
    before: u16,
    loud: u16,
    locks: i16,
    stores: u16,
    updates: u16,
    others: u16,
}

/// All that a thread has done up to some place: the difference of two is what it did between them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub passed: u64,
    slots: u64,
    /// Of shared words, and atomic updates that change them.
    stores: u32,
    updates: u32,
    /// Looks at words that others may have stored to last.
    others: u32,
    pub instructions: u64,
    /// Events that are more than waiting may do.
    loud: u32,
    /// Locks that it has taken and not given back.
    pub locks: i32,
}

/// Where a round begins.
#[derive(Clone, Copy, Debug, Default)]
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
    /// Words that it left changed.
    pub changed: Vec<u64>,
}

/// A thread has looked at a word.
#[derive(Clone, Debug)]
pub(super) struct FirstLook {
    pub word: u64,
    /// Behind it.
    pub from: u64,
    /// Where it was, and where the thread looked again.
    pub places: Vec<Place>,
    /// Words that the thread has changed since.
    pub changed: Vec<u64>,
}

/// Words that are not left as they were found.
fn changed_words<'a>(looks: impl Iterator<Item = &'a Look>) -> Vec<u64> {
    let mut changes: FxHashMap<u64, Option<i64>> = FxHashMap::default();
    for look in looks {
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
    changes.into_iter().filter(|(_, change)| *change != Some(0)).map(|(word, _)| word).collect()
}

pub(super) struct History {
    /// The last ones, each at its number modulo [`KEPT`].
    passed: Vec<Passed>,
    /// Of the blocks among them, each at its number modulo [`KEPT_SLOTS`].
    slots: Vec<u64>,
    counts: Counts,
    depth: usize,
    /// By depth, from `depth_known` on, the number of the last one, and one more; 0 for none. What has returned is not
    /// there.
    last: Vec<u64>,
    depth_known: usize,
}

impl Default for History {
    fn default() -> Self {
        Self {
            passed: Vec::new(),
            slots: Vec::new(),
            counts: Counts::default(),
            depth: DEPTH_FIRST,
            last: Vec::new(),
            depth_known: DEPTH_FIRST,
        }
    }
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
    pub(super) fn pass_block(&mut self, step: u64, id: u32, instructions: u32, slots: &[u64]) -> bool {
        self.pass(step, Token::of_block(id));
        self.counts.instructions += u64::from(instructions);
        let at = (self.counts.slots % KEPT_SLOTS) as usize;
        match self.slots.get_mut(at..at + slots.len()) {
            Some(kept) => kept.copy_from_slice(slots),
            None => self.keep_slots(at, slots),
        }
        let before = self.counts.slots;
        self.counts.slots += slots.len() as u64;
        let is_time_for_slots = before / SLOTS_SUMMED_UP_EVERY != self.counts.slots / SLOTS_SUMMED_UP_EVERY;
        is_time_for_slots || self.counts.passed.is_multiple_of(SUMMED_UP_EVERY)
    }

    /// There is only as much room as the thread has had slots, or they begin anew.
    fn keep_slots(&mut self, at: usize, slots: &[u64]) {
        let needed = (at + slots.len()).next_power_of_two().min(KEPT_SLOTS as usize);
        self.slots.resize(needed.max(self.slots.len()), 0);
        for (at, slot) in (at..).zip(slots) {
            self.slots[at % KEPT_SLOTS as usize] = *slot;
        }
    }

    pub(super) fn pass_event(&mut self, step: u64, token: Token, is_loud: bool, takes_lock: i32) -> bool {
        self.pass(step, token);
        self.counts.loud = self.counts.loud.wrapping_add(is_loud.into());
        self.counts.locks += takes_lock;
        self.counts.passed.is_multiple_of(SUMMED_UP_EVERY)
    }

    #[inline]
    fn pass(&mut self, step: u64, token: Token) {
        let Counts { passed, slots, instructions, loud, locks, stores, updates, others } = self.counts;
        if self.depth_known + self.last.len() != self.depth + 1 {
            self.change_depth();
        }
        let last = self.last.last_mut().map_or(0, |last| std::mem::replace(last, passed + 1));
        let before = if last == 0 || passed + 1 - last > KEPT { 0 } else { (passed + 1 - last) as u16 };
        let passed_now = Passed {
            step,
            token,
            instructions: instructions as u32,
            slots: slots as u32,
            before,
            loud: loud as u16,
            locks: locks as i16,
            stores: stores as u16,
            updates: updates as u16,
            others: others as u16,
        };
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

    /// The block that came last changes a shared word.
    #[inline]
    pub(super) fn change(&mut self, act: Act) {
        let count = if act == Act::Stores { &mut self.counts.stores } else { &mut self.counts.updates };
        *count = count.wrapping_add(1);
    }

    /// The block that came last looks at a word that another thread may have stored to last.
    #[inline]
    pub(super) fn look_at_others(&mut self) {
        self.counts.others = self.counts.others.wrapping_add(1);
    }

    /// Whether it does so up to here.
    #[inline]
    pub(super) fn has_looked_at_others(&self, from: &Counts) -> bool {
        self.counts.others != from.others
    }

    /// Whether the thread has done nothing up to here that others could see.
    #[inline]
    pub(super) fn is_unseen_since(&self, from: &Counts) -> bool {
        let now = &self.counts;
        (now.loud, now.locks, now.stores, now.updates) == (from.loud, from.locks, from.stores, from.updates)
    }

    /// How many slots the thread's blocks have had up to here.
    pub(super) fn slots_since(&self, from: &Counts) -> u64 {
        self.counts.slots - from.slots
    }

    /// Whether what came at `counts` is too long ago for a round.
    pub(super) fn has_forgotten(&self, counts: &Counts) -> bool {
        self.counts.passed - counts.passed > HISTORY || self.counts.slots - counts.slots > KEPT_SLOTS / 2
    }

    /// Whether a round that began there has to be summed up now, if it ever is.
    pub(super) fn will_forget(&self, counts: &Counts) -> bool {
        self.counts.passed - counts.passed > KEPT - 2 * SUMMED_UP_EVERY
            || self.counts.slots - counts.slots > KEPT_SLOTS - 2 * SLOTS_SUMMED_UP_EVERY
    }

    fn passed_between(&self, from: &Counts, to: &Counts) -> impl Iterator<Item = &Passed> {
        (from.passed..to.passed).map(|number| &self.passed[(number % KEPT) as usize])
    }

    /// The values of a block that came here, if they are still there.
    fn slots(&self, passed: &Passed, into: &mut Vec<u64>, count: usize) -> bool {
        let ago = u64::from((self.counts.slots as u32).wrapping_sub(passed.slots));
        into.clear();
        if ago > KEPT_SLOTS {
            return false;
        }
        let first = self.counts.slots - ago;
        into.extend((first..first + count as u64).map(|at| self.slots[(at % KEPT_SLOTS) as usize]));
        true
    }

    /// Hands all accesses of a block that came here to `visit`, without what they saw.
    fn visit_block(&self, memory: Memory<'_>, passed: &Passed, slots: &mut Vec<u64>, mut visit: impl FnMut(Look)) {
        let Some(id) = passed.token.block() else { return };
        let accesses = memory.outlines.accesses(memory.outlines.block(id));
        if accesses.is_empty() || !self.slots(passed, slots, memory.program.block(id).slots.len()) {
            return;
        }
        for access in accesses {
            let (place, address) = ((id, access.slot), slots[usize::from(access.slot)]);
            let act = memory.act(id, *access, slots);
            for word in access.words(address) {
                visit(Look { place, address: address_in(word, address), word, act, seen: Version::default() });
            }
        }
    }

    fn looks_between(&self, memory: Memory<'_>, from: &Counts, to: &Counts) -> Vec<Look> {
        let (mut looks, mut slots) = (Vec::new(), Vec::new());
        let since =
            self.passed_between(from, to).next().map_or(0, |passed| memory.words.number(memory.thread, passed.step));
        for passed in self.passed_between(from, to) {
            self.visit_block(memory, passed, &mut slots, |look| {
                looks.push(Look { seen: memory.words.seen(memory.thread, passed.step, look.word, since), ..look });
            });
        }
        looks
    }

    /// Where a thread that looks at a word in the block with this number, or from there on, began to: behind the first
    /// of its looks at it, one soon behind the other. They may be in any code: a first look that the compiler has
    /// peeled off a loop, or loops that poll in one way and then in another.
    pub(super) fn first_look(&self, memory: Memory<'_>, word: u64, number: u64, not_before: u64) -> Option<FirstLook> {
        let (mut from, mut slots) = (None, Vec::new());
        let (mut changed, mut behind, mut places) = (Vec::new(), 0, Vec::new());
        let not_before = not_before.max(self.counts.passed.saturating_sub(KEPT));
        let end = memory.outlines.block(self.passed[(number % KEPT) as usize].token.block()?);
        let mut instructions = u64::from(end.instructions);
        for number in (not_before..number).rev() {
            if instructions > LOOK_INSTRUCTIONS_MAX {
                break;
            }
            let passed = &self.passed[(number % KEPT) as usize];
            let Some(block) = passed.token.block() else { continue };
            let so_far = changed.len();
            self.visit_block(memory, passed, &mut slots, |look| {
                if look.word == word && look.act == Act::Reads {
                    (from, instructions, behind) = (Some(passed.step + 1), 0, so_far);
                    places.push(look.place);
                } else if look.act.changes() {
                    changed.push(look.word);
                }
            });
            instructions += u64::from(memory.outlines.block(block).instructions);
        }
        changed.truncate(behind);
        changed.sort_unstable();
        changed.dedup();
        places.sort_unstable();
        places.dedup();
        Some(FirstLook { word, from: from?, places, changed })
    }

    /// The store to a word that came last, up to a step: its step, its place and its address.
    /// If it is not found, it came before the step that is given instead, and has no place.
    pub(super) fn last_store(&self, memory: Memory<'_>, word: u64, to: u64) -> Option<(u64, Place, u64)> {
        let kept = self.counts.passed.min(KEPT);
        let (mut below, mut above) = (self.counts.passed - kept, self.counts.passed);
        while below < above {
            let middle = below + (above - below) / 2;
            if self.passed[(middle % KEPT) as usize].step <= to { below = middle + 1 } else { above = middle }
        }
        let (mut slots, mut first) = (Vec::new(), to);
        for number in (self.counts.passed - kept..below).rev().take(STORE_AGO_MAX) {
            let passed = &self.passed[(number % KEPT) as usize];
            let mut found = None;
            self.visit_block(memory, passed, &mut slots, |look| {
                if look.word == word && look.act != Act::Reads {
                    found = Some((passed.step, look.place, look.address));
                }
            });
            first = passed.step;
            if found.is_some() {
                return found;
            }
        }
        Some((first, (0, 0), word * WORD_BYTES))
    }

    /// Whether a round up to here leaves shared memory as it found it, gives back its locks, and does nothing loud.
    pub(super) fn is_quiet_since(&self, memory: Memory<'_>, from: &Counts) -> bool {
        if self.counts.loud != from.loud || self.counts.locks != from.locks {
            return false;
        }
        if self.counts.updates == from.updates {
            return self.counts.stores == from.stores;
        }
        let looks = self.looks_between(memory, from, &self.counts);
        changed_words(looks.iter().filter(|look| memory.words.is_shared(look.word))).is_empty()
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// What the thread did between these places.
    pub(super) fn summary(&self, memory: Memory<'_>, from: &Counts, to: &Counts) -> Summary {
        let mut known: FxHashSet<u32> = FxHashSet::default();
        let path = self.passed_between(from, to).map(|passed| passed.token).filter(|token| known.insert(token.0));
        let path = path.collect();
        let mut known: FxHashSet<(u64, Place)> = FxHashSet::default();
        let looks = self.looks_between(memory, from, to);
        let last = looks.iter().rev().filter(|look| look.act != Act::Stores);
        let mut reads: Vec<Look> = last.filter(|look| known.insert((look.word, look.place))).copied().collect();
        reads.reverse();
        Summary { path, reads, changed: changed_words(looks.iter()) }
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
            if passed.before == 0 {
                return None;
            }
            number -= u64::from(passed.before);
        }
        None
    }

    fn counts_before(&self, number: u64, passed: &Passed) -> Counts {
        let now = &self.counts;
        Counts {
            passed: number,
            slots: now.slots - u64::from((now.slots as u32).wrapping_sub(passed.slots)),
            stores: now.stores.wrapping_sub((now.stores as u16).wrapping_sub(passed.stores).into()),
            updates: now.updates.wrapping_sub((now.updates as u16).wrapping_sub(passed.updates).into()),
            others: now.others.wrapping_sub((now.others as u16).wrapping_sub(passed.others).into()),
            instructions: now.instructions - u64::from((now.instructions as u32).wrapping_sub(passed.instructions)),
            loud: now.loud.wrapping_sub((now.loud as u16).wrapping_sub(passed.loud).into()),
            locks: now.locks - i32::from((now.locks as i16).wrapping_sub(passed.locks)),
        }
    }
}
