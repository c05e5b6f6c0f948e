//! Synchronisation among the threads of a process, arbitrated again in simulated time (`free` order).
//!
//! Locks go to the thread that asks first in simulated time. Waits whose wake-up the record names wait for that very
//! event; one that comes early is remembered. This is a pure state machine: it is told what a thread does and says
//! which threads may go on.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};

use super::passed_clocks::PassedClocks;
use fencepost_record::{Clock, Event, FutexOutcome, ThreadId};

/// What became of an operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Whether the thread goes on at once; if not, it will be among the `woken` of another decision.
    pub proceeds: bool,
    /// Other threads that may go on now, in order.
    pub woken: Vec<ThreadId>,
}

/// Why a thread is blocked, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// For a lock; a reader or not.
    Lock { object: u64, reads: bool },
    /// For a wake-up; then for a mutex, if it is a condition's.
    Wake { clock: Clock, object: u64, mutex: Option<u64> },
    /// For the other participants of a barrier.
    Barrier { object: u64, generation: u64 },
    /// For the end of a thread.
    Join { thread: ThreadId },
    /// For the very store of another thread to a word.
    Word { store: Clock, maker: ThreadId, object: u64 },
}

#[derive(Clone, Debug, Default)]
struct Lock {
    writer: Option<ThreadId>,
    /// How often the writer has locked it (recursive mutexes).
    depth: u32,
    readers: u32,
    queue: VecDeque<(ThreadId, bool)>,
}

impl Lock {
    fn is_free(&self) -> bool {
        self.writer.is_none() && self.readers == 0 && self.queue.is_empty()
    }
}

#[derive(Clone, Debug, Default)]
struct Barrier {
    arrived: u64,
    waiting: Vec<ThreadId>,
}

/// The synchronisation objects of a process and the threads that wait at them.
#[derive(Clone, Debug, Default)]
pub struct Synchronisation {
    locks: FxHashMap<u64, Lock>,
    barriers: FxHashMap<(u64, u64), Barrier>,
    given: PassedClocks,
    awaited: FxHashMap<Clock, Vec<ThreadId>>,
    joined: FxHashMap<ThreadId, Vec<ThreadId>>,
    ended: FxHashSet<ThreadId>,
    waits: FxHashMap<ThreadId, (Clock, Wait)>,
    /// Locks that threads have but for those that they share with readers, in the order in which they got them.
    held: FxHashMap<ThreadId, Vec<u64>>,
    /// Locks that threads gave back while they wait for a store, with how often they had them: to be had again, the
    /// last first.
    regains: FxHashMap<ThreadId, Vec<(u64, u32)>>,
    /// Locks that threads went past without getting them, when nothing else could go on.
    passed: FxHashSet<(ThreadId, u64)>,
    /// Threads that have begun to wait since it was looked at last whether they wait for each other.
    blocked_anew: Vec<ThreadId>,
}

impl Synchronisation {
    /// `thread` has come to `event`.
    pub fn apply(&mut self, thread: ThreadId, event: &Event) -> Decision {
        let decision = self.decide(thread, event);
        self.untangle(thread, decision)
    }

