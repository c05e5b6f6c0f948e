//! Which store of a program made which version of a PM line, and when: it gives the bytes that a version stands for.
//!
//! Allocated only when enabled. Entries are in the order in which cores let stores take effect. What leaves a core
//! under a number of its own (flushes, combined non-temporal stores) is found again by that number in what the caches
//! log, `cache/persist_log.rs`.

use fencepost_kernel::line::{LineAddress, Version};
use fencepost_kernel::time::Time;
use fencepost_record::ThreadId;

/// What a core did to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Performed {
    /// A store, or a locked instruction, made this version in the core's first level.
    Store(Version),
    /// A non-temporal store went into the core's combining buffer of the line.
    Combined,
    /// That buffer left the core under this number.
    SentCombined(u32),
    /// A flush left the core under this number.
    SentFlush(u32),
    /// The thread came to where the record has a write of the kernel into selected memory, or a call that asks for
    /// durability.
    CameToCall,
    /// The thread passed a mark of its operations: a store there would have taken effect then.
    PassedMark,
}

/// One entry of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedStore {
    /// By which core.
    pub core: usize,
    /// For which thread.
    pub thread: ThreadId,
    /// When it took effect.
    pub time: Time,
    /// The line; the first one where there is none.
    pub line: LineAddress,
    /// What happened to it.
    pub performed: Performed,
    /// Virtual address of the whole access; 0 for a combining buffer that leaves.
    pub address: u64,
    /// Bytes of the whole access.
    pub size: u16,
}

/// All entries of one host so far.
#[derive(Clone, Debug, Default)]
pub struct StoreLog {
    entries: Vec<LoggedStore>,
}

impl StoreLog {
    /// All of them, in the order in which they were made.
    pub fn entries(&self) -> &[LoggedStore] {
        &self.entries
    }

    /// All of them since the last call, which are forgotten.
    pub fn take(&mut self) -> impl Iterator<Item = LoggedStore> {
        self.entries.drain(..)
    }

    /// Takes one down.
    pub(super) fn push(&mut self, entry: LoggedStore) {
        self.entries.push(entry);
    }
}
