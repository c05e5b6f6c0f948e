//! 2xx: stores: forwarding, ownership, and their order (TSO).

use super::{FIRST_TURN, core, core_with};
use crate::cache::array::State;
use crate::cache::hierarchy::Want;
use crate::host::bench::assembler::*;
use crate::host::bench::{DRAM, MISS, WAY_OUT};
use fencepost_kernel::message::Opcode;

const NO_PREFETCH: &str = "core.prefetch_for_ownership=false";

fn line(number: u64) -> u64 {
    DRAM + 64 * number
}

#[test]
fn s201_a_store_takes_effect_after_it_commits() {
    let mut bench = core(&[store(RBX, RCX, DRAM)]);
    bench.warm(0, DRAM, Want::Own);
    let before = bench.l1d(0, DRAM).unwrap().version;
    assert_eq!(bench.end(), FIRST_TURN);
    let after = bench.l1d(0, DRAM).unwrap();
    assert_eq!((after.state, after.version.0), (State::Modified, before.0 + 1));
    assert_eq!(bench.core(0).stores, 1);
}

#[test]
fn s202_a_load_takes_its_data_from_an_older_store_that_covers_it() {
    for cycles in [1, 5] {
        let set = format!("core.forwarding_cycles={cycles}");
        let mut bench = core_with(&[&set], &[store(RBX, RCX, DRAM), load_4(RAX, RBX, DRAM + 4)]);
        bench.warm(0, DRAM, Want::Own);
        assert_eq!(bench.end(), 2 + cycles + 1, "the data are there in 2, and the load commits after it has them");
        assert_eq!((bench.core(0).forwarded_loads, bench.core(0).loads), (1, 0));
    }
}

#[test]
fn s203_the_youngest_older_store_forwards() {
    // The second store has its data at once, the first only after a miss.
    let program = [
        load(RCX, RBX, line(9)),
        store(RBX, RCX, DRAM),
        store(RBX, RDX, DRAM),
        load(RAX, RBX, DRAM),
        load(RSI, RAX, line(8)),
    ];
    let mut bench = core(&program);
    bench.warm(0, DRAM, Want::Own);
    bench.end();
    assert_eq!(bench.reads(), [1 + WAY_OUT, 2 + 1 + WAY_OUT], "the load of line 8 does not wait for line 9");
}

#[test]
fn s204_a_load_waits_for_the_data_of_the_store_it_depends_on() {
    let mut bench = core(&[load(RCX, RBX, line(1)), store(RBX, RCX, DRAM), load(RAX, RBX, DRAM)]);
    bench.warm(0, DRAM, Want::Own);
    let store_complete = 1 + MISS + 1;
    assert_eq!(bench.end(), store_complete + 1 + 1, "forwarded, committed");
    assert_eq!(bench.core(0).forwarded_loads, 1);
}

#[test]
fn s205_a_load_of_which_the_store_covers_a_part_goes_through_the_cache() {
    let mut bench = core_with(&["cache.l1d.latency_cycles=4"], &[store_4(RBX, RCX, DRAM + 4), load(RAX, RBX, DRAM)]);
    bench.warm(0, DRAM, Want::Own);
    assert_eq!(bench.end(), 2 + 1 + 4 + 1);
    assert_eq!((bench.core(0).forwarded_loads, bench.core(0).loads), (0, 1));
    assert_eq!((bench.core(0).l1d_hits, bench.core(0).l1d_misses), (2, 0), "the store and the load");
}

#[test]
fn s206_a_store_across_two_lines_needs_both_of_them() {
    let mut bench = core(&[store(RBX, RCX, line(1) - 4)]);
    bench.end();
    assert_eq!(bench.reads().len(), 2);
    for address in [line(0), line(1)] {
        let copy = bench.l1d(0, address).unwrap();
        assert_eq!((copy.state, copy.version.0), (State::Modified, 1));
    }
    assert_eq!(bench.core(0).stores, 1);
}

#[test]
fn s207_stores_take_effect_in_program_order() {
    let mut bench = core(&[store(RBX, RCX, line(0)), store(RBX, RCX, line(1))]);
    bench.warm(0, line(1), Want::Read);
    bench.run_until(MISS - 2);
    assert_eq!(bench.state(0, line(1)), Some(State::Exclusive), "the first is still missing");
    let both = bench.end();
    assert_eq!(both, 1 + MISS + 1, "the second takes effect one cycle after the first");
    assert_eq!(bench.state(0, line(1)), Some(State::Modified));
}

#[test]
fn s208_lines_to_be_stored_to_are_fetched_as_soon_as_their_address_is_known() {
    let mut bench = core(&[store(RBX, RCX, line(0)), store(RBX, RCX, line(1)), store(RBX, RCX, line(2))]);
    assert_eq!(bench.end(), 1 + MISS + 2);
    assert_eq!(bench.reads(), [1 + WAY_OUT; 3]);
}

