//! 1xx: loads, and how far they overlap.

use super::{core, core_with};
use crate::cache::hierarchy::Want;
use crate::host::bench::assembler::*;
use crate::host::bench::{DRAM, MISS, READ, Script, Setup, WAY_OUT};

/// From dispatch to commit, besides the latency of the instruction itself.
const REST: u64 = 2;

fn line(number: u64) -> u64 {
    DRAM + 64 * number
}

#[test]
fn s101_a_hit_in_l1_takes_its_latency() {
    for latency in [1, 4] {
        let set = format!("cache.l1d.latency_cycles={latency}");
        let mut bench = core_with(&[&set], &[load(RAX, RBX, DRAM)]);
        bench.warm(0, DRAM, Want::Read);
        assert_eq!(bench.end(), REST + latency);
        assert_eq!((bench.core(0).l1d_hits, bench.core(0).l1d_misses), (1, 0));
        assert!(bench.sent().is_empty());
    }
}

#[test]
fn s102_dependent_hits_add_up() {
    let mut bench = core_with(&["cache.l1d.latency_cycles=4"], &repeated(5, &load(RAX, RAX, DRAM)));
    bench.warm(0, DRAM, Want::Read);
    assert_eq!(bench.end(), REST + 5 * 4);
}

#[test]
fn s103_independent_hits_share_the_ports() {
    for (ports, cycles) in [(4, 1), (2, 2), (1, 4)] {
        let set = format!("core.load_ports={ports}");
        let mut bench = core_with(&[&set], &repeated(4, &load(RAX, RBX, DRAM)));
        bench.warm(0, DRAM, Want::Read);
        assert_eq!(bench.end(), REST + cycles, "{ports} ports");
    }
}

#[test]
fn s104_a_miss_goes_out_and_back() {
    let mut bench = core(&[load(RAX, RBX, DRAM)]);
    assert_eq!(bench.end(), REST + MISS);
    assert_eq!(bench.reads(), [1 + WAY_OUT]);
}

#[test]
fn s105_a_miss_of_l1_that_hits_l2_does_not_go_out() {
    let mut bench = core_with(&["cache.l2.latency_cycles=17"], &[load(RAX, RBX, DRAM)]);
    let line = bench.line(DRAM);
    bench.warm(0, DRAM, Want::Read);
    bench.forget_l1d(0, line);
    assert_eq!(bench.end(), REST + 1 + 17 + 1, "L1, L2, and the way back");
    assert!(bench.sent().is_empty());
}

#[test]
fn s106_independent_misses_overlap() {
    let loads: Vec<_> = (0..4).map(|number| load(RAX, RBX, line(number))).collect();
    let mut bench = core(&loads);
    assert_eq!(bench.end(), REST + MISS);
    assert_eq!(bench.reads(), [1 + WAY_OUT; 4]);
}

#[test]
fn s107_dependent_misses_add_up() {
    let mut bench = core(&[load(RAX, RAX, line(0)), load(RAX, RAX, line(1)), load(RAX, RAX, line(2))]);
    assert_eq!(bench.end(), REST + 3 * MISS);
    assert_eq!(bench.reads(), [1 + WAY_OUT, 1 + MISS + WAY_OUT, 1 + 2 * MISS + WAY_OUT]);
}

#[test]
fn s108_an_address_computed_from_a_miss_depends_on_it() {
    let mut bench = core(&[load(RAX, RBX, line(0)), lea(RCX, RAX), load(RDX, RCX, line(1))]);
    bench.end();
    assert_eq!(bench.reads(), [1 + WAY_OUT, 1 + MISS + 1 + WAY_OUT], "one cycle for the addition between the loads");
}

#[test]
fn s109_a_cleared_register_depends_on_nothing() {
    let mut bench = core(&[load(RAX, RBX, line(0)), zero(RAX), load(RDX, RAX, line(1))]);
    bench.end();
    assert_eq!(bench.reads(), [1 + WAY_OUT, 2 + WAY_OUT]);
}

