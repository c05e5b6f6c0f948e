//! Atomic updates, as their instructions and the values beside them say.

use crate::code::{Block, SlotKind};

/// What an atomic update leaves, from its values; how much that differs.
pub(super) fn update_of(block: &Block, at: usize, slots: &[u64]) -> Option<(u64, u64)> {
    let slot = block.slots.get(at)?;
    let value = |number: usize| {
        let other = block.slots.get(at + number)?;
        (other.kind == SlotKind::Value && other.instruction == slot.instruction).then(|| slots[at + number])
    };
    let mask = if slot.size >= 8 { u64::MAX } else { (1 << (8 * slot.size)) - 1 };
    let old = value(1)? & mask;
    let operand = value(2).map(|value| value & mask);
    let code = without_prefixes(block.instructions().nth(usize::from(slot.instruction))?.1);
    let with = |work: fn(u64, u64) -> u64| operand.map(|operand| work(old, operand) & mask);
    let new = match *code {
        [0x86 | 0x87, ..] => operand?,
        [0x0f, 0xc0 | 0xc1, ..] | [0x00..=0x05, ..] => with(u64::wrapping_add)?,
        [0x0f, 0xb0 | 0xb1, ..] => {
            let expected = value(3)? & mask;
            if old == expected { operand? } else { old }
        }
        [0x28..=0x2d, ..] => with(u64::wrapping_sub)?,
        [0x08..=0x0d, ..] => with(|a, b| a | b)?,
        [0x20..=0x25, ..] => with(|a, b| a & b)?,
        [0x30..=0x35, ..] => with(|a, b| a ^ b)?,
        [0x0f, 0xab, ..] => with(set_bit)?,
        [0x0f, 0xb3, ..] => with(clear_bit)?,
        [0x0f, 0xbb, ..] => with(flip_bit)?,
        [0x0f, 0xba, kind, ..] => match kind >> 3 & 7 {
            5 => with(set_bit)?,
            6 => with(clear_bit)?,
            7 => with(flip_bit)?,
            _ => return None,
        },
        // Of twice as many bytes the lower ones stand for all.
        [0x0f, 0xc7, kind, ..] if kind >> 3 & 7 == 1 => {
            let expected = value(3)?;
            if old == expected { value(2)? } else { old }
        }
        [0xf6 | 0xf7, operand, ..] => match operand >> 3 & 7 {
            2 => !old & mask,
            3 => old.wrapping_neg() & mask,
            _ => return None,
        },
        [0xfe | 0xff, operand, ..] => match operand >> 3 & 7 {
            0 => old.wrapping_add(1) & mask,
            1 => old.wrapping_sub(1) & mask,
            _ => return None,
        },
        [0x80 | 0x81 | 0x83, kind, ..] => match kind >> 3 & 7 {
            0 => with(u64::wrapping_add)?,
            1 => with(|a, b| a | b)?,
            4 => with(|a, b| a & b)?,
            5 => with(u64::wrapping_sub)?,
            6 => with(|a, b| a ^ b)?,
            _ => return None,
        },
        _ => return None,
    };
    Some((old, new))
}

fn set_bit(value: u64, bit: u64) -> u64 {
    value | 1 << (bit & 63)
}

fn clear_bit(value: u64, bit: u64) -> u64 {
    value & !(1 << (bit & 63))
}

fn flip_bit(value: u64, bit: u64) -> u64 {
    value ^ 1 << (bit & 63)
}

/// Whether it stores only where it finds what it expects.
pub(super) fn compares(block: &Block, at: u16) -> bool {
    let instruction = usize::from(block.slots[usize::from(at)].instruction);
    let bytes = block.instructions().nth(instruction).map_or(&[][..], |(_, bytes)| bytes);
    bytes.windows(2).any(|code| matches!(code, [0x0f, 0xb0 | 0xb1 | 0xc7]))
}

/// An instruction behind its prefixes.
fn without_prefixes(bytes: &[u8]) -> &[u8] {
    let is_prefix =
        |byte: &u8| matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3 | 0x40..=0x4f);
    &bytes[bytes.iter().take_while(|byte| is_prefix(byte)).count()..]
}

