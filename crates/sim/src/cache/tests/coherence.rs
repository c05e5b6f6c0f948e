//! 1xx: MESI among the cores of a host.

use super::*;

#[test]
fn c101_the_only_reader_of_a_line_has_it_exclusively() {
    let mut bench = Bench::small(2);
    bench.read(0, pm(0), 0);
    assert_eq!(bench.state(0, pm(0)), Some(State::Exclusive));
    assert_eq!(bench.caches.counters().snoops, 0);
}

#[test]
fn c102_readers_share() {
    let mut bench = Bench::small(3);
    bench.read(0, pm(0), 0);
    assert_eq!(bench.read(1, pm(0), 100), 100 + L2 + BACK + SNOOP, "the first might have written to it");
    assert_eq!(bench.read(2, pm(0), 200), 200 + L2 + BACK, "nobody can have written to it");
    assert_eq!([0, 1, 2].map(|core| bench.state(core, pm(0))), [Some(State::Shared); 3]);
}

#[test]
fn c103_a_read_of_another_core_s_dirty_line_gets_its_version() {
    let mut bench = Bench::small(2);
    bench.write(0, pm(0), 0);
    bench.store(0, pm(0));
    assert_eq!(bench.read(1, pm(0), 100), 100 + L2 + BACK + SNOOP);
    for core in [0, 1] {
        assert_eq!((bench.copy(core, pm(0)).state, bench.copy(core, pm(0)).version.0), (State::Shared, 2));
    }
    assert!(bench.pending.is_empty(), "memory is not asked");
    assert_eq!(bench.flush(0, pm(0), false, 200), None);
    assert_eq!(bench.writes(), [(Cause::Flush, pm(0), 2)], "the last level knows that it is dirty");
}

#[test]
fn c104_a_write_takes_every_other_copy_away() {
    let mut bench = Bench::small(4);
    (0..4).for_each(|core| _ = bench.read(core, pm(0), 10 * core as u64));
    assert_eq!(bench.write(2, pm(0), 100), 100 + L2 + BACK + SNOOP);
    let states = [0, 1, 2, 3].map(|core| bench.state(core, pm(0)));
    assert_eq!(states, [None, None, Some(State::Modified), None]);
}

#[test]
fn c105_a_write_to_another_core_s_dirty_line_goes_on_from_its_version() {
    let mut bench = Bench::small(2);
    bench.write(0, pm(0), 0);
    bench.write(1, pm(0), 100);
    assert_eq!((bench.state(0, pm(0)), bench.copy(1, pm(0)).version.0), (None, 2));
    assert!(bench.pending.is_empty());
}

#[test]
fn c106_the_only_reader_may_write_without_asking() {
    let mut bench = Bench::small(2);
    bench.read(0, pm(0), 0);
    bench.store(0, pm(0));
    bench.read(1, pm(0), 100);
    assert_eq!(bench.copy(1, pm(0)).version.0, 1);
}

#[test]
fn c107_a_line_that_two_cores_write_goes_to_and_fro() {
    let mut bench = Bench::small(2);
    for turn in 0..10 {
        bench.write(turn % 2, pm(0), 100 * turn as u64);
    }
    assert_eq!(bench.copy(1, pm(0)).version.0, 10);
    assert_eq!((bench.caches.counters().snoops, bench.caches.counters().llc_misses), (9, 1));
}

#[test]
fn c108_two_cores_that_write_different_lines_do_not_disturb_each_other() {
    let mut bench = Bench::small(2);
    for turn in 0..10 {
        bench.write(turn % 2, pm(turn as u64 % 2), 100 * turn as u64);
    }
    assert_eq!(bench.caches.counters().snoops, 0);
}

#[test]
fn c109_a_core_that_executes_what_it_writes_still_owns_it() {
    let mut bench = Bench::small(2);
    bench.write(0, pm(0), 0);
    assert!(matches!(bench.request(0, pm(0), Want::Read, Side::Instruction, 50), Outcome::Ready(..)));
    bench.store(0, pm(0));
    bench.read(1, pm(0), 100);
    assert_eq!(bench.copy(1, pm(0)).version.0, 2, "the other core sees both stores");
    assert_eq!(bench.state(0, pm(0)), Some(State::Shared));
}

#[test]
fn c110_code_that_another_core_writes_is_fetched_again() {
    let mut bench = Bench::small(2);
    bench.request(0, pm(0), Want::Read, Side::Instruction, 0);
    bench.answer(pm(0), 50);
    assert!(bench.caches.l1i[0].find(pm(0)).is_some());
    bench.write(1, pm(0), 100);
    assert!(bench.caches.l1i[0].find(pm(0)).is_none());
}

#[test]
fn c111_a_flush_finds_the_dirty_copy_of_another_core() {
    let mut bench = Bench::small(3);
    bench.write(1, pm(0), 0);
    assert_eq!(bench.flush(0, pm(0), false, 100), None);
    assert_eq!(bench.sent(), [(100 + L2 + SNOOP, Opcode::MemWr, Cause::Flush, pm(0), 1)]);
    assert_eq!(bench.state(1, pm(0)), None);
    let (acknowledged, _) = bench.serve(pm(0), 400);
    let acknowledged: Vec<_> =
        acknowledged.iter().map(|acknowledged| (acknowledged.by.core, acknowledged.cycle)).collect();
    assert_eq!(acknowledged, [(0, 400 + BACK)]);
}