#[test]
fn s110_misses_of_one_line_merge() {
    let mut bench = core(&[load(RAX, RBX, DRAM), load(RCX, RBX, DRAM + 8), load(RDX, RBX, DRAM + 56)]);
    assert_eq!(bench.end(), REST + MISS);
    assert_eq!(bench.reads().len(), 1);
    assert_eq!(bench.core(0).l1d_misses, 3);
}

#[test]
fn s111_a_load_that_is_too_far_away_for_the_reorder_buffer_waits_for_the_first_to_commit() {
    for (nops, second) in [(14, 2 + WAY_OUT), (15, MISS + REST + 1 + WAY_OUT)] {
        let mut program = vec![load(RAX, RBX, line(0))];
        program.extend(repeated(nops, &nop()));
        program.push(load(RAX, RBX, line(1)));
        let mut bench = core_with(&["core.rob_entries=16", "core.integer_ports=8"], &program);
        bench.end();
        assert_eq!(bench.reads(), [1 + WAY_OUT, second], "{nops} instructions between them");
    }
}

#[test]
fn s112_instructions_that_wait_for_a_miss_fill_the_issue_queue() {
    let program = |waiting| {
        let mut program = vec![load(RAX, RBX, line(0))];
        program.extend(repeated(waiting, &test(RAX)));
        program.push(load(RDX, RBX, line(1)));
        program
    };
    let first = 1 + WAY_OUT;
    let mut seven = core_with(&["core.issue_queue_entries=8"], &program(7));
    seven.end();
    assert_eq!(seven.reads(), [first, 2 + WAY_OUT], "the ninth instruction dispatches in the second cycle");
    let mut eight = core_with(&["core.issue_queue_entries=8"], &program(8));
    eight.end();
    assert_eq!(eight.reads(), [first, 1 + MISS + 1 + WAY_OUT], "it dispatches when the first of the others issue");
    assert!(eight.core(0).blocked_by_issue_queue > 0);
}

#[test]
fn s113_a_load_without_an_entry_of_the_load_queue_waits_for_the_first_to_commit() {
    let loads: Vec<_> = (0..5).map(|number| load(RAX, RBX, line(number))).collect();
    let mut bench = core_with(&["core.load_queue_entries=4"], &loads);
    bench.end();
    let first = 1 + WAY_OUT;
    assert_eq!(bench.reads(), [first, first, first, first, MISS + REST + 1 + WAY_OUT]);
    assert!(bench.core(0).blocked_by_load_queue > 0);
}

#[test]
fn s114_a_miss_without_an_mshr_waits_for_one() {
    let loads: Vec<_> = (0..3).map(|number| load(RAX, RBX, line(number))).collect();
    let mut bench = core_with(&["cache.l1d.mshrs=2"], &loads);
    let first = 1 + WAY_OUT;
    assert_eq!(bench.end(), REST + MISS + MISS - 1, "it has been looked up in L1 before");
    assert_eq!(bench.reads(), [first, first, MISS + WAY_OUT]);
    assert_eq!(bench.core(0).l1d_mshr_full, 1);
}

#[test]
fn s115_a_load_that_waits_for_an_mshr_is_served_by_the_line_that_comes_meanwhile() {
    let program = [load(RAX, RBX, line(0)), load(RAX, RBX, line(1)), load(RCX, RBX, line(1) + 8)];
    let mut bench = core_with(&["cache.l1d.mshrs=1"], &program);
    bench.end();
    assert_eq!(bench.reads(), [1 + WAY_OUT, MISS + WAY_OUT]);
}

#[test]
fn s116_a_miss_without_an_mshr_of_the_last_level_waits_there() {
    let mut bench = core_with(&["cache.l2.mshrs=1"], &[load(RAX, RBX, line(0)), load(RAX, RBX, line(1))]);
    let first = 1 + WAY_OUT;
    assert_eq!(bench.end(), REST + MISS + READ, "it leaves when the first comes back");
    assert_eq!(bench.reads(), [first, first + READ]);
    assert_eq!(bench.counter("memory_border.mshr_full"), 1);
}

