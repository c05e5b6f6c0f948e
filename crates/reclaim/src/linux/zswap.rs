//! zswap: a pool of compressed pages before the swap device (mm/zswap.c).

use std::collections::VecDeque;

use super::allocator::{Allocator, Place};
use super::preset::Preset;
use crate::page::Facts;

/// What zbud and zsmalloc keep beside an entry, so that it can be written back (`struct zswap_header`).
const HEADER_BYTES: usize = 8;

/// Pages of memory that a pool takes for a page that it keeps, on average over these; none if it keeps none.
#[must_use]
pub fn pool_pages_per_page<'a>(preset: &Preset, pages: impl Iterator<Item = &'a Facts>) -> Option<f64> {
    let mut pool = Allocator::new(preset.packing);
    let mut is_kept = |facts: &Facts| {
        facts.same_filled.is_some() || pool.allocate(facts.compressed as usize + HEADER_BYTES).is_some()
    };
    let kept = pages.filter(|facts| is_kept(facts)).count();
    (kept > 0).then(|| f64::from(pool.pages()) / kept as f64)
}

/// What came of a page that was to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// Its word is kept, and no page.
    SameFilled,
    /// Compressed.
    Compressed,
    /// It was compressed, and is too large.
    Poor,
    /// There was no room; it was not compressed.
    Full,
}

/// What is in the pool of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Only its word.
    SameFilled,
    /// As it is, in an expander.
    Whole,
    /// There, and its number among all stores.
    At(Place, u32),
}

/// The pool.
#[derive(Clone, Debug)]
pub struct Zswap {
    allocator: Allocator,
    entries: Vec<Option<Entry>>,
    /// Oldest first; entries may be stale.
    order: VecDeque<(u32, u32)>,
    stores: u32,
    pages_max: u32,
    pages_accepting: u32,
    has_been_full: bool,
    /// Whether the worker has been kicked since it was last asked.
    is_kicked: bool,
    until_accepting: bool,
    keeps_whole: bool,
}

impl Zswap {
    /// Empty, of a machine with so much memory, for pages 0 to `pages`.
    #[must_use]
    pub fn new(preset: &Preset, memory_pages: u32, pages: u32) -> Self {
        let pages_max = memory_pages * preset.pool_percent_max / 100;
        Self {
            allocator: Allocator::new(preset.packing),
            entries: vec![None; pages as usize],
            order: VecDeque::new(),
            stores: 0,
            pages_max,
            pages_accepting: pages_max * preset.accept_percent / 100,
            has_been_full: false,
            is_kicked: false,
            until_accepting: preset.writes_back_until_accepting,
            keeps_whole: false,
        }
    }

    /// Not zswap, but an expander in its place: it takes every page as it is.
    #[must_use]
    pub fn expander(self) -> Self {
        Self { keeps_whole: true, ..self }
    }

    /// Pages of memory that it takes.
    #[must_use]
    pub fn pages(&self) -> u32 {
        self.allocator.pages()
    }

    /// What it has of a page.
    #[must_use]
    pub fn entry(&self, page: u32) -> Option<Entry> {
        self.entries[page as usize]
    }

    /// `zswap_frontswap_store`.
    pub fn store(&mut self, page: u32, facts: &Facts) -> Stored {
        self.invalidate(page);
        if self.keeps_whole {
            self.entries[page as usize] = Some(Entry::Whole);
            return Stored::Compressed;
        }
        let pages = self.pages();
        if pages > self.pages_max {
            self.has_been_full = true;
        }
        if self.has_been_full {
            if pages > self.pages_accepting {
                self.is_kicked = true;
                return Stored::Full;
            }
            self.has_been_full = false;
        }
        if facts.same_filled.is_some() {
            self.entries[page as usize] = Some(Entry::SameFilled);
            return Stored::SameFilled;
        }
        let Some(place) = self.allocator.allocate(facts.compressed as usize + HEADER_BYTES) else {
            return Stored::Poor;
        };
        self.stores += 1;
        self.entries[page as usize] = Some(Entry::At(place, self.stores));
        self.order.push_back((page, self.stores));
        Stored::Compressed
    }

