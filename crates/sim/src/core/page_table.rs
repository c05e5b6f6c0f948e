//! The address space of a process: which physical page each virtual one gets.
//!
//! A page gets its frame at its first touch. The first touch of a mapping reserves frames for all of it, so that it is contiguous in DRAM or PM as
//! long as there is room; a mapping that would take more than a quarter of its memory (a reservation that is never filled, as a rule) gets
//! its frames page by page.

use std::num::NonZeroU64;
use std::ops::Range;

use crate::line::{LINE_BYTES, LineAddress};
use crate::sparse_table::SparseTable;

/// log2 of the size of a page.
pub const PAGE_SHIFT: u32 = 12;

/// How many lines an access of `size` bytes to `address` touches.
#[inline]
pub fn lines_of_access(address: u64, size: u16) -> u64 {
    (address + u64::from(size.max(1)) - 1) / LINE_BYTES - address / LINE_BYTES + 1
}

/// The frames of one kind of memory, in stretches of consecutive ones.
#[derive(Clone, Debug)]
struct Frames {
    stretches: Vec<Stretch>,
}

/// Consecutive frames, of which those before `next` are taken.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    first: u64,
    next: u64,
    end: u64,
}

impl Stretch {
    fn has_room(&self, pages: u64) -> bool {
        pages <= self.end - self.next
    }
}

impl Frames {
    /// The whole frames of ascending ranges of physical addresses; ranges without a gap between them are one stretch.
    fn new(ranges: &[Range<u64>]) -> Frames {
        let mut stretches: Vec<Stretch> = Vec::new();
        for range in ranges {
            let (first, end) = (range.start.div_ceil(1 << PAGE_SHIFT), range.end >> PAGE_SHIFT);
            match stretches.last_mut() {
                Some(last) if last.end == first => last.end = end,
                _ => stretches.push(Stretch { first, next: first, end }),
            }
        }
        Frames { stretches }
    }

    /// Takes consecutive frames from the first stretch that has so many.
    fn take(&mut self, pages: u64) -> Option<u64> {
        let stretch = self.stretches.iter_mut().find(|stretch| stretch.has_room(pages))?;
        stretch.next += pages;
        Some(stretch.next - pages)
    }

    fn first(&self) -> u64 {
        self.stretches.first().map_or(0, |stretch| stretch.first)
    }

    fn taken(&self) -> u64 {
        self.stretches.iter().map(|stretch| stretch.next - stretch.first).sum()
    }

    /// Whether a mapping of so many pages may be contiguous.
    fn may_reserve(&self, pages: u64) -> bool {
        let all: u64 = self.stretches.iter().map(|stretch| stretch.end - stretch.first).sum();
        pages <= all / 4 && self.stretches.iter().any(|stretch| stretch.has_room(pages))
    }
}

/// A range of virtual pages that is contiguous in physical memory once it is touched.
#[derive(Clone, Debug)]
struct Mapping {
    pages: Range<u64>,
    first_frame: Option<u64>,
}

/// The page table of one process.
#[derive(Clone, Debug)]
pub struct PageTable {
    /// One more than the frame of each page that has been touched.
    frames: SparseTable<Option<NonZeroU64>>,
    persistent: Vec<Range<u64>>,
    mappings: Vec<Mapping>,
    /// Code that the kernel maps into every process: the vDSO.
    vdso: Vec<Range<u64>>,
    dram: Frames,
    pm: Frames,
    /// The kind of memory that has run out.
    exhausted: Option<&'static str>,
}

