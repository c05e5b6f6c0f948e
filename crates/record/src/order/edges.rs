//! What reads of the words that threads wait for have to come behind in a replay, and which of these words are locks.
//!
//! A plain read comes behind the store that it saw. An atomic update steps back: it comes behind the earliest store
//! with which it would have gone on the same way, so that arrivals at a counter are free of each other while the last
//! one waits for all. Locks that are taken by an exchange are arbitrated anew.

use rustc_hash::{FxHashMap, FxHashSet};

use super::changes::{Change, Changes, OfThread as ChangesOfThread, place_behind};
use super::rounds::{Found, Place};
use super::sharing::{Sharing, WORD_BYTES, word_of};
use super::updates::{exchanges, update_of, uses_result};
use super::walk::What;
use crate::code::{Program, SlotKind};
use crate::event::{Clock, Event, SpinReleaseKind, ThreadId};
use crate::reader::Record;

/// A store that changes a word, in the order of all.
#[derive(Clone, Copy, Debug)]
struct Store {
    number: u64,
    thread: usize,
    step: u64,
    clock: Clock,
    address: u64,
    /// What it found and left, of an atomic update.
    change: Option<(u64, u64)>,
    /// Whether an exchange or a comparison made it: nothing that counts.
    exchanges: bool,
}

#[derive(Clone, Copy, Debug)]
struct Read {
    number: u64,
    thread: usize,
    step: u64,
    place: Place,
    word: u64,
    /// How many stores to the word came before.
    behind: usize,
    /// Of an atomic update, what it found, and by how much it changes it.
    update: Option<(u64, i64)>,
    /// The block or event that came next.
    outcome: u32,
}

/// A lock that a thread has from one place to another.
#[derive(Clone, Copy, Debug)]
struct Held {
    object: u64,
    from: u64,
    to: u64,
}

#[derive(Default)]
struct OfThread {
    in_call: bool,
    runs: usize,
    /// Reads that wait for their outcome, by their number in `reads`.
    open: Vec<usize>,
    held: Vec<Held>,
}

pub(super) struct Edges<'a> {
    program: &'a Program,
    sharing: &'a Sharing<'a>,
    found: &'a Found,
    threads: Vec<OfThread>,
    stores: FxHashMap<u64, Vec<Store>>,
    reads: Vec<Read>,
    sequence: u64,
    clock: Clock,
    behind_clock: u64,
    /// Where steps at which locks are handed on stand in the process clock.
    places: FxHashMap<(usize, u64), Clock>,
}

impl<'a> Edges<'a> {
    pub(super) fn new(record: &'a Record, sharing: &'a Sharing<'a>, found: &'a Found) -> Self {
        Self {
            program: record.program(),
            sharing,
            found,
            threads: (0..record.threads()).map(|_| OfThread::default()).collect(),
            stores: FxHashMap::default(),
            reads: Vec::new(),
            sequence: 0,
            clock: Clock(0),
            behind_clock: 0,
            places: found
                .queue_locks
                .iter()
                .flat_map(|(_, tenures)| tenures)
                .flat_map(|tenure| {
                    [Some(tenure.step), tenure.given.map(|(step, _)| step)].map(|step| (tenure.thread, step))
                })
                .filter_map(|(thread, step)| Some(((thread, step?), Clock(0))))
                .collect(),
        }
    }

    pub(super) fn take_in(&mut self, thread: usize, step: u64, what: What<'_>) {
        match what {
            What::Event(event) => {
                if let Some(clock) = event.clock()
                    && clock > self.clock
                {
                    (self.clock, self.behind_clock) = (clock, 0);
                }
                self.event(thread, event);
            }
            What::Block { id, slots } => self.block(thread, step, id, slots),
        }
    }

