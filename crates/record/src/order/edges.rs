//! What reads of the words that threads wait for have to come behind in a replay, and which of these words are locks.
//!
//! A plain read comes behind the store that it saw. An atomic update steps back: it comes behind the earliest store
//! with which it would have gone on the same way, so that arrivals at a counter are free of each other while the last
//! one waits for all. Locks that are taken by an exchange are arbitrated anew.

mod loads;

use rustc_hash::{FxHashMap, FxHashSet};

use super::changes::{Change, Changes, OfThread as ChangesOfThread, PLACES, place_behind};
use super::covered::Uncovered;
use super::found::{Found, Held};
use super::history::Place;
use super::log::{Kind, Logged};
use super::updates::{compares, exchanges, uses_result};
use super::words::{Undecided, WORD_BYTES, Words, word_of};
use crate::code::Program;
use crate::event::{Clock, Event, SpinReleaseKind, ThreadId};
use crate::reader::Record;

/// Plain reads of a thread of which one may say what a comparison expects.
const LOADS: usize = 4;

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
    /// Whether its instruction is known, and not only one that stored nearby later.
    is_exact: bool,
}

impl Store {
    /// Whether a wait can say which one it is: at which instruction, and by a place of its own in the process clock.
    fn is_named(&self) -> bool {
        self.is_exact && self.clock.0 % PLACES != PLACES - 1
    }
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
    /// Of a comparison, the plain read that said what to expect, by its number in `reads`.
    confirms: Option<usize>,
    /// Of such a read.
    is_confirmed: bool,
}

/// A thread has a lock from one store to its word to another.
#[derive(Clone, Copy, Debug)]
struct Tenure {
    take: usize,
    give: Option<usize>,
}

/// Who had the lock that the word is, if it is one: taken by an exchange that finds one certain value, given back by
/// the same thread to that value; in between others may only mark by exchanges that they wait.
fn tenures(stores: &[Store]) -> Option<Vec<Tenure>> {
    let (free, _) = stores.first()?.change?;
    let mut tenures: Vec<Tenure> = Vec::new();
    for (at, store) in stores.iter().enumerate() {
        match tenures.last_mut().filter(|tenure| tenure.give.is_none()) {
            None => {
                let (old, _) = store.change?;
                if !store.exchanges || old != free {
                    return None;
                }
                tenures.push(Tenure { take: at, give: None });
            }
            Some(held) if stores[held.take].thread == store.thread => {
                if store.change.is_some_and(|(_, new)| new != free) {
                    return None;
                }
                held.give = Some(at);
            }
            Some(_) => {
                let (_, new) = store.change?;
                if !store.exchanges || new == free {
                    return None;
                }
            }
        }
    }
    let first = stores[tenures.first()?.take].thread;
    let is_shared = tenures.iter().any(|tenure| stores[tenure.take].thread != first);
    (is_shared && tenures[0].give.is_some()).then_some(tenures)
}

/// How far back the last read of a word went that went on the same way.
#[derive(Clone, Copy, Debug, Default)]
struct StepsBack {
    from: usize,
    to: usize,
}

impl StepsBack {
    /// Over stores before which the word held what would have led on the same way, from behind so many of them.
    fn back(&mut self, stores: &[Store], from: usize, is_same: impl Fn(u64) -> bool) -> usize {
        self.back_by(|behind| stores[behind].change.map(|(old, _)| old), from, is_same)
    }

    /// Likewise; `value` is what the word held behind so many stores.
    fn back_by(&mut self, value: impl Fn(usize) -> Option<u64>, from: usize, is_same: impl Fn(u64) -> bool) -> usize {
        let mut at = from;
        while at != self.from && at > 0 && value(at - 1).is_some_and(&is_same) {
            at -= 1;
        }
        if at == self.from {
            at = self.to;
        }
        *self = Self { from, to: at };
        at
    }
}

fn key_of(access: &Logged) -> (usize, u64, u16, u64) {
    (access.thread as usize, access.step, access.place.1, word_of(access.address))
}

/// What comes at a step should come behind something of another thread.
fn drop_edge(thread: &mut ChangesOfThread, step: u64) {
    thread.changes.push((step, Change::Insert(Event::DroppedEdges { count: 1 })));
}

/// Whether the thread has a lock; `under_locks` are from where to where it has any.
fn is_under_lock(read: &Read, under_locks: &[(u64, u64)]) -> bool {
    let taken = under_locks.partition_point(|(from, _)| *from <= read.number);
    taken.checked_sub(1).is_some_and(|last| under_locks[last].1 > read.number)
}

