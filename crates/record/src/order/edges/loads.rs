//! Loads of words that threads update atomically: whose store each saw, so that a replay can count those that come
//! before it.
//!
//! A load steps back, like an update: to the earliest store after which the thread goes on the same way, as far as the
//! values lie between two of which it has done so. It waits for that store, but not under a lock, where whoever is to
//! store might wait for it: there it is noted which store it is. All others are counted, likes of them once. What is
//! seen of a lock's word says nothing: it is arbitrated anew.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Edges, Read, StepsBack, Tenure, is_under_lock};
use crate::event::{Clock, Event};
use crate::order::changes::{Change, OfThread};

impl Edges<'_> {
    /// `words` are those of which each read has an edge, `alone` other reads that have one, by their number.
    pub(super) fn note_loads(
        &self,
        locks: &FxHashMap<u64, Vec<Tenure>>,
        words: &FxHashSet<u64>,
        alone: &FxHashSet<usize>,
        under_locks: &[Vec<(u64, u64)>],
        wanted: &mut FxHashSet<(u64, usize)>,
        threads: &mut [OfThread],
    ) {
        let mut handed_on: FxHashSet<u64> = self.found.queue_locks.iter().map(|(word, _)| *word).collect();
        let tenures = self.found.queue_locks.iter().flat_map(|(_, tenures)| tenures);
        handed_on.extend(tenures.filter_map(|tenure| tenure.given.map(|(_, word)| word)));
        let is_updated = |word: &u64| self.stores[word].iter().any(|store| store.change.is_some());
        let is_arbitrated = |word: &u64| locks.contains_key(word) || handed_on.contains(word);
        let updated: FxHashSet<u64> =
            self.stores.keys().filter(|word| is_updated(word) && !is_arbitrated(word)).copied().collect();
        let free: FxHashSet<u64> = updated.difference(words).copied().collect();
        let outcomes = self.outcomes_of_loads(&free, |word, behind| self.value_found(word, behind));
        let mut stepped: FxHashMap<(u64, super::Place, u32), StepsBack> = FxHashMap::default();
        let mut waited: FxHashSet<(usize, Clock)> = FxHashSet::default();
        let mut seen: FxHashSet<Clock> = FxHashSet::default();
        // Of each frame of a thread, where the first of the others is, and how many there are.
        let mut others: FxHashMap<(usize, usize), (u64, u64)> = FxHashMap::default();
        let mut count_other = |read: &Read, changes: &OfThread| {
            let frame = changes.frames.partition_point(|first| *first <= read.step);
            let (first, count) = others.entry((read.thread, frame)).or_insert((read.step, 0));
            *first = read.step.min(*first);
            *count += 1;
        };
        let loads = self.reads.iter().enumerate().filter(|(_, read)| read.update.is_none());
        for (number, read) in loads.filter(|(_, read)| updated.contains(&read.word)) {
            let stores = &self.stores[&read.word];
            let is_free = free.contains(&read.word) && !read.is_confirmed && !alone.contains(&number);
            let behind = if is_free {
                let steps = stepped.entry((read.word, read.place, read.outcome)).or_default();
                let outcomes = &outcomes[&read.place];
                steps.back_by(
                    |behind| self.value_found(read.word, behind),
                    read.behind,
                    |old| outcomes.between(old) == Some(read.outcome),
                )
            } else {
                0
            };
            let store = behind.checked_sub(1).map(|at| &stores[at]);
            let store = store.filter(|store| store.is_named() && store.thread != read.thread);
            if let Some(store) = store.filter(|_| !is_under_lock(read, &under_locks[read.thread])) {
                if waited.insert((read.thread, store.clock)) {
                    self.wait_for(read, behind - 1, wanted, threads);
                }
                count_other(read, &threads[read.thread]);
            } else if let Some(store) = store {
                let loads = Event::Loads { count: 1, store: Some(store.clock) };
                threads[read.thread].changes.push((read.step, Change::Insert(loads)));
                if seen.insert(store.clock) {
                    let event = Event::StoreSeen { clock: store.clock };
                    threads[store.thread].changes.push((store.step, Change::Insert(event)));
                }
            } else {
                count_other(read, &threads[read.thread]);
            }
        }
        for ((thread, _), (step, count)) in others {
            threads[thread].changes.push((step, Change::Insert(Event::Loads { count, store: None })));
        }
    }
}
