//! Fifty random machines, and with `make slow-tests` a thousand, each with a random little program, under every scheme
//! that it can run.
//!
//! No deadlock, no panic, no stale read; the same result on every replay, and from every snapshot, traced or not; every
//! persist that was acknowledged before a power cut found again after recovery, and after a recovery that was cut
//! itself. `FENCEPOST_SEED=N` runs one of them alone.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::catch_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use fencepost_kernel::line::{LineAddress, Version};
use fencepost_kernel::stats::StatsNode;
use fencepost_kernel::trace::{Selection, Trace};
use fencepost_sim::address_space::{NodeId, Place, Placement};
use fencepost_sim::cache::observation_log::{Access, ObservationLog};
use fencepost_sim::cache::persist_log::PersistLog;
use fencepost_sim::config::Machine;
use fencepost_sim::config::topology::HostId;
use fencepost_sim::core::persist::PersistMode;
use fencepost_sim::host::Host;
use fencepost_sim::replay::simulation::{Ended, HostProgram, Options, Outcome, Progress, Simulation};
use fencepost_sim::results::run_entry;
use fencepost_sim::switch::Scheme;
use serde_json::Value as Json;

use super::machine_generator::random_machine;
use super::program::{LittleProgram, PERSISTENT};
use super::program_generator::random_programs;
use super::random::Random;
use super::results::check_entry;

/// Power cuts in each replay.
const CUTS: u64 = 6;

/// More events than any of these programs needs.
const EVENTS_MAX: u64 = 1_000_000;

#[test]
fn random_machines_keep_what_they_acknowledge() {
    if let Ok(seed) = std::env::var("FENCEPOST_SEED") {
        let case = Case::random(&mut Random::new(seed.parse().expect("FENCEPOST_SEED is a number")));
        eprintln!("{}\n{:?}\n", case.machine.to_json(), case.options);
        case.hosts.iter().for_each(|(little, _)| eprintln!("{:#?}", little.writes));
        check(seed.parse().expect("FENCEPOST_SEED is a number"));
        return;
    }
    check_all(50);
}

#[test]
#[ignore = "takes minutes: make slow-tests"]
fn a_thousand_random_machines_keep_what_they_acknowledge_and_come_to_everything_that_is_counted() {
    let counted = check_all(1000);
    let is_silent = |(name, sum): &(&String, &u64)| **sum == 0 && !SILENT.iter().any(|part| name.contains(part));
    let silent: Vec<&String> = counted.iter().filter(is_silent).map(|(name, _)| name).collect();
    assert_eq!(silent, [""; 0], "none of these machines comes to what these count");
}

/// Checks so many machines, all that fail before it says so, and adds up what they count.
fn check_all(machines: u64) -> Counters {
    let next = AtomicU64::new(0);
    let (failed, counted) = (Mutex::new(Vec::new()), Mutex::new(Counters::new()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= machines {
                return;
            }
            match catch_unwind(|| check(seed)) {
                Ok(counters) => merge(&mut counted.lock().expect("no check holds it"), counters),
                Err(reason) => {
                    let reason = reason.downcast::<String>().map_or_else(|_| "a panic".to_owned(), |reason| *reason);
                    let line = reason.lines().next().unwrap_or_default();
                    failed.lock().expect("no check holds it").push(format!("FENCEPOST_SEED={seed}: {line}"));
                }
            }
        }
    };
    let workers = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    let mut failed = failed.into_inner().expect("no check holds it");
    failed.sort_unstable();
    assert!(failed.is_empty(), "{} of {machines} fail:\n{}", failed.len(), failed.join("\n"));
    counted.into_inner().expect("no check holds it")
}

/// Parts of the paths of counters that may stay at zero: one for each combination of something, not all of which exist,
/// or what counts faults (a link between sockets has none), what only happens after a power cut, what is only followed
/// between the intervals of a sample, and flushes that reach no persistent domain, which x86-64 programs do not have.
const SILENT: [&str; 20] = [
    ".parts_ps.",
    ".credit_",
    ".messages.",
    ".requests.mem_",
    "_dram.port.",
    ".to_socket.crc_errors",
    ".to_socket.re",
    ".stale_reads",
    ".forced_waits",
    ".persist_buffer.acknowledgements_ignored",
    ".persist_buffer.recovery_drains",
    ".functional.page_walks",
    ".flushes_without_promise",
    ".port.received.d2h_", // no switch carries CXL.cache
    ".port.received.h2d_",
    ".acc.write_queue_full", // programs that write little, on the few machines that have these
    ".expander.write_queue_full",
    ".acc.port.retry_buffer_wait_ps",
    ".expander.port.retry_buffer_wait_ps",
    ".engine.", // load generators stand still while programs run; coherent_host/tests has them work on random machines
];