    fn decide(&mut self, thread: ThreadId, event: &Event) -> Decision {
        match *event {
            Event::MutexLock { clock, object }
            | Event::SpinLock { clock, object }
            | Event::WriteLock { clock, object } => self.acquire(thread, clock, object, false),
            Event::ReadLock { clock, object } => self.acquire(thread, clock, object, true),
            Event::MutexUnlock { object, .. } | Event::SpinUnlock { object, .. } | Event::RwUnlock { object, .. } => {
                let mut decision = Decision { proceeds: true, woken: Vec::new() };
                self.release(thread, object, &mut decision);
                decision
            }
            Event::ConditionWait { clock, object, mutex, wake, timed_out } => {
                let mut decision = Decision::default();
                self.release(thread, mutex, &mut decision);
                let wake = if timed_out { None } else { wake };
                self.wait_for_wake(thread, clock, object, wake, Some(mutex), &mut decision);
                decision
            }
            Event::SemaphoreWait { clock, object, wake } => {
                let mut decision = Decision::default();
                self.wait_for_wake(thread, clock, object, wake, None, &mut decision);
                decision
            }
            Event::FutexWait { clock, object, wake, outcome } => {
                let mut decision = Decision::default();
                let wake = if outcome == FutexOutcome::Woken { wake } else { None };
                self.wait_for_wake(thread, clock, object, wake, None, &mut decision);
                decision
            }
            Event::ConditionSignal { clock, .. }
            | Event::ConditionBroadcast { clock, .. }
            | Event::SemaphorePost { clock, .. }
            | Event::FutexWake { clock, .. }
            | Event::Supply { clock, .. } => self.wake(clock),
            Event::Consume { clock, object, supply } => {
                let mut decision = Decision::default();
                self.wait_for_wake(thread, clock, object, supply, None, &mut decision);
                decision
            }
            Event::BarrierWait { clock, object, participants, generation } => {
                self.arrive(thread, clock, object, participants, generation)
            }
            Event::ThreadJoin { clock, thread: other } => self.join(thread, clock, other),
            Event::ThreadExit { .. } => self.end(thread),
            _ => Decision { proceeds: true, woken: Vec::new() },
        }
    }

    /// Whether so many wake-ups are remembered that [`Self::forget_before`] is due.
    pub fn remembers_many(&self) -> bool {
        self.given.has_many()
    }

    /// Words of 64 places that are remembered.
    #[cfg(test)]
    pub fn remembered(&self) -> usize {
        self.given.words()
    }

    /// Every thread has passed `clock` in its record: a wake-up before it has happened or will not, so that no thread
    /// has to wait for one, and none is remembered.
    pub fn forget_before(&mut self, clock: Clock) {
        self.given.fill_before(clock);
    }

    /// `thread` has nothing more to do; threads that join it go on.
    pub fn end(&mut self, thread: ThreadId) -> Decision {
        self.ended.insert(thread);
        let woken = self.joined.remove(&thread).unwrap_or_default();
        for woken in &woken {
            self.waits.remove(woken);
        }
        Decision { proceeds: true, woken }
    }

    /// `thread` has read a word behind the store that `maker` makes at `store`. In the meantime others may have the
    /// last `lends` locks that it got: a thread that polls under a lock gives it back and tries again.
    pub fn wait_for_word(
        &mut self,
        thread: ThreadId,
        clock: Clock,
        object: u64,
        (store, maker): (Clock, ThreadId),
        lends: u64,
    ) -> Decision {
        if self.given.contains(store) {
            return Decision { proceeds: true, woken: Vec::new() };
        }
        let mut decision = Decision::default();
        self.lend_last(thread, lends, &mut decision);
        self.awaited.entry(store).or_default().push(thread);
        self.block(thread, clock, Wait::Word { store, maker, object });
        self.untangle(thread, decision)
    }

    /// Gives back the last locks that `thread` got while it waits; it gets all of them again before it goes on.
    fn lend_last(&mut self, thread: ThreadId, count: u64, decision: &mut Decision) {
        let held = self.held.get(&thread).map_or(0, Vec::len);
        self.lend_from(thread, held.saturating_sub(usize::try_from(count).unwrap_or(usize::MAX)), decision);
    }

    /// Likewise, but for the first `kept`.
    fn lend_from(&mut self, thread: ThreadId, kept: usize, decision: &mut Decision) {
        let lent = self.held.get(&thread).map_or_else(Vec::new, |held| held[kept..].to_vec());
        for &object in lent.iter().rev() {
            let depth = std::mem::replace(&mut self.lock(object).depth, 1);
            self.regains.entry(thread).or_default().push((object, depth));
            self.release(thread, object, decision);
        }
    }

    fn block(&mut self, thread: ThreadId, clock: Clock, wait: Wait) {
        self.waits.insert(thread, (clock, wait));
        self.blocked_anew.push(thread);
    }