pub(super) struct Edges<'a> {
    program: &'a Program,
    found: Found,
    /// Of each thread, the last plain reads, by their number in `reads`.
    loads: Vec<Vec<usize>>,
    /// Words whose accesses are kept: they were waited for, or are updated.
    known: FxHashSet<u64>,
    /// Reads that nothing else puts behind the stores that they saw, by thread, step, slot and word.
    uncovered: FxHashSet<(usize, u64, u16, u64)>,
    stores: FxHashMap<u64, Vec<Store>>,
    reads: Vec<Read>,
    clock: Clock,
    behind_clock: u64,
    /// Plain reads in rounds that were left out: place, word, and how many stores to it came before.
    failed: FxHashSet<(Place, u64, usize)>,
    /// Threads and steps at which locks are handed on.
    handed_on: FxHashSet<(usize, u64)>,
    /// Where these stand in the process clock.
    places: FxHashMap<(usize, u64), Clock>,
    undecided: Vec<Undecided>,
}

impl<'a> Edges<'a> {
    /// Of what is logged.
    pub(super) fn of(record: &'a Record, words: &Words, found: Found, uncovered: Uncovered) -> Self {
        let mut handed_on = FxHashSet::default();
        for tenure in found.queue_locks.iter().flat_map(|(_, tenures)| tenures) {
            handed_on.insert((tenure.thread, tenure.step));
            handed_on.extend(tenure.given.map(|(step, _)| (tenure.thread, step)));
        }
        let mut edges = Self {
            program: record.program(),
            known: found.words.clone(),
            uncovered: uncovered.reads,
            loads: vec![Vec::new(); record.threads()],
            found,
            stores: FxHashMap::default(),
            reads: Vec::new(),
            failed: FxHashSet::default(),
            clock: Clock(0),
            behind_clock: 0,
            handed_on,
            places: FxHashMap::default(),
            undecided: words.undecided.clone(),
        };
        for access in words.log.iter().filter(|access| edges.uncovered.contains(&key_of(access))) {
            edges.known.insert(word_of(access.address));
        }
        for access in words.log.iter() {
            let clock = words.clock(access.number);
            if clock != edges.clock {
                (edges.clock, edges.behind_clock) = (clock, 0);
            }
            edges.take_in(access, words.log.update(access));
        }
        edges
    }

    fn take_in(&mut self, access: &Logged, update: Option<(u64, u64)>) {
        let (thread, word) = (access.thread as usize, word_of(access.address));
        if self.found.run_at(thread, access.step).is_some() {
            // A round that is left out reads what lets no thread go on.
            if access.kind == Kind::Read && self.known.contains(&word) {
                self.failed.insert((access.place, word, self.stores.get(&word).map_or(0, Vec::len)));
            }
            return;
        }
        if self.handed_on.remove(&(thread, access.step)) {
            self.behind_clock += 1;
            self.places.insert((thread, access.step), place_behind(self.clock, self.behind_clock));
        }
        if update.is_some() {
            self.known.insert(word);
        }
        if self.known.contains(&word) {
            self.touch(access, word, update);
        }
    }

    fn touch(&mut self, access: &Logged, word: u64, update: Option<(u64, u64)>) {
        let Logged { number, step, place, .. } = *access;
        let thread = access.thread as usize;
        let block = self.program.block(place.0);
        let stores = self.stores.entry(word).or_default();
        if access.kind == Kind::Read || (update.is_some() && uses_result(block, place.1)) {
            let update = update.map(|(old, new)| (old, new.wrapping_sub(old) as i64));
            let behind = stores.len();
            let loads = &mut self.loads[thread];
            let mut confirms = None;
            if update.is_none() {
                if loads.len() == LOADS {
                    loads.remove(0);
                }
                loads.push(self.reads.len());
            } else if compares(block, place.1) {
                let reads = &self.reads;
                let last = loads.iter().rev().find(|&&load| reads[load].word == word).copied();
                confirms = last.filter(|&load| reads[load].behind == behind);
                if let Some(load) = confirms {
                    self.reads[load].is_confirmed = true;
                }
            }
            // What is left out is no way to go on.
            let next = step + u64::from(access.outcome_after);
            let outcome = self.found.run_at(thread, next).map_or(access.outcome, |run| run.block);
            self.reads.push(Read {
                number,
                thread,
                step,
                place,
                word,
                behind,
                update,
                outcome,
                confirms,
                is_confirmed: false,
            });
        }
        let changes = match update {
            Some((old, new)) => old != new,
            None => access.kind != Kind::Read,
        };
        if changes {
            self.behind_clock += 1;
            let clock = place_behind(self.clock, self.behind_clock);
            let exchanges = update.is_some() && exchanges(block, place.1);
            let (address, is_exact) = (access.address, access.is_exact());
            stores.push(Store { number, thread, step, clock, address, change: update, exchanges, is_exact });
        }
    }

