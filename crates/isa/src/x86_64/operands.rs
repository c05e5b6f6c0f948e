//! The operands of an instruction, as the core's scoreboard sees them.

use iced_x86::{Code, FlowControl, Instruction, Mnemonic, OpKind, Register as X86};

use crate::micro_op::Register;

/// `rax`, which string instructions store or compare.
pub(super) const ACCUMULATOR: Register = Register::general(0);
/// `rcx`, which counts the repetitions of string instructions.
pub(super) const COUNT: Register = Register::general(1);
/// `rsp`.
pub(super) const STACK_POINTER: Register = Register::general(4);
/// `rsi`, where string instructions read.
pub(super) const SOURCE_POINTER: Register = Register::general(6);
/// `rdi`, where string instructions read or write, and `maskmov` writes.
pub(super) const DESTINATION_POINTER: Register = Register::general(7);

/// The x87 stack, which MMX registers alias.
const X87: Register = Register::whole_file();

/// Adds the scoreboard's name of `register` unless it is listed; segment registers and the instruction pointer have
/// none.
pub(super) fn push_register(list: &mut Vec<Register>, register: X86) {
    if let Some(register) = register_of(register)
        && !list.contains(&register)
    {
        list.push(register);
    }
}

/// The scoreboard's name of `register`, or of the full register that it is a part of.
pub(super) fn register_of(register: X86) -> Option<Register> {
    let full = register.full_register();
    if full.is_gpr64() {
        Some(Register::general(full.number() as u8))
    } else if full.is_vector_register() {
        Some(Register::vector(full.number() as u8))
    } else if full.is_k() {
        Some(Register::mask(full.number() as u8))
    } else if full.is_st() || full.is_mm() {
        Some(X87)
    } else {
        None
    }
}

/// Pointers that an instruction uses without naming them in a memory operand.
pub(super) fn implied_pointers(instruction: &Instruction) -> &'static [Register] {
    match instruction.mnemonic() {
        _ if instruction.is_string_instruction() => &[SOURCE_POINTER, DESTINATION_POINTER],
        Mnemonic::Maskmovq | Mnemonic::Maskmovdqu | Mnemonic::Vmaskmovdqu => &[DESTINATION_POINTER],
        Mnemonic::Clzero => &[ACCUMULATOR],
        _ => &[],
    }
}

/// How many of its operands are immediates or the instruction pointer, which some cores supply by micro-operations
/// (gem5: `limm` and `rdip`).
pub(super) fn aside(instruction: &Instruction) -> u8 {
    use Mnemonic::{Adc, Add, And, Cmp, Imul, Mov, Or, Push, Sbb, Sub, Test, Xor};
    let of_flow = match instruction.flow_control() {
        FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch => 2,
        FlowControl::Call if instruction.code() != Code::Syscall => 2,
        FlowControl::IndirectCall => 1,
        _ => 0,
    };
    let immediates = OpKind::Immediate8..=OpKind::Immediate32to64;
    let has_immediate = (0..instruction.op_count()).any(|operand| immediates.contains(&instruction.op_kind(operand)));
    let takes_immediate = match instruction.mnemonic() {
        Add | Sub | And | Or | Xor | Cmp | Test | Adc | Sbb | Imul | Push => has_immediate,
        // A move into a register is itself such a micro-operation.
        Mov => has_immediate && instruction.op0_kind() == OpKind::Memory,
        _ => false,
    };
    of_flow + u8::from(takes_immediate) + u8::from(instruction.is_ip_rel_memory_operand())
}

/// The vector register whose lowest element an instruction loads and whose rest it clears; no register for all other
/// instructions.
pub(super) fn cleared_beyond(instruction: &Instruction) -> Register {
    use Mnemonic::{Movd, Movq, Movsd, Movss, Vmovd, Vmovq, Vmovsd, Vmovss};
    let to = instruction.op0_register();
    let loads = match instruction.mnemonic() {
        Movd | Movq | Vmovd | Vmovq => instruction.op0_kind() == OpKind::Register,
        // Between registers they keep the rest.
        Movsd | Movss | Vmovsd | Vmovss => instruction.op1_kind() == OpKind::Memory,
        _ => false,
    };
    if loads && to.is_vector_register() { Register::vector(to.number() as u8) } else { Register::NONE }
}

/// Whether it is `xor r, r` or the like, whose result depends on no register.
pub(super) fn is_zero_idiom(instruction: &Instruction) -> bool {
    use Mnemonic::{Pxor, Sub, Vpxor, Vpxord, Vpxorq, Vxorpd, Vxorps, Xor, Xorpd, Xorps};
    let clears =
        matches!(instruction.mnemonic(), Xor | Sub | Pxor | Xorps | Xorpd | Vpxor | Vpxord | Vpxorq | Vxorps | Vxorpd);
    let last = instruction.op_count().wrapping_sub(1);
    clears
        && last >= 1
        && instruction.op_kind(last) == OpKind::Register
        && instruction.op_kind(last - 1) == OpKind::Register
        && instruction.op_register(last) == instruction.op_register(last - 1)
}

/// Bytes of the widest vector register among the operands.
pub(super) fn vector_bytes(instruction: &Instruction) -> u8 {
    let registers = (0..instruction.op_count())
        .filter(|&operand| instruction.op_kind(operand) == OpKind::Register)
        .map(|operand| instruction.op_register(operand));
    registers.filter(|register| register.is_vector_register()).map(|register| register.size() as u8).max().unwrap_or(0)
}

/// Whether the instruction computes with the lowest element of vector registers alone.
pub(super) fn is_scalar(instruction: &Instruction) -> bool {
    let name = format!("{:?}", instruction.mnemonic()).to_ascii_lowercase();
    let stem = name.trim_start_matches('v');
    let of_one_element = ["movd", "movq", "pextr", "pinsr", "extractps"]
        .iter()
        .any(|start| stem.strip_prefix(start).is_some_and(|rest| rest.len() <= 1));
    let converts_one = stem.starts_with("cvt") && ["sd2", "ss2", "si2"].iter().any(|from| stem.contains(from));
    // `pmaxsd` and the like have packed integers.
    let ends_as_one = !stem.starts_with('p') && (stem.ends_with("ss") || stem.ends_with("sd"));
    of_one_element || converts_one || ends_as_one
}
