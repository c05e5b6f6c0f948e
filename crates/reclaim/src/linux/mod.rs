//! The mechanisms, without time.

pub mod allocator;
pub mod ksm;
pub mod lru;
pub mod memory;
pub mod preset;
pub mod watermarks;
pub mod zswap;
