//! 12xx: hosts of two sockets with a core each. The first pages of PM belong to the second socket, and the first ones
//! of DRAM to the first.

use super::*;
use crate::address_space::PAGE_SHIFT;
use crate::cache::array::State;
use crate::cache::stats::HierarchyStats;

/// One way over the socket link: its latency, and how long a flit takes.
const LATENCY: u64 = 160;
const FLIT: u64 = 4;
/// A header takes a slot of a flit; one with a line begins a second flit.
const REQUEST: u64 = LATENCY + FLIT;
const ANSWER: u64 = REQUEST;
const LINE: u64 = LATENCY + 2 * FLIT;
/// Lookup in the last level, and asking its core.
const LOOKUP: u64 = 10;
const SNOOP: u64 = 3;

const SOCKETS: [&str; 5] = [
    "core.count=2",
    "sockets.count=2",
    "socket_link.bandwidth_gb_per_s=68",
    "socket_link.latency_ns=40",
    "socket_link.credits=64",
];

/// A line of PM that belongs to the second socket.
fn of_second(number: u64) -> u64 {
    PM + 64 * number
}

/// Runs a program of two threads, one at each socket, to its end.
fn run(script: Script) -> Bench {
    let mut bench = Setup::machine(&SOCKETS).pins(&[0, 1]).run(script);
    bench.end();
    bench
}

/// What the caches of a socket counted.
fn counters(bench: &Bench, socket: usize) -> &HierarchyStats {
    bench.caches_of(socket).counters()
}

/// The latency of the only read of PM by a socket, in cycles.
fn read_of_pm(bench: &Bench, socket: usize) -> u64 {
    let reads = counters(bench, socket).pm_reads.latency();
    assert_eq!(reads.count(), 1);
    reads.sum().as_ps() / 250
}

#[test]
fn h1201_a_read_of_its_own_socket_s_memory_takes_as_long_as_without_sockets() {
    let mut script = threads(1);
    script.run(1, &[load(RAX, RBX, of_second(0))]);
    assert_eq!(read_of_pm(&run(script), 1), READ);
}

#[test]
fn h1202_a_read_of_another_socket_s_memory_crosses_the_link_twice() {
    let script = Script::of(&[load(RAX, RBX, of_second(0))]);
    assert_eq!(read_of_pm(&run(script), 0), REQUEST + READ + LINE);
}

#[test]
fn h1209_what_lies_behind_the_ports_is_farther_from_another_socket_by_what_the_machine_says() {
    // The pages that are touched first are the second socket's.
    const PAGES: u64 = 4;
    let latency = |socket: u32, to_ports: &str| {
        let sets = SOCKETS.into_iter().chain([to_ports]).collect::<Vec<_>>();
        let mut script = threads(1);
        (0..PAGES).for_each(|page| script.run(1 - socket, &[load(RAX, RBX, of_second(64 * page))]));
        is_busy(&mut script, socket, 10_000);
        script.run(socket, &[load(RAX, RBX, of_second(64 * PAGES))]);
        let mut bench = Setup::machine(&sets).pins(&[0, 1]).run(script);
        bench.end();
        read_of_pm(&bench, socket as usize)
    };
    let [near, far] = [0, 1].map(|socket| latency(socket, "socket_link.to_ports_ns=0"));
    assert_eq!((near, far), (READ, REQUEST + READ + LINE));
    assert_eq!([0, 1].map(|socket| latency(socket, "socket_link.to_ports_ns=25")), [near, far + 100]);
}

#[test]
fn h1203_a_line_that_is_dirty_at_its_home_comes_from_there_without_memory() {
    let mut script = threads(1);
    script.run(1, &[store(RBX, RAX, of_second(0))]);
    is_busy(&mut script, 0, 3000);
    script.run(0, &[load(RAX, RBX, of_second(0))]);
    let mut bench = run(script);
    assert_eq!(read_of_pm(&bench, 0), REQUEST + LOOKUP + SNOOP + LINE);
    assert_eq!([0, 1].map(|core| bench.state(core, of_second(0))), [Some(State::Shared); 2]);
    assert_eq!(bench.l1d(0, of_second(0)).map(|copy| copy.version.0), Some(1));
}

