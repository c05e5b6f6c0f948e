//! The TLB of a core and the cache of its page-table walker.
//!
//! Upper levels of the page table are taken to hit in the paging-structure caches; a walk reads the last level's entry,
//! from simulated DRAM.

use super::config::TlbConfig;
use crate::address_space::page_table::{PAGE_SHIFT, PageTable};
use crate::cache::array::{CacheArray, Line};
use fencepost_kernel::address_map::PAGE_TABLE_BASE;
use fencepost_kernel::line::LineAddress;

/// What a translation costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Translation {
    /// Known in the TLB.
    Hit,
    /// The walker found the entry in its cache.
    Walk,
    /// The walker must read this line of the page table first.
    Read(LineAddress),
}

/// The TLB of one core, with the walker's cache.
#[derive(Clone, Debug)]
pub struct Tlb {
    is_enabled: bool,
    /// Tags are virtual pages; a line's version is unused.
    entries: CacheArray,
    /// The frame of each entry.
    frames: Box<[u64]>,
    walk_cache: CacheArray,
    /// The last page translated: most accesses go there again.
    last: (u64, u64),
    /// Translations that were in the TLB, or on their way there.
    pub hits: u64,
    /// Translations that took a walk.
    pub walks: u64,
    /// Of these, walks that read memory.
    pub walk_reads: u64,
}

impl Tlb {
    /// An empty TLB.
    pub fn new(config: &TlbConfig) -> Tlb {
        let lines = |entries: u64| entries * fencepost_kernel::line::LINE_BYTES;
        Tlb {
            is_enabled: config.enabled,
            entries: CacheArray::new(lines(u64::from(config.entries)), usize::from(config.ways)),
            frames: vec![0; usize::from(config.entries)].into(),
            walk_cache: CacheArray::new(u64::from(config.walk_cache_kib) * 1024, usize::from(config.walk_cache_ways)),
            last: (u64::MAX, 0),
            hits: 0,
            walks: 0,
            walk_reads: 0,
        }
    }

    /// The physical address of `address`, and what finding it out costs.
    #[inline]
    pub fn translate(&mut self, address: u64, table: &mut PageTable) -> (u64, Translation) {
        let page = address >> PAGE_SHIFT;
        let offset = address & ((1 << PAGE_SHIFT) - 1);
        if page == self.last.0 {
            self.hits += 1;
            return (self.last.1 | offset, Translation::Hit);
        }
        let (frame, cost) = self.look_up(page, table);
        self.last = (page, frame << PAGE_SHIFT);
        (self.last.1 | offset, cost)
    }

    /// The physical address of `address` if that takes no walk; it is not asked for otherwise, and nothing changes.
    pub fn translate_if_known(&mut self, address: u64, table: &mut PageTable) -> Option<u64> {
        self.is_known(address).then(|| self.translate(address, table).0)
    }

    /// The pages and the entries of the page table that it holds.
    #[cfg(test)]
    pub fn held(&self) -> String {
        format!("{:?} {:?}", self.entries, self.walk_cache)
    }

    /// Whether the page of `address` takes no walk.
    pub fn is_known(&self, address: u64) -> bool {
        let page = address >> PAGE_SHIFT;
        !self.is_enabled || page == self.last.0 || self.entries.find(LineAddress(page)).is_some()
    }

    /// The physical address of `address` and what finding it out costs, if the page has been touched and that takes no
    /// read of memory; it is not asked for otherwise, and nothing changes.
    pub fn translate_if_near(&mut self, address: u64, table: &mut PageTable) -> Option<(u64, Translation)> {
        table.physical(address)?;
        let is_near = self.is_known(address) || self.walk_cache.find(entry_of(address >> PAGE_SHIFT)).is_some();
        is_near.then(|| self.translate(address, table))
    }

    /// Forgets everything: another address space, or power is gone.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.walk_cache.clear();
        self.last = (u64::MAX, 0);
    }

    fn look_up(&mut self, page: u64, table: &mut PageTable) -> (u64, Translation) {
        if !self.is_enabled {
            return (table.frame(page), Translation::Hit);
        }
        if let Some(entry) = self.entries.find_and_touch(LineAddress(page)) {
            self.hits += 1;
            return (self.frames[entry], Translation::Hit);
        }
        let frame = table.frame(page);
        let place = self.entries.place_for(LineAddress(page));
        if place.victim.is_some() {
            self.entries.remove_at(place.index);
        }
        self.entries.insert_at(place.index, LineAddress(page), Line::default());
        self.frames[place.index] = frame;
        self.walks += 1;
        let entry = entry_of(page);
        if self.walk_cache.find_and_touch(entry).is_some() {
            return (frame, Translation::Walk);
        }
        let place = self.walk_cache.place_for(entry);
        if place.victim.is_some() {
            self.walk_cache.remove_at(place.index);
        }
        self.walk_cache.insert_at(place.index, entry, Line::default());
        self.walk_reads += 1;
        (frame, Translation::Read(entry))
    }
}

/// Pages between the entries of a process and those of the next, in whose part of the address space the same page
/// is (see `fencepost_record`'s trees).
const PROCESS_STRIDE: u64 = 0x1_3c6e_f370;

/// Where the last level of the page table has the entry of `page`.
fn entry_of(page: u64) -> LineAddress {
    let process = page >> (48 - PAGE_SHIFT);
    let entry = page.wrapping_add(process.wrapping_mul(PROCESS_STRIDE));
    LineAddress::containing(PAGE_TABLE_BASE + entry % (1 << 35) * 8)
}
