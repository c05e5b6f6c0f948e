//! x86-64: decodes the recorded instruction bytes, once for each static block.
//!
//! Register dependencies come from the instruction bytes, memory operands from the record's slots. This is the only
//! room that knows x86 encodings.

mod arithmetic;
mod cracker;
mod markers;
mod operands;
mod persistence;
mod strings;
#[cfg(test)]
mod tests;

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory};

use self::cracker::Cracker;
pub(super) use self::markers::marker_of;
pub(super) use self::persistence::{name_of, persist_operation};
use super::micro_op::{Aside, DecodedBlock, Exit, WarmBlock};
use crate::record::{Block, Program};

/// Decodes every block of a program; the result is indexed by block id.
pub(super) fn decode(program: &Program) -> Vec<DecodedBlock> {
    let mut info = InstructionInfoFactory::new();
    program.blocks.iter().map(|block| decode_block(block, &mut info)).collect()
}

fn decode_block(block: &Block, info: &mut InstructionInfoFactory) -> DecodedBlock {
    let mut micro_ops = Vec::new();
    let mut asides = Vec::new();
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
        let instruction = Decoder::with_ip(64, own, address, DecoderOptions::NONE).decode();
        let cracker = Cracker::new(&instruction, own, own_slots, info);
        cracker.crack(&mut micro_ops);
        asides.push(Aside { operands: operands::aside(&instruction), cleared: operands::cleared_beyond(&instruction) });
        exit = exit_of(&instruction);
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
        exit,
    }
}

fn exit_of(instruction: &Instruction) -> Exit {
    match instruction.flow_control() {
        FlowControl::ConditionalBranch => Exit::Conditional,
        FlowControl::UnconditionalBranch => Exit::Jump,
        FlowControl::IndirectBranch => Exit::IndirectJump,
        FlowControl::Call if instruction.code() != Code::Syscall => Exit::Call,
        FlowControl::IndirectCall => Exit::IndirectCall,
        FlowControl::Return => Exit::Return,
        _ => Exit::FallThrough,
    }
}
