//! From a machine's configuration to wired components: the only code that turns the topology into components and ports.

use std::ops::Range;

use super::component::AnyComponent;
use super::{LinkEnd, System};
use crate::coherent_host::{CoherentHost, LINK_ENDS};
use crate::config::topology::{
    Connection, DecoderEntry, DeviceId, DramNode, EdgeId, HostId, HostNode, SwitchId, SwitchNode, Topology, Vertex,
};
use crate::config::{Bias, InsertedAarch64Flush, InsertedFence, InsertedFlush, Machine, PmSharing};
use crate::core::persist::{PersistMode, PersistPolicy};
use crate::device::type2::Accelerator;
use crate::device::type2::device_memory::Kind;
use crate::device::{Device, MediumConfig};
use crate::host::{Host, HostConfig, SeveralSockets, Workload};
use crate::host_bridge::decoder::GRANULARITY_MIN;
use crate::host_bridge::{HOST_PORT, HdmDecoder, HdmRange, HostBridge, Interleave, NodeCounts, PortDescription};
use crate::switch::{self, PortDirection, Role, RoutingTable, Scheme, Switch};
use crate::traffic::{Generator, Keys, StreamConfig, footprint};
use crate::transport::Place;
use fencepost_isa::InstructionSet;
use fencepost_isa::micro_op::{Fence, Flush};
use fencepost_kernel::line::LineAddress;
use fencepost_kernel::link::{FlitFormat, LinkConfig};
use fencepost_kernel::message::mem;
use fencepost_kernel::time::{Duration, Time};
use fencepost_kernel::{ComponentId, EventQueue, PortId, Wires};

impl System {
    /// The system that `machine` describes, each host with its workload, persisting as `scheme` says.
    ///
    /// # Errors
    /// If the fabric cannot run that scheme, or asks for something that components cannot do; with the reason.
    pub fn new(machine: &Machine, scheme: Scheme, workloads: Vec<Workload>) -> Result<System, String> {
        assert_eq!(workloads.len(), machine.topology().hosts.len(), "each host has a workload");
        if let Some(host) = machine.topology().hosts.iter().find(|host| host.drams.is_empty() && machine.tlb.enabled) {
            return Err(format!("{} has no DRAM of its own, where page tables lie", host.name));
        }
        let config = |host: &HostNode| host_config(machine, host);
        let hosts = workloads.into_iter().zip(&machine.topology().hosts);
        let hosts = hosts.map(|(workload, host)| Host::new(&config(host), workload));
        Builder::build(machine, scheme, hosts.map(|host| AnyComponent::Host(Box::new(host))).collect())
    }

    /// The same system with a traffic generator in place of each host's cores and caches. Its requests pay the latency
    /// of the caches; MSHRs limit them only where `holds_entries` lets each line hold one of the last level's.
    ///
    /// # Errors
    /// If the fabric cannot run that scheme, or there can be no such streams on it; with the reason.
    pub fn with_traffic(
        machine: &Machine,
        scheme: Scheme,
        streams: &[&[StreamConfig]],
        holds_entries: bool,
        seed: u64,
    ) -> Result<System, String> {
        assert_eq!(streams.len(), machine.topology().hosts.len(), "each host has streams");
        streams.iter().flat_map(|streams| streams.iter()).try_for_each(StreamConfig::check)?;
        footprint::check_sharing(machine, streams)?;
        let levels = machine.cache_levels();
        let cache_latency = levels.miss_latency(machine.core.clock_ghz);
        let entries = levels.lower.last().map(|(_, last)| u32::from(last.mshrs)).filter(|_| holds_entries);
        let generator = |(host, streams): (u32, &&[StreamConfig])| {
            let footprints = footprint::of_streams(machine, HostId(host), streams)?;
            let streams: Vec<_> = streams.iter().cloned().zip(footprints).collect();
            let generator = Generator::new(&streams, cache_latency, entries, seed.wrapping_add(u64::from(host) << 32));
            Ok(AnyComponent::Generator(Box::new(generator)))
        };
        let sources = (0..).zip(streams).map(generator).collect::<Result<_, String>>()?;
        Builder::build(machine, scheme, sources)
    }

