//! AArch64: decodes the recorded instruction words, once for each static block.
//!
//! Register dependencies come from the instruction words, memory operands from the record's slots. This is the only
//! room that knows A64 encodings.

mod access;
mod arithmetic;
mod cracker;
mod instruction;
mod markers;
mod operands;
mod persistence;
#[cfg(test)]
mod second_decoder;
#[cfg(test)]
mod tests;

use yaxpeax_arm::armv8::a64::Opcode;

use self::cracker::Cracker;
pub(super) use self::markers::marker_of;
pub(super) use self::persistence::{name_of, persist_operation};
use super::micro_op::{Aside, DecodedBlock, Exit, WarmBlock};
use crate::record::{Block, Program};

/// Decodes every block of a program; the result is indexed by block id.
pub(super) fn decode(program: &Program) -> Vec<DecodedBlock> {
    program.blocks.iter().map(decode_block).collect()
}

fn decode_block(block: &Block) -> DecodedBlock {
    let mut micro_ops = Vec::new();
    let mut address = block.address;
    let mut last_instruction = address;
    let mut exit = Exit::FallThrough;
    let mut slots = block.slots.iter().enumerate().peekable();
    let mut bytes = &block.bytes[..];
    for (index, &length) in block.instruction_lengths.iter().enumerate() {
        let (own, rest) = bytes.split_at(usize::from(length));
        bytes = rest;
        let mut own_slots = Vec::new();
        while let Some((number, slot)) = slots.next_if(|(_, slot)| usize::from(slot.instruction) == index) {
            own_slots.push((number as u16, *slot));
        }
        let instruction = instruction::decode_bytes(own);
        exit = instruction.map_or(Exit::FallThrough, |instruction| exit_of(instruction.opcode));
        Cracker::new(instruction, marker_of(own), own_slots).crack(&mut micro_ops);
        last_instruction = address;
        address = address.wrapping_add(length.into());
    }
    DecodedBlock {
        warm: WarmBlock::of(&micro_ops),
        micro_ops: micro_ops.into(),
        asides: vec![Aside::default(); block.instruction_lengths.len()].into(),
        slots: block.slots.len() as u32,
        instructions: block.instruction_lengths.len() as u32,
        address: block.address,
        end: address,
        last_instruction,
        exit,
    }
}

fn exit_of(opcode: Opcode) -> Exit {
    use Opcode as O;
    match opcode {
        O::Bcc(_) | O::BCcc(_) | O::CBZ | O::CBNZ | O::TBZ | O::TBNZ => Exit::Conditional,
        O::B => Exit::Jump,
        O::BL => Exit::Call,
        O::BR | O::BRAA | O::BRAAZ | O::BRAB | O::BRABZ => Exit::IndirectJump,
        O::BLR | O::BLRAA | O::BLRAAZ | O::BLRAB | O::BLRABZ => Exit::IndirectCall,
        O::RET | O::RETAA | O::RETAB => Exit::Return,
        _ => Exit::FallThrough,
    }
}
