//! 8xx: a last level that is not inclusive: it has what no core has, and a snoop filter what cores have.

use super::*;

const MIDDLE: u64 = 4;
/// From the third level to a core.
const FROM_LAST: u64 = MIDDLE + L2 + 2 * BACK;
/// All numbers of lines that are multiples of it share a set of every array.
const SET: u64 = 16;

/// A private second level of 16 sets of one line, a third of 16 sets of one line, and a filter of 16 sets of `ways`.
fn bench(cores: usize, ways: u16) -> Bench {
    let snoop_filter = Some(SnoopFilterConfig { entries: 16 * u32::from(ways), ways });
    let last = CacheConfig { snoop_filter, ..cache(1, 1, L2 as u16, true, false) };
    Bench::new(&hierarchy(cores, &[cache(1, 1, MIDDLE as u16, false, true), last]))
}

/// The state and version of a line in the last level or its filter, and whether it is in the filter for some core.
fn held(bench: &Bench, line: u64) -> Option<(State, u64, bool)> {
    let copies = bench.caches.copies();
    let copy = copies.iter().find(|copy| copy.is_last_level && copy.line == pm(line))?;
    Some((copy.content.state, copy.content.version.0, copy.content.sharers != 0))
}

fn counted(bench: &Bench, name: &str) -> u64 {
    let stats = bench.caches.stats();
    let (_, filter) = stats.iter().find(|(name, _)| name == "snoop_filter").expect("there is a filter");
    match filter.children().iter().find(|(key, _)| key.as_str() == name) {
        Some((_, StatsNode::Counter(value))) => *value,
        other => panic!("{other:?} counts nothing"),
    }
}

#[test]
fn c801_what_memory_sends_goes_past_the_last_level_to_the_core() {
    let mut bench = bench(1, 4);
    assert_eq!(bench.read(0, pm(0), 100), 100 + 2 * BACK);
    assert_eq!(held(&bench, 0), Some((State::Exclusive, 0, true)), "the filter knows");
}

#[test]
fn c802_what_leaves_the_second_level_is_in_the_last_and_comes_from_there() {
    let mut bench = bench(1, 4);
    bench.read(0, pm(0), 100);
    bench.read(0, pm(SET), 200);
    assert_eq!(bench.state(0, pm(0)), None);
    assert_eq!(held(&bench, 0), Some((State::Exclusive, 0, false)), "no core has it");
    assert_eq!(bench.read(0, pm(0), 300), 300 + FROM_LAST);
    assert_eq!(held(&bench, 0), Some((State::Exclusive, 0, true)), "it has left the last level");
    assert_eq!(held(&bench, SET), Some((State::Exclusive, 0, false)), "and another one is there in its place");
}

#[test]
fn c803_a_dirty_line_is_written_when_it_leaves_the_last_level() {
    let mut bench = bench(1, 4);
    bench.write(0, pm(0), 100);
    bench.read(0, pm(SET), 200);
    assert_eq!(held(&bench, 0), Some((State::Modified, 1, false)));
    assert_eq!(bench.writes(), []);
    bench.read(0, pm(2 * SET), 300);
    assert_eq!((held(&bench, 0), bench.writes()), (None, vec![(Cause::Writeback, pm(0), 1)]));
}

#[test]
fn c804_a_dirty_line_that_comes_back_is_still_to_be_written() {
    let mut bench = bench(1, 4);
    bench.write(0, pm(0), 100);
    bench.read(0, pm(SET), 200);
    bench.read(0, pm(0), 300);
    assert_eq!(bench.copy(0, pm(0)).version.0, 1);
    assert_eq!(bench.flush(0, pm(0), false, 400), None);
    assert_eq!(bench.writes(), [(Cause::Flush, pm(0), 1)]);
}

#[test]
fn c805_a_core_is_served_from_anothers_copy_although_that_is_clean() {
    let mut bench = bench(2, 4);
    bench.read(0, pm(0), 100);
    assert_eq!(bench.read(1, pm(0), 200), 200 + FROM_LAST + SNOOP);
    assert_eq!((bench.state(0, pm(0)), bench.state(1, pm(0))), (Some(State::Shared), Some(State::Shared)));
    assert_eq!(counted(&bench, "forwards"), 1);
    // The first core gives its copy up: the second has the line, and so the last level does not.
    bench.read(0, pm(SET), 300);
    assert_eq!(held(&bench, 0).map(|(.., at_core)| at_core), Some(true));
    bench.read(1, pm(2 * SET), 400);
    assert_eq!(held(&bench, 0).map(|(.., at_core)| at_core), Some(false));
}

#[test]
fn c806_an_entry_that_leaves_the_filter_takes_its_line_out_of_the_cores() {
    let mut bench = bench(2, 1);
    bench.write(0, pm(0), 100);
    assert_eq!(bench.read(1, pm(SET), 200), 200 + 2 * BACK);
    assert_eq!(bench.state(0, pm(0)), None, "the second core's line has taken its entry");
    assert_eq!(held(&bench, 0), Some((State::Modified, 1, false)), "what was stored is in the last level");
    assert_eq!((counted(&bench, "evictions"), bench.caches.counters().back_invalidations), (1, 1));
}

