//! The physical address map of a host: its own DRAM from 0, persistent memory from [`PM_BASE`], memory expanders from
//! [`EXPANDER_BASE`].
//!
//! The first DRAM of a host begins at 0 and holds the page tables, from [`PAGE_TABLE_BASE`] on, far above its frames.
//! Further DRAM of the same host lies between the page tables and PM.
//!
//! Which port leads to which part of a region is the business of the decoder of a host bridge; this file
//! says only what is what.

use crate::line::{LINE_BYTES, LineAddress};

/// Where page-table entries lie.
pub const PAGE_TABLE_BASE: u64 = 1 << 39;

/// The end of the page tables: 8 bytes for each of 2^35 virtual pages.
pub const PAGE_TABLE_END: u64 = PAGE_TABLE_BASE + (8 << 35);

/// The lowest physical address of persistent memory. Everything below is the host's own DRAM.
pub const PM_BASE: u64 = 1 << 40;

/// The lowest physical address of the DRAM of memory expanders: half of the 52 bits that x86-64 page tables can name.
pub const EXPANDER_BASE: u64 = 1 << 51;

/// The end of the physical address space.
pub const ADDRESS_END: u64 = 1 << 52;

/// The first line of persistent memory.
pub const PM_BASE_LINE: LineAddress = LineAddress(PM_BASE / LINE_BYTES);

/// Whether `line` lies in persistent memory.
#[inline]
pub fn is_pm(line: LineAddress) -> bool {
    line.0.wrapping_sub(PM_BASE_LINE.0) < (EXPANDER_BASE - PM_BASE) / LINE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pm_begins_at_its_base_and_ends_where_expanders_begin() {
        assert!(is_pm(LineAddress::containing(PM_BASE)));
        assert!(!is_pm(LineAddress::containing(PM_BASE - 1)));
        assert!(!is_pm(LineAddress(0)));
        assert!(is_pm(LineAddress::containing(EXPANDER_BASE - 1)));
        assert!(!is_pm(LineAddress::containing(EXPANDER_BASE)));
        assert!(!is_pm(LineAddress::containing(ADDRESS_END - 1)));
        assert_eq!(PM_BASE_LINE.byte(), PM_BASE);
    }
}
