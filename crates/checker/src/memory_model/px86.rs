//! x86-TSO with persistency, enumerated: PTSO<sub>syn</sub> (Khyzha and Lahav, "Taming x86-TSO Persistency", POPL 2021;
//! recalled), whose states after a crash are those of Px86 (Raad et al., "Persistency semantics of the Intel-x86
//! architecture", POPL 2020).
//!
//! Each thread has a store buffer of stores, flushes and `sfence`s; the lines have [persistence
//! buffers](super::persistence_buffers). A `clflush` leaves the store buffer when nothing of its line waits to persist,
//! a `clwb` as a mark in the line's buffer, an `sfence` when no mark of its thread is left. A `clwb` may be overtaken
//! by stores and by flushes of other lines, and it may overtake stores and flushes of other lines.

use std::collections::{BTreeSet, HashSet};

use super::litmus_test::{Fence, Flush, LineNumber, LitmusTest, Location, NvmState, Operand, Statement};
use super::persistence_buffers::PersistenceBuffers;

/// What waits in a thread's store buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Buffered {
    Store(Location, u32),
    Clflush(LineNumber),
    Clwb(LineNumber),
    Sfence,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Thread {
    /// The next statement.
    next: usize,
    register: u32,
    buffer: Vec<Buffered>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    threads: Vec<Thread>,
    memory: PersistenceBuffers,
}

/// All states that a power cut may leave, whenever it comes.
pub(super) fn states(test: &LitmusTest) -> BTreeSet<NvmState> {
    let threads = vec![Thread::default(); test.threads.len()];
    let memory = PersistenceBuffers::new(test.line_count(), test.locations.len());
    let first = State { threads, memory };
    let mut left = BTreeSet::new();
    let mut seen = HashSet::from([first.clone()]);
    let mut open = vec![first];
    while let Some(state) = open.pop() {
        left.insert(state.memory.persisted().clone());
        for next in state.successors(test) {
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    left
}

impl State {
    fn successors(&self, test: &LitmusTest) -> Vec<State> {
        let mut successors: Vec<State> =
            self.memory.after_a_step().map(|memory| State { memory, ..self.clone() }).collect();
        for thread in 0..self.threads.len() {
            successors.extend(self.executed(test, thread));
            let buffered = 0..self.threads[thread].buffer.len();
            successors.extend(buffered.filter_map(|index| self.propagated(test, thread, index)));
        }
        successors
    }

    /// `thread` executes its next statement, if there is one and it may.
    fn executed(&self, test: &LitmusTest, thread: usize) -> Option<State> {
        let own = &self.threads[thread];
        let statement = *test.threads[thread].get(own.next)?;
        let mut state = self.clone();
        let next = &mut state.threads[thread];
        next.next += 1;
        match statement {
            Statement::Store(location, operand) => {
                let value = match operand {
                    Operand::Constant(value) => value,
                    Operand::Register => own.register,
                };
                next.buffer.push(Buffered::Store(location, value));
            }
            Statement::Load(location) => next.register = self.read(test, thread, location),
            Statement::If(location) => {
                if self.read(test, thread, location) == 0 {
                    next.next = test.threads[thread].len();
                }
            }
            Statement::Flush(Flush::Clflush, location) => next.buffer.push(Buffered::Clflush(test.lines[location])),
            Statement::Flush(Flush::Clwb, location) => next.buffer.push(Buffered::Clwb(test.lines[location])),
            Statement::Fence(Fence::Sfence) => next.buffer.push(Buffered::Sfence),
            Statement::Fence(Fence::Mfence) if self.is_drained(thread) => {}
            Statement::Exchange(location, value) if self.is_drained(thread) => {
                state.memory.store(test.lines[location], location, value);
            }
            Statement::Fence(Fence::Mfence) | Statement::Exchange(..) => return None,
            Statement::Fence(Fence::Dmb | Fence::Dsb) => unreachable!("AArch64 has a model of its own"),
        }
        Some(state)
    }

    fn read(&self, test: &LitmusTest, thread: usize, location: Location) -> u32 {
        let own = self.threads[thread].buffer.iter().rev().find_map(|buffered| match buffered {
            Buffered::Store(stored, value) if *stored == location => Some(*value),
            _ => None,
        });
        own.unwrap_or_else(|| self.memory.value(test.lines[location], location))
    }

    /// Whether a locked instruction or an `mfence` may go on.
    fn is_drained(&self, thread: usize) -> bool {
        self.threads[thread].buffer.is_empty() && self.memory.are_flushed(thread)
    }

    /// What stands at `index` of a store buffer leaves it, if it may.
    fn propagated(&self, test: &LitmusTest, thread: usize, index: usize) -> Option<State> {
        let (before, rest) = self.threads[thread].buffer.split_at(index);
        let own = rest[0];
        if before.iter().any(|earlier| !may_overtake(test, own, *earlier)) {
            return None;
        }
        let mut state = self.clone();
        match own {
            Buffered::Store(location, value) => state.memory.store(test.lines[location], location, value),
            Buffered::Clflush(line) if self.memory.is_empty(line) => {}
            Buffered::Sfence if self.memory.are_flushed(thread) => {}
            Buffered::Clwb(line) => state.memory.flush(line, thread),
            Buffered::Clflush(_) | Buffered::Sfence => return None,
        }
        state.threads[thread].buffer.remove(index);
        Some(state)
    }
}

/// Whether `own` may leave a store buffer before `earlier`, which entered it before. (Px86, table of ordering
/// constraints.)
fn may_overtake(test: &LitmusTest, own: Buffered, earlier: Buffered) -> bool {
    match (own, earlier) {
        (Buffered::Sfence, _) | (_, Buffered::Sfence) => false,
        (Buffered::Store(..) | Buffered::Clflush(_), Buffered::Store(..) | Buffered::Clflush(_)) => false,
        (Buffered::Store(..) | Buffered::Clwb(_), Buffered::Clwb(_)) => true,
        (Buffered::Clflush(line), Buffered::Clwb(earlier)) | (Buffered::Clwb(line), Buffered::Clflush(earlier)) => {
            line != earlier
        }
        (Buffered::Clwb(line), Buffered::Store(location, _)) => line != test.lines[location],
    }
}