    fn event(&mut self, thread: usize, event: &Event) {
        let state = &mut self.threads[thread];
        match *event {
            Event::CallBegin => state.in_call = true,
            Event::CallEnd => state.in_call = false,
            Event::MutexLock { object, .. } | Event::SpinLock { object, .. } | Event::WriteLock { object, .. } => {
                self.sequence += 1;
                state.held.push(Held { object, from: self.sequence, to: u64::MAX });
            }
            Event::MutexUnlock { object, .. } | Event::SpinUnlock { object, .. } | Event::RwUnlock { object, .. } => {
                self.sequence += 1;
                let last = state.held.iter_mut().rev().find(|held| held.object == object && held.to == u64::MAX);
                if let Some(held) = last {
                    held.to = self.sequence;
                }
            }
            _ => {}
        }
    }

    fn is_left_out(&mut self, thread: usize, step: u64) -> bool {
        let state = &mut self.threads[thread];
        let runs = &self.found.runs[thread];
        while runs.get(state.runs).is_some_and(|&(_, to)| to <= step) {
            state.runs += 1;
        }
        runs.get(state.runs).is_some_and(|&(from, _)| from <= step)
    }

    fn block(&mut self, thread: usize, step: u64, id: u32, slots: &[u64]) {
        if self.threads[thread].in_call || self.is_left_out(thread, step) {
            return;
        }
        if let Some(place) = self.places.get_mut(&(thread, step)) {
            self.behind_clock += 1;
            *place = place_behind(self.clock, self.behind_clock);
        }
        for read in self.threads[thread].open.drain(..) {
            self.reads[read].outcome = id;
        }
        let block = self.program.block(id);
        for (at, (slot, &address)) in block.slots.iter().zip(slots).enumerate() {
            if !matches!(slot.kind, SlotKind::Load | SlotKind::Store | SlotKind::Update) || slot.size > 8 {
                continue;
            }
            let word = word_of(address);
            let update = if slot.kind == SlotKind::Update { update_of(block, at, slots) } else { None };
            let is_known = self.found.words.contains(&word) || self.stores.contains_key(&word);
            if is_known || (update.is_some() && self.sharing.is_shared(word)) {
                self.touch(thread, step, (id, at as u16), address, slot.kind, update);
            }
        }
    }

    fn touch(
        &mut self,
        thread: usize,
        step: u64,
        place: Place,
        address: u64,
        kind: SlotKind,
        update: Option<(u64, u64)>,
    ) {
        let word = word_of(address);
        self.sequence += 1;
        let number = self.sequence;
        let block = self.program.block(place.0);
        let stores = self.stores.entry(word).or_default();
        let reads = kind == SlotKind::Load || (update.is_some() && uses_result(block, place.1));
        if reads {
            let update = update.map(|(old, new)| (old, new.wrapping_sub(old) as i64));
            let read = Read { number, thread, step, place, word, behind: stores.len(), update, outcome: 0 };
            self.threads[thread].open.push(self.reads.len());
            self.reads.push(read);
        }
        let changes = match update {
            Some((old, new)) => old != new,
            None => kind != SlotKind::Load,
        };
        if changes {
            self.behind_clock += 1;
            let clock = place_behind(self.clock, self.behind_clock);
            let exchanges = update.is_some() && exchanges(block, place.1);
            stores.push(Store { number, thread, step, clock, address, change: update, exchanges });
        }
    }

    /// The words that are locks by themselves, with how many of their stores belong to them.
    fn locks(&self) -> FxHashSet<u64> {
        // Whoever sees it taken does not go on.
        let mut seen_taken: FxHashSet<u64> = FxHashSet::default();
        for read in self.reads.iter().filter(|read| read.update.is_none() && read.behind % 2 == 1) {
            if self.stores[&read.word][read.behind - 1].thread != read.thread {
                seen_taken.insert(read.word);
            }
        }
        let is_lock = |word: u64, stores: &Vec<Store>| {
            let takers = stores.iter().step_by(2);
            if seen_taken.contains(&word) || takers.clone().all(|store| store.thread == stores[0].thread) {
                return false;
            }
            let Some(free) = stores.first().and_then(|first| first.change).map(|(old, _)| old) else { return false };
            stores.len() > 1
                && stores.chunks(2).all(|pair| {
                    let takes = pair[0].exchanges && pair[0].change.is_some_and(|(old, _)| old == free);
                    let gives = pair.get(1).is_none_or(|give| {
                        give.thread == pair[0].thread && give.change.is_none_or(|(_, new)| new == free)
                    });
                    takes && gives
                })
        };
        self.stores.iter().filter(|(word, stores)| is_lock(**word, stores)).map(|(&word, _)| word).collect()
    }

