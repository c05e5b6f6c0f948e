//! What single instructions are decoded to.

use super::*;
use crate::InstructionSet;
use crate::micro_op::{Fence, Flush, MicroOp, Operation, Register, StringAccess};
use fencepost_record::{BlockBuilder, Marker, SlotKind};

/// The micro-operations of an instruction with these slots.
fn cracked(bytes: &[u8], slots: &[(SlotKind, u16)]) -> Box<[MicroOp]> {
    let block = BlockBuilder::at(0x1000).instruction(bytes, slots).build();
    decode_with(&block, &mut InstructionInfoFactory::new()).micro_ops
}

fn operations(micro_ops: &[MicroOp]) -> Vec<Operation> {
    micro_ops.iter().map(|micro_op| micro_op.operation).collect()
}

/// Non-temporal stores to `[rbx]`, `[rdi]` or `[rax]`: name, bytes, whether they read memory too, bytes written.
const NON_TEMPORAL: [(&str, &[u8], bool, u16); 17] = [
    ("movnti [rbx], eax", &[0x0f, 0xc3, 0x03], false, 4),
    ("movnti [rbx], rax", &[0x48, 0x0f, 0xc3, 0x03], false, 8),
    ("movntq [rbx], mm0", &[0x0f, 0xe7, 0x03], false, 8),
    ("movntdq [rbx], xmm0", &[0x66, 0x0f, 0xe7, 0x03], false, 16),
    ("movntps [rbx], xmm0", &[0x0f, 0x2b, 0x03], false, 16),
    ("movntpd [rbx], xmm0", &[0x66, 0x0f, 0x2b, 0x03], false, 16),
    ("movntss [rbx], xmm0", &[0xf3, 0x0f, 0x2b, 0x03], false, 4),
    ("movntsd [rbx], xmm0", &[0xf2, 0x0f, 0x2b, 0x03], false, 8),
    ("vmovntdq [rbx], zmm0", &[0x62, 0xf1, 0x7d, 0x48, 0xe7, 0x03], false, 64),
    ("vmovntps [rbx], ymm0", &[0xc5, 0xfc, 0x2b, 0x03], false, 32),
    ("vmovntpd [rbx], ymm0", &[0xc5, 0xfd, 0x2b, 0x03], false, 32),
    ("maskmovq mm0, mm1", &[0x0f, 0xf7, 0xc1], false, 8),
    ("maskmovdqu xmm0, xmm1", &[0x66, 0x0f, 0xf7, 0xc1], false, 16),
    ("vmaskmovdqu xmm0, xmm1", &[0xc5, 0xf9, 0xf7, 0xc1], false, 16),
    ("movdiri [rbx], rax", &[0x48, 0x0f, 0x38, 0xf9, 0x03], false, 8),
    ("movdir64b rax, [rbx]", &[0x66, 0x0f, 0x38, 0xf8, 0x03], true, 64),
    ("clzero", &[0x0f, 0x01, 0xfc], false, 64),
];

#[test]
fn every_non_temporal_store_is_executed_as_one_and_summarised_as_one() {
    for (name, bytes, loads, size) in NON_TEMPORAL {
        let load: &[_] = if loads { &[(SlotKind::Load, size)] } else { &[] };
        let micro_ops = cracked(bytes, &[load, &[(SlotKind::Store, size)]].concat());
        let last = micro_ops.last().expect("it has a store");
        assert_eq!((last.operation, last.size), (Operation::NonTemporalStore, size), "{name}");
        assert_eq!(operations(&micro_ops).contains(&Operation::Load), loads, "{name}");
        assert!(!operations(&micro_ops).contains(&Operation::Store), "{name}");
        let operation = InstructionSet::X86_64.persist_operation(bytes);
        assert_eq!(
            operation.and_then(|operation| InstructionSet::X86_64.name_of(operation)),
            Some("non_temporal_store"),
            "{name}"
        );
    }
}

#[test]
fn a_masked_store_waits_for_address_data_and_mask_and_may_write_every_byte() {
    let [mask, store] = cracked(&[0x66, 0x0f, 0xf7, 0xc1], &[(SlotKind::Store, 16)])[..] else {
        panic!("the mask is applied, then the store executes")
    };
    let (data, selected) = (Register::vector(0), Register::vector(1));
    assert_eq!((mask.operation, &mask.sources[..2]), (Operation::Vector, &[data, selected][..]));
    assert_eq!(mask.destinations[0], Register::RESULT);
    assert_eq!(store.sources[..2], [operands::DESTINATION_POINTER, Register::RESULT]);
    assert_eq!(store.size, 16, "a record does not hold the mask");
}

