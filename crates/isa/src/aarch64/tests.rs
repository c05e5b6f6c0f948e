//! What single instructions are decoded to.

use super::*;
use crate::InstructionSet;
use crate::micro_op::{Awaited, Fence, Flush, MicroOp, Operation, Ordered, Reach, Register};
use fencepost_record::{BlockBuilder, Marker, SlotKind};

const LOAD: SlotKind = SlotKind::Load;
const STORE: SlotKind = SlotKind::Store;

fn x(number: u8) -> Register {
    Register::general(number)
}

fn v(number: u8) -> Register {
    Register::vector(number)
}

fn decoded(word: u32, slots: &[(SlotKind, u16)]) -> DecodedBlock {
    decode_block(&BlockBuilder::at(0x1000).instruction(&word.to_le_bytes(), slots).build(), crack)
}

/// The micro-operations of an instruction with these slots.
fn cracked(word: u32, slots: &[(SlotKind, u16)]) -> Box<[MicroOp]> {
    decoded(word, slots).micro_ops
}

fn operations(micro_ops: &[MicroOp]) -> Vec<Operation> {
    micro_ops.iter().map(|micro_op| micro_op.operation).collect()
}

fn named(registers: &[Register]) -> Vec<Register> {
    registers.iter().copied().filter(|&register| register != Register::NONE).collect()
}

#[test]
fn an_addition_reads_its_operands_and_writes_its_result() {
    // add w3, w1, w2, lsl #4; adds x3, x1, #1; adc x3, x1, x2
    let cases: [(u32, &[Register], &[Register]); 3] = [
        (0x0b02_1023, &[x(1), x(2)], &[x(3)]),
        (0xb100_0423, &[x(1)], &[x(3), Register::FLAGS]),
        (0x9a02_0023, &[x(1), x(2), Register::FLAGS], &[x(3)]),
    ];
    for (word, read, written) in cases {
        let [add] = cracked(word, &[])[..] else { panic!("{word:08x} is one operation") };
        assert_eq!(add.operation, Operation::Integer);
        assert_eq!((named(&add.sources), named(&add.destinations)), (read.to_vec(), written.to_vec()), "{word:08x}");
    }
}

#[test]
fn the_zero_register_is_no_dependency_and_the_stack_pointer_is_one() {
    // cmp x1, xzr; add sp, sp, #16; mov x0, sp
    let cases: [(u32, &[Register], &[Register]); 3] = [
        (0xeb1f_003f, &[x(1)], &[Register::FLAGS]),
        (0x9100_43ff, &[x(31)], &[x(31)]),
        (0x9100_03e0, &[x(31)], &[x(0)]),
    ];
    for (word, read, written) in cases {
        let [operation] = cracked(word, &[])[..] else { panic!("{word:08x} is one operation") };
        assert_eq!((named(&operation.sources), named(&operation.destinations)), (read.to_vec(), written.to_vec()));
    }
}

#[test]
fn a_load_that_advances_its_base_does_not_make_the_base_wait_for_memory() {
    // ldr x0, [x1], #8
    let [load, advance] = cracked(0xf840_8420, &[(LOAD, 8)])[..] else { panic!("a load, and an addition") };
    assert_eq!((load.operation, load.slot, load.size), (Operation::Load, 0, 8));
    assert_eq!((named(&load.sources), named(&load.destinations)), (vec![x(1), Register::BARRIER], vec![x(0)]));
    assert_eq!((advance.operation, advance.size), (Operation::Integer, 0));
    assert_eq!((named(&advance.sources), named(&advance.destinations)), (vec![x(1)], vec![x(1)]));
    assert_eq!((load.ends_instruction, advance.ends_instruction), (false, true));
}

#[test]
fn a_pair_is_one_access_of_both() {
    // ldp x29, x30, [sp], #16; stp q0, q1, [x2, #32]
    let [load, advance] = cracked(0xa8c1_7bfd, &[(LOAD, 16)])[..] else { panic!("a load, and an addition") };
    assert_eq!((load.size, named(&load.destinations)), (16, vec![x(29), x(30)]));
    assert_eq!(named(&advance.destinations), [x(31)]);
    let [store] = cracked(0xad01_0440, &[(STORE, 32)])[..] else { panic!("a store") };
    assert_eq!((store.operation, store.size, store.vector_bytes), (Operation::Store, 32, 32));
    assert_eq!(named(&store.sources), [x(2), v(0), v(1)]);
}