#[test]
fn s216_a_store_that_finds_no_mshr_fetches_its_line_as_soon_as_one_is_free() {
    let stores: Vec<_> = (0..4).map(|index| store(RBX, RCX, line(index))).collect();
    let mut bench = core_with(&["cache.l1d.mshrs=2"], &stores);
    bench.end();
    let first = 1 + WAY_OUT;
    assert_eq!(bench.reads(), [first, first, first + MISS, first + MISS]);
}

#[test]
fn s209_without_prefetch_for_ownership_each_store_fetches_its_line_in_its_turn() {
    let mut bench = core_with(&[NO_PREFETCH], &[store(RBX, RCX, line(0)), store(RBX, RCX, line(1))]);
    let second_turn = FIRST_TURN + MISS + 1;
    assert_eq!(bench.end(), second_turn + MISS);
    assert_eq!(bench.reads(), [FIRST_TURN + WAY_OUT, second_turn + WAY_OUT]);
}

#[test]
fn s210_a_full_store_queue_holds_dispatch() {
    let mut program = repeated(5, &store(RBX, RCX, line(0)));
    program.push(load(RAX, RBX, line(1)));
    let mut bench = core_with(&[NO_PREFETCH, "core.store_queue_entries=4"], &program);
    bench.end();
    let first_leaves = FIRST_TURN + MISS;
    assert_eq!(bench.reads(), [FIRST_TURN + WAY_OUT, first_leaves + 1 + WAY_OUT]);
    assert!(bench.core(0).blocked_by_store_queue > 0);
}

#[test]
fn s211_a_store_is_one_hit_or_one_miss() {
    for set in ["core.prefetch_for_ownership=true", NO_PREFETCH] {
        let mut bench = core_with(
            &[set, "cache.l1d.mshrs=1"],
            &[
                load(RAX, RBX, line(9)),
                store(RBX, RCX, line(0)),
                store(RBX, RCX, line(1)),
                store(RBX, RCX, line(1) + 8),
                store(RBX, RCX, line(2)),
            ],
        );
        bench.warm(0, line(2), Want::Own);
        bench.end();
        assert_eq!((bench.core(0).l1d_hits, bench.core(0).l1d_misses), (2, 3), "{set}");
    }
}

#[test]
fn s212_an_addition_to_memory_reads_then_writes() {
    let mut bench = core(&[add_to_memory(RBX, RCX, DRAM)]);
    let added = 1 + MISS + 1;
    assert_eq!(bench.end(), added + 1 + 1 + 1, "address and data in the store queue, commit, turn");
    assert_eq!(bench.reads().len(), 1);
    assert_eq!(bench.state(0, DRAM), Some(State::Modified));
}

#[test]
fn s213_a_non_temporal_store_forwards_nothing_and_holds_no_load_of_another_line() {
    let mut bench = core(&[movnti(RBX, RCX, line(0)), load(RAX, RBX, line(0)), load(RAX, RBX, line(1))]);
    bench.end();
    assert_eq!(bench.core(0).forwarded_loads, 0);
    let lines = [bench.line(line(1)), bench.line(line(0))];
    let reads: Vec<_> = bench.sent().iter().filter(|sent| sent.opcode == Opcode::MemRd).map(|sent| sent.line).collect();
    assert_eq!((reads.as_slice(), bench.reads()[0]), (lines.as_slice(), 1 + WAY_OUT));
}

#[test]
fn s214_a_store_across_two_pages_writes_the_page_that_the_second_has() {
    let second = DRAM + 4096;
    let mut bench = core(&[load(RAX, RBX, DRAM), load(RAX, RBX, DRAM + 8 * 4096), store(RBX, RCX, second - 4)]);
    bench.end();
    assert_eq!([second - 4, second].map(|address| bench.state(0, address)), [Some(State::Modified); 2]);
}

#[test]
fn s215_a_store_is_performed_by_the_fill_of_its_line_or_in_the_cycle_of_it() {
    for (set, behind) in [("core.fill_performs_store=true", 0), ("core.fill_performs_store=false", 1)] {
        let program = [0, 1, 2].map(|number| store(RBX, RCX, line(number)));
        let mut bench = core_with(&[NO_PREFETCH, set], &program);
        bench.warm(0, line(1), Want::Own);
        bench.end();
        // The hit between the two misses takes its cycle either way.
        let third_turn = FIRST_TURN + MISS + behind + 1;
        assert_eq!(bench.reads(), [FIRST_TURN, third_turn].map(|turn| turn + WAY_OUT), "{set}");
    }
}