/// The sums of all counters of all replays, by their paths without the numbers of components.
type Counters = BTreeMap<String, u64>;

fn merge(into: &mut Counters, counters: Counters) {
    counters.into_iter().for_each(|(name, sum)| *into.entry(name).or_default() += sum);
}

/// Adds the counters below `node`, which has that path.
fn add_counters(path: &str, node: &StatsNode, into: &mut Counters) {
    if let StatsNode::Counter(value) = node {
        *into.entry(path.to_owned()).or_default() += value;
    }
    for (name, child) in node.children() {
        // `host0_dram` is of the same kind as `host1_dram1`.
        let name = match name.strip_prefix("host") {
            Some(rest) => format!("host{}", rest.trim_matches(|c: char| c.is_ascii_digit())),
            None => name.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned(),
        };
        add_counters(&format!("{path}.{name}"), child, into);
    }
}

/// Some way over the host's own DRAM and what it has of expanders and accelerators, if it has any.
fn over_all_memory(machine: &Machine, host: HostId, random: &mut Random) -> Option<Place> {
    let nodes = machine.nodes_of(host);
    let volatile = (0..).zip(&nodes).filter(|(_, node)| !node.is_pm).map(|(number, _)| NodeId(number));
    let mut volatile: Vec<NodeId> = volatile.collect();
    if volatile.len() <= usize::from(machine.sockets()) {
        return None;
    }
    let turns = random.below(volatile.len() as u64) as usize;
    volatile.rotate_left(turns);
    Some(match random.below(3) {
        0 => Place::in_node(volatile[0]),
        1 => Place::Filled { nodes: volatile, first_pages: Some(random.between(1, 8)) },
        _ => Place::InTurn { nodes: volatile.into_iter().map(|node| (node, random.between(1, 3) as u32)).collect() },
    })
}

/// One random machine with its program.
struct Case {
    machine: Machine,
    hosts: Vec<(LittleProgram, HostProgram)>,
    options: Options,
}

impl Case {
    fn random(random: &mut Random) -> Case {
        let machine = random_machine(random);
        let (mut hosts, options) = random_programs(machine.topology().hosts.len(), random);
        if machine.sockets() > 1 && random.once_in(2) {
            let nodes: Vec<NodeId> = (0..u32::from(machine.sockets())).map(NodeId).collect();
            for Placement { places, elsewhere, .. } in hosts.iter_mut().map(|(_, program)| &mut program.placement) {
                places[*elsewhere] = Place::NearToucher { nodes: nodes.clone() };
            }
        }
        for (host, (_, program)) in hosts.iter_mut().enumerate() {
            let Placement { places, elsewhere, .. } = &mut program.placement;
            if let Some(spread) = over_all_memory(&machine, HostId(host as u32), random) {
                places[*elsewhere] = spread;
            }
        }
        Case { machine, hosts, options }
    }

    fn simulation(&self, scheme: Scheme) -> Simulation {
        let programs: Vec<HostProgram> = self.hosts.iter().map(|(_, program)| program.clone()).collect();
        let simulation = Simulation::new(&self.machine, scheme, &programs, self.options.clone());
        let mut simulation = simulation.unwrap_or_else(|error| panic!("{scheme}: {error}"));
        if self.machine.sockets() == 1 {
            simulation.log_persists();
        }
        simulation.log_observations();
        simulation
    }

    fn is_limited(&self) -> bool {
        self.hosts.iter().any(|(_, program)| !program.thread_limits.is_empty())
            || self.options.pm_writes_limit.is_some()
    }
}

fn check(seed: u64) -> Counters {
    let mut counters = Counters::new();
    let mut random = Random::new(seed);
    let case = Case::random(&mut random);
    let is_legal = |scheme: &Scheme| case.machine.topology().check_scheme(*scheme).is_ok();
    for scheme in Scheme::ALL.into_iter().filter(is_legal) {
        let (events, outcome) = check_replay(&case, scheme);
        let entry = entry_of(&outcome, scheme);
        check_entry(&entry);
        check_cuts(&case, scheme, events, &entry, &mut random, &mut counters);
        add_counters("", &outcome.stats, &mut counters);
    }
    counters
}

