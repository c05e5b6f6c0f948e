//! 3xx: requests for one line leave the last level in the order in which they were decided, and nothing is acknowledged
//! before it is safe.

use super::*;

fn acknowledged(of: &(Vec<Acknowledged>, Vec<Served>)) -> Vec<u32> {
    of.0.iter().map(|acknowledged| acknowledged.by.id).collect()
}

/// The `number`th of the lines that share a set of L2.
fn conflicting(number: u64) -> LineAddress {
    pm(64 * number)
}

#[test]
fn c301_a_flush_of_a_clean_line_waits_for_the_write_back_of_that_line() {
    let mut bench = Bench::small(1);
    bench.write(0, conflicting(0), 0);
    bench.read(0, conflicting(1), 100);
    bench.read(0, conflicting(2), 200);
    assert_eq!(bench.flush(0, conflicting(0), false, 250), None);
    assert_eq!(bench.writes().len(), 1, "there is nothing to write");
    assert_eq!(acknowledged(&bench.serve(conflicting(0), 400)), [1]);
    assert_eq!(bench.flush(0, conflicting(0), false, 500), Some(500 + L2 + BACK));
}

#[test]
fn c302_a_flush_of_a_clean_line_waits_for_another_core_s_flush() {
    let mut bench = Bench::small(2);
    bench.write(0, pm(0), 0);
    assert_eq!([bench.flush(0, pm(0), false, 100), bench.flush(1, pm(0), true, 101)], [None, None]);
    assert_eq!(acknowledged(&bench.serve(pm(0), 300)), [1, 2]);
}

#[test]
fn c303_it_waits_for_the_youngest_of_several_writes() {
    let mut bench = Bench::small(2);
    // The first write takes the first slot and is over, so that the last one reuses a place before the others.
    bench.write(0, pm(1), 0);
    bench.flush(0, pm(1), false, 10);
    bench.write(0, pm(0), 20);
    bench.flush(0, pm(0), false, 30);
    bench.serve(pm(1), 100);
    bench.write_around(0, pm(0), ByteMask::FULL, 110);
    assert_eq!(bench.flush(1, pm(0), false, 120), None);
    assert_eq!(bench.writes(), [(Cause::Flush, pm(0), 1), (Cause::NonTemporalStore, pm(0), 2)]);
    assert_eq!(acknowledged(&bench.serve(pm(0), 300)), [2]);
    assert_eq!(acknowledged(&bench.serve(pm(0), 400)), [3, 4]);
}

#[test]
fn c304_a_read_decided_after_a_flush_leaves_after_it_however_long_the_flush_looked() {
    let mut bench = Bench::small(2);
    bench.write(1, pm(0), 0);
    bench.flush(0, pm(0), false, 100);
    assert_eq!(bench.request(0, pm(0), Want::Read, Side::Data, 101), Outcome::Pending);
    let order: Vec<_> = bench.sent().iter().map(|sent| (sent.0, sent.1)).collect();
    assert_eq!(order, [(100 + L2 + SNOOP, Opcode::MemWr), (100 + L2 + SNOOP, Opcode::MemRd)]);
    bench.serve(pm(0), 300);
    bench.answer(pm(0), 400);
    assert_eq!(bench.copy(0, pm(0)).version.0, 1);
}

#[test]
fn c305_a_non_temporal_store_decided_after_a_flush_leaves_after_it() {
    let mut bench = Bench::small(1);
    bench.write(0, pm(0), 0);
    bench.flush(0, pm(0), false, 100);
    bench.write_around(0, pm(0), ByteMask::FULL, 101);
    assert_eq!(bench.writes(), [(Cause::Flush, pm(0), 1), (Cause::NonTemporalStore, pm(0), 2)]);
    bench.serve(pm(0), 300);
    bench.serve(pm(0), 400);
    assert_eq!(bench.version_in_memory(pm(0)), 2);
}

#[test]
fn c306_a_non_temporal_store_waits_for_a_read_of_its_line_that_is_under_way() {
    let mut bench = Bench::small(2);
    bench.request(1, pm(0), Want::Read, Side::Data, 0);
    bench.write_around(0, pm(0), ByteMask(0xff), 5);
    assert!(bench.writes().is_empty());
    assert!(!bench.caches.is_idle());
    bench.answer(pm(0), 100);
    assert_eq!(bench.sent(), [(100, Opcode::MemWrPtl, Cause::NonTemporalStore, pm(0), 1)]);
    assert_eq!(bench.state(1, pm(0)), None, "what it read is old now");
    assert_eq!(acknowledged(&bench.serve(pm(0), 300)), [1]);
}

