//! Which headers share a slot of a flit.

use super::MessageClass;
use super::back_invalidate;
use super::cache;
use super::coherence;
#[cfg(any(test, feature = "test-protocol"))]
use super::exchange;
use super::mem;

/// The kinds of slots that hold headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderSlot {
    /// Slot 0 of a 68-byte flit, which shares its 16 bytes with the flit's header.
    H68,
    /// A generic slot of a 68-byte flit, of 16 bytes.
    G68,
    /// Slot 0 of a 256-byte flit, of 14 bytes.
    H256,
    /// A generic slot of a 256-byte flit, of 16 bytes.
    G256,
    /// Slot 8 of a latency-optimised 256-byte flit, of 10 bytes.
    Hs256,
}

impl HeaderSlot {
    /// How many kinds there are.
    pub const COUNT: usize = 5;
    /// All of them, in the order of their indices.
    pub const ALL: [HeaderSlot; Self::COUNT] = [Self::H68, Self::G68, Self::H256, Self::G256, Self::Hs256];
}

/// What one slot can hold: up to that many headers of each of these classes. Each class needs a format for the slots H
/// and G of both kinds of flits.
#[derive(Clone, Copy, Debug)]
pub struct SlotFormat {
    /// The slots that have this format.
    pub slots: &'static [HeaderSlot],
    /// The headers; classes of several protocols may be among them.
    pub headers: &'static [(MessageClass, u8)],
}

/// The formats of all slots, protocol by protocol.
pub const SLOT_FORMATS: &[&[SlotFormat]] = &[
    mem::SLOT_FORMATS,
    coherence::SLOT_FORMATS,
    cache::SLOT_FORMATS,
    back_invalidate::SLOT_FORMATS,
    #[cfg(any(test, feature = "test-protocol"))]
    exchange::SLOT_FORMATS,
];
