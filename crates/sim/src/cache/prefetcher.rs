//! A stride prefetcher (Baer and Chen 1991): it learns, for each load instruction, the distance between successive addresses, and once that has been
//! the same twice in a row asks for what comes next.

use super::config::{CacheConfig, PrefetcherKind};

/// How often a stride must have been confirmed.
const CONFIRMED: u8 = 2;

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    instruction: u32,
    last: u64,
    stride: i64,
    confirmed: u8,
}

/// The table of one first-level data cache.
#[derive(Clone, Debug)]
pub struct StridePrefetcher {
    entries: Box<[Entry]>,
    degree: i64,
}

impl StridePrefetcher {
    /// The prefetcher that `config` asks for, if any.
    pub fn of(config: &CacheConfig) -> Option<StridePrefetcher> {
        match config.prefetcher {
            PrefetcherKind::None => None,
            PrefetcherKind::Stride => Some(StridePrefetcher {
                entries: vec![Entry::default(); usize::from(config.prefetch_entries)].into(),
                degree: i64::from(config.prefetch_degree),
            }),
        }
    }

    /// A load of `instruction` accesses `address`: gives the address that is worth having, if there is one: as far ahead as the degree says, in
    /// another line.
    #[inline]
    pub fn observe(&mut self, instruction: u32, address: u64) -> Option<u64> {
        let index = instruction as usize % self.entries.len();
        let entry = &mut self.entries[index];
        if entry.instruction != instruction {
            *entry = Entry { instruction, last: address, stride: 0, confirmed: 0 };
            return None;
        }
        let stride = address.wrapping_sub(entry.last) as i64;
        entry.last = address;
        if stride != entry.stride || stride == 0 {
            entry.stride = stride;
            entry.confirmed = 0;
            return None;
        }
        entry.confirmed = (entry.confirmed + 1).min(CONFIRMED);
        // A stride within a line is taken as a walk from line to line.
        let step = if stride.abs() < 64 { 64 * stride.signum() } else { stride };
        (entry.confirmed == CONFIRMED).then(|| address.wrapping_add_signed(step * self.degree))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefetcher(degree: u8) -> StridePrefetcher {
        StridePrefetcher { entries: vec![Entry::default(); 16].into(), degree: i64::from(degree) }
    }

    #[test]
    fn a_stride_seen_three_times_is_followed() {
        let mut prefetcher = prefetcher(2);
        let asked: Vec<_> = (0..5).map(|step| prefetcher.observe(7, 1000 + step * 256)).collect();
        assert_eq!(asked, [None, None, None, Some(1768 + 512), Some(2024 + 512)]);
    }

    #[test]
    fn small_strides_ask_for_the_next_lines() {
        let mut prefetcher = prefetcher(1);
        let last = (0..4).map(|step| prefetcher.observe(7, step * 8)).last();
        assert_eq!(last, Some(Some(24 + 64)));
    }

    #[test]
    fn another_instruction_or_a_broken_stride_starts_anew() {
        let mut prefetcher = prefetcher(1);
        (0..4).for_each(|step| _ = prefetcher.observe(7, step * 64));
        assert_eq!(prefetcher.observe(7, 9999), None);
        assert_eq!(prefetcher.observe(23, 0), None, "it takes the same entry");
        assert_eq!(prefetcher.observe(7, 9999 + 64), None);
    }
}