#[test]
fn registers_of_a_structure_come_from_what_was_loaded() {
    // ld1 {v0.16b-v3.16b}, [x1]; ld4 {v0.4s-v3.4s}, [x1], x2
    for (word, operations_in_all) in [(0x4c40_2020, 3), (0x4cc2_0820, 4)] {
        let micro_ops = cracked(word, &[(LOAD, 64)]);
        assert_eq!(micro_ops.len(), operations_in_all, "{word:08x}");
        assert_eq!((micro_ops[0].size, named(&micro_ops[0].destinations)), (64, vec![Register::loaded(0)]));
        let written: Vec<_> = micro_ops[1..3].iter().flat_map(|part| named(&part.destinations)).collect();
        assert_eq!(written, [v(0), v(1), v(2), v(3)]);
    }
    // st2 {v0.8b, v1.8b}, [x1]
    let [interleave, store] = cracked(0x0c00_8020, &[(STORE, 16)])[..] else { panic!("two operations") };
    assert_eq!((interleave.operation, named(&interleave.sources)), (Operation::Vector, vec![v(0), v(1)]));
    assert_eq!(named(&store.sources), [x(1), Register::RESULT]);
}

#[test]
fn a_lane_keeps_the_rest_of_its_register() {
    // ins v0.s[1], w1; ld1 {v0.s}[1], [x1]
    let [insert] = cracked(0x4e0c_1c20, &[])[..] else { panic!("one operation") };
    assert_eq!((named(&insert.sources), named(&insert.destinations)), (vec![v(0), x(1)], vec![v(0)]));
    let [load, insert] = cracked(0x0d40_9020, &[(LOAD, 4)])[..] else { panic!("a load, and an insertion") };
    assert_eq!(named(&load.destinations), [Register::loaded(0)]);
    assert_eq!((named(&insert.sources), named(&insert.destinations)), (vec![Register::loaded(0), v(0)], vec![v(0)]));
}

#[test]
fn an_exclusive_store_reports_its_success_and_is_no_fence() {
    // ldaxr w0, [x1]; stlxr w2, w0, [x1]; ldaxp x0, x2, [x1]
    let [load] = cracked(0x885f_fc20, &[(LOAD, 4)])[..] else { panic!("a load") };
    assert_eq!((load.operation, named(&load.destinations)), (Operation::Load, vec![x(0), Register::BARRIER]));
    let [store, status] = cracked(0x8802_fc20, &[(STORE, 4)])[..] else { panic!("a store, and its success") };
    assert_eq!((store.operation, named(&store.sources)), (Operation::Store, vec![x(1), x(0)]));
    assert_eq!((status.operation, named(&status.destinations)), (Operation::Integer, vec![x(2)]));
    let pair = cracked(0xc87f_8820, &[(LOAD, 16)]);
    assert_eq!(named(&pair[0].destinations), [Register::loaded(0), Register::BARRIER]);
    assert_eq!(named(&pair[1].destinations), [x(0), x(2)]);
}

#[test]
fn acquiring_holds_back_loads_and_releasing_does_not() {
    // ldar x0, [x1]; ldapr x0, [x1]; ldr x0, [x1]
    for (word, acquires) in [(0xc8df_fc20, true), (0xf8bf_c020, true), (0xf940_0020, false)] {
        let [load] = cracked(word, &[(LOAD, 8)])[..] else { panic!("a load") };
        assert_eq!(load.destinations.contains(&Register::BARRIER), acquires, "{word:08x}");
    }
    // stlr x0, [x1]
    let [store] = cracked(0xc89f_fc20, &[(STORE, 8)])[..] else { panic!("a store") };
    assert_eq!((store.operation, named(&store.destinations)), (Operation::Store, vec![]));
}

#[test]
fn an_atomic_orders_as_its_suffix_says_and_completes_no_flush() {
    // ldadd x0, x2, [x1]; ldadda; ldaddl; ldaddal; casal x0, x2, [x1]; swp w0, w2, [x1]
    let cases = [
        (0xf820_0022, Ordered::Stores),
        (0xf8a0_0022, Ordered::LoadsAndStores),
        (0xf860_0022, Ordered::Stores),
        (0xf8e0_0022, Ordered::LoadsAndStores),
        (0xc8e0_fc22, Ordered::LoadsAndStores),
        (0xb820_8022, Ordered::Stores),
    ];
    for (word, orders) in cases {
        let [atomic] = cracked(word, &[(SlotKind::Update, 8)])[..] else { panic!("{word:08x} is one operation") };
        let Operation::Atomic(fence) = atomic.operation else { panic!("{word:08x} is atomic") };
        assert_eq!((fence.orders(), fence.awaits()), (orders, Awaited::Nothing), "{word:08x}");
        let holds = orders == Ordered::LoadsAndStores;
        assert_eq!(atomic.destinations.contains(&Register::BARRIER), holds, "{word:08x}");
    }
    // caspal x0, x1, x2, x3, [x4] has five sources and two results
    let micro_ops = cracked(0x4860_fc82, &[(SlotKind::Update, 16)]);
    let atomic = micro_ops.iter().find(|micro_op| matches!(micro_op.operation, Operation::Atomic(_)));
    assert_eq!(named(&atomic.expect("it is atomic").sources), [x(4), Register::RESULT]);
    let written: Vec<_> = micro_ops.iter().flat_map(|micro_op| named(&micro_op.destinations)).collect();
    assert!([x(0), x(1)].iter().all(|register| written.contains(register)), "{written:?}");
}

