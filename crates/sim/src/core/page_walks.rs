//! The page walkers of a core.
//!
//! An access whose page is not in the TLB takes a walker, and waits where all are busy. A walk reads the entry of the
//! page table from memory unless it is in the walkers' cache; later accesses to the page wait for the same walk.

use super::environment::{CoreRequest, Environment};
use super::pipeline::Core;
use super::translation::Translation;
use crate::address_space::page_table::PAGE_SHIFT;
use crate::cache::hierarchy::{Side, Want};
use crate::cache::mshr::{MshrFile, Room};
use fencepost_kernel::line::LineAddress;
use fencepost_kernel::message::Cause;

/// An access that waits for a walk whose end is not known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walk {
    /// The line of the page table that is to be read, if it is not in the walkers' cache.
    entry: Option<LineAddress>,
    slot: u32,
    physical: u64,
    is_load: bool,
    /// The cycle in which the access issued.
    issued: u64,
}

impl Walk {
    fn page(&self) -> u64 {
        self.physical >> PAGE_SHIFT
    }
}

/// The walkers, and what waits for them.
#[derive(Clone, Debug)]
pub(super) struct PageWalks {
    /// Those that read memory have the line they read.
    walkers: MshrFile<()>,
    /// Oldest first.
    waiting: Vec<Walk>,
    /// Pages whose walk ends at a known cycle.
    ending: Vec<(u64, u64)>,
    last_end: u64,
}

impl PageWalks {
    /// `walkers` idle walkers.
    pub fn new(walkers: u8) -> PageWalks {
        let walkers = MshrFile::new(usize::from(walkers));
        PageWalks { walkers, waiting: Vec::new(), ending: Vec::new(), last_end: 0 }
    }

    /// Whether accesses to the page of `physical` wait for a walk whose end is not known.
    pub fn has_waiting(&self, physical: u64) -> bool {
        self.waiting_for(physical).is_some()
    }

    fn waiting_for(&self, physical: u64) -> Option<&Walk> {
        self.waiting.iter().find(|walk| walk.page() == physical >> PAGE_SHIFT)
    }

    /// When an access at `cycle` to the page of `physical`, which is in the TLB, has its translation.
    #[inline]
    pub fn end_of_walk(&self, physical: u64, cycle: u64) -> u64 {
        if cycle >= self.last_end {
            return cycle;
        }
        let walk = self.ending.iter().rev().find(|(page, _)| *page == physical >> PAGE_SHIFT);
        walk.map_or(cycle, |&(_, end)| end.max(cycle))
    }

    /// Forgets everything: power is gone.
    pub fn clear(&mut self) {
        self.walkers.clear();
        self.waiting.clear();
        self.ending.clear();
    }

    /// Whether a walk can start at `cycle`.
    pub fn is_free(&self, cycle: u64) -> bool {
        self.walkers.room(cycle) == Room::Now
    }

    /// The first cycle from `cycle` on in which a walk can start; none if that is not known.
    fn start(&self, cycle: u64) -> Option<u64> {
        match self.walkers.room(cycle) {
            Room::Now => Some(cycle),
            Room::At(later) => Some(later),
            Room::Unknown => None,
        }
    }

    /// The walk for the page of `physical` ends at `end`.
    fn ends(&mut self, physical: u64, end: u64, now: u64) {
        self.ending.retain(|&(_, end)| end > now);
        self.ending.push((physical >> PAGE_SHIFT, end));
        self.last_end = self.last_end.max(end);
    }
}

impl Core {
    /// Translates the `address` of the access in `slot`, which issues at `cycle`; gives also when that is done, if
    /// known.
    #[inline]
    pub(super) fn translate(
        &mut self,
        slot: u32,
        address: u64,
        is_load: bool,
        cycle: u64,
        env: &mut Environment<'_>,
    ) -> (u64, Option<u64>) {
        let (physical, cost) = self.tlb.translate(address, env.table);
        let waiting = || Walk { entry: None, slot, physical, is_load, issued: cycle };
        let end = match cost {
            Translation::Hit => match self.loads.walks.waiting_for(physical) {
                None => Some(self.loads.walks.end_of_walk(physical, cycle)),
                Some(&Walk { entry, .. }) => {
                    self.loads.walks.waiting.push(Walk { entry, ..waiting() });
                    None
                }
            },
            Translation::Walk => {
                let end = self.walk_without_read(physical, cycle);
                if end.is_none() {
                    self.loads.walks.waiting.push(waiting());
                }
                end
            }
            Translation::Read(entry) => {
                let walk = Walk { entry: Some(entry), ..waiting() };
                self.walk_with_read(entry, cycle, env);
                self.loads.walks.waiting.push(walk);
                None
            }
        };
        (physical, end)
    }

    /// A walk that reads nothing starts as soon as it can from `cycle` on; gives when it ends, if that is known.
    pub(super) fn walk_without_read(&mut self, physical: u64, cycle: u64) -> Option<u64> {
        let start = self.loads.walks.start(cycle)?;
        let end = start + self.timing.walk;
        self.loads.walks.walkers.occupy(start, end);
        self.loads.walks.ends(physical, end, self.window.now);
        Some(end)
    }

    /// A walk that reads `entry` starts as soon as it can from `cycle` on, unless one does already.
    fn walk_with_read(&mut self, entry: LineAddress, cycle: u64, env: &mut Environment<'_>) {
        if self.loads.walks.walkers.find(entry).is_some() {
            return;
        }
        let Some(start) = self.loads.walks.start(cycle) else { return };
        self.loads.walks.walkers.allocate(entry, (), start);
        let request = CoreRequest::Line {
            line: entry,
            want: Want::Read,
            side: Side::Walker,
            cause: Cause::PageWalk,
            issued: cycle,
        };
        env.requests.push((start, request));
    }

    /// A line of the page table is there at `ready`: what waits for it goes on, and the walker takes another walk.
    pub(super) fn walk_done(&mut self, entry: LineAddress, ready: u64, env: &mut Environment<'_>) {
        let end = ready + self.timing.walk;
        self.loads.walks.walkers.resolve(entry, end);
        let mut done = Vec::new();
        for walk in std::mem::take(&mut self.loads.walks.waiting) {
            match self.end_of_waiting(&walk, entry, end, env) {
                // One that joined the walk may issue only when its entry is there already.
                Some(end) => done.push((walk, end.max(walk.issued))),
                None => self.loads.walks.waiting.push(walk),
            }
        }
        for (walk, cycle) in done {
            if walk.is_load {
                self.load_translated(walk.slot, walk.physical, walk.issued, cycle, env);
            } else {
                self.store_translated(walk.slot, cycle, env);
            }
        }
    }

    /// When the walk that an access waits for ends, if that is known now that the one which read `entry` ends at `end`.
    fn end_of_waiting(&mut self, walk: &Walk, entry: LineAddress, end: u64, env: &mut Environment<'_>) -> Option<u64> {
        match walk.entry {
            Some(own) if own == entry => {
                self.loads.walks.ends(walk.physical, end, self.window.now);
                Some(end)
            }
            Some(own) => {
                self.walk_with_read(own, walk.issued, env);
                None
            }
            None => match self.loads.walks.end_of_walk(walk.physical, walk.issued) {
                end if end > walk.issued => Some(end),
                _ => self.walk_without_read(walk.physical, walk.issued),
            },
        }
    }
}
