//! What polled words are for, where the recorder found it out only in the course of the recording: the stores that it
//! did not know it of are given their kind from what the whole record says. A wait at a word that is a lock names the
//! store that was seen, which is whose turn it was in the recording; it is made one for the lock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::event::{Clock, Event, SpinReleaseKind, ThreadId};

/// The threads that make stores to polled words, by the stores' places.
pub type StoreMakers = Arc<FxHashMap<Clock, ThreadId>>;

/// Words that count arrivals, and words that are a lock by themselves (test-and-set).
#[derive(Default)]
pub(super) struct WordUses {
    counters: BTreeSet<u64>,
    locks: BTreeSet<u64>,
    /// Takings and givings of such locks that the record calls an update or a store.
    lock_uses: BTreeMap<Clock, SpinReleaseKind>,
    /// Whether some thread waits for a store while it has a lock,
    waits_under_lock: bool,
    /// and the thread whose events come now, with how many locks it has.
    thread: ThreadId,
    locked: u32,
}

/// A thread's last update of a lock's word that is not known to have got it the lock.
#[derive(Clone, Copy)]
enum Hold {
    Tried(Clock),
    Held,
}

/// Follows one thread after the other through the record, once all words are known.
pub(super) struct LockUseFinder<'a> {
    uses: &'a mut WordUses,
    /// Those of all stores to polled words, if threads wait for some under a lock.
    makers: &'a mut FxHashMap<Clock, ThreadId>,
    thread: ThreadId,
    holds: BTreeMap<u64, Hold>,
}

impl WordUses {
    /// Takes in what events say of the words' use.
    pub(super) fn learn(&mut self, thread: ThreadId, events: &[Event]) {
        if thread != self.thread {
            (self.thread, self.locked) = (thread, 0);
        }
        for event in events {
            self.learn_of_locks(event);
            match *event {
                Event::SpinRelease { object, kind: SpinReleaseKind::Count, .. } => _ = self.counters.insert(object),
                Event::SpinRelease { object, kind: SpinReleaseKind::TakesLock, lock, .. } if lock == object => {
                    self.locks.insert(object);
                }
                _ => {}
            }
        }
    }

    fn learn_of_locks(&mut self, event: &Event) {
        use SpinReleaseKind::{GivesLock, TakesLock};
        match *event {
            Event::MutexLock { .. }
            | Event::SpinLock { .. }
            | Event::WriteLock { .. }
            | Event::SpinRelease { kind: TakesLock, .. } => self.locked += 1,
            Event::MutexUnlock { .. }
            | Event::SpinUnlock { .. }
            | Event::RwUnlock { .. }
            | Event::SpinRelease { kind: GivesLock, .. } => self.locked = self.locked.saturating_sub(1),
            Event::SpinWait { wake: Some(_), .. } | Event::SpinRelease { after: Some(_), .. } => {
                self.waits_under_lock |= self.locked > 0;
            }
            _ => {}
        }
    }

    /// Whether all events have to be read once more, by a [`LockUseFinder`].
    pub(super) fn needs_second_look(&self) -> bool {
        !self.locks.is_empty() || self.waits_under_lock
    }

    pub(super) fn lock_use_finder<'a>(&'a mut self, makers: &'a mut FxHashMap<Clock, ThreadId>) -> LockUseFinder<'a> {
        LockUseFinder { uses: self, makers, thread: ThreadId(0), holds: BTreeMap::new() }
    }

    /// Gives events the kinds that the recorder did not know yet.
    pub(super) fn complete(&self, events: &mut [Event]) {
        if self.counters.is_empty() && self.locks.is_empty() {
            return;
        }
        for event in events {
            if let Event::SpinWait { clock, object, lends, .. } = *event
                && self.locks.contains(&object)
            {
                *event = Event::LockRead { clock, object, lends };
            }
            let Event::SpinRelease { clock, object, kind, lock, .. } = event else { continue };
            if *kind == SpinReleaseKind::Update && self.counters.contains(object) {
                *kind = SpinReleaseKind::Count;
            } else if let Some(&found) = self.lock_uses.get(clock) {
                *kind = found;
                *lock = *object;
            }
        }
    }
}

impl LockUseFinder<'_> {
    /// The next events of a thread; those of one thread come in order and together.
    ///
    /// An update gets the lock if the thread's next step at the word is to store to it; if it is to poll the word, or
    /// to get the lock by another update, the first one found it taken.
    pub(super) fn follow(&mut self, thread: ThreadId, events: &[Event]) {
        if thread != self.thread {
            self.holds.clear();
            self.thread = thread;
        }
        for event in events {
            if let Event::SpinRelease { clock, .. } = *event
                && self.uses.waits_under_lock
            {
                self.makers.insert(clock, thread);
            }
            match *event {
                Event::SpinWait { object, .. } if matches!(self.holds.get(&object), Some(Hold::Tried(_))) => {
                    self.holds.remove(&object);
                }
                Event::SpinRelease { clock, object, kind, .. } if self.uses.locks.contains(&object) => {
                    self.release(clock, object, kind);
                }
                _ => {}
            }
        }
    }

    fn release(&mut self, clock: Clock, word: u64, kind: SpinReleaseKind) {
        use SpinReleaseKind::{Count, GivesLock, LeftOut, Store, TakesLock, Update};
        match kind {
            TakesLock => _ = self.holds.insert(word, Hold::Held),
            GivesLock => _ = self.holds.remove(&word),
            Store | Update => match self.holds.remove(&word) {
                Some(hold) => {
                    if let Hold::Tried(tried) = hold {
                        self.uses.lock_uses.insert(tried, TakesLock);
                    }
                    self.uses.lock_uses.insert(clock, GivesLock);
                }
                None if kind == Update => _ = self.holds.insert(word, Hold::Tried(clock)),
                None => {}
            },
            Count | LeftOut => {}
        }
    }
}