/// Replays to the end and checks what has to hold there.
fn check_replay(case: &Case, scheme: Scheme) -> (u64, Outcome) {
    let mut simulation = case.simulation(scheme);
    let is_timed_throughout = !simulation.system().hosts().any(Host::is_warming);
    let mut events = 0;
    while simulation.step() {
        events += 1;
        let system = simulation.system();
        assert!(events < EVENTS_MAX, "{scheme}: no end in sight at {}: {:#?}", system.now(), system.waiting());
    }
    for host in simulation.system().hosts() {
        let stale = host.observations().and_then(ObservationLog::first_stale);
        assert_eq!(stale, None, "{scheme}: a load observes a version that is over");
    }
    let waiting = simulation.system().waiting();
    assert!(simulation.system().is_finished(), "{scheme}: a deadlock at {}: {waiting:#?}", simulation.system().now());
    assert!(simulation.system().is_idle(), "{scheme}: something is left under way: {waiting:#?}");
    check_promises(&simulation);
    if !case.is_limited() {
        check_versions(case, &simulation, is_timed_throughout);
    }
    let outcome = simulation.run(&Progress::default()).unwrap_or_else(|error| panic!("{scheme}: {error}"));
    if !case.is_limited() {
        assert_eq!(outcome.ended, Ended::Complete);
        let instructions = case.hosts.iter().map(|(_, program)| program.program.record().instructions());
        assert_eq!(outcome.instructions, instructions.sum::<u64>(), "{scheme}");
        let forced = outcome.hosts.iter().map(|host| outcome.stats.counter(&format!("{host}.threads.forced_waits")));
        assert_eq!(forced.sum::<u64>(), 0, "{scheme}: {:?}", outcome.warnings);
    }
    outcome.hosts.iter().for_each(|host| check_border(&outcome, host));
    for buffer in outcome.stats.children().iter().filter_map(|(_, component)| component.get("persist_buffer")) {
        assert_eq!(check_stack(buffer, "drain", &[]), buffer.counter("drains"), "each drain is acknowledged");
    }
    (events, outcome)
}

/// Each line has had as many versions as it was written, and inserted persists have left nothing volatile.
fn check_versions(case: &Case, simulation: &Simulation, is_timed_throughout: bool) {
    let is_persisted = case.options.persist != PersistMode::Program && is_timed_throughout;
    let hosts = simulation.system().hosts().zip(&case.hosts);
    let written = hosts.flat_map(|(host, (little, _))| {
        little.writes.range(PERSISTENT..).map(move |(&address, writes)| (host, address, writes))
    });
    for (host, address, writes) in written {
        let line = host.line_of(address).expect("it was written");
        let newest = host.newest_version(line);
        // Of a vector that begins in the middle of a line, each line has at least one part, and all parts but one at
        // most.
        let parts = u32::from(64 / case.machine.core.widest_operation_bytes);
        let least = writes.stores + u32::from(writes.non_temporal > 0);
        let most = writes.stores + writes.vectors * (parts - 1) + writes.non_temporal * parts;
        assert!((least..=most).contains(&(newest.0 as u32)), "{newest:?} of {address:#x} after {writes:?}");
        if is_persisted {
            let durable = simulation.durable_version(line);
            assert_eq!(durable, newest, "{address:#x} is not durable at the end, with inserted persists");
        }
    }
}

/// What is counted where requests leave the host.
fn check_border(outcome: &Outcome, host: &str) {
    let border = outcome.stats.get(&format!("{host}.memory_border")).expect("the host has one");
    assert_eq!(border.counter("stale_reads"), 0);
    let mut writes = 0;
    let reads = ["pm_reads", "dram_reads", "prefetch_reads", "page_walks", "instruction_fetches"];
    for class in reads {
        check_stack(border, class, &["core"]);
    }
    check_stack(border, "dram_writes", &["core", "cache"]);
    for class in ["persists", "pm_writebacks"] {
        writes += check_stack(border, class, &["core", "cache"]);
    }
    assert_eq!(border.counter("pm_writes"), writes, "each write to PM has its completion");
}

/// The results but for the host's time, which no two replays share.
fn entry_of(outcome: &Outcome, scheme: Scheme) -> Json {
    let mut entry = run_entry(outcome, "random", scheme, 0.0);
    for region in entry["regions"].as_array_mut().expect("regions are a list") {
        region["host_seconds"].take();
    }
    entry
}

/// The parts of a class of requests sum to its latencies, but for those before it; gives how many there were.
fn check_stack(counters: &StatsNode, class: &str, before: &[&str]) -> u64 {
    let stack = counters.get(class).expect("it is counted");
    let Some(StatsNode::Histogram(latency)) = stack.get("latency") else { panic!("latencies are a distribution") };
    let parts = stack.get("parts_ps").expect("it has parts");
    let before: u64 = before.iter().map(|part| parts.counter(part)).sum();
    assert_eq!(parts.total() - before, latency.sum().as_ps(), "the parts of {class} do not sum to the whole");
    latency.count()
}

