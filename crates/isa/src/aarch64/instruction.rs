//! From the four bytes of an instruction to its opcode and operands, by `yaxpeax-arm`.

use yaxpeax_arch::{Decoder, U8Reader};
use yaxpeax_arm::armv8::a64::{InstDecoder, Instruction, Opcode, Operand, SizeCode};

/// The instruction that these bytes are; `None` if the decoder does not know them (SVE, SME, memory copies).
pub(super) fn decode_bytes(bytes: &[u8]) -> Option<Instruction> {
    decode(u32::from_le_bytes(bytes.try_into().ok()?))
}

/// The same for an instruction word.
pub(super) fn decode(word: u32) -> Option<Instruction> {
    let bytes = word.to_le_bytes();
    let mut instruction = InstDecoder::default().decode(&mut U8Reader::new(&bytes)).ok()?;
    mend(&mut instruction, word);
    // Unallocated encodings between those of pairs; `stgp` is one of them for this decoder.
    (instruction.opcode != Opcode::Invalid).then_some(instruction)
}

/// What version 0.5.0 of the decoder gets wrong.
fn mend(instruction: &mut Instruction, word: u32) {
    let transferred = Operand::Register(SizeCode::X, (word & 31) as u16);
    match instruction.opcode {
        // It takes four bits of the register's number.
        Opcode::MSR if matches!(instruction.operands[1], Operand::Register(..)) => {
            instruction.operands[1] = transferred
        }
        // The register that is written comes last.
        Opcode::SYSL(_) => instruction.operands = [transferred, Operand::Nothing, Operand::Nothing, Operand::Nothing],
        _ => {}
    }
}
