//! What is connected to what, checked: the graph that a `[fabric]` table describes.
//!
//! Every host reaches each of its devices by exactly one route, edges lead from hosts to devices without a loop (but
//! for the two directions of a link between switches), and every name means something. `system/build.rs` makes
//! components and links of it.

use std::ops::Range;

use super::fabric::PmSharing;
use crate::address_space::{MemoryNode, PAGE_SHIFT};
use crate::device::MediumConfig;
use crate::host_bridge::Interleave;
use crate::host_bridge::decoder::HDM_ALIGNMENT;
use crate::switch::{Scheme, SwitchConfig};
use fencepost_kernel::address_map::{EXPANDER_BASE, PAGE_TABLE_END, PM_BASE};
use fencepost_kernel::link::LinkConfig;

/// Names a host; an index into [`Topology::hosts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u32);

/// Names a switch; an index into [`Topology::switches`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwitchId(pub u32);

/// Names a PM device or a memory expander; an index into [`Topology::devices`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId(pub u32);

/// Names an edge; an index into [`Topology::edges`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EdgeId(pub u32);

/// One end of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Vertex {
    /// A host's bridge.
    Host(HostId),
    /// A switch.
    Switch(SwitchId),
    /// A PM device or a memory expander.
    Device(DeviceId),
}

/// A host's place in the fabric.
#[derive(Clone, Debug, PartialEq)]
pub struct HostNode {
    /// As the machine file calls it.
    pub name: String,
    /// Its own DRAM, in the order of addresses; the first ports of its bridge lead there. `[dram]` says what each of
    /// them is like.
    pub drams: Vec<DramNode>,
    /// Its edges, in the order of the ports behind those: CXL links, then local connections.
    pub edges: Vec<EdgeId>,
    /// The way to each device that it reaches, in the order of devices.
    pub routes: Vec<Route>,
    /// The ranges of memory that it reaches, as its bridge decodes them.
    pub decoders: Vec<DecoderEntry>,
}

/// DRAM behind memory controllers of one host. No other host reaches it, so all hosts use the same addresses for
/// theirs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DramNode {
    /// What placement rules and statistics call it.
    pub name: String,
    /// The physical addresses that the host's bridge sends there, in bytes. Frames begin at the first one.
    pub addresses: Range<u64>,
}

/// A switch's place in the fabric.
#[derive(Clone, Debug, PartialEq)]
pub struct SwitchNode {
    /// As the machine file calls it.
    pub name: String,
    /// Edges from hosts or other switches, in the order of its ports.
    pub upstream: Vec<EdgeId>,
    /// Edges to devices or other switches, in the order of its ports.
    pub downstream: Vec<EdgeId>,
    /// The edge by which requests to each device leave it, by device; none for those that no host reaches through it.
    pub exits: Vec<Option<EdgeId>>,
    /// The ranges of memory behind it, as it decodes them.
    pub decoders: Vec<DecoderEntry>,
}

/// A device's place in the fabric.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceNode {
    /// As the machine file calls it.
    pub name: String,
    /// Edges from hosts or switches, in the order of its ports.
    pub upstream: Vec<EdgeId>,
    /// The hosts that reach it, ascending.
    pub hosts: Vec<HostId>,
}

/// A connection, directed from the host's side to the device's.
#[derive(Clone, Debug, PartialEq)]
pub struct Edge {
    /// `FROM -> TO`.
    pub name: String,
    /// The end towards the hosts.
    pub from: Vertex,
    /// The end towards the devices.
    pub to: Vertex,
    /// What it is made of.
    pub connection: Connection,
}

/// What an edge is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// A CXL link; see [`Topology::link_config`].
    Link,
    /// The host's own memory controller: no CXL port.
    Local,
}

impl HostNode {
    pub(super) fn new(name: &str) -> HostNode {
        let drams = DramNode::of_host(1);
        HostNode { name: name.to_owned(), drams, edges: Vec::new(), routes: Vec::new(), decoders: Vec::new() }
    }
}