#[test]
fn c112_a_flush_of_a_line_that_others_only_read_takes_their_copies_away() {
    let mut bench = Bench::small(3);
    (0..3).for_each(|core| _ = bench.read(core, pm(0), 10 * core as u64));
    assert_eq!(bench.flush(0, pm(0), false, 100), Some(100 + L2 + SNOOP + BACK));
    assert_eq!([0, 1, 2].map(|core| bench.state(core, pm(0))), [None; 3]);
    assert!(bench.pending.is_empty());
}

#[test]
fn c113_a_clwb_leaves_another_core_its_copy_clean() {
    let mut bench = Bench::small(2);
    bench.write(1, pm(0), 0);
    assert_eq!(bench.flush(0, pm(0), true, 100), None);
    assert_eq!(bench.writes(), [(Cause::Flush, pm(0), 1)]);
    assert_eq!(bench.state(1, pm(0)), Some(State::Exclusive), "with the right to write it again");
    bench.serve(pm(0), 200);
    assert!(bench.flush(0, pm(0), true, 300).is_some(), "it is clean");
    bench.store(1, pm(0));
    assert_eq!(bench.flush(0, pm(0), true, 400), None);
    assert_eq!(bench.writes(), [(Cause::Flush, pm(0), 2)]);
}

#[test]
fn c114_a_clwb_of_a_line_that_is_shared_and_dirty_in_the_last_level_cleans_it() {
    let mut bench = Bench::small(2);
    bench.write(0, pm(0), 0);
    bench.read(1, pm(0), 100);
    assert_eq!(bench.flush(1, pm(0), true, 200), None);
    bench.serve(pm(0), 300);
    assert_eq!([0, 1].map(|core| bench.state(core, pm(0))), [Some(State::Shared); 2]);
    assert!(bench.flush(0, pm(0), false, 400).is_some());
}

#[test]
fn c115_cores_that_wait_for_the_same_line_get_it_in_the_order_they_asked() {
    let mut bench = Bench::small(3);
    assert_eq!(bench.request(0, pm(0), Want::Read, Side::Data, 0), Outcome::Pending);
    assert_eq!(bench.request(1, pm(0), Want::Own, Side::Data, 1), Outcome::Pending);
    assert_eq!(bench.request(2, pm(0), Want::Read, Side::Data, 2), Outcome::Pending);
    assert_eq!(bench.pending.len(), 1);
    let served: Vec<_> = bench.answer(pm(0), 100).iter().map(|served| (served.request.core, served.ready)).collect();
    assert_eq!(served, [(0, 100 + BACK), (1, 100 + BACK + SNOOP), (2, 100 + BACK + SNOOP)]);
    assert_eq!(bench.caches.counters().merged, 2);
    assert_eq!([0, 1, 2].map(|core| bench.state(core, pm(0))), [None, Some(State::Shared), Some(State::Shared)]);
}

#[test]
fn c116_the_walker_has_no_copy_that_anyone_must_ask_for() {
    let mut bench = Bench::small(2);
    bench.request(0, pm(0), Want::Read, Side::Walker, 0);
    bench.answer(pm(0), 50);
    assert_eq!(bench.state(0, pm(0)), None);
    assert_eq!(bench.request(0, pm(0), Want::Read, Side::Walker, 100), Outcome::Ready(100 + L2 + BACK, Version(0)));
}

#[test]
fn c117_the_walker_is_no_core_that_has_the_line() {
    let mut bench = Bench::small(2);
    bench.request(0, pm(0), Want::Read, Side::Walker, 0);
    bench.answer(pm(0), 50);
    assert_eq!(bench.write(1, pm(0), 100), 100 + L2 + BACK, "nobody is to be snooped");
    assert_eq!(bench.caches.counters().snoops, 0);
    bench.request(0, pm(0), Want::Read, Side::Walker, 200);
    assert_eq!(bench.caches.counters().snoops, 1, "what another core has written is");
    assert_eq!(bench.write(1, pm(0), 300), 300 + L2 + BACK, "which no one but it has");
}

#[test]
fn c118_stores_are_told_apart_beyond_what_32_bits_count() {
    let mut bench = Bench::small(1);
    bench.write(0, pm(0), 0);
    bench.caches.l1d[0].get_mut(pm(0)).expect("it was written").version = Version(u32::MAX.into());
    bench.store(0, pm(0));
    assert_eq!(bench.flush(0, pm(0), false, 100), None);
    bench.serve(pm(0), 200);
    assert_eq!(bench.version_in_memory(pm(0)), 1 << 32);
    bench.read(0, pm(0), 300);
    assert_eq!(bench.copy(0, pm(0)).version, Version(1 << 32));
}
