//! 7xx: what private levels fetch ahead for themselves.

use super::*;

const MIDDLE: u64 = 4;

/// A private second level with a prefetcher, which looks one line ahead of the next, and a third that is shared.
fn bench(cores: usize, prefetcher: PrefetcherKind) -> Bench {
    let second = CacheConfig {
        prefetcher,
        prefetch_entries: 4,
        prefetch_degree: 2,
        prefetch_distance: 2,
        ..cache(4, 4, MIDDLE as u16, false, true)
    };
    Bench::new(&hierarchy(cores, &[second, cache(8, 4, L2 as u16, true, true)]))
}

/// A core reads each line, and memory answers everything at once; gives what left, as numbers of lines and causes.
fn read_all(bench: &mut Bench, lines: &[u64]) -> Vec<(u64, Cause)> {
    let mut left = Vec::new();
    for (turn, number) in lines.iter().enumerate() {
        let now = 1000 * turn as u64;
        bench.request(0, pm(*number), Want::Read, Side::Data, now);
        left.extend(bench.sent().iter().map(|(_, _, cause, line, _)| (line.0 - pm(0).0, *cause)));
        answer_all(bench, now + 500);
    }
    left
}

fn answer_all(bench: &mut Bench, now: u64) {
    while let Some(Pending { message, .. }) = bench.pending.first() {
        let line = message.line;
        bench.answer(line, now);
    }
}

fn second_has(bench: &Bench, core: usize, line: u64) -> Option<State> {
    let copies = bench.caches.copies();
    let mut of_second = copies.iter().filter(|copy| copy.line == pm(line) && copy.core == Some(core));
    of_second.find(|copy| !copy.is_first_level_data && !copy.is_code).map(|copy| copy.content.state)
}

use Cause::{DemandRead as Demand, Prefetch};

#[test]
fn c701_the_lines_behind_a_miss_leave_with_it_and_come_as_far_as_their_level() {
    let mut bench = bench(1, PrefetcherKind::NextLine);
    bench.request(0, pm(0), Want::Read, Side::Data, 100);
    let left = 100 + MIDDLE + L2;
    let read = |number, cause| (left, Opcode::MemRd, cause, pm(number), 0);
    assert_eq!(bench.sent(), [read(0, Demand), read(2, Prefetch), read(3, Prefetch)]);
    answer_all(&mut bench, 200);
    for number in [2, 3] {
        assert_eq!((bench.state(0, pm(number)), second_has(&bench, 0, number)), (None, Some(State::Exclusive)));
    }
    assert_eq!(bench.read(0, pm(2), 300), 300 + MIDDLE + BACK, "it is there before it is asked for");
}

#[test]
fn c702_a_stride_of_lines_in_a_page_is_followed() {
    let mut bench = bench(1, PrefetcherKind::Stride);
    let left = read_all(&mut bench, &[0, 3, 6, 9, 15]);
    // Of 15, which comes early, the stride is another one.
    assert_eq!(left[..4], [(0, Demand), (3, Demand), (6, Demand), (9, Demand)]);
    assert_eq!(left[4..], [(15, Prefetch), (18, Prefetch)], "from the second stride ahead on");
    assert_eq!(second_has(&bench, 0, 18), Some(State::Exclusive));
}

#[test]
fn c703_a_stream_is_followed_up_or_down_until_it_is_far_enough_ahead() {
    let mut up = bench(1, PrefetcherKind::Stream);
    let left = read_all(&mut up, &[10, 11, 12, 13]);
    let expected = [(10, Demand), (11, Demand), (12, Demand), (13, Prefetch), (14, Prefetch), (15, Prefetch)];
    assert_eq!(left, expected, "two lines at first, and one more when the first is used");
    let mut down = bench(1, PrefetcherKind::Stream);
    let left = read_all(&mut down, &[40, 39, 38]);
    assert_eq!(left[3..], [(37, Prefetch), (36, Prefetch)]);
}

#[test]
fn c704_no_prefetcher_leaves_the_page() {
    for kind in [PrefetcherKind::NextLine, PrefetcherKind::Stride, PrefetcherKind::Stream] {
        let left = read_all(&mut bench(1, kind), &[60, 61, 62, 63]);
        assert!(left.iter().all(|(line, _)| *line < 64), "{kind:?}: {left:?}");
        let downward = read_all(&mut bench(1, kind), &[67, 66, 65, 64]);
        assert!(downward.iter().all(|(line, _)| *line >= 64), "{kind:?}: {downward:?}");
    }
}

#[test]
fn c705_stores_train_as_loads_do_and_may_write_what_was_fetched() {
    let mut bench = bench(1, PrefetcherKind::NextLine);
    bench.write(0, pm(0), 100);
    answer_all(&mut bench, 200);
    assert_eq!(bench.write(0, pm(2), 300), 300 + MIDDLE + BACK, "nobody else has it");
}