#[test]
fn c807_a_flush_finds_what_only_the_last_level_has() {
    for keep in [true, false] {
        let mut bench = bench(2, 4);
        bench.write(0, pm(0), 100);
        bench.read(0, pm(SET), 200);
        assert_eq!(bench.flush(1, pm(0), keep, 300), None);
        assert_eq!(bench.sent(), [(300 + MIDDLE + L2, Opcode::MemWr, Cause::Flush, pm(0), 1)], "no core is asked");
        bench.serve(pm(0), 400);
        assert_eq!(held(&bench, 0), keep.then_some((State::Exclusive, 1, false)));
        assert_eq!(bench.flush(1, pm(0), keep, 500), Some(500 + MIDDLE + L2 + 2 * BACK), "it is clean");
    }
}

#[test]
fn c808_what_the_first_level_still_has_is_not_in_the_last() {
    let snoop_filter = Some(SnoopFilterConfig { entries: 64, ways: 4 });
    let last = CacheConfig { snoop_filter, ..cache(1, 1, L2 as u16, true, false) };
    let mut bench = Bench::new(&hierarchy(1, &[cache(1, 1, MIDDLE as u16, false, false), last]));
    bench.read(0, pm(0), 100);
    bench.read(0, pm(SET), 200);
    assert!(bench.state(0, pm(0)).is_some(), "the second level need not have it");
    assert_eq!(held(&bench, 0), Some((State::Exclusive, 0, true)));
    bench.write(0, pm(0), 250);
    // It leaves the first level, dirty, and no other has it.
    bench.read(0, pm(SET), 300);
    bench.read(0, pm(2 * SET), 400);
    assert_eq!(bench.state(0, pm(0)), None);
    assert_eq!(held(&bench, 0), Some((State::Modified, 1, false)));
}

#[test]
fn c809_without_time_lines_go_the_same_ways() {
    let lines = [0, SET, 0, 2 * SET, 5, SET, 0, 3 * SET];
    let (mut timed, mut warmed) = (bench(2, 2), bench(2, 2));
    for (turn, number) in lines.into_iter().enumerate() {
        let (core, line) = (turn % 2, pm(number));
        timed.write(core, line, 1000 * turn as u64);
        while let Some(Pending { message, .. }) = timed.pending.first() {
            let line = message.line;
            timed.serve(line, 1000 * turn as u64 + 500);
        }
        let (want, side, cause) = (Want::Own, Side::Data, Cause::DemandRead);
        warmed.caches.access_functionally(Request { core, line, want, side, cause, issued: 0 });
    }
    let all = |bench: &Bench| {
        let copies = bench.caches.copies();
        let mut all: Vec<_> =
            copies.iter().map(|copy| (copy.line, copy.core, copy.content.state, copy.content.version)).collect();
        all.sort_unstable();
        all
    };
    assert_eq!(all(&timed), all(&warmed));
    let written = warmed.caches.take_warm_writes();
    assert!(!written.is_empty() && written.iter().all(|(line, version)| timed.memory[line] == *version), "{written:?}");
}

#[test]
fn c810_a_global_flush_writes_what_only_the_last_level_has() {
    let mut bench = bench(1, 4);
    bench.write(0, pm(0), 100);
    bench.write(0, pm(SET), 200);
    assert_eq!(bench.caches.dirty_pm_lines(), 2);
    bench.caches.begin_global_flush(300);
    bench.collect_departures();
    let mut written: Vec<_> = bench.writes().iter().map(|(_, line, version)| (*line, *version)).collect();
    written.sort_unstable();
    assert_eq!(written, [(pm(0), 1), (pm(SET), 1)]);
}

#[test]
fn c811_what_only_a_walker_has_read_is_in_the_last_level_and_not_in_the_filter() {
    let last = cache(1, 1, L2 as u16, true, false);
    let last = CacheConfig { snoop_filter: Some(SnoopFilterConfig { entries: 16, ways: 1 }), ..last };
    let mut bench = Bench::new(&hierarchy(2, &[last]));
    bench.request(0, pm(0), Want::Read, Side::Walker, 0);
    bench.request(1, pm(0), Want::Read, Side::Walker, 0);
    bench.request(1, pm(0), Want::Read, Side::Data, 0);
    bench.answer(pm(0), 100);
    assert_eq!(held(&bench, 0), Some((State::Exclusive, 0, true)), "a core has it too");
    bench.request(0, pm(1), Want::Read, Side::Walker, 200);
    bench.answer(pm(1), 300);
    assert_eq!(held(&bench, 1), Some((State::Exclusive, 0, false)));
    bench.read(1, pm(1 + SET), 400);
    assert_eq!(counted(&bench, "evictions"), 0, "the filter has room");
}
