//! 12xx: vector operations that are wider than the core executes whole.

use super::core_with;
use crate::core::persist::PersistMode;
use crate::host::bench::assembler::*;
use crate::host::bench::{Bench, DRAM, PM, Script, Setup};

const HALVES: &str = "core.widest_operation_bytes=8";

fn run(sets: &[&str], instructions: &[Instruction]) -> Bench {
    let mut bench = core_with(sets, instructions);
    bench.end();
    bench
}

/// Micro-operations, loads and stores of these instructions.
fn counts(widest: u16, instructions: &[Instruction]) -> (u64, u64, u64) {
    let bench = run(&[&format!("core.widest_operation_bytes={widest}")], instructions);
    let core = bench.core(0);
    (core.micro_ops, core.loads, core.stores)
}

#[test]
fn s1201_what_is_wider_takes_a_micro_operation_for_each_part() {
    let program = [load_16(RBX, DRAM), add_packed_from(RBX, DRAM + 16), store_16(RBX, DRAM + 64)];
    assert_eq!(counts(64, &program), (4, 2, 1));
    assert_eq!(counts(16, &program), (4, 2, 1));
    assert_eq!(counts(8, &program), (8, 4, 2));
}

#[test]
fn s1202_the_parts_of_a_32_byte_load_are_as_many_as_fit() {
    let micro_ops = [64, 16, 8].map(|widest| counts(widest, &[load_32(RBX, DRAM)]).0);
    assert_eq!(micro_ops, [1, 2, 4]);
}

#[test]
fn s1203_what_computes_with_one_element_is_whole() {
    assert_eq!(counts(8, &[store_scalar(RBX, DRAM), add_scalar(), add(RAX, RCX)]), (3, 0, 1));
}

#[test]
fn s1208_a_load_of_one_element_clears_the_rest_of_the_register() {
    let program = [load_scalar(RBX, DRAM)];
    assert_eq!([64, 16, 8].map(|widest| counts(widest, &program)), [(1, 1, 0), (1, 1, 0), (2, 1, 0)]);
}

#[test]
fn s1209_immediates_and_instruction_pointers_take_operations_of_their_own() {
    for (instruction, fused, separate) in [
        (add_immediate(RAX), 1, 2),
        (add(RAX, RCX), 1, 1),
        (jump_if_not_zero(), 1, 3),
        (call(DRAM), 3, 5),
        (ret(DRAM), 3, 3),
        (jump_through(DRAM), 2, 3),
    ] {
        let micro_ops = ["fused", "separate"].map(|kind| {
            let set = format!("core.operand_operations=\"{kind}\"");
            run(&[&set], std::slice::from_ref(&instruction)).core(0).micro_ops
        });
        assert_eq!(micro_ops, [fused, separate], "{:x?}", instruction.bytes);
    }
}

#[test]
fn s1204_a_chain_of_packed_additions_is_as_long_as_one_of_numbers() {
    let end = |sets: &[&str], step: fn() -> Instruction| {
        let chain: Vec<Instruction> = (0..20).map(|_| step()).collect();
        run(sets, &chain).end()
    };
    assert_eq!(end(&[HALVES], add_packed), end(&[], add_scalar));
}

#[test]
fn s1205_parts_take_slots_of_dispatch_and_ports() {
    let wide: Vec<Instruction> = (0..64).map(|number| load_16(RBX, DRAM + 16 * (number % 4))).collect();
    let end = |widest: u16| {
        let mut bench = core_with(&[&format!("core.widest_operation_bytes={widest}"), "core.load_ports=2"], &wide);
        bench.warm(0, DRAM, crate::cache::hierarchy::Want::Read);
        bench.end()
    };
    assert_eq!(end(8) - end(16), 64 / 2, "each second load has to wait for a cycle more");
}

#[test]
fn s1206_a_store_in_parts_forwards_to_a_load_in_parts() {
    let bench = run(&[HALVES], &[store_16(RBX, DRAM), load_16(RBX, DRAM)]);
    assert_eq!((bench.core(0).forwarded_loads, bench.core(0).loads), (2, 0));
}

#[test]
fn s1207_persists_after_every_store_count_a_store_in_parts_once() {
    let script = Script::of(&[store_16(RBX, PM), store_16(RBX, PM + 64), store_16(RBX, PM + 128)]);
    let mut bench = Setup::machine(&[HALVES]).persist(PersistMode::Every(2)).run(script);
    bench.end();
    assert_eq!((bench.core(0).stores, bench.core(0).inserted_flushes, bench.core(0).fences), (6, 3, 2));
}