#[test]
fn s117_a_load_across_two_lines_needs_both() {
    let mut bench = core(&[load_32(RAX, line(1) - 16)]);
    let second = bench.line(line(1));
    bench.memory.slow.insert(second, READ + 50);
    assert_eq!(bench.end(), REST + MISS + 50);
    assert_eq!(bench.reads(), [1 + WAY_OUT; 2]);
}

#[test]
fn s118_a_gather_reads_the_elements_that_are_not_masked_off() {
    let mut some = core(&[gather([line(0), 0, line(2), 0])]);
    assert_eq!(some.end(), REST + MISS + 1, "one cycle to put the vector together");
    assert_eq!(some.reads(), [1 + WAY_OUT; 2]);
    let mut none = core(&[gather([0; 4])]);
    assert_eq!(none.end(), REST + 1 + 1);
    assert!(none.sent().is_empty());
}

#[test]
fn s119_a_prefetch_is_waited_for_by_nobody() {
    let mut bench = core(&[prefetch(RBX, DRAM), load(RAX, RBX, line(1))]);
    let prefetched = bench.line(DRAM);
    bench.memory.slow.insert(prefetched, 1000);
    assert_eq!(bench.end(), REST + MISS);
    assert_eq!(bench.reads(), [1 + WAY_OUT - 1, 1 + WAY_OUT]);
    assert!(bench.l1d(0, DRAM).is_some());
}

#[test]
fn s120_a_load_of_a_prefetched_line_waits_for_the_rest_of_its_way() {
    let mut bench = core(&[prefetch(RBX, DRAM), load(RAX, RBX, DRAM)]);
    assert_eq!(bench.end(), REST + MISS - 1);
    assert_eq!(bench.reads().len(), 1);
}

#[test]
fn s121_a_load_does_not_wait_for_an_older_store_whose_address_is_another() {
    let program = [load(RCX, RBX, line(0)), store(RBX, RCX, line(1)), load(RAX, RBX, line(2))];
    let mut bench = core(&program);
    bench.end();
    assert_eq!(bench.reads()[..2], [1 + WAY_OUT; 2]);
}

#[test]
fn s122_a_load_across_two_pages_goes_to_the_page_that_the_second_has() {
    let (first, second) = (DRAM + 4096 - 16, DRAM + 4096);
    // Another page is touched between the two, so that they do not lie side by side in memory.
    let program = [load(RCX, RBX, first), load(RCX, RBX, DRAM + 8 * 4096), load(RCX, RBX, second), load_32(RAX, first)];
    let mut bench = core(&program);
    bench.end();
    let expected = [first, DRAM + 8 * 4096, second].map(|address| bench.line(address));
    let lines: Vec<_> = bench.sent().iter().map(|sent| sent.line).collect();
    assert_eq!(lines, expected);
}

#[test]
fn s123_a_load_takes_its_pipeline_before_it_looks_into_l1_or_the_store_queue() {
    for cycles in [0, 3] {
        let set = format!("core.load_pipeline_cycles={cycles}");
        let mut bench = core_with(&[&set], &[load(RAX, RBX, DRAM)]);
        bench.end();
        assert_eq!(bench.reads(), [1 + cycles + WAY_OUT]);
        let mut bench = core_with(&[&set], &[store(RBX, RCX, DRAM), load(RAX, RBX, DRAM), store(RAX, RCX, line(1))]);
        [DRAM, line(1)].iter().for_each(|address| bench.warm(0, *address, Want::Own));
        // The load has the data one cycle behind the store or its own pipeline; the second store needs it as its
        // address.
        let forwarded = 2.max(1 + cycles) + 1;
        assert_eq!(bench.end(), forwarded + 1 + 1 + 1, "{cycles} cycles: address, commit, turn");
    }
}

