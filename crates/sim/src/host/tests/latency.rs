//! 8xx: what is measured at the border of the last level.

use super::*;

/// The latencies of reads of DRAM when two cores load 16 lines each at once and the last level has so many MSHRs: their
/// count and sum in cycles.
fn reads_with(mshrs: u64) -> (u64, u64) {
    let mut script = threads(1);
    for thread in 0..2 {
        let loads: Vec<Instruction> =
            (0..16).map(|number| load(RAX, RBX, line(16 * u64::from(thread) + number))).collect();
        script.run(thread, &loads);
    }
    let mut bench = Setup::machine(&["core.count=2", &format!("cache.l2.mshrs={mshrs}")]).run(script);
    bench.end();
    let reads = bench.caches().counters().dram_reads.latency();
    (reads.count(), reads.sum().as_ps() / 250)
}

#[test]
fn h801_a_read_s_latency_runs_from_its_miss_however_long_it_waits_for_an_mshr() {
    // Each core issues four loads a cycle, so eight miss in each of the cycles 12 to 15.
    assert_eq!(reads_with(32), (32, 32 * READ));
    // Four of cycle 14 and four of cycle 15 take over what those of cycle 12 leave in 112, the other four of 15 what
    // those of 13 leave in 113.
    assert_eq!(reads_with(20), (32, 20 * READ + 4 * (READ + 98) + 4 * (READ + 97) + 4 * (READ + 98)));
}

#[test]
fn h802_fewer_mshrs_never_make_reads_faster() {
    let sums: Vec<u64> = [32, 24, 20, 16, 12, 8, 4, 2, 1].map(|mshrs| reads_with(mshrs).1).to_vec();
    assert!(sums.is_sorted() && sums[0] < sums[8], "{sums:?}");
}
