//! Checks a `[fabric]` table and makes a [`Topology`] of it. Every mistake is reported at the line of the edge or name
//! that makes it.

use std::collections::BTreeMap;

use garde::Validate;
use serde::de::DeserializeOwned;

use super::check::Faults;
use super::fabric::FabricConfig;
use super::schema::join;
use super::sections::typed;
use super::topology::{
    Connection, DeviceId, DeviceNode, Edge, EdgeId, HostId, HostNode, SwitchId, SwitchNode, Topology, Vertex,
};
use super::tree::Node;
use super::{accelerators, persist_points, ranges, routes, rules};
use crate::address_space::OWN_DRAM;
use crate::device::{DramConfig, MediumConfig, PmConfig, PmMedium};
use crate::nearest::nearest;

/// Most hosts, switches and devices: port-based routing tells so many apart by 12 bits (CXL 3.1 specification, PBR).
const VERTICES_MAX: usize = 1 << 12;

/// Most edges: as many as connect 128 hosts with 128 devices directly.
const EDGES_MAX: usize = 1 << 14;

/// A `[fabric]` table while it is checked.
pub(super) struct Wiring<'a> {
    pub fabric: &'a FabricConfig,
    pub machine: &'a Node,
    faults: &'a mut Faults,
    /// Whether no fault was found in the graph so far.
    is_sound: bool,
}

/// Builds the graph of `fabric`, which stands in `machine`; none, with the reasons in `faults`, if something is wrong
/// with it.
pub(super) fn topology(fabric: &FabricConfig, machine: &Node, faults: &mut Faults) -> Option<Topology> {
    let mut wiring = Wiring { fabric, machine, faults, is_sound: true };
    let mut topology = Topology::default();
    if !wiring.check_numbers() {
        return None;
    }
    wiring.name_vertices(&mut topology);
    wiring.connect(&mut topology);
    wiring.check_override_names();
    if wiring.is_sound {
        attach(&mut topology);
        wiring.check_links_given_twice(&topology);
        routes::find(&mut wiring, &mut topology);
    }
    // What the single components are like is checked whether or not they are connected well.
    let is_configured = wiring.configure(&mut topology).is_some();
    if wiring.is_sound && is_configured {
        persist_points::place(&mut wiring, &mut topology);
        ranges::lay_out(&mut wiring, &mut topology);
    }
    (wiring.is_sound && is_configured).then_some(topology)
}

