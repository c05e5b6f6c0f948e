//! Lays PM devices and memory expanders out in the physical address space: one range for each, or one for each set that
//! is interleaved.

use std::ops::Range;

use super::fabric::InterleaveConfig;
use super::topology::{DecoderEntry, DeviceId, EdgeId, HostId, MemoryRange, SwitchId, Topology, Vertex};
use super::wiring::Wiring;
use crate::address_space::OWN_DRAM;
use crate::host_bridge::Interleave;
use crate::host_bridge::decoder::{GRANULARITY_MAX, WAYS_MAX};
use fencepost_kernel::address_map::{ADDRESS_END, EXPANDER_BASE, PM_BASE};

/// Fills in the ranges, PM before expanders, each in the order of devices (a set has the place of its first device),
/// and the decoders that lead there.
pub(super) fn lay_out(wiring: &mut Wiring<'_>, topology: &mut Topology) {
    let sets = sets(wiring, topology);
    let devices = || (0..topology.devices.len() as u32).map(DeviceId);
    let (pm, others): (Vec<_>, Vec<_>) = devices().partition(|device| topology.is_pm(*device));
    lay_out_kind(wiring, topology, &sets, &pm, PM_BASE..EXPANDER_BASE);
    lay_out_kind(wiring, topology, &sets, &others, EXPANDER_BASE..ADDRESS_END);
    fill_in_decoders(wiring, topology, &sets);
}

/// Gives `devices`, which are of one kind, their places in the part `space` of the physical address space.
fn lay_out_kind(
    wiring: &mut Wiring<'_>,
    topology: &mut Topology,
    sets: &[Set],
    devices: &[DeviceId],
    space: Range<u64>,
) {
    let pm_devices = wiring.fabric.devices.len();
    let mut base = space.start;
    for &device in devices {
        let (name, targets, granularity_bytes) = match sets.iter().find(|set| set.targets.contains(&device)) {
            None => (topology.devices[device.0 as usize].name.clone(), vec![device], None),
            Some(set) if set.targets.iter().min() != Some(&device) => continue,
            Some(set) => (set.name.clone(), set.targets.clone(), Some(set.granularity_bytes)),
        };
        let bytes = targets.iter().map(|target| capacity_bytes(topology, *target)).sum();
        let interleave = match granularity_bytes {
            Some(granularity_bytes) => Interleave::new(base, granularity_bytes, targets.len() as u64),
            None => Interleave::none(base),
        };
        // Capacities that are no multiples of 256 MiB have been reported where they are written.
        let Ok(interleave) = interleave else { return };
        topology.ranges.push(MemoryRange { name, base, bytes, targets, interleave });
        base += bytes;
        if base > space.end {
            let name = &topology.devices[device.0 as usize].name;
            let message = format!(
                "{name} ends beyond the last physical address of its kind ({} PiB); its capacity_mib or that of others is too large",
                space.end >> 50
            );
            let (list, first) = match (device.0 as usize, topology.accelerators.start) {
                (number, accelerators) if number >= accelerators => ("accelerators", accelerators),
                (number, _) if number < pm_devices => ("devices", 0),
                _ => ("expanders", pm_devices),
            };
            wiring.fault_at(list, device.0 as usize - first, message);
            return;
        }
    }
}

fn capacity_bytes(topology: &Topology, device: DeviceId) -> u64 {
    topology.device_config(device).capacity_bytes()
}

/// An interleaved set of the machine file.
struct Set {
    name: String,
    targets: Vec<DeviceId>,
    granularity_bytes: u64,
}

/// The interleaved sets that are sound; what is wrong with the others is noted.
fn sets(wiring: &mut Wiring<'_>, topology: &Topology) -> Vec<Set> {
    let mut sets: Vec<Set> = Vec::new();
    for (name, config) in &wiring.fabric.interleave {
        if let Some(message) = taken(name, topology) {
            wiring.fault(&["interleave", name], message);
            continue;
        }
        match members(config, topology, &sets).and_then(|targets| unfit(topology, &targets).map_or(Ok(targets), Err)) {
            Err(message) => wiring.fault(&["interleave", name, "devices"], message),
            Ok(_) if !config.granularity_bytes.is_power_of_two() => {
                let message = format!("{} is not a power of two from 256 to 16384", config.granularity_bytes);
                wiring.fault(&["interleave", name, "granularity_bytes"], message);
            }
            Ok(targets) => {
                sets.push(Set { name: name.clone(), targets, granularity_bytes: u64::from(config.granularity_bytes) });
            }
        }
    }
    sets
}

/// Why a set cannot be called that: it is a memory node of that name.
fn taken(name: &str, topology: &Topology) -> Option<String> {
    if name == OWN_DRAM {
        return Some(format!("{name:?} is the name of each host's own DRAM"));
    }
    let is_given = topology.hosts.iter().any(|host| host.name == name)
        || topology.switches.iter().any(|switch| switch.name == name)
        || topology.devices.iter().any(|device| device.name == name);
    is_given.then(|| format!("the name {name:?} is given twice"))
}

