//! Anonymous pages in order of their last use, as far as referenced bits show it: active and inactive (mm/vmscan.c).

use std::collections::VecDeque;

/// What is known of a page on a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bits {
    /// The processor's: touched since it was looked at.
    is_accessed: bool,
    /// The kernel's (`PG_referenced`): it had been touched when it was looked at before.
    is_referenced: bool,
    is_active: bool,
    /// Times that it has been put on a list: entries of earlier ones are stale.
    stamp: u32,
    is_listed: bool,
}

/// Both lists.
#[derive(Clone, Debug, Default)]
pub struct Lru {
    bits: Vec<Bits>,
    active: VecDeque<(u32, u32)>,
    inactive: VecDeque<(u32, u32)>,
    active_count: u32,
    inactive_count: u32,
}

impl Lru {
    /// For so many pages, none listed.
    #[must_use]
    pub fn new(pages: u32) -> Self {
        Self { bits: vec![Bits::default(); pages as usize], ..Self::default() }
    }

    /// A page comes: it begins inactive (since 5.9).
    pub fn add(&mut self, page: u32) {
        assert!(!self.bits[page as usize].is_listed, "page {page} is listed");
        self.put(page, false);
        self.bits[page as usize].is_referenced = false;
    }

    /// A page goes.
    pub fn remove(&mut self, page: u32) {
        let bits = &mut self.bits[page as usize];
        if bits.is_listed {
            bits.is_listed = false;
            *if bits.is_active { &mut self.active_count } else { &mut self.inactive_count } -= 1;
        }
    }

    /// A page is touched.
    pub fn touch(&mut self, page: u32) {
        self.bits[page as usize].is_accessed = true;
    }

    /// Active and inactive pages.
    #[must_use]
    pub fn counts(&self) -> (u32, u32) {
        (self.active_count, self.inactive_count)
    }

    /// Takes one that has not been used off the inactive list, looking at `scan` at most; counts those that it looked
    /// at.
    pub fn take_unused(&mut self, scan: u32, scanned: &mut u32) -> Option<u32> {
        if self.is_inactive_low() {
            self.shrink_active(scan);
        }
        for _ in 0..scan {
            let page = next(&mut self.inactive, &self.bits, false)?;
            *scanned += 1;
            let bits = &mut self.bits[page as usize];
            let was_accessed = std::mem::take(&mut bits.is_accessed);
            if !was_accessed {
                self.remove(page);
                return Some(page);
            }
            // folio_check_references: at the second look in a row the page is activated.
            let becomes_active = bits.is_referenced;
            bits.is_referenced = true;
            self.remove(page);
            self.put(page, becomes_active);
        }
        None
    }

    /// inactive_is_low: below a gigabyte as many are to be inactive as active.
    fn is_inactive_low(&self) -> bool {
        self.inactive_count < self.active_count
    }

    fn shrink_active(&mut self, scan: u32) {
        for _ in 0..scan {
            let Some(page) = next(&mut self.active, &self.bits, true) else { return };
            self.bits[page as usize].is_accessed = false;
            self.bits[page as usize].is_referenced = false;
            self.remove(page);
            self.put(page, false);
        }
    }

    fn put(&mut self, page: u32, is_active: bool) {
        let bits = &mut self.bits[page as usize];
        bits.stamp += 1;
        bits.is_active = is_active;
        bits.is_listed = true;
        let entry = (page, bits.stamp);
        let (list, count) = if is_active {
            (&mut self.active, &mut self.active_count)
        } else {
            (&mut self.inactive, &mut self.inactive_count)
        };
        list.push_front(entry);
        *count += 1;
    }
}

/// Takes the oldest entry that is still meant.
fn next(list: &mut VecDeque<(u32, u32)>, bits: &[Bits], is_active: bool) -> Option<u32> {
    while let Some((page, stamp)) = list.pop_back() {
        let of = bits[page as usize];
        if of.is_listed && of.stamp == stamp && of.is_active == is_active {
            return Some(page);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(pages: u32) -> Lru {
        let mut lru = Lru::new(pages);
        (0..pages).for_each(|page| lru.add(page));
        lru
    }

    fn take(lru: &mut Lru) -> Option<u32> {
        lru.take_unused(32, &mut 0)
    }

    #[test]
    fn what_came_first_and_was_not_touched_goes_first() {
        let mut lru = of(4);
        lru.touch(0);
        assert_eq!([take(&mut lru), take(&mut lru), take(&mut lru)], [Some(1), Some(2), Some(3)]);
        assert_eq!(take(&mut lru), Some(0), "it was kept once");
        assert_eq!(take(&mut lru), None);
    }

    #[test]
    fn what_is_touched_between_two_looks_becomes_active() {
        let mut lru = of(2);
        lru.touch(0);
        assert_eq!(take(&mut lru), Some(1));
        lru.touch(0);
        lru.add(1);
        assert_eq!(lru.take_unused(1, &mut 0), None);
        assert_eq!(lru.counts(), (1, 1));
    }

    #[test]
    fn active_pages_are_made_inactive_where_those_outnumber_the_others() {
        let mut lru = of(2);
        for _ in 0..2 {
            lru.touch(0);
            lru.touch(1);
            lru.take_unused(2, &mut 0);
        }
        assert_eq!(lru.counts(), (2, 0));
        assert!(take(&mut lru).is_some());
    }

    proptest! {
        #[test]
        fn every_listed_page_is_taken_once(touched in prop::collection::vec(0u32..64, 0..200)) {
            let mut lru = of(64);
            touched.iter().for_each(|&page| lru.touch(page));
            let mut taken: Vec<u32> = std::iter::from_fn(|| {
                (0..200).find_map(|_| take(&mut lru))
            }).collect();
            taken.sort_unstable();
            prop_assert_eq!(taken, (0..64).collect::<Vec<_>>());
        }
    }
}