impl DramNode {
    /// The DRAM of a host that has so many: all addresses below PM belong to one of them.
    pub(super) fn of_host(count: u64) -> Vec<DramNode> {
        let further = count.saturating_sub(1).max(1);
        let part = (PM_BASE - PAGE_TABLE_END) / further / HDM_ALIGNMENT * HDM_ALIGNMENT;
        let start = |number: u64| if number == 0 { 0 } else { PAGE_TABLE_END + (number - 1) * part };
        let end = |number: u64| if number + 1 == count { PM_BASE } else { start(number + 1) };
        let node = |number: u64| DramNode { name: format!("dram{number}"), addresses: start(number)..end(number) };
        (0..count).map(node).collect()
    }

    /// The addresses of its frames if it has a capacity of so many bytes.
    pub fn frames(&self, bytes: u64) -> Range<u64> {
        self.addresses.start..self.addresses.start + bytes
    }
}

impl SwitchNode {
    pub(super) fn new(name: &str) -> SwitchNode {
        SwitchNode {
            name: name.to_owned(),
            upstream: Vec::new(),
            downstream: Vec::new(),
            exits: Vec::new(),
            decoders: Vec::new(),
        }
    }
}

impl DeviceNode {
    pub(super) fn new(name: &str) -> DeviceNode {
        DeviceNode { name: name.to_owned(), upstream: Vec::new(), hosts: Vec::new() }
    }
}

/// The only way from a host to a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// Where it ends.
    pub device: DeviceId,
    /// Its edges, from the host on.
    pub edges: Vec<EdgeId>,
    /// The switches that it passes, from the host on.
    pub switches: Vec<SwitchId>,
}

/// A range of physical addresses that belongs to one device, or to several block by block in turn. All hosts agree on
/// it.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryRange {
    /// What the machine file calls the device, or the interleaved set.
    pub name: String,
    /// The first physical address, in bytes.
    pub base: u64,
    /// Its size in bytes, all devices together.
    pub bytes: u64,
    /// The devices, in the order of their blocks.
    pub targets: Vec<DeviceId>,
    /// How it is dealt out to them.
    pub interleave: Interleave,
}

impl MemoryRange {
    /// Whether it is persistent memory; the DRAM of expanders and accelerators if not.
    pub fn is_pm(&self) -> bool {
        self.base < EXPANDER_BASE
    }
}

/// One HDM decoder of a host bridge or a switch: a range, and the edges that its blocks leave by in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecoderEntry {
    /// The first physical address, in bytes.
    pub base: u64,
    /// The size of the range in bytes.
    pub bytes: u64,
    /// Bytes of a block, as this decoder deals them out.
    pub granularity_bytes: u64,
    /// Where the blocks go, each edge once.
    pub edges: Vec<EdgeId>,
}

/// The fabric of a machine, checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Topology {
    /// In the order of the machine file.
    pub hosts: Vec<HostNode>,
    /// In the order of the machine file.
    pub switches: Vec<SwitchNode>,
    /// PM devices first, memory expanders after them, accelerators last, each in the order of the machine file.
    pub devices: Vec<DeviceNode>,
    /// Which of the devices are accelerators.
    pub accelerators: Range<usize>,
    /// CXL links first, then local connections, each in the order of the machine file.
    pub edges: Vec<Edge>,
    /// By ascending address: PM without gaps from [`PM_BASE`] on, that of accelerators last, then expanders and the
    /// DRAM of accelerators without gaps from [`EXPANDER_BASE`] on.
    pub ranges: Vec<MemoryRange>,
    /// The switches that `fabric.persist_points` names, if it is there.
    pub(super) persist_points: Option<Vec<SwitchId>>,
    /// Whether hosts access each other's PM.
    pub pm_sharing: PmSharing,
    /// Parallel to `switches`.
    pub(super) switch_configs: Vec<SwitchConfig>,
    /// Parallel to `devices`.
    pub(super) device_configs: Vec<MediumConfig>,
    /// Parallel to those edges that are links, which come first.
    pub(super) link_configs: Vec<LinkConfig>,
}

impl Topology {
    /// What that switch is like: `[switch]` with what `[fabric.switch.NAME]` says.
    pub fn switch_config(&self, switch: SwitchId) -> &SwitchConfig {
        &self.switch_configs[switch.0 as usize]
    }

