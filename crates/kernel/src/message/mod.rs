//! Every message that components exchange, protocol by protocol.
//!
//! A message is small. It carries the version of the line instead of its bytes, and a latency stack that each component
//! on its way charges, so that the parts of a latency always sum to the whole.
//!
//! A protocol is a file: what its classes and opcodes say of themselves (`mem.rs`, `cache.rs`, `coherence.rs`, …),
//! listed in `class.rs`, `opcode.rs` and `slots.rs`. Whatever only carries messages reads that; whoever speaks a
//! protocol matches on its opcodes.

pub mod back_invalidate;
pub mod cache;
mod class;
pub mod coherence;
mod credits;
#[cfg(any(test, feature = "test-protocol"))]
pub mod exchange;
mod list;
pub mod mem;
mod opcode;
mod slots;
mod stack;

use crate::line::{ByteMask, LineAddress, Version};

pub use class::{ClassDescription, CreditPool, Direction, HeadersMax, MessageClass, Route};
pub use credits::Credits;
pub use fencepost_pacing::DevLoad;
pub use opcode::{Opcode, OpcodeDescription};
pub use slots::{HeaderSlot, SLOT_FORMATS, SlotFormat};
pub use stack::{LatencyStack, Stage};

/// Names a request between two neighbours. Each sender chooses its own; a switch renames what passes through it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u32);

/// Whose request it is: a stream or a core of a host. CXL carries nothing of this; a switch that queues fairly would
/// have to know it by other means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow(pub u32);

impl Flow {
    /// Number `number` of `host`.
    #[inline]
    pub fn of_host(host: u32, number: u32) -> Flow {
        Flow(host << 16 | number & 0xffff)
    }

    /// Which of its host's.
    #[inline]
    pub fn number(self) -> u32 {
        self.0 & 0xffff
    }
}

/// Names a traced request in all its messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestName(pub u32);

impl RequestName {
    /// Of a request that is not traced.
    pub const NONE: RequestName = RequestName(0);
}

/// Why a request was made. CXL carries nothing of this; it exists for the statistics only and must not influence
/// timing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// A load, or a store that fetches its line.
    DemandRead,
    /// An instruction fetch.
    InstructionFetch,
    /// A page walk.
    PageWalk,
    /// A prefetch of hardware or software.
    Prefetch,
    /// A flush instruction made the line durable.
    Flush,
    /// A flush instruction wrote the line back, and was complete before it was durable.
    FlushWithoutPromise,
    /// A non-temporal store.
    NonTemporalStore,
    /// An eviction from the last-level cache.
    Writeback,
    /// A persist buffer drained the line.
    Drain,
}

impl Cause {
    /// Whether this is a persist as the study counts it: a flush or a non-temporal store.
    #[inline]
    pub fn is_persist(self) -> bool {
        matches!(self, Cause::Flush | Cause::NonTemporalStore)
    }
}

/// One message.
#[derive(Clone, Debug)]
pub struct Message {
    /// What it asks for or answers.
    pub opcode: Opcode,
    /// Why the request was made; an answer repeats it.
    pub cause: Cause,
    /// The line. CXL's NDR carries no address: nothing may depend on this field in a `Cmp` (it is filled for traces).
    pub line: LineAddress,
    /// The sender's name for the request; an answer repeats it.
    pub tag: Tag,
    /// The name by which it is traced, if it is.
    pub request: RequestName,
    /// What a write writes, or what a `MemData` brings.
    pub version: Version,
    /// The bytes a write carries.
    pub mask: ByteMask,
    /// Whose it is; an answer repeats it.
    pub flow: Flow,
    /// In an answer, how loaded the device says it is; light in all else.
    pub dev_load: DevLoad,
    /// Where its time went.
    pub stack: LatencyStack,
}

impl Message {
    /// The credit class it travels in.
    #[inline]
    pub fn class(&self) -> MessageClass {
        self.opcode.class()
    }
}
