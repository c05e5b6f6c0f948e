//! When reclaim begins and ends (mm/page_alloc.c, `calculate_min_free_kbytes` and `__setup_per_zone_wmarks`).

use super::preset::Preset;

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

/// The least memory in which zswap's pool, kept in it, holds all of `pages` that there is no room for: resident pages,
/// pool and high mark make up memory. The pool has the size below which the kernel accepts pages; each page that it
/// holds takes `pool_per_page` pages of it.
#[must_use]
pub fn fitting_memory(preset: &Preset, pages: u32, pool_per_page: f64) -> u32 {
    let part = f64::from(preset.pool_percent_max * preset.accept_percent) / 10_000.0;
    let saved = part * (1.0 / pool_per_page - 1.0);
    // The marks depend on memory: it grows until they fit.
    let mut memory = 0;
    loop {
        let wanted = (f64::from(pages) + f64::from(Watermarks::of(memory).high)) / (1.0 + saved);
        if wanted.ceil() as u32 <= memory {
            return memory;
        }
        memory = wanted.ceil() as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::preset::LINUX_6_2;

    #[test]
    fn what_fits_is_resident_or_in_a_pool_that_still_accepts() {
        // 18 % of memory hold twice as many pages: memory is 1 / 1.18 of them and of the free ones.
        let memory = fitting_memory(&LINUX_6_2, 10_000, 0.5);
        let high = Watermarks::of(memory).high;
        let pool = 0.18 * f64::from(memory);
        let held = f64::from(memory) - f64::from(high) - pool + 2.0 * pool;
        assert!((held - 10_000.0).abs() <= 2.0, "{memory}: {held}");
        // What does not compress gains nothing.
        let whole = fitting_memory(&LINUX_6_2, 10_000, 1.0);
        assert_eq!(whole, 10_000 + Watermarks::of(whole).high);
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