#[test]
fn s124_with_store_sets_a_load_waits_for_a_store_that_it_has_overtaken_in_its_granule_before() {
    let granule = |bytes: u8| format!("core.store_sets.granule_bytes={bytes}");
    for (is_enabled, bytes, at_once) in [(true, 16, 3), (true, 8, 4), (false, 16, 4)] {
        let enabled = format!("core.store_sets.enabled={is_enabled}");
        let mut script = Script::default();
        for turn in 0..2 {
            // The store waits for a miss; the load behind it is of the other half of its 16 bytes; another miss waits
            // for that.
            let (store, load_behind) = (store(RBX, RCX, line(9)), load(RAX, RBX, line(9) + 8));
            script.run(0, &[load(RCX, RBX, line(turn)), store, load_behind, load(RDX, RAX, line(20 + turn))]);
        }
        let mut bench = Setup::machine(&[&enabled, &granule(bytes)]).run(script);
        bench.warm(0, line(9), Want::Own);
        bench.end();
        let at_once_here = bench.reads().iter().filter(|read| **read < MISS).count();
        assert_eq!((at_once_here, bench.reads().len()), (at_once, 4), "{enabled}, {bytes} bytes");
        assert_eq!(bench.core(0).overtaken_stores, u64::from(is_enabled && bytes == 16));
    }
}

#[test]
fn s125_a_load_leaves_the_issue_queue_when_it_issues_or_when_it_has_its_data() {
    for (holds, at_once) in [(true, 8), (false, 10)] {
        let set = format!("core.loads_hold_issue_queue={holds}");
        let program: Vec<_> = (0..10).map(|number| load(RAX, RBX, line(number))).collect();
        let mut bench = core_with(&[&set, "core.issue_queue_entries=8"], &program);
        bench.end();
        let sent_at_once = bench.reads().iter().filter(|read| **read < MISS).count();
        assert_eq!((sent_at_once, bench.reads().len()), (at_once, 10), "{set}");
    }
}

#[test]
fn s126_a_load_that_waits_for_a_store_holds_one_place_in_the_issue_queue() {
    let set = ["core.loads_hold_issue_queue=true", "core.issue_queue_entries=8"];
    let mut program = vec![load(RCX, RBX, line(1)), store(RBX, RCX, DRAM)];
    program.extend(repeated(5, &load(RAX, RBX, DRAM)));
    program.push(load(RAX, RBX, line(2)));
    let mut bench = core_with(&set, &program);
    bench.warm(0, DRAM, Want::Own);
    bench.end();
    assert_eq!(bench.core(0).forwarded_loads, 5);
    let second_issues = 2;
    assert_eq!(
        bench.reads(),
        [1, second_issues].map(|cycle| cycle + WAY_OUT),
        "two misses, a store and five loads are eight"
    );
}

#[test]
fn s127_an_mshr_is_occupied_until_its_line_is_there_whatever_was_asked_about_later_cycles() {
    const L2: u64 = 200;
    // Both lines of the first loads are known to come before anything else dispatches. The next load is known to ask
    // long after they are there, the last one before.
    let mut program = vec![load(RCX, RBX, line(0)), load(RCX, RBX, line(1))];
    program.extend(repeated(60, &nop()));
    program.extend(repeated(12, &divide()));
    program.extend([load(RCX, RAX, line(2)), load(RCX, RBX, line(3))]);
    let mut bench =
        core_with(&["cache.l1d.mshrs=2", "cache.l2.latency_cycles=200", "simulation.run_ahead_ns=1"], &program);
    for number in 0..2 {
        bench.warm(0, line(number), Want::Read);
        let line = bench.line(line(number));
        bench.forget_l1d(0, line);
    }
    bench.end();
    let there = 1 + 1 + L2 + 1;
    assert_eq!(bench.read_of(line(3)), there + L2, "a register is free when the first line is there");
}
