//! What the walk has found: who waited where for which words.

use rustc_hash::FxHashSet;

use super::covered::Syncs;
use super::handed_out::HandedOut;
use super::history::Place;
use super::polling::Polled;
use super::queue_locks::Tenure;
use super::words::{Words, word_of};

/// Rounds that waited, or what lies between looks at a word of which the last one sees a newer store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Run {
    pub from: u64,
    pub to: u64,
    /// The block at its end.
    pub block: u32,
}

/// They have also changed words that might turn out to be shared: then they were work.
pub(super) struct Provisional {
    pub thread: usize,
    pub run: Run,
    /// The words that they looked at, and where.
    pub looks: Vec<(u64, Place)>,
    pub changed: Vec<u64>,
}

/// A lock that a thread has from one place in the one sequence to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub object: u64,
    pub from: u64,
    pub to: u64,
}

#[derive(Default)]
pub(super) struct Found {
    /// Of each thread.
    pub runs: Vec<Vec<Run>>,
    pub held: Vec<Vec<Held>>,
    /// Of these, those that it still has.
    open: Vec<Vec<usize>>,
    /// By thread: rounds that are kept although they may have waited.
    pub polled: Vec<Vec<Polled>>,
    /// Words that were waited for.
    pub words: FxHashSet<u64>,
    /// Where they were read.
    places: FxHashSet<Place>,
    /// Locks that are handed on, by the words that threads update, with who had them.
    pub queue_locks: Vec<(u64, Vec<Tenure>)>,
    /// At futexes: thread, step and word.
    pub sleeps: Vec<(usize, u64, u64)>,
    pub handed_out: HandedOut,
    pub syncs: Syncs,
    /// Threads and steps at which they were woken, nobody knows by whom.
    pub unnamed: Vec<(usize, u64)>,
    provisional: Vec<Provisional>,
}

impl Found {
    pub(super) fn new(threads: usize) -> Self {
        let (held, open) = (vec![Vec::new(); threads], vec![Vec::new(); threads]);
        Self { runs: vec![Vec::new(); threads], polled: vec![Vec::new(); threads], held, open, ..Self::default() }
    }

    pub(super) fn add(&mut self, found: Provisional) {
        if found.changed.is_empty() {
            self.confirm(&found);
        } else {
            self.provisional.push(found);
        }
    }

    fn confirm(&mut self, found: &Provisional) {
        self.runs[found.thread].push(found.run);
        for &(word, place) in &found.looks {
            self.words.insert(word);
            self.places.insert(place);
        }
    }

    /// A word is waited for although no rounds are left out.
    pub(super) fn wait_at(&mut self, word: u64, place: Place) {
        self.words.insert(word);
        self.places.insert(place);
    }

    /// A thread takes a lock at a place in the one sequence.
    pub(super) fn take(&mut self, thread: usize, object: u64, number: u64) {
        self.open[thread].push(self.held[thread].len());
        self.held[thread].push(Held { object, from: number, to: u64::MAX });
    }

    pub(super) fn give_back(&mut self, thread: usize, object: u64, number: u64) {
        let (held, open) = (&mut self.held[thread], &mut self.open[thread]);
        if let Some(last) = open.iter().rposition(|at| held[*at].object == object) {
            held[open.remove(last)].to = number;
        }
    }

    /// From where to where in the one sequence a thread has locks, whichever.
    pub(super) fn under_locks(&self, thread: usize) -> Vec<(u64, u64)> {
        let mut held: Vec<_> = self.held[thread].iter().map(|held| (held.from, held.to)).collect();
        held.sort_unstable();
        held.dedup_by(|next, before| {
            let is_one = next.0 <= before.1;
            before.1 = if is_one { before.1.max(next.1) } else { before.1 };
            is_one
        });
        held
    }

    /// Nothing more is found.
    pub(super) fn settle(&mut self, words: &Words) {
        for found in std::mem::take(&mut self.provisional) {
            if !found.changed.iter().any(|word| words.is_shared(*word)) {
                self.confirm(&found);
            }
        }
        let read = words.log.iter().filter(|access| self.places.contains(&access.place));
        self.words.extend(read.map(|access| word_of(access.address)));
        for runs in &mut self.runs {
            runs.sort_unstable();
            // Loops lie in each other.
            runs.dedup_by(|run, before| {
                let is_one = run.from <= before.to;
                if is_one && run.to > before.to {
                    (before.to, before.block) = (run.to, run.block);
                }
                is_one
            });
        }
    }

    /// The run of a thread that a step lies in.
    pub(super) fn run_at(&self, thread: usize, step: u64) -> Option<&Run> {
        let runs = &self.runs[thread];
        let at = runs.partition_point(|run| run.from <= step).checked_sub(1)?;
        Some(&runs[at]).filter(|run| run.to > step)
    }
}
