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
pub(super) use self::persistence::{ATOMIC, KINDS, persist_operation};
use super::block::{Described, RecordedInstruction, decode_block};
use super::micro_op::{DecodedBlock, Exit, MicroOp};
use fencepost_record::Program;

/// Decodes every block of a program; the result is indexed by block id.
pub(super) fn decode(program: &Program) -> Vec<DecodedBlock> {
    program.blocks.iter().map(|block| decode_block(block, crack)).collect()
}

fn crack(of: RecordedInstruction<'_>, micro_ops: &mut Vec<MicroOp>) -> Described {
    let instruction = instruction::decode_bytes(of.bytes);
    Cracker::new(instruction, marker_of(of.bytes), of.slots).crack(micro_ops);
    let exit = instruction.map_or(Exit::FallThrough, |instruction| exit_of(instruction.opcode));
    Described { exit, ..Described::default() }
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