    /// The same system with the host's side of CXL.cache in place of each host's cores and caches.
    ///
    /// # Errors
    /// If there is something in the machine that no system can have, with the reason.
    pub fn with_coherence(machine: &Machine) -> Result<System, String> {
        let topology = machine.topology();
        let host = |node: &HostNode| {
            let leads_to_accelerator = |edge: &&EdgeId| match topology.edge(**edge).to {
                Vertex::Device(device) => topology.is_accelerator(device),
                _ => false,
            };
            let edges = node.edges.iter().filter(leads_to_accelerator);
            let devices = edges.map(|edge| bridge_port(node, *edge)).collect();
            let memory = topology.ranges.iter().filter(|range| topology.is_accelerator(range.targets[0]));
            let kind = |device: DeviceId| match machine.fabric.bias.get(topology.name(Vertex::Device(device))) {
                Some(Bias::BackInvalidate) => Kind::BackInvalidate,
                Some(Bias::Host | Bias::Device) | None => Kind::Bias,
            };
            let memory = memory.map(|range| (lines(range.base, range.bytes), kind(range.targets[0]))).collect();
            AnyComponent::CoherentHost(Box::new(CoherentHost::new(machine, devices, memory)))
        };
        Builder::build(machine, Scheme::Nopb, topology.hosts.iter().map(host).collect())
    }

    fn empty() -> System {
        System {
            names: Vec::new(),
            components: Vec::new(),
            wires: Wires::default(),
            queue: EventQueue::holding_credits(),
            trace: None,
            now: Time::ZERO,
            hosts: Vec::new(),
            coherent_hosts: Vec::new(),
            generators: Vec::new(),
            keys: Keys::default(),
            links: Vec::new(),
            ranges: Vec::new(),
            devices: Vec::new(),
            persist_points: Vec::new(),
            switch_egress: Vec::new(),
            transport: None,
            transport_due: Time::NEVER,
        }
    }

    fn add(&mut self, name: impl Into<String>, component: AnyComponent) -> ComponentId {
        self.names.push(name.into());
        self.components.push(component);
        ComponentId(self.components.len() as u32 - 1)
    }
}

/// What a machine says about persists that are inserted into a program of `set`.
pub fn persist_policy(machine: &Machine, set: InstructionSet, mode: PersistMode) -> PersistPolicy {
    let (flush, fence) = match set {
        InstructionSet::X86_64 => {
            let flush = match machine.persist.flush {
                InsertedFlush::Clflush => Flush::CLFLUSH,
                InsertedFlush::Clflushopt => Flush::CLFLUSHOPT,
                InsertedFlush::Clwb => Flush::CLWB,
            };
            let fence = match machine.persist.fence {
                InsertedFence::Mfence => Fence::MFENCE,
                InsertedFence::Sfence => Fence::SFENCE,
            };
            (flush, fence)
        }
        InstructionSet::Aarch64 => {
            let flush = match machine.persist.aarch64_flush {
                InsertedAarch64Flush::DcCvap => Flush::DC_CVAP,
                InsertedAarch64Flush::DcCvac => Flush::DC_CVAC,
                InsertedAarch64Flush::DcCivac => Flush::DC_CIVAC,
            };
            (flush, Fence::DSB)
        }
    };
    PersistPolicy { mode, flush, fence, synchronisation: set.synchronisation() }
}

/// What a host of a machine is built from.
fn host_config(machine: &Machine, host: &HostNode) -> HostConfig {
    let levels = machine.cache_levels();
    HostConfig {
        core: machine.core.clone(),
        tlb: machine.tlb.clone(),
        branch_predictor: machine.branch_predictor.clone(),
        l1i: levels.l1i.clone(),
        l1d: levels.l1d.clone(),
        levels: levels.lower.iter().map(|(name, level)| ((*name).to_owned(), (*level).clone())).collect(),
        simulation: machine.simulation.clone(),
        bus_round_trip: Duration::from_ns(machine.host_bridge.latency_ns) * 2,
        sockets: several_sockets(machine, host),
    }
}

/// The sockets of a host, if it has several.
fn several_sockets(machine: &Machine, host: &HostNode) -> Option<SeveralSockets> {
    let link = machine.socket_link.filter(|_| machine.sockets() > 1)?;
    let memory_ends = host.drams.iter().map(|dram| LineAddress::containing(dram.addresses.end)).collect();
    let memory_directory = machine.sockets.is_some_and(|sockets| sockets.memory_directory);
    Some(SeveralSockets {
        memory_ends,
        memory_directory,
        to_ports: Duration::from_ns(link.to_ports_ns),
        link: link.link(),
    })
}

