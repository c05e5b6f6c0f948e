//! When reclaim begins and ends (mm/page_alloc.c, `calculate_min_free_kbytes` and `__setup_per_zone_wmarks`).

const PAGE_KB: u64 = 4;
const MIN_FREE_KB: (u64, u64) = (128, 262_144);

/// Free pages of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watermarks {
    /// Below it, whoever wants a page reclaims first.
    pub min: u32,
    /// Below it, kswapd is woken.
    pub low: u32,
    /// At it, kswapd sleeps.
    pub high: u32,
}

impl Watermarks {
    /// Of one zone that has all memory.
    #[must_use]
    pub fn of(managed_pages: u32) -> Self {
        let managed = u64::from(managed_pages);
        let min_kb = (16 * managed * PAGE_KB).isqrt().clamp(MIN_FREE_KB.0, MIN_FREE_KB.1);
        let min = min_kb / PAGE_KB;
        let apart = (min / 4).max(managed / 1000);
        Self { min: min as u32, low: (min + apart) as u32, high: (min + 2 * apart) as u32 }
    }
}

/// The least memory in which so many pages stay and the high mark is free: kswapd takes none of them.
#[must_use]
pub fn memory_for(resident_pages: u32) -> u32 {
    // The mark depends on memory: it grows until both fit.
    let mut memory = resident_pages;
    while memory < resident_pages + Watermarks::of(memory).high {
        memory = resident_pages + Watermarks::of(memory).high;
    }
    memory
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_has_room_for_what_stays_and_the_high_mark() {
        for resident in [1000, 3776, 100_000] {
            let memory = memory_for(resident);
            assert_eq!(memory, resident + Watermarks::of(memory).high);
            assert!(memory - 1 < resident + Watermarks::of(memory - 1).high);
        }
    }

    #[test]
    fn sixteen_gib_keep_sixteen_mib() {
        // sqrt(16 x 16,777,216 kB) = 16,384 kB; a thousandth of memory lies between the marks.
        assert_eq!(Watermarks::of(4 << 20), Watermarks { min: 4096, low: 8290, high: 12484 });
    }

    #[test]
    fn small_memory_has_a_quarter_of_min_between_its_marks() {
        // 16 MiB: sqrt(16 x 16,384) = 512 kB.
        assert_eq!(Watermarks::of(4096), Watermarks { min: 128, low: 160, high: 192 });
    }

    #[test]
    fn bounds_hold() {
        assert_eq!(Watermarks::of(16).min, 32);
        assert_eq!(Watermarks::of(u32::MAX).min, 65_536);
    }
}
