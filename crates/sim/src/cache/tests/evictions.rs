//! 2xx: what leaves the caches because something else comes, and the room that takes.

use super::*;

/// The `number`th of the lines that share a set of L1, of L2, and of all levels of these tests.
fn conflicting(number: u64) -> LineAddress {
    pm(64 * number)
}

/// The `number`th of the lines that share a set of L1 and not of L2.
fn conflicting_in_l1(number: u64) -> LineAddress {
    pm(8 * number)
}

#[test]
fn c201_a_dirty_line_that_leaves_l1_stays_in_the_last_level() {
    let mut bench = Bench::small(1);
    bench.write(0, conflicting_in_l1(0), 0);
    bench.read(0, conflicting_in_l1(1), 100);
    bench.read(0, conflicting_in_l1(3), 200);
    assert_eq!(bench.state(0, conflicting_in_l1(0)), None);
    assert!(bench.pending.is_empty());
    assert_eq!(bench.caches.counters().first_level_write_backs, 1);
    assert_eq!(bench.read(0, conflicting_in_l1(0), 300), 300 + L2 + BACK);
    assert_eq!(bench.copy(0, conflicting_in_l1(0)).version.0, 1);
}

#[test]
fn c202_a_dirty_line_that_leaves_the_last_level_is_written_to_memory() {
    let mut bench = Bench::small(1);
    bench.write(0, conflicting(0), 0);
    bench.read(0, conflicting(1), 100);
    bench.read(0, conflicting(2), 200);
    assert_eq!(bench.sent(), [(200, Opcode::MemWr, Cause::Writeback, conflicting(0), 1)], "when the other line comes");
    let (acknowledged, _) = bench.serve(conflicting(0), 400);
    assert!(acknowledged.is_empty(), "nobody waits for it");
    let counters = bench.caches.counters();
    assert_eq!((counters.pm_writebacks.count(), counters.persists.count(), counters.pm_writes), (1, 0, 1));
}

#[test]
fn c203_a_clean_line_leaves_without_a_trace() {
    let mut bench = Bench::small(1);
    (0..3).for_each(|number| _ = bench.read(0, conflicting(number), 100 * number));
    assert!(bench.pending.is_empty());
    assert_eq!(bench.state(0, conflicting(0)), None);
}

#[test]
fn c204_a_line_that_leaves_the_last_level_leaves_every_core() {
    let mut bench = Bench::small(3);
    bench.read(0, conflicting(0), 0);
    bench.read(1, conflicting(0), 50);
    bench.write(2, conflicting(1), 100);
    bench.read(0, conflicting(2), 200);
    assert_eq!([0, 1].map(|core| bench.state(core, conflicting(0))), [None, None]);
    assert_eq!(bench.caches.counters().back_invalidations, 2);
    bench.read(0, conflicting(3), 300);
    assert_eq!(bench.state(2, conflicting(1)), None);
    assert_eq!(bench.writes(), [(Cause::Writeback, conflicting(1), 1)], "what only its core knew is written");
}

#[test]
fn c205_the_line_used_longest_ago_leaves() {
    let mut bench = Bench::small(2);
    bench.read(0, conflicting(0), 0);
    bench.read(0, conflicting(1), 100);
    bench.read(1, conflicting(0), 200);
    bench.read(0, conflicting(2), 300);
    assert_eq!(bench.state(1, conflicting(0)), Some(State::Shared));
    assert_eq!(bench.state(0, conflicting(1)), None);
}

#[test]
fn c206_a_miss_waits_for_a_write_buffer() {
    let mut level = small_l2();
    level.write_buffers = 1;
    let mut bench = Bench::new(&hierarchy(1, &[level]));
    bench.write(0, conflicting(0), 0);
    bench.read(0, conflicting(1), 100);
    bench.read(0, conflicting(2), 200);
    assert_eq!(bench.request(0, conflicting(3), Want::Read, Side::Data, 300), Outcome::Pending);
    assert_eq!(bench.sent().len(), 1, "only the write-back is on its way");
    bench.serve(conflicting(0), 400);
    assert_eq!(bench.sent(), [(400, Opcode::MemRd, Cause::DemandRead, conflicting(3), 0)]);
    assert_eq!(bench.caches.counters().mshr_full, 1);
}

