//! zswap, ksm and the reclaim that drives them, as Linux has them, and a service that shares its cores with them.
//!
//! `page` says what the real pages of a recorded program are: their bytes, what they compress to. `linux` has the
//! mechanisms: pure state, told what is touched, answering with the work that comes of it; it knows no time. `service`
//! gives that work the times that it is told, on cores that operations of a recorded service need too. `recorded`
//! reads operations and pages from a record, `footprint` what work on a page touches.

pub mod cell;
pub mod footprint;
pub mod linux;
pub mod page;
pub mod recorded;
pub mod service;
