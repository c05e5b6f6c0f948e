//! 10xx: the stride prefetcher of the first-level data cache.

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
