//! 6xx: `rep` string instructions.

use super::{FIRST_TURN, core};
use crate::cache::array::State;
use crate::cache::hierarchy::Want;
use crate::host::bench::assembler::*;
use crate::host::bench::{DRAM, MISS, PM, Script, Setup, WAY_OUT};

#[test]
fn s601_a_copy_is_one_instruction_and_accesses_line_by_line() {
    let (from, to) = (DRAM, DRAM + 4096);
    let mut bench = core(&[rep_movs(from, to, 256)]);
    for part in 0..4 {
        bench.warm(0, from + 64 * part, Want::Read);
        bench.warm(0, to + 64 * part, Want::Own);
    }
    bench.end();
    let core = bench.core(0);
    assert_eq!((core.instructions, core.loads, core.stores), (1, 4, 4));
}

#[test]
fn s602_the_lines_of_a_copy_overlap() {
    let mut bench = core(&[rep_movs(DRAM, DRAM + 4096, 256)]);
    for part in 0..4 {
        bench.warm(0, DRAM + 4096 + 64 * part, Want::Own);
    }
    bench.end();
    assert_eq!(bench.reads(), [1 + WAY_OUT; 4]);
}

#[test]
fn s603_each_store_of_a_copy_waits_for_its_load() {
    let mut bench = core(&[rep_movs(DRAM, DRAM + 4096, 64)]);
    bench.warm(0, DRAM + 4096, Want::Own);
    assert_eq!(bench.end(), 1 + MISS + 1 + 1 + 1);
}

#[test]
fn s604_a_copy_that_does_not_start_at_a_line_is_cut_where_the_destination_s_lines_end() {
    let to = DRAM + 4096 + 48;
    let mut bench = core(&[rep_movs(DRAM, to, 100)]);
    for part in 0..3 {
        bench.warm(0, to + 64 * part, Want::Own);
    }
    bench.end();
    assert_eq!(bench.core(0).stores, 3, "16, 64 and 20 bytes");
}

#[test]
fn s605_a_fill_stores_only() {
    let mut bench = core(&[rep_stos(PM, 128)]);
    bench.warm(0, PM, Want::Own);
    bench.warm(0, PM + 64, Want::Own);
    assert_eq!(bench.end(), FIRST_TURN + 1);
    assert_eq!((bench.core(0).stores, bench.core(0).loads), (2, 0));
    assert_eq!(bench.state(0, PM + 64), Some(State::Modified));
}

#[test]
fn s606_a_copy_of_nothing_accesses_nothing() {
    let mut bench = core(&[rep_movs(DRAM, DRAM + 4096, 0)]);
    bench.end();
    assert!(bench.sent().is_empty());
    assert_eq!(bench.core(0).instructions, 1);
}

#[test]
fn s607_a_copy_downwards_accesses_the_same_bytes() {
    let mut downwards = rep_movs(DRAM, DRAM + 4096, 0);
    // 128 bytes, the last ones at offset 127: pointers end one below the first byte.
    downwards.values = vec![DRAM + 127, DRAM - 1, DRAM + 4096 + 127, DRAM + 4096 - 1];
    let mut bench = core(&[downwards]);
    bench.end();
    let expected = [DRAM, DRAM + 64].map(|address| bench.line(address));
    let mut read: Vec<_> = bench.sent().iter().map(|sent| sent.line).collect();
    read.sort_unstable();
    read.dedup();
    assert!(expected.iter().all(|line| read.contains(line)));
    assert_eq!(read.len(), 4);
}

#[test]
fn s608_a_copy_waits_for_its_pointer() {
    let mut bench = core(&[load(RSI, RBX, DRAM), rep_movs(DRAM + 64, DRAM + 4096, 64)]);
    bench.warm(0, DRAM + 4096, Want::Own);
    bench.end();
    assert_eq!(bench.reads(), [1 + WAY_OUT, 1 + MISS + WAY_OUT]);
}

#[test]
fn s609_what_follows_a_copy_sees_the_pointers_behind_it() {
    let mut bench = core(&[load(RCX, RBX, DRAM), rep_movs(DRAM + 64, DRAM + 4096, 0), load(RAX, RSI, DRAM + 128)]);
    bench.end();
    assert_eq!(
        bench.reads(),
        [1 + WAY_OUT, 1 + MISS + 2 + WAY_OUT],
        "the instruction, and a micro-operation for its third result"
    );
}

#[test]
fn s610_a_long_fill_keeps_to_the_structures() {
    let bytes = 64 * 500;
    let mut bench = Setup::machine(&["core.store_queue_entries=4"]).run(Script::of(&[rep_stos(PM, bytes)]));
    bench.end();
    assert_eq!((bench.core(0).instructions, bench.core(0).stores), (1, 500));
}
