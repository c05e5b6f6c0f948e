//! The free frames of memory nodes.

use std::ops::Range;

use crate::address_space::page_table::PAGE_SHIFT;

/// The frames of one node, or of several together, in stretches of consecutive ones.
#[derive(Clone, Debug, Default)]
pub struct Frames {
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
    pub fn new(ranges: &[Range<u64>]) -> Frames {
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
    pub fn take(&mut self, pages: u64) -> Option<u64> {
        let stretch = self.stretches.iter_mut().find(|stretch| stretch.has_room(pages))?;
        stretch.next += pages;
        Some(stretch.next - pages)
    }

    /// The first frame, taken or not; 0 if there is none.
    pub fn first(&self) -> u64 {
        self.stretches.first().map_or(0, |stretch| stretch.first)
    }

    /// How many are taken.
    pub fn taken(&self) -> u64 {
        self.stretches.iter().map(|stretch| stretch.next - stretch.first).sum()
    }

    /// Whether a mapping of so many pages may be contiguous.
    pub fn may_reserve(&self, pages: u64) -> bool {
        let all: u64 = self.stretches.iter().map(|stretch| stretch.end - stretch.first).sum();
        pages <= all / 4 && self.stretches.iter().any(|stretch| stretch.has_room(pages))
    }
}
