//! Where persists are accepted, if the machine file says: each name is a switch that can, and no host goes past a
//! buffer that holds what it may read.

use super::fabric::PmSharing;
use super::topology::{DeviceId, HostId, Route, SwitchId, Topology, Vertex};
use super::wiring::{Wiring, offer};

/// Takes over `fabric.persist_points` and `fabric.pm_sharing`. What cannot work, and what is unsafe without saying so,
/// are faults.
pub(super) fn place(wiring: &mut Wiring<'_>, topology: &mut Topology) {
    let fabric = wiring.fabric;
    topology.pm_sharing = fabric.pm_sharing;
    let Some(names) = &fabric.persist_points else {
        if fabric.pm_sharing == PmSharing::SharedUnsafe {
            let message = "\"shared_unsafe\" needs fabric.persist_points: without that key all hosts pass the persist point, and nothing is unsafe";
            wiring.fault(&["pm_sharing"], message);
        }
        return;
    };
    if names.is_empty() {
        wiring.fault(
            &["persist_points"],
            "an empty list accepts no persist; name switches, or leave the key out for the first switch that all hosts pass",
        );
        return;
    }
    let mut points: Vec<SwitchId> = Vec::new();
    for (index, name) in names.iter().enumerate() {
        match switch(topology, name, &points) {
            Ok(switch) => points.push(switch),
            Err(reason) => wiring.fault_at("persist_points", index, reason),
        }
    }
    topology.persist_points = Some(points);
    if wiring.is_sound() {
        check_routes(wiring, topology);
    }
}

/// The switch of that name, or why it is no persist point.
fn switch(topology: &Topology, name: &str, named: &[SwitchId]) -> Result<SwitchId, String> {
    let names = || topology.switches.iter().map(|switch| switch.name.as_str());
    let Some(index) = names().position(|own| own == name) else {
        return Err(format!("{name:?} is not in fabric.switches{}", offer(name, names())));
    };
    let switch = SwitchId(index as u32);
    let leads_to = |device: &DeviceId| topology.downstream_edge(switch, *device).is_some();
    if named.contains(&switch) {
        Err(format!("{name} is named twice"))
    } else if topology.switch_config(switch).persist_buffer.is_none() {
        Err(format!("{name} has no persist buffer: the machine has no [switch.persist_buffer]"))
    } else if !pm_devices(topology).any(|device| leads_to(&device)) {
        Err(format!("{name} cannot be a persist point: it leads to no PM device"))
    } else {
        Ok(switch)
    }
}

/// Each route to PM passes a persist point; unless hosts keep to PM of their own, all routes to a device pass the same
/// ones.
fn check_routes(wiring: &mut Wiring<'_>, topology: &Topology) {
    let mut is_unsafe = false;
    for device in pm_devices(topology) {
        let points = topology.persist_points(device);
        let routes: Vec<(HostId, &Route)> = topology.routes_to(device).collect();
        for (host, route) in &routes {
            let way = topology.describe(*host, &route.edges);
            if !points.iter().any(|point| route.switches.contains(point)) {
                wiring.fault(
                    &["persist_points"],
                    format!("`{way}` passes none of them: no switch would accept those persists"),
                );
                return;
            }
            let Some(missed) = points.iter().find(|point| !route.switches.contains(point)) else { continue };
            is_unsafe = true;
            if topology.pm_sharing == PmSharing::Shared {
                let (missed, host) = (topology.name(Vertex::Switch(*missed)), topology.name(Vertex::Host(*host)));
                let message = format!(
                    "{missed} cannot accept persists to {}: `{way}` does not pass it, so {host} would read stale data; if no host accesses \
                     another's PM, say pm_sharing = \"private\"",
                    topology.name(Vertex::Device(device))
                );
                wiring.fault(&["persist_points"], message);
                return;
            }
        }
    }
    if topology.pm_sharing == PmSharing::SharedUnsafe && !is_unsafe {
        wiring.fault(
            &["pm_sharing"],
            "\"shared_unsafe\" is not so: all hosts pass every persist point of the PM that they reach; leave the key out",
        );
    }
}

fn pm_devices(topology: &Topology) -> impl Iterator<Item = DeviceId> + '_ {
    (0..topology.devices.len() as u32).map(DeviceId).filter(|device| topology.is_pm(*device))
}
