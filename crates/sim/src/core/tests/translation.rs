//! 8xx: the TLB and its walker.

use super::core_with;
use crate::address_space::page_table::PageTable;
use crate::cache::hierarchy::Want;
use crate::host::bench::assembler::*;
use crate::host::bench::{Bench, DRAM, READ, Script, Setup, WAY_BACK, WAY_OUT};
use fencepost_kernel::address_map::PM_BASE;
use fencepost_kernel::message::Cause;

const PAGE: u64 = 4096;
const WALK_CYCLES: u64 = 8;
/// A walk that reads memory: the walker has no first level of its own.
const WALK_READ: u64 = WAY_OUT - 1 + READ + WAY_BACK + WALK_CYCLES;

/// A core with TLBs; the first line of each of some pages is in its cache.
fn translating(sets: &[&str], program: &[Instruction]) -> Bench {
    let sets: Vec<&str> = ["tlb.enabled=true"].into_iter().chain(sets.iter().copied()).collect();
    let mut bench = core_with(&sets, program);
    // No more than a set of L1 holds: the pages' first lines lie in the same.
    for page in [0, 1, 2, 8] {
        bench.warm(0, DRAM + page * PAGE, Want::Own);
        bench.warm(0, DRAM + page * PAGE + 64, Want::Own);
    }
    bench
}

#[test]
fn s801_the_first_access_to_a_page_reads_its_entry_of_the_page_table() {
    let mut bench = translating(&[], &[load(RAX, RBX, DRAM)]);
    assert_eq!(bench.end(), 1 + WALK_READ + 1 + 1);
    assert_eq!(bench.reads(), [WAY_OUT]);
    assert_eq!(bench.sent()[0].cause, Cause::PageWalk);
    assert_eq!((bench.counter("core0.tlb.walks"), bench.counter("core0.tlb.walk_reads")), (1, 1));
}

#[test]
fn s812_a_software_prefetch_of_a_page_that_is_not_in_the_tlb_is_dropped_and_brings_nothing_into_it() {
    let page = |number: u64| DRAM + number * PAGE + 2048;
    let mut bench = translating(&[], &[prefetch(RBX, page(0)), load(RAX, RBX, DRAM)]);
    assert_eq!(bench.end(), 1 + WALK_READ + 1 + 1, "the load walks as if there had been no prefetch");
    assert_eq!(bench.sent().iter().map(|sent| sent.cause).collect::<Vec<_>>(), [Cause::PageWalk]);
    assert_eq!((bench.counter("core0.tlb.walks"), bench.counter("core0.tlb.walk_reads")), (1, 1));
    assert_eq!(bench.counter("core0.l1d.dropped_prefetches"), 1);
    // Nor does it wait for a walk that is under way; behind it, it works.
    let mut script = Script::of(&[load(RAX, RBX, DRAM), prefetch(RBX, page(0)), mfence()]);
    script.run(0, &[load(RAX, RAX, DRAM), lfence(), prefetch(RBX, page(0))]);
    let mut bench = Setup::machine(&["tlb.enabled=true"]).run(script);
    bench.warm(0, DRAM, Want::Own);
    bench.end();
    assert_eq!(bench.counter("core0.l1d.dropped_prefetches"), 1);
    assert_eq!(bench.sent().iter().filter(|sent| sent.cause == Cause::Prefetch).count(), 1);
}

#[test]
fn s802_a_page_in_the_tlb_costs_nothing() {
    let mut bench = translating(&[], &[load(RAX, RAX, DRAM), load(RAX, RAX, DRAM + 64)]);
    assert_eq!(bench.end(), 1 + WALK_READ + 1 + 1 + 1);
    assert_eq!((bench.counter("core0.tlb.hits"), bench.counter("core0.tlb.walks")), (1, 1));
}

#[test]
fn s803_an_entry_in_the_walker_s_cache_costs_the_walk_only() {
    // Eight neighbouring pages have their entries in one line.
    let mut bench = translating(&[], &[load(RAX, RAX, DRAM), load(RAX, RAX, DRAM + PAGE)]);
    assert_eq!(bench.end(), 1 + WALK_READ + 1 + WALK_CYCLES + 1 + 1);
    assert_eq!(bench.reads(), [WAY_OUT]);
    assert_eq!((bench.counter("core0.tlb.walks"), bench.counter("core0.tlb.walk_reads")), (2, 1));
}

#[test]
fn s804_entries_in_different_lines_are_read_side_by_side() {
    let mut bench = translating(&[], &[load(RAX, RBX, DRAM), load(RCX, RBX, DRAM + 8 * PAGE)]);
    assert_eq!(bench.end(), 1 + WALK_READ + 1 + 1);
    assert_eq!(bench.reads(), [WAY_OUT; 2]);
}

