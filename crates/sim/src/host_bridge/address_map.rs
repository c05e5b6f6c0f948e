//! The physical address map of a host: DRAM from 0, persistent memory from [`PM_BASE`].
//!
//! Which port leads to which part of either region is the business of the [decoder](super::decoder); this file says only what is what.

use crate::message::{LINE_BYTES, LineAddress};

/// The lowest physical address of persistent memory. Everything below is DRAM.
pub const PM_BASE: u64 = 1 << 40;

/// The first line of persistent memory.
pub const PM_BASE_LINE: LineAddress = LineAddress(PM_BASE / LINE_BYTES);

/// Whether `line` lies in persistent memory.
pub fn is_pm(line: LineAddress) -> bool {
    line >= PM_BASE_LINE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pm_begins_at_its_base_and_not_one_line_before() {
        assert!(is_pm(LineAddress::containing(PM_BASE)));
        assert!(!is_pm(LineAddress::containing(PM_BASE - 1)));
        assert!(!is_pm(LineAddress(0)));
        assert_eq!(PM_BASE_LINE.byte(), PM_BASE);
    }
}
