//! What the caches log, if that is enabled: about PM promises, and lines that were written back; what cores move.

use super::writes::PendingWrite;
use super::{Hierarchy, Requester};
use crate::cache::persist_log::{PersistLog, Promise};
use crate::cache::persist_sites;
use fencepost_kernel::address_map::is_pm;
use fencepost_kernel::line::{LineAddress, Version};

impl Hierarchy {
    /// From now on what cores move is noted.
    pub fn count_moved(&mut self) {
        self.moved = Some(Vec::new());
    }

    /// What cores have moved since the last look: core, line, and whether it was written around the caches.
    pub fn take_moved(&mut self) -> Vec<(usize, LineAddress, bool)> {
        self.moved.as_mut().map(std::mem::take).unwrap_or_default()
    }

    #[inline]
    pub(super) fn note_moved(&mut self, core: usize, line: LineAddress, is_write: bool) {
        if let Some(moved) = &mut self.moved {
            moved.push((core, line, is_write));
        }
    }

    /// Starts logging what leaves for PM and what is acknowledged.
    pub fn log_persists(&mut self) {
        self.persist_log.get_or_insert_default();
    }

    /// That log, if it is kept.
    pub fn persist_log(&self) -> Option<&PersistLog> {
        self.persist_log.as_deref()
    }

    /// Starts logging what is written to PM.
    pub fn log_written_back(&mut self) {
        self.written_back.get_or_insert_default();
    }

    /// What has been written to PM since the last call, if that is logged.
    pub fn take_written_back(&mut self) -> impl Iterator<Item = (LineAddress, Version)> {
        self.written_back.iter_mut().flat_map(|log| log.drain(..))
    }

    pub(super) fn note_served(&mut self, by: Requester, line: LineAddress, served: persist_sites::Served) {
        if let Some(sites) = &mut self.persist_sites {
            sites.served(by.core, by.id, line, served);
        }
    }

    pub(super) fn log_promise(&mut self, by: Requester, line: LineAddress, newest: Option<Version>, cycle: u64) {
        let time = self.time_of(cycle);
        if let Some(log) = self.persist_log.as_mut().filter(|_| is_pm(line)) {
            let version = newest.unwrap_or_else(|| self.written.get(line.0));
            log.promise(Promise { time, by, line, version, is_clean: newest.is_none(), kept: None });
        }
    }

    pub(super) fn log_kept(&mut self, by: Requester, now: u64) {
        let time = self.time_of(now);
        if let Some(log) = &mut self.persist_log {
            log.keep(time, by);
        }
    }

    pub(super) fn log_completed(&mut self, write: &PendingWrite, now: u64) {
        let time = self.time_of(now);
        if let Some(log) = self.persist_log.as_mut().filter(|_| is_pm(write.line)) {
            log.complete(time, write.line, write.version);
            write.acknowledge.iter().for_each(|&by| log.keep(time, by));
        }
    }
}
