//! The host's side and accelerators together, on the machine of the Type-2 study.

mod litmus;

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::panic::catch_unwind;
use std::path::Path;

use super::{CoreAccess, Socket};
use crate::bursts::{Bursts, FoundIn, Measured, Requester};
use crate::config::topology::{DeviceId, HostId};
use crate::config::{Machine, SourceText};
use crate::device::type2::burst::{Burst, Observed};
use crate::device::type2::device_memory::Meta;
use crate::device::type2::host_side::LastLevel;
use crate::device::type2::messages::CacheState;
use crate::device::type2::{Accelerator, DeviceAccess, Waits};
use crate::switch::Scheme;
use crate::system::{Stepped, System};
use crate::traffic::Random;
use fencepost_kernel::line::{LineAddress, Version};

const HOST: HostId = HostId(0);
const TYPE2: DeviceId = DeviceId(1);

fn machine(sets: &[&str]) -> Machine {
    let text = |name: &str| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines");
        let text = fs::read_to_string(folder.join(format!("{name}.toml"))).ok()?;
        Some(SourceText { name: name.to_owned(), text })
    };
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let own = text("agilex-type2").expect("it ships");
    Machine::resolve(own, &text, &sets).unwrap_or_else(|errors| panic!("{errors}"))
}

/// ns from the first request of a burst to its last answer.
fn elapsed(machine: &Machine, access: DeviceAccess, found_in: FoundIn, requests: u32) -> f64 {
    let requester = Requester::Device { name: "type2".to_owned(), access, observes: false, barrier: false };
    let memory = "dram".to_owned();
    let bursts = Bursts { requester, found_in, memory, requests, footprint_bytes: 65536, repetitions: 3, seed: 0 };
    let measured = bursts.run(machine).expect("it runs").to_json();
    measured["elapsed_ns"]["mean"].as_f64().expect("it is a number")
}

#[test]
fn a_hit_takes_the_stages_of_the_device_alone() {
    let machine = machine(&[]);
    let type2 = machine.type2.as_ref().expect("it has accelerators");
    let cycles = 2 * type2.generator_cycles + type2.lookup_cycles + type2.read_cycles;
    let expected = f64::from(cycles) / type2.clock_ghz;
    assert!((elapsed(&machine, DeviceAccess::CsRead, FoundIn::OwnCache, 1) - expected).abs() < 1e-6);
    // One more of them each cycle.
    let sixteen = elapsed(&machine, DeviceAccess::CsRead, FoundIn::OwnCache, 16);
    assert!((sixteen - expected - 15.0 / type2.clock_ghz).abs() < 1e-6);
}

#[test]
fn what_is_kept_is_filled_and_read_and_what_is_in_memory_is_later() {
    let machine = machine(&[]);
    let type2 = machine.type2.as_ref().expect("it has accelerators");
    let of = |access, found_in| elapsed(&machine, access, found_in, 1);
    let kept = f64::from(type2.fill_cycles + type2.read_cycles) / type2.clock_ghz;
    let difference = of(DeviceAccess::CsRead, FoundIn::LastLevel) - of(DeviceAccess::NcRead, FoundIn::LastLevel);
    assert!((difference - kept).abs() < 2.0, "{difference}");
    assert!(of(DeviceAccess::NcRead, FoundIn::Memory) > of(DeviceAccess::NcRead, FoundIn::LastLevel) + 40.0);
    let to_own = of(DeviceAccess::CoWrite, FoundIn::Memory) - of(DeviceAccess::CoWrite, FoundIn::LastLevel);
    assert!(to_own.abs() < 1e-6, "a line that is written whole is not read: {to_own}");
}

/// What makes the device of the study snoop its host, with a filter of so many lines in KiB.
fn snooping(filter_kib: u32) -> [String; 5] {
    [
        "fabric.bias.type2=\"back_invalidate\"".to_owned(),
        "link.flit_format=\"256_byte\"".to_owned(),
        "link.back_invalidate_snoop_credits=64".to_owned(),
        "link.back_invalidate_response_credits=64".to_owned(),
        format!("type2.snoop_filter={{size_kib={filter_kib}, ways=1}}"),
    ]
}