#[test]
fn s805_a_second_access_to_the_page_waits_for_the_same_walk() {
    let mut bench =
        translating(&[], &[load(RAX, RBX, DRAM), load(RCX, RBX, DRAM + 64), load(RDX, RCX, DRAM + 8 * PAGE)]);
    assert_eq!(bench.end(), 1 + WALK_READ + 1 + WALK_READ + 1 + 1, "the third address depends on the second load");
    assert_eq!(bench.reads().len(), 2);
}

#[test]
fn s806_a_store_waits_for_its_walk_before_it_is_complete() {
    let mut bench = translating(&[], &[store(RBX, RCX, DRAM)]);
    assert_eq!(bench.end(), 1 + WALK_READ + 1 + 1 + 1, "complete, committed, performed");
}

#[test]
fn s807_a_locked_instruction_waits_for_its_walk() {
    let mut bench = translating(&[], &[locked_add(RBX, RCX, DRAM)]);
    assert_eq!(bench.end(), 1 + WALK_READ + 1 + 1 + 1 + 1, "its turn, its access, its flags, its commit");
}

#[test]
fn s808_a_clflush_as_a_full_fence_waits_for_its_walk() {
    let set = ["core.clflush_order=\"full_fence\""];
    let mut bench = translating(&set, &[clflush(RBX, DRAM)]);
    bench.end();
    let turn = 1 + WALK_READ + 1;
    assert_eq!(bench.writes(), [turn + WAY_OUT]);
}

#[test]
fn s809_a_tlb_that_is_full_forgets_the_page_used_longest_ago() {
    let pages = [0, 1, 2, 0];
    let program: Vec<_> = pages.iter().map(|page| load(RAX, RAX, DRAM + page * PAGE)).collect();
    let mut bench = translating(&["tlb.entries=2", "tlb.ways=2"], &program);
    bench.end();
    assert_eq!(bench.counter("core0.tlb.walks"), 4);
    let mut bench = translating(&["tlb.entries=4", "tlb.ways=4"], &program);
    bench.end();
    assert_eq!(bench.counter("core0.tlb.walks"), 3);
}

#[test]
fn s810_a_prefetch_to_a_page_that_is_not_in_the_tlb_leaves_it_usable() {
    let mut bench = translating(&[], &[prefetch(RBX, DRAM), load(RAX, RBX, DRAM + 64), load(RCX, RBX, DRAM)]);
    bench.end();
    assert_eq!(bench.core(0).loads, 2);
}

#[test]
fn s811_a_load_that_walks_is_waited_for_by_an_mfence() {
    let mut bench = translating(&[], &[load(RAX, RBX, DRAM), mfence(), load(RCX, RBX, DRAM + 64)]);
    assert_eq!(bench.end(), 1 + WALK_READ + 1 + 1 + 1 + 1 + 1, "hit, commit, fence, hit, commit");
}

#[test]
fn s813_a_walk_waits_for_a_walker() {
    for walkers in 1..=4 {
        let pages = 0..6;
        let program: Vec<_> = pages.clone().map(|page| load(RAX, RBX, DRAM + 8 * PAGE * page)).collect();
        let mut bench = translating(&[&format!("tlb.walkers={walkers}")], &program);
        bench.end();
        let turns: Vec<u64> = pages.map(|page| WAY_OUT + page / walkers * WALK_READ).collect();
        let walks = bench.sent().iter().filter(|sent| sent.cause == Cause::PageWalk);
        assert_eq!(walks.map(|sent| sent.cycle).collect::<Vec<_>>(), turns, "{walkers} walkers");
    }
}

#[test]
fn s814_a_walk_whose_entry_is_at_hand_takes_a_walker_too() {
    // Eight neighbouring pages have their entries in one line, which is there when the last two loads issue.
    let near = |page: u64| load(RCX, RBX, DRAM + page * PAGE);
    let program = [load(RAX, RBX, DRAM), lfence(), near(1), near(2), load(RDX, RBX, DRAM + 2 * PAGE + 64)];
    let end = |walkers: u8, program: &[Instruction]| translating(&[&format!("tlb.walkers={walkers}")], program).end();
    assert_eq!(end(1, &program) - end(2, &program), WALK_CYCLES);
    assert_eq!(end(1, &program), end(1, &program[..4]), "the last load waits for the walk of its page, no longer");
    // Behind a walk that reads memory, both wait until it has ended.
    let program = [load(RAX, RBX, DRAM), near(1), near(2)];
    assert_eq!(end(1, &program), 1 + WALK_READ + 2 * WALK_CYCLES + 1 + 1);
}

#[allow(clippy::single_range_in_vec_init, reason = "a list of ranges with one")]
#[test]
fn s812_a_page_of_which_pm_has_a_part_is_pm() {
    let table =
        PageTable::in_dram_and_pm(&[0x1800..0x1900, 0x5fff..0x6001], &[], 1 << 20, &[PM_BASE..PM_BASE + (1 << 20)]);
    let persistent: Vec<u64> = (0..8).filter(|page| table.is_persistent(page << 12)).collect();
    assert_eq!(persistent, [1, 5, 6]);
}
