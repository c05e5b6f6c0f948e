//! A stride prefetcher (Baer and Chen 1991): it learns, for each load or store instruction, the distance between
//! successive addresses, and once that has been the same twice in a row asks for what comes next.

use super::Ahead;
use crate::cache::config::CacheConfig;

/// How often a stride must have been confirmed.
const CONFIRMED: u8 = 2;

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    instruction: u32,
    last: u64,
    stride: i64,
    confirmed: u8,
}

/// The table of one cache.
#[derive(Clone, Debug)]
pub struct Strides {
    entries: Box<[Entry]>,
    distance: i64,
    degree: u8,
}

impl Strides {
    /// As `config` says.
    pub fn new(config: &CacheConfig) -> Strides {
        Strides {
            entries: vec![Entry::default(); usize::from(config.prefetch_entries)].into(),
            distance: i64::from(config.prefetch_distance),
            degree: config.prefetch_degree,
        }
    }

    /// A load or store of `instruction` accesses `address`: gives what comes next.
    #[inline]
    pub fn observe(&mut self, instruction: u32, address: u64) -> Ahead {
        let index = instruction as usize % self.entries.len();
        let entry = &mut self.entries[index];
        if entry.instruction != instruction {
            *entry = Entry { instruction, last: address, stride: 0, confirmed: 0 };
            return Ahead::default();
        }
        let stride = address.wrapping_sub(entry.last) as i64;
        entry.last = address;
        if stride != entry.stride || stride == 0 {
            entry.stride = stride;
            entry.confirmed = 0;
            return Ahead::default();
        }
        entry.confirmed = (entry.confirmed + 1).min(CONFIRMED);
        // A stride within a line is taken as a walk from line to line.
        let step = if stride.abs() < 64 { 64 * stride.signum() } else { stride };
        let left = if entry.confirmed == CONFIRMED { self.degree } else { 0 };
        Ahead { next: address.wrapping_add_signed(step * self.distance), step, left }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefetcher(degree: u8, distance: i64) -> Strides {
        Strides { entries: vec![Entry::default(); 16].into(), distance, degree }
    }

    fn observe(prefetcher: &mut Strides, instruction: u32, address: u64) -> Vec<u64> {
        prefetcher.observe(instruction, address).collect()
    }

    #[test]
    fn a_stride_seen_three_times_is_followed() {
        let mut prefetcher = prefetcher(2, 1);
        let asked: Vec<_> = (0..5).map(|step| observe(&mut prefetcher, 7, 1000 + step * 256)).collect();
        assert_eq!(asked, [vec![], vec![], vec![], vec![1768 + 256, 1768 + 512], vec![2024 + 256, 2024 + 512]]);
    }

    #[test]
    fn the_degree_says_how_many_and_the_distance_where_they_begin() {
        let last = |degree, distance| {
            let mut prefetcher = prefetcher(degree, distance);
            (0..4).map(|step| observe(&mut prefetcher, 7, step * 256)).last().unwrap()
        };
        assert_eq!(last(1, 4), [768 + 4 * 256]);
        assert_eq!(last(3, 1), [1, 2, 3].map(|ahead| 768 + ahead * 256));
        assert_eq!(last(2, 5), [5, 6].map(|ahead| 768 + ahead * 256));
    }

    #[test]
    fn small_strides_ask_for_the_next_lines() {
        let mut prefetcher = prefetcher(2, 1);
        let last = (0..4).map(|step| observe(&mut prefetcher, 7, step * 8)).last();
        assert_eq!(last, Some(vec![24 + 64, 24 + 128]));
    }

    #[test]
    fn another_instruction_or_a_broken_stride_starts_anew() {
        let mut prefetcher = prefetcher(1, 1);
        (0..4).for_each(|step| _ = prefetcher.observe(7, step * 64));
        assert_eq!(observe(&mut prefetcher, 7, 9999), [0_u64; 0]);
        assert_eq!(observe(&mut prefetcher, 23, 0), [0_u64; 0], "it takes the same entry");
        assert_eq!(observe(&mut prefetcher, 7, 9999 + 64), [0_u64; 0]);
    }
}