fn snooping_machine(filter_kib: u32, sets: &[&str]) -> Machine {
    let snooping = snooping(filter_kib);
    let all: Vec<&str> = snooping.iter().map(String::as_str).chain(sets.iter().copied()).collect();
    machine(&all)
}

/// The first line of the device's memory.
fn own_memory(machine: &Machine) -> u64 {
    let nodes = machine.nodes_of(HOST);
    let node = nodes.iter().find(|node| node.name == "type2").expect("it has memory");
    LineAddress::containing(node.frames.start).0
}

fn of_own_memory(machine: &Machine, access: DeviceAccess, found_in: FoundIn, requests: u32) -> Measured {
    let requester = Requester::Device { name: "type2".to_owned(), access, observes: false, barrier: false };
    let memory = "type2".to_owned();
    let bursts = Bursts { requester, found_in, memory, requests, footprint_bytes: 32768, repetitions: 1, seed: 0 };
    bursts.run(machine).expect("it runs")
}

fn elapsed_ns(measured: &Measured) -> f64 {
    measured.to_json()["elapsed_ns"]["mean"].as_f64().expect("it is a number")
}

#[test]
fn a_snoop_takes_the_way_to_the_host_and_back() {
    let machine = snooping_machine(64, &[]);
    let type2 = machine.type2.as_ref().expect("it has accelerators");
    let cycle = 1.0 / type2.clock_ghz;
    // A line of which the host has nothing is written in the device alone.
    let alone = of_own_memory(&machine, DeviceAccess::CoWrite, FoundIn::OwnCache, 1);
    let of_device = 2 * type2.generator_cycles + type2.lookup_cycles + type2.fill_cycles;
    assert!((elapsed_ns(&alone) - f64::from(of_device) * cycle).abs() < 1e-6);
    // One that the host has: BISnp out of the port, through link and bridge to the last level; BIRsp back, looked up.
    let snooped = of_own_memory(&machine, DeviceAccess::CoWrite, FoundIn::LastLevel, 1);
    let at_device = f64::from(2 * type2.port_cycles + type2.lookup_cycles) * cycle;
    let config = machine.link.as_ref().expect("it has links");
    let link = config.latency_ns + 256.0 / config.bandwidth_gb_per_s;
    let levels = machine.cache_levels();
    let (_, last) = levels.lower.last().expect("there is a last level");
    let last_level = f64::from(last.latency_cycles) / machine.core.clock_ghz;
    let expected = at_device + 2.0 * (link + machine.host_bridge.latency_ns) + last_level;
    let difference = elapsed_ns(&snooped) - elapsed_ns(&alone);
    assert!((difference - expected).abs() < 0.01, "{difference} ns, and by hand {expected}");
    let counters = snooped.to_json()["counters"].clone();
    assert_eq!(counters["type2"]["snoop_filter"]["snoops"], 1, "{counters}");
    assert_eq!(counters["type2"]["engine"]["asked_for_bias"], 0);
}

#[test]
fn a_full_snoop_filter_takes_a_line_away_from_the_host() {
    let machine = snooping_machine(1, &[]);
    let first = own_memory(&machine);
    let [one, other] = [LineAddress(first), LineAddress(first + 16)];
    let mut system = System::with_coherence(&machine).expect("it can be built");
    for (lines, kind) in [(vec![one], CoreAccess::Store), (vec![other], CoreAccess::Load)] {
        system.with_coherent_host(HOST, |host, context| {
            host.begin(Socket::Own, Burst { kind, lines }, 1, context.now(), context);
        });
        while system.step() != Stepped::Nowhere {}
    }
    assert!(system.is_idle(), "{:?}", system.waiting());
    assert_eq!(system.coherent_host(HOST).remote_copy(one).0, CacheState::Invalid);
    assert_eq!(system.coherent_host(HOST).remote_copy(other).0, CacheState::Exclusive);
    let stored = newest(&system.coherent_host(HOST).log, one);
    let memory = system.with_accelerator(TYPE2, |own, _| own.own_copy(one).memory);
    assert!(memory == stored && stored != Version(0), "what the host had modified is in memory");
    let stats = system.stats();
    assert_eq!(stats.counter("type2.snoop_filter.evictions"), 1);
    assert_eq!(stats.counter("type2.snoop_filter.snoops"), 0);
}

