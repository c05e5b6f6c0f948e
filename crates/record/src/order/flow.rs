//! How a block ends.

use crate::code::Block;

/// How a block hands on to the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// It goes on with the next instruction.
    Falls,
    /// A jump that is always taken.
    Jumps,
    /// A jump that depends on something.
    Branches,
    Calls,
    Returns,
}

/// Of a block of AArch64.
pub(super) fn of_aarch64(block: &Block) -> Flow {
    let Some((_, bytes)) = block.instructions().last() else { return Flow::Falls };
    let Some(code) = bytes.first_chunk().map(|bytes| u32::from_le_bytes(*bytes)) else { return Flow::Falls };
    match (code >> 24, code & 0xffff_fc1f) {
        (0x94..=0x97, _) | (_, 0xd63f_0000) => Flow::Calls,
        (_, 0xd65f_0000) => Flow::Returns,
        (0x14..=0x17, _) | (_, 0xd61f_0000) => Flow::Jumps,
        (0x54 | 0x34..=0x37 | 0xb4..=0xb7, _) => Flow::Branches,
        _ => Flow::Falls,
    }
}

/// Of a block.
pub(super) fn of_block(block: &Block) -> Flow {
    let Some((_, bytes)) = block.instructions().last() else { return Flow::Falls };
    let is_prefix = |byte: &u8| matches!(byte, 0x2e | 0x36 | 0x3e | 0x26 | 0x64..=0x67 | 0xf2 | 0xf3 | 0x40..=0x4f);
    let prefixes = bytes.iter().take_while(|byte| is_prefix(byte)).count();
    match bytes[prefixes..] {
        [0xe8, ..] => Flow::Calls,
        [0xc3 | 0xc2, ..] => Flow::Returns,
        [0xeb | 0xe9, ..] => Flow::Jumps,
        [0x70..=0x7f | 0xe0..=0xe3, ..] | [0x0f, 0x80..=0x8f, ..] => Flow::Branches,
        [0xff, operand, ..] => match operand >> 3 & 7 {
            2 | 3 => Flow::Calls,
            4 | 5 => Flow::Jumps,
            _ => Flow::Falls,
        },
        _ => Flow::Falls,
    }
}
