//! The instructions by which programs make stores durable: the one list of them, for the core, for summaries of records
//! and for reports.

use yaxpeax_arm::armv8::a64::{Opcode, Operand};

use super::instruction::decode_bytes;
use crate::micro_op::{Fence, Flush, Operation};

/// The name of an atomic in documents.
pub const ATOMIC: &str = "atomic";

/// Each kind with its name in documents.
pub const KINDS: [(&str, Operation); 6] = [
    ("dc_cvap", Operation::Flush(Flush::DC_CVAP)),
    ("dc_cvac", Operation::Flush(Flush::DC_CVAC)),
    ("dc_civac", Operation::Flush(Flush::DC_CIVAC)),
    ("dsb", Operation::Fence(Fence::DSB)),
    ("dmb", Operation::Fence(Fence::DMB)),
    ("dmb_st", Operation::Fence(Fence::DMB_ST)),
];

/// The flush or fence that an instruction is, if any; a barrier of loads alone is an [`Operation::Drain`].
///
/// Shareability domains make no difference: all simulated cores and devices are in one. `DC CVAU` cleans to where
/// instruction and data caches meet, inside of the hierarchy: it is none.
pub(super) fn operation_of(opcode: Opcode, operands: &[Operand; 4]) -> Option<Operation> {
    match opcode {
        Opcode::SYS(operation) => {
            let (Operand::ControlReg(n), Operand::ControlReg(m)) = (operands[1], operands[2]) else { return None };
            let flush = match (operation.op1(), n, m, operation.op2()) {
                // The data alone, and the data with the allocation tags.
                (3, 7, 10, 1 | 5) => Flush::DC_CVAC,
                (3, 7, 12 | 13, 1 | 5) => Flush::DC_CVAP,
                (3, 7, 14, 1 | 5) => Flush::DC_CIVAC,
                _ => return None,
            };
            Some(Operation::Flush(flush))
        }
        // The access types are in the low bits of the option: 1 loads, 2 stores, 3 and the reserved 0 both.
        Opcode::DSB(option) => Some(match option & 3 {
            1 => Operation::Drain,
            2 => Operation::Fence(Fence::DMB),
            _ => Operation::Fence(Fence::DSB),
        }),
        Opcode::DMB(option) => Some(match option & 3 {
            1 => Operation::Drain,
            2 => Operation::Fence(Fence::DMB_ST),
            _ => Operation::Fence(Fence::DMB),
        }),
        Opcode::ISB | Opcode::SB | Opcode::SSBB | Opcode::PSSBB => Some(Operation::Drain),
        _ => None,
    }
}

/// The flush or fence that these bytes of an instruction are, if any.
pub fn persist_operation(bytes: &[u8]) -> Option<Operation> {
    let instruction = decode_bytes(bytes)?;
    let operation = operation_of(instruction.opcode, &instruction.operands)?;
    (operation != Operation::Drain).then_some(operation)
}