impl Wiring<'_> {
    /// Notes a fault at a key below `[fabric]`; a number as its last step means an element of a list.
    pub fn fault(&mut self, path: &[&str], message: impl Into<String>) {
        self.is_sound = false;
        let path: Vec<&str> = std::iter::once("fabric").chain(path.iter().copied()).collect();
        let origin = self.machine.origin_of(&path);
        let steps = path.iter().filter(|step| !step.starts_with(|c: char| c.is_ascii_digit()));
        let key = steps.fold(String::new(), |key, step| join(&key, step));
        self.faults.add(origin, key, message);
    }

    /// Whether no fault was found in the graph so far.
    pub fn is_sound(&self) -> bool {
        self.is_sound
    }

    /// Notes a fault at the element `index` of a list of the table.
    pub fn fault_at(&mut self, list: &str, index: usize, message: impl Into<String>) {
        self.fault(&[list, &index.to_string()], message);
    }

    /// Whether there are not more names and edges than a fabric can have.
    fn check_numbers(&mut self) -> bool {
        let fabric = self.fabric;
        let vertices = [
            ("hosts", fabric.hosts.len()),
            ("switches", fabric.switches.len()),
            ("devices", fabric.devices.len()),
            ("expanders", fabric.expanders.len()),
            ("accelerators", fabric.accelerators.len()),
        ];
        let in_all: usize = vertices.iter().map(|(_, names)| names).sum();
        if in_all > VERTICES_MAX {
            let (most, _) = vertices.into_iter().max_by_key(|(_, names)| *names).expect("there are lists");
            let message = format!("{in_all} hosts, switches and devices in all: at most {VERTICES_MAX} can be");
            self.fault(&[most], message);
        }
        let edges = fabric.edges.len() + fabric.local_edges.len();
        if edges > EDGES_MAX {
            self.fault(&["edges"], format!("{edges} edges: at most {EDGES_MAX} can be"));
        }
        self.is_sound
    }

    /// Makes the vertices of all names; a name may be given once.
    fn name_vertices(&mut self, topology: &mut Topology) {
        let fabric = self.fabric;
        if fabric.hosts.is_empty() {
            self.fault(&["hosts"], "a machine needs a host, for example \"host0\"");
        }
        let mut seen: Vec<&str> = Vec::new();
        let lists = [
            ("hosts", &fabric.hosts),
            ("switches", &fabric.switches),
            ("devices", &fabric.devices),
            ("expanders", &fabric.expanders),
            ("accelerators", &fabric.accelerators),
        ];
        for (list, names) in lists {
            for (index, name) in names.iter().enumerate() {
                if !is_name(name) {
                    self.fault_at(
                        list,
                        index,
                        format!("{name:?} is not a name: a letter, then letters, digits and `_`"),
                    );
                } else if name == OWN_DRAM {
                    self.fault_at(list, index, format!("{name:?} is the name of each host's own DRAM"));
                } else if seen.contains(&name.as_str()) {
                    self.fault_at(list, index, format!("the name {name:?} is given twice"));
                }
                seen.push(name);
            }
        }
        topology.hosts = fabric.hosts.iter().map(|name| HostNode::new(name)).collect();
        topology.switches = fabric.switches.iter().map(|name| SwitchNode::new(name)).collect();
        topology.devices = device_names(fabric).map(|name| DeviceNode::new(name)).collect();
        topology.accelerators = device_names(fabric).count() - fabric.accelerators.len()..topology.devices.len();
    }

    /// Makes the edges that `edges` and `local_edges` list.
    fn connect(&mut self, topology: &mut Topology) {
        let fabric = self.fabric;
        let mut names: BTreeMap<&str, Vertex> = BTreeMap::new();
        let named = |index: usize| index as u32;
        names.extend(fabric.hosts.iter().enumerate().map(|(i, name)| (name.as_str(), Vertex::Host(HostId(named(i))))));
        names.extend(
            fabric.switches.iter().enumerate().map(|(i, name)| (name.as_str(), Vertex::Switch(SwitchId(named(i))))),
        );
        names.extend(
            device_names(fabric).enumerate().map(|(i, name)| (name.as_str(), Vertex::Device(DeviceId(named(i))))),
        );
        let lists =
            [("edges", &fabric.edges, Connection::Link), ("local_edges", &fabric.local_edges, Connection::Local)];
        for (list, edges, connection) in lists {
            for (index, text) in edges.iter().enumerate() {
                let Some((from, to)) = self.ends(list, index, text, &names) else { continue };
                let name = normalised(text);
                if topology.edges.iter().any(|edge| (edge.from, edge.to) == (from, to)) {
                    self.fault_at(list, index, format!("`{name}` is connected twice"));
                } else if let Some(reason) = misplaced(from, to, connection) {
                    self.fault_at(list, index, format!("`{name}` cannot be: {reason}"));
                } else if let Some(other) = excluded(topology, to, connection) {
                    let message = format!(
                        "`{name}` cannot be beside `{other}`: a local device has no port but the one on its host's controller"
                    );
                    self.fault_at(list, index, message);
                } else {
                    topology.edges.push(Edge { name, from, to, connection });
                }
            }
        }
    }

    /// The ends of an edge as it is written.
    fn ends(
        &mut self,
        list: &str,
        index: usize,
        text: &str,
        names: &BTreeMap<&str, Vertex>,
    ) -> Option<(Vertex, Vertex)> {
        let parts: Vec<&str> = text.split("->").map(str::trim).collect();
        let [from, to] = parts[..] else {
            self.fault_at(list, index, format!("{text:?} is not an edge; an edge is written \"FROM -> TO\""));
            return None;
        };
        let mut vertex = |name: &str| {
            let found = names.get(name).copied();
            if found.is_none() {
                let offer = offer(name, names.keys().copied());
                self.fault_at(list, index, format!("there is no host, switch or device {name:?}{offer}"));
            }
            found
        };
        let (from, to) = (vertex(from), vertex(to));
        Some((from?, to?))
    }

    /// Every override must be of something.
    fn check_override_names(&mut self) {
        let fabric = self.fabric;
        let edges: Vec<String> = fabric.edges.iter().map(|edge| normalised(edge)).collect();
        let kinds: [(&str, Vec<&String>, &str, &[String]); 5] = [
            ("switch", fabric.switch.keys().collect(), "switches", &fabric.switches),
            ("link", fabric.link.keys().collect(), "edges", &edges),
            ("pm", fabric.pm.keys().collect(), "devices", &fabric.devices),
            ("expander", fabric.expander.keys().collect(), "expanders", &fabric.expanders),
            ("accelerator", fabric.accelerator.keys().collect(), "accelerators", &fabric.accelerators),
        ];
        for (kind, overridden, list, valid) in kinds {
            for name in overridden.into_iter().filter(|name| !valid.contains(name)) {
                let offer = offer(name, valid.iter().map(String::as_str));
                self.fault(&[kind, name], format!("{name:?} is not in fabric.{list}{offer}"));
            }
        }
    }

    /// Two edges between the same switches in opposite directions are one link, which is alike in both.
    fn check_links_given_twice(&mut self, topology: &Topology) {
        for edge in (0..topology.edges.len() as u32).map(EdgeId) {
            let (own, first) = (&topology.edge(edge).name, &topology.edge(topology.link_of(edge)).name);
            if own != first && self.fabric.link.contains_key(own) {
                self.fault(&["link", own], format!("that is the link `{first}` in its other direction; say it there"));
            }
        }
    }

    /// Gives each switch, link and device its config struct; none if one of them is wrong or not described.
    fn configure(&mut self, topology: &mut Topology) -> Option<()> {
        let fabric = self.fabric;
        let switches = fabric.switches.iter().map(|name| self.config_of("switch", name)).collect::<Vec<_>>();
        let mut devices: Vec<Option<MediumConfig>> = Vec::new();
        for name in &fabric.devices {
            let config = self.config_of::<PmConfig>("pm", name);
            self.check_own_capacity("pm", name, config.as_ref().map(|pm| pm.capacity_mib));
            devices.push(config.and_then(|pm| match pm.medium {
                PmMedium::Cells => Some(MediumConfig::Pm(pm)),
                PmMedium::BatteryBackedDram => self.config_of("expander", name).map(MediumConfig::BackedDram),
            }));
        }
        for (kind, names) in [("expander", &fabric.expanders), ("accelerator", &fabric.accelerators)] {
            for name in names {
                let config = self.config_of::<DramConfig>(kind, name);
                self.check_own_capacity(kind, name, config.as_ref().map(|dram| dram.capacity_mib));
                devices.push(config.map(if kind == "accelerator" && self.keeps_accelerators() {
                    MediumConfig::BackedDram
                } else {
                    MediumConfig::Dram
                }));
            }
        }
        let links = fabric.edges.iter().map(|edge| self.config_of("link", &normalised(edge))).collect::<Vec<_>>();
        topology.switch_configs = switches.into_iter().collect::<Option<_>>()?;
        topology.device_configs = devices.into_iter().collect::<Option<_>>()?;
        topology.link_configs = links.into_iter().collect::<Option<_>>()?;
        accelerators::check(self, topology);
        Some(())
    }

    /// Whether a battery keeps the memory of accelerators. What is wrong with the table is noted where it is typed.
    fn keeps_accelerators(&self) -> bool {
        let medium = self.machine.entry("type2").and_then(|table| table.entry("medium"));
        medium.is_some_and(|medium| medium.text() == Some("battery_backed_dram"))
    }

    /// A capacity that a device has of its own must be one that address decoders can map.
    fn check_own_capacity(&mut self, kind: &str, name: &str, capacity_mib: Option<u64>) {
        let is_own = self.machine.at(&["fabric", kind, name]).entry("capacity_mib").is_some();
        if let Some(message) = capacity_mib.filter(|_| is_own).and_then(rules::unfit_capacity) {
            self.fault(&[kind, name, "capacity_mib"], message);
        }
    }

    /// The config struct of one component: the machine's table `kind` with what is different at `name`. Below
    /// `[expander]` and `[accelerator]` lies `[dram]`.
    fn config_of<T: DeserializeOwned + Validate<Context = ()>>(&mut self, kind: &str, name: &str) -> Option<T> {
        let base = if matches!(kind, "expander" | "accelerator") { "dram" } else { kind };
        let Some(table) = self.machine.entry(base) else {
            let list = match kind {
                "switch" => "switches",
                "link" => "edges",
                "expander" => "expanders",
                "accelerator" => "accelerators",
                _ => "devices",
            };
            self.fault(&[list], format!("the table [{base}], which describes them, is missing"));
            return None;
        };
        let own_path = join(&join("fabric", kind), name);
        if [base, kind, &own_path].into_iter().any(|path| self.faults.concern(path)) {
            return None;
        }
        let shared = self.machine.entry(kind).filter(|_| base != kind);
        let own =
            self.machine.entry("fabric").and_then(|fabric| fabric.entry(kind)).and_then(|kinds| kinds.entry(name));
        let (merged, path) = match (shared, own) {
            (None, None) => return typed(table, kind, self.faults),
            (Some(shared), None) => (vec![shared], kind),
            (shared, Some(own)) => (shared.into_iter().chain([own]).collect(), own_path.as_str()),
        };
        let mut tree = table.clone();
        merged.into_iter().for_each(|layer| tree.overlay(layer.clone()));
        typed(&tree, path, self.faults)
    }
}

