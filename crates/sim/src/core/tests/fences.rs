//! 4xx: `sfence`, `mfence`, `lfence` and locked instructions.

use super::{FIRST_TURN, core, core_with};
use crate::cache::hierarchy::Want;
use crate::host::bench::assembler::*;
use crate::host::bench::{Bench, DRAM, MISS, PM, WAY_BACK, WAY_OUT, WRITE};

const FLUSH: u64 = WAY_OUT + WRITE + WAY_BACK;
/// When a `clflushopt` that is the first instruction is acknowledged.
const FLUSHED: u64 = FIRST_TURN + FLUSH;

fn line(number: u64) -> u64 {
    PM + 64 * number
}

fn dirty(mut bench: Bench, lines: u64) -> Bench {
    for number in 0..lines {
        bench.warm(0, line(number), Want::Own);
    }
    bench
}

#[test]
fn s401_stores_behind_an_sfence_wait_for_flushes_before_it() {
    let mut bench = dirty(core(&[clflushopt(RBX, line(0)), sfence(), store(RBX, RCX, line(1))]), 2);
    bench.run_until(FLUSHED - 2);
    assert_eq!(bench.l1d(0, line(1)).unwrap().version.0, 1);
    assert_eq!(bench.end(), FLUSHED + 1);
    assert_eq!(bench.core(0).fences, 1);
}

#[test]
fn s402_stores_behind_an_sfence_wait_for_non_temporal_stores_before_it() {
    let mut bench = dirty(core(&[movnti(RBX, RCX, line(9)), sfence(), store(RBX, RCX, line(1))]), 2);
    let fence_turn = FIRST_TURN + 1;
    assert_eq!(bench.end(), fence_turn + WRITE + WAY_BACK + 1, "the fence sends what is being combined");
    assert_eq!(bench.writes(), [fence_turn]);
}

#[test]
fn s403_loads_do_not_wait_for_an_sfence() {
    let mut bench = dirty(core(&[clflushopt(RBX, line(0)), sfence(), load(RAX, RBX, DRAM)]), 1);
    bench.end();
    assert_eq!(bench.reads(), [1 + WAY_OUT]);
}

#[test]
fn s404_loads_wait_for_an_mfence_and_it_for_flushes_before_it() {
    let mut bench = dirty(core(&[clflushopt(RBX, line(0)), mfence(), load(RAX, RBX, DRAM)]), 1);
    assert_eq!(bench.end(), FLUSHED + MISS + 1);
    assert_eq!(bench.reads(), [FLUSHED + WAY_OUT]);
}

#[test]
fn s405_an_mfence_waits_for_stores_before_it() {
    let mut bench = core(&[store(RBX, RCX, DRAM), mfence(), load(RAX, RBX, DRAM + 64)]);
    let stored = 1 + MISS;
    bench.end();
    assert_eq!(bench.reads(), [1 + WAY_OUT, stored + 1 + WAY_OUT]);
}

#[test]
fn s406_an_mfence_waits_for_loads_before_it() {
    let mut bench = core(&[load(RAX, RBX, DRAM), mfence(), load(RAX, RBX, DRAM + 64)]);
    bench.end();
    let first_commits = 1 + MISS + 1;
    assert_eq!(bench.reads(), [1 + WAY_OUT, first_commits + 1 + WAY_OUT]);
}

#[test]
fn s407_an_mfence_alone_takes_a_cycle() {
    let mut bench = core(&[mfence(), load(RAX, RBX, DRAM)]);
    bench.end();
    assert_eq!(bench.reads(), [2 + WAY_OUT]);
    assert_eq!(bench.core(0).fence_stall.count(), 0, "nothing was waited for");
}

#[test]
fn s408_a_clflush_behind_an_mfence_opens_no_way_around_it() {
    let program = [clflushopt(RBX, line(0)), mfence(), clflush(RBX, line(1)), load(RAX, RBX, DRAM)];
    let mut bench = dirty(core(&program), 2);
    bench.end();
    assert_eq!(bench.reads(), [FLUSHED + WAY_OUT]);
}

#[test]
fn s409_a_locked_instruction_waits_for_flushes_and_holds_loads() {
    let mut bench = dirty(core(&[clflushopt(RBX, line(0)), locked_add(RBX, RCX, line(1)), load(RAX, RBX, DRAM)]), 2);
    bench.end();
    assert_eq!(bench.reads(), [FLUSHED + 1 + WAY_OUT], "one cycle for its own access");
    assert_eq!(bench.core(0).atomics, 1);
    assert_eq!(bench.l1d(0, line(1)).unwrap().version.0, 2);
}

#[test]
fn s410_a_locked_instruction_waits_for_stores_before_it() {
    let mut bench = core(&[store(RBX, RCX, DRAM), locked_add(RBX, RCX, DRAM + 64), load(RAX, RBX, DRAM + 128)]);
    bench.warm(0, DRAM + 64, Want::Own);
    let stored = 1 + MISS;
    bench.end();
    assert_eq!(bench.reads(), [1 + WAY_OUT, stored + 1 + 1 + WAY_OUT]);
}

