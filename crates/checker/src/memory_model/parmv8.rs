//! `Armv8` with persistency, enumerated: the rules of `PArmv8` (Cho, Lee, Raad and Kang, "Revamping hardware
//! persistency models", PLDI 2021; recalled) that tests without acquires, releases, speculation and exclusives need.
//!
//! Memory is multi-copy atomic: a store is visible to all other threads at once. A thread performs its statements in
//! any order that keeps the [order](is_ordered) of dependencies, lines and fences. `DC CVAP` leaves a mark in the
//! [persistence buffer](super::persistence_buffers) of its line, and `DSB` waits until no mark of its thread is left.

use std::collections::{BTreeSet, HashSet};

use super::litmus_test::{Fence, LitmusTest, NvmState, Operand, Statement};
use super::persistence_buffers::PersistenceBuffers;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Thread {
    /// Which statements have been performed, a bit each.
    performed: u32,
    register: u32,
    /// A guard did not hold.
    is_over: bool,
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
        let persisted = state.memory.after_a_step().map(|memory| State { memory, ..state.clone() });
        let statements = test.threads.iter().enumerate();
        let statements = statements.flat_map(|(thread, own)| (0..own.len()).map(move |index| (thread, index)));
        let performed = statements.filter_map(|(thread, index)| state.performed(test, thread, index));
        for next in persisted.chain(performed) {
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    left
}

impl State {
    /// `thread` performs its statement `index`, if it may.
    fn performed(&self, test: &LitmusTest, thread: usize, index: usize) -> Option<State> {
        let (own, statements) = (&self.threads[thread], &test.threads[thread]);
        let is_performed = |index: usize| own.performed >> index & 1 == 1;
        let statement = statements[index];
        let waits = |earlier: usize| !is_performed(earlier) && is_ordered(test, statements[earlier], statement);
        if own.is_over || is_performed(index) || (0..index).any(waits) {
            return None;
        }
        let mut state = self.clone();
        let next = &mut state.threads[thread];
        next.performed |= 1 << index;
        match statement {
            Statement::Store(location, operand) => {
                let value = match operand {
                    Operand::Constant(value) => value,
                    Operand::Register => own.register,
                };
                state.memory.store(test.lines[location], location, value);
            }
            Statement::Load(location) => next.register = self.memory.value(test.lines[location], location),
            Statement::If(location) => next.is_over = self.memory.value(test.lines[location], location) == 0,
            Statement::Flush(_, location) => state.memory.flush(test.lines[location], thread),
            Statement::Fence(Fence::Dmb) => {}
            Statement::Fence(Fence::Dsb) if self.memory.are_flushed(thread) => {}
            Statement::Fence(Fence::Dsb) => return None,
            Statement::Fence(Fence::Sfence | Fence::Mfence) | Statement::Exchange(..) => {
                unreachable!("x86-64 has a model of its own")
            }
        }
        Some(state)
    }
}

/// Whether a thread performs `earlier` before `later`, which follows it in the program.
///
/// A guard is taken to order all that it guards. Of flushes and loads it does so only by an address or by a barrier,
/// but in each published test one of these stands there too.
fn is_ordered(test: &LitmusTest, earlier: Statement, later: Statement) -> bool {
    let lines = [earlier, later].map(|statement| statement.location().map(|location| test.lines[location]));
    match (earlier, later) {
        (Statement::Fence(_), _) | (_, Statement::Fence(_)) | (Statement::If(_), _) => true,
        (Statement::Load(_), Statement::Store(_, Operand::Register)) => true,
        (Statement::Flush(..), _) => false,
        (_, Statement::Flush(..)) => lines[0] == lines[1],
        _ => earlier.location() == later.location(),
    }
}
