//! A line of memory: what all components name, order and count.

/// Bytes of a cache line; CXL.mem moves nothing smaller.
pub const LINE_BYTES: u64 = 64;

/// A physical line: the host physical address divided by 64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineAddress(pub u64);

impl LineAddress {
    /// The line that holds the byte at `address`.
    #[inline]
    pub fn containing(address: u64) -> LineAddress {
        LineAddress(address / LINE_BYTES)
    }

    /// The physical address of the line's first byte.
    #[inline]
    pub fn byte(self) -> u64 {
        self.0 * LINE_BYTES
    }
}

/// Which write of a line's history: the number of stores that have been performed on it. Version 0 is the initial
/// content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

/// Which bytes of a line a write carries; bit 0 is the first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteMask(pub u64);

impl ByteMask {
    /// All 64 bytes: an ordinary `MemWr`.
    pub const FULL: ByteMask = ByteMask(u64::MAX);

    /// Whether every byte is there.
    #[inline]
    pub fn is_full(self) -> bool {
        self.0 == u64::MAX
    }
}