#[test]
fn flushes_and_fences_are_known_by_their_words_and_named() {
    let cases = [
        (0xd50b_7a20, Operation::Flush(Flush::DC_CVAC), "dc_cvac"),
        (0xd50b_7c20, Operation::Flush(Flush::DC_CVAP), "dc_cvap"),
        (0xd50b_7d20, Operation::Flush(Flush::DC_CVAP), "dc_cvap"),
        (0xd50b_7e20, Operation::Flush(Flush::DC_CIVAC), "dc_civac"),
        // dsb sy, ish, ishst; dmb sy, ish, ishst
        (0xd503_3f9f, Operation::Fence(Fence::DSB), "dsb"),
        (0xd503_3b9f, Operation::Fence(Fence::DSB), "dsb"),
        (0xd503_3a9f, Operation::Fence(Fence::DMB), "dmb"),
        (0xd503_3fbf, Operation::Fence(Fence::DMB), "dmb"),
        (0xd503_3bbf, Operation::Fence(Fence::DMB), "dmb"),
        (0xd503_3abf, Operation::Fence(Fence::DMB_ST), "dmb_st"),
    ];
    for (word, operation, name) in cases {
        let word: u32 = word;
        assert_eq!(persist_operation(&word.to_le_bytes()), Some(operation), "{word:08x}");
        assert_eq!(InstructionSet::Aarch64.name_of(operation), Some(name));
        let slots: &[_] = if operation.is_flush() { &[(SlotKind::Flush, 64)] } else { &[] };
        let micro_ops = cracked(word, slots);
        assert_eq!(operations(&micro_ops), [operation]);
        assert_eq!(micro_ops[0].destinations[0] == Register::BARRIER, matches!(name, "dsb" | "dmb"), "{word:08x}");
        if operation.is_flush() {
            assert_eq!((named(&micro_ops[0].sources), micro_ops[0].size), (vec![x(0)], 64));
        }
    }
    assert_eq!(Flush::DC_CVAC.reaches(), Reach::Coherence);
    assert_eq!(Fence::DMB.awaits(), Awaited::Nothing);
}

#[test]
fn a_barrier_of_loads_drains_the_pipeline_and_so_does_isb() {
    // dmb ishld; dsb ishld; isb
    for word in [0xd503_39bf, 0xd503_399f, 0xd503_3fdf] {
        let word: u32 = word;
        assert_eq!(operations(&cracked(word, &[])), [Operation::Drain], "{word:08x}");
        assert_eq!(persist_operation(&word.to_le_bytes()), None);
    }
}

#[test]
fn other_maintenance_persists_nothing() {
    // dc cvau, x0; ic ivau, x0
    for (word, slots) in [(0xd50b_7b20, &[(SlotKind::Flush, 64)][..]), (0xd50b_7520, &[])] {
        assert_eq!(operations(&cracked(word, slots)), [Operation::Integer], "{word:08x}");
    }
    // dc zva, x0 stores a line of zeros
    let [store] = cracked(0xd50b_7420, &[(STORE, 64)])[..] else { panic!("a store") };
    assert_eq!((store.operation, store.size, named(&store.sources)), (Operation::Store, 64, vec![x(0)]));
    // prfm pldl1keep, [x1]
    let [prefetch] = cracked(0xf980_0020, &[(SlotKind::Prefetch, 64)])[..] else { panic!("a prefetch") };
    assert_eq!((prefetch.operation, prefetch.sources[0]), (Operation::Prefetch, x(1)));
    // stnp x0, x2, [x1] goes through the caches
    assert_eq!(operations(&cracked(0xa800_0820, &[(STORE, 16)])), [Operation::Store]);
}

