//! Persists that the program does not make itself, for programs that were not written for persistent memory.

use super::thread::{Extra, Thread};
use crate::address_space::page_table::PageTable;
use fencepost_isa::micro_op::{Fence, Flush, MicroOp, Operation, Register};
use fencepost_kernel::line::LINE_BYTES;

/// When persists are inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PersistMode {
    /// Never: the program's own flushes and fences are all.
    Program,
    /// Before each synchronisation operation (persistency for synchronisation-free regions).
    Sync,
    /// After so many stores to PM of a thread.
    Every(u64),
}

/// When persists are inserted, and what they consist of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PersistPolicy {
    /// When.
    pub mode: PersistMode,
    /// The flush of each line.
    pub flush: Flush,
    /// The fence after the flushes.
    pub fence: Fence,
    /// What an atomic access to a synchronisation object orders, where the record has nothing of its function's
    /// inside. (It is here because it depends on the instruction set, as what is inserted does.)
    pub synchronisation: Fence,
}

impl PersistPolicy {
    /// Notes a store; whether that made it insert persists into the thread.
    ///
    /// What a synchronisation function stores (the word of a lock, its owner) is no data of the program.
    #[inline]
    pub fn after_store(&self, thread: &mut Thread, table: &PageTable, address: u64, size: u16) -> bool {
        if self.mode == PersistMode::Program || thread.is_in_call || address == 0 || !table.is_persistent(address) {
            return false;
        }
        thread.note_store(address, size);
        let is_due = matches!(self.mode, PersistMode::Every(stores) if thread.stores_to_pm >= stores);
        // The thread is past the store.
        is_due && self.insert(thread, thread.micro_op.saturating_sub(1))
    }

    /// The thread is about to synchronise, to acquire or to release; whether that made it insert persists.
    #[inline]
    pub fn before_synchronisation(&self, thread: &mut Thread) -> bool {
        self.mode == PersistMode::Sync && self.insert(thread, thread.micro_op)
    }

    /// The same where `operation` is an atomic read-modify-write. Inside a synchronisation function it is a part of
    /// that function's operation.
    #[inline]
    pub fn before_operation(&self, thread: &mut Thread, operation: Operation) -> bool {
        matches!(operation, Operation::Atomic(_)) && !thread.is_in_call && self.before_synchronisation(thread)
    }

    /// The thread ends; whether something was left to persist.
    pub fn before_end(&self, thread: &mut Thread) -> bool {
        self.mode != PersistMode::Program && self.insert(thread, thread.micro_op)
    }

    /// Inserts flushes of all lines noted, and a fence, on account of the micro-operation `at` if the thread is in a
    /// block.
    fn insert(&self, thread: &mut Thread, at: u32) -> bool {
        let lines = thread.take_dirty_lines();
        if lines.is_empty() {
            return false;
        }
        thread.persists_at = at;
        let inserted = |operation: Operation, size| {
            let barrier = if operation.holds_back_loads() { Register::BARRIER } else { Register::NONE };
            MicroOp { operation, size, destinations: [barrier, Register::NONE], ..MicroOp::default() }
        };
        let flush = inserted(Operation::Flush(self.flush), LINE_BYTES as u16);
        let fence = inserted(Operation::Fence(self.fence), 0);
        let flushes = lines.into_iter().map(|line| Extra { micro_op: flush, address: line * LINE_BYTES });
        thread.extra.extend(flushes);
        thread.extra.push_back(Extra { micro_op: fence, address: 0 });
        true
    }
}
