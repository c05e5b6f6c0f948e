//! The machines that ship with Fencepost: each resolves, and each number says where it comes from.

use std::fs;

use fencepost_sim::config::topology::{DeviceId, HostId};
use fencepost_sim::config::{Machine, file_schema};
use fencepost_sim::switch::Scheme;

use super::{repository, shipped};

fn names() -> Vec<String> {
    let entries = fs::read_dir(repository("machines")).expect("the repository has machines");
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.expect("it can be listed").file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".toml").map(str::to_owned))
        .collect();
    names.sort();
    names
}

fn machine(name: &str) -> Machine {
    let text = shipped(name).expect("it is shipped");
    Machine::resolve(text, &shipped, &[]).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn every_machine_resolves_and_comes_back_from_its_json() {
    let names = names();
    assert!(
        [
            "pcs-table1",
            "pcs-table1-0sw",
            "pcs-table1-2sw",
            "pcs-table1-3sw",
            "pcs-table1-4sw",
            "pcs-table1-2hosts",
            "pcs-table1-tree"
        ]
        .iter()
        .all(|name| names.contains(&(*name).to_owned()))
    );
    for name in names {
        let machine = machine(&name);
        let json = machine.to_json();
        let again = Machine::from_json(&name, &json.to_string()).unwrap_or_else(|errors| panic!("{errors}"));
        assert_eq!(again, machine, "{name}");
    }
}

/// Lines that give a value, with their numbers. A list over several lines counts where it begins.
fn value_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_value = |line: &str| {
        let key = line.split('=').next().unwrap_or_default().trim();
        line.contains('=') && !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "_.\"-> ".contains(c))
    };
    text.lines().enumerate().map(|(index, line)| (index + 1, line)).filter(move |(_, line)| is_value(line))
}

/// Keys that say something of the file, not of the machine.
fn is_about_the_file(line: &str) -> bool {
    line.starts_with("extends") || line.starts_with("description")
}

#[test]
fn every_value_says_where_it_comes_from() {
    let mut values = 0;
    for name in names() {
        let source = shipped(&name).expect("it is shipped");
        for (number, line) in value_lines(&source.text).filter(|(_, line)| !is_about_the_file(line)) {
            let comment = line.split_once("# ").map_or("", |(_, comment)| comment.trim());
            assert!(comment.len() >= 7, "{}:{number}: where does this value come from? {line}", source.name);
            if comment.starts_with("not given") {
                let reason = comment.strip_prefix("not given by the study; chosen: ").unwrap_or_default();
                assert!(reason.len() >= 10, "{}:{number}: a chosen value needs its reason: {line}", source.name);
            }
            values += 1;
        }
    }
    assert!(values > 100, "only {values} values were looked at");
}

#[test]
fn the_numbers_of_the_study_are_those_of_its_table() {
    let json = machine("pcs-table1").to_json();
    let published = [
        ("/core/count", 8.0),
        ("/core/clock_ghz", 4.0),
        ("/cache/l1d/size_kib", 32.0),
        ("/cache/l1d/ways", 8.0),
        ("/cache/l1d/latency_cycles", 1.0),
        ("/cache/l2/size_kib", 256.0),
        ("/cache/l2/ways", 8.0),
        ("/cache/l2/latency_cycles", 10.0),
        ("/tlb/walk_cache_kib", 8.0),
        ("/tlb/walk_cache_ways", 4.0),
        ("/switch/persist_buffer/entries", 16.0),
        ("/switch/persist_buffer/tag_access_ns", 0.388),
        ("/switch/persist_buffer/data_access_ns", 0.785),
        ("/switch/persist_buffer/drain_threshold", 0.8),
        ("/switch/persist_buffer/drain_preset", 0.6),
        ("/pm/read_ns", 100.0),
        ("/pm/write_ns", 200.0),
        ("/pm/capacity_mib", 6144.0),
    ];
    for (pointer, value) in published {
        assert_eq!(json.pointer(pointer).and_then(serde_json::Value::as_f64), Some(value), "{pointer}");
    }
    assert_eq!(json["link"]["flit_format"], "68_byte");
    assert_eq!(json["cache"]["l2"]["shared"], true);
    let persist = serde_json::json!({"flush": "clflush", "fence": "mfence", "aarch64_flush": "dc_cvap"});
    assert_eq!(json["persist"], persist);
}

#[test]
fn the_machines_of_the_study_differ_in_their_switches_only() {
    let base = machine("pcs-table1");
    for (name, switches) in
        [("pcs-table1-0sw", 0), ("pcs-table1", 1), ("pcs-table1-2sw", 2), ("pcs-table1-3sw", 3), ("pcs-table1-4sw", 4)]
    {
        let machine = machine(name);
        let topology = machine.topology();
        let route = topology.route(HostId(0), DeviceId(0)).expect("the host reaches its PM");
        assert_eq!(route.switches.len(), switches, "{name}");
        let (mut ours, mut theirs) = (machine.to_json(), base.to_json());
        for json in [&mut ours, &mut theirs] {
            json["fabric"].take();
            json["description"].take();
        }
        assert_eq!(ours, theirs, "{name}");
    }
}

#[test]
fn without_a_switch_the_schemes_with_a_persist_buffer_are_refused() {
    let local = machine("pcs-table1-0sw");
    assert_eq!(local.topology().check_scheme(Scheme::Nopb), Ok(()));
    for scheme in [Scheme::Pb, Scheme::PbRf, Scheme::PbAdaptive] {
        let refusal = local.topology().check_scheme(scheme).expect_err("there is no switch");
        assert_eq!(
            refusal,
            format!("scheme {scheme} needs a switch to hold the persist buffer, and this machine has none")
        );
        for name in ["pcs-table1", "pcs-table1-2sw", "pcs-table1-4sw", "pcs-table1-2hosts"] {
            assert_eq!(machine(name).topology().check_scheme(scheme), Ok(()), "{name}");
        }
    }
}

#[test]
fn the_schema_is_one_that_editors_read() {
    let schema = file_schema();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    let entries = schema.pointer("/$defs/PersistBufferConfig/properties/entries").expect("it is defined");
    assert_eq!(
        (&entries["type"], &entries["minimum"], &entries["maximum"]),
        (&"integer".into(), &1.into(), &256.into())
    );
    assert!(entries["description"].as_str().is_some_and(|description| description.starts_with("Entries (PBEs)")));
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["properties"]["extends"]["type"], "string");
    assert_eq!(schema["required"], serde_json::json!(["description"]), "the rest may be inherited");
    assert_eq!(schema.pointer("/$defs/HostBridgeConfig/required"), None);
    assert_eq!(schema["if"], serde_json::json!({"not": {"required": ["extends"]}}));
    let alone = &schema["then"];
    assert_eq!(alone["properties"]["host_bridge"]["required"], serde_json::json!(["latency_ns"]));
    assert!(alone["required"].as_array().is_some_and(|required| required.contains(&"core".into())));
}
