//! 4xx: more than two levels: private ones in the middle, and several that are shared.

use super::*;

const MIDDLE: u64 = 4;

/// A private level of 16 sets of 2 lines.
fn private(inclusive: bool) -> CacheConfig {
    cache(2, 2, MIDDLE as u16, false, inclusive)
}

/// A private second level, and a third of 32 sets of 2 lines that is shared.
fn three(cores: usize, inclusive: bool) -> Bench {
    Bench::new(&hierarchy(cores, &[private(inclusive), cache(4, 2, L2 as u16, true, true)]))
}

/// The line of these tests; others share its set of L1 only, or that of the private level too.
const A: u64 = 0;

fn forget_l1(bench: &mut Bench, core: usize, line: LineAddress) {
    bench.caches.l1d[core].remove(line).expect("it was there");
}

/// Drives line A out of L1 and leaves it in the private level.
fn drive_out_of_l1(bench: &mut Bench, core: usize) {
    for number in [8, 24] {
        bench.read(core, pm(number), 50);
    }
    assert_eq!(bench.state(core, pm(A)), None);
}

/// Drives line A out of L1 and the private level.
fn drive_out_of_private(bench: &mut Bench, core: usize) {
    for number in [16, 48] {
        bench.read(core, pm(number), 50);
    }
    assert_eq!(bench.state(core, pm(A)), None);
}

#[test]
fn c401_a_line_comes_back_through_every_level() {
    let mut bench = three(1, true);
    assert_eq!(bench.read(0, pm(A), 100), 100 + 2 * BACK, "memory answered at 100");
    drive_out_of_l1(&mut bench, 0);
    assert_eq!(bench.read(0, pm(A), 200), 200 + MIDDLE + BACK, "the private level has it");
    drive_out_of_private(&mut bench, 0);
    assert_eq!(bench.read(0, pm(A), 300), 300 + MIDDLE + L2 + 2 * BACK, "the last level has it");
}

#[test]
fn c402_a_miss_looks_into_every_level_before_it_goes_out() {
    let mut bench = three(1, true);
    bench.request(0, pm(A), Want::Read, Side::Data, 100);
    assert_eq!(bench.sent()[0].0, 100 + MIDDLE + L2);
}

#[test]
fn c403_a_dirty_line_that_leaves_a_private_level_that_need_not_have_it_keeps_its_version() {
    let mut bench = three(1, false);
    bench.write(0, pm(A), 0);
    drive_out_of_private(&mut bench, 0);
    assert_eq!(bench.read(0, pm(A), 300), 300 + MIDDLE + L2 + 2 * BACK);
    assert_eq!(bench.copy(0, pm(A)).version.0, 1);
}

#[test]
fn c404_what_leaves_an_inclusive_private_level_leaves_the_first_too() {
    for inclusive in [true, false] {
        let mut bench = three(1, inclusive);
        bench.write(0, pm(A), 0);
        bench.read(0, pm(16), 100);
        // A hit in L1 is not seen by the level below, for which the first line is the oldest.
        assert!(bench.caches.l1d[0].find_and_touch(pm(A)).is_some());
        bench.read(0, pm(48), 200);
        assert_eq!(bench.state(0, pm(A)).is_some(), !inclusive);
        bench.read(0, pm(A), 300);
        assert_eq!(bench.copy(0, pm(A)).version.0, 1, "its version survives");
    }
}

#[test]
fn c405_the_newest_version_is_found_in_a_private_level_of_another_core() {
    for inclusive in [true, false] {
        let mut bench = three(2, inclusive);
        bench.write(0, pm(A), 0);
        drive_out_of_l1(&mut bench, 0);
        bench.read(1, pm(A), 100);
        assert_eq!(bench.copy(1, pm(A)).version.0, 1);
        bench.write(1, pm(A), 200);
        assert_eq!(bench.read(0, pm(A), 300), 300 + MIDDLE + L2 + 2 * BACK + SNOOP, "its private copy is gone");
        assert_eq!(bench.copy(0, pm(A)).version.0, 2);
    }
}

#[test]
fn c406_a_flush_reaches_private_levels() {
    for keep in [true, false] {
        let mut bench = three(2, false);
        bench.write(0, pm(A), 0);
        drive_out_of_l1(&mut bench, 0);
        assert_eq!(bench.flush(1, pm(A), keep, 100), None);
        assert_eq!(bench.sent(), [(100 + MIDDLE + L2 + SNOOP, Opcode::MemWr, Cause::Flush, pm(A), 1)]);
        let (acknowledged, _) = bench.serve(pm(A), 300);
        assert_eq!(acknowledged[0].cycle, 300 + 2 * BACK);
        let ready = bench.read(0, pm(A), 400);
        assert_eq!(ready == 400 + MIDDLE + BACK, keep, "clwb leaves the private copy");
    }
}

#[test]
fn c407_a_shared_line_in_a_private_level_gives_no_right_to_write() {
    let mut bench = three(2, true);
    bench.read(0, pm(A), 0);
    bench.read(1, pm(A), 100);
    assert_eq!(bench.write(0, pm(A), 200), 200 + MIDDLE + L2 + 2 * BACK + SNOOP);
    assert_eq!(bench.state(1, pm(A)), None);
    assert_eq!(bench.read(1, pm(A), 300), 300 + MIDDLE + L2 + 2 * BACK + SNOOP);
    assert_eq!(bench.copy(1, pm(A)).version.0, 1);
}

