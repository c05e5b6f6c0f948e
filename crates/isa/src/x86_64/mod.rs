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
pub(super) use self::persistence::{ATOMIC, KINDS, persist_operation};
use super::block::{Described, RecordedInstruction, decode_block};
use super::micro_op::{Aside, DecodedBlock, Exit};
use fencepost_record::{Block, Program};

/// Decodes every block of a program; the result is indexed by block id.
pub(super) fn decode(program: &Program) -> Vec<DecodedBlock> {
    let mut info = InstructionInfoFactory::new();
    program.blocks.iter().map(|block| decode_with(block, &mut info)).collect()
}

fn decode_with(block: &Block, info: &mut InstructionInfoFactory) -> DecodedBlock {
    decode_block(block, |RecordedInstruction { address, bytes, slots }, micro_ops| {
        let instruction = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode();
        Cracker::new(&instruction, bytes, slots, info).crack(micro_ops);
        let aside = Aside { operands: operands::aside(&instruction), cleared: operands::cleared_beyond(&instruction) };
        Described { exit: exit_of(&instruction), aside }
    })
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
