//! 3xx: `clflush`, `clflushopt`, `clwb`.

use super::{FIRST_TURN, core, core_with};
use crate::cache::array::State;
use crate::cache::hierarchy::Want;
use crate::host::bench::assembler::*;
use crate::host::bench::{Bench, DRAM, MISS, PM, WAY_BACK, WAY_OUT, WRITE};
use fencepost_kernel::line::ByteMask;
use fencepost_kernel::message::{Cause, Opcode};

/// From a flush's turn in the store queue to its acknowledgement.
const FLUSH: u64 = WAY_OUT + WRITE + WAY_BACK;
/// The same for a line that is clean everywhere and not on its way out.
const CLEAN_FLUSH: u64 = WAY_OUT + WAY_BACK;

fn line(number: u64) -> u64 {
    PM + 64 * number
}

/// The first `lines` lines of PM are dirty in the caches of core 0, in version 1.
fn dirty(mut bench: Bench, lines: u64) -> Bench {
    for number in 0..lines {
        bench.warm(0, line(number), Want::Own);
    }
    bench
}

#[test]
fn s301_a_flush_writes_a_dirty_line_out_and_is_complete_when_that_is_acknowledged() {
    for flush in [clflush, clflushopt, clwb] {
        let mut bench = dirty(core(&[flush(RBX, line(0) + 13)]), 1);
        assert_eq!(bench.end(), FIRST_TURN + FLUSH);
        let expected = bench.line(line(0));
        let [sent] = *bench.sent() else { panic!("one message, not {:?}", bench.sent()) };
        assert_eq!((sent.cycle, sent.line), (FIRST_TURN + WAY_OUT, expected));
        assert_eq!((sent.opcode, sent.cause), (Opcode::MemWr, Cause::Flush));
        assert_eq!((sent.version.0, sent.mask), (1, ByteMask::FULL));
        assert_eq!(bench.caches().counters().persists.count(), 1);
    }
}

#[test]
fn s302_clflush_and_clflushopt_invalidate_every_copy_and_clwb_none() {
    for (flush, stays) in [(clflush as fn(_, _) -> _, false), (clflushopt, false), (clwb, true)] {
        let mut bench = dirty(core(&[flush(RBX, line(0)), mfence(), load(RAX, RBX, line(0))]), 1);
        bench.end();
        assert_eq!(bench.reads().len(), usize::from(!stays), "the load after it misses, or not");
        assert_eq!(bench.state(0, line(0)), Some(State::Exclusive));
    }
}

#[test]
fn s303_a_flush_of_a_clean_line_sends_nothing() {
    for flush in [clflush, clflushopt, clwb] {
        let mut bench = core(&[flush(RBX, line(0))]);
        bench.warm(0, line(0), Want::Read);
        assert_eq!(bench.end(), FIRST_TURN + CLEAN_FLUSH);
        assert!(bench.sent().is_empty());
        assert_eq!(bench.caches().counters().clean_flushes, 1);
        assert_eq!(bench.caches().counters().persists.count(), 0);
    }
}

#[test]
fn s304_a_flush_of_a_line_that_no_cache_has_sends_nothing() {
    let mut bench = core(&[clflush(RBX, line(0))]);
    assert_eq!(bench.end(), FIRST_TURN + CLEAN_FLUSH);
    assert!(bench.sent().is_empty());
}

#[test]
fn s305_a_clean_line_is_not_safe_before_an_earlier_flush_of_it_is() {
    let mut bench = dirty(core(&[clflushopt(RBX, line(0)), clflush(RBX, line(0)), store(RBX, RCX, line(1))]), 2);
    let persisted = FIRST_TURN + FLUSH;
    assert_eq!(bench.end(), persisted + 1, "the store takes effect behind the clflush");
    assert_eq!(bench.writes().len(), 1);
    assert_eq!(bench.caches().counters().flushes_behind_writes, 1);
}

#[test]
fn s306_clwb_leaves_the_line_clean_until_it_is_stored_to() {
    let clean = [clwb(RBX, line(0)), mfence(), clwb(RBX, line(0))];
    let mut bench = dirty(core(&clean), 1);
    bench.end();
    assert_eq!(bench.writes().len(), 1, "the second has nothing to write");
    let again = [clwb(RBX, line(0)), mfence(), store(RBX, RCX, line(0)), clwb(RBX, line(0))];
    let mut bench = dirty(core(&again), 1);
    bench.end();
    let versions: Vec<u64> = bench.sent().iter().map(|sent| sent.version.0).collect();
    assert_eq!(versions, [1, 2]);
}

