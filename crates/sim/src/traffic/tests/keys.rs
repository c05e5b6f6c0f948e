//! Keys that streams share on whole machines: nothing is stale where the persist point is shared, or where hosts keep
//! to lines of their own; what the first switch acknowledges unsafely is, and the oracle sees it.

use super::super::{Pattern, SharedBy, StreamConfig};
use super::reads;
use crate::config::{Machine, SourceText};
use crate::switch::Scheme;
use crate::system::{Stepped, System};
use crate::traffic_experiment::{Experiment, Measurement};
use fencepost_kernel::time::{Duration, Time};

/// Two hosts, each at a leaf of its own, below a root with the PM.
fn tree(sets: &[&str]) -> Machine {
    let root = include_str!("../../../../../machines/pcs-table1.toml");
    let text = include_str!("../../../../../machines/pcs-table1-tree.toml").to_owned();
    let lookup = |_: &str| Some(SourceText { name: "pcs-table1".to_owned(), text: root.to_owned() });
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let source = SourceText { name: "tree".to_owned(), text };
    Machine::resolve(source, &lookup, &sets).unwrap_or_else(|errors| panic!("{errors}"))
}

const LEAVES: &str = r#"fabric.persist_points=["leaf0","leaf1"]"#;
const LEAVES_AND_ROOT: &str = r#"fabric.persist_points=["leaf0","leaf1","root"]"#;
const UNSAFE: &str = "fabric.pm_sharing=shared_unsafe";
const PRIVATE: &str = "fabric.pm_sharing=private";

/// Few keys of two lines, half of the requests puts.
fn client(shared_by: SharedBy) -> StreamConfig {
    StreamConfig {
        memory: "pm".to_owned(),
        pattern: Pattern::Zipfian,
        footprint_bytes: 64 * 128,
        request_bytes: 128,
        reads: 1,
        writes: 1,
        dependent: true,
        inject_jitter_ns: 50.0,
        shared_by,
        ..reads()
    }
}

fn experiment(shared_by: SharedBy) -> Experiment {
    Experiment {
        streams: vec![vec![client(shared_by); 4]],
        warm_up_ns: 0.0,
        measure_ns: 45_000.0,
        seed: 1,
        ..Experiment::default()
    }
}

fn measured(machine: &Machine, scheme: Scheme, shared_by: SharedBy) -> Measurement {
    experiment(shared_by).run(machine, scheme).unwrap_or_else(|error| panic!("{error}"))
}

fn stale_reads(measurement: &Measurement) -> u64 {
    let streams = (0..2).flat_map(|host| (0..4).map(move |stream| format!("host{host}.stream{stream}")));
    streams
        .map(|stream| {
            let puts = measurement.stats.counter(&format!("{stream}.writes.requests"));
            let gets = measurement.stats.counter(&format!("{stream}.reads.requests"));
            assert!(puts > 10 && gets > 10, "{stream} did {puts} and {gets}");
            measurement.stats.counter(&format!("{stream}.stale_reads"))
        })
        .sum()
}

