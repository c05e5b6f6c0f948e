//! Finds the route from each host to each device, and what stands in the way of there being exactly one.

use super::topology::{DeviceId, Edge, EdgeId, HostId, Route, SwitchId, Topology, Vertex};
use super::wiring::Wiring;

/// Fills in the routes of all hosts. Loops, ambiguous routes and dead ends are faults.
pub(super) fn find(wiring: &mut Wiring<'_>, topology: &mut Topology) {
    let mut is_reached = vec![false; topology.switches.len()];
    let mut is_ambiguous = false;
    for host in 0..topology.hosts.len() {
        let walk = Walk::from(HostId(host as u32), topology);
        is_ambiguous |= !walk.meetings.is_empty() || !walk.loops.is_empty();
        for edge in &walk.loops {
            let names = walk.loop_closed_by(*edge, topology);
            fault_at_edge(wiring, topology, *edge, format!("switches form a loop: {}", names.join(" -> ")));
        }
        for (edge, vertex) in &walk.meetings {
            let [first, second] = [walk.entered_by(*vertex), Some(*edge)]
                .map(|edge| walk.path_through(edge.expect("a vertex is met again after it was entered"), topology));
            let name = topology.name(*vertex);
            let message = format!("two routes lead to {name}: `{first}` and `{second}`; there may be only one");
            fault_at_edge(wiring, topology, *edge, message);
        }
        for (switch, reached) in is_reached.iter_mut().enumerate() {
            *reached |= walk.entered_by(Vertex::Switch(SwitchId(switch as u32))).is_some();
        }
        let routes = walk.routes(topology);
        routes.iter().for_each(|route| note_route(HostId(host as u32), route, topology));
        topology.hosts[host].routes = routes;
    }
    // With two routes to one place, a switch on the second one looks like a dead end.
    if !is_ambiguous {
        refuse_dead_ends(wiring, topology, &is_reached);
    }
}

/// A depth-first walk from a host that enters every vertex once.
struct Walk {
    host: HostId,
    switches: Vec<Option<EdgeId>>,
    devices: Vec<Option<EdgeId>>,
    /// Edges that met a vertex which had been entered by another edge and lies on another way.
    meetings: Vec<(EdgeId, Vertex)>,
    /// Edges that lead back to a switch which the way to them has passed, other than straight back over the same link.
    /// Without them, requests that wait for room at the next switch never wait for each other in a circle.
    loops: Vec<EdgeId>,
}

impl Walk {
    fn from(host: HostId, topology: &Topology) -> Walk {
        let switches = vec![None; topology.switches.len()];
        let devices = vec![None; topology.devices.len()];
        let mut walk = Walk { host, switches, devices, meetings: Vec::new(), loops: Vec::new() };
        let mut open: Vec<EdgeId> = topology.hosts[host.0 as usize].edges.iter().rev().copied().collect();
        while let Some(edge) = open.pop() {
            let to = topology.edge(edge).to;
            if walk.entered_by(to).is_some() {
                match walk.steps_back(edge, topology) {
                    None => walk.meetings.push((edge, to)),
                    Some(1) => {}
                    Some(_) => walk.loops.push(edge),
                }
                continue;
            }
            match to {
                Vertex::Switch(switch) => {
                    walk.switches[switch.0 as usize] = Some(edge);
                    open.extend(topology.switches[switch.0 as usize].downstream.iter().rev());
                }
                Vertex::Device(device) => walk.devices[device.0 as usize] = Some(edge),
                Vertex::Host(_) => unreachable!("no edge enters a host"),
            }
        }
        walk
    }

    /// How many edges lie between the two ends of `edge` on the way that it closes; none if it leads to another way.
    fn steps_back(&self, edge: EdgeId, topology: &Topology) -> Option<usize> {
        let to = topology.edge(edge).to;
        let before = |from: &Vertex| self.entered_by(*from).map(|edge| topology.edge(edge).from);
        std::iter::successors(Some(topology.edge(edge).from), before).position(|vertex| vertex == to)
    }