#[test]
fn c706_a_request_for_a_line_that_is_being_fetched_is_served_with_it() {
    let mut bench = bench(1, PrefetcherKind::NextLine);
    bench.read(0, pm(0), 100);
    assert_eq!(bench.request(0, pm(2), Want::Own, Side::Data, 150), Outcome::Pending);
    assert_eq!(bench.pending.iter().filter(|pending| pending.message.line == pm(2)).count(), 1, "it is asked for once");
    let served = bench.answer(pm(2), 300);
    assert_eq!(served.len(), 1, "the core is told once");
    assert_eq!((served[0].request.want, served[0].ready), (Want::Own, 300 + 2 * BACK));
    bench.store(0, pm(2));
}

#[test]
fn c707_what_finds_no_register_is_dropped() {
    let mut config = hierarchy(1, &[cache(4, 4, MIDDLE as u16, false, true), cache(8, 4, L2 as u16, true, true)]);
    let second = &mut config.levels[0].1;
    (second.prefetcher, second.prefetch_degree, second.mshrs) = (PrefetcherKind::NextLine, 3, 2);
    let mut bench = Bench::new(&config);
    bench.request(0, pm(0), Want::Read, Side::Data, 100);
    assert_eq!(bench.sent().iter().map(|sent| sent.3).collect::<Vec<_>>(), [pm(0), pm(1)]);
    let stats = bench.caches.stats();
    let counted = |name: &str| match stats[0].1.children().iter().find(|(key, _)| key.as_str() == name) {
        Some((_, StatsNode::Counter(value))) => *value,
        other => panic!("{other:?} counts nothing"),
    };
    assert_eq!((counted("prefetches"), counted("dropped_prefetches")), (1, 2));
    answer_all(&mut bench, 200);
    assert!(bench.caches.is_idle());
}

#[test]
fn c708_what_another_core_has_stored_is_fetched_in_its_version() {
    let mut bench = bench(2, PrefetcherKind::NextLine);
    bench.write(1, pm(2), 0);
    answer_all(&mut bench, 50);
    bench.read(0, pm(0), 100);
    answer_all(&mut bench, 200);
    assert_eq!(bench.state(1, pm(2)), Some(State::Shared));
    assert_eq!(bench.read(0, pm(2), 300), 300 + MIDDLE + BACK);
    assert_eq!(bench.copy(0, pm(2)).version.0, 1);
}

#[test]
fn c709_without_time_the_same_is_fetched() {
    for kind in [PrefetcherKind::NextLine, PrefetcherKind::Stride, PrefetcherKind::Stream] {
        let (mut timed, mut warmed) = (bench(1, kind), bench(1, kind));
        let lines = [0, 2, 4, 6, 8, 10];
        read_all(&mut timed, &lines);
        for number in lines {
            let (line, side, cause) = (pm(number), Side::Data, Cause::DemandRead);
            let request = Request { core: 0, line, want: Want::Read, side, cause, issued: 0 };
            warmed.caches.access_functionally(request);
        }
        let lines_of = |bench: &Bench| {
            let copies = bench.caches.copies();
            let mut lines: Vec<_> =
                copies.iter().map(|copy| (copy.line, copy.core, copy.is_first_level_data)).collect();
            lines.sort_unstable();
            lines
        };
        assert_eq!(lines_of(&timed), lines_of(&warmed), "{kind:?}");
        assert!(lines_of(&timed).len() > 3 * lines.len(), "{kind:?} has fetched something");
    }
}

#[test]
fn c710_what_a_core_is_about_to_get_is_not_taken_for_what_its_prefetcher_wants() {
    let second = CacheConfig {
        prefetcher: PrefetcherKind::NextLine,
        prefetch_entries: 4,
        prefetch_degree: 1,
        prefetch_distance: 16,
        ..cache(4, 4, MIDDLE as u16, false, true)
    };
    // Lines 0, 16, 32 and 48 share the one entry of a set of the filter; what leaves that stays in the last level.
    let snoop_filter = Some(SnoopFilterConfig { entries: 16, ways: 1 });
    let last = CacheConfig { snoop_filter, ..cache(4, 4, L2 as u16, true, false) };
    let mut bench = Bench::new(&hierarchy(1, &[second, last]));
    read_all(&mut bench, &[0, 16, 32]);
    let Outcome::Ready(..) = bench.request(0, pm(0), Want::Own, Side::Data, 10_000) else { panic!("it is here") };
    assert_eq!(bench.state(0, pm(0)), Some(State::Exclusive), "16 would have taken its entry before it came");
}
