//! Reads that nothing puts behind the store which they saw: a thread found there what another had already stored while
//! being recorded, and would have waited, or gone another way, where that comes later.
//!
//! Calls, system calls, locks and atomic updates say what comes behind what; a read of plain memory that is behind its
//! store by none of them, and under no lock, is a word by which threads tell each other something, whether or not any
//! of them has been seen to wait for it.

use rustc_hash::{FxHashMap, FxHashSet};

use super::found::Found;
use super::log::{Kind, Logged};
use super::words::{Words, word_of};
use crate::event::{Clock, Event};

/// What an event says of order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sync {
    /// Behind it is what comes behind an `Acquires` of the same.
    Releases(u64),
    Acquires(u64),
    Both(u64),
    Creates(usize),
    Joins(usize),
    /// A thread comes to it; when all have that do in this generation, they are behind it.
    Arrives(u64, u64),
}

/// Beside a channel's number: not an address.
const CHANNELS: u64 = 1 << 63;

impl Sync {
    pub(super) fn of(event: &Event) -> Option<Self> {
        Some(match *event {
            Event::ThreadCreate { thread, .. } => Self::Creates(thread.0 as usize),
            Event::ThreadJoin { thread, .. } => Self::Joins(thread.0 as usize),
            Event::MutexLock { object, .. }
            | Event::SpinLock { object, .. }
            | Event::ReadLock { object, .. }
            | Event::WriteLock { object, .. }
            | Event::SemaphoreWait { object, .. } => Self::Acquires(object),
            Event::MutexUnlock { object, .. }
            | Event::SpinUnlock { object, .. }
            | Event::RwUnlock { object, .. }
            | Event::SemaphorePost { object, .. }
            | Event::ConditionSignal { object, .. }
            | Event::ConditionBroadcast { object, .. } => Self::Releases(object),
            Event::ConditionWait { object, .. }
            | Event::FutexWait { object, .. }
            | Event::FutexWake { object, .. }
            | Event::AttemptFailed { object, .. } => Self::Both(object),
            Event::BarrierWait { object, generation, .. } => Self::Arrives(object, generation),
            Event::Supply { object, .. } => Self::Releases(CHANNELS | object),
            Event::Consume { object, .. } => Self::Acquires(CHANNELS | object),
            _ => return None,
        })
    }
}

/// What calls say of order: when, by which thread, and what.
#[derive(Default)]
pub(super) struct Syncs {
    all: Vec<(When, usize, Sync)>,
    /// By thread, the clock at which its last call began.
    called: FxHashMap<usize, Clock>,
}

/// A place in the process clock; whether it is behind all that comes up to the next.
type When = (Clock, bool);

impl Syncs {
    /// A thread comes to an event, at a place in the process clock.
    pub(super) fn take_in(&mut self, thread: usize, event: &Event, now: Clock) {
        if matches!(event, Event::CallBegin) {
            self.called.insert(thread, now);
        }
        let Some(sync) = Sync::of(event) else { return };
        let when = (event.clock().unwrap_or(now), false);
        self.all.push((when, thread, sync));
        if let Event::ConditionWait { mutex, .. } = *event {
            let begun = self.called.get(&thread).copied().unwrap_or(now);
            self.all.push(((begun, true), thread, Sync::Releases(mutex)));
            self.all.push((when, thread, Sync::Acquires(mutex)));
        }
    }
}

/// Of each thread, how much of the log is behind it; of those beyond the last, nothing.
type Behind = Vec<u32>;

fn join(into: &mut Behind, other: &Behind) {
    into.resize(into.len().max(other.len()), 0);
    into.iter_mut().zip(other).for_each(|(own, other)| *own = (*own).max(*other));
}

fn set(behind: &mut Behind, thread: usize, to: u32) {
    behind.resize(behind.len().max(thread + 1), 0);
    behind[thread] = to;
}

/// Of one generation.
#[derive(Default)]
struct Barrier {
    arrived: Vec<usize>,
    to_come: usize,
    behind: Behind,
}

struct Covered<'a> {
    threads: Vec<Behind>,
    objects: FxHashMap<u64, Behind>,
    barriers: FxHashMap<(u64, u64), Barrier>,
    /// Words by which threads are known to tell each other something.
    words: FxHashMap<u64, Behind>,
    found: &'a Found,
    /// Who stored to each word last, and by which access in the log.
    last: FxHashMap<u64, (usize, u32)>,
}