/// The device and the cores of both sockets at the device's memory, all at once, with and without stores past the
/// caches; whose version says when they are made and not when memory has them.
#[test]
fn device_memory_has_the_values_that_coherence_allows() {
    const LINES: u64 = 12;
    let tiny = ["type2.device_memory_cache.size_kib=1"];
    for machine in [machine(&tiny), machine(&[tiny[0], "fabric.bias.type2=\"device\""]), snooping_machine(1, &tiny)] {
        for writes_around in [false, true] {
            let system = shared_device_memory(&machine, LINES, writes_around, 120, &mut Random::new(3));
            let stats = system.stats();
            if machine.type2.as_ref().is_some_and(|type2| type2.snoop_filter.is_some()) {
                for (counter, least) in [("snoops", 10), ("evictions", 10), ("conflicts", 1)] {
                    let count = stats.counter(&format!("type2.snoop_filter.{counter}"));
                    assert!(count >= least, "{counter}: {count}");
                }
            } else {
                assert!(stats.counter("type2.engine.asked_for_bias") > 50);
            }
        }
    }
}

/// Machines with stages, filters and credits of any size: nothing blocks, and values are right.
#[test]
fn any_machine_that_snoops_has_the_values_that_coherence_allows() {
    let mut random = Random::new(11);
    for _ in 0..24 {
        let mut one_of = |values: &[u64]| values[random.below(values.len() as u64) as usize];
        let credits = ["request", "request_with_data", "no_data_response", "data_response"];
        let mut sets: Vec<String> =
            credits.iter().map(|class| format!("link.{class}_credits={}", one_of(&[1, 2, 9]))).collect();
        sets.extend(
            ["generator", "lookup", "read", "fill", "port"]
                .map(|stage| format!("type2.{stage}_cycles={}", one_of(&[0, 1, 5, 40]))),
        );
        sets.extend([
            "fabric.bias.type2=\"back_invalidate\"".to_owned(),
            format!("link.flit_format=\"{}\"", ["256_byte", "256_byte_latency_optimised"][one_of(&[0, 1]) as usize]),
            format!("link.back_invalidate_snoop_credits={}", one_of(&[1, 2, 9])),
            format!("link.back_invalidate_response_credits={}", one_of(&[1, 2, 9])),
            format!("type2.snoop_filter={{size_kib=1, ways={}}}", one_of(&[1, 2, 16])),
            format!("type2.device_memory_cache={{size_kib=1, ways={}}}", one_of(&[1, 4])),
        ]);
        let machine = machine(&sets.iter().map(String::as_str).collect::<Vec<_>>());
        let writes_around = one_of(&[0, 1]) == 1;
        shared_device_memory(&machine, 12, writes_around, 120, &mut Random::new(3));
    }
}

#[test]
fn programs_are_not_replayed_where_the_device_snoops() {
    let machine = snooping_machine(64, &[]);
    let error = System::with_traffic(&machine, Scheme::Nopb, &[&[]], false, 0).err().expect("it cannot be");
    assert!(error.contains("type2 snoops its host") && error.contains("give its memory a bias"), "{error}");
}