#[test]
fn operations_are_of_their_class() {
    let cases = [
        ("madd x0, x1, x2, x3", 0x9b02_0c20, Operation::Multiply),
        ("umulh x0, x1, x2", 0x9bc2_7c20, Operation::Multiply),
        ("udiv x0, x1, x2", 0x9ac2_0820, Operation::Divide),
        ("fadd d0, d1, d2", 0x1e62_2820, Operation::FloatAdd),
        ("fcmp d0, d1", 0x1e61_2000, Operation::FloatAdd),
        ("scvtf d0, x1", 0x9e62_0020, Operation::FloatAdd),
        ("fmadd d0, d1, d2, d3", 0x1f42_0c20, Operation::FloatMultiply),
        ("fmla v0.2d, v1.2d, v2.2d", 0x4e62_cc20, Operation::FloatMultiply),
        ("fdiv d0, d1, d2", 0x1e62_1820, Operation::FloatDivide),
        ("fsqrt d0, d1", 0x1e61_c020, Operation::FloatDivide),
        ("add v0.4s, v1.4s, v2.4s", 0x4ea2_8420, Operation::Vector),
        ("fmov x0, d1", 0x9e66_0020, Operation::Vector),
        ("nop", 0xd503_201f, Operation::Integer),
        ("svc #0", 0xd400_0001, Operation::Integer),
    ];
    for (text, word, operation) in cases {
        assert_eq!(operations(&cracked(word, &[])), [operation], "{text}");
    }
}

#[test]
fn blocks_are_left_as_their_last_instruction_says() {
    let cases = [
        ("b .+8", 0x1400_0002, Exit::Jump),
        ("b.eq .+8", 0x5400_0040, Exit::Conditional),
        ("cbz x0, .+8", 0xb400_0040, Exit::Conditional),
        ("tbz x0, #3, .+8", 0x3618_0040, Exit::Conditional),
        ("bl .+8", 0x9400_0002, Exit::Call),
        ("br x16", 0xd61f_0200, Exit::IndirectJump),
        ("blr x1", 0xd63f_0020, Exit::IndirectCall),
        ("ret", 0xd65f_03c0, Exit::Return),
        ("svc #0", 0xd400_0001, Exit::FallThrough),
    ];
    for (text, word, exit) in cases {
        let block = decoded(word, &[]);
        assert_eq!((block.exit, block.end, block.last_instruction), (exit, 0x1004, 0x1000), "{text}");
        assert_eq!(block.micro_ops[0].operation == Operation::Branch, exit != Exit::FallThrough, "{text}");
    }
    let [call] = cracked(0xd63f_0020, &[])[..] else { panic!("one operation") };
    assert_eq!((named(&call.sources), named(&call.destinations)), (vec![x(1)], vec![x(30)]));
}

#[test]
fn what_the_decoder_does_not_know_or_expect_accesses_what_its_slots_say() {
    // SVE: ptrue p0.b; ld1b {z0.b}, p0/z, [x1]; and four bytes short of an instruction
    assert_eq!(operations(&cracked(0x2518_e3e0, &[])), [Operation::Integer]);
    assert_eq!(operations(&cracked(0xa400_a020, &[(LOAD, 16)])), [Operation::Load]);
    // ld4 {v0.4s-v3.4s}, [x1] without a slot, and with those of other instructions.
    for slots in [&[][..], &[(STORE, 64)], &[(SlotKind::Flush, 64)], &[(LOAD, 16); 3], &[(SlotKind::Update, 64)]] {
        assert!(cracked(0x4c40_0820, slots).last().expect("there is an operation").ends_instruction);
    }
    let short = decode_block(&BlockBuilder::at(0x1000).instruction(&[0x1f, 0x20], &[]).build(), crack);
    assert_eq!(operations(&short.micro_ops), [Operation::Integer]);
}

#[test]
fn a_marker_is_a_move_to_the_zero_register_with_its_code_in_the_immediate() {
    // movz xzr, #0x5001, lsl #48
    let begin = 0xd2ea_003f_u32;
    assert_eq!(marker_of(&begin.to_le_bytes()), Some(Marker::ROI_BEGIN));
    assert_eq!(marker_of(&0xd2ea_005f_u32.to_le_bytes()), Some(Marker::ROI_END));
    // The same to x30, and the same at another place of the register.
    for other in [0xd2ea_003e_u32, 0xd2ca_003f] {
        assert_eq!(marker_of(&other.to_le_bytes()), None, "{other:08x}");
    }
    let micro_ops = cracked(begin, &[]);
    assert_eq!((operations(&micro_ops), micro_ops[0].slot), (vec![Operation::RoiMarker], Marker::ROI_BEGIN.0));
}

#[test]
fn names_of_flushes_and_fences_are_those_of_the_instruction_set() {
    assert_eq!(InstructionSet::Aarch64.name_of(Operation::Flush(Flush::CLFLUSH)), None);
    assert_eq!(InstructionSet::Aarch64.name_of(Operation::NonTemporalStore), None);
    let atomic = Operation::Atomic(InstructionSet::Aarch64.synchronisation());
    assert_eq!(InstructionSet::Aarch64.name_of(atomic), Some("atomic"));
}