    /// The words that are locks by themselves, with who had them.
    fn locks(&self) -> FxHashMap<u64, Vec<Tenure>> {
        let tenures = self.stores.iter().filter_map(|(&word, stores)| Some((word, tenures(stores)?)));
        let mut locks: FxHashMap<u64, Vec<Tenure>> = tenures.collect();
        // Whoever sees one taken does not go on, but to take it.
        for read in self.reads.iter().filter(|read| read.update.is_none()) {
            let Some(tenures) = locks.get(&read.word) else { continue };
            let before = tenures.partition_point(|tenure| tenure.take < read.behind);
            let Some(last) = before.checked_sub(1).map(|at| tenures[at]) else { continue };
            let stores = &self.stores[&read.word];
            let is_taken = last.give.is_none_or(|give| give >= read.behind);
            let next = stores[read.behind..].iter().find(|store| store.thread == read.thread);
            if is_taken && stores[last.take].thread != read.thread && next.is_none_or(|next| !next.exchanges) {
                locks.remove(&read.word);
            }
        }
        locks
    }

    /// Words to which two or more threads add.
    fn counters(&self) -> FxHashSet<u64> {
        let is_counter = |stores: &Vec<Store>| {
            let mut adding = stores.iter().filter(|store| store.change.is_some() && !store.exchanges);
            adding.next().is_some_and(|first| adding.any(|other| other.thread != first.thread))
        };
        self.stores.iter().filter(|(_, stores)| is_counter(stores)).map(|(&word, _)| word).collect()
    }

    pub(super) fn finish(mut self, frames: Vec<Vec<u64>>) -> Changes {
        let locks = self.locks();
        let mut words = self.counters();
        words.extend(&self.found.words);
        words.retain(|word| !locks.contains_key(word));
        for (word, tenures) in &self.found.queue_locks {
            words.remove(word);
            for (_, given) in tenures.iter().filter_map(|tenure| tenure.given) {
                words.remove(&given);
            }
        }
        let mut threads: Vec<_> =
            frames.into_iter().map(|frames| ChangesOfThread { frames, ..ChangesOfThread::default() }).collect();
        for (thread, runs) in self.found.runs.iter().enumerate() {
            threads[thread].changes.extend(runs.iter().map(|run| (run.from, Change::Skip(run.to))));
            threads[thread].keep_polled(&self.found.polled[thread]);
        }
        for span in self.found.handed_out.spans() {
            for (step, begin) in [(span.from, true), (span.to, false)] {
                let step = self.found.run_at(span.thread, step).map_or(step, |run| run.to);
                threads[span.thread].changes.push((step, Change::Insert(Event::HandedOut { begin })));
            }
        }
        self.arbitrate(&locks, &mut threads);
        self.hand_on(&locks, &mut threads);
        for held in &mut self.found.held {
            held.sort_unstable_by_key(|held| held.from);
        }
        let under_locks: Vec<_> = (0..threads.len()).map(|thread| self.found.under_locks(thread)).collect();
        let of_threads = self.stores_of_threads(&words);
        let (outcomes, stepped_back) = self.outcomes(&words);
        let outcomes_of_loads = self.outcomes_of_loads(&words, |word, behind| self.value(word, behind));
        let mut stepped: FxHashMap<(u64, Place, i64, u32), StepsBack> = FxHashMap::default();
        let mut wanted: FxHashSet<(u64, usize)> = FxHashSet::default();
        let mut known: FxHashMap<(usize, u64, usize), usize> = FxHashMap::default();
        let mut alone: FxHashSet<usize> = FxHashSet::default();
        for (number, read) in self.reads.iter().enumerate() {
            if let Some(at) =
                self.uncovered_store(read, &under_locks[read.thread]).filter(|_| !words.contains(&read.word))
            {
                alone.insert(number);
                self.wait_for(read, at, &mut wanted, &mut threads);
            }
            if !words.contains(&read.word) || read.is_confirmed {
                continue;
            }
            let stores = &self.stores[&read.word];
            let mut behind = read.behind;
            let is_counted = read.update.is_some();
            if let Some(load) = read.confirms.map(|load| &self.reads[load]) {
                let group = &outcomes_of_loads[&load.place];
                let steps = stepped.entry((read.word, load.place, 0, load.outcome)).or_default();
                behind = steps.back(stores, behind, |old| group.of.get(&old) == Some(&Some(load.outcome)));
            } else if let Some((_, by)) = read.update {
                let group = &outcomes[&(read.place, by)];
                let steps = stepped.entry((read.word, read.place, by, read.outcome)).or_default();
                behind = steps.back(stores, behind, |old| group.leads_to(old) == Some(read.outcome));
            }
            for at in Self::last_stores(&of_threads[&read.word], behind) {
                let store = &stores[at];
                if store.thread != read.thread {
                    let last = known.entry((read.thread, read.word, store.thread)).or_insert(usize::MAX);
                    if *last == usize::MAX || *last < at {
                        *last = at;
                        self.wait_for(read, at, &mut wanted, &mut threads);
                    }
                }
                if !is_counted && !stepped_back.contains(&read.word) {
                    break;
                }
            }
        }
        for &(thread, step) in &self.found.unnamed {
            drop_edge(&mut threads[thread], step);
        }
        for &Undecided { thread, step, count } in &self.undecided {
            let step = self.found.run_at(thread, step).map_or(step, |run| run.to);
            threads[thread].changes.push((step, Change::Insert(Event::DroppedEdges { count })));
        }
        self.note_loads(&locks, &words, &alone, &under_locks, &mut wanted, &mut threads);
        for (word, at) in wanted {
            let store = &self.stores[&word][at];
            let kind = if store.change.is_some() { SpinReleaseKind::Update } else { SpinReleaseKind::Store };
            let event = Event::SpinRelease { clock: store.clock, object: store.address, kind, lock: 0 };
            threads[store.thread].changes.push((store.step, Change::Insert(event)));
        }
        Changes::new(threads)
    }