    /// Finds threads that wait for each other because one of them, while it waits at a word, has a lock that another
    /// one needs first: recorded were both one after the other, so it cannot have come to the lock before. It gives the
    /// lock back, and what it got since, until its wait is over.
    fn untangle(&mut self, thread: ThreadId, mut decision: Decision) -> Decision {
        while let Some(blocked) = self.blocked_anew.pop() {
            if let Some((holder, lock)) = self.lock_in_circle(blocked) {
                let held = self.held.get(&holder).and_then(|held| held.iter().position(|&object| object == lock));
                if let Some(kept) = held {
                    self.lend_from(holder, kept, &mut decision);
                }
            }
        }
        let own = decision.woken.iter().position(|&woken| woken == thread);
        if let Some(own) = own {
            decision.woken.remove(own);
            decision.proceeds = true;
        }
        decision
    }

    /// A lock of a thread that waits at a word, among the threads that wait for each other with `first`.
    fn lock_in_circle(&self, first: ThreadId) -> Option<(ThreadId, u64)> {
        let mut waiting = first;
        let mut found = None;
        for _ in 0..self.waits.len() {
            let (_, wait) = self.waits.get(&waiting)?;
            let (next, lock) = match *wait {
                Wait::Lock { object, .. } => (self.locks.get(&object)?.writer?, Some(object)),
                Wait::Word { maker, .. } => (maker, None),
                Wait::Join { thread } => (thread, None),
                Wait::Wake { .. } | Wait::Barrier { .. } => return None,
            };
            let waits_at_word = |(_, wait): &(Clock, Wait)| matches!(wait, Wait::Word { .. });
            if let Some(lock) = lock
                && self.waits.get(&next).is_some_and(waits_at_word)
            {
                found = found.or(Some((next, lock)));
            }
            if next == first {
                return found;
            }
            waiting = next;
        }
        None
    }

    /// `thread` gets the lock that the word `lock` stands for, as soon as it is free.
    pub fn take_word(&mut self, thread: ThreadId, clock: Clock, lock: u64) -> Decision {
        if self.locks.get(&lock).is_some_and(|lock| lock.writer == Some(thread)) {
            return Decision { proceeds: true, woken: Vec::new() };
        }
        let decision = self.acquire(thread, clock, lock, false);
        self.untangle(thread, decision)
    }

    /// The store of `thread` at `clock` has taken effect, by which it gives `lock` back.
    pub fn stored(&mut self, thread: ThreadId, clock: Clock, lock: Option<u64>) -> Decision {
        let mut decision = self.wake(clock);
        let held = |lock: &u64| self.locks.get(lock).is_some_and(|lock| lock.writer == Some(thread));
        if let Some(lock) = lock.filter(held) {
            self.release(thread, lock, &mut decision);
        }
        self.untangle(thread, decision)
    }

    /// Ends the wait whose event was recorded first, because no thread can go on: gives the thread. One that was to get
    /// a mutex after its wake-up still waits for that while another thread has it.
    pub fn force(&mut self) -> Option<ThreadId> {
        loop {
            let (&thread, _) = self.waits.iter().min_by_key(|(thread, (clock, _))| (*clock, **thread))?;
            let (clock, wait) = self.withdraw(thread)?;
            match wait {
                Wait::Wake { mutex: Some(mutex), .. } if !self.acquire(thread, clock, mutex, false).proceeds => {}
                Wait::Lock { object, .. } => {
                    self.passed.insert((thread, object));
                    return Some(thread);
                }
                _ if !self.regain(thread, clock) => {}
                _ => return Some(thread),
            }
        }
    }

    /// `thread` waits no longer, for whatever it did.
    pub fn give_up(&mut self, thread: ThreadId) {
        self.withdraw(thread);
    }

