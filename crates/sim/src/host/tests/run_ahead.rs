//! 7xx: what a core computes ahead is seen by nobody before it happens.

use super::*;
use crate::cache::hierarchy::Want;
use fencepost_kernel::message::{Cause, Opcode};

/// Run-ahead of the machine on the bench, in cycles.
const WINDOW: u64 = 400;

/// A thread stores to `PM` after so many multiplications, each of which waits for the one before; another does `other`
/// at once.
fn late_store(multiplications: usize, other: &Instruction) -> Bench {
    let mut script = threads(1);
    let mut work = repeated(multiplications, &multiply(RAX, RAX));
    work.push(store(RBX, RAX, PM));
    script.run(0, &work);
    script.run(1, std::slice::from_ref(other));
    let mut bench = Setup::machine(&["core.count=2"]).run(script);
    bench.warm(0, PM, Want::Own);
    bench
}

/// The cycle in which that store takes effect: 3 cycles for each multiplication, then it commits and has its turn.
fn stored(multiplications: u64) -> u64 {
    3 * multiplications + 4
}

/// The writes that memory got, with the cycle and the version of each.
fn writes(bench: &Bench) -> Vec<(u64, u64)> {
    let writes = bench.sent().iter().filter(|sent| sent.opcode == Opcode::MemWr);
    writes.map(|sent| (sent.cycle, sent.version.0)).collect()
}

#[test]
fn h701_a_store_behind_the_window_is_not_in_what_another_core_flushes_before_it() {
    let mut bench = late_store(180, &clflush(RBX, PM));
    let initial = bench.l1d(0, PM).expect("it is warm").version.0;
    bench.run_until(stored(180) - 1);
    assert!(writes(&bench).iter().all(|(cycle, version)| *cycle < WINDOW && *version == initial), "{:?}", bench.sent());
    bench.end();
    let copy = bench.l1d(0, PM).expect("it has been stored to");
    assert_eq!((copy.version.0, copy.stored > stored(180)), (initial + 1, true), "it had to fetch the line again");
}

#[test]
fn h702_a_store_in_the_window_leaves_with_another_core_s_flush_when_it_happens() {
    let mut bench = late_store(100, &clflush(RBX, PM));
    let initial = bench.l1d(0, PM).expect("it is warm").version.0;
    bench.end();
    let snoop = 3;
    assert_eq!(writes(&bench), [(stored(100) + snoop, initial + 1)]);
}

#[test]
fn h703_a_store_in_the_window_is_read_by_another_core_when_it_happens() {
    let mut bench = late_store(100, &load(RCX, RBX, PM));
    bench.end();
    let copy = bench.l1d(1, PM).expect("it has been read");
    assert!(copy.ready > stored(100), "{copy:?}");
    assert_eq!(copy.version, bench.l1d(0, PM).expect("both have it").version);
}

#[test]
fn h704_a_store_behind_a_flush_of_its_line_is_not_in_it() {
    for flush in [clflushopt(RBX, PM), clwb(RBX, PM)] {
        let mut script = Script::default();
        script.run(0, &[store(RBX, RAX, PM), flush, store(RBX, RAX, PM + 8), clwb(RBX, PM)]);
        let mut bench = Setup::machine(&[]).run(script);
        bench.end();
        let flushed: Vec<u64> =
            bench.sent().iter().filter(|sent| sent.cause == Cause::Flush).map(|s| s.version.0).collect();
        assert_eq!(flushed, [1, 2]);
    }
}