#[test]
fn a_shared_persist_point_lets_no_host_see_anything_stale() {
    let last: [&[&str]; 2] = [&[], &[r#"fabric.persist_points=["root"]"#]];
    for (sets, scheme) in last.into_iter().flat_map(|sets| Scheme::ALL.map(|scheme| (sets, scheme))) {
        let measurement = measured(&tree(sets), scheme, SharedBy::Hosts);
        assert_eq!(stale_reads(&measurement), 0, "{scheme}, {sets:?}");
        assert!(measurement.to_json()["overwritten"] == 0);
    }
}

#[test]
fn hosts_that_keep_to_lines_of_their_own_see_nothing_stale_wherever_persists_are_accepted() {
    for (points, scheme) in [LEAVES, LEAVES_AND_ROOT].into_iter().flat_map(|one| Scheme::ALL.map(|two| (one, two))) {
        let measurement = measured(&tree(&[points, PRIVATE]), scheme, SharedBy::Host);
        assert_eq!(stale_reads(&measurement), 0, "{scheme}, {points}");
    }
}

#[test]
fn the_oracle_finds_what_the_first_switch_acknowledged_unsafely() {
    // What `pb` acknowledges leaves at once, and arrives before a read that begins after the acknowledgement: unless it
    // is held up.
    const SLOW: &str = r#"fabric.link."leaf0 -> root"={latency_ns=500.0}"#;
    for (scheme, sets) in [(Scheme::PbRf, &[LEAVES, UNSAFE][..]), (Scheme::Pb, &[LEAVES, UNSAFE, SLOW])] {
        let machine = tree(sets);
        let measurement = measured(&machine, scheme, SharedBy::Hosts);
        assert!(stale_reads(&measurement) > 0, "{scheme}: the hazard does not show");
        assert!(measurement.to_json()["overwritten"].as_u64() > Some(0), "{scheme}: no late drain overwrites anything");
        assert_eq!(stale_reads(&measured(&machine, Scheme::Nopb, SharedBy::Hosts)), 0, "PM acknowledges");
    }
}

#[test]
fn copies_that_nobody_takes_away_are_stale_once_another_host_has_put() {
    let caching = |shared_by| StreamConfig { caches: true, ..client(shared_by) };
    for (shared_by, is_stale) in [(SharedBy::Hosts, true), (SharedBy::Host, false)] {
        let experiment = Experiment { streams: vec![vec![caching(shared_by); 4]], ..experiment(shared_by) };
        let measurement = experiment.run(&tree(&[]), Scheme::Nopb).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(stale_reads(&measurement) > 0, is_stale, "{shared_by:?}");
        assert!(measurement.to_json()["overwritten"] == 0, "puts go to the device, one after the other");
        let least = |path: &str| measurement.to_json()["hosts"][0]["streams"][0]["reads"]["latency_ns"][path].clone();
        assert!(least("mean").as_f64() < Some(100.0), "most gets find a copy: {}", least("mean"));
    }
}

#[test]
fn a_put_waits_until_the_one_before_it_is_persistent() {
    let one_key = StreamConfig { footprint_bytes: 128, reads: 0, inject_jitter_ns: 0.0, ..client(SharedBy::Hosts) };
    let puts = |clients: usize| {
        let experiment = Experiment {
            streams: vec![vec![one_key.clone(); clients]],
            warm_up_ns: 10_000.0,
            ..experiment(SharedBy::Hosts)
        };
        let json = experiment.run(&tree(&[]), Scheme::Nopb).unwrap().to_json();
        let writes = |host: usize, stream: usize| json["hosts"][host]["streams"][stream]["writes"].clone();
        let all: Vec<_> = (0..2).flat_map(|host| (0..clients).map(move |stream| (host, stream))).collect();
        let count: u64 = all.iter().map(|&(host, stream)| writes(host, stream)["count"].as_u64().unwrap()).sum();
        (
            count,
            writes(0, 0)["latency_ns"]["mean"].as_f64().unwrap(),
            writes(0, 0)["parts_ns"]["core"].as_f64().unwrap(),
        )
    };
    let (of_two, latency, wait) = puts(1);
    let alone = latency - wait;
    assert!((wait / alone - 1.0).abs() < 0.1, "each waits for one put of the other: {wait} and {alone}");
    let (of_eight, _, wait) = puts(4);
    assert!(of_eight.abs_diff(of_two) <= 2, "one key is put by one at a time: {of_two}, {of_eight}");
    assert!((wait / alone - 7.0).abs() < 0.3, "each waits for seven: {wait} and {alone}");
}

#[test]
fn the_first_stale_get_says_who_put_and_who_read_less() {
    let unsafe_leaves = tree(&[LEAVES, UNSAFE]);
    let json = measured(&unsafe_leaves, Scheme::PbRf, SharedBy::Hosts).to_json();
    let story = &json["first_stale_read"];
    let time = |deed: &str, when: &str| story[deed][when].as_f64().unwrap_or_else(|| panic!("{story}"));
    assert_ne!(story["put"]["by"]["host"], story["get"]["by"]["host"], "a host's own leaf answers it");
    assert!(story["get"]["version"].as_u64().unwrap() < story["put"]["version"].as_u64().unwrap());
    assert!(time("put", "begun_ns") < time("put", "acknowledged_ns"));
    assert!(time("put", "acknowledged_ns") <= time("get", "begun_ns"));
    assert!(time("get", "begun_ns") < time("get", "answered_ns"));
    assert!(measured(&tree(&[]), Scheme::PbRf, SharedBy::Hosts).to_json()["first_stale_read"].is_null());
}

#[test]
fn a_client_that_modifies_reads_before_each_put() {
    let experiment = Experiment {
        streams: vec![vec![StreamConfig { reads: 0, modifies: true, ..client(SharedBy::Host) }]],
        ..experiment(SharedBy::Host)
    };
    let json = experiment.run(&tree(&[]), Scheme::PbRf).unwrap().to_json();
    let stream = &json["hosts"][0]["streams"][0];
    let [gets, puts] = ["reads", "writes"].map(|kind| stream[kind]["count"].as_u64().unwrap());
    assert!(puts > 10 && (gets == puts || gets == puts + 1), "{gets} gets and {puts} puts");
    assert_eq!(stream["stale_reads"], 0);
}

#[test]
fn clients_that_read_the_latest_read_what_was_put_last() {
    let latest = StreamConfig { pattern: Pattern::Latest, footprint_bytes: 4096 * 128, ..client(SharedBy::Hosts) };
    let experiment = Experiment { streams: vec![vec![latest; 4]], ..experiment(SharedBy::Hosts) };
    let mut system = experiment.system(&tree(&[]), Scheme::PbRf).unwrap();
    system.start();
    run_until(&mut system, Time::ZERO + Duration::from_ns(20_000.0));
    let versions: Vec<_> = system.keys().promises().map(|(_, version)| version.0).collect();
    assert!(versions.len() > 40 && versions.iter().all(|version| *version <= 1), "no key is put twice: {versions:?}");
}

#[test]
fn a_power_cut_loses_no_acknowledged_put_of_a_chain_of_buffers_or_a_tree() {
    let machines = [tree(&[]), tree(&[LEAVES_AND_ROOT, PRIVATE]), tree(&[LEAVES, PRIVATE])];
    for (number, machine) in machines.iter().enumerate() {
        let shared_by = if number == 0 { SharedBy::Hosts } else { SharedBy::Host };
        for scheme in Scheme::ALL {
            let mut system = experiment(shared_by).system(machine, scheme).unwrap();
            system.start();
            for cut in 1..=40 {
                run_until(&mut system, Time::ZERO + Duration::from_ns(f64::from(cut) * 331.7));
                let mut after = system.clone();
                after.power_fail();
                after.recover();
                while after.step() != Stepped::Nowhere {}
                let promises: Vec<_> = system.keys().promises().collect();
                for (line, promised) in promises {
                    let durable = after.durable_version(line);
                    assert!(durable >= promised, "{scheme}, machine {number}, cut {cut}: {line:?} is {durable:?}");
                }
            }
            assert!(system.keys().promises().filter(|(_, version)| version.0 > 1).count() > 10);
        }
    }
}

fn run_until(system: &mut System, time: Time) {
    while system.next_time().is_some_and(|next| next <= time) {
        system.step();
    }
}

#[test]
fn sharing_that_cannot_be_is_refused_with_the_reason() {
    let refused = |machine: &Machine, streams: Vec<Vec<StreamConfig>>| {
        let experiment = Experiment { streams, ..experiment(SharedBy::Hosts) };
        experiment.run(machine, Scheme::Nopb).expect_err("it is refused").to_string()
    };
    let shared = client(SharedBy::Hosts);
    let private = tree(&[LEAVES, PRIVATE]);
    assert!(refused(&private, vec![vec![shared.clone()]]).contains("fabric.pm_sharing is \"private\""));
    let other = StreamConfig { request_bytes: 64, ..shared.clone() };
    assert!(refused(&tree(&[]), vec![vec![shared.clone(), other]]).contains("same memory, footprint and size"));
    assert!(refused(&tree(&[]), vec![vec![shared.clone(), client(SharedBy::Stream)]]).contains("all streams do"));
    let dram = StreamConfig { memory: "dram".to_owned(), ..shared.clone() };
    assert!(refused(&tree(&[]), vec![vec![dram]]).contains("no DRAM"));
    let lone = r#"fabric.devices=["pm0","pm1"]"#;
    let edges = r#"fabric.edges=["host0 -> leaf0","host1 -> leaf1","leaf0 -> root","leaf1 -> root","root -> pm0","leaf0 -> pm1"]"#;
    assert!(refused(&tree(&[lone, edges]), vec![vec![shared]]).contains("host1 does not reach all pm"));
}