#[test]
fn c207_a_miss_waits_for_an_mshr() {
    let mut level = small_l2();
    level.mshrs = 1;
    let mut bench = Bench::new(&hierarchy(2, &[level]));
    for (core, line) in [(0, pm(0)), (0, pm(1)), (1, pm(1))] {
        assert_eq!(bench.request(core, line, Want::Read, Side::Data, core as u64), Outcome::Pending);
    }
    assert_eq!(bench.sent().len(), 1);
    assert_eq!(bench.answer(pm(0), 100).len(), 1);
    assert_eq!(bench.sent(), [(100, Opcode::MemRd, Cause::DemandRead, pm(1), 0)], "and the third joins it");
    assert_eq!(bench.answer(pm(1), 200).len(), 2);
}

#[test]
fn c208_a_request_that_waited_for_room_may_find_its_line_when_it_comes_to_its_turn() {
    let mut level = small_l2();
    level.mshrs = 1;
    let mut bench = Bench::new(&hierarchy(3, &[level]));
    for (core, line) in [(0, pm(0)), (0, pm(1)), (1, pm(2)), (2, pm(1))] {
        bench.request(core, line, Want::Read, Side::Data, 0);
    }
    bench.answer(pm(0), 100);
    let served = bench.answer(pm(1), 200);
    assert_eq!(served.len(), 1, "the request for line 2 is before the other one for line 1");
    let served = bench.answer(pm(2), 300);
    let served: Vec<_> = served.iter().map(|served| (served.request.core, served.request.line, served.ready)).collect();
    assert_eq!(served, [(1, pm(2), 300 + BACK), (2, pm(1), 300 + BACK + SNOOP)]);
}

#[test]
fn c209_flushes_and_non_temporal_stores_wait_for_a_write_buffer_in_order() {
    let mut level = small_l2();
    level.write_buffers = 1;
    let mut bench = Bench::new(&hierarchy(1, &[level]));
    (0..2).for_each(|number| _ = bench.write(0, pm(number), number));
    assert_eq!(bench.flush(0, pm(0), false, 100), None);
    bench.write_around(0, pm(2), ByteMask::FULL, 101);
    assert_eq!(bench.flush(0, pm(1), false, 102), None);
    assert_eq!(bench.state(0, pm(1)), Some(State::Modified), "it has not happened yet");
    assert_eq!(bench.writes(), [(Cause::Flush, pm(0), 1)]);
    bench.serve(pm(0), 300);
    assert_eq!(bench.writes(), [(Cause::NonTemporalStore, pm(2), 1)]);
    bench.serve(pm(2), 500);
    assert_eq!(bench.writes(), [(Cause::Flush, pm(1), 1)]);
    let (acknowledged, _) = bench.serve(pm(1), 700);
    assert_eq!(acknowledged.len(), 1);
    assert!(bench.caches.is_idle());
}

#[test]
fn c210_clean_flushes_that_waited_are_all_done_when_there_is_room() {
    let mut level = small_l2();
    level.write_buffers = 1;
    let mut bench = Bench::new(&hierarchy(1, &[level]));
    bench.write(0, pm(0), 0);
    bench.flush(0, pm(0), false, 100);
    assert_eq!([1, 2, 3].map(|number| bench.flush(0, pm(number), false, 101)), [None; 3]);
    let (acknowledged, _) = bench.serve(pm(0), 300);
    let cycles: Vec<u64> = acknowledged.iter().map(|acknowledged| acknowledged.cycle).collect();
    assert_eq!(cycles, [300 + BACK, 300 + L2 + BACK, 300 + L2 + BACK, 300 + L2 + BACK]);
}

#[test]
fn c211_power_that_fails_leaves_nothing() {
    let mut bench = Bench::small(1);
    bench.write(0, pm(0), 0);
    bench.request(0, pm(1), Want::Read, Side::Data, 10);
    bench.flush(0, pm(0), true, 20);
    bench.caches.power_fail();
    assert!(bench.caches.is_idle());
    assert_eq!(bench.state(0, pm(0)), None);
    assert!(!bench.caches.has_departures());
}
