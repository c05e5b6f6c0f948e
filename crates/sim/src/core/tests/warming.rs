//! 11xx: a stretch that is only warmed leaves what the same stretch leaves that is replayed in detail, structure by
//! structure.

use proptest::prelude::*;

use crate::cache::array::State;
use crate::host::bench::assembler::*;
use crate::host::bench::{Bench, DRAM, Script, Setup};
use fencepost_kernel::line::{LineAddress, Version};

/// Lines that are loaded, each after the one before, and whether they are then stored to.
type Walk = Vec<(u64, bool)>;

fn script(walk: &Walk) -> Script {
    let mut script = Script::default();
    for &(line, is_store) in walk {
        let address = DRAM + 64 * line;
        match is_store {
            true => script.run(0, &[load(RAX, RAX, address), store(RAX, RCX, address)]),
            false => script.run(0, &[load(RAX, RAX, address)]),
        }
    }
    script
}

/// The copies of data in all caches, by line.
fn copies(bench: &Bench) -> Vec<(LineAddress, bool, bool, State, Version)> {
    let copies = bench.caches().copies();
    let data = copies.iter().filter(|copy| !copy.is_code);
    let mut all: Vec<_> = data
        .map(|copy| {
            let content = &copy.content;
            (copy.line, copy.is_first_level_data, copy.is_last_level, content.state, content.version)
        })
        .collect();
    all.sort_unstable();
    all
}

fn after(setup: Setup, walk: &Walk) -> Bench {
    let mut bench = setup.run(script(walk));
    bench.end();
    bench
}

fn warmed_is_as_timed(sets: &[&str], walk: &Walk) -> Result<(), TestCaseError> {
    let timed = after(Setup::machine(sets), walk);
    let warmed = after(Setup::machine(sets).only_warming(), walk);
    let ([tlb, prefetcher], [warm_tlb, warm_prefetcher]) = (timed.learnt(0), warmed.learnt(0));
    prop_assert!(warm_tlb == tlb, "the TLB and the walkers' cache: {} {}", warm_tlb, tlb);
    prop_assert!(warm_prefetcher == prefetcher, "the prefetcher: {} {}", warm_prefetcher, prefetcher);
    prop_assert_eq!(copies(&warmed), copies(&timed), "the caches");
    Ok(())
}

/// Strides of a few lines that cross pages, with jumps between them. No line comes twice: what a store forwards is
/// not looked for in any of the structures.
fn walks() -> impl Strategy<Value = Walk> {
    let stretch = (0..32_u64, 1..4_u64, 1..30_u64, prop::bool::ANY);
    prop::collection::vec(stretch, 1..6).prop_map(|stretches| {
        let lines = |(place, (first, stride, count, is_store))| {
            (0..count).map(move |turn| (128 * place + first + stride * turn, is_store))
        };
        (0_u64..).zip(stretches).flat_map(lines).collect()
    })
}

const PREFETCHERS: [&str; 4] = ["none", "next_line", "stride", "stream"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn s1101_what_is_warmed_is_as_what_is_replayed(
        walk in walks(),
        prefetcher in 0..PREFETCHERS.len(),
        next_page in prop::bool::ANY,
        degree in 1..4_u8,
    ) {
        let prefetcher = format!("cache.l1d.prefetcher={:?}", PREFETCHERS[prefetcher]);
        let next_page = format!("cache.l1d.prefetch_next_page={next_page}");
        let degree = format!("cache.l1d.prefetch_degree={degree}");
        warmed_is_as_timed(&["tlb.enabled=true", "tlb.walkers=16", &prefetcher, &next_page, &degree], &walk)?;
    }
}

#[test]
fn s1102_a_prefetcher_that_is_warmed_goes_on_into_the_next_page() {
    let walk: Walk = [64, 58, 59, 60, 61, 62, 63].map(|line| (line, false)).into();
    let sets = ["cache.l1d.prefetcher=\"stride\"", "cache.l1d.prefetch_degree=3", "cache.l1d.prefetch_next_page=true"];
    let mut warmed = after(Setup::machine(&sets).only_warming(), &walk);
    assert!(warmed.l1d(0, DRAM + 64 * 65).is_some());
}
