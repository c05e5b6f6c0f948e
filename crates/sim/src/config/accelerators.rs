//! What an accelerator needs to be coherent: a link of its own to one host that carries CXL.cache, memory, and a
//! coherence engine.

use super::fabric::{Bias, InterleaveConfig};
use super::topology::{Connection, DeviceId, Edge, EdgeId, Topology, Vertex};
use super::wiring::{Wiring, normalised, offer};
use fencepost_kernel::link::FlitFormat;
use fencepost_kernel::message::{MessageClass, back_invalidate, cache};

/// The most accelerators of a host: so many devices its home agent can tell apart.
pub const ACCELERATORS_MAX: usize = crate::device::type2::DEVICES_MAX;

/// Notes what is wrong with the accelerators of a fabric whose links are typed.
pub(super) fn check(wiring: &mut Wiring<'_>, topology: &Topology) {
    for name in wiring.fabric.bias.keys().filter(|name| !wiring.fabric.accelerators.contains(name)) {
        let offer = offer(name, wiring.fabric.accelerators.iter().map(String::as_str));
        wiring.fault(&["bias", name], format!("{name:?} is no accelerator, and has no memory with bias{offer}"));
    }
    if topology.accelerators.is_empty() {
        return;
    }
    for (table, what) in [("accelerator", "the memory that it has"), ("type2", "its coherence engine")] {
        if wiring.machine.entry(table).is_none() {
            wiring.fault(&["accelerators"], format!("an accelerator needs the table [{table}]: {what}"));
        }
    }
    let interleaved = wiring.fabric.interleave.iter();
    let shared = |(_, set): &(&String, &InterleaveConfig)| {
        set.devices.iter().any(|name| wiring.fabric.accelerators.contains(name))
    };
    for set in interleaved.filter(shared).map(|(set, _)| set.clone()).collect::<Vec<_>>() {
        let message = "an accelerator is the home of its memory, which cannot be interleaved with that of others";
        wiring.fault(&["interleave", &set, "devices"], message);
    }
    for device in topology.accelerators.clone().map(|index| DeviceId(index as u32)) {
        check_link(wiring, topology, device);
    }
    for (index, host) in topology.hosts.iter().enumerate() {
        let count = host.edges.iter().filter(|edge| leads_to_accelerator(topology, **edge)).count();
        if count > ACCELERATORS_MAX {
            let message = format!("{} has {count} accelerators: at most {ACCELERATORS_MAX} can be", host.name);
            wiring.fault_at("hosts", index, message);
        }
    }
}

fn leads_to_accelerator(topology: &Topology, edge: EdgeId) -> bool {
    matches!(topology.edge(edge).to, Vertex::Device(device) if topology.is_accelerator(device))
}

/// Notes what a device that snoops its host lacks.
fn check_back_invalidation(wiring: &mut Wiring<'_>, topology: &Topology, edge: EdgeId, name: &str) {
    if wiring.machine.entry("type2").and_then(|table| table.entry("snoop_filter")).is_none() {
        let message = format!("{name} snoops its host, and needs a filter: [type2.snoop_filter] is missing");
        return wiring.fault(&["bias", name], message);
    }
    let Some(link) = topology.link_config(edge) else { return };
    let edge = &topology.edge(edge).name;
    if link.flit_format == FlitFormat::Bytes68 {
        let message = format!(
            "{name} snoops its host, which flits of 68 bytes do not carry: give `{edge}` a link.flit_format of 256 bytes"
        );
        return wiring.fault(&["bias", name], message);
    }
    if let Some(class) = back_invalidate::CLASSES.into_iter().find(|class| link.credits.of(*class) == 0) {
        let key = class.description().credits.key;
        let message = format!(
            "{name} snoops its host, and the link `{edge}` carries no such snoops: `{key}` is missing in [link]"
        );
        wiring.fault(&["bias", name], message);
    }
}

/// Notes a fault where an edge is written.
fn fault_at_edge(wiring: &mut Wiring<'_>, edge: &Edge, message: String) {
    let fabric = wiring.fabric;
    let (list, edges) = match edge.connection {
        Connection::Link => ("edges", &fabric.edges),
        Connection::Local => ("local_edges", &fabric.local_edges),
    };
    let index = edges.iter().position(|text| normalised(text) == edge.name).expect("it was read from there");
    wiring.fault_at(list, index, message);
}

/// Notes what is wrong with the link of one.
fn check_link(wiring: &mut Wiring<'_>, topology: &Topology, device: DeviceId) {
    let index = device.0 as usize - topology.accelerators.start;
    let name = topology.name(Vertex::Device(device)).to_owned();
    let edges = &topology.devices[device.0 as usize].upstream;
    if edges.len() > 1 {
        let message = format!("{name} is connected {} times; the coherence engine has one port", edges.len());
        // The last of them was one too many.
        let extra = topology.edge(edges[edges.len() - 1]);
        return fault_at_edge(wiring, extra, message);
    }
    let Some(edge) = edges.first().copied() else { return };
    match (topology.edge(edge).from, topology.edge(edge).connection) {
        (Vertex::Switch(switch), _) => {
            let switch = topology.name(Vertex::Switch(switch));
            let message =
                format!("{name} lies behind {switch}, and no switch carries CXL.cache; connect it to a host directly");
            fault_at_edge(wiring, topology.edge(edge), message);
        }
        (_, Connection::Local) => {
            let message = format!("{name} needs a CXL link; a local edge is none");
            fault_at_edge(wiring, topology.edge(edge), message);
        }
        _ => {
            let credits = topology.link_config(edge).map(|link| link.credits);
            if wiring.fabric.bias.get(&name) == Some(&Bias::BackInvalidate) {
                check_back_invalidation(wiring, topology, edge, &name);
            }
            let missing = cache::CLASSES.into_iter().find(|class| credits.is_some_and(|given| given.of(*class) == 0));
            if let Some(class) = missing {
                let key = class.description().credits.key;
                let message = format!(
                    "the link `{}` does not carry CXL.cache, which {name} speaks: `{key}` is missing in [link]",
                    topology.edge(edge).name
                );
                return wiring.fault_at("accelerators", index, message);
            }
            let transactions = wiring.machine.at(&["type2", "transactions"]).integer().unwrap_or(0);
            for class in [MessageClass::H2dRsp, MessageClass::H2dData] {
                let places = credits.map_or(0, |given| i128::from(given.of(class)));
                if places < transactions {
                    let key = class.description().credits.key;
                    let message = format!(
                        "`{key}` is {places}, and a device has room for the responses to all of its requests: \
                         {transactions} (type2.transactions)"
                    );
                    wiring.fault_at("accelerators", index, message);
                }
            }
        }
    }
}