/// So many rounds of bursts of the device and of both sockets at once, at the device's memory.
fn shared_device_memory(
    machine: &Machine,
    lines_of_set: u64,
    writes_around: bool,
    rounds: u32,
    random: &mut Random,
) -> System {
    let first = own_memory(machine);
    let mut system = System::with_coherence(machine).expect("it can be built");
    for _ in 0..rounds {
        let mut lines = |most: u64| -> Vec<LineAddress> {
            (0..=random.below(most)).map(|_| LineAddress(first + random.below(lines_of_set) * 16)).collect()
        };
        let of_agents = [lines(12), lines(12), lines(12)];
        let mut one_of = |count: u64| random.below(count) as usize;
        let kind = [
            DeviceAccess::NcRead,
            DeviceAccess::CsRead,
            DeviceAccess::CoRead,
            DeviceAccess::NcWrite,
            DeviceAccess::CoWrite,
            DeviceAccess::FlushLine,
            DeviceAccess::FlushDeviceMemoryCache,
        ][one_of(7)];
        let waits = Waits { observes: false, ends_in_barrier: one_of(2) == 0 };
        let burst = Burst { kind, lines: of_agents[0].clone() };
        system.with_accelerator(TYPE2, |own, context| own.begin(burst, waits, context.now(), context));
        for (socket, lines) in Socket::ALL.into_iter().zip(of_agents[1..].iter().cloned()) {
            let kinds =
                [CoreAccess::Load, CoreAccess::Store, CoreAccess::Flush, CoreAccess::NtLoad, CoreAccess::NtStore];
            let kind = kinds[one_of(if writes_around { 5 } else { 4 })];
            system.with_coherent_host(HOST, |host, context| {
                host.begin(socket, Burst { kind, lines }, 4, context.now(), context);
            });
        }
        while system.step() != Stepped::Nowhere {}
        assert!(system.is_idle(), "{:?}", system.waiting());
        let logs: Vec<Observed> =
            system.accelerator(TYPE2).log.iter().chain(&system.coherent_host(HOST).log).copied().collect();
        if !writes_around {
            check_reads(&logs);
        }
        for line in (0..lines_of_set).map(|number| LineAddress(first + number * 16)) {
            let own = system.with_accelerator(TYPE2, |own, _| own.own_copy(line));
            let host = system.coherent_host(HOST).remote_copy(line);
            let copies = [(own.cache, own.data), host];
            let valid = || copies.iter().filter(|(state, _)| *state != CacheState::Invalid);
            assert!(!valid().any(|(state, _)| state.is_owner()) || valid().count() == 1, "{line:?}: {copies:?}");
            let modified = valid().find(|(state, _)| *state == CacheState::Modified);
            let held = modified.map_or(own.memory, |(_, version)| *version);
            assert!(valid().all(|(_, version)| *version == held), "{line:?}: {copies:?}, {held:?} in memory");
            assert!(
                writes_around || held == newest(&logs, line),
                "{line:?}: {held:?}, written last: {:?}",
                newest(&logs, line)
            );
            assert!(
                host.0 == CacheState::Invalid || own.host != Meta::Invalid,
                "{line:?}: the device knows of no copy"
            );
        }
    }
    system
}

#[test]
fn a_flush_of_a_cache_goes_through_its_sets_and_gives_up_what_is_there() {
    let machine = machine(&["type2.device_memory_cache.size_kib=32"]);
    let type2 = machine.type2.as_ref().expect("it has accelerators");
    let cycle = 1.0 / type2.clock_ghz;
    let sets = type2.device_memory_cache.sets() as f64;
    let of = |found_in, requests| of_own_memory(&machine, DeviceAccess::FlushDeviceMemoryCache, found_in, requests);
    // Nothing to give up, or nothing modified: a cycle for each set.
    let through = (f64::from(2 * type2.generator_cycles + type2.lookup_cycles) + sets) * cycle;
    assert!((elapsed_ns(&of(FoundIn::Memory, 1)) - through).abs() < 1e-6);
    let clean = of(FoundIn::DeviceOwned, 100);
    assert!((elapsed_ns(&clean) - through).abs() < 1e-6);
    let counters = clean.to_json()["counters"].clone();
    assert_eq!(counters["type2"]["engine"]["flushed_lines"], 100, "{counters}");
    // What is modified goes to memory meanwhile; the last line of all is awaited.
    let dirty = of(FoundIn::DeviceModified, 512);
    assert!(elapsed_ns(&dirty) > through + f64::from(type2.read_cycles) * cycle, "{}", elapsed_ns(&dirty));
    assert_eq!(dirty.to_json()["counters"]["type2"]["engine"]["flushed_lines"], 512);
    // Of host memory, each modified line takes a transaction.
    let flush = elapsed(&machine, DeviceAccess::FlushHostMemoryCache, FoundIn::OwnModified, 64);
    let one = elapsed(&machine, DeviceAccess::FlushLine, FoundIn::OwnModified, 1);
    assert!(flush > one, "{flush} and {one}");
}

