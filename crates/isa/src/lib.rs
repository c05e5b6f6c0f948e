//! Instruction sets: from the bytes that a record holds of each instruction to micro-operations, which are all that
//! cores know.
//!
//! Each set is a room of its own with its decoder, its list of the instructions that make stores durable, and its
//! markers. Adding one means a variant of [`InstructionSet`] and a room; core, cache and host stay as they are.

mod aarch64;
mod block;
pub mod micro_op;
mod x86_64;

use self::micro_op::{DecodedBlock, Fence, Operation};
use fencepost_record::{ISA_AARCH64, ISA_X86_64, Marker, Noted, Program};

/// An instruction set whose programs can be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstructionSet {
    /// 64-bit x86.
    X86_64,
    /// 64-bit Arm: A64 without SVE, SME and memory copies.
    Aarch64,
}

impl InstructionSet {
    /// All of them.
    pub const ALL: [InstructionSet; 2] = [InstructionSet::X86_64, InstructionSet::Aarch64];

    /// Their names in records, in the same order.
    pub const NAMES: &'static [&'static str] = &[InstructionSet::X86_64.name(), InstructionSet::Aarch64.name()];

    /// The set that a record calls `name` ([`Info::isa`](fencepost_record::Info::isa)).
    pub fn from_name(name: &str) -> Option<InstructionSet> {
        Self::ALL.into_iter().find(|set| set.name() == name)
    }

    /// Its name in records.
    pub const fn name(self) -> &'static str {
        match self {
            InstructionSet::X86_64 => ISA_X86_64,
            InstructionSet::Aarch64 => ISA_AARCH64,
        }
    }

    /// Decodes every block of a program; the result is indexed by block id.
    pub fn decode(self, program: &Program) -> Vec<DecodedBlock> {
        match self {
            InstructionSet::X86_64 => x86_64::decode(program),
            InstructionSet::Aarch64 => aarch64::decode(program),
        }
    }

    /// What an atomic access to a lock, a barrier or the like orders besides its own line.
    pub const fn synchronisation(self) -> Fence {
        match self {
            InstructionSet::X86_64 => Fence::MFENCE,
            InstructionSet::Aarch64 => Fence::DMB,
        }
    }

    /// What this set calls a flush, fence, non-temporal store or atomic, in snake case; `None` for other operations and
    /// for those that it does not have.
    pub fn name_of(self, operation: Operation) -> Option<&'static str> {
        let (kinds, atomic) = match self {
            InstructionSet::X86_64 => (x86_64::KINDS, x86_64::ATOMIC),
            InstructionSet::Aarch64 => (aarch64::KINDS, aarch64::ATOMIC),
        };
        if matches!(operation, Operation::Atomic(_)) {
            return Some(atomic);
        }
        kinds.into_iter().find(|(_, own)| *own == operation).map(|(name, _)| name)
    }

    /// The flush, fence or non-temporal store that these bytes of an instruction are, if any.
    pub fn persist_operation(self, bytes: &[u8]) -> Option<Operation> {
        match self {
            InstructionSet::X86_64 => x86_64::persist_operation(bytes),
            InstructionSet::Aarch64 => aarch64::persist_operation(bytes),
        }
    }

    /// The marker that these bytes of an instruction are, if any.
    pub fn marker_of(self, bytes: &[u8]) -> Option<Marker> {
        match self {
            InstructionSet::X86_64 => x86_64::marker_of(bytes),
            InstructionSet::Aarch64 => aarch64::marker_of(bytes),
        }
    }
}

/// What a summary of a record counts of an instruction, by the name of its set and its bytes; nothing for a set that is
/// not known.
pub fn noted(isa: &str, bytes: &[u8]) -> Option<Noted> {
    let set = InstructionSet::from_name(isa)?;
    if set.marker_of(bytes) == Some(Marker::ROI_BEGIN) {
        return Some(Noted::BeginsRegion);
    }
    let operation = set.persist_operation(bytes)?;
    set.name_of(operation).map(Noted::Persists)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_summary_is_told_of_persists_and_regions() {
        let begin = [0x0f, 0x1f, 0x84, 0x00, 0x01, 0x00, 0x43, 0x50];
        assert_eq!(noted(ISA_X86_64, &begin), Some(Noted::BeginsRegion));
        assert_eq!(noted(ISA_X86_64, &[0x48, 0x0f, 0xc3, 0x07]), Some(Noted::Persists("non_temporal_store")));
        assert_eq!(noted(ISA_X86_64, &[0x90]), None);
        assert_eq!(noted("riscv64", &begin), None);
    }

    proptest! {
        /// A record's checksums do not say that its code is code.
        #[test]
        fn whatever_bytes_a_record_has_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            for isa in InstructionSet::NAMES {
                let _ = noted(isa, &bytes);
            }
        }
    }
}