#[test]
fn c408_an_owned_line_in_a_private_level_may_be_written_from_there() {
    let mut bench = three(2, true);
    bench.read(0, pm(A), 0);
    forget_l1(&mut bench, 0, pm(A));
    assert_eq!(bench.write(0, pm(A), 100), 100 + MIDDLE + BACK);
    bench.read(1, pm(A), 200);
    assert_eq!(bench.copy(1, pm(A)).version.0, 1);
}

#[test]
fn c409_of_two_private_levels_the_lower_one_takes_lines_from_all_above() {
    // The lower one has 32 sets of one line, so that it is the first to be full.
    let lower = cache(2, 1, 6, false, true);
    let mut bench = Bench::new(&hierarchy(1, &[private(true), lower, cache(4, 2, L2 as u16, true, true)]));
    bench.write(0, pm(A), 0);
    drive_out_of_l1(&mut bench, 0);
    bench.read(0, pm(32), 100);
    assert_eq!(bench.read(0, pm(A), 200), 200 + MIDDLE + 6 + L2 + 3 * BACK);
    assert_eq!(bench.copy(0, pm(A)).version.0, 1);
}

#[test]
fn c410_what_only_the_lowest_shared_level_has_comes_into_those_above() {
    let upper = cache(1, 2, L2 as u16, true, true);
    let last = cache(4, 4, 20, true, true);
    let mut bench = Bench::new(&hierarchy(1, &[upper, last]));
    let lines = [0, 1, 2].map(|number| pm(64 * number));
    for (turn, line) in lines.iter().enumerate() {
        bench.read(0, *line, 100 * turn as u64);
    }
    // The upper level has room for two of the three.
    assert_eq!(bench.read(0, lines[0], 400), 400 + L2 + 20 + 2 * BACK);
    forget_l1(&mut bench, 0, lines[0]);
    assert_eq!(bench.read(0, lines[0], 500), 500 + L2 + BACK);
}

#[test]
fn c411_what_leaves_an_inclusive_shared_level_leaves_the_cores_with_its_version() {
    let upper = cache(1, 2, L2 as u16, true, true);
    let last = cache(4, 4, 20, true, true);
    let mut bench = Bench::new(&hierarchy(2, &[upper, last]));
    let lines = [0, 1, 2].map(|number| pm(64 * number));
    bench.write(0, lines[0], 0);
    bench.read(1, lines[1], 100);
    bench.read(1, lines[2], 200);
    assert_eq!(bench.state(0, lines[0]), None);
    assert!(bench.pending.is_empty());
    assert_eq!(bench.read(1, lines[0], 300), 300 + L2 + 20 + 2 * BACK + SNOOP);
    assert_eq!(bench.copy(1, lines[0]).version.0, 1);
}

/// A level between with so few MSHRs, above a last level that has more.
fn narrow(cores: usize, shared: bool, mshrs: u16) -> Bench {
    let middle = CacheConfig { mshrs, ..cache(2, 2, MIDDLE as u16, shared, true) };
    Bench::new(&hierarchy(cores, &[middle, cache(4, 2, L2 as u16, true, true)]))
}

/// The lines that memory was asked for, with the cycle of each.
fn asked(bench: &Bench) -> Vec<(u64, LineAddress)> {
    bench.sent().iter().map(|sent| (sent.0, sent.3)).collect()
}

#[test]
fn c412_a_level_between_lets_as_many_lines_miss_as_it_has_mshrs() {
    for shared in [false, true] {
        let mut bench = narrow(1, shared, 2);
        for number in 0..3 {
            assert_eq!(bench.request(0, pm(number), Want::Read, Side::Data, 100), Outcome::Pending);
        }
        let out = 100 + MIDDLE + L2;
        assert_eq!(asked(&bench), [(out, pm(0)), (out, pm(1))]);
        bench.answer(pm(0), 300);
        let ready = 300 + 2 * BACK;
        assert_eq!(asked(&bench)[1], (ready + L2, pm(2)), "the register is free when the first line is there");
        assert_eq!(bench.answer(pm(2), 500)[0].request.line, pm(2));
        assert_eq!(bench.answer(pm(1), 500)[0].request.line, pm(1));
        assert!(bench.caches.is_idle());
    }
}

#[test]
fn c413_each_core_has_the_mshrs_of_its_private_levels_to_itself() {
    for (shared, sent) in [(false, 2), (true, 1)] {
        let mut bench = narrow(2, shared, 1);
        (0..2).for_each(|core| _ = bench.request(core, pm(core as u64), Want::Read, Side::Data, 100));
        assert_eq!(bench.pending.len(), sent);
    }
}

#[test]
fn c414_misses_to_one_line_share_a_register_between() {
    let mut bench = narrow(2, true, 1);
    (0..2).for_each(|core| _ = bench.request(core, pm(A), Want::Read, Side::Data, 100));
    let served = bench.answer(pm(A), 300);
    assert_eq!(served.iter().map(|served| served.request.core).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn c415_a_hit_below_frees_the_register_when_the_line_is_there() {
    let mut bench = narrow(2, false, 1);
    (0..2).for_each(|number| _ = bench.read(1, pm(number), 50));
    let first = 100 + MIDDLE + L2 + SNOOP + 2 * BACK;
    assert_eq!(bench.read(0, pm(0), 100), first);
    assert_eq!(
        bench.read(0, pm(1), 100),
        first + L2 + SNOOP + 2 * BACK,
        "it leaves the private level when the first is there"
    );
}
