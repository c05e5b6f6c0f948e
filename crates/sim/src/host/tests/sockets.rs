//! 12xx: hosts of two sockets with a core each. The first pages of PM belong to the second socket, and the first ones
//! of DRAM to the first.

use super::*;
use crate::address_space::PAGE_SHIFT;
use crate::cache::array::State;
use crate::cache::persist_sites::PersistSite;
use crate::cache::stats::HierarchyStats;
use crate::core::access_sites::{AccessSite, Origin};
use fencepost_isa::micro_op::Operation;

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

/// The same program, whose sites are counted.
fn run_by_site(script: Script) -> Bench {
    let mut bench = Setup::machine(&SOCKETS).pins(&[0, 1]).run(script);
    bench.log_sites();
    bench.end();
    bench
}

/// The flushes of the cores of a socket, in the order in which they came up.
fn flush_sites(bench: &Bench, socket: usize) -> Vec<PersistSite> {
    let sites = bench.host().persist_sites().nth(socket).expect("they are asked for").sites();
    sites.iter().filter(|site| matches!(site.key.operation, Operation::Flush(_))).cloned().collect()
}

#[test]
fn h1210_a_flush_that_writes_back_what_another_socket_has_is_a_persist_of_its_own_site() {
    let mut script = threads(1);
    script.run(0, &[store(RBX, RAX, of_second(0))]);
    is_busy(&mut script, 1, 3000);
    script.run(1, &[clflushopt(RBX, of_second(0)), clflushopt(RBX, of_second(1)), sfence()]);
    let bench = run_by_site(script);
    assert_eq!(flush_sites(&bench, 0).len(), 0);
    let [dirty, clean] = &flush_sites(&bench, 1)[..] else { panic!("two flushes") };
    assert_eq!((dirty.lines, dirty.clean, dirty.persists.count()), (1, 0, 1));
    assert_eq!((clean.lines, clean.clean, clean.persists.count()), (1, 1, 0));
    assert_eq!(dirty.persists.parts_ps(), counters(&bench, 1).persists.parts_ps());
    // Both are asked for at once, and the one that is written comes back last.
    assert!(dirty.fence_wait_ps > 0 && clean.fence_wait_ps == 0);
}

#[test]
fn h1211_the_persists_of_all_sockets_sites_are_those_of_the_run() {
    let mut script = threads(1);
    for thread in 0..2 {
        let own = |number| of_second(10 + 20 * u64::from(thread) + number);
        for number in 0..3 {
            script.run(thread, &[store(RBX, RAX, own(number)), clwb(RBX, own(number)), sfence()]);
        }
        script.run(thread, &[movntdq(RBX, own(8)), sfence()]);
    }
    let bench = run_by_site(script);
    for socket in 0..2 {
        let sites = bench.host().persist_sites().nth(socket).expect("they are asked for").sites();
        let run = &counters(&bench, socket).persists;
        let count: u64 = sites.iter().map(|site| site.persists.count()).sum();
        let time: u64 = sites.iter().map(|site| site.persists.latency().sum().as_ps()).sum();
        assert_eq!((count, time), (run.count(), run.latency().sum().as_ps()), "socket {socket}");
        assert_eq!(count, 4, "socket {socket}");
        let stalls: u64 = sites.iter().map(|site| site.stall.sum().as_ps()).sum();
        assert_eq!(stalls, bench.core(socket).fence_stall.sum().as_ps(), "socket {socket}");
    }
}

/// What a thread's own loads and stores got from where, in the order of the program: lines by the name of their origin.
fn origins(bench: &Bench) -> Vec<Vec<(&'static str, u64)>> {
    let sites = bench.host().access_sites().expect("they are asked for").sites();
    let named = |site: &AccessSite| {
        let lines = Origin::NAMES.into_iter().zip(site.lines).filter(|(_, lines)| *lines > 0).collect::<Vec<_>>();
        let waits = Origin::NAMES.into_iter().zip(site.waits_ps).filter(|(_, wait_ps)| *wait_ps > 0);
        assert!(waits.map(|(name, _)| name).eq(lines.iter().map(|(name, _)| *name)), "{site:?}");
        lines
    };
    sites.iter().filter(|site| site.key.block != 0).map(named).collect()
}

#[test]
fn h1212_a_load_s_line_comes_from_its_own_memory_or_the_other_s_or_from_the_other_s_caches() {
    let mut script = threads(1);
    script.run(1, &[load(RAX, RBX, of_second(0))]);
    is_busy(&mut script, 0, 3000);
    script.run(0, &[load(RAX, RBX, of_second(1))]);
    // Both threads run the same instruction, so it is one site.
    assert_eq!(origins(&run_by_site(script)), [vec![("pm", 1), ("other_pm", 1)]]);
    let mut script = threads(1);
    script.run(0, &[store(RBX, RAX, of_second(0))]);
    is_busy(&mut script, 1, 3000);
    script.run(1, &[load(RAX, RBX, of_second(0))]);
    let caches = origins(&run_by_site(script));
    assert!(caches.contains(&vec![("other_pm", 1)]) && caches.contains(&vec![("other_caches", 1)]), "{caches:?}");
}

#[test]
fn h1213_a_store_that_takes_the_other_copy_away_waits_for_the_other_caches() {
    let mut script = threads(1);
    script.run(0, &[load(RAX, RBX, of_second(0))]);
    is_busy(&mut script, 1, 3000);
    script.run(1, &[load(RAX, RBX, of_second(0))]);
    is_busy(&mut script, 1, 3000);
    script.run(1, &[store(RBX, RAX, of_second(0))]);
    let bench = run_by_site(script);
    let found = origins(&bench);
    assert!(found.contains(&vec![("other_caches", 1)]), "{found:?}");
    let sites = bench.host().access_sites().expect("they are asked for").sites();
    let store = sites.iter().find(|site| site.key.is_store && site.key.block != 0).expect("it stores");
    assert_eq!(store.lines.iter().sum::<u64>(), 1);
    // Its ownership is fetched while it waits for its turn.
    let snoop_ps = 250 * (REQUEST + LOOKUP + SNOOP + ANSWER);
    assert!((snoop_ps / 2..2 * snoop_ps).contains(&store.wait_ps()), "{store:?}");
}