/// The names of all devices, in the order of their numbers.
fn device_names(fabric: &FabricConfig) -> impl Iterator<Item = &String> {
    fabric.devices.iter().chain(&fabric.expanders).chain(&fabric.accelerators)
}

/// Tells every vertex its edges.
fn attach(topology: &mut Topology) {
    for (index, edge) in topology.edges.iter().enumerate() {
        let id = EdgeId(index as u32);
        match edge.from {
            Vertex::Host(host) => topology.hosts[host.0 as usize].edges.push(id),
            Vertex::Switch(switch) => topology.switches[switch.0 as usize].downstream.push(id),
            Vertex::Device(_) => unreachable!("no edge leaves a device"),
        }
        match edge.to {
            Vertex::Host(_) => unreachable!("no edge enters a host"),
            Vertex::Switch(switch) => topology.switches[switch.0 as usize].upstream.push(id),
            Vertex::Device(device) => topology.devices[device.0 as usize].upstream.push(id),
        }
    }
}

/// Why there can be no edge between these ends.
fn misplaced(from: Vertex, to: Vertex, connection: Connection) -> Option<&'static str> {
    match (from, to) {
        (_, Vertex::Host(_)) => Some("edges lead from hosts to devices, so none ends at a host"),
        (Vertex::Device(_), _) => Some("edges lead from hosts to devices, so none starts at a device"),
        (from, to) if from == to => Some("nothing is connected to itself"),
        (Vertex::Host(_), Vertex::Device(_)) => None,
        _ if connection == Connection::Local => Some("a local edge leads from a host to a device"),
        _ => None,
    }
}

/// The edge beside which another one to `to` cannot be: one of both is local.
fn excluded(topology: &Topology, to: Vertex, connection: Connection) -> Option<&str> {
    let is_exclusive =
        |edge: &&Edge| edge.to == to && (edge.connection == Connection::Local || connection == Connection::Local);
    topology.edges.iter().find(is_exclusive).map(|edge| edge.name.as_str())
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// An edge's text with single spaces around its arrow, as edges are named.
pub(super) fn normalised(edge: &str) -> String {
    edge.split("->").map(str::trim).collect::<Vec<_>>().join(" -> ")
}

/// The end of a message that has found no such name.
pub(super) fn offer<'a>(name: &str, valid: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, valid).map_or_else(String::new, |near| format!("; the nearest is {near:?}"))
}