    fn withdraw(&mut self, thread: ThreadId) -> Option<(Clock, Wait)> {
        let (waited, wait) = self.waits.remove(&thread)?;
        match wait {
            Wait::Lock { object, .. } => self.lock(object).queue.retain(|(waiting, _)| *waiting != thread),
            Wait::Wake { clock, .. } | Wait::Word { store: clock, .. } => {
                if let Some(waiting) = self.awaited.get_mut(&clock) {
                    waiting.retain(|waiting| *waiting != thread);
                }
            }
            Wait::Barrier { object, generation } => {
                if let Some(barrier) = self.barriers.get_mut(&(object, generation)) {
                    barrier.waiting.retain(|waiting| *waiting != thread);
                }
            }
            Wait::Join { thread: other } => {
                if let Some(waiting) = self.joined.get_mut(&other) {
                    waiting.retain(|waiting| *waiting != thread);
                }
            }
        }
        Some((waited, wait))
    }

    /// Which thread waits for what, one line each, in the order of the threads.
    pub fn waiting(&self) -> Vec<String> {
        let mut waits: Vec<_> = self.waits.iter().collect();
        waits.sort_unstable_by_key(|(thread, _)| **thread);
        let line = |(thread, (_, wait)): (&ThreadId, &(Clock, Wait))| {
            let thread = thread.0;
            match wait {
                Wait::Lock { object, reads } => {
                    let how = if *reads { "to read" } else { "to write" };
                    let holder = match self.locks.get(object) {
                        Some(lock) if lock.writer.is_some() => {
                            format!("thread {} has", lock.writer.map_or(0, |writer| writer.0))
                        }
                        Some(lock) if lock.readers > 0 => format!("{} readers have", lock.readers),
                        _ => "others are before it for".to_owned(),
                    };
                    format!("thread {thread} waits {how} for the lock {object:#x}: {holder} it")
                }
                Wait::Wake { clock, object, .. } => {
                    format!("thread {thread} waits at {object:#x} for the wake-up at clock {}", clock.0)
                }
                Wait::Word { store, object, .. } => {
                    format!("thread {thread} waits at {object:#x} for the store at clock {}", store.0)
                }
                Wait::Barrier { object, generation } => {
                    format!("thread {thread} waits at the barrier {object:#x}, generation {generation}")
                }
                Wait::Join { thread: other } => format!("thread {thread} waits for thread {} to end", other.0),
            }
        };
        waits.into_iter().map(line).collect()
    }

    fn lock(&mut self, object: u64) -> &mut Lock {
        self.locks.entry(object).or_default()
    }

    fn acquire(&mut self, thread: ThreadId, clock: Clock, object: u64, reads: bool) -> Decision {
        let lock = self.locks.entry(object).or_default();
        let is_free = lock.writer.is_none() && lock.queue.is_empty() && (reads || lock.readers == 0);
        if is_free {
            if reads {
                lock.readers += 1;
            } else {
                (lock.writer, lock.depth) = (Some(thread), 1);
                self.held.entry(thread).or_default().push(object);
            }
        } else if lock.writer == Some(thread) {
            // A recursive mutex, taken again by its owner.
            lock.depth += 1;
            return Decision { proceeds: true, woken: Vec::new() };
        } else {
            lock.queue.push_back((thread, reads));
            self.block(thread, clock, Wait::Lock { object, reads });
        }
        Decision { proceeds: is_free, woken: Vec::new() }
    }

    fn release(&mut self, thread: ThreadId, object: u64, decision: &mut Decision) {
        if self.passed.remove(&(thread, object)) {
            // It never had the lock: its owner keeps it.
            return;
        }
        let lock = self.locks.entry(object).or_default();
        if let Some(writer) = lock.writer {
            lock.depth -= 1;
            if lock.depth > 0 {
                return;
            }
            lock.writer = None;
            forget_held(&mut self.held, writer, object);
        } else {
            lock.readers = lock.readers.saturating_sub(1);
        }
        let mut granted = Vec::new();
        while let Some(&(thread, reads)) = lock.queue.front() {
            let fits = lock.writer.is_none() && (reads || lock.readers == 0);
            if !fits {
                break;
            }
            lock.queue.pop_front();
            if reads {
                lock.readers += 1;
            } else {
                (lock.writer, lock.depth) = (Some(thread), 1);
                self.held.entry(thread).or_default().push(object);
            }
            granted.push(thread);
        }
        if lock.is_free() {
            self.locks.remove(&object);
        }
        // The thread that had it before goes on when it has all of its locks again.
        for thread in granted {
            let clock = self.waits.remove(&thread).map(|(clock, _)| clock).unwrap_or_default();
            if self.regains.contains_key(&thread) {
                self.has_regained(thread);
            }
            if self.regain(thread, clock) {
                decision.woken.push(thread);
            }
        }
    }

