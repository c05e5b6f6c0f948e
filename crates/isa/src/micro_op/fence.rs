//! Fences, by what they order and what they wait for. A decoder gives each fence instruction of its set such a value.

use std::fmt;

/// The accesses that a fence orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordered {
    /// Stores and flushes; loads pass it.
    Stores,
    /// Loads as well: no younger load executes before the fence is complete.
    LoadsAndStores,
}

/// What a fence waits for, besides its turn among the accesses that it orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// Nothing: it only orders.
    Nothing,
    /// The completion of every earlier flush and non-temporal store of its core.
    Completion,
}

/// A fence. One byte, since every micro-operation has room for one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fence(u8);

const LOADS: u8 = 1;
const COMPLETION: u8 = 2;

impl Fence {
    /// x86 `sfence`.
    pub const SFENCE: Fence = Fence::new(Ordered::Stores, Awaited::Completion);
    /// x86 `mfence`, and what a locked instruction orders.
    pub const MFENCE: Fence = Fence::new(Ordered::LoadsAndStores, Awaited::Completion);
    /// AArch64 `dsb` of loads and stores. No other barrier completes cache maintenance (Arm Architecture Reference
    /// Manual, "Ordering and completion of data and instruction cache instructions").
    pub const DSB: Fence = Fence::new(Ordered::LoadsAndStores, Awaited::Completion);
    /// AArch64 `dmb` of loads and stores, and `dsb` of stores alone: what follows waits, flushes stay under way. Also
    /// what an atomic that acquires and releases orders.
    pub const DMB: Fence = Fence::new(Ordered::LoadsAndStores, Awaited::Nothing);
    /// AArch64 `dmb` of stores alone.
    pub const DMB_ST: Fence = Fence::new(Ordered::Stores, Awaited::Nothing);

    /// A fence with these attributes.
    pub const fn new(orders: Ordered, awaits: Awaited) -> Fence {
        let loads = if matches!(orders, Ordered::LoadsAndStores) { LOADS } else { 0 };
        let completion = if matches!(awaits, Awaited::Completion) { COMPLETION } else { 0 };
        Fence(loads | completion)
    }

    /// What it orders.
    #[inline]
    pub const fn orders(self) -> Ordered {
        if self.0 & LOADS != 0 { Ordered::LoadsAndStores } else { Ordered::Stores }
    }

    /// What it waits for.
    #[inline]
    pub const fn awaits(self) -> Awaited {
        if self.0 & COMPLETION != 0 { Awaited::Completion } else { Awaited::Nothing }
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "of {:?}, awaits {:?}", self.orders(), self.awaits())
    }
}