#[test]
fn a_barrier_waits_until_writes_are_globally_observed() {
    let machine = machine(&[]);
    let of = |observes, barrier| {
        let requester =
            Requester::Device { name: "type2".to_owned(), access: DeviceAccess::NcWrite, observes, barrier };
        let memory = "dram".to_owned();
        let found_in = FoundIn::LastLevel;
        let bursts =
            Bursts { requester, found_in, memory, requests: 16, footprint_bytes: 65536, repetitions: 1, seed: 0 };
        elapsed_ns(&bursts.run(&machine).expect("it runs"))
    };
    let (ordered, observed, barrier) = (of(false, false), of(true, false), of(false, true));
    assert!(ordered < observed - 50.0, "{ordered} and {observed}");
    assert!((barrier - observed).abs() < 1e-6, "the last write is observed when the barrier is: {barrier}, {observed}");
    // Of what is observed when it is answered, it waits for the way of its own through the device at most.
    let reads = |barrier| {
        let access = DeviceAccess::CsRead;
        let requester = Requester::Device { name: "type2".to_owned(), access, observes: false, barrier };
        let memory = "dram".to_owned();
        let found_in = FoundIn::OwnCache;
        let bursts = Bursts { requester, found_in, memory, requests: 1, footprint_bytes: 64, repetitions: 1, seed: 0 };
        elapsed_ns(&bursts.run(&machine).expect("it runs"))
    };
    let type2 = machine.type2.as_ref().expect("it has accelerators");
    let behind = f64::from(2 * type2.generator_cycles + type2.lookup_cycles + type2.issue_cycles) / type2.clock_ghz;
    assert!((reads(true) - behind.max(reads(false))).abs() < 1e-6);
}

const TWO_DEVICES: [&str; 2] = [
    "fabric.accelerators=[\"type2\", \"second\"]",
    "fabric.edges=[\"host0 -> type3\", \"host0 -> type2\", \"host0 -> second\"]",
];

#[test]
fn values_are_those_that_coherence_allows() {
    let tiny = ["type2.host_memory_cache.size_kib=1", "type2.transactions=6"];
    let machine = machine(&[TWO_DEVICES, tiny].concat());
    let system = shared_host_memory(&machine, &[TYPE2, DeviceId(2)], 60, &mut Random::new(7));
    let stats = system.stats();
    for (counter, least) in [("host0.requests", 500), ("host0.snoops", 100), ("type2.engine.evictions", 10)] {
        assert!(stats.counter(counter) > least, "{counter}: {}", stats.counter(counter));
    }
}

#[test]
fn values_on_random_machines_are_those_that_coherence_allows() {
    on_random_machines(0..100);
}

#[test]
#[ignore = "takes minutes: make slow-tests"]
fn values_on_a_thousand_random_machines_are_those_that_coherence_allows() {
    on_random_machines(100..1100);
}

/// Devices at work at their host's memory and at their own, with cores of both sockets, on a machine for each seed.
fn on_random_machines(seeds: Range<u64>) {
    let mut counted: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in seeds {
        let mut random = Random::new(seed);
        let sets = random_sets(&mut random);
        let said = catch_unwind(|| {
            let machine = machine(&sets.iter().map(String::as_str).collect::<Vec<_>>());
            let mut random = Random::new(seed);
            let count = machine.fabric.accelerators.len();
            let at_host = shared_host_memory(&machine, &[TYPE2, DeviceId(2)][..count], 6, &mut random);
            let writes_around = random.below(2) == 1;
            let at_device = shared_device_memory(&machine, 12, writes_around, 6, &mut random);
            [at_host.stats(), at_device.stats()]
        });
        let Ok(stats) = said else { panic!("seed {seed}: {sets:#?}") };
        for counter in ["host0.requests", "host0.snoops", "type2.engine.evictions", "type2.engine.asked_for_bias"] {
            *counted.entry(counter).or_default() += stats.iter().map(|stats| stats.counter(counter)).sum::<u64>();
        }
    }
    assert!(counted.values().all(|count| *count > 100), "{counted:?}");
}

