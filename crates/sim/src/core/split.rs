//! Splits instructions into what a core executes whole.
//!
//! Vector operations and accesses that are wider than `core.widest_operation_bytes` become parts of that width. Each
//! part computes on its own part of the vector registers, takes a place of its own in every queue, and accesses memory
//! on its own. So a chain of additions of vectors is as long as one of numbers, and a value is there when its highest
//! part is. Where parts would have to meet (a shuffle) they are taken not to. A load of one element takes an operation
//! that clears the rest of the register. With `core.operand_operations = "separate"` immediates and instruction
//! pointers take an operation each.

use std::sync::Arc;

use super::config::{CoreConfig, OperandOperations};
use fencepost_isa::micro_op::{Aside, DecodedBlock, MicroOp, Operation, Register, WarmBlock};

/// Bytes of the narrowest vector register.
const NARROWEST: u16 = 16;

/// `blocks` for a core like `config`.
pub fn split(blocks: &Arc<[DecodedBlock]>, config: &CoreConfig) -> Arc<[DecodedBlock]> {
    let widest = config.widest_operation_bytes;
    let has_operands = config.operand_operations == OperandOperations::Separate;
    let before = |aside: &Aside| Aside {
        operands: if has_operands { aside.operands } else { 0 },
        cleared: if widest < NARROWEST { aside.cleared } else { Register::NONE },
    };
    let changes = |block: &DecodedBlock| {
        block.micro_ops.iter().any(|micro_op| parts(micro_op, widest) > 1)
            || block.asides.iter().any(|aside| before(aside) != Aside::default())
    };
    if !blocks.iter().any(changes) {
        return Arc::clone(blocks);
    }
    let split = |block: &DecodedBlock| match changes(block) {
        true => split_block(block, widest, block.asides.iter().map(before)),
        false => block.clone(),
    };
    blocks.iter().map(split).collect()
}

/// How many parts of `widest` bytes `micro_op` has.
fn parts(micro_op: &MicroOp, widest: u16) -> u16 {
    u16::from(micro_op.vector_bytes).div_ceil(widest).max(1)
}

fn split_block(block: &DecodedBlock, widest: u16, asides: impl Iterator<Item = Aside>) -> DecodedBlock {
    let mut micro_ops = Vec::with_capacity(2 * block.micro_ops.len());
    // Temporaries of the current instruction that have come in parts.
    let mut in_parts: Vec<Register> = Vec::new();
    let instructions = block.micro_ops.split_inclusive(|micro_op| micro_op.ends_instruction);
    for (instruction, aside) in instructions.zip(asides) {
        micro_ops.extend(asides_of(aside));
        in_parts.clear();
        for micro_op in instruction {
            let count = parts(micro_op, widest);
            micro_ops.extend((0..count).map(|part| part_of(micro_op, part, count, widest, &in_parts)));
            if count > 1 {
                in_parts.extend(micro_op.destinations.into_iter().filter(|register| register.is_temporary()));
            }
        }
    }
    DecodedBlock { warm: WarmBlock::of(&micro_ops), micro_ops: micro_ops.into(), ..block.clone() }
}

/// The micro-operations that an instruction takes besides its own.
fn asides_of(aside: Aside) -> impl Iterator<Item = MicroOp> {
    let operand = MicroOp { offset: MicroOp::ASIDE, ..MicroOp::default() };
    let destinations = [aside.cleared.upper(), Register::NONE];
    let clear = MicroOp { operation: Operation::Vector, destinations, ..operand };
    let operands = std::iter::repeat_n(operand, usize::from(aside.operands));
    operands.chain((aside.cleared != Register::NONE).then_some(clear))
}