impl Covered<'_> {
    fn of_object(&mut self, object: u64) -> &mut Behind {
        self.objects.entry(object).or_default()
    }

    /// One thread behind all that another has done; a record may name threads that it does not have.
    fn come_behind(&mut self, thread: usize, other: usize) {
        if let Some(behind) = self.threads.get(other).cloned()
            && let Some(own) = self.threads.get_mut(thread)
        {
            join(own, &behind);
        }
    }

    fn pass(&mut self, thread: usize, sync: Sync) {
        match sync {
            Sync::Releases(object) => {
                let behind = self.threads[thread].clone();
                join(self.of_object(object), &behind);
            }
            Sync::Acquires(object) => {
                let behind = self.of_object(object).clone();
                join(&mut self.threads[thread], &behind);
            }
            Sync::Both(object) => {
                self.pass(thread, Sync::Acquires(object));
                self.pass(thread, Sync::Releases(object));
            }
            Sync::Creates(other) => self.come_behind(other, thread),
            Sync::Joins(other) => self.come_behind(thread, other),
            Sync::Arrives(object, generation) => {
                let barrier = self.barriers.entry((object, generation)).or_default();
                join(&mut barrier.behind, &self.threads[thread]);
                barrier.arrived.push(thread);
                barrier.to_come -= 1;
                if barrier.to_come == 0 {
                    barrier.arrived.iter().for_each(|other| join(&mut self.threads[*other], &barrier.behind));
                    self.barriers.remove(&(object, generation));
                }
            }
        }
    }

    /// An access that comes next, by its number from 0 in the log. If it is a read that nothing puts behind its store,
    /// that of this store.
    fn take_in(&mut self, at: u32, access: &Logged) -> Option<u32> {
        let (thread, word) = (access.thread as usize, word_of(access.address));
        set(&mut self.threads[thread], thread, at + 1);
        let is_told = access.kind == Kind::Update || self.found.words.contains(&word) || self.words.contains_key(&word);
        if is_told {
            let of_word = self.words.entry(word).or_default();
            join(&mut self.threads[thread], of_word);
            if access.kind != Kind::Read {
                join(of_word, &self.threads[thread]);
            }
        }
        if access.kind != Kind::Read {
            self.last.insert(word, (thread, at));
            return None;
        }
        let &(other, store) = self.last.get(&word)?;
        if is_told || other == thread || self.threads[thread].get(other).is_some_and(|behind| *behind > store) {
            return None;
        }
        set(&mut self.threads[thread], other, store + 1);
        Some(store)
    }
}

/// Reads that nothing puts behind the stores which they saw.
#[derive(Default)]
pub(super) struct Uncovered {
    /// By thread, step and slot.
    pub reads: FxHashSet<(usize, u64, u16)>,
    /// The stores of which it is not known where they were, by their numbers from 0 in the log.
    pub unplaced: FxHashSet<usize>,
}

pub(super) fn uncovered(words: &Words, found: &Found, threads: usize) -> Uncovered {
    let mut syncs = found.syncs.all.clone();
    syncs.sort_unstable();
    let mut barriers: FxHashMap<_, Barrier> = FxHashMap::default();
    for &(_, _, sync) in &syncs {
        if let Sync::Arrives(object, generation) = sync {
            barriers.entry((object, generation)).or_default().to_come += 1;
        }
    }
    let handed_on = found.queue_locks.iter().flat_map(|(word, tenures)| {
        let given = tenures.iter().filter_map(|tenure| tenure.given.map(|(_, word)| word));
        given.chain([*word]).map(|word| (word, Behind::new()))
    });
    let mut covered = Covered {
        threads: vec![Behind::new(); threads],
        objects: FxHashMap::default(),
        barriers,
        words: handed_on.collect(),
        found,
        last: FxHashMap::default(),
    };
    let mut syncs = syncs.into_iter().peekable();
    let mut uncovered = Uncovered::default();
    for (at, access) in words.log.iter().enumerate() {
        let now: When = (words.clock(access.number), false);
        while let Some((_, thread, sync)) = syncs.next_if(|(when, ..)| *when <= now) {
            covered.pass(thread, sync);
        }
        let thread = access.thread as usize;
        let Some(store) = covered.take_in(at as u32, access) else { continue };
        if found.run_at(thread, access.step).is_none() {
            uncovered.reads.insert((thread, access.step, access.place.1));
            if !words.log.get(store as usize).is_exact() {
                uncovered.unplaced.insert(store as usize);
            }
        }
    }
    uncovered
}