    /// The names along the loop that `edge` closes.
    fn loop_closed_by<'a>(&self, edge: EdgeId, topology: &'a Topology) -> Vec<&'a str> {
        let edges = self.edges_through(edge, topology);
        let steps = self.steps_back(edge, topology).expect("it closes a loop");
        let first = topology.name(topology.edge(edge).to);
        let others = edges[edges.len() - 1 - steps..].iter().map(|edge| topology.name(topology.edge(*edge).to));
        std::iter::once(first).chain(others).collect()
    }

    fn entered_by(&self, vertex: Vertex) -> Option<EdgeId> {
        match vertex {
            Vertex::Host(_) => None,
            Vertex::Switch(switch) => self.switches[switch.0 as usize],
            Vertex::Device(device) => self.devices[device.0 as usize],
        }
    }

    /// The edges from the host to the end of `last`.
    fn edges_through(&self, last: EdgeId, topology: &Topology) -> Vec<EdgeId> {
        let mut edges = vec![last];
        let mut from = topology.edge(last).from;
        while let Some(edge) = self.entered_by(from) {
            edges.push(edge);
            from = topology.edge(edge).from;
        }
        edges.reverse();
        edges
    }

    fn path_through(&self, last: EdgeId, topology: &Topology) -> String {
        let edges = self.edges_through(last, topology);
        topology.describe(self.host, &edges)
    }

    fn routes(&self, topology: &Topology) -> Vec<Route> {
        let reached = self.devices.iter().enumerate().filter_map(|(index, last)| Some((index, (*last)?)));
        reached
            .map(|(index, last)| {
                let edges = self.edges_through(last, topology);
                let switch_after = |edge: &EdgeId| match topology.edge(*edge).to {
                    Vertex::Switch(switch) => Some(switch),
                    _ => None,
                };
                let switches = edges.iter().filter_map(switch_after).collect();
                Route { device: DeviceId(index as u32), edges, switches }
            })
            .collect()
    }
}

/// The device of a route of `host` knows that it is reached, and the switches on the way by which edge.
fn note_route(host: HostId, route: &Route, topology: &mut Topology) {
    let devices = topology.devices.len();
    topology.devices[route.device.0 as usize].hosts.push(host);
    // The first edge leads to the first switch, so the next one leaves it.
    for (switch, edge) in route.switches.iter().zip(&route.edges[1..]) {
        let exits = &mut topology.switches[switch.0 as usize].exits;
        exits.resize(devices, None);
        exits[route.device.0 as usize] = Some(*edge);
    }
}

fn fault_at_edge(wiring: &mut Wiring<'_>, topology: &Topology, edge: EdgeId, message: String) {
    // All edges were sound when they were numbered: links first, local edges after them.
    let links = wiring.fabric.edges.len();
    let index = edge.0 as usize;
    debug_assert_eq!(topology.edges.len(), links + wiring.fabric.local_edges.len());
    if index < links {
        wiring.fault_at("edges", index, message);
    } else {
        wiring.fault_at("local_edges", index - links, message);
    }
}

/// Every host reaches a device, every device is reached, and every switch lies on a way from a host to a device.
fn refuse_dead_ends(wiring: &mut Wiring<'_>, topology: &Topology, is_reached: &[bool]) {
    let routes = || topology.hosts.iter().flat_map(|host| &host.routes);
    for (index, host) in topology.hosts.iter().enumerate() {
        if host.routes.is_empty() && !topology.devices.is_empty() {
            wiring.fault_at("hosts", index, format!("{} reaches no device; add an edge that starts at it", host.name));
        }
    }
    for (index, switch) in topology.switches.iter().enumerate() {
        let this = Vertex::Switch(SwitchId(index as u32));
        if !is_reached[index] {
            let reverse = reverse_of(topology, |edge| edge.from == this && matches!(edge.to, Vertex::Switch(_)));
            let message = format!("no host reaches {}; add an edge that ends at it{reverse}", switch.name);
            wiring.fault_at("switches", index, message);
        } else if !routes().any(|route| route.switches.contains(&SwitchId(index as u32))) {
            let reverse = reverse_of(topology, |edge| edge.to == this && matches!(edge.from, Vertex::Switch(_)));
            let message = format!("{} leads to no device; add an edge that starts at it{reverse}", switch.name);
            wiring.fault_at("switches", index, message);
        }
    }
    for (index, device) in topology.devices.iter().enumerate() {
        if !routes().any(|route| route.device == DeviceId(index as u32)) {
            let lists = [
                ("devices", 0),
                ("expanders", wiring.fabric.devices.len()),
                ("accelerators", topology.accelerators.start),
            ];
            let (list, first) = lists.into_iter().rfind(|(_, first)| *first <= index).expect("devices begin at 0");
            let message = format!("no host reaches {}; add an edge that ends at it", device.name);
            wiring.fault_at(list, index - first, message);
        }
    }
}

/// That a link between switches may be used in its other direction too, said of the first that may be meant.
fn reverse_of(topology: &Topology, may_be_meant: impl Fn(&Edge) -> bool) -> String {
    let is_listed = |from, to| topology.edges.iter().any(|edge| edge.from == from && edge.to == to);
    let meant = topology.edges.iter().find(|edge| may_be_meant(edge) && !is_listed(edge.to, edge.from));
    meant
        .and_then(|edge| edge.name.split_once(" -> ").zip(Some(&edge.name)))
        .map_or_else(String::new, |((from, to), name)| {
            format!(", for example `{to} -> {from}` if `{name}` is used in both directions")
        })
}