/// Part `part` of `count` of `micro_op`.
fn part_of(micro_op: &MicroOp, part: u16, count: u16, widest: u16, in_parts: &[Register]) -> MicroOp {
    if count == 1 {
        return *micro_op;
    }
    let is_last = part + 1 == count;
    let offset = part * widest;
    let bytes = widest.min(u16::from(micro_op.vector_bytes) - offset);
    let source = |register: Register| match part {
        0 => register,
        _ if register.is_temporary() && !in_parts.contains(&register) => register,
        _ => register.upper(),
    };
    // The parts between the lowest and the highest read what their instruction's predecessors left, and leave the name
    // to the highest.
    let destination = |register: Register| match (part, register.upper() == register) {
        (0, false) => register,
        (0, true) => Register::NONE,
        _ if is_last => register.upper(),
        _ => Register::NONE,
    };
    MicroOp {
        ends_instruction: micro_op.ends_instruction && is_last,
        sources: micro_op.sources.map(source),
        destinations: micro_op.destinations.map(destination),
        size: if micro_op.size == 0 { 0 } else { bytes },
        vector_bytes: bytes as u8,
        offset: offset as u8,
        ..*micro_op
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const XMM0: Register = Register::vector(0);
    const XMM1: Register = Register::vector(1);
    const RAX: Register = Register::general(0);

    fn block(micro_ops: &[MicroOp]) -> Arc<[DecodedBlock]> {
        let warm = WarmBlock::of(micro_ops);
        let asides = micro_ops.iter().filter(|micro_op| micro_op.ends_instruction).map(|_| Aside::default()).collect();
        [DecodedBlock { micro_ops: micro_ops.into(), asides, warm, ..DecodedBlock::default() }].into()
    }

    fn core(widest_operation_bytes: u16) -> CoreConfig {
        let mut core = crate::host::bench::machine(&[]).core;
        core.widest_operation_bytes = widest_operation_bytes;
        core
    }

    fn micro_op(operation: Operation, sources: [Register; 2], destination: Register, size: u16) -> MicroOp {
        MicroOp {
            operation,
            ends_instruction: true,
            sources: [sources[0], sources[1], Register::NONE, Register::NONE],
            destinations: [destination, Register::NONE],
            size,
            vector_bytes: 16,
            ..MicroOp::default()
        }
    }

    #[test]
    fn parts_compute_on_their_own_parts_of_the_registers() {
        let add = micro_op(Operation::FloatAdd, [XMM0, XMM1], XMM0, 0);
        let halves = split(&block(&[add]), &core(8));
        let [low, high] = halves[0].micro_ops[..] else { panic!("two parts") };
        assert_eq!((low.sources[..2].to_vec(), low.destinations[0]), (vec![XMM0, XMM1], XMM0));
        assert_eq!(
            (high.sources[..2].to_vec(), high.destinations[0]),
            (vec![XMM0.upper(), XMM1.upper()], XMM0.upper())
        );
        assert_eq!((low.ends_instruction, high.ends_instruction), (false, true));
    }

    #[test]
    fn a_load_in_parts_has_an_address_for_each_and_warms_as_one() {
        let load = micro_op(Operation::Load, [RAX, Register::BARRIER], XMM0, 16);
        let halves = split(&block(&[load]), &core(8));
        let accesses: Vec<_> = halves[0].micro_ops.iter().map(|part| (part.address_of_part(4096), part.size)).collect();
        assert_eq!(accesses, [(4096, 8), (4104, 8)]);
        assert_eq!(halves[0].micro_ops[1].sources[..2], [RAX, Register::BARRIER]);
        assert_eq!(halves[0].warm.accesses.iter().map(|access| access.size).collect::<Vec<_>>(), [16]);
        assert_eq!((halves[0].unsplit_number(0), halves[0].unsplit_number(1)), (0, 0));
    }

    #[test]
    fn a_flag_comes_from_the_highest_part_alone() {
        let test = micro_op(Operation::Vector, [XMM0, XMM1], Register::FLAGS, 0);
        let halves = split(&block(&[test]), &core(8));
        let written: Vec<_> = halves[0].micro_ops.iter().map(|part| part.destinations[0]).collect();
        assert_eq!(written, [Register::NONE, Register::FLAGS]);
    }

    #[test]
    fn a_temporary_is_read_in_parts_only_if_it_came_in_parts() {
        let temporary = Register::loaded(0);
        for (bytes, upper) in [(8, temporary), (16, temporary.upper())] {
            let mut load = micro_op(Operation::Load, [RAX, Register::NONE], temporary, bytes);
            (load.ends_instruction, load.vector_bytes) = (false, bytes as u8);
            let add = micro_op(Operation::FloatAdd, [temporary, XMM0], XMM0, 0);
            let halves = split(&block(&[load, add]), &core(8));
            assert_eq!(halves[0].micro_ops.last().unwrap().sources[0], upper, "{bytes} bytes");
        }
    }

    #[test]
    fn what_fits_stays_as_it_is() {
        let blocks = block(&[micro_op(Operation::FloatAdd, [XMM0, XMM1], XMM0, 0)]);
        assert!(Arc::ptr_eq(&split(&blocks, &core(16)), &blocks));
    }
}
