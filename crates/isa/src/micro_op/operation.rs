//! What a micro-operation does, and so where and for how long it executes.

use super::fence::{Fence, Ordered};
use super::flush::{Flush, FlushOrder};

/// What a micro-operation does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Integer addition, logic, move, address arithmetic.
    #[default]
    Integer,
    /// Integer multiplication.
    Multiply,
    /// Integer division.
    Divide,
    /// Floating-point addition, comparison, conversion.
    FloatAdd,
    /// Floating-point multiplication, fused or not.
    FloatMultiply,
    /// Floating-point division and square root.
    FloatDivide,
    /// Vector integer arithmetic, logic, shuffle.
    Vector,
    /// A jump, call or return.
    Branch,
    /// Reads memory.
    Load,
    /// Requests a line without waiting for it.
    Prefetch,
    /// Writes memory.
    Store,
    /// Writes memory around the caches.
    NonTemporalStore,
    /// Reads and writes memory atomically, and orders other accesses as a fence does (x86: a locked instruction).
    Atomic(Fence),
    /// Writes a line back from the caches.
    Flush(Flush),
    /// Orders accesses to memory.
    Fence(Fence),
    /// Waits until everything before it has committed (x86 `lfence`).
    Drain,
    /// A string instruction with a repeat count; dispatch turns it into loads and stores.
    String,
    /// A marker of the region of interest.
    RoiMarker,
}

// Tables by kind are indexed by `kind()`.
const _: () = {
    let mut kind = 0;
    while kind < Operation::KINDS {
        assert!(Operation::OF_EACH_KIND[kind].kind() == kind);
        kind += 1;
    }
};

impl Operation {
    /// How many kinds there are; all flushes are one kind, all fences, and all atomics.
    pub const KINDS: usize = 18;

    /// One operation of each kind, by number.
    pub const OF_EACH_KIND: [Operation; Self::KINDS] = [
        Self::Integer,
        Self::Multiply,
        Self::Divide,
        Self::FloatAdd,
        Self::FloatMultiply,
        Self::FloatDivide,
        Self::Vector,
        Self::Branch,
        Self::Load,
        Self::Prefetch,
        Self::Store,
        Self::NonTemporalStore,
        Self::Atomic(Fence::MFENCE),
        Self::Flush(Flush::CLWB),
        Self::Fence(Fence::SFENCE),
        Self::Drain,
        Self::String,
        Self::RoiMarker,
    ];

    /// Number of its kind. In the order of declaration, so that it compiles to the discriminant.
    #[inline(always)]
    pub const fn kind(self) -> usize {
        match self {
            Self::Integer => 0,
            Self::Multiply => 1,
            Self::Divide => 2,
            Self::FloatAdd => 3,
            Self::FloatMultiply => 4,
            Self::FloatDivide => 5,
            Self::Vector => 6,
            Self::Branch => 7,
            Self::Load => 8,
            Self::Prefetch => 9,
            Self::Store => 10,
            Self::NonTemporalStore => 11,
            Self::Atomic(_) => 12,
            Self::Flush(_) => 13,
            Self::Fence(_) => 14,
            Self::Drain => 15,
            Self::String => 16,
            Self::RoiMarker => 17,
        }
    }

    /// Whether it accesses memory or orders accesses: then its issue alone does not tell when it completes.
    #[inline]
    pub fn accesses_memory(self) -> bool {
        use Operation::{Load, Prefetch};
        matches!(self, Load | Prefetch) || self.uses_store_queue()
    }

    /// Whether it occupies an entry of the store queue.
    #[inline]
    pub fn uses_store_queue(self) -> bool {
        use Operation::{Atomic, Fence, Flush, NonTemporalStore, Store};
        matches!(self, Store | NonTemporalStore | Atomic(_) | Flush(_) | Fence(_))
    }

    /// Whether it is a flush.
    #[inline]
    pub fn is_flush(self) -> bool {
        matches!(self, Operation::Flush(_))
    }

    /// Whether younger loads may have to wait for it, so that it writes
    /// [`Register::BARRIER`](super::Register::BARRIER). For a flush that is ordered with stores, the core's
    /// configuration decides.
    #[inline]
    pub fn holds_back_loads(self) -> bool {
        match self {
            Operation::Flush(flush) => flush.order() == FlushOrder::Stores,
            Operation::Atomic(fence) | Operation::Fence(fence) => fence.orders() == Ordered::LoadsAndStores,
            _ => false,
        }
    }
}
