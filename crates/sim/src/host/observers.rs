//! Logs of what a host does: none of them changes the simulation, and none is allocated unless it is enabled.

use std::sync::Arc;

use super::Host;
use crate::cache::hierarchy::{Served, Source};
use crate::cache::observation_log::ObservationLog;
use crate::cache::persist_sites::PersistSites;
use crate::core::Core;
use crate::core::access_sites::AccessSites;
use crate::core::store_log::{Performed, StoreLog};
use fencepost_kernel::line::{LineAddress, Version};

#[cfg(doc)]
use crate::cache::hierarchy::Hierarchy;
#[cfg(doc)]
use crate::core::callers::Callers;

/// The logs that cores write. Those of the caches are theirs.
#[derive(Clone, Default)]
pub(super) struct Observers {
    /// Which versions loads observe and stores make.
    pub observations: Option<Box<ObservationLog>>,
    /// Which store makes which version.
    pub stores: Option<Box<StoreLog>>,
    /// Which instructions wait for memory.
    pub accesses: Option<Box<AccessSites>>,
}

/// A line of PM became dirty or clean, with the version that was stored or sent to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirtyLineChange {
    /// A store took effect in a core's first level.
    Stored(LineAddress, Version),
    /// The last level sent it to memory.
    WrittenBack(LineAddress, Version),
}

impl Host {
    /// Starts logging what this host is promised about PM; the log is [`Hierarchy::persist_log`].
    pub fn log_persists(&mut self) {
        self.socket.caches.only_mut().log_persists();
    }

    /// Starts logging which versions of PM lines loads observe and stores make.
    pub fn log_observations(&mut self) {
        let period = self.clock.period;
        self.observers.observations.get_or_insert_with(|| Box::new(ObservationLog::new(period)));
    }

    /// Starts logging which store makes which version of a PM line.
    pub fn log_stores(&mut self) {
        self.observers.stores.get_or_insert_default();
    }

    /// Starts counting which instructions persist, which fences wait for them, and which loads and stores wait for
    /// memory; to be called before the start. `has_source` says of which blocks source lines are known, for
    /// [`Callers`].
    pub fn log_sites(&mut self, has_source: Arc<[bool]>) {
        let (cores, period) = (self.socket.cores.len(), self.clock.period);
        let sites = PersistSites::new(cores, period, self.store_queue_entries());
        for socket in 0..self.sockets() {
            self.socket.caches.of_socket(socket).persist_sites = Some(Box::new(sites.clone()));
        }
        let places = |of: fn(&Core) -> usize| self.socket.cores.first().map_or(0, of);
        let (loads, stores) = (places(Core::load_queue_entries), places(Core::store_queue_places));
        self.observers.accesses = Some(Box::new(AccessSites::new(cores, period, loads, stores, has_source)));
    }

    /// Turns the counting of time by site on or off.
    pub fn count_sites(&mut self, counts: bool) {
        for socket in 0..self.sockets() {
            if let Some(sites) = &mut self.socket.caches.of_socket(socket).persist_sites {
                sites.count(counts);
            }
        }
        if let Some(sites) = &mut self.observers.accesses {
            sites.count(counts);
        }
    }

    /// The sites of loads and stores, if they are counted.
    pub fn access_sites(&self) -> Option<&AccessSites> {
        self.observers.accesses.as_deref()
    }

    /// The persist sites, socket after socket, if they are counted: those of the cores of each.
    pub fn persist_sites(&self) -> impl Iterator<Item = &PersistSites> {
        self.socket.caches.iter().filter_map(|caches| caches.persist_sites.as_deref())
    }

    /// The lines that memory has sent to a socket belong to another one's, if `line` does: for the log of accesses.
    pub(super) fn note_other_memory(&mut self, socket: usize, line: LineAddress, served: &mut [Served]) {
        if self.observers.accesses.is_none() || self.sockets() == 1 || self.socket.caches.home_of(line) == socket {
            return;
        }
        for served in served.iter_mut().filter(|served| served.source == Source::Memory) {
            served.source = Source::OtherMemory;
        }
    }

    /// The log of stores, if it is kept.
    pub fn stores(&self) -> Option<&StoreLog> {
        self.observers.stores.as_deref()
    }

    /// Starts logging which lines of PM become dirty and which are written back, for [`Host::dirty_lines_changed`].
    pub fn log_dirty_lines(&mut self) {
        self.log_stores();
        self.socket.caches.only_mut().log_written_back();
    }

    /// Calls `change` for each line of PM that a store made dirty since the last call, then for each that was written
    /// back.
    pub fn dirty_lines_changed(&mut self, mut change: impl FnMut(DirtyLineChange)) {
        for entry in self.observers.stores.iter_mut().flat_map(|log| log.take()) {
            if let Performed::Store(version) = entry.performed {
                change(DirtyLineChange::Stored(entry.line, version));
            }
        }
        self.socket
            .caches
            .only_mut()
            .take_written_back()
            .for_each(|(line, version)| change(DirtyLineChange::WrittenBack(line, version)));
    }

    /// The log of observations, if it is kept.
    pub fn observations(&self) -> Option<&ObservationLog> {
        self.observers.observations.as_deref()
    }

    fn store_queue_entries(&self) -> usize {
        self.socket.cores.first().map_or(0, Core::store_queue_entries)
    }
}