#[test]
fn c307_a_non_temporal_store_of_a_part_takes_dirty_bytes_along() {
    let mut bench = Bench::small(2);
    bench.write(1, pm(0), 0);
    bench.write_around(0, pm(0), ByteMask(0xff), 100);
    assert_eq!(bench.sent(), [(100, Opcode::MemWr, Cause::NonTemporalStore, pm(0), 2)]);
    assert_eq!(bench.state(1, pm(0)), None);
}

#[test]
fn c308_non_temporal_stores_to_one_line_go_on_counting() {
    let mut bench = Bench::small(2);
    for turn in 0..3 {
        bench.write_around(turn % 2, pm(0), ByteMask(1), 10 * turn as u64);
    }
    let versions: Vec<u64> = bench.writes().iter().map(|write| write.2).collect();
    assert_eq!(versions, [1, 2, 3]);
    (0..3).for_each(|turn| _ = bench.serve(pm(0), 100 + turn));
    bench.read(1, pm(0), 200);
    assert_eq!(bench.copy(1, pm(0)).version.0, 3);
}

#[test]
fn c309_a_flush_may_be_acknowledged_by_the_bus_that_orders_it() {
    let mut config = hierarchy(2, &[small_l2()]);
    config.flushes_end_at_bus = true;
    let mut bench = Bench::new(&config);
    bench.write(0, pm(0), 0);
    assert_eq!(bench.flush(0, pm(0), false, 100), Some(100 + L2 + BACK));
    assert_eq!(bench.flush(0, pm(0), false, 101), Some(101 + L2 + BACK), "nobody waits for the write");
    assert!(acknowledged(&bench.serve(pm(0), 300)).is_empty());
}

#[test]
fn c309b_a_flush_to_the_point_of_coherence_ends_at_the_bus_and_promises_nothing() {
    let mut config = hierarchy(1, &[small_l2()]);
    config.bus_round_trip = 7;
    let mut bench = Bench::new(&config);
    bench.caches.log_persists();
    bench.write(0, pm(0), 0);
    let clean = Flush::new(Reach::Coherence, false, FlushOrder::Fences);
    assert_eq!(bench.flush_by(clean, 0, pm(0), 100), Some(100 + L2 + 7 + BACK));
    assert_eq!(bench.writes(), [(Cause::FlushWithoutPromise, pm(0), 1)], "the data leave all the same");
    assert!(bench.caches.persist_log().expect("it is kept").promises().is_empty());
    assert_eq!(bench.flush(0, pm(0), true, 110), None, "one to the point of persistence waits for the write");
    bench.serve(pm(0), 300);
    let counters = bench.caches.counters();
    assert_eq!((counters.persists.count(), counters.pm_writebacks.count()), (0, 1), "its line is no persist");
    assert_eq!(counters.flushes_without_promise, 1);
}

#[test]
fn c309c_where_the_point_of_coherence_is_persistent_a_flush_to_it_waits_for_the_write_and_promises() {
    let mut config = hierarchy(1, &[small_l2()]);
    (config.bus_round_trip, config.point_of_coherence) = (7, PointOfCoherence::Persistent);
    let mut bench = Bench::new(&config);
    bench.caches.log_persists();
    bench.write(0, pm(0), 0);
    assert_eq!(bench.flush_by(Flush::DC_CVAC, 0, pm(0), 100), None);
    assert_eq!(bench.caches.persist_log().expect("it is kept").promises().len(), 1);
    assert_eq!(acknowledged(&bench.serve(pm(0), 300)).len(), 1);
    let counters = bench.caches.counters();
    assert_eq!((counters.persists.count(), counters.flushes_without_promise), (1, 0));
}

#[test]
fn c309d_warming_counts_a_flush_as_time_would() {
    for (point_of_coherence, counted) in
        [(PointOfCoherence::Volatile, (0, 1, 1)), (PointOfCoherence::Persistent, (1, 0, 0))]
    {
        let mut bench = Bench::new(&HierarchyConfig { point_of_coherence, ..hierarchy(1, &[small_l2()]) });
        bench.write(0, pm(0), 0);
        bench.caches.flush_functionally(pm(0), Flush::DC_CVAC);
        let functional = &bench.caches.counters().functional;
        assert_eq!((functional.persists, functional.pm_writebacks, functional.flushes_without_promise), counted);
    }
}