/// Cuts the power at random instants of another replay, which gives the same result as the first one, and so does a
/// snapshot of it, traced from then on or not.
fn check_cuts(case: &Case, scheme: Scheme, events: u64, entry: &Json, random: &mut Random, counters: &mut Counters) {
    let mut cuts: Vec<u64> = (0..CUTS).map(|_| random.below(events + 1)).collect();
    cuts.sort_unstable();
    let mut simulation = case.simulation(scheme);
    let mut snapshot = None;
    let mut done = 0;
    for (index, cut) in cuts.into_iter().enumerate() {
        while done < cut {
            assert!(simulation.step(), "{scheme}: the second replay is shorter than the first");
            done += 1;
        }
        if index as u64 == CUTS / 2 {
            snapshot = Some(simulation.clone());
        }
        let recoveries_cut = cut_power(simulation.clone(), random);
        *counters.entry("recoveries_cut".to_owned()).or_default() += recoveries_cut;
    }
    // What is traced has all credits as events, which changes nothing of what happens.
    let traced = snapshot.clone().map(|mut traced| {
        traced.trace(Trace::new(Selection::FromFirstPersist(None), 1));
        traced
    });
    for simulation in [Some(simulation), snapshot, traced].into_iter().flatten() {
        let outcome = simulation.run(&Progress::default()).unwrap_or_else(|error| panic!("{scheme}: {error}"));
        let again = entry_of(&outcome, scheme);
        assert!(again == *entry, "{scheme}: another replay, or a snapshot of one, traced or not, has another result");
    }
}

/// Cuts the power now, in half of the cases again during recovery, and looks for what was promised. Gives how often a
/// recovery was cut that had something to do.
fn cut_power(mut simulation: Simulation, random: &mut Random) -> u64 {
    let mut recoveries_cut = 0;
    let before = durable(&simulation);
    simulation.power_fail();
    assert_eq!(durable(&simulation), before, "a power cut changes what is durable");
    while random.once_in(2) {
        simulation.start_recovery();
        recoveries_cut += u64::from(simulation.system().next_time().is_some());
        for _ in 0..random.below(30) {
            simulation.step();
        }
        simulation.power_fail();
        assert_eq!(durable(&simulation), before, "a power cut during recovery changes what is durable");
    }
    simulation.recover().unwrap_or_else(|error| panic!("recovery: {error}"));
    assert_eq!(durable(&simulation), before, "recovery changes what is durable");
    check_promises(&simulation);
    recoveries_cut
}

fn logs(simulation: &Simulation) -> impl Iterator<Item = &PersistLog> {
    let with_one_socket = simulation.system().hosts().filter(|host| host.sockets() == 1);
    with_one_socket.map(|host| host.caches().persist_log().expect("it is kept"))
}

/// What the persistent domain holds of every line that ever left the caches.
fn durable(simulation: &Simulation) -> BTreeMap<LineAddress, Version> {
    let lines = logs(simulation).flat_map(PersistLog::issued).map(|issued| issued.line);
    lines.map(|line| (line, simulation.durable_version(line))).collect()
}

/// Every acknowledged version, or a newer one, is durable, no version is that nobody issued, and no line is written by
/// two hosts.
fn check_promises(simulation: &Simulation) {
    let durable = durable(simulation);
    for promise in logs(simulation).flat_map(PersistLog::acknowledged) {
        let found = durable.get(&promise.line).copied().unwrap_or_default();
        assert!(found >= promise.version, "{promise:?} was acknowledged, and only {found:?} is durable");
    }
    let mut issued: BTreeMap<LineAddress, (usize, BTreeSet<Version>)> = BTreeMap::new();
    for (host, log) in logs(simulation).enumerate() {
        for write in log.issued() {
            let (writer, versions) = issued.entry(write.line).or_insert_with(|| (host, BTreeSet::new()));
            assert_eq!(*writer, host, "two hosts write {:?}", write.line);
            versions.insert(write.version);
        }
    }
    let now = simulation.system().now();
    let observations = simulation.system().hosts().filter_map(|host| host.observations());
    for store in observations.flat_map(ObservationLog::observations).filter(|seen| seen.access == Access::Store) {
        let found = durable.get(&store.line).copied().unwrap_or_default();
        assert!(found < store.version || store.time <= now, "{found:?} is durable at {now}, before {store:?}");
    }
    for (line, &found) in &durable {
        let is_issued = issued[line].1.contains(&found);
        assert!(found == Version(0) || is_issued, "{found:?} of {line:?} is durable, and nobody issued it");
    }
}
