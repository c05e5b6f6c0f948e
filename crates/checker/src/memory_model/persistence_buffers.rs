//! The buffers between the coherent caches and persistent memory in an operational model: for each line what has not
//! persisted yet, in order.
//!
//! Lines persist independently of each other, the stores to one line in their order. A flush that does not wait is a
//! mark in the buffer of its line: it is complete when all before it has persisted.

use super::litmus_test::{LineNumber, Location, NvmState};

/// What waits in a line's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Pending {
    Store(Location, u32),
    Flush { thread: usize },
}

/// The buffers of all lines, and what has persisted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PersistenceBuffers {
    lines: Vec<Vec<Pending>>,
    persisted: NvmState,
}

impl PersistenceBuffers {
    /// Nothing has been stored yet.
    pub(super) fn new(lines: usize, locations: usize) -> PersistenceBuffers {
        PersistenceBuffers { lines: vec![Vec::new(); lines], persisted: vec![0; locations] }
    }

    /// What a power cut leaves now.
    pub(super) fn persisted(&self) -> &NvmState {
        &self.persisted
    }

    /// The value that a load gets that no store buffer answers.
    pub(super) fn value(&self, line: LineNumber, location: Location) -> u32 {
        let stored = self.lines[line].iter().rev().find_map(|pending| match pending {
            Pending::Store(own, value) if *own == location => Some(*value),
            _ => None,
        });
        stored.unwrap_or(self.persisted[location])
    }

    /// A store becomes visible to all threads.
    pub(super) fn store(&mut self, line: LineNumber, location: Location, value: u32) {
        self.lines[line].push(Pending::Store(location, value));
    }

    /// `thread` flushes a line without waiting for it.
    pub(super) fn flush(&mut self, line: LineNumber, thread: usize) {
        self.lines[line].push(Pending::Flush { thread });
    }

    /// Whether nothing of a line waits.
    pub(super) fn is_empty(&self, line: LineNumber) -> bool {
        self.lines[line].is_empty()
    }

    /// Whether all flushes of `thread` are complete.
    pub(super) fn are_flushed(&self, thread: usize) -> bool {
        self.lines.iter().flatten().all(|pending| *pending != Pending::Flush { thread })
    }

    /// What there is after one more step of each line that has one.
    pub(super) fn after_a_step(&self) -> impl Iterator<Item = PersistenceBuffers> + '_ {
        let waiting = (0..self.lines.len()).filter(|line| !self.lines[*line].is_empty());
        waiting.map(|line| {
            let mut next = self.clone();
            if let Pending::Store(location, value) = next.lines[line].remove(0) {
                next.persisted[location] = value;
            }
            next
        })
    }
}
