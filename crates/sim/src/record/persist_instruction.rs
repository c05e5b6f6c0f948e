//! Which instructions order or flush stores, by their bytes.

use iced_x86::{Decoder, DecoderOptions, Mnemonic};
use serde::Serialize;

use super::code::Block;
use super::info::ISA_X86_64;

/// An instruction that a program uses to make stores durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PersistInstruction {
    /// Flush and invalidate, ordered.
    Clflush,
    /// Flush and invalidate, weakly ordered.
    Clflushopt,
    /// Flush and keep, weakly ordered.
    Clwb,
    /// A store that bypasses the caches.
    NonTemporalStore,
    /// Orders stores and flushes.
    Sfence,
    /// Orders loads too.
    Mfence,
}

impl PersistInstruction {
    /// The instruction that these bytes of an x86-64 program are, if it is one of them.
    #[must_use]
    pub fn of_x86_64(bytes: &[u8]) -> Option<Self> {
        let instruction = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
        Some(match instruction.mnemonic() {
            Mnemonic::Clflush => Self::Clflush,
            Mnemonic::Clflushopt => Self::Clflushopt,
            Mnemonic::Clwb => Self::Clwb,
            Mnemonic::Sfence => Self::Sfence,
            Mnemonic::Mfence => Self::Mfence,
            Mnemonic::Movnti
            | Mnemonic::Movntq
            | Mnemonic::Movntdq
            | Mnemonic::Movntps
            | Mnemonic::Movntpd
            | Mnemonic::Movntss
            | Mnemonic::Movntsd
            | Mnemonic::Vmovntdq
            | Mnemonic::Vmovntps
            | Mnemonic::Vmovntpd
            | Mnemonic::Maskmovq
            | Mnemonic::Maskmovdqu
            | Mnemonic::Vmaskmovdqu
            | Mnemonic::Movdiri
            | Mnemonic::Movdir64b => Self::NonTemporalStore,
            _ => return None,
        })
    }

    /// Those among the first `count` instructions of a block; `isa` is that of the record.
    pub(super) fn of_block(block: &Block, isa: &str, count: usize) -> Vec<Self> {
        if isa != ISA_X86_64 {
            return Vec::new();
        }
        block.instructions().take(count).filter_map(|(_, bytes)| Self::of_x86_64(bytes)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_persist_instruction_is_told_by_its_bytes() {
        use PersistInstruction::*;
        let cases: [(&[u8], Option<PersistInstruction>); 10] = [
            (&[0x0f, 0xae, 0x38], Some(Clflush)),
            (&[0x66, 0x0f, 0xae, 0x38], Some(Clflushopt)),
            (&[0x66, 0x0f, 0xae, 0x30], Some(Clwb)),
            (&[0x0f, 0xae, 0xf8], Some(Sfence)),
            (&[0x0f, 0xae, 0xf0], Some(Mfence)),
            (&[0x0f, 0xc3, 0x07], Some(NonTemporalStore)),
            (&[0x66, 0x0f, 0xe7, 0x07], Some(NonTemporalStore)),
            // movntdqa is a load, xsaveopt shares clwb's opcode without its prefix.
            (&[0x66, 0x0f, 0x38, 0x2a, 0x07], None),
            (&[0x0f, 0xae, 0x30], None),
            (&[0x90], None),
        ];
        for (bytes, expected) in cases {
            assert_eq!(PersistInstruction::of_x86_64(bytes), expected, "{bytes:02x?}");
        }
    }
}