/// The devices of a set; each device can be in one place of one set.
fn members(config: &InterleaveConfig, topology: &Topology, sets: &[Set]) -> Result<Vec<DeviceId>, String> {
    let mut targets: Vec<DeviceId> = Vec::new();
    for member in &config.devices {
        let Some(index) = topology.devices.iter().position(|device| device.name == *member) else {
            return Err(format!("{member:?} is not in fabric.devices, nor in fabric.expanders"));
        };
        let device = DeviceId(index as u32);
        if targets.contains(&device) || sets.iter().any(|set| set.targets.contains(&device)) {
            return Err(format!("{member} has its place in an interleaved range already"));
        }
        targets.push(device);
    }
    Ok(targets)
}

/// Why these devices cannot share a range.
fn unfit(topology: &Topology, targets: &[DeviceId]) -> Option<String> {
    let ways = targets.len() as u64;
    if ways < 2 || !ways.is_power_of_two() || ways > WAYS_MAX {
        return Some(format!("{ways} devices cannot be interleaved; 2, 4, 8 or 16 can"));
    }
    let name = |device: DeviceId| &topology.devices[device.0 as usize].name;
    let first = targets[0];
    for device in targets.iter().copied() {
        if topology.is_pm(device) != topology.is_pm(first) {
            return Some(format!("{} and {} are not both PM, nor both expanders", name(first), name(device)));
        }
        if capacity_bytes(topology, device) != capacity_bytes(topology, first) {
            return Some(format!("{} and {} differ in capacity_mib", name(first), name(device)));
        }
        let reaches = |host, device| topology.route(HostId(host as u32), device).is_some();
        let halfway = (0..topology.hosts.len()).find(|host| reaches(*host, first) != reaches(*host, device));
        if let Some(host) = halfway {
            let host = &topology.hosts[host].name;
            return Some(format!("{host} reaches only one of {} and {}", name(first), name(device)));
        }
    }
    None
}

/// Gives every host bridge and every switch a decoder for each range behind it.
fn fill_in_decoders(wiring: &mut Wiring<'_>, topology: &mut Topology, sets: &[Set]) {
    for host in (0..topology.hosts.len()).map(|index| HostId(index as u32)) {
        let next = |device| topology.route(host, device).and_then(|route| route.edges.first().copied());
        topology.hosts[host.0 as usize].decoders = decoders(wiring, topology, sets, Vertex::Host(host), next);
    }
    for switch in (0..topology.switches.len()).map(|index| SwitchId(index as u32)) {
        let next = |device| topology.downstream_edge(switch, device);
        topology.switches[switch.0 as usize].decoders = decoders(wiring, topology, sets, Vertex::Switch(switch), next);
    }
}

/// The decoders of `vertex`, from which `next` leads to a device.
fn decoders(
    wiring: &mut Wiring<'_>,
    topology: &Topology,
    sets: &[Set],
    vertex: Vertex,
    next: impl Fn(DeviceId) -> Option<EdgeId>,
) -> Vec<DecoderEntry> {
    let mut entries = Vec::new();
    for range in &topology.ranges {
        let ways: Vec<Option<EdgeId>> = range.targets.iter().map(|target| next(*target)).collect();
        if ways.iter().all(Option::is_none) {
            continue;
        }
        let set = sets.iter().find(|set| set.targets == range.targets);
        let granularity_bytes = set.map_or(GRANULARITY_MAX, |set| set.granularity_bytes);
        match deal_out(&ways, granularity_bytes) {
            Some((granularity_bytes, edges)) => {
                entries.push(DecoderEntry { base: range.base, bytes: range.bytes, granularity_bytes, edges });
            }
            None => {
                let set = set.expect("a range of one device leaves by one edge");
                let message = format!(
                    "no HDM decoder of {} can send the blocks on in this order; list devices behind the same port at equal distances, or \
                     make granularity_bytes smaller",
                    topology.name(vertex)
                );
                wiring.fault(&["interleave", &set.name, "devices"], message);
            }
        }
    }
    entries
}

/// How one decoder can send each way of a range to the edge in `ways`, where there is one: the size of its blocks, and
/// its edges.
///
/// A decoder chooses by a field of address bits, so this looks for the shortest field that tells the edges apart.
fn deal_out(ways: &[Option<EdgeId>], granularity_bytes: u64) -> Option<(u64, Vec<EdgeId>)> {
    let way_bits = ways.len().trailing_zeros();
    for field_bits in 0..=way_bits {
        for shift in 0..=way_bits - field_bits {
            let block_bytes = granularity_bytes << shift;
            match choose_by(ways, field_bits, shift) {
                Some(edges) if block_bytes <= GRANULARITY_MAX => return Some((block_bytes, edges)),
                _ => {}
            }
        }
    }
    None
}

/// The edges that `field_bits` bits of the way's number, from bit `shift` on, choose between; none if they do not
/// choose rightly.
fn choose_by(ways: &[Option<EdgeId>], field_bits: u32, shift: u32) -> Option<Vec<EdgeId>> {
    let mut edges: Vec<Option<EdgeId>> = vec![None; 1 << field_bits];
    for (way, edge) in ways.iter().enumerate() {
        let chosen = &mut edges[(way >> shift) & ((1 << field_bits) - 1)];
        match (*chosen, *edge) {
            (Some(chosen), Some(edge)) if chosen != edge => return None,
            (None, edge) => *chosen = edge,
            _ => {}
        }
    }
    let edges: Vec<EdgeId> = edges.into_iter().collect::<Option<_>>()?;
    are_distinct(&edges).then_some(edges)
}

fn are_distinct(edges: &[EdgeId]) -> bool {
    edges.iter().enumerate().all(|(index, edge)| !edges[..index].contains(edge))
}
