//! 10xx: the stride prefetcher of the first-level data cache.

use crate::cache::hierarchy::Want;
use crate::host::bench::assembler::*;
use crate::host::bench::{Bench, DRAM, Script, Setup};

const STRIDE: [&str; 2] = ["cache.l1d.prefetcher=\"stride\"", "cache.l1d.prefetch_degree=2"];

/// One instruction loads from each address in turn, each time after the load before.
fn chain(sets: &[&str], addresses: impl Iterator<Item = u64>) -> Bench {
    let mut script = Script::default();
    addresses.for_each(|address| script.run(0, &[load(RAX, RAX, address)]));
    let mut bench = Setup::machine(sets).run(script);
    bench.end();
    bench
}

fn misses(bench: &Bench) -> u64 {
    bench.core(0).l1d_misses
}

#[test]
fn s1001_what_a_steady_stride_comes_to_next_is_fetched_before() {
    let addresses = || (0..30).map(|turn| DRAM + 128 * turn);
    let (mut without, mut with) = (chain(&[], addresses()), chain(&STRIDE, addresses()));
    assert_eq!((misses(&without), misses(&with) < 30), (30, true));
    assert!(with.end() < without.end() * 2 / 3, "{} {}", with.end(), without.end());
}

#[test]
fn s1002_it_does_not_leave_the_page() {
    let with = chain(&STRIDE, (0..32).map(|turn| DRAM + 128 * turn));
    assert_eq!(with.sent().len(), 32, "the page, and not a line more");
}

#[test]
fn s1003_addresses_without_a_stride_bring_nothing() {
    let addresses = [0, 5, 1, 9, 2, 14, 3, 20, 4, 27].map(|line| DRAM + 64 * line);
    let with = chain(&STRIDE, addresses.into_iter());
    assert_eq!((with.sent().len(), misses(&with)), (10, 10));
}

/// One instruction stores to each address in turn.
fn stores(sets: &[&str], addresses: impl Iterator<Item = u64>) -> Bench {
    let mut script = Script::default();
    addresses.for_each(|address| script.run(0, &[store(RBX, RCX, address)]));
    let mut bench = Setup::machine(sets).run(script);
    bench.end();
    bench
}

#[test]
fn s1004_stores_train_it_too() {
    let addresses = || (0..30).map(|turn| DRAM + 128 * turn);
    for (ownership, part) in [("core.prefetch_for_ownership=false", 3), ("core.prefetch_for_ownership=true", 1)] {
        let (mut without, mut with) =
            (stores(&[ownership], addresses()), stores(&[ownership, STRIDE[0], STRIDE[1]], addresses()));
        assert!(misses(&with) < misses(&without), "{ownership}: {} misses", misses(&with));
        assert!(with.core(0).prefetches >= 2 * 27, "each store from the fourth on");
        assert!(with.end() * part <= without.end() * 2, "{ownership}: {} of {}", with.end(), without.end());
    }
}

#[test]
fn s1005_the_degree_says_how_many_and_the_distance_how_far_ahead() {
    for (degree, distance, fetched) in
        [(1, 1, [8].as_slice()), (4, 1, &[8, 10, 12, 14]), (1, 4, &[14]), (2, 3, &[12, 14])]
    {
        let (degree, distance) =
            (format!("cache.l1d.prefetch_degree={degree}"), format!("cache.l1d.prefetch_distance={distance}"));
        // The fourth load of a stride is the first from which something is fetched; all others hit.
        let mut script = Script::default();
        (0..4).for_each(|turn| script.run(0, &[load(RAX, RAX, DRAM + 128 * turn)]));
        let mut bench = Setup::machine(&[STRIDE[0], &degree, &distance]).run(script);
        (0..4).for_each(|turn| bench.warm(0, DRAM + 128 * turn, Want::Read));
        bench.end();
        let first = bench.line(DRAM).0;
        let lines: Vec<u64> = bench.sent().iter().map(|sent| sent.line.0 - first).collect();
        assert_eq!(lines, fetched, "{degree} {distance}");
    }
}

#[test]
fn s1006_next_line_brings_what_lies_behind_each_access() {
    let sets = ["cache.l1d.prefetcher=\"next_line\"", "cache.l1d.prefetch_degree=1"];
    let with = chain(&sets, [0, 10, 11, 20].map(|line| DRAM + 64 * line).into_iter());
    // 0, 1, 10, 11, 12, 20, 21.
    assert_eq!(with.sent().len(), 7);
    let without = chain(&[], [0, 10, 11, 20].map(|line| DRAM + 64 * line).into_iter());
    assert_eq!((misses(&without), without.sent().len()), (4, 4));
}

#[test]
fn s1007_a_stream_is_fetched_until_it_is_far_enough_ahead() {
    let sets = ["cache.l1d.prefetcher=\"stream\"", "cache.l1d.prefetch_degree=2", "cache.l1d.prefetch_distance=3"];
    let with = chain(&sets, (10..13).map(|line| DRAM + 64 * line));
    assert_eq!(with.sent().len(), 3 + 2, "two lines an access");
    let with = chain(&sets, (10..15).map(|line| DRAM + 64 * line));
    assert_eq!(with.sent().len(), 5 + 3, "and three ahead at most");
    assert_eq!(misses(&with), 3, "those that it learns from");
}

#[test]
fn s1008_a_first_level_goes_on_into_the_next_page_if_it_is_told_to_and_the_page_is_in_use() {
    // The last lines of a page, and the first one of the next, which has been touched or has not.
    let missed = |next_page: &str, behind: &[u64]| {
        let last = (58..64).chain(behind.iter().copied());
        misses(&chain(&[STRIDE[0], "cache.l1d.prefetch_degree=2", next_page], last.map(|line| DRAM + 64 * line)))
    };
    let touched_before = [64, 58, 59, 60, 61, 62, 63, 65];
    let end = |next_page: &str| {
        let lines = touched_before.map(|line| DRAM + 64 * line);
        chain(&[STRIDE[0], "cache.l1d.prefetch_degree=3", next_page], lines.into_iter()).end()
    };
    let (within, beyond) = ("cache.l1d.prefetch_next_page=false", "cache.l1d.prefetch_next_page=true");
    assert!(end(beyond) < end(within), "line 65 is on its way");
    assert_eq!(missed(beyond, &[64]), missed(within, &[64]), "a page that nobody has touched has no place yet");
}