    /// What that device is like: `[pm]` with what `[fabric.pm.NAME]` says, or `[dram]` with what `[expander]` and
    /// `[fabric.expander.NAME]` say; of PM that is DRAM with a battery, `[dram]` with what `[expander]` says; of
    /// accelerators likewise with `[accelerator]`, and a battery where `type2.medium` says so.
    pub fn device_config(&self, device: DeviceId) -> &MediumConfig {
        &self.device_configs[device.0 as usize]
    }

    /// Whether that device is an accelerator.
    pub fn is_accelerator(&self, device: DeviceId) -> bool {
        self.accelerators.contains(&(device.0 as usize))
    }

    /// Whether that device is persistent memory.
    pub fn is_pm(&self, device: DeviceId) -> bool {
        self.device_config(device).is_persistent()
    }

    /// What that edge is like, if it is a link: `[link]` with what `[fabric.link."FROM -> TO"]` says.
    pub fn link_config(&self, edge: EdgeId) -> Option<&LinkConfig> {
        self.link_configs.get(edge.0 as usize)
    }

    /// The edge with that identity.
    pub fn edge(&self, edge: EdgeId) -> &Edge {
        &self.edges[edge.0 as usize]
    }

    /// The edge whose link carries what goes along `edge`: of two edges between the same switches in opposite
    /// directions, the first one.
    pub fn link_of(&self, edge: EdgeId) -> EdgeId {
        let Edge { from, to, .. } = *self.edge(edge);
        let is_opposite = |other: &Edge| (other.from, other.to) == (to, from);
        let opposite = self.edges[..edge.0 as usize].iter().position(is_opposite);
        opposite.map_or(edge, |first| EdgeId(first as u32))
    }

    /// What the machine file calls that vertex.
    pub fn name(&self, vertex: Vertex) -> &str {
        match vertex {
            Vertex::Host(host) => &self.hosts[host.0 as usize].name,
            Vertex::Switch(switch) => &self.switches[switch.0 as usize].name,
            Vertex::Device(device) => &self.devices[device.0 as usize].name,
        }
    }

    /// The way from `host` to `device`, if it reaches it.
    pub fn route(&self, host: HostId, device: DeviceId) -> Option<&Route> {
        let routes = &self.hosts[host.0 as usize].routes;
        routes.binary_search_by_key(&device, |route| route.device).ok().map(|index| &routes[index])
    }

    /// The physical addresses of PM that the processes of `host` get frames from, in ascending ranges: of each range
    /// that it reaches an equal part for every host that does, in the order of hosts and in whole pages. No two hosts
    /// share a page.
    pub fn frames_of(&self, host: HostId) -> Vec<Range<u64>> {
        self.shares_of(host, |range| range.is_pm())
    }

    /// The same of memory expanders.
    pub fn expander_frames_of(&self, host: HostId) -> Vec<Range<u64>> {
        self.shares_of(host, |range| !range.is_pm())
    }

    fn shares_of(&self, host: HostId, is_wanted: impl Fn(&MemoryRange) -> bool) -> Vec<Range<u64>> {
        self.ranges.iter().filter(|range| is_wanted(range)).filter_map(|range| self.share_of(host, range)).collect()
    }

    fn share_of(&self, host: HostId, range: &MemoryRange) -> Option<Range<u64>> {
        let sharing = &self.devices[range.targets[0].0 as usize].hosts;
        let before = sharing.binary_search(&host).ok()? as u64;
        let part = (range.bytes / sharing.len() as u64) >> PAGE_SHIFT << PAGE_SHIFT;
        Some(range.base + before * part..range.base + (before + 1) * part)
    }

    /// The memory nodes of `host`, in the order of their addresses: its own DRAM, each of so many bytes, then the PM
    /// and the expanders that it reaches.
    pub fn nodes_of(&self, host: HostId, dram_bytes: u64) -> Vec<MemoryNode> {
        let own = self.hosts[host.0 as usize].drams.iter().map(|dram| MemoryNode {
            name: dram.name.clone(),
            is_pm: false,
            frames: dram.frames(dram_bytes),
        });
        let reached = self.ranges.iter().filter_map(|range| {
            let frames = self.share_of(host, range)?;
            Some(MemoryNode { name: range.name.clone(), is_pm: range.is_pm(), frames })
        });
        own.chain(reached).collect()
    }

