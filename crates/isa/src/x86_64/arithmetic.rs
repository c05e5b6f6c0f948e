//! The class of an instruction's operation, and so the unit and the latency of its micro-operation.

use iced_x86::{EncodingKind, FlowControl, Instruction, Mnemonic, OpKind};

use super::persistence;
use crate::micro_op::Operation;

/// The operation between an instruction's loads and its stores.
pub(super) fn operation_of(instruction: &Instruction) -> Operation {
    if !matches!(
        instruction.flow_control(),
        FlowControl::Next | FlowControl::Interrupt | FlowControl::Exception | FlowControl::XbeginXabortXend
    ) {
        return Operation::Branch;
    }
    match instruction.mnemonic() {
        Mnemonic::Imul | Mnemonic::Mul | Mnemonic::Mulx => return Operation::Multiply,
        Mnemonic::Div | Mnemonic::Idiv => return Operation::Divide,
        _ => {}
    }
    let uses_vectors = (0..instruction.op_count()).any(|operand| {
        instruction.op_kind(operand) == OpKind::Register && {
            let full = instruction.op_register(operand).full_register();
            full.is_vector_register() || full.is_st() || full.is_mm()
        }
    });
    let name = format!("{:?}", instruction.mnemonic()).to_ascii_lowercase();
    let is_x87 = instruction.encoding() == EncodingKind::Legacy && name.starts_with('f');
    if !uses_vectors && !is_x87 {
        return Operation::Integer;
    }
    let stem = name.trim_start_matches('v');
    if is_x87 { float_operation(&name[1..]) } else { vector_operation(stem) }
}

/// Floating-point arithmetic is recognised by its stem and its suffix `ss`, `sd`, `ps` or `pd`.
fn vector_operation(stem: &str) -> Operation {
    let is_float = ["ss", "sd", "ps", "pd"].iter().any(|kind| stem.ends_with(kind));
    let starts = |stems: &[&str]| stems.iter().any(|start| stem.starts_with(start));
    if is_float && starts(&["div", "sqrt"]) {
        Operation::FloatDivide
    } else if is_float && starts(&["mul", "fm", "fnm", "dpp"]) {
        Operation::FloatMultiply
    } else if (is_float && starts(&["add", "sub", "cmp", "max", "min", "hadd", "hsub", "round", "rndscale"]))
        || starts(&["cvt", "comis", "ucomis"])
    {
        Operation::FloatAdd
    } else {
        Operation::Vector
    }
}

/// The same for x87, whose mnemonics come without their `f`.
fn float_operation(stem: &str) -> Operation {
    let starts = |stems: &[&str]| stems.iter().any(|start| stem.starts_with(start));
    if starts(&["div", "idiv", "sqrt", "sin", "cos", "ptan", "patan", "yl2x", "prem", "2xm1", "scale"]) {
        Operation::FloatDivide
    } else if starts(&["mul", "imul"]) {
        Operation::FloatMultiply
    } else if starts(&["add", "sub", "iadd", "isub", "com", "ucom", "icom", "rndint"]) {
        Operation::FloatAdd
    } else {
        Operation::Vector
    }
}

/// Whether the instruction only moves a value between a register and memory, so that a load or store alone executes it.
pub(super) fn is_move(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        mnemonic,
        M::Mov
            | M::Movzx
            | M::Movsx
            | M::Movsxd
            | M::Movbe
            | M::Movaps
            | M::Movapd
            | M::Movups
            | M::Movupd
            | M::Movdqa
            | M::Movdqu
            | M::Movss
            | M::Movsd
            | M::Movd
            | M::Movq
            | M::Lddqu
            | M::Movddup
            | M::Vmovaps
            | M::Vmovapd
            | M::Vmovups
            | M::Vmovupd
            | M::Vmovdqa
            | M::Vmovdqu
            | M::Vmovdqa32
            | M::Vmovdqa64
            | M::Vmovdqu8
            | M::Vmovdqu16
            | M::Vmovdqu32
            | M::Vmovdqu64
            | M::Vmovss
            | M::Vmovsd
            | M::Vmovd
            | M::Vmovq
            | M::Vlddqu
            | M::Vbroadcastss
            | M::Vbroadcastsd
            | M::Push
            | M::Pop
    ) || (persistence::is_non_temporal(mnemonic) && !persistence::is_masked(mnemonic))
}