#[test]
fn s411_a_locked_instruction_fetches_its_line_when_it_is_the_oldest() {
    let mut bench = core(&[load(RAX, RBX, DRAM), locked_add(RBX, RCX, DRAM + 64)]);
    let turn = 1 + MISS + 1 + 1;
    assert_eq!(
        bench.end(),
        turn + MISS + 1 + 1 + 1,
        "read and written in the cycle after the line is there; flags; commit"
    );
    assert_eq!(bench.reads(), [1 + WAY_OUT, turn + WAY_OUT]);
}

#[test]
fn s412_the_result_of_a_locked_instruction_is_there_when_it_is_performed() {
    let program = [locked_add(RBX, RCX, DRAM), load(RAX, RCX, DRAM + 64)];
    let mut bench = core(&program);
    bench.warm(0, DRAM, Want::Own);
    bench.end();
    assert_eq!(bench.reads(), [3 + WAY_OUT], "its turn is cycle 2");
}

#[test]
fn s413_an_lfence_lets_nothing_behind_it_start() {
    let mut bench = core(&[load(RAX, RBX, DRAM), lfence(), load(RAX, RBX, DRAM + 64)]);
    bench.end();
    let first_commits = 1 + MISS + 1;
    assert_eq!(bench.reads(), [1 + WAY_OUT, first_commits + 1 + WAY_OUT]);
}

#[test]
fn s414_an_lfence_waits_for_no_flush() {
    let mut bench = dirty(core(&[clflushopt(RBX, line(0)), lfence(), load(RAX, RBX, DRAM)]), 1);
    bench.end();
    assert_eq!(bench.reads(), [3 + 1 + WAY_OUT], "the flush commits in cycle 3");
}

#[test]
fn s415_a_fence_s_stall_is_from_its_being_the_oldest_to_what_it_waited_for() {
    let stall_of = |fence: Instruction| {
        let mut bench = dirty(core(&[clflushopt(RBX, line(0)), fence]), 2);
        bench.end();
        let stall = &bench.core(0).fence_stall;
        assert_eq!(stall.count(), 1);
        stall.sum().as_ps() / 250
    };
    // An sfence commits in cycle 3 with the flush, and could take effect in the next; the others could in cycle 4 too.
    assert_eq!(stall_of(sfence()), FLUSHED - 4);
    assert_eq!(stall_of(mfence()), FLUSHED - 4);
    assert_eq!(stall_of(locked_add(RBX, RCX, line(1))), FLUSHED - 4);
}

#[test]
fn s416_a_fence_behind_a_fence_has_nothing_left_to_wait_for() {
    let mut bench = dirty(core(&[clflushopt(RBX, line(0)), sfence(), sfence(), store(RBX, RCX, line(1))]), 2);
    assert_eq!(bench.end(), FLUSHED + 2);
}

#[test]
fn s417_a_fence_waits_for_flushes_beyond_the_limit_in_flight() {
    let mut program: Vec<_> = (0..3).map(|number| clflushopt(RBX, line(number))).collect();
    program.extend([sfence(), store(RBX, RCX, line(3))]);
    let mut bench = dirty(core_with(&["core.flushes_in_flight=1"], &program), 4);
    assert_eq!(bench.end(), FIRST_TURN + 3 * FLUSH + 1);
}

#[test]
fn s418_an_sfence_commits_in_its_turn_or_is_executed_as_the_oldest() {
    for (order, commits) in [("store_queue", 3), ("oldest", FLUSHED + 1)] {
        let set = format!("core.sfence_order=\"{order}\"");
        // What an lfence holds back starts when everything before it has committed.
        let program = [clflushopt(RBX, line(0)), sfence(), lfence(), load(RAX, RBX, DRAM)];
        let mut bench = dirty(core_with(&[&set], &program), 1);
        bench.end();
        assert_eq!(bench.reads(), [commits + 1 + WAY_OUT], "{order}");
        assert_eq!(bench.core(0).fences, 1);
        let mut bench = dirty(core_with(&[&set], &[clflushopt(RBX, line(0)), sfence(), load(RAX, RBX, DRAM)]), 1);
        bench.end();
        assert_eq!(bench.reads(), [1 + WAY_OUT], "loads wait for it under neither");
    }
}

#[test]
fn s419_a_fence_takes_its_cycles_when_everything_before_it_has_taken_effect() {
    for cycles in [0, 7] {
        let set = format!("core.fence_cycles={cycles}");
        let program = [clflushopt(RBX, line(0)), mfence(), load(RAX, RBX, DRAM)];
        let mut bench = dirty(core_with(&[&set], &program), 1);
        bench.end();
        assert_eq!(bench.reads(), [FLUSHED + cycles + WAY_OUT]);
        let program = [clflushopt(RBX, line(0)), sfence(), store(RBX, RCX, line(1))];
        let mut bench = dirty(core_with(&[&set, "core.sfence_order=\"oldest\""], &program), 2);
        assert_eq!(bench.end(), FLUSHED + cycles + 1 + 1, "the store commits behind the fence, and then has its turn");
        let program = [clflush(RBX, line(0)), load(RAX, RBX, DRAM)];
        let mut bench = dirty(core_with(&[&set, "core.clflush_order=\"full_fence\""], &program), 1);
        bench.end();
        assert_eq!(bench.reads(), [1 + 1 + FLUSH + cycles + WAY_OUT], "a clflush with a fence in it has it too");
    }
}