    /// `thread` has the last of the locks that it is to have again.
    fn has_regained(&mut self, thread: ThreadId) {
        let Some((object, depth)) = self.regains.get_mut(&thread).and_then(Vec::pop) else { return };
        self.lock(object).depth = depth;
    }

    /// Takes again what `thread` gave back when it began to wait, as far as that is free; whether it has all of it.
    fn regain(&mut self, thread: ThreadId, clock: Clock) -> bool {
        while let Some(&(object, _)) = self.regains.get(&thread).and_then(|locks| locks.last()) {
            if !self.acquire(thread, clock, object, false).proceeds {
                return false;
            }
            self.has_regained(thread);
        }
        self.regains.remove(&thread);
        true
    }

    fn wait_for_wake(
        &mut self,
        thread: ThreadId,
        clock: Clock,
        object: u64,
        wake: Option<Clock>,
        mutex: Option<u64>,
        decision: &mut Decision,
    ) {
        match wake {
            Some(wake) if !self.given.contains(wake) => {
                self.awaited.entry(wake).or_default().push(thread);
                self.waits.insert(thread, (clock, Wait::Wake { clock: wake, object, mutex }));
                decision.proceeds = false;
            }
            _ => decision.proceeds = mutex.is_none_or(|mutex| self.acquire(thread, clock, mutex, false).proceeds),
        }
    }

    fn wake(&mut self, clock: Clock) -> Decision {
        self.given.insert(clock);
        let mut decision = Decision { proceeds: true, woken: Vec::new() };
        for thread in self.awaited.remove(&clock).unwrap_or_default() {
            let goes_on = match self.waits.remove(&thread) {
                Some((waited, Wait::Wake { mutex: Some(mutex), .. })) => {
                    self.acquire(thread, waited, mutex, false).proceeds
                }
                Some((waited, _)) => self.regain(thread, waited),
                None => true,
            };
            if goes_on {
                decision.woken.push(thread);
            }
        }
        decision
    }

    fn arrive(&mut self, thread: ThreadId, clock: Clock, object: u64, participants: u64, generation: u64) -> Decision {
        if participants == 0 {
            return Decision { proceeds: true, woken: Vec::new() };
        }
        let barrier = self.barriers.entry((object, generation)).or_default();
        barrier.arrived += 1;
        if barrier.arrived < participants {
            barrier.waiting.push(thread);
            self.waits.insert(thread, (clock, Wait::Barrier { object, generation }));
            return Decision::default();
        }
        let woken = self.barriers.remove(&(object, generation)).map(|barrier| barrier.waiting).unwrap_or_default();
        for woken in &woken {
            self.waits.remove(woken);
        }
        Decision { proceeds: true, woken }
    }

    fn join(&mut self, thread: ThreadId, clock: Clock, other: ThreadId) -> Decision {
        let ended = self.ended.contains(&other);
        if !ended {
            self.joined.entry(other).or_default().push(thread);
            self.block(thread, clock, Wait::Join { thread: other });
        }
        Decision { proceeds: ended, woken: Vec::new() }
    }
}

/// `thread` does not have the lock any more.
fn forget_held(held: &mut FxHashMap<ThreadId, Vec<u64>>, thread: ThreadId, lock: u64) {
    let Some(locks) = held.get_mut(&thread) else { return };
    if let Some(at) = locks.iter().rposition(|&object| object == lock) {
        locks.remove(at);
    }
    if locks.is_empty() {
        held.remove(&thread);
    }
}

#[cfg(test)]
mod tests;