    /// Words to which two or more threads add.
    fn counters(&self) -> FxHashSet<u64> {
        let is_counter = |stores: &Vec<Store>| {
            let mut adding = stores.iter().filter(|store| store.change.is_some() && !store.exchanges);
            adding.next().is_some_and(|first| adding.any(|other| other.thread != first.thread))
        };
        self.stores.iter().filter(|(_, stores)| is_counter(stores)).map(|(&word, _)| word).collect()
    }

    pub(super) fn finish(mut self, frames: &[Vec<u64>]) -> Changes {
        let locks = self.locks();
        let mut words: FxHashSet<u64> = self.found.words.difference(&locks).copied().collect();
        words.extend(self.counters().difference(&locks));
        for (word, tenures) in &self.found.queue_locks {
            words.remove(word);
            for (_, given) in tenures.iter().filter_map(|tenure| tenure.given) {
                words.remove(&given);
            }
        }
        let mut threads = vec![ChangesOfThread::default(); self.threads.len()];
        for (thread, runs) in self.found.runs.iter().enumerate() {
            threads[thread].changes.extend(runs.iter().map(|&(from, to)| (from, Change::Skip(to))));
            threads[thread].frames = frames[thread].clone();
        }
        self.arbitrate(&locks, &mut threads);
        self.hand_on(&locks, &mut threads);
        let outcomes = self.outcomes(&words);
        let mut wanted: FxHashSet<(u64, usize)> = FxHashSet::default();
        let mut known: FxHashMap<(usize, u64, usize), usize> = FxHashMap::default();
        for read in &self.reads {
            if !words.contains(&read.word) {
                continue;
            }
            let stores = &self.stores[&read.word];
            let mut behind = read.behind;
            let is_counted = read.update.is_some();
            if let Some((_, by)) = read.update {
                let group = &outcomes[&(read.word, read.place, by)];
                while behind > 0
                    && let Some((old, _)) = stores[behind - 1].change
                    && group.leads_to(old) == Some(read.outcome)
                {
                    behind -= 1;
                }
            }
            // The last store of each other thread among the first `behind`.
            let mut seen: Vec<usize> = Vec::new();
            for at in (0..behind).rev() {
                let store = &stores[at];
                if seen.contains(&store.thread) {
                    continue;
                }
                seen.push(store.thread);
                if store.thread != read.thread {
                    let last = known.entry((read.thread, read.word, store.thread)).or_insert(usize::MAX);
                    if *last == usize::MAX || *last < at {
                        *last = at;
                        wanted.insert((read.word, at));
                        self.wait(read, store, &mut threads);
                    }
                }
                if !is_counted && !self.is_stepped_back(read.word, &outcomes) {
                    break;
                }
            }
        }
        for (word, at) in wanted {
            let store = &self.stores[&word][at];
            let kind = if store.change.is_some() { SpinReleaseKind::Update } else { SpinReleaseKind::Store };
            let event = Event::SpinRelease { clock: store.clock, object: store.address, kind, lock: 0 };
            threads[store.thread].changes.push((store.step, Change::Insert(event)));
        }
        Changes::new(threads)
    }

    fn is_stepped_back(&self, word: u64, outcomes: &FxHashMap<(u64, Place, i64), Outcomes>) -> bool {
        outcomes.keys().any(|key| key.0 == word)
    }