/// A system in the making.
struct Builder<'a> {
    machine: &'a Machine,
    topology: &'a Topology,
    scheme: Scheme,
    /// The persist points of each device.
    persist_points: Vec<Vec<SwitchId>>,
    /// The components of each host.
    hosts: Vec<HostComponents>,
    /// Parallel to the topology's switches.
    switches: Vec<ComponentId>,
    /// Between the memory and the engine of each accelerator.
    inner_wires: Vec<((ComponentId, PortId), (ComponentId, PortId))>,
    system: System,
}

/// The components of one host.
struct HostComponents {
    /// Its cores and caches, or the traffic in their place.
    source: ComponentId,
    bridge: ComponentId,
    /// Its own DRAM, in the order of the bridge's ports from [`Self::FIRST_PORT`] on.
    drams: Vec<ComponentId>,
}

impl HostComponents {
    /// The first port of a bridge that leads to memory.
    const FIRST_PORT: u16 = HOST_PORT.0 + 1;
}

impl Builder<'_> {
    fn switch(&self, switch: SwitchId) -> ComponentId {
        self.switches[switch.0 as usize]
    }

    fn device(&self, device: DeviceId) -> ComponentId {
        self.system.devices[device.0 as usize]
    }

    fn build(machine: &Machine, scheme: Scheme, sources: Vec<AnyComponent>) -> Result<System, String> {
        let topology = machine.topology();
        topology.check_scheme(scheme)?;
        let devices = (0..topology.devices.len() as u32).map(DeviceId);
        let persist_points = devices.map(|device| topology.persist_points(device)).collect();
        let (hosts, switches, inner_wires, system) = (Vec::new(), Vec::new(), Vec::new(), System::empty());
        let mut builder = Builder { machine, topology, scheme, persist_points, hosts, switches, inner_wires, system };
        builder.add_hosts(sources)?;
        builder.add_switches()?;
        builder.add_devices()?;
        builder.connect();
        Ok(builder.system)
    }

    /// Adds each host: the source of its requests, its bridge and its own DRAM.
    fn add_hosts(&mut self, sources: Vec<AnyComponent>) -> Result<(), String> {
        let mut biases = self.machine.fabric.bias.iter();
        let snooping = biases.find(|(_, bias)| **bias == Bias::BackInvalidate).map(|(name, _)| name);
        let answers_snoops = |source: &AnyComponent| matches!(source, AnyComponent::CoherentHost(_));
        if let Some(name) = snooping.filter(|_| !sources.iter().all(answers_snoops)) {
            return Err(format!(
                "{name} snoops its host (fabric.bias.{name} = \"back_invalidate\"), which bursts of requests model and \
                 replays of programs and synthetic traffic do not: give its memory a bias, \"host\" or \"device\""
            ));
        }
        for ((number, node), source) in (0..).zip(&self.topology.hosts).zip(sources) {
            let list = match source {
                AnyComponent::Host(_) => &mut self.system.hosts,
                AnyComponent::CoherentHost(_) => &mut self.system.coherent_hosts,
                _ => &mut self.system.generators,
            };
            list.push(ComponentId(self.system.components.len() as u32));
            let source = self.system.add(&node.name, source);
            let bridge = self.host_bridge(node)?.of_host(number);
            let bridge = self.system.add(format!("{}_bridge", node.name), AnyComponent::HostBridge(Box::new(bridge)));
            let drams = node.drams.iter().map(|dram| self.add_dram(node, dram)).collect::<Result<_, _>>()?;
            self.hosts.push(HostComponents { source, bridge, drams });
        }
        Ok(())
    }

    /// The bridge of a host: its first ports lead to the host's own DRAM, the others along its edges.
    fn host_bridge(&self, node: &HostNode) -> Result<HostBridge, String> {
        let own = PortDescription { link: local_connection(&self.dram_config()), keeps_order: true };
        let along = |edge: &EdgeId| PortDescription {
            link: self.link(*edge),
            keeps_order: self.topology.edge(*edge).connection == Connection::Local,
        };
        let ports: Vec<_> = node.drams.iter().map(|_| own.clone()).chain(node.edges.iter().map(along)).collect();
        let to_dram = |(dram, port): (&DramNode, u16)| {
            let Range { start, end } = dram.addresses;
            HdmRange::new(start, end - start, GRANULARITY_MIN, vec![PortId(port)]).map_err(|error| error.to_string())
        };
        let mut ranges =
            node.drams.iter().zip(HostComponents::FIRST_PORT..).map(to_dram).collect::<Result<Vec<_>, _>>()?;
        ranges.extend(hdm_ranges(&node.decoders, |edge| bridge_port(node, edge))?);
        let decoder = HdmDecoder::new(ranges).map_err(|error| error.to_string())?;
        Ok(HostBridge::new(&self.machine.host_bridge, decoder, &ports).counting(self.counted_nodes(node)))
    }

    fn add_dram(&mut self, host: &HostNode, dram: &DramNode) -> Result<ComponentId, String> {
        let config = self.dram_config();
        if dram.frames(config.capacity_bytes()).end > dram.addresses.end {
            return Err(format!("{} of {} is larger than its part of the address space", dram.name, host.name));
        }
        let name = match &host.drams[..] {
            [_only] => format!("{}_dram", host.name),
            _ => format!("{}_{}", host.name, dram.name),
        };
        let interleave = Interleave::none(dram.addresses.start).map_err(|error| error.to_string())?;
        let device = Device::new(&config, &[local_connection(&config)], interleave);
        Ok(self.system.add(name, AnyComponent::Device(Box::new(device))))
    }

    /// What every DRAM of a host is like.
    fn dram_config(&self) -> MediumConfig {
        MediumConfig::Dram(self.machine.dram.clone())
    }

    /// The memory nodes by which the bridge of `host` counts.
    fn counted_nodes(&self, host: &HostNode) -> Vec<NodeCounts> {
        let own =
            host.drams.iter().map(|dram| NodeCounts::new(&dram.name, LineAddress::containing(dram.addresses.end)));
        let others = self.topology.ranges.iter();
        let cores = usize::from(self.machine.sockets()) * self.machine.core.count as usize;
        let others = others.map(|range| {
            let counts = NodeCounts::new(&range.name, LineAddress::containing(range.base + range.bytes));
            // What of a pool is whose: the counters that a transport has are those of cores.
            if range.is_pm() { counts } else { counts.by_core(cores) }
        });
        own.chain(others).collect()
    }

    fn add_switches(&mut self) -> Result<(), String> {
        for (index, node) in self.topology.switches.iter().enumerate() {
            let id = SwitchId(index as u32);
            let links = self.links_of(node);
            let ports: Vec<_> = links.iter().map(|&edge| self.describe_port(node, edge)).collect();
            let port_of = |edge: EdgeId| {
                let link = self.topology.link_of(edge);
                let index = links.iter().position(|&own| own == link).expect("a decoder names its switch's edges");
                PortId(index as u16)
            };
            let decoder = HdmDecoder::new(hdm_ranges(&node.decoders, port_of)?).map_err(|error| error.to_string())?;
            let persists = self.persist_ranges(id)?;
            let role = if persists.is_empty() { Role::Volatile } else { Role::Persistent(self.scheme) };
            let routing = RoutingTable::new(decoder, persists);
            let switch = Switch::new(self.topology.switch_config(id), &ports, routing, role);
            let id = self.system.add(&node.name, AnyComponent::Switch(Box::new(switch)));
            self.switches.push(id);
        }
        Ok(())
    }

    /// The links of a switch, in the order of its ports.
    fn links_of(&self, node: &SwitchNode) -> Vec<EdgeId> {
        let mut links = Vec::new();
        for edge in node.upstream.iter().chain(&node.downstream) {
            let link = self.topology.link_of(*edge);
            if !links.contains(&link) {
                links.push(link);
            }
        }
        links
    }

    fn describe_port(&self, node: &SwitchNode, link: EdgeId) -> switch::PortDescription {
        let is_among = |edges: &[EdgeId]| edges.iter().any(|edge| self.topology.link_of(*edge) == link);
        let direction = match (is_among(&node.upstream), is_among(&node.downstream)) {
            (true, true) => PortDirection::Both,
            (true, false) => PortDirection::Upstream,
            (false, _) => PortDirection::Downstream,
        };
        switch::PortDescription { link: self.link(link), direction }
    }

    /// The ranges of lines that persist in `switch`. Of an interleaved range it sees only the lines of the devices
    /// behind it.
    fn persist_ranges(&self, switch: SwitchId) -> Result<Vec<Range<LineAddress>>, String> {
        let mut ranges = Vec::new();
        for range in self.topology.ranges.iter().filter(|range| range.is_pm()) {
            let is_behind = |device: &&DeviceId| self.topology.downstream_edge(switch, **device).is_some();
            let persists_here = |device: &DeviceId| self.persist_points[device.0 as usize].contains(&switch);
            let behind: Vec<&DeviceId> = range.targets.iter().filter(is_behind).collect();
            let here = behind.iter().filter(|device| persists_here(device)).count();
            if here > 0 && here < behind.len() {
                let name = self.topology.name(Vertex::Switch(switch));
                return Err(format!(
                    "some devices of an interleaved set have their persist point in {name}, and others behind it have not"
                ));
            }
            if here > 0 {
                ranges.push(lines(range.base, range.bytes));
            }
        }
        Ok(ranges)
    }

    fn add_devices(&mut self) -> Result<(), String> {
        for (index, node) in self.topology.devices.iter().enumerate() {
            let id = DeviceId(index as u32);
            let range = self.topology.ranges.iter().find(|range| range.targets.contains(&id));
            let Some(range) = range else { return Err(format!("{} lies in no range of addresses", node.name)) };
            let mut links: Vec<_> = node.upstream.iter().map(|&edge| self.link(edge)).collect();
            let type2 = self.machine.type2.as_ref().filter(|_| self.topology.is_accelerator(id));
            // Inside an accelerator as much may be under way as its link lets in.
            let inner = |link: &LinkConfig| LinkConfig {
                credits: link.credits,
                ..local_connection(self.topology.device_config(id))
            };
            let inner = type2.and(links.first()).map(inner);
            links.extend(inner);
            let mut device = Device::new(self.topology.device_config(id), &links, range.interleave);
            if self.topology.pm_sharing == PmSharing::SharedUnsafe {
                device.medium_mut().take_older_writes();
            }
            let component = match type2 {
                Some(type2) => {
                    let lines = lines(range.base, range.bytes);
                    let accelerator = Accelerator::new(type2, device, lines, links.last().expect("it has a link"));
                    let accelerator = match self.machine.fabric.bias.get(&node.name) {
                        Some(Bias::Device) => accelerator.in_device_bias(),
                        Some(Bias::BackInvalidate) => {
                            let filter = type2.snoop_filter.as_ref().ok_or("a device that snoops has a filter")?;
                            accelerator.with_snoop_filter(filter)
                        }
                        Some(Bias::Host) | None => accelerator,
                    };
                    AnyComponent::Accelerator(Box::new(accelerator))
                }
                None => AnyComponent::Device(Box::new(device)),
            };
            let is_accelerator = type2.is_some();
            let id = self.system.add(&node.name, component);
            if is_accelerator {
                let [memory, engine] = Accelerator::INNER_PORTS;
                self.inner_wires.push(((id, memory), (id, engine)));
            }
            self.system.devices.push(id);
        }
        for range in &self.topology.ranges {
            self.system.ranges.push((lines(range.base, range.bytes), range.interleave, range.targets.clone()));
        }
        let devices = || (0..self.topology.devices.len() as u32).map(DeviceId);
        let points = |host, device| -> Vec<ComponentId> {
            let on_route =
                self.topology.switches_passed(host, device, &self.persist_points[device.0 as usize]).into_iter();
            on_route.filter(|_| self.scheme.has_persist_buffer()).map(|switch| self.switch(switch)).collect()
        };
        let hosts = (0..self.topology.hosts.len() as u32).map(HostId);
        self.system.persist_points = hosts.map(|host| devices().map(|device| points(host, device)).collect()).collect();
        Ok(())
    }

    fn connect(&mut self) {
        for (memory, engine) in std::mem::take(&mut self.inner_wires) {
            self.system.wires.connect(memory, engine);
        }
        for (node, HostComponents { source, bridge, drams }) in self.topology.hosts.iter().zip(&self.hosts) {
            let has_caches = self.system.hosts.contains(source);
            let sockets = several_sockets(self.machine, node).filter(|_| has_caches);
            for (agent, home) in sockets.iter().flat_map(SeveralSockets::wires) {
                self.system.wires.connect((*source, agent), (*source, home));
            }
            if self.system.coherent_hosts.contains(source) && self.machine.sockets() > 1 {
                let [one, other] = LINK_ENDS;
                self.system.wires.connect((*source, one), (*source, other));
            }
            self.system.wires.connect((*source, PortId(0)), (*bridge, HOST_PORT));
            for (dram, port) in drams.iter().zip(HostComponents::FIRST_PORT..) {
                self.system.wires.connect((*bridge, PortId(port)), (*dram, PortId(0)));
            }
        }
        for (index, edge) in self.topology.edges.iter().enumerate() {
            let id = EdgeId(index as u32);
            if self.topology.link_of(id) != id {
                continue;
            }
            let (from, to) = (self.port(edge.from, id), self.port(edge.to, id));
            self.system.wires.connect(from, to);
            if let Some(link) = self.topology.link_config(id).filter(|_| edge.connection == Connection::Link) {
                let names = [(edge.from, edge.to, from), (edge.to, edge.from, to)];
                for (is_downstream, (sender, _, (component, port))) in [true, false].into_iter().zip(names) {
                    if matches!(sender, Vertex::Switch(_)) {
                        self.system.switch_egress.push((Place::Link { link: id.0, is_downstream }, (component, port)));
                    }
                }
                for (sender, receiver, (component, port)) in names {
                    let name = format!("{} -> {}", self.topology.name(sender), self.topology.name(receiver));
                    let owner = &self.system.names[component.0 as usize];
                    let stats_path = match sender {
                        Vertex::Host(_) | Vertex::Device(_) => format!("{owner}.port{}", port.0),
                        Vertex::Switch(_) => format!("{owner}.port{}.link", port.0),
                    };
                    self.system.links.push(LinkEnd { name, flit_bytes: link.flit_format.bytes(), stats_path });
                }
            }
        }
    }

    /// The port of `vertex` at that edge, which has a link of its own.
    fn port(&self, vertex: Vertex, edge: EdgeId) -> (ComponentId, PortId) {
        let position = |edges: &[EdgeId]| edges.iter().position(|&own| own == edge);
        match vertex {
            Vertex::Host(host) => {
                let index = host.0 as usize;
                (self.hosts[index].bridge, bridge_port(&self.topology.hosts[index], edge))
            }
            Vertex::Switch(switch) => {
                let node = &self.topology.switches[switch.0 as usize];
                let index = position(&self.links_of(node)).expect("a link of that switch");
                (self.switch(switch), PortId(index as u16))
            }
            Vertex::Device(device) => {
                let index =
                    position(&self.topology.devices[device.0 as usize].upstream).expect("an edge of that device");
                (self.device(device), PortId(index as u16))
            }
        }
    }

    /// What an edge is like, seen from either end.
    fn link(&self, edge: EdgeId) -> LinkConfig {
        match (self.topology.edge(edge).connection, self.topology.link_config(edge), self.topology.edge(edge).to) {
            (Connection::Link, Some(link), _) => link.clone(),
            (_, _, Vertex::Device(device)) => local_connection(self.topology.device_config(device)),
            _ => unreachable!("a local connection leads to a device"),
        }
    }
}

