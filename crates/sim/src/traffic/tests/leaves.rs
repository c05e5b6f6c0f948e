//! Hosts and devices at the same leaf switches: what is near costs one switch, what is far three, and a link carries
//! both directions of requests.

use super::super::StreamConfig;
use super::reads;
use crate::config::{Machine, SourceText};
use crate::switch::Scheme;
use crate::traffic_experiment::{Experiment, Measurement};

/// Two leaves with a host and a device each, below one root, with `sets` on top.
fn leaves(sets: &[&str]) -> Machine {
    let text = include_str!("../../../../../machines/pcs-table1.toml").to_owned();
    let fabric = [
        "fabric.hosts=['host0', 'host1']",
        "fabric.switches=['leaf0', 'leaf1', 'root']",
        "fabric.devices=['pm0', 'pm1']",
        "fabric.edges=['host0 -> leaf0', 'host1 -> leaf1', 'leaf0 -> root', 'root -> leaf0', 'leaf1 -> root', 'root -> leaf1', \
         'leaf0 -> pm0', 'leaf1 -> pm1']",
    ];
    let sets: Vec<String> = fabric.iter().chain(sets).map(|&set| set.to_owned()).collect();
    let source = SourceText { name: "leaves".to_owned(), text };
    Machine::resolve(source, &|_| None, &sets).unwrap_or_else(|errors| panic!("{errors}"))
}

fn run(machine: &Machine, scheme: Scheme, streams: [Vec<StreamConfig>; 2]) -> Measurement {
    let experiment = Experiment {
        streams: streams.into(),
        warm_up_ns: 5_000.0,
        measure_ns: 20_000.0,
        seed: 1,
        ..Experiment::default()
    };
    experiment.run(machine, scheme).unwrap_or_else(|error| panic!("{error}"))
}

fn to(memory: &str) -> StreamConfig {
    StreamConfig { memory: memory.to_owned(), ..reads() }
}

fn number(measurement: &Measurement, host: usize, direction: &str, path: &str) -> f64 {
    let json = measurement.to_json();
    let pointer = format!("/hosts/{host}/streams/0/{direction}/{path}");
    json.pointer(&pointer).and_then(serde_json::Value::as_f64).unwrap_or_else(|| panic!("{pointer} is no number"))
}

#[test]
fn a_far_device_costs_two_switches_and_two_links_more_than_a_near_one() {
    let machine = leaves(&["link.bandwidth_gb_per_s=68", "switch.crossbar_flit_ns=0", "pm.burst_ns=0"]);
    let mean = |host: usize, memory: &str| {
        let mut streams = [Vec::new(), Vec::new()];
        streams[host].push(StreamConfig { dependent: true, ..to(memory) });
        number(&run(&machine, Scheme::Nopb, streams), host, "reads", "latency_ns/mean")
    };
    // Each way a switch of four stages of 2.5; a link of 25 and a flit of 1 there, and two of them back.
    let farther = 2.0 * (2.0 * 10.0 + 26.0 + 27.0);
    for (host, near, far) in [(0, "pm0", "pm1"), (1, "pm1", "pm0")] {
        let difference = mean(host, far) - mean(host, near);
        assert!((difference - farther).abs() < 1e-9, "{difference} of host {host}");
    }
}

#[test]
fn requests_of_one_side_and_answers_to_the_other_share_a_link() {
    let machine = leaves(&["link.bandwidth_gb_per_s=4"]);
    let busy = |memory: &str| StreamConfig { outstanding: 32, ..to(memory) };
    let writes = StreamConfig { reads: 0, writes: 1, ..busy("pm1") };
    let bandwidth =
        |measurement: &Measurement, host, direction| number(measurement, host, direction, "bandwidth_gb_per_s");
    // Both put lines onto `leaf0 -> root`: the writes of host 0 to pm1, and what pm0 answers host 1.
    let alone = run(&machine, Scheme::Nopb, [vec![writes.clone()], vec![]]);
    let alone = bandwidth(&alone, 0, "writes");
    let both = run(&machine, Scheme::Nopb, [vec![writes], vec![busy("pm0")]]);
    let (written, read) = (bandwidth(&both, 0, "writes"), bandwidth(&both, 1, "reads"));
    assert!(alone > 2.5 && written > 0.5 && read > 0.5, "{alone} alone; {written} and {read}");
    assert!(written + read < 4.0, "{written} and {read}");
    let names: Vec<String> = both.to_json()["links"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|link| link["name"].as_str().expect("a name").to_owned())
        .collect();
    let mut once = names.clone();
    once.sort();
    once.dedup();
    assert_eq!((names.len(), once.len()), (12, 12), "{names:?}");
}

#[test]
fn all_hosts_at_all_devices_come_to_their_ends_under_every_scheme() {
    let machine =
        leaves(&["link.request_credits=1", "link.request_with_data_credits=1", "link.data_response_credits=1"]);
    for scheme in Scheme::ALL {
        let mixed = |memory: &str| StreamConfig { outstanding: 32, writes: 1, requests: Some(400), ..to(memory) };
        let streams = || vec![mixed("pm0"), mixed("pm1")];
        let measurement = run(&machine, scheme, [streams(), streams()]);
        for host in 0..2 {
            assert!(number(&measurement, host, "reads", "count") > 0.0, "{scheme}");
        }
    }
}
