//! The registers that an instruction reads and writes.
//!
//! The decoder gives operands in the order of the assembler; which of them are written, and what an instruction uses
//! without naming it, is the table in this file. `second_decoder` compares all of it with another decoder.
//!
//! The zero register is no dependency. A 32-bit result clears the rest of its register, so it depends on nothing
//! before; what writes a part of a vector register and keeps the rest depends on its old value.

use yaxpeax_arm::armv8::a64::{Instruction, Opcode, Operand, SIMDSizeCode};

use super::access;
use crate::micro_op::Register;

/// `x30`, which calls write and returns read.
const LINK: Register = Register::general(30);
/// `sp`. It has the number of the zero register in the encodings; operands tell which is meant.
const STACK_POINTER: Register = Register::general(ZERO as u8);
/// Number of the zero register where an operand cannot be the stack pointer.
const ZERO: u16 = 31;

/// The registers of an instruction.
#[derive(Clone, Debug, Default)]
pub(super) struct Operands {
    /// Those that form its address.
    pub address: Vec<Register>,
    /// Those that it reads besides.
    pub read: Vec<Register>,
    /// Those that it writes, without the base register that a pre- or post-indexed access advances.
    pub written: Vec<Register>,
    /// The base register that it advances, and the register that it advances it by, if that is no immediate.
    pub advanced: Option<(Register, Register)>,
    /// Bytes of its widest vector operand; 0 for scalars.
    pub vector_bytes: u8,
    /// Whether a vector register is among its operands.
    pub has_vector: bool,
}

impl Operands {
    /// Those of `instruction`.
    pub fn of(instruction: &Instruction) -> Operands {
        let mut operands = Operands::default();
        let access = access::of(instruction);
        for (place, operand) in instruction.operands.iter().enumerate() {
            operands.take(operand, access.reads(place), access.writes(place));
        }
        operands.take_implied(instruction);
        operands
    }

    /// Adds an operand.
    fn take(&mut self, operand: &Operand, read: bool, written: bool) {
        match *operand {
            Operand::RegPreIndex(base, _, advances) => self.take_address(base, Register::NONE, advances),
            Operand::RegPostIndex(base, _) => self.take_address(base, Register::NONE, true),
            Operand::RegPostIndexReg(base, step) => self.take_address(base, not_zero(step), true),
            Operand::RegRegOffset(base, index, ..) => {
                self.take_address(base, Register::NONE, false);
                push(&mut self.address, not_zero(index));
            }
            _ => {}
        }
        let width = |size: SIMDSizeCode| match size {
            SIMDSizeCode::Q => 16,
            _ => 8,
        };
        let bytes = match *operand {
            Operand::SIMDRegister(SIMDSizeCode::Q, _) => 16,
            Operand::SIMDRegisterElements(size, ..) | Operand::SIMDRegisterGroup(size, ..) => width(size),
            _ => 0,
        };
        self.vector_bytes = self.vector_bytes.max(bytes);
        for register in registers_of(operand) {
            self.has_vector |= register.is_vector();
            if read {
                push(&mut self.read, register);
            }
            if written {
                push(&mut self.written, register);
            }
        }
    }

    fn take_address(&mut self, base: u16, step: Register, advances: bool) {
        let base = or_stack_pointer(base);
        push(&mut self.address, base);
        if advances {
            self.advanced = Some((base, step));
        }
    }

    /// Adds what the instruction uses without naming it.
    fn take_implied(&mut self, instruction: &Instruction) {
        use Opcode as O;
        if access::reads_flags(instruction) {
            push(&mut self.read, Register::FLAGS);
        }
        if access::writes_flags(instruction) {
            push(&mut self.written, Register::FLAGS);
        }
        let (x16, x17) = (Register::general(16), Register::general(17));
        let (read, written): (&[Register], &[Register]) = match instruction.opcode {
            O::BL | O::BLR | O::BLRAA | O::BLRAAZ | O::BLRAB | O::BLRABZ => (&[], &[LINK]),
            O::RETAA | O::RETAB => (&[LINK, STACK_POINTER], &[]),
            O::PACIASP | O::PACIBSP | O::AUTIASP | O::AUTIBSP => (&[LINK, STACK_POINTER], &[LINK]),
            O::PACIAZ | O::PACIBZ | O::AUTIAZ | O::AUTIBZ | O::XPACLRI => (&[LINK], &[LINK]),
            O::PACIA1716 | O::PACIB1716 | O::AUTIA1716 | O::AUTIB1716 => (&[x17, x16], &[x17]),
            _ => (&[], &[]),
        };
        read.iter().for_each(|&register| push(&mut self.read, register));
        written.iter().for_each(|&register| push(&mut self.written, register));
    }
}

fn push(list: &mut Vec<Register>, register: Register) {
    if register != Register::NONE && !list.contains(&register) {
        list.push(register);
    }
}

fn or_stack_pointer(number: u16) -> Register {
    Register::general(number as u8)
}

fn not_zero(number: u16) -> Register {
    if number == ZERO { Register::NONE } else { Register::general(number as u8) }
}

/// The registers that an operand names, without those of addresses.
pub(super) fn registers_of(operand: &Operand) -> Vec<Register> {
    let vectors = |first: u16, count: u8| {
        (0..u16::from(count)).map(|place| Register::vector(((first + place) % 32) as u8)).collect()
    };
    match *operand {
        Operand::Register(_, number) | Operand::RegShift(_, _, _, number) => vec![not_zero(number)],
        Operand::RegisterOrSP(_, number) => vec![or_stack_pointer(number)],
        Operand::RegisterPair(_, number) => vec![not_zero(number), not_zero((number + 1).min(ZERO))],
        Operand::SIMDRegister(_, number)
        | Operand::SIMDRegisterElements(_, number, _)
        | Operand::SIMDRegisterElementsLane(_, number, ..)
        | Operand::SIMDRegisterElementsMultipleLane(_, number, ..) => vectors(number, 1),
        Operand::SIMDRegisterGroup(_, first, _, count) | Operand::SIMDRegisterGroupLane(first, _, count, _) => {
            vectors(first, count)
        }
        _ => Vec::new(),
    }
}
