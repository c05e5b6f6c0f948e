//! Whatever a file says, the answer is a machine or a list of errors with their places; never a panic.

use fencepost_sim::config::topology::{DeviceId, HostId};
use fencepost_sim::config::{Machine, SourceText};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::{changed, shipped};

/// What a careless hand does to one line of a file.
#[derive(Clone, Debug)]
enum Slip {
    Delete,
    Repeat,
    Value(&'static str),
    Key(&'static str),
    Cut(usize),
}

fn slip() -> impl Strategy<Value = Slip> {
    let values = [
        "0",
        "-1",
        "1e300",
        "nan",
        "true",
        "\"\"",
        "\"->\"",
        "[]",
        "[[1]]",
        "{}",
        "{ a = 1 }",
        "1979-05-27",
        "9".repeat(60).leak(),
    ];
    let keys = ["", "x", "core", "a.b", "\"\"", "\"a b\"", "[", "[[fabric", "extends", "é"];
    prop_oneof![
        Just(Slip::Delete),
        Just(Slip::Repeat),
        proptest::sample::select(values.to_vec()).prop_map(Slip::Value),
        proptest::sample::select(keys.to_vec()).prop_map(Slip::Key),
        (0usize..60).prop_map(Slip::Cut),
    ]
}

fn slipped(line: &str, slip: &Slip) -> Vec<String> {
    let (key, value) = line.split_once('=').unwrap_or((line, ""));
    match slip {
        Slip::Delete => vec![],
        Slip::Repeat => vec![line.to_owned(), line.to_owned()],
        Slip::Value(value) => vec![format!("{key}= {value}")],
        Slip::Key(key) => vec![format!("{key} ={value}")],
        Slip::Cut(length) => vec![line.chars().take(*length).collect()],
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_mutated_file_is_a_machine_or_a_list_of_errors(
        slips in proptest::collection::vec((any::<prop::sample::Index>(), slip()), 1..6),
    ) {
        let base = shipped("pcs-table1").expect("it is shipped").text;
        let mut lines: Vec<String> = base.lines().map(str::to_owned).collect();
        for (index, slip) in &slips {
            let at = index.index(lines.len());
            let changed = slipped(&lines[at], slip);
            lines.splice(at..=at, changed);
        }
        let source = SourceText { name: "mine.toml".to_owned(), text: lines.join("\n") };
        match Machine::resolve(source, &shipped, &[]) {
            Ok(machine) => {
                let again = Machine::from_json("mine", &machine.to_json().to_string());
                prop_assert_eq!(again.map_err(|errors| errors.to_string()), Ok(machine));
            }
            Err(errors) => {
                for error in errors.iter() {
                    let line = error.line.expect("files have lines") as usize;
                    prop_assert!(line >= 1 && line <= lines.len().max(1), "{}", error);
                    prop_assert!(!error.to_string().contains('\n'), "{}", error);
                }
            }
        }
    }
}

/// A fabric in which every switch and device hangs below something that was there before it.
fn hanging_fabric() -> impl Strategy<Value = String> {
    let parents =
        |count| proptest::collection::vec(proptest::collection::vec(any::<prop::sample::Index>(), 1..3), count);
    (1usize..4, parents(0..4), parents(1..4)).prop_map(|(hosts, switches, devices)| {
        let hosts: Vec<String> = (0..hosts).map(|index| format!("host{index}")).collect();
        let mut above = hosts.clone();
        let mut edges = Vec::new();
        let mut hang = |name: String, parents: &[prop::sample::Index], above: &[String]| {
            edges.extend(parents.iter().map(|parent| format!("{} -> {name}", above[parent.index(above.len())])));
            name
        };
        let mut switch_names = Vec::new();
        for (index, parents) in switches.iter().enumerate() {
            switch_names.push(hang(format!("switch{index}"), parents, &above));
            above.push(format!("switch{index}"));
        }
        let device = |(index, parents): (usize, &Vec<_>)| hang(format!("pm{index}"), parents, &above);
        let devices: Vec<String> = devices.iter().enumerate().map(device).collect();
        edges.dedup();
        format!("[fabric]\nhosts = {hosts:?}\nswitches = {switch_names:?}\ndevices = {devices:?}\nedges = {edges:?}\n")
    })
}

#[test]
fn a_fabric_that_is_accepted_has_one_route_for_each_device_that_a_host_reaches() {
    let mut runner = TestRunner::deterministic();
    let mut accepted = 0;
    for _ in 0..500 {
        let text = hanging_fabric().new_tree(&mut runner).expect("it can be made").current();
        let Ok(machine) = changed(&text) else { continue };
        accepted += 1;
        let topology = machine.topology();
        for host in (0..topology.hosts.len()).map(|index| HostId(index as u32)) {
            assert!(!topology.hosts[host.0 as usize].routes.is_empty(), "{text}");
            for device in (0..topology.devices.len()).map(|index| DeviceId(index as u32)) {
                let Some(route) = topology.route(host, device) else { continue };
                assert_eq!(route.edges.len(), route.switches.len() + 1, "{text}");
                for (switch, edge) in route.switches.iter().zip(&route.edges[1..]) {
                    assert_eq!(topology.downstream_edge(*switch, device), Some(*edge), "{text}");
                }
                for point in topology.persist_points(device) {
                    assert!(route.switches.contains(&point), "every host passes the persist point: {text}");
                }
            }
        }
    }
    assert!(accepted > 50, "only {accepted} of 500 fabrics were sound");
}