    /// The edge by which `switch` sends requests on to `device`, if some host reaches the device through it.
    pub fn downstream_edge(&self, switch: SwitchId, device: DeviceId) -> Option<EdgeId> {
        self.switches[switch.0 as usize].exits.get(device.0 as usize).copied().flatten()
    }

    /// The switches that accept persists to `device`, a PM device, under a scheme with persist buffers: those that
    /// `fabric.persist_points` names, or the first switch that every route to the device passes, if there is one.
    pub fn persist_points(&self, device: DeviceId) -> Vec<SwitchId> {
        match &self.persist_points {
            Some(named) => {
                named.iter().copied().filter(|switch| self.downstream_edge(*switch, device).is_some()).collect()
            }
            None => self.first_shared_switch(device).into_iter().collect(),
        }
    }

    /// Those of `switches` that the way from `host` to `device` passes, from the host on; none where it does not reach
    /// the device.
    pub fn switches_passed(&self, host: HostId, device: DeviceId, switches: &[SwitchId]) -> Vec<SwitchId> {
        let on_route = self.route(host, device).map_or(&[][..], |route| &route.switches);
        on_route.iter().copied().filter(|switch| switches.contains(switch)).collect()
    }

    /// The first switch that every route to `device` passes.
    ///
    /// Accepting a persist any earlier would be wrong where hosts share lines: a host whose route does not pass that
    /// switch would read stale data from the device.
    fn first_shared_switch(&self, device: DeviceId) -> Option<SwitchId> {
        let mut routes = self.routes_to(device);
        let (_, first) = routes.next()?;
        let others: Vec<&Route> = routes.map(|(_, route)| route).collect();
        first.switches.iter().copied().find(|switch| others.iter().all(|route| route.switches.contains(switch)))
    }

    /// Whether this fabric can run `scheme`, or the reason why not: every PM device needs a persist point.
    pub fn check_scheme(&self, scheme: Scheme) -> Result<(), String> {
        if !scheme.has_persist_buffer() {
            return Ok(());
        }
        if self.switches.is_empty() {
            return Err(format!(
                "scheme {scheme} needs a switch to hold the persist buffer, and this machine has none"
            ));
        }
        let devices = (0..self.devices.len()).map(|index| DeviceId(index as u32));
        devices.filter(|device| self.is_pm(*device)).try_for_each(|device| self.check_persist_point(scheme, device))
    }

    /// Whether there is a persist buffer where persists to `device` are to be accepted.
    fn check_persist_point(&self, scheme: Scheme, device: DeviceId) -> Result<(), String> {
        let name = self.name(Vertex::Device(device));
        if let Some(&switch) = self.persist_points(device).first() {
            // Those that the machine file names have one.
            if self.switch_config(switch).persist_buffer.is_some() {
                return Ok(());
            }
            let switch = self.name(Vertex::Switch(switch));
            return Err(format!(
                "scheme {scheme} needs a persist buffer in {switch}, where persists to {name} are accepted: the machine has no \
                 [switch.persist_buffer]"
            ));
        }
        let reason = match self.routes_to(device).find(|(_, route)| route.switches.is_empty()) {
            Some((host, _)) => format!("{} reaches {name} without passing a switch", self.name(Vertex::Host(host))),
            None => {
                let routes: Vec<String> =
                    self.routes_to(device).map(|(host, route)| self.describe(host, &route.edges)).collect();
                format!(
                    "the routes to {name} ({}) share no switch, and a host that does not pass the persist point would read stale data",
                    routes.join("; ")
                )
            }
        };
        Err(format!("scheme {scheme} needs a switch that every route to a PM device passes: {reason}"))
    }

    /// Every route to `device`, with the host it comes from.
    pub(super) fn routes_to(&self, device: DeviceId) -> impl Iterator<Item = (HostId, &Route)> {
        let hosts = self.devices[device.0 as usize].hosts.iter();
        hosts.filter_map(move |host| self.route(*host, device).map(|route| (*host, route)))
    }

    /// The way from `host` along `edges`, as a person would write it.
    pub(super) fn describe(&self, host: HostId, edges: &[EdgeId]) -> String {
        let mut names = vec![self.name(Vertex::Host(host))];
        names.extend(edges.iter().map(|edge| self.name(self.edge(*edge).to)));
        names.join(" -> ")
    }
}