#[test]
fn s307_a_flush_writes_the_stores_before_it() {
    for flush in [clflush, clflushopt, clwb] {
        let mut bench = dirty(core(&[store(RBX, RCX, line(0)), store(RBX, RCX, line(0) + 8), flush(RBX, line(0))]), 1);
        assert_eq!(bench.end(), FIRST_TURN + 2 + FLUSH, "its turn comes two cycles after the first store's");
        assert_eq!(bench.sent()[0].version.0, 3);
    }
}

#[test]
fn s308_a_clflush_holds_later_stores() {
    let mut bench = dirty(core(&[clflush(RBX, line(0)), store(RBX, RCX, line(1))]), 2);
    bench.run_until(FIRST_TURN + FLUSH - 2);
    assert_eq!(bench.l1d(0, line(1)).unwrap().version.0, 1, "the store is still to come");
    assert_eq!(bench.end(), FIRST_TURN + FLUSH + 1);
    assert_eq!(bench.core(0).clflush_stall.sum().as_ps(), FLUSH * 250);
}

#[test]
fn s309_a_clflush_holds_later_flushes() {
    let mut bench = dirty(core(&[clflush(RBX, line(0)), clflush(RBX, line(1)), clflushopt(RBX, line(2))]), 3);
    let second = FIRST_TURN + FLUSH + 1;
    let third = second + FLUSH + 1;
    assert_eq!(bench.end(), third + FLUSH);
    assert_eq!(bench.writes(), [FIRST_TURN, second, third].map(|turn| turn + WAY_OUT));
}

#[test]
fn s310_a_clflush_does_not_hold_later_loads() {
    let mut bench = dirty(core(&[clflush(RBX, line(0)), load(RAX, RBX, DRAM)]), 1);
    bench.end();
    assert_eq!(bench.reads(), [1 + WAY_OUT]);
}

#[test]
fn s311_a_clflush_whose_address_is_late_does_not_hold_later_loads_either() {
    let mut bench = dirty(core(&[load(RCX, RBX, DRAM), clflush(RCX, line(0)), load(RAX, RBX, DRAM + 64)]), 1);
    bench.end();
    assert_eq!(bench.reads(), [1 + WAY_OUT; 2]);
}

#[test]
fn s312_a_clflush_as_a_full_fence_holds_later_loads() {
    let set = ["core.clflush_order=\"full_fence\""];
    let mut bench = dirty(core_with(&set, &[clflush(RBX, line(0)), load(RAX, RBX, DRAM)]), 1);
    let acknowledged = 1 + 1 + FLUSH;
    assert_eq!(
        bench.end(),
        acknowledged + MISS + 1,
        "it is sent in cycle 2, as soon as it is the oldest and has its address"
    );
    assert_eq!(bench.reads(), [acknowledged + WAY_OUT]);
}

#[test]
fn s313_a_clflush_as_a_full_fence_waits_for_earlier_flushes() {
    let set = ["core.clflush_order=\"full_fence\""];
    let mut bench = dirty(core_with(&set, &[clflushopt(RBX, line(0)), clflush(RBX, line(9)), load(RAX, RBX, DRAM)]), 1);
    let clean = bench.line(line(9));
    assert_eq!(bench.caches().l1d[0].get(clean).map(|line| line.state), None);
    bench.end();
    assert_eq!(bench.reads(), [FIRST_TURN + FLUSH + WAY_OUT]);
}

#[test]
fn s314_a_batch_of_weak_flushes_overlaps() {
    for flush in [clflushopt, clwb] {
        let flushes: Vec<_> = (0..4).map(|number| flush(RBX, line(number))).collect();
        let mut bench = dirty(core(&flushes), 4);
        assert_eq!(bench.end(), FIRST_TURN + 3 + FLUSH);
        assert_eq!(bench.writes(), [0, 1, 2, 3].map(|number| FIRST_TURN + number + WAY_OUT));
    }
}

#[test]
fn s315_no_more_flushes_are_in_flight_than_the_core_can_track() {
    let flushes: Vec<_> = (0..4).map(|number| clflushopt(RBX, line(number))).collect();
    let mut bench = dirty(core_with(&["core.flushes_in_flight=2"], &flushes), 4);
    let back = FIRST_TURN + FLUSH;
    let turns = [FIRST_TURN, FIRST_TURN + 1, back, back + 1];
    assert_eq!(bench.end(), back + 1 + FLUSH);
    assert_eq!(bench.writes(), turns.map(|turn| turn + WAY_OUT));
}

#[test]
fn s316_clean_flushes_count_among_those_in_flight() {
    let flushes: Vec<_> = (0..4).map(|number| clflushopt(RBX, line(number))).collect();
    let mut bench = core_with(&["core.flushes_in_flight=2"], &flushes);
    assert_eq!(bench.end(), FIRST_TURN + CLEAN_FLUSH + 1 + CLEAN_FLUSH);
}

