//! Queue locks: tickets and CLH, contended or not.
//!
//! Threads update one word, and each then reads a store that the thread before it made after its own update: that is
//! how the lock is handed on. One test finds them all; a counter that only counts does not pass it. Where a thread
//! first links itself to the one before it (MCS), the order of the links is kept instead: whose turn it is they say
//! themselves.

use rustc_hash::FxHashMap;

use super::history::Version;

/// Fewer updates say nothing.
const UPDATES_MIN: usize = 4;

/// A thread has the lock from the read that let it in, or its update where nobody was before it, to a store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tenure {
    pub thread: usize,
    pub step: u64,
    /// The store that hands it on: its step and its word.
    pub given: Option<(u64, u64)>,
    /// Its update.
    updated: u64,
}

#[derive(Default)]
struct Queue {
    tenures: Vec<Tenure>,
    is_none: bool,
}

/// Of a thread that has updated a word: it waits for the tenure before its own.
#[derive(Clone, Copy)]
struct Awaited {
    word: u64,
    before: usize,
}

/// All words that threads exchange or add to.
pub(super) struct Queues {
    words: FxHashMap<u64, Queue>,
    /// By each thread.
    awaited: Vec<Option<Awaited>>,
}

impl Queues {
    pub(super) fn new(threads: usize) -> Self {
        Self { words: FxHashMap::default(), awaited: vec![None; threads] }
    }

    /// A thread has updated a word, and found `seen` there.
    pub(super) fn updated(&mut self, thread: usize, step: u64, word: u64, seen: Version) {
        self.give_up(thread);
        let queue = self.words.entry(word).or_default();
        if queue.is_none {
            return;
        }
        queue.tenures.push(Tenure { thread, step, given: None, updated: step });
        if let Some(before) = queue.tenures.len().checked_sub(2) {
            self.awaited[thread] = Some(Awaited { word, before });
            self.read(thread, step, word, seen);
        }
    }

    #[inline]
    pub(super) fn awaits(&self, thread: usize) -> bool {
        self.awaited[thread].is_some()
    }

    /// A thread has read a word, and saw the store `seen`.
    pub(super) fn read(&mut self, thread: usize, step: u64, word: u64, seen: Version) {
        let Some(awaited) = self.awaited[thread] else { return };
        let queue = self.words.get_mut(&awaited.word).expect("what is awaited is there");
        let Some(before) = queue.tenures.get_mut(awaited.before) else { return };
        if seen.thread == before.thread && seen.step > before.updated {
            before.given = Some((seen.step, word));
            queue.tenures[awaited.before + 1].step = step;
            self.awaited[thread] = None;
        }
    }

    /// A thread has stored to a shared word, or updates another: it went on without having been let in.
    pub(super) fn give_up(&mut self, thread: usize) {
        if let Some(awaited) = self.awaited[thread].take()
            && let Some(queue) = self.words.get_mut(&awaited.word)
        {
            queue.is_none = true;
            queue.tenures.clear();
        }
    }

    /// The locks, with who had them.
    pub(super) fn locks(self) -> Vec<(u64, Vec<Tenure>)> {
        let is_lock = |queue: &Queue| {
            let tenures = &queue.tenures;
            !queue.is_none
                && tenures.len() >= UPDATES_MIN
                && tenures.iter().any(|tenure| tenure.thread != tenures[0].thread)
                && tenures[..tenures.len() - 1].iter().all(|tenure| tenure.given.is_some())
        };
        let mut locks: Vec<_> = self
            .words
            .into_iter()
            .filter(|(_, queue)| is_lock(queue))
            .map(|(word, queue)| (word, queue.tenures))
            .collect();
        locks.sort_unstable_by_key(|(word, _)| *word);
        locks
    }
}