#[test]
fn c310_warming_takes_nothing_that_is_on_its_way() {
    let mut bench = Bench::small(1);
    bench.write(0, pm(0), 0);
    // A flush and a read that have been decided, but not yet sent.
    bench.caches.flush(Requester { core: 0, id: 9, issued: 100 }, pm(0), Flush::CLFLUSHOPT, 100);
    let request =
        Request { core: 0, line: pm(1), want: Want::Read, side: Side::Data, cause: Cause::DemandRead, issued: 0 };
    bench.caches.request(request, 100);
    for number in 2..5 {
        let request = Request {
            core: 0,
            line: conflicting(number),
            want: Want::Own,
            side: Side::Data,
            cause: Cause::DemandRead,
            issued: 0,
        };
        bench.caches.access_functionally(request);
    }
    bench.collect_departures();
    assert_eq!(bench.sent().len(), 2);
    let warm = bench.caches.take_warm_writes();
    assert_eq!(warm, [(conflicting(2), Version(1))], "one of three that share a set has left");
    assert_eq!(bench.caches.counters().pm_writes, 1, "what leaves while warming counts for no limit");
    bench.serve(pm(0), 300);
    bench.answer(pm(1), 300);
    assert!(bench.caches.is_idle());
}

#[test]
fn c311_a_read_under_way_does_not_undo_what_warming_wrote_meanwhile() {
    let mut bench = Bench::small(1);
    let line = conflicting(0);
    assert_eq!(bench.request(0, line, Want::Read, Side::Data, 0), Outcome::Pending);
    for number in 0..3 {
        let request = Request {
            core: 0,
            line: conflicting(number),
            want: Want::Own,
            side: Side::Data,
            cause: Cause::DemandRead,
            issued: 0,
        };
        bench.caches.access_functionally(request);
    }
    bench.answer(line, 100);
    assert_eq!(bench.copy(0, line).version.0, 1);
    assert_eq!(bench.caches.counters().stale_reads, 0);
}

/// A core has computed that it stores to a line at cycle 500; everybody else is at 100.
fn stored_ahead() -> Bench {
    let mut bench = Bench::small(2);
    bench.get(0, pm(0), Want::Own, 0);
    bench.store_at(0, pm(0), 500);
    bench
}

#[test]
fn a_store_to_come_leaves_with_a_flush_when_it_happens() {
    for keep in [false, true] {
        let mut bench = stored_ahead();
        bench.flush(1, pm(0), keep, 100);
        assert_eq!(bench.pending[0].cycle, 500 + SNOOP);
        assert_eq!(bench.pending[0].message.stack.charged_until(), Time::ZERO + Duration::from_ps(250) * (500 + SNOOP));
    }
}

#[test]
fn a_store_to_come_leaves_with_a_write_around_when_it_happens() {
    let mut bench = stored_ahead();
    bench.write_around(1, pm(0), ByteMask::FULL, 100);
    assert_eq!(bench.pending[0].cycle, 500);
}

#[test]
fn a_store_to_come_leaves_with_an_eviction_when_it_happens() {
    let mut bench = stored_ahead();
    for number in 1..3 {
        // All in one set of the last level, which has 16.
        bench.read(1, pm(16 * number), 100);
    }
    assert_eq!(bench.writes(), [(Cause::Writeback, pm(0), 1)]);
    assert_eq!(bench.pending[0].cycle, 500);
}

#[test]
fn a_store_to_come_is_read_by_others_when_it_happens() {
    let mut bench = stored_ahead();
    let first = 500 + SNOOP + BACK;
    assert_eq!(bench.read(1, pm(0), 100), first);
    assert_eq!(bench.copy(1, pm(0)).version, Version(1));
}

#[test]
fn a_store_to_come_is_logged_as_issued_when_it_leaves() {
    let mut bench = Bench::small(2);
    bench.caches.log_persists();
    bench.get(0, pm(0), Want::Own, 0);
    bench.store_at(0, pm(0), 500);
    bench.flush(1, pm(0), false, 100);
    let issued = bench.caches.persist_log().expect("it is kept").issued();
    assert_eq!(issued[0].time, Time::ZERO + Duration::from_ps(250) * (500 + SNOOP));
}
