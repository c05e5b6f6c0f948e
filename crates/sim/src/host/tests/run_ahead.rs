//! 7xx: what a core computes ahead is seen by nobody before it happens.

use super::*;
use crate::cache::hierarchy::Want;
use fencepost_kernel::message::{Cause, Opcode};

/// Run-ahead of the machine on the bench, in cycles.
const WINDOW: u64 = 400;

/// Of a machine with two sockets.
const SOCKETS: [&str; 4] =
    ["sockets.count=2", "socket_link.bandwidth_gb_per_s=20", "socket_link.latency_ns=40", "socket_link.credits=4"];

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

/// A machine of four cores, as it is and with as short a window as can be.
fn windows(sets: &[&str], script: impl Fn() -> Script) -> [u64; 2] {
    ["simulation.run_ahead_ns=100", "simulation.run_ahead_ns=1"].map(|window| {
        let sets: Vec<&str> = [&["core.count=4", window], sets].concat();
        Setup::machine(&sets).run(script()).end()
    })
}

/// So many threads share `count` executions of what `work` gives for each.
fn shared_work(threads_working: u32, count: usize, work: impl Fn(u64) -> Vec<Instruction>) -> Script {
    let mut script = threads(threads_working - 1);
    for thread in 0..threads_working {
        let once = work(u64::from(thread));
        let all: Vec<Instruction> = (0..count / threads_working as usize).flat_map(|_| once.clone()).collect();
        script.run(thread, &all);
    }
    script
}

fn is_within(percent: u64, [one, other]: [u64; 2]) -> bool {
    one.abs_diff(other) * 100 <= percent * one.max(other)
}

#[test]
fn h705_atomics_on_one_line_take_as_long_by_several_threads_as_by_one_at_least() {
    let adds = |_| vec![locked_add(RBX, RAX, DRAM)];
    let [alone, _] = windows(&[], || shared_work(1, 16_000, adds));
    for threads in [2, 4] {
        let times = windows(&[], || shared_work(threads, 16_000, adds));
        assert!(times[0] >= alone, "{threads} threads: {times:?} against {alone}");
        assert!(is_within(2, times), "{threads} threads: {times:?}");
    }
}

#[test]
fn h706_stores_to_parts_of_one_line_take_the_line_from_each_other_as_in_exact_order() {
    let slots = |thread: u64| vec![add_to_memory(RBX, RAX, DRAM + 8 * thread)];
    let apart = |thread: u64| vec![add_to_memory(RBX, RAX, line(64 * thread))];
    for sets in [&[][..], &SOCKETS] {
        for threads in [2, 4] {
            let [shared, own] =
                [&slots as &dyn Fn(u64) -> _, &apart].map(|work| windows(sets, || shared_work(threads, 16_000, work)));
            assert!(is_within(2, shared) && is_within(2, own), "{threads} threads: {shared:?} and {own:?}, {sets:?}");
            assert!(shared[0] > own[0], "{threads} threads: {shared:?} against {own:?}, {sets:?}");
        }
    }
}

#[test]
fn h707_a_load_is_forwarded_what_a_store_has_that_will_have_left_the_queue_later() {
    let [far, near] = windows(&[], || shared_work(1, 400, |_| vec![add_to_memory(RBX, RAX, DRAM)]));
    assert_eq!(far, near);
    // It gets the sum a cycle after that is there, and adds to it in another one.
    assert!(far >= 400 * 2, "{far}");
}