/// The port of a host's bridge that leads along `edge`.
fn bridge_port(node: &HostNode, edge: EdgeId) -> PortId {
    let index = node.edges.iter().position(|&own| own == edge).expect("the edge starts at that host");
    PortId(HostComponents::FIRST_PORT + (node.drams.len() + index) as u16)
}

/// The connection of a memory controller on the host's own fabric: its buffers are the controller's queues, and it has
/// neither latency (the host bridge has that) nor a limit of bandwidth of its own (the medium has that).
fn local_connection(medium: &MediumConfig) -> LinkConfig {
    let (reads, writes) = match medium {
        MediumConfig::Dram(dram) | MediumConfig::BackedDram(dram) => {
            (dram.channels * dram.read_queue_entries, dram.channels * dram.write_queue_entries)
        }
        MediumConfig::Pm(pm) => (pm.read_queue_entries, pm.write_queue_entries),
    };
    LinkConfig { credits: mem::credits(reads, writes), ..LinkConfig::new(FlitFormat::Bytes68, f64::INFINITY, 0.0, 0) }
}

fn hdm_ranges(decoders: &[DecoderEntry], port_of: impl Fn(EdgeId) -> PortId) -> Result<Vec<HdmRange>, String> {
    decoders
        .iter()
        .map(|decoder| {
            let targets = decoder.edges.iter().map(|&edge| port_of(edge)).collect();
            HdmRange::new(decoder.base, decoder.bytes, decoder.granularity_bytes, targets)
                .map_err(|error| error.to_string())
        })
        .collect()
}

fn lines(base: u64, bytes: u64) -> Range<LineAddress> {
    LineAddress::containing(base)..LineAddress::containing(base + bytes)
}
