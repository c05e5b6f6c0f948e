//! What a core works on besides itself, and what it asks of its host.

use super::access_sites::AccessSites;
use super::persist::PersistPolicy;
use super::store_log::{LoggedStore, Performed, StoreLog};
use super::synchronisation::Synchronisation;
use super::thread::Thread;
use super::write_order::WriteOrder;
use crate::address_space::page_table::PageTable;
use crate::cache::array::CacheArray;
use crate::cache::hierarchy::{Side, Want};
use crate::cache::observation_log::{Access, ObservationLog};
use crate::cache::persist_sites::PersistSites;
use fencepost_isa::micro_op::{DecodedBlock, Flush};
use fencepost_kernel::address_map::is_pm;
use fencepost_kernel::line::{ByteMask, LineAddress, Version};
use fencepost_kernel::message::Cause;
use fencepost_kernel::time::Time;

/// A request of a core to the caches behind its own, at a cycle to come.
#[derive(Clone, Copy, Debug)]
pub enum CoreRequest {
    /// A line that its first level, or its walker, does not have.
    Line {
        /// The line.
        line: LineAddress,
        /// To read or to write it.
        want: Want,
        /// For which first level.
        side: Side,
        /// Why.
        cause: Cause,
        /// The cycle in which what asks for it issued; of a store, that in which it was its turn.
        issued: u64,
    },
    /// A flush.
    Flush {
        /// The line.
        line: LineAddress,
        /// Which.
        flush: Flush,
        /// The core's name for it.
        id: u32,
        /// The cycle in which it was its turn.
        issued: u64,
    },
    /// A combined non-temporal store.
    WriteAround {
        /// The line.
        line: LineAddress,
        /// The bytes it writes.
        mask: ByteMask,
        /// The core's name for it.
        id: u32,
        /// The cycle in which its combining buffer was complete.
        issued: u64,
    },
}

/// Everything a core works on that belongs to its host.
pub struct Environment<'a> {
    /// The thread it runs.
    pub thread: &'a mut Thread,
    /// The program's decoded blocks.
    pub blocks: &'a [DecodedBlock],
    /// The first-level data cache.
    pub l1d: &'a mut CacheArray,
    /// The first-level instruction cache.
    pub l1i: &'a mut CacheArray,
    /// The process's address space.
    pub table: &'a mut PageTable,
    /// What is persisted beyond the program's own flushes.
    pub persist: &'a PersistPolicy,
    /// Which thread has which lock.
    pub synchronisation: &'a Synchronisation,
    /// Requests made, with the cycle at which they reach the next level.
    pub requests: &'a mut Vec<(u64, CoreRequest)>,
    /// The core's number.
    pub core: usize,
    /// The log of the versions that loads observe and stores make, if it is kept.
    pub observations: Option<&'a mut ObservationLog>,
    /// The log of stores as they take effect, if it is kept.
    pub stores: Option<&'a mut StoreLog>,
    /// Which writes others wait for, in a replay that keeps their order.
    pub order: Option<&'a mut WriteOrder>,
    /// Counts which instructions persist and wait, if that is enabled.
    pub sites: Option<&'a mut PersistSites>,
    /// Counts which instructions wait for memory; likewise.
    pub accesses: Option<&'a mut AccessSites>,
}

impl Environment<'_> {
    #[inline]
    pub(super) fn observe(&mut self, cycle: u64, line: LineAddress, version: Version, access: Access) {
        if let Some(log) = &mut self.observations {
            log.record(self.core, cycle, line, version, access);
        }
    }

    /// Logs that the thread came to a call that concerns persistent memory, or passed a mark, if the log is kept.
    pub(super) fn log_event(&mut self, time: Time, performed: Performed) {
        if let Some(log) = &mut self.stores {
            let (core, thread) = (self.core, self.thread.id);
            log.push(LoggedStore { core, thread, time, line: LineAddress(0), performed, address: 0, size: 0 });
        }
    }

    /// Logs what happens to a line, if the log is kept; `access` is the virtual address and the size of the whole
    /// access.
    #[inline]
    pub(super) fn log_store(&mut self, time: Time, line: LineAddress, performed: Performed, access: (u64, u16)) {
        if let Some(log) = self.stores.as_mut().filter(|_| is_pm(line)) {
            let (core, thread, (address, size)) = (self.core, self.thread.id, access);
            log.push(LoggedStore { core, thread, time, line, performed, address, size });
        }
    }
}