    /// The page's entry goes.
    pub fn invalidate(&mut self, page: u32) {
        if let Some(Entry::At(place, _)) = self.entries[page as usize].take() {
            self.allocator.free(place);
        }
    }

    /// The next entry that the worker has to write back, if it was kicked; it is no longer in the pool.
    pub fn written_back(&mut self) -> Option<u32> {
        if !self.is_kicked {
            return None;
        }
        self.is_kicked = false;
        while let Some((page, number)) = self.order.pop_front() {
            if matches!(self.entries[page as usize], Some(Entry::At(_, of)) if of == number) {
                self.invalidate(page);
                self.is_kicked = self.until_accepting && self.pages() > self.pages_accepting;
                return Some(page);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::preset::{LINUX_6_2, LINUX_6_8};
    use crate::page::Class;

    fn facts(compressed: u32) -> Facts {
        Facts { same_filled: None, compressed, class: Class::Half, checksum: 0 }
    }

    /// 100 pages of memory: 20 for the pool, which accepts again at 18.
    fn filled(preset: &Preset) -> Zswap {
        let mut zswap = Zswap::new(preset, 100, 100);
        for page in 0..21 {
            assert_eq!(zswap.store(page, &facts(3900)), Stored::Compressed);
        }
        zswap
    }

    #[test]
    fn a_full_pool_rejects_until_it_is_below_nine_tenths() {
        let mut zswap = filled(&LINUX_6_2);
        assert_eq!(zswap.pages(), 21);
        assert_eq!(zswap.store(50, &facts(100)), Stored::Full);
        zswap.invalidate(3);
        zswap.invalidate(4);
        assert_eq!(zswap.store(50, &facts(100)), Stored::Full, "19 pages are more than 18");
        zswap.invalidate(5);
        assert_eq!(zswap.store(50, &facts(100)), Stored::Compressed);
    }

    #[test]
    fn a_kick_writes_back_one_entry_in_6_2_and_goes_on_in_6_8() {
        let mut old = filled(&LINUX_6_2);
        assert_eq!(old.written_back(), None, "nobody has kicked");
        old.store(50, &facts(100));
        assert_eq!((old.written_back(), old.written_back()), (Some(0), None));
        let mut new = filled(&LINUX_6_8);
        new.store(50, &facts(100));
        assert_eq!([new.written_back(), new.written_back(), new.written_back()], [Some(0), Some(1), Some(2)]);
        assert_eq!(new.written_back(), None);
    }

    #[test]
    fn a_pool_takes_a_page_for_two_halves_and_for_one_that_hardly_compresses() {
        let of = |sizes: &[u32]| {
            let pages: Vec<Facts> = sizes.iter().map(|&size| facts(size)).collect();
            pool_pages_per_page(&LINUX_6_2, pages.iter())
        };
        assert_eq!(of(&[1900; 4]), Some(0.5));
        assert_eq!(of(&[1900, 1900, 3800, 3800]), Some(0.75));
        assert_eq!(of(&[3800, 4100]), Some(1.0), "what is not kept takes nothing");
        assert_eq!(of(&[4100]), None);
    }

    #[test]
    fn same_filled_pages_take_no_memory_and_poor_ones_are_not_kept() {
        let mut zswap = Zswap::new(&LINUX_6_2, 100, 2);
        let same = Facts { same_filled: Some(0), ..facts(30) };
        assert_eq!(zswap.store(0, &same), Stored::SameFilled);
        assert_eq!(zswap.store(1, &facts(3961)), Stored::Poor);
        assert_eq!((zswap.pages(), zswap.entry(0), zswap.entry(1)), (0, Some(Entry::SameFilled), None));
    }
}