impl PageTable {
    /// An address space in which the virtual ranges `persistent` are PM, and those of `mapped` are contiguous where they can be (each list sorted
    /// and disjoint, in bytes), in so many bytes of DRAM and these ascending ranges of physical addresses in PM.
    pub fn new(persistent: Vec<Range<u64>>, mapped: &[Range<u64>], dram_bytes: u64, pm: &[Range<u64>]) -> PageTable {
        // Where PM begins or ends inside a mapping, two begin and end.
        let cuts = |range: &Range<u64>| {
            let borders = persistent.iter().flat_map(|pm| [pm.start, pm.end]);
            let mut cuts: Vec<u64> = borders.filter(|border| range.start < *border && *border < range.end).collect();
            cuts.push(range.end);
            cuts
        };
        let mut mappings = Vec::new();
        for range in mapped {
            let mut start = range.start;
            for cut in cuts(range) {
                let pages = start >> PAGE_SHIFT..cut >> PAGE_SHIFT;
                mappings.push(Mapping { pages, first_frame: None });
                start = cut;
            }
        }
        PageTable {
            frames: SparseTable::default(),
            persistent,
            mappings,
            vdso: Vec::new(),
            dram: Frames::new(std::slice::from_ref(&(0..dram_bytes))),
            pm: Frames::new(pm),
            exhausted: None,
        }
    }

    /// The same with the vDSO at these virtual addresses.
    pub fn with_vdso(mut self, ranges: Vec<Range<u64>>) -> PageTable {
        self.vdso = ranges;
        self
    }

    /// Whether the virtual `address` lies in the vDSO.
    pub fn is_vdso(&self, address: u64) -> bool {
        self.vdso.iter().any(|range| range.contains(&address))
    }

    /// The physical page number of a virtual one.
    pub fn frame(&mut self, page: u64) -> u64 {
        self.frames.get(page).map_or_else(|| self.first_touch(page), |behind| behind.get() - 1)
    }

    /// The physical address of `address`, if its page has been touched.
    pub fn physical(&self, address: u64) -> Option<u64> {
        let frame = self.frames.get(address >> PAGE_SHIFT)?.get() - 1;
        Some((frame << PAGE_SHIFT) | (address & ((1 << PAGE_SHIFT) - 1)))
    }

    /// Line number `index` of an access to the virtual `address`, which lies at `physical`. Where the access crosses into another page, its lines lie
    /// wherever that page does.
    #[inline]
    pub fn line_of_access(&mut self, address: u64, physical: u64, index: u64) -> LineAddress {
        let line = address / LINE_BYTES + index;
        if (line * LINE_BYTES) >> PAGE_SHIFT == address >> PAGE_SHIFT {
            return LineAddress(physical / LINE_BYTES + index);
        }
        let lines_of_page = (1 << PAGE_SHIFT) / LINE_BYTES;
        LineAddress(self.frame(line / lines_of_page) * lines_of_page + line % lines_of_page)
    }

    /// How many frames of DRAM and of PM are taken.
    pub fn frames_taken(&self) -> (u64, u64) {
        (self.dram.taken(), self.pm.taken())
    }

    /// The kind of memory of which the program touches more than the machine has.
    pub fn exhausted(&self) -> Option<&'static str> {
        self.exhausted
    }

    /// Whether the page of the virtual `address` lies in PM.
    pub fn is_persistent(&self, address: u64) -> bool {
        let address = address & !((1 << PAGE_SHIFT) - 1);
        let behind = self.persistent.partition_point(|range| range.start <= address);
        // A range may begin inside a page: the whole page is PM then.
        let page_end = address + (1 << PAGE_SHIFT);
        let starts_inside = self.persistent.get(behind).is_some_and(|range| range.start < page_end);
        starts_inside || behind.checked_sub(1).is_some_and(|before| self.persistent[before].end > address)
    }

    /// The page gets its frame.
    #[cold]
    fn first_touch(&mut self, page: u64) -> u64 {
        let frame = self.choose(page);
        *self.frames.get_mut(page) = NonZeroU64::new(frame + 1);
        frame
    }

    /// Finds a frame for a page that is touched for the first time.
    fn choose(&mut self, page: u64) -> u64 {
        let is_persistent = self.is_persistent(page << PAGE_SHIFT);
        let (memory, name) = if is_persistent { (&mut self.pm, "PM") } else { (&mut self.dram, "DRAM") };
        let behind = self.mappings.partition_point(|mapping| mapping.pages.start <= page);
        let mapping = self.mappings[..behind].last_mut().filter(|mapping| mapping.pages.contains(&page));
        if let Some(mapping) = mapping {
            let pages = mapping.pages.end - mapping.pages.start;
            if mapping.first_frame.is_none() && memory.may_reserve(pages) {
                mapping.first_frame = memory.take(pages);
            }
            if let Some(first) = mapping.first_frame {
                return first + (page - mapping.pages.start);
            }
        }
        memory.take(1).unwrap_or_else(|| {
            self.exhausted = Some(name);
            memory.first()
        })
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "lists of ranges, some of them with one")]
mod tests {
    use super::*;
    use crate::address_map::PM_BASE;