#[test]
fn s317_a_weak_flush_does_not_hold_later_stores() {
    let mut bench = dirty(core(&[clflushopt(RBX, line(0)), store(RBX, RCX, line(1))]), 2);
    bench.run_until(FIRST_TURN + WAY_OUT);
    assert_eq!(bench.l1d(0, line(1)).unwrap().version.0, 2, "the store has taken effect, the flush is under way");
    assert_eq!(bench.end(), FIRST_TURN + FLUSH);
}

#[test]
fn s318_a_flush_may_be_acknowledged_by_the_memory_bus() {
    let set = ["core.flush_acknowledged_by=\"memory_bus\""];
    let mut bench = dirty(core_with(&set, &[clflush(RBX, line(0)), store(RBX, RCX, line(1))]), 2);
    // 20 ns each way through the host bridge.
    let bus = 2 * 20 * 4;
    assert_eq!(bench.end(), FIRST_TURN + CLEAN_FLUSH + bus + 1, "the way to the bus and back, without the write");
    assert_eq!(bench.writes(), [FIRST_TURN + WAY_OUT]);
    assert_eq!(bench.caches().counters().persists.count(), 1, "the write itself is waited for by nobody, but counted");
}

#[test]
fn s319_a_flush_of_dram_is_no_persist() {
    let mut bench = core(&[clflush(RBX, DRAM)]);
    bench.warm(0, DRAM, Want::Own);
    assert_eq!(bench.end(), FIRST_TURN + FLUSH);
    let counters = bench.caches().counters();
    assert_eq!((counters.persists.count(), counters.dram_writes.count(), counters.pm_writes), (0, 1, 0));
}

#[test]
fn s320_the_write_buffers_bound_the_flushes_under_way_at_the_last_level() {
    let flushes: Vec<_> = (0..3).map(|number| clflushopt(RBX, line(number))).collect();
    let mut bench = dirty(core_with(&["cache.l2.write_buffers=1"], &flushes), 3);
    bench.end();
    let first = FIRST_TURN + WAY_OUT;
    // Blocked flushes look the line up when there is room.
    let second = first + WRITE + WAY_OUT - 1;
    assert_eq!(bench.writes(), [first, second, second + WRITE + WAY_OUT - 1]);
    assert_eq!(bench.caches().counters().write_buffer_full, 2);
}

#[test]
fn s321_a_line_that_clwb_wrote_back_may_be_written_again_or_has_to_be_asked_for() {
    for (leaves, state, misses) in [("exclusive", State::Exclusive, 0), ("shared", State::Shared, 1)] {
        let set = format!("core.clwb_leaves=\"{leaves}\"");
        let mut bench = dirty(core_with(&[&set], &[clwb(RBX, line(0))]), 1);
        bench.end();
        assert_eq!(bench.state(0, line(0)), Some(state));
        let mut bench = dirty(core_with(&[&set], &[clwb(RBX, line(0)), mfence(), store(RBX, RCX, line(0))]), 1);
        bench.end();
        assert_eq!((bench.core(0).l1d_misses, bench.reads().len()), (misses, 0), "the last level still has it");
        assert_eq!((bench.state(0, line(0)), bench.l1d(0, line(0)).unwrap().version.0), (Some(State::Modified), 2));
        // A clean line keeps what it had.
        let mut bench = core_with(&[&set], &[clwb(RBX, line(0))]);
        bench.warm(0, line(0), Want::Read);
        bench.end();
        assert_eq!(bench.state(0, line(0)), Some(State::Exclusive));
    }
}

#[test]
fn s322_a_clwb_that_evicts_leaves_nothing_and_the_next_access_goes_to_memory() {
    let set = "core.clwb_leaves=\"invalid\"";
    let mut bench = dirty(core_with(&[set], &[clwb(RBX, line(0))]), 1);
    bench.end();
    assert_eq!((bench.state(0, line(0)), bench.writes().len()), (None, 1));
    let mut bench = dirty(core_with(&[set], &[clwb(RBX, line(0)), mfence(), store(RBX, RCX, line(0))]), 1);
    bench.end();
    assert_eq!(bench.reads().len(), 1);
}

#[test]
fn s323_what_completes_only_as_the_oldest_is_counted() {
    let flushes = [clflush(RBX, line(0)), clwb(RBX, line(1)), sfence(), mfence()];
    for (sets, expected) in [
        (&[][..], 1),
        (&["core.sfence_order=\"oldest\""][..], 2),
        (&["core.sfence_order=\"oldest\"", "core.clflush_order=\"full_fence\""][..], 3),
    ] {
        let mut bench = core_with(sets, &flushes);
        bench.end();
        assert_eq!(bench.core(0).non_speculative, expected, "{sets:?}");
    }
}