/// A machine with one or two devices whose stages, caches, links and credits are of any size.
fn random_sets(random: &mut Random) -> Vec<String> {
    let mut one_of = |values: &[u64]| values[random.below(values.len() as u64) as usize];
    let mut sets = Vec::new();
    if one_of(&[0, 1]) == 1 {
        sets.extend(TWO_DEVICES.map(str::to_owned));
    }
    sets.extend(["issue", "generator", "lookup", "read", "fill", "port"].map(|stage| {
        let least = u64::from(stage == "issue");
        format!("type2.{stage}_cycles={}", one_of(&[0, 1, 5, 40]).max(least))
    }));
    let transactions = one_of(&[1, 2, 6, 64]);
    sets.push(format!("type2.transactions={transactions}"));
    sets.push(format!("type2.clock_ghz={}", ["0.05", "0.4", "3.0"][one_of(&[0, 1, 2]) as usize]));
    for cache in ["host_memory_cache", "device_memory_cache"] {
        sets.push(format!("type2.{cache}={{size_kib={}, ways={}}}", one_of(&[1, 1, 4]), one_of(&[1, 2, 16])));
    }
    for class in ["d2h_request", "d2h_response", "d2h_data", "h2d_request"] {
        sets.push(format!("link.{class}_credits={}", one_of(&[1, 2, 9])));
    }
    for class in ["h2d_response", "h2d_data"] {
        sets.push(format!("link.{class}_credits={}", transactions + one_of(&[0, 1, 9])));
    }
    for class in ["request", "request_with_data", "no_data_response", "data_response"] {
        sets.push(format!("link.{class}_credits={}", one_of(&[1, 2, 9])));
    }
    sets.push(format!("link.bandwidth_gb_per_s={}", one_of(&[1, 16, 63])));
    sets.push(format!("link.latency_ns={}", one_of(&[0, 25, 300])));
    sets.push(format!("socket_link.latency_ns={}", one_of(&[0, 115, 700])));
    let snoops = one_of(&[0, 0, 0, 1]) == 1 && sets[0] != TWO_DEVICES[0];
    if snoops {
        sets.extend([
            "fabric.bias.type2=\"back_invalidate\"".to_owned(),
            "link.flit_format=\"256_byte\"".to_owned(),
            format!("link.back_invalidate_snoop_credits={}", one_of(&[1, 2, 9])),
            format!("link.back_invalidate_response_credits={}", one_of(&[1, 2, 9])),
            format!("type2.snoop_filter={{size_kib=1, ways={}}}", one_of(&[1, 2, 16])),
        ]);
    } else {
        sets.push(format!("fabric.bias.type2=\"{}\"", ["host", "device"][one_of(&[0, 1]) as usize]));
        let formats = ["68_byte", "256_byte", "256_byte_latency_optimised"];
        sets.push(format!("link.flit_format=\"{}\"", formats[one_of(&[0, 1, 2]) as usize]));
    }
    sets
}