    /// The store that a read saw, if nothing else puts it behind that. Under a lock, who is to store might wait for it.
    fn uncovered_store(&self, read: &Read, under_locks: &[(u64, u64)]) -> Option<usize> {
        if !self.uncovered.contains(&(read.thread, read.step, read.place.1, read.word)) {
            return None;
        }
        if is_under_lock(read, under_locks) {
            return None;
        }
        let at = read.behind.checked_sub(1)?;
        let store = &self.stores[&read.word][at];
        (store.thread != read.thread).then_some(at)
    }

    /// Which of the stores to each word are each thread's.
    fn stores_of_threads(&self, words: &FxHashSet<u64>) -> FxHashMap<u64, Vec<Vec<usize>>> {
        let by_thread = |stores: &[Store]| {
            let mut numbers: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
            for (number, store) in stores.iter().enumerate() {
                numbers.entry(store.thread).or_default().push(number);
            }
            numbers.into_values().collect()
        };
        words.iter().filter_map(|word| Some((*word, by_thread(self.stores.get(word)?)))).collect()
    }

    /// The last store of each thread among the first `behind`, the last of all first.
    fn last_stores(of_threads: &[Vec<usize>], behind: usize) -> Vec<usize> {
        let last = |numbers: &Vec<usize>| {
            let before = numbers.partition_point(|number| *number < behind);
            before.checked_sub(1).map(|last| numbers[last])
        };
        let mut stores: Vec<usize> = of_threads.iter().filter_map(last).collect();
        stores.sort_unstable_by(|one, other| other.cmp(one));
        stores
    }

    /// Makes a read wait for the store to its word with this number, which is then wanted; if nothing can say which one
    /// it is, there is an edge less.
    fn wait_for(&self, read: &Read, at: usize, wanted: &mut FxHashSet<(u64, usize)>, threads: &mut [ChangesOfThread]) {
        let store = &self.stores[&read.word][at];
        if store.is_named() {
            wanted.insert((read.word, at));
            self.wait(read, store, threads);
        } else {
            drop_edge(&mut threads[read.thread], read.step);
        }
    }

