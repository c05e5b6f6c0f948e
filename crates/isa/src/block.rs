//! A block of a record on its way to micro-operations, as far as that is the same for every instruction set.

use super::micro_op::{Aside, DecodedBlock, Exit, MicroOp, Register, WarmBlock};
use fencepost_record::{Block, Slot};

/// One instruction of a block, as the record has it.
pub(super) struct RecordedInstruction<'a> {
    pub address: u64,
    pub bytes: &'a [u8],
    /// Its slots, with their numbers in the block.
    pub slots: Vec<(u16, Slot)>,
}

/// What a decoder says of an instruction besides its micro-operations.
#[derive(Default)]
pub(super) struct Described {
    /// How the block is left if the instruction is its last.
    pub exit: Exit,
    pub aside: Aside,
}

/// Decodes `block`: `crack` adds the micro-operations of each of its instructions, in their order.
pub(super) fn decode_block(
    block: &Block,
    mut crack: impl FnMut(RecordedInstruction<'_>, &mut Vec<MicroOp>) -> Described,
) -> DecodedBlock {
    let mut micro_ops = Vec::new();
    let mut asides = Vec::new();
    let mut address = block.address;
    let mut last_instruction = address;
    let mut last_exit = Exit::FallThrough;
    let mut all_slots = block.slots.iter().enumerate().peekable();
    let mut rest = &block.bytes[..];
    for (index, &length) in block.instruction_lengths.iter().enumerate() {
        let bytes;
        (bytes, rest) = rest.split_at(usize::from(length));
        let mut slots = Vec::new();
        while let Some((number, slot)) = all_slots.next_if(|(_, slot)| usize::from(slot.instruction) == index) {
            slots.push((number as u16, *slot));
        }
        let Described { exit, aside } = crack(RecordedInstruction { address, bytes, slots }, &mut micro_ops);
        asides.push(aside);
        last_exit = exit;
        last_instruction = address;
        address = address.wrapping_add(length.into());
    }
    DecodedBlock {
        warm: WarmBlock::of(&micro_ops),
        micro_ops: micro_ops.into(),
        asides: asides.into(),
        slots: block.slots.len() as u32,
        instructions: block.instruction_lengths.len() as u32,
        address: block.address,
        end: address,
        last_instruction,
        exit: last_exit,
    }
}

/// Puts `registers` into the sources or destinations of a micro-operation, as many as there is room for.
pub(super) fn fill<const N: usize>(places: &mut [Register; N], registers: impl Iterator<Item = Register>) {
    for (place, register) in places.iter_mut().zip(registers) {
        *place = register;
    }
}
