//! Cache flushes, by what they do. A decoder gives each flush instruction of its set such a value; core and caches act
//! on the attributes alone.

use std::fmt;

/// How far a flush writes dirty data back, and so what its completion means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// To the point of persistence: once complete, the data survive a power failure.
    Persistence,
    /// To the point of coherence, the host's memory bus: complete once the write is ordered there. The data go on to
    /// memory, but only persistent memory at that very point would make the completion a promise.
    Coherence,
}

/// What a flush is ordered with, besides the stores to its own line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushOrder {
    /// Stores and other flushes of this order: it takes its turn among them and holds back the younger ones until it is
    /// complete.
    Stores,
    /// Fences alone.
    Fences,
}

/// A flush: its reach, whether it invalidates, and its order. One byte, since every micro-operation has room for one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Flush(u8);

const TO_COHERENCE: u8 = 1;
const INVALIDATES: u8 = 2;
const WITH_STORES: u8 = 4;

impl Flush {
    /// x86 `clflush`.
    pub const CLFLUSH: Flush = Flush::new(Reach::Persistence, true, FlushOrder::Stores);
    /// x86 `clflushopt`.
    pub const CLFLUSHOPT: Flush = Flush::new(Reach::Persistence, true, FlushOrder::Fences);
    /// x86 `clwb`.
    pub const CLWB: Flush = Flush::new(Reach::Persistence, false, FlushOrder::Fences);
    /// AArch64 `dc cvap`, and `dc cvadp`: cleans to the point of persistence, or of deep persistence.
    pub const DC_CVAP: Flush = Flush::new(Reach::Persistence, false, FlushOrder::Fences);
    /// AArch64 `dc cvac`: cleans to the point of coherence.
    pub const DC_CVAC: Flush = Flush::new(Reach::Coherence, false, FlushOrder::Fences);
    /// AArch64 `dc civac`: cleans to the point of coherence and invalidates.
    pub const DC_CIVAC: Flush = Flush::new(Reach::Coherence, true, FlushOrder::Fences);

    /// A flush with these attributes; one that does not invalidate leaves the line clean in the caches.
    pub const fn new(reaches: Reach, invalidates: bool, order: FlushOrder) -> Flush {
        let reach = if matches!(reaches, Reach::Coherence) { TO_COHERENCE } else { 0 };
        let line = if invalidates { INVALIDATES } else { 0 };
        let order = if matches!(order, FlushOrder::Stores) { WITH_STORES } else { 0 };
        Flush(reach | line | order)
    }

    /// How far it writes back.
    #[inline]
    pub const fn reaches(self) -> Reach {
        if self.0 & TO_COHERENCE != 0 { Reach::Coherence } else { Reach::Persistence }
    }

    /// Whether no cache has the line afterwards.
    #[inline]
    pub const fn invalidates(self) -> bool {
        self.0 & INVALIDATES != 0
    }

    /// What it is ordered with.
    #[inline]
    pub const fn order(self) -> FlushOrder {
        if self.0 & WITH_STORES != 0 { FlushOrder::Stores } else { FlushOrder::Fences }
    }
}

impl fmt::Debug for Flush {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = if self.invalidates() { "invalidates" } else { "keeps the line" };
        write!(to, "to {:?}, {line}, ordered with {:?}", self.reaches(), self.order())
    }
}