    const PAGE: u64 = 1 << PAGE_SHIFT;

    #[test]
    fn a_mapping_is_contiguous_whatever_is_touched_between() {
        let mut table = PageTable::new(vec![], &[10 * PAGE..14 * PAGE, 20 * PAGE..22 * PAGE], 1 << 20, &[]);
        assert_eq!([12, 20, 13, 10, 21].map(|page| table.frame(page)), [2, 4, 3, 0, 5]);
        assert_eq!(table.frame(99), 6, "a page of no mapping gets the next frame");
    }

    #[test]
    fn the_part_of_a_mapping_that_is_pm_lies_in_pm() {
        let mut table = PageTable::new(
            vec![12 * PAGE..13 * PAGE],
            &[10 * PAGE..14 * PAGE],
            1 << 20,
            &[PM_BASE..PM_BASE + (1 << 20)],
        );
        assert_eq!([10, 11, 12, 13].map(|page| table.frame(page)), [0, 1, PM_BASE >> PAGE_SHIFT, 2]);
    }

    #[test]
    fn a_reservation_larger_than_a_quarter_of_memory_is_filled_page_by_page() {
        let mut table = PageTable::new(vec![], &[0..1 << 40], 16 * PAGE, &[]);
        assert_eq!([7, 3, 9].map(|page| table.frame(page)), [0, 1, 2]);
    }

    #[test]
    fn an_access_over_the_end_of_a_page_goes_on_where_the_next_page_lies() {
        let mut table = PageTable::new(vec![], &[], 1 << 20, &[]);
        let [_, _, page] = [11, 99, 10].map(|page| table.frame(page) * PAGE);
        let address = 10 * PAGE + PAGE - 4;
        assert_eq!(lines_of_access(address, 8), 2);
        let lines = [0, 1].map(|index| table.line_of_access(address, page + PAGE - 4, index).byte());
        assert_eq!(lines, [page + PAGE - 64, 0], "page 11 was touched first");
    }

    #[test]
    fn a_mapping_lies_in_one_stretch_of_pm_and_single_pages_wherever_there_is_room() {
        let stretches = [0..2 * PAGE, 8 * PAGE..11 * PAGE, 11 * PAGE..20 * PAGE]
            .map(|range| PM_BASE + range.start..PM_BASE + range.end);
        let mut table = PageTable::new(vec![0..1 << 30], &[50 * PAGE..53 * PAGE], 0, &stretches);
        let frames = [9, 51, 10, 11, 50, 52].map(|page| table.frame(page) - (PM_BASE >> PAGE_SHIFT));
        assert_eq!(frames, [0, 9, 1, 11, 8, 10], "stretches without a gap between them are one");
        assert_eq!(table.frames_taken(), (0, 6));
    }

    #[test]
    fn memory_that_runs_out_is_named() {
        let mut table = PageTable::new(vec![0..1 << 30], &[], 1 << 20, &[PM_BASE..PM_BASE + 2 * PAGE]);
        (0..2).for_each(|page| _ = table.frame(page));
        assert_eq!(table.exhausted(), None);
        table.frame(2);
        assert_eq!(table.exhausted(), Some("PM"));
    }
}