#[test]
fn a_direct_store_of_a_line_waits_for_the_line_that_it_reads() {
    let slots = [(SlotKind::Load, 64), (SlotKind::Store, 64)];
    let micro_ops = cracked(&[0x66, 0x0f, 0x38, 0xf8, 0x03], &slots);
    let [load, copy, store] = micro_ops[..] else { panic!("{micro_ops:?}") };
    assert_eq!(load.sources[0], Register::general(3));
    assert_eq!(copy.sources[..2], [Register::loaded(0), Register::general(0)]);
    assert_eq!((store.sources[1], store.slot), (Register::RESULT, 1));
}

#[test]
fn flushes_and_fences_are_known_by_their_bytes_and_named() {
    let cases: [(&[u8], Operation, &str); 5] = [
        (&[0x0f, 0xae, 0x38], Operation::Flush(Flush::CLFLUSH), "clflush"),
        (&[0x66, 0x0f, 0xae, 0x38], Operation::Flush(Flush::CLFLUSHOPT), "clflushopt"),
        (&[0x66, 0x0f, 0xae, 0x30], Operation::Flush(Flush::CLWB), "clwb"),
        (&[0x0f, 0xae, 0xf8], Operation::Fence(Fence::SFENCE), "sfence"),
        (&[0x0f, 0xae, 0xf0], Operation::Fence(Fence::MFENCE), "mfence"),
    ];
    for (bytes, operation, name) in cases {
        assert_eq!(persist_operation(bytes), Some(operation), "{name}");
        assert_eq!(InstructionSet::X86_64.name_of(operation), Some(name));
        let slots: &[_] = if operation.is_flush() { &[(SlotKind::Flush, 64)] } else { &[] };
        let micro_ops = cracked(bytes, slots);
        assert_eq!(operations(&micro_ops), [operation]);
        let holds_back_loads = matches!(name, "clflush" | "mfence");
        assert_eq!(micro_ops[0].destinations[0] == Register::BARRIER, holds_back_loads, "{name}");
    }
}

#[test]
fn neighbours_of_persist_instructions_are_none() {
    // `movntdqa` is a load; `xsaveopt` is `clwb` without its prefix.
    for bytes in [&[0x66, 0x0f, 0x38, 0x2a, 0x07][..], &[0x0f, 0xae, 0x30], &[0x90]] {
        assert_eq!(persist_operation(bytes), None, "{bytes:02x?}");
    }
}

#[test]
fn a_string_instruction_names_its_pointers_and_registers() {
    let pair = |kind, size| [(kind, size); 2];
    let (source, destination) = (pair(SlotKind::StringSource, 1), pair(SlotKind::StringDestination, 1));
    let both = [source, destination].concat();
    let cases: [(&[u8], &[_], StringAccess); 5] = [
        (&[0xf3, 0xa4], &both, StringAccess::Copy),
        (&[0xf3, 0xaa], &destination, StringAccess::Fill),
        (&[0xf3, 0xa6], &both, StringAccess::Compare),
        (&[0xf2, 0xae], &destination, StringAccess::Scan),
        (&[0xf3, 0xac], &source, StringAccess::Read),
    ];
    for (bytes, slots, access) in cases {
        let string = cracked(bytes, slots)[0];
        assert_eq!((string.operation, string.string.access), (Operation::String, access), "{bytes:02x?}");
        assert_eq!(string.sources[..2], [operands::SOURCE_POINTER, operands::DESTINATION_POINTER], "{bytes:02x?}");
        assert_eq!((string.string.count, string.string.value), (operands::COUNT, operands::ACCUMULATOR));
    }
}

#[test]
fn a_marker_is_a_nop_with_its_code_in_the_displacement() {
    let begin = [0x0f, 0x1f, 0x84, 0x00, 0x01, 0x00, 0x43, 0x50];
    assert_eq!(marker_of(&begin), Some(Marker::ROI_BEGIN));
    assert_eq!(marker_of(&[0x0f, 0x1f, 0x84, 0x00, 0x01, 0x00, 0x43, 0x51]), None);
    let micro_ops = cracked(&begin, &[]);
    assert_eq!((operations(&micro_ops), micro_ops[0].slot), (vec![Operation::RoiMarker], Marker::ROI_BEGIN.0));
}
