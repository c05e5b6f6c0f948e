//! Micro-operations: what a core executes. Decoders crack each instruction into loads, one operation and stores;
//! nothing in here names an instruction set.

mod block;
mod fence;
mod flush;
mod operation;
mod register;

pub use self::block::{Aside, BlockCounts, DecodedBlock, Exit, WarmAccess, WarmBlock};
pub use self::fence::{Awaited, Fence, Ordered};
pub use self::flush::{Flush, FlushOrder, Reach};
pub use self::operation::Operation;
pub use self::register::Register;

/// One micro-operation of a static instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MicroOp {
    /// What it does.
    pub operation: Operation,
    /// Whether it is the last of its instruction.
    pub ends_instruction: bool,
    /// Registers it reads. The pointers of [`Operation::String`] come first.
    pub sources: [Register; 4],
    /// Registers it writes.
    pub destinations: [Register; 2],
    /// The slot of its block that holds its address; for [`Operation::RoiMarker`] the marker's code.
    pub slot: u16,
    /// Bytes accessed; for [`Operation::String`] those of one element.
    pub size: u16,
    /// Bytes of the vector that it computes or accesses; 0 for a scalar.
    pub vector_bytes: u8,
    /// For a part of a wider vector, the bytes below it; [`MicroOp::ASIDE`] for what the core puts before an
    /// instruction.
    pub offset: u8,
    /// The operands of [`Operation::String`].
    pub string: StringOperands,
}

impl MicroOp {
    /// `offset` of a micro-operation that only some cores need: one that supplies an operand, or clears a register
    /// beyond its lowest part.
    pub const ASIDE: u8 = u8::MAX;

    /// The address of this part of an access at `address`; 0 (no access) stays 0.
    #[inline]
    pub fn address_of_part(&self, address: u64) -> u64 {
        if address == 0 { 0 } else { address.wrapping_add(u64::from(self.offset)) }
    }

    /// Bytes of the whole access, up to the end of this part.
    #[inline]
    pub fn size_so_far(&self) -> u16 {
        u16::from(self.offset) + self.size
    }
}

/// The operands of a repeated string instruction. The source pointer is the first of [`MicroOp::sources`], the
/// destination pointer the second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StringOperands {
    /// Which of its operands lie in memory. Each has two slots: its pointer before and after the instruction; the
    /// source's come first.
    pub access: StringAccess,
    /// The register that counts the repetitions.
    pub count: Register,
    /// The register that is stored or compared, where memory is not.
    pub value: Register,
}

/// What a repeated string instruction does to memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StringAccess {
    /// Nothing: it is no string instruction.
    #[default]
    None,
    /// Reads the source.
    Read,
    /// Reads the destination, to compare it with a register.
    Scan,
    /// Reads source and destination, to compare them.
    Compare,
    /// Writes a register to the destination.
    Fill,
    /// Writes the source to the destination.
    Copy,
}

impl StringAccess {
    /// Whether it reads at its source pointer.
    #[inline]
    pub fn has_source(self) -> bool {
        matches!(self, Self::Read | Self::Compare | Self::Copy)
    }

    /// Whether it reads or writes at its destination pointer.
    #[inline]
    pub fn has_destination(self) -> bool {
        matches!(self, Self::Scan | Self::Compare | Self::Fill | Self::Copy)
    }

    /// Whether it writes at its destination pointer.
    #[inline]
    pub fn writes(self) -> bool {
        matches!(self, Self::Fill | Self::Copy)
    }
}

// Cores read micro-operations at every dispatch: a block has to stay small in the host's caches.
const _: () = assert!(size_of::<MicroOp>() == 18);
