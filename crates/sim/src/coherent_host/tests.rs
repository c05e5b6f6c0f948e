//! The host's side and accelerators together, on the machine of the Type-2 study.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::{CoreAccess, Socket};
use crate::bursts::{Bursts, FoundIn, Requester};
use crate::config::topology::{DeviceId, HostId};
use crate::config::{Machine, SourceText};
use crate::device::type2::burst::{Burst, Observed};
use crate::device::type2::host_side::LastLevel;
use crate::device::type2::messages::CacheState;
use crate::device::type2::{Accelerator, DeviceAccess};
use crate::line::{LineAddress, Version};
use crate::system::{Stepped, System};
use crate::traffic::Random;

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
    let requester = Requester::Device { name: "type2".to_owned(), access, observes: false };
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

/// Two devices and the cores of two sockets, all at the same lines at once: every read is of a version that was the
/// newest at some time while it was under way, nothing written is lost, and at rest all copies are alike.
#[test]
fn values_are_those_that_coherence_allows() {
    const LINES: u64 = 12;
    let sets = [
        "fabric.accelerators=[\"type2\", \"second\"]",
        "fabric.edges=[\"host0 -> type3\", \"host0 -> type2\", \"host0 -> second\"]",
        "type2.host_memory_cache.size_kib=1",
        "type2.transactions=6",
    ];
    let machine = machine(&sets);
    let devices = [TYPE2, DeviceId(2)];
    let mut system = System::with_coherence(&machine).expect("it can be built");
    let mut random = Random::new(7);
    for _ in 0..60 {
        let mut lines = |most: u64| -> Vec<LineAddress> {
            (0..=random.below(most)).map(|_| LineAddress(random.below(LINES) * 16)).collect()
        };
        let of_agents = [lines(12), lines(12), lines(12), lines(12)];
        let mut one_of = |count: u64| random.below(count) as usize;
        for (device, lines) in devices.into_iter().zip(of_agents.clone()) {
            let kind = [
                DeviceAccess::NcRead,
                DeviceAccess::CsRead,
                DeviceAccess::CoRead,
                DeviceAccess::NcWrite,
                DeviceAccess::CoWrite,
                DeviceAccess::NcPWrite,
                DeviceAccess::FlushLine,
            ][one_of(7)];
            system.with_accelerator(device, |own, context| {
                own.begin(Burst { kind, lines }, false, context.now(), context)
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
            .into_iter()
            .flat_map(|device| system.accelerator(device).log.clone())
            .chain(system.coherent_host(HOST).log.clone())
            .collect();
        check_reads(&logs);
        for line in (0..LINES).map(|number| LineAddress(number * 16)) {
            check_copies(&system, &devices, line, newest(&logs, line));
        }
    }
    let stats = system.stats();
    for (counter, least) in [("host0.requests", 500), ("host0.snoops", 100), ("type2.engine.evictions", 10)] {
        assert!(stats.counter(counter) > least, "{counter}: {}", stats.counter(counter));
    }
}

fn newest(log: &[Observed], line: LineAddress) -> Version {
    let written = log.iter().filter(|seen| seen.line == line && seen.read_from.is_none());
    written.map(|seen| seen.version).max().unwrap_or_default()
}

/// A write's version is the time at which it was done, in ns.
fn check_reads(log: &[Observed]) {
    let mut written: BTreeMap<LineAddress, Vec<u64>> = BTreeMap::new();
    for seen in log.iter().filter(|seen| seen.read_from.is_none()) {
        written.entry(seen.line).or_default().push(seen.version.0.into());
    }
    for (seen, begun) in log.iter().filter_map(|seen| Some((seen, seen.read_from?))) {
        let begun = begun.as_ps() / 1000;
        let before = written.get(&seen.line).into_iter().flatten().filter(|write| **write < begun).max();
        let before = before.copied().unwrap_or(0);
        let version = u64::from(seen.version.0);
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