#[test]
fn h1204_a_line_that_is_dirty_elsewhere_is_asked_for_over_the_link() {
    let mut script = threads(1);
    script.run(0, &[store(RBX, RAX, of_second(0))]);
    is_busy(&mut script, 1, 3000);
    script.run(1, &[load(RAX, RBX, of_second(0))]);
    let bench = run(script);
    assert_eq!(read_of_pm(&bench, 1), REQUEST + LOOKUP + SNOOP + LINE);
}

#[test]
fn h1205_a_store_to_a_line_that_two_sockets_share_takes_the_other_copy_away_first() {
    let mut script = threads(1);
    script.run(0, &[load(RAX, RBX, of_second(0))]);
    is_busy(&mut script, 1, 3000);
    script.run(1, &[load(RAX, RBX, of_second(0))]);
    is_busy(&mut script, 1, 3000);
    script.run(1, &[store(RBX, RAX, of_second(0))]);
    let mut bench = run(script);
    assert_eq!([0, 1].map(|core| bench.state(core, of_second(0))), [None, Some(State::Modified)]);
    // To read it, the socket that had it alone is asked, and memory read; to write it, the other copy is taken away.
    let snoop = REQUEST + LOOKUP + SNOOP + ANSWER;
    let reads = counters(&bench, 1).pm_reads.latency();
    assert_eq!((reads.count(), reads.sum().as_ps() / 250), (2, snoop + READ + snoop));
}

#[test]
fn h1206_a_flush_writes_back_what_another_socket_has_and_is_complete_when_memory_has_it() {
    let mut script = threads(1);
    script.run(0, &[store(RBX, RAX, of_second(0))]);
    is_busy(&mut script, 1, 3000);
    script.run(1, &[clflushopt(RBX, of_second(0)), sfence()]);
    let mut bench = run(script);
    let line = bench.line(of_second(0));
    assert_eq!(bench.memory.versions[&line].0, 1);
    assert_eq!([0, 1].map(|core| bench.state(core, of_second(0))), [None; 2]);
    let flushes = counters(&bench, 1).persists.latency();
    assert_eq!((flushes.count(), flushes.sum().as_ps() / 250), (1, REQUEST + LOOKUP + SNOOP + LINE + WRITE));
}

#[test]
fn h1207_a_flush_of_a_line_that_nobody_has_asks_its_home() {
    let script = Script::of(&[clflushopt(RBX, of_second(0)), sfence()]);
    let bench = run(script);
    assert_eq!(counters(&bench, 0).persists.count(), 0);
    assert_eq!(counters(&bench, 0).clean_flushes, 1);
}

/// How long a stream of reads of the other socket's memory takes with a link of that bandwidth, in GB/s, when so many
/// are under way at once.
fn stream(bandwidth: f64, outstanding: u64) -> u64 {
    let loads: Vec<Instruction> = (0..128).map(|number| load(RAX, RBX, of_second(number))).collect();
    let bandwidth = format!("socket_link.bandwidth_gb_per_s={bandwidth}");
    let outstanding = format!("cache.l1d.mshrs={outstanding}");
    let sets = [&SOCKETS[..], &[&bandwidth, "socket_link.latency_ns=5", &outstanding]].concat();
    Setup::machine(&sets).run(Script::of(&loads)).end()
}

/// How many reads have to be under way until more of them make a stream less than a twentieth faster.
fn knee(bandwidth: f64) -> u64 {
    let saturated = stream(bandwidth, 16);
    (1..=16).find(|&outstanding| stream(bandwidth, outstanding) * 20 <= saturated * 21).expect("the last one is it")
}

#[test]
fn h1208_doubling_the_bandwidth_of_the_link_moves_the_knee_of_a_remote_stream() {
    const { assert!(128 * 64 <= 4 << PAGE_SHIFT, "all lines belong to the second socket") };
    let (narrow, wide) = (8.5, 17.0);
    let speed_up = stream(narrow, 16) as f64 / stream(wide, 16) as f64;
    assert!((1.8..2.2).contains(&speed_up), "{speed_up}");
    let (narrow, wide) = (knee(narrow), knee(wide));
    // A line takes five slots of 17 bytes, so 40 and 20 cycles, and a read of one without others about 250 and 200.
    assert_eq!((narrow, wide), (7, 10));
}
