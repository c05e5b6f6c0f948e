//! The machines on which litmus tests run: those that ship, with caches so small that lines can be forced out of them,
//! and a tree of switches.

use fencepost_sim::config::Machine;
use serde_json::{Value, json};

/// A machine for litmus tests: one that ships, with changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fabric {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub description: &'static str,
    /// The machine that it is made of.
    pub machine: &'static str,
    /// What is changed in it: `PATH=VALUE`.
    pub sets: &'static [&'static str],
}

/// All of them.
pub const FABRICS: [Fabric; 5] = [
    Fabric { name: "local", description: "PM as local memory", machine: "pcs-table1-0sw", sets: &[] },
    Fabric { name: "switch", description: "PM behind one switch", machine: "pcs-table1", sets: &[] },
    Fabric { name: "chain2", description: "PM behind two switches in a row", machine: "pcs-table1-2sw", sets: &[] },
    Fabric { name: "chain4", description: "PM behind four switches in a row", machine: "pcs-table1-4sw", sets: &[] },
    Fabric {
        name: "tree",
        description: "two PM devices that share a range of addresses behind two switches behind a third; one is 500 ns farther away",
        machine: "pcs-table1",
        sets: &[
            "fabric.switches=[\"switch0\", \"switch1\", \"switch2\"]",
            "fabric.devices=[\"pm0\", \"pm1\"]",
            "fabric.edges=[\"host0 -> switch0\", \"switch0 -> switch1\", \"switch0 -> switch2\", \"switch1 -> pm0\", \"switch2 -> pm1\"]",
            "fabric.interleave.both={devices=[\"pm0\", \"pm1\"], granularity_bytes=256}",
            "fabric.link.\"switch1 -> pm0\"={latency_ns=500.0}",
        ],
    },
];

/// What all machines have in common: caches in which 6 lines of a set are too many, and no tables that snapshots would
/// only carry along.
fn small(cores: usize) -> Vec<(&'static str, Value)> {
    vec![
        ("core.count", json!(cores)),
        ("cache.l1i.size_kib", json!(4)),
        ("cache.l1d.size_kib", json!(4)),
        ("cache.l2.size_kib", json!(8)),
        ("cache.l2.ways", json!(4)),
        ("branch_predictor.local_bits", json!(4)),
        ("branch_predictor.global_bits", json!(4)),
        ("branch_predictor.target_bits", json!(4)),
        ("tlb.enabled", json!(false)),
    ]
}

/// `machine` with so many cores, small caches, and `changes` where it has such keys.
///
/// # Errors
/// Why there is no such machine.
pub fn varied(machine: &Machine, cores: usize, changes: &[(&'static str, Value)]) -> Result<Machine, String> {
    let mut json = machine.to_json();
    for (key, value) in small(cores).iter().chain(changes) {
        let path = format!("/{}", key.replace('.', "/"));
        // A machine without a switch has no keys of switches and links.
        if let Some(place) = json.pointer_mut(&path) {
            *place = value.clone();
        }
    }
    Machine::from_json("litmus", &json.to_string()).map_err(|errors| errors.to_string())
}