    fn wait(&self, read: &Read, store: &Store, threads: &mut [ChangesOfThread]) {
        let held = &self.found.held[read.thread];
        let first = held.partition_point(|held| held.from <= store.number);
        let taken = held[first..].iter().take_while(|held| held.from < read.number);
        let lends = taken.filter(|held| read.number < held.to);
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
    fn arbitrate(&mut self, locks: &FxHashMap<u64, Vec<Tenure>>, threads: &mut [ChangesOfThread]) {
        for (word, tenures) in locks {
            let stores = &self.stores[word];
            for tenure in tenures {
                let (take, give) = (&stores[tenure.take], tenure.give.map(|give| &stores[give]));
                let object = take.address;
                let uses = [(Some(take), SpinReleaseKind::TakesLock), (give, SpinReleaseKind::GivesLock)];
                for (store, kind) in uses.into_iter().filter_map(|(store, kind)| Some((store?, kind))) {
                    let event = Event::SpinRelease { clock: store.clock, object, kind, lock: object };
                    threads[store.thread].changes.push((store.step, Change::Insert(event)));
                }
                let to = give.map_or(u64::MAX, |give| give.number);
                self.found.held[take.thread].push(Held { object, from: take.number, to });
            }
        }
        // Whoever slept for one takes it as soon as it is free, whoever gives it back.
        for &(thread, step, word) in &self.found.sleeps {
            if locks.contains_key(&word) {
                threads[thread].changes.push((step, Change::Skip(step + 1)));
            }
        }
    }

    /// So are those that are handed on; whose last owner kept it is not taken by that one.
    fn hand_on(&self, locks: &FxHashMap<u64, Vec<Tenure>>, threads: &mut [ChangesOfThread]) {
        for (word, tenures) in self.found.queue_locks.iter().filter(|(word, _)| !locks.contains_key(word)) {
            let lock = word * WORD_BYTES;
            for (tenure, (step, given)) in tenures.iter().filter_map(|tenure| Some((tenure, tenure.given?))) {
                let is_known = |step| self.places.contains_key(&(tenure.thread, step));
                if !(self.undecided.is_empty() || is_known(tenure.step) && is_known(step)) {
                    continue;
                }
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

    /// What a word held behind so many of its stores, if they say.
    fn value(&self, word: u64, behind: usize) -> Option<u64> {
        let stores = self.stores.get(&word)?;
        match behind.checked_sub(1) {
            Some(last) => stores[last].change.map(|(_, new)| new),
            None => stores.first()?.change.map(|(old, _)| old),
        }
    }

    /// Likewise; a plain store's value is what the next update found.
    fn value_found(&self, word: u64, behind: usize) -> Option<u64> {
        let next = || self.stores.get(&word)?.get(behind)?.change.map(|(old, _)| old);
        self.value(word, behind).or_else(next)
    }

    /// How threads went on from what plain reads of these words found, as `value` says.
    fn outcomes_of_loads(
        &self,
        words: &FxHashSet<u64>,
        value: impl Fn(u64, usize) -> Option<u64>,
    ) -> FxHashMap<Place, Outcomes> {
        let mut groups: FxHashMap<Place, Outcomes> = FxHashMap::default();
        for read in self.reads.iter().filter(|read| read.update.is_none() && words.contains(&read.word)) {
            let group = groups.entry(read.place).or_default();
            if let Some(value) = value(read.word, read.behind) {
                group.add(value, read.outcome);
            }
        }
        for &(place, word, behind) in &self.failed {
            if let Some(value) = value(word, behind) {
                groups.entry(place).or_default().add(value, u32::MAX);
            }
        }
        groups
    }

    /// How threads went on from what their updates at a place found, and which words they updated.
    fn outcomes(&self, words: &FxHashSet<u64>) -> (FxHashMap<(Place, i64), Outcomes>, FxHashSet<u64>) {
        let mut groups: FxHashMap<(Place, i64), Outcomes> = FxHashMap::default();
        let mut updated = FxHashSet::default();
        for read in self.reads.iter().filter(|read| words.contains(&read.word)) {
            if let Some((old, by)) = read.update {
                groups.entry((read.place, by)).or_default().add(old, read.outcome);
                updated.insert(read.word);
            }
        }
        (groups, updated)
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

    /// Of a value that was never found, what came of those next to it, if that is the same.
    fn between(&self, value: u64) -> Option<u32> {
        let (below, above) = (self.of.range(..=value).next_back()?.1, self.of.range(value..).next()?.1);
        if below == above { *below } else { None }
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
