//! The class of an instruction's operation, and so the unit and the latency of its micro-operation.

use yaxpeax_arm::armv8::a64::{Instruction, Opcode};

use crate::micro_op::Operation;

/// The operation of an instruction that accesses no memory; `has_vector` says whether it has vector registers.
pub(super) fn operation_of(instruction: &Instruction, has_vector: bool) -> Operation {
    let opcode = instruction.opcode;
    if is_branch(opcode) {
        Operation::Branch
    } else if has_vector {
        vector_operation(opcode)
    } else {
        integer_operation(opcode)
    }
}

fn is_branch(opcode: Opcode) -> bool {
    use Opcode as O;
    let is_direct = matches!(opcode, O::B | O::BL | O::Bcc(_) | O::BCcc(_) | O::CBZ | O::CBNZ | O::TBZ | O::TBNZ);
    let is_jump = matches!(opcode, O::BR | O::BRAA | O::BRAAZ | O::BRAB | O::BRABZ);
    let is_call = matches!(opcode, O::BLR | O::BLRAA | O::BLRAAZ | O::BLRAB | O::BLRABZ);
    is_direct || is_jump || is_call || matches!(opcode, O::RET | O::RETAA | O::RETAB)
}

/// Multiplications, checksums and pointer authentication go to the multiplier's pipe, as on Arm's cores
/// (Neoverse N1 and V1 software optimisation guides, "integer multi-cycle").
fn integer_operation(opcode: Opcode) -> Operation {
    use Opcode as O;
    match opcode {
        O::UDIV | O::SDIV => Operation::Divide,
        O::MADD | O::MSUB | O::SMADDL | O::SMSUBL | O::UMADDL | O::UMSUBL | O::SMULH | O::UMULH => Operation::Multiply,
        O::CRC32B | O::CRC32H | O::CRC32W | O::CRC32X => Operation::Multiply,
        O::CRC32CB | O::CRC32CH | O::CRC32CW | O::CRC32CX => Operation::Multiply,
        O::PACIA | O::PACIB | O::PACDA | O::PACDB | O::AUTIA | O::AUTIB | O::AUTDA | O::AUTDB => Operation::Multiply,
        O::PACIZA | O::PACIZB | O::PACDZA | O::PACDZB => Operation::Multiply,
        O::AUTIZA | O::AUTIZB | O::AUTDZA | O::AUTDZB | O::PACGA => Operation::Multiply,
        O::PACIASP | O::PACIBSP | O::AUTIASP | O::AUTIBSP | O::PACIAZ | O::PACIBZ | O::AUTIAZ | O::AUTIBZ => {
            Operation::Multiply
        }
        O::PACIA1716 | O::PACIB1716 | O::AUTIA1716 | O::AUTIB1716 => Operation::Multiply,
        _ => Operation::Integer,
    }
}

fn vector_operation(opcode: Opcode) -> Operation {
    use Opcode as O;
    match opcode {
        O::FDIV | O::FSQRT => Operation::FloatDivide,
        O::FMUL | O::FMULX | O::FNMUL | O::FMADD | O::FMSUB | O::FNMADD | O::FNMSUB => Operation::FloatMultiply,
        O::FMLA | O::FMLS | O::FMLAL | O::FMLAL2 | O::FMLSL | O::FMLSL2 | O::FCMLA => Operation::FloatMultiply,
        // A step of Newton's iteration multiplies and adds.
        O::FRECPS | O::FRSQRTS => Operation::FloatMultiply,
        O::FADD | O::FSUB | O::FABD | O::FADDP | O::FCADD => Operation::FloatAdd,
        O::FMAX | O::FMIN | O::FMAXNM | O::FMINNM | O::FMAXP | O::FMINP | O::FMAXNMP | O::FMINNMP => {
            Operation::FloatAdd
        }
        O::FMAXV | O::FMINV | O::FMAXNMV | O::FMINNMV => Operation::FloatAdd,
        O::FCMP | O::FCMPE | O::FCCMP | O::FCCMPE => Operation::FloatAdd,
        O::FCMEQ | O::FCMGE | O::FCMGT | O::FCMLE | O::FCMLT | O::FACGE | O::FACGT => Operation::FloatAdd,
        O::FRINTN | O::FRINTP | O::FRINTM | O::FRINTZ | O::FRINTA | O::FRINTX | O::FRINTI => Operation::FloatAdd,
        O::FRINT32Z | O::FRINT32X | O::FRINT64Z | O::FRINT64X => Operation::FloatAdd,
        O::FCVT | O::FCVTN | O::FCVTN2 | O::FCVTL | O::FCVTL2 | O::FCVTXN | O::FCVTXN2 | O::BFCVT => {
            Operation::FloatAdd
        }
        O::FCVTZS | O::FCVTZU | O::FCVTAS | O::FCVTAU | O::FCVTMS | O::FCVTMU => Operation::FloatAdd,
        O::FCVTNS | O::FCVTNU | O::FCVTPS | O::FCVTPU | O::FJCVTZS | O::SCVTF | O::UCVTF => Operation::FloatAdd,
        O::FRECPE | O::FRECPX | O::FRSQRTE => Operation::FloatAdd,
        _ => Operation::Vector,
    }
}