/// The slot's instruction.
fn code_of(block: &Block, slot: u16) -> &[u8] {
    let instruction = block.slots[usize::from(slot)].instruction;
    block.instructions().nth(usize::from(instruction)).map_or(&[][..], |(_, bytes)| without_prefixes(bytes))
}

/// Whether it stores a value of its own, whatever it found.
pub(super) fn exchanges(block: &Block, slot: u16) -> bool {
    matches!(code_of(block, slot), [0x86 | 0x87, ..] | [0x0f, 0xab | 0xb0 | 0xb1 | 0xc7, ..])
        || matches!(code_of(block, slot), [0x0f, 0xba, kind, ..] if kind >> 3 & 7 == 5)
}

/// Whether what an update found is looked at: that of one that gives no result only by the next instruction.
pub(super) fn uses_result(block: &Block, slot: u16) -> bool {
    if matches!(code_of(block, slot), [0x86 | 0x87, ..] | [0x0f, ..]) {
        return true;
    }
    let behind = block.instructions().skip(usize::from(block.slots[usize::from(slot)].instruction) + 1);
    let mut behind = behind.map(|(_, bytes)| without_prefixes(bytes)).skip_while(|code| keeps_flags(code));
    let reads_flags =
        |code: &[u8]| matches!(code, [0x70..=0x7f, ..] | [0x0f, 0x40..=0x4f | 0x80..=0x8f | 0x90..=0x9f, ..]);
    behind.next().is_some_and(reads_flags)
}

/// Moves, which come between an update and the jump that looks at its flags.
fn keeps_flags(code: &[u8]) -> bool {
    matches!(code, [0x50..=0x5f | 0x63 | 0x88..=0x8b | 0x8d | 0x90 | 0xb0..=0xbf | 0xc6 | 0xc7, ..])
        || matches!(code, [0x0f, 0x1f | 0xb6 | 0xb7 | 0xbe | 0xbf, ..])
}

#[cfg(test)]
mod tests {
    use super::{compares, exchanges, update_of};
    use crate::{BlockBuilder, SlotKind};

    fn updated(code: &[u8], size: u16, values: &[u64]) -> Option<(u64, u64)> {
        let mut slots = vec![(SlotKind::Update, size)];
        slots.extend(values.iter().map(|_| (SlotKind::Value, size)));
        let block = BlockBuilder::at(0x1000).instruction(code, &slots).build();
        let values: Vec<u64> = [0x5000].iter().chain(values).copied().collect();
        update_of(&block, 0, &values)
    }

    #[test]
    fn bit_tests_change_a_bit() {
        assert_eq!(updated(&[0xf0, 0x0f, 0xba, 0x2f, 3], 4, &[1, 3]), Some((1, 9))); // lock bts $3, (%rdi)
        assert_eq!(updated(&[0xf0, 0x0f, 0xba, 0x37, 3], 4, &[9, 3]), Some((9, 1))); // lock btr
        assert_eq!(updated(&[0xf0, 0x0f, 0xbb, 0x07], 4, &[9, 0]), Some((9, 8))); // lock btc %eax, (%rdi)
        let block = BlockBuilder::at(0).instruction(&[0xf0, 0x0f, 0xba, 0x2f, 0], &[(SlotKind::Update, 4)]).build();
        assert!(exchanges(&block, 0) && !compares(&block, 0));
    }

    #[test]
    fn a_double_compare_stores_where_it_finds_what_it_expects() {
        let code = [0xf0, 0x48, 0x0f, 0xc7, 0x0f]; // lock cmpxchg16b (%rdi)
        assert_eq!(updated(&code, 16, &[0, 7, 0]), Some((0, 7)));
        assert_eq!(updated(&code, 16, &[5, 7, 0]), Some((5, 5)));
    }

    #[test]
    fn a_word_is_negated_or_inverted() {
        assert_eq!(updated(&[0xf0, 0xf7, 0x17], 4, &[0xf0]), Some((0xf0, 0xffff_ff0f)));
        assert_eq!(updated(&[0xf0, 0xf7, 0x1f], 4, &[1]), Some((1, 0xffff_ffff)));
    }
}