/// So many rounds of bursts of devices and of the cores of two sockets, all at the same lines at once: every read is of
/// a version that was the newest at some time while it was under way, nothing written is lost, and at rest all copies
/// are alike.
fn shared_host_memory(machine: &Machine, devices: &[DeviceId], rounds: u32, random: &mut Random) -> System {
    const LINES: u64 = 12;
    let mut system = System::with_coherence(machine).expect("it can be built");
    for _ in 0..rounds {
        let mut lines = |most: u64| -> Vec<LineAddress> {
            (0..=random.below(most)).map(|_| LineAddress(random.below(LINES) * 16)).collect()
        };
        let of_agents = [lines(12), lines(12), lines(12), lines(12)];
        let mut one_of = |count: u64| random.below(count) as usize;
        for (device, lines) in devices.iter().copied().zip(of_agents.clone()) {
            let kind = [
                DeviceAccess::NcRead,
                DeviceAccess::CsRead,
                DeviceAccess::CoRead,
                DeviceAccess::NcWrite,
                DeviceAccess::CoWrite,
                DeviceAccess::NcPWrite,
                DeviceAccess::FlushLine,
                DeviceAccess::FlushHostMemoryCache,
            ][one_of(8)];
            system.with_accelerator(device, |own, context| {
                own.begin(Burst { kind, lines }, Waits::default(), context.now(), context)
            });
        }
        for (socket, lines) in Socket::ALL.into_iter().zip(of_agents[2..].iter().cloned()) {
            let kind =
                [CoreAccess::Load, CoreAccess::Store, CoreAccess::NtStore, CoreAccess::Flush, CoreAccess::NtLoad]
                    [one_of(5)];
            system.with_coherent_host(HOST, |host, context| {
                host.begin(socket, Burst { kind, lines }, 4, context.now(), context);
            });
        }
        while system.step() != Stepped::Nowhere {}
        assert!(system.is_idle(), "{:?}", system.waiting());
        let logs: Vec<Observed> = devices
            .iter()
            .flat_map(|device| system.accelerator(*device).log.clone())
            .chain(system.coherent_host(HOST).log.clone())
            .collect();
        check_reads(&logs);
        for line in (0..LINES).map(|number| LineAddress(number * 16)) {
            check_copies(&system, devices, line, newest(&logs, line));
        }
    }
    system
}

fn newest(log: &[Observed], line: LineAddress) -> Version {
    let written = log.iter().filter(|seen| seen.line == line && seen.read_from.is_none());
    written.map(|seen| seen.version).max().unwrap_or_default()
}

/// A write's version is the time at which it was done, in ns.
fn check_reads(log: &[Observed]) {
    let mut written: BTreeMap<LineAddress, Vec<u64>> = BTreeMap::new();
    for seen in log.iter().filter(|seen| seen.read_from.is_none()) {
        written.entry(seen.line).or_default().push(seen.version.0);
    }
    for (seen, begun) in log.iter().filter_map(|seen| Some((seen, seen.read_from?))) {
        let begun = begun.as_ps() / 1000;
        let before = written.get(&seen.line).into_iter().flatten().filter(|write| **write < begun).max();
        let before = before.copied().unwrap_or(0);
        let version = seen.version.0;
        assert!(
            version >= before,
            "{seen:?} is older than the write at {before} ns, which was there before {begun} ns"
        );
        let is_known = version == 0 || written.get(&seen.line).is_some_and(|writes| writes.contains(&version));
        assert!(is_known, "nobody wrote {seen:?}");
    }
}

fn check_copies(system: &System, devices: &[DeviceId], line: LineAddress, newest: Version) {
    let host = system.coherent_host(HOST);
    let (last_level, cores) = host.copies(line);
    let at_devices = devices.iter().map(|device| system.accelerator(*device)).map(Accelerator::copy_of(line));
    let copies: Vec<(CacheState, Version)> = at_devices.chain(cores).collect();
    let valid = || copies.iter().filter(|(state, _)| *state != CacheState::Invalid);
    assert!(valid().all(|(_, version)| *version == newest), "line {line:?}: {copies:?}, written last: {newest:?}");
    assert!(!valid().any(|(state, _)| state.is_owner()) || valid().count() == 1, "line {line:?}: {copies:?}");
    let is_modified = valid().any(|(state, _)| *state == CacheState::Modified);
    let held = match last_level {
        LastLevel::Clean(version) | LastLevel::Dirty(version) => version,
        LastLevel::Nothing => host.memory(line),
    };
    assert!(is_modified || held == newest, "line {line:?}: the host holds {held:?}, written last: {newest:?}");
}
