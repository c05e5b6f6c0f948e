//! Finds the route from each host to each device, and what stands in the way of there being exactly one.

use super::topology::{DeviceId, EdgeId, HostId, Route, SwitchId, Topology, Vertex};
use super::wiring::Wiring;

/// Fills in the routes of all hosts. Loops, ambiguous routes and dead ends are faults.
pub(super) fn find(wiring: &mut Wiring<'_>, topology: &mut Topology) {
    if refuse_loops(wiring, topology) {
        return;
    }
    let mut is_reached = vec![false; topology.switches.len()];
    let mut is_ambiguous = false;
    for host in 0..topology.hosts.len() {
        let walk = Walk::from(HostId(host as u32), topology);
        is_ambiguous |= !walk.meetings.is_empty();
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
    /// Edges that met a vertex which had been entered by another edge.
    meetings: Vec<(EdgeId, Vertex)>,
}

impl Walk {
    fn from(host: HostId, topology: &Topology) -> Walk {
        let switches = vec![None; topology.switches.len()];
        let devices = vec![None; topology.devices.len()];
        let mut walk = Walk { host, switches, devices, meetings: Vec::new() };
        let mut open: Vec<EdgeId> = topology.hosts[host.0 as usize].edges.iter().rev().copied().collect();
        while let Some(edge) = open.pop() {
            let to = topology.edge(edge).to;
            if walk.entered_by(to).is_some() {
                walk.meetings.push((edge, to));
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

/// Looks for switches that lead back to themselves; true if there are any.
fn refuse_loops(wiring: &mut Wiring<'_>, topology: &Topology) -> bool {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        Unseen,
        OnPath,
        Done,
    }
    let mut marks = vec![Mark::Unseen; topology.switches.len()];
    let mut found = false;
    for start in 0..topology.switches.len() {
        if marks[start] != Mark::Unseen {
            continue;
        }
        marks[start] = Mark::OnPath;
        // Each switch on the path, and which of its edges is next.
        let mut path = vec![(start, 0)];
        while let Some((switch, next)) = path.last_mut() {
            let Some(edge) = topology.switches[*switch].downstream.get(*next).copied() else {
                marks[*switch] = Mark::Done;
                path.pop();
                continue;
            };
            *next += 1;
            let Vertex::Switch(SwitchId(target)) = topology.edge(edge).to else { continue };
            let target = target as usize;
            match marks[target] {
                Mark::Unseen => {
                    marks[target] = Mark::OnPath;
                    path.push((target, 0));
                }
                Mark::OnPath => {
                    found = true;
                    let entry = path.iter().position(|(switch, _)| *switch == target).unwrap_or(0);
                    let on_loop = path[entry..].iter().map(|(switch, _)| *switch).chain([target]);
                    let names: Vec<&str> = on_loop.map(|switch| topology.switches[switch].name.as_str()).collect();
                    fault_at_edge(wiring, topology, edge, format!("switches form a loop: {}", names.join(" -> ")));
                }
                Mark::Done => {}
            }
        }
    }
    found
}

/// Every host reaches a device, every device is reached, and every switch lies on a way from a host to a device.
fn refuse_dead_ends(wiring: &mut Wiring<'_>, topology: &Topology, is_reached: &[bool]) {
    let routes = || topology.hosts.iter().flat_map(|host| &host.routes);
    for (index, host) in topology.hosts.iter().enumerate() {
        if host.routes.is_empty() && !topology.devices.is_empty() {
            wiring.fault_at(
                "hosts",
                index,
                format!("{} reaches no PM device; add an edge that starts at it", host.name),
            );
        }
    }
    for (index, switch) in topology.switches.iter().enumerate() {
        if !is_reached[index] {
            wiring.fault_at("switches", index, format!("no host reaches {}; add an edge that ends at it", switch.name));
        } else if !routes().any(|route| route.switches.contains(&SwitchId(index as u32))) {
            let message = format!("{} leads to no PM device; add an edge that starts at it", switch.name);
            wiring.fault_at("switches", index, message);
        }
    }
    for (index, device) in topology.devices.iter().enumerate() {
        if !routes().any(|route| route.device == DeviceId(index as u32)) {
            wiring.fault_at("devices", index, format!("no host reaches {}; add an edge that ends at it", device.name));
        }
    }
}