    fn wait(&self, read: &Read, store: &Store, threads: &mut [ChangesOfThread]) {
        let held = &self.threads[read.thread].held;
        let lends =
            held.iter().filter(|held| held.from < read.number && read.number < held.to && held.from > store.number);
        let event = Event::SpinWait {
            clock: store.clock,
            object: read.word * WORD_BYTES,
            wake: store.clock,
            maker: ThreadId(store.thread as u32),
            lends: lends.count() as u64,
        };
        // An atomic update happens, and then waits for those that it is to come behind.
        let step = if read.update.is_some() { read.step + 1 } else { read.step };
        threads[read.thread].changes.push((step, Change::Insert(event)));
    }

    /// Locks are taken and given back.
    fn arbitrate(&mut self, locks: &FxHashSet<u64>, threads: &mut [ChangesOfThread]) {
        for word in locks {
            for pair in self.stores[word].chunks(2) {
                let object = pair[0].address;
                for (store, kind) in pair.iter().zip([SpinReleaseKind::TakesLock, SpinReleaseKind::GivesLock]) {
                    let event = Event::SpinRelease { clock: store.clock, object, kind, lock: object };
                    threads[store.thread].changes.push((store.step, Change::Insert(event)));
                }
                let to = pair.get(1).map_or(u64::MAX, |give| give.number);
                self.threads[pair[0].thread].held.push(Held { object, from: pair[0].number, to });
            }
        }
    }

    /// So are those that are handed on; whose last owner kept it is not taken by that one.
    fn hand_on(&self, locks: &FxHashSet<u64>, threads: &mut [ChangesOfThread]) {
        for (word, tenures) in self.found.queue_locks.iter().filter(|(word, _)| !locks.contains(word)) {
            let lock = word * WORD_BYTES;
            for (tenure, (step, given)) in tenures.iter().filter_map(|tenure| Some((tenure, tenure.given?))) {
                let uses = [
                    (tenure.step, lock, SpinReleaseKind::TakesLock),
                    (step, given * WORD_BYTES, SpinReleaseKind::GivesLock),
                ];
                for (step, object, kind) in uses {
                    let clock = self.places.get(&(tenure.thread, step)).copied().unwrap_or_default();
                    let event = Event::SpinRelease { clock, object, kind, lock };
                    threads[tenure.thread].changes.push((step, Change::Insert(event)));
                }
            }
        }
    }

    /// How threads went on from what their updates found.
    fn outcomes(&self, words: &FxHashSet<u64>) -> FxHashMap<(u64, Place, i64), Outcomes> {
        let mut groups: FxHashMap<(Place, i64), Outcomes> = FxHashMap::default();
        let updates = || {
            self.reads
                .iter()
                .filter_map(|read| Some((read, read.update?)))
                .filter(|(read, _)| words.contains(&read.word))
        };
        for (read, (old, by)) in updates() {
            groups.entry((read.place, by)).or_default().add(old, read.outcome);
        }
        updates().map(|(read, (_, by))| ((read.word, read.place, by), groups[&(read.place, by)].clone())).collect()
    }
}

/// What came of each value that updates at a place found.
#[derive(Clone, Debug, Default)]
struct Outcomes {
    of: std::collections::BTreeMap<u64, Option<u32>>,
}

impl Outcomes {
    fn add(&mut self, value: u64, outcome: u32) {
        let known = self.of.entry(value).or_insert(Some(outcome));
        if *known != Some(outcome) {
            *known = None;
        }
    }

    /// Of a value that was never found, what came of the nearest.
    fn leads_to(&self, value: u64) -> Option<u32> {
        if let Some(outcome) = self.of.get(&value) {
            return *outcome;
        }
        let below = self.of.range(..value).next_back();
        let above = self.of.range(value..).next();
        match (below, above) {
            (Some((low, outcome)), Some((high, _))) if value - low <= high - value => *outcome,
            (_, Some((_, outcome))) | (Some((_, outcome)), None) => *outcome,
            (None, None) => None,
        }
    }
}
