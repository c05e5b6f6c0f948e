//! What processes share: words of 64 bits, each with one writer at a time.
//!
//! There is no lock. A record of several words is read and written under a sequence number ([`sequence`]); a place is
//! taken by a compare-and-swap among the threads of one host ([`place`]), outside of the fast path. Hosts have places
//! of their own, so nothing relies on atomic operations between hosts. A participant may be killed at any instant:
//! what it leaves is a record that nobody can read, which counts as silent, and a place whose thread is gone.

mod grants;
pub mod place;
pub mod row;
pub mod sequence;
#[cfg(not(loom))]
mod settings;
#[cfg(not(loom))]
mod shape;
#[cfg(not(loom))]
mod totals;
mod words;

pub use grants::{Candidate, Granted};
pub use row::Row;
#[cfg(not(loom))]
pub use settings::{Device, PROCESSOR_WORDS, Rule, Settings, SettingsError, Source};
#[cfg(not(loom))]
pub use shape::{Segment, SegmentError, Text};
#[cfg(not(loom))]
pub use totals::Totals;
pub use words::{Coherence, Word, Words};

/// Devices of a segment, at most.
pub const DEVICES_MAX: usize = 8;
