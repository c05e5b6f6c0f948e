//! From a machine's configuration to components and links. The only place that knows the topology.

use std::ops::Range;

use crate::address_map::PM_BASE;
use crate::address_space::OWN_DRAM;
use crate::config::topology::{
    Connection, DecoderEntry, DeviceId, EdgeId, HostId, SwitchId, SwitchNode, Topology, Vertex,
};
use crate::config::{InsertedFence, InsertedFlush, Machine, PmSharing};
use crate::core::persist::{PersistMode, PersistPolicy};
use crate::device::{Device, MediumConfig};
use crate::host::{Host, HostConfig, RegionBoundary, Workload};
use crate::host_bridge::{HOST_PORT, HdmDecoder, HdmRange, HostBridge, Interleave, NodeCounts, PortDescription};
use crate::isa::micro_op::{Fence, Flush};
use crate::kernel::HostActivity;
use crate::kernel::link::{FlitFormat, LinkConfig};
use crate::kernel::trace::Trace;
use crate::kernel::{Component, ComponentId, Context, Event, EventQueue, PortId, Wires};
use crate::line::{LineAddress, Version};
use crate::stats::StatsNode;
use crate::switch::{self, PortDirection, Role, RoutingTable, Scheme, Switch};
use crate::time::{Duration, Time};
use crate::traffic::{Generator, Keys, StreamConfig, footprint};

/// Every kind of component there is.
#[derive(Clone)]
pub enum AnyComponent {
    /// Cores and caches.
    Host(Box<Host>),
    /// Synthetic traffic in the place of a host's cores and caches.
    Generator(Box<Generator>),
    /// The way from a host's caches to its memory ports.
    HostBridge(Box<HostBridge>),
    /// A CXL switch.
    Switch(Box<Switch>),
    /// A memory device: a host's DRAM, a PM device, a memory expander.
    Device(Box<Device>),
    /// Something that does what no component may do.
    #[cfg(test)]
    Broken(crate::kernel::broken::Broken),
}

impl AnyComponent {
    fn component(&self) -> &dyn Component {
        match self {
            AnyComponent::Host(host) => host.as_ref(),
            AnyComponent::Generator(generator) => generator.as_ref(),
            AnyComponent::HostBridge(bridge) => bridge.as_ref(),
            AnyComponent::Switch(switch) => switch.as_ref(),
            AnyComponent::Device(device) => device.as_ref(),
            #[cfg(test)]
            AnyComponent::Broken(broken) => broken,
        }
    }

    fn component_mut(&mut self) -> &mut dyn Component {
        match self {
            AnyComponent::Host(host) => host.as_mut(),
            AnyComponent::Generator(generator) => generator.as_mut(),
            AnyComponent::HostBridge(bridge) => bridge.as_mut(),
            AnyComponent::Switch(switch) => switch.as_mut(),
            AnyComponent::Device(device) => device.as_mut(),
            #[cfg(test)]
            AnyComponent::Broken(broken) => broken,
        }
    }

    /// `keys` are what all generators have in common.
    #[inline]
    fn handle(&mut self, event: Event, keys: &mut Keys, context: &mut Context<'_>) {
        match self {
            AnyComponent::Host(host) => host.handle(event, context),
            AnyComponent::Generator(generator) => generator.handle_with(event, keys, context),
            AnyComponent::HostBridge(bridge) => bridge.handle(event, context),
            AnyComponent::Switch(switch) => switch.handle(event, context),
            AnyComponent::Device(device) => device.handle(event, context),
            #[cfg(test)]
            AnyComponent::Broken(broken) => broken.handle(event, context),
        }
    }
}

/// Where an event was handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stepped {
    /// None was left.
    Nowhere,
    /// In a host: instructions may have gone on, and a region may have begun or ended.
    InHost,
    /// Anywhere else.
    InFabric,
}

/// One direction of a CXL link: who sends into it.
#[derive(Clone, Debug)]
pub struct LinkEnd {
    /// `FROM -> TO`, in the direction of the messages.
    pub name: String,
    /// Bytes of a flit.
    pub flit_bytes: u32,
    /// Where its transmitter's counters are in the tree of statistics.
    pub stats_path: String,
}

/// All components of a machine, wired, with the events under way between them.
#[derive(Clone)]
pub struct System {
    names: Vec<String>,
    components: Vec<AnyComponent>,
    wires: Wires,
    queue: EventQueue,
    /// Kept only where somebody follows single requests.
    trace: Option<Box<Trace>>,
    now: Time,
    hosts: Vec<ComponentId>,
    generators: Vec<ComponentId>,
    keys: Keys,
    links: Vec<LinkEnd>,
    /// Which device each line of the fabric lies in.
    ranges: Vec<(Range<LineAddress>, Interleave, Vec<DeviceId>)>,
    devices: Vec<ComponentId>,
    /// The switches that persists pass in persist buffers, by host and device, the first one on the way first.
    persist_points: Vec<Vec<Vec<ComponentId>>>,
}

impl System {
    /// The system that `machine` describes, each host with its workload, persisting as `scheme` says.
    ///
    /// # Errors
    /// If the fabric cannot run that scheme, or asks for something that components cannot do; with the reason.
    pub fn new(machine: &Machine, scheme: Scheme, workloads: Vec<Workload>) -> Result<System, String> {
        assert_eq!(workloads.len(), machine.topology().hosts.len(), "each host has a workload");
        let config = host_config(machine);
        let hosts = workloads.into_iter().map(|workload| Host::new(&config, workload));
        Builder::build(machine, scheme, hosts.map(|host| AnyComponent::Host(Box::new(host))).collect())
    }

    /// The same system with a traffic generator in the place of each host's cores and caches. Its requests pay the latency of the caches, and are
    /// not held up by their MSHRs.
    ///
    /// # Errors
    /// If the fabric cannot run that scheme, or there can be no such streams on it; with the reason.
    pub fn with_traffic(
        machine: &Machine,
        scheme: Scheme,
        streams: &[&[StreamConfig]],
        seed: u64,
    ) -> Result<System, String> {
        assert_eq!(streams.len(), machine.topology().hosts.len(), "each host has streams");
        streams.iter().flat_map(|streams| streams.iter()).try_for_each(StreamConfig::check)?;
        footprint::check_sharing(machine, streams)?;
        let cache_latency = machine.cache_levels().miss_latency(machine.core.clock_ghz);
        let generator = |(host, streams): (u32, &&[StreamConfig])| {
            let footprints = footprint::of_streams(machine, HostId(host), streams)?;
            let streams: Vec<_> = streams.iter().cloned().zip(footprints).collect();
            let generator = Generator::new(&streams, cache_latency, seed.wrapping_add(u64::from(host) << 32));
            Ok(AnyComponent::Generator(Box::new(generator)))
        };
        let sources = (0..).zip(streams).map(generator).collect::<Result<_, String>>()?;
        Builder::build(machine, scheme, sources)
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
            generators: Vec::new(),
            keys: Keys::default(),
            links: Vec::new(),
            ranges: Vec::new(),
            devices: Vec::new(),
            persist_points: Vec::new(),
        }
    }

    /// Puts something broken in the place of the component `name`; there is none under way yet.
    #[cfg(test)]
    pub fn break_component(&mut self, name: &str, fault: crate::kernel::broken::Fault) {
        let index = self.names.iter().position(|own| own == name).expect("there is such a component");
        let id = ComponentId(index as u32);
        let is_host = self.hosts.contains(&id) || self.generators.contains(&id);
        self.hosts.retain(|host| *host != id);
        self.generators.retain(|generator| *generator != id);
        self.components[index] = AnyComponent::Broken(crate::kernel::broken::Broken::new(fault, is_host));
        Context::new(self.now, id, &mut self.queue, &self.wires).wake_at(self.now, 0);
    }

    /// Starts the programs, or the traffic, of all hosts.
    pub fn start(&mut self) {
        for id in self.generators.clone() {
            let mut context = Context::new(self.now, id, &mut self.queue, &self.wires);
            match &mut self.components[id.0 as usize] {
                AnyComponent::Generator(generator) => generator.start(&mut context),
                _ => unreachable!("only generators are listed"),
            }
        }
        for id in self.hosts.clone() {
            self.with_host(id, |host, context| host.start(context));
        }
    }

    /// Handles the next event, if there is one.
    #[inline]
    pub fn step(&mut self) -> Stepped {
        let Some((time, target, event)) = self.queue.pop() else { return Stepped::Nowhere };
        debug_assert!(time >= self.now, "time goes back");
        self.now = time;
        let mut context = Context::new(time, target, &mut self.queue, &self.wires).traced(self.trace.as_deref_mut());
        let component = &mut self.components[target.0 as usize];
        component.handle(event, &mut self.keys, &mut context);
        if let Some(trace) = &mut self.trace
            && trace.is_following()
        {
            trace.sample(target, time, component.component().gauges());
        }
        if matches!(component, AnyComponent::Host(_)) { Stepped::InHost } else { Stepped::InFabric }
    }

    /// Follows single requests from now on.
    pub fn trace(&mut self, trace: Trace) {
        // What is watched are also the credits in hand.
        self.queue.stop_holding_credits();
        self.trace = Some(Box::new(trace));
    }

    /// Follows none any more; gives what has been taken down.
    pub fn take_trace(&mut self) -> Option<Trace> {
        self.trace.take().map(|trace| *trace)
    }

    /// What has been taken down of single requests, if it is.
    pub fn trace_mut(&mut self) -> Option<&mut Trace> {
        self.trace.as_deref_mut()
    }

    /// The names of the components, by their ids.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Which port is wired to which.
    pub fn wires(&self) -> &Wires {
        &self.wires
    }

    /// The time of the last event.
    pub fn now(&self) -> Time {
        self.now
    }

    /// When the next event is due.
    pub fn next_time(&self) -> Option<Time> {
        self.queue.next_time()
    }

    /// The hosts.
    pub fn hosts(&self) -> impl Iterator<Item = &Host> {
        self.hosts.iter().map(|id| match &self.components[id.0 as usize] {
            AnyComponent::Host(host) => host.as_ref(),
            _ => unreachable!("only hosts are listed"),
        })
    }

    /// The names of the hosts.
    pub fn host_names(&self) -> impl Iterator<Item = &str> {
        self.hosts.iter().map(|id| self.names[id.0 as usize].as_str())
    }

    /// The hosts.
    pub fn hosts_mut(&mut self) -> impl Iterator<Item = &mut Host> {
        self.components.iter_mut().filter_map(|component| match component {
            AnyComponent::Host(host) => Some(host.as_mut()),
            _ => None,
        })
    }

    /// The boundary of a region of interest that a host has just crossed, with the host's number.
    #[inline]
    pub fn take_region_boundary(&mut self) -> Option<(usize, RegionBoundary)> {
        let components = &mut self.components;
        self.hosts.iter().enumerate().find_map(|(number, id)| match &mut components[id.0 as usize] {
            AnyComponent::Host(host) => host.take_region_boundary().map(|boundary| (number, boundary)),
            _ => None,
        })
    }

    /// No event is left, and programs are not at their end: ends one wait; whether there was one.
    pub fn unblock(&mut self) -> bool {
        self.any_host(Host::unblock)
    }

    /// The same where hosts meet at the boundaries of regions: only a host that waits at none lacks a wake.
    pub fn unblock_within_regions(&mut self) -> bool {
        self.any_host(|host, context| !host.is_at_boundary() && host.unblock(context))
    }

    /// Hosts whose region has ended go on; whether there was one.
    pub fn leave_regions(&mut self) -> bool {
        self.all_hosts(Host::leave_region)
    }

    /// The regions of hosts that wait for each other begin; whether there was one.
    pub fn begin_regions(&mut self) -> bool {
        self.all_hosts(Host::begin_region)
    }

    /// Whether every program is at its end, or every stream of traffic.
    pub fn is_finished(&self) -> bool {
        self.hosts().all(Host::is_finished) && self.generators().all(Generator::is_finished)
    }

    /// The keys that traffic has put, and what was promised of them.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The number of the host in whose place a traffic generator stands.
    pub fn host_of(&self, generator: ComponentId) -> Option<usize> {
        self.generators.iter().position(|id| *id == generator)
    }

    /// The traffic generators.
    pub fn generators(&self) -> impl Iterator<Item = &Generator> {
        self.generators.iter().map(|id| match &self.components[id.0 as usize] {
            AnyComponent::Generator(generator) => generator.as_ref(),
            _ => unreachable!("only generators are listed"),
        })
    }

    /// How many events were ever handled; a measure of the work done.
    pub fn events(&self) -> u64 {
        self.queue.taken()
    }

    /// What each host, or the traffic in its place, has done so far, by its name.
    pub fn activities(&self) -> impl Iterator<Item = (&str, HostActivity)> {
        self.names.iter().zip(&self.components).filter_map(|(name, component)| {
            let activity = match component {
                AnyComponent::Host(host) => Some(host.activity()),
                AnyComponent::Generator(generator) => Some(generator.activity()),
                #[cfg(test)]
                AnyComponent::Broken(broken) => broken.activity(),
                _ => None,
            };
            Some((name.as_str(), activity?))
        })
    }

    /// Whether nothing is under way anywhere, persist buffers and write queues included.
    pub fn is_idle(&self) -> bool {
        self.components.iter().all(|component| component.component().is_idle())
    }

    /// Who waits for what, one line each; of each component that has something to wait for, also where its ports lead.
    pub fn waiting(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for ((name, component), id) in self.names.iter().zip(&self.components).zip((0..).map(ComponentId)) {
            let waiting = component.component().waiting();
            if waiting.is_empty() {
                continue;
            }
            let peers = self.wires.peers(id);
            let peers = peers.map(|(port, peer)| format!("port {} to {}", port.0, self.names[peer.0 as usize]));
            lines.extend(waiting.into_iter().map(|line| format!("{name}: {line}")));
            lines.push(format!("{name}: leads by {}", peers.collect::<Vec<_>>().join(", ")));
        }
        lines
    }

    /// Everything counted so far.
    pub fn stats(&self) -> StatsNode {
        self.stats_at(self.now)
    }

    /// Everything counted up to `time`, which is not before the last event and not after the next one.
    pub fn stats_at(&self, time: Time) -> StatsNode {
        debug_assert!(self.now <= time && self.next_time().is_none_or(|next| time <= next));
        let named = self.names.iter().zip(&self.components);
        StatsNode::group(named.map(|(name, component)| (name.clone(), component.component().stats(time))))
    }

    /// The senders of all directions of all CXL links, in the order of the machine file.
    pub fn links(&self) -> &[LinkEnd] {
        &self.links
    }

    /// Gives the devices what was written while caches were only warmed; the first persist buffer on its way that still holds the line from an earlier
    /// region keeps it instead.
    pub fn absorb_warm_writes(&mut self) {
        for (host, line, version) in self.take_warm_writes() {
            self.preload(host, line, version);
        }
    }

    /// The same between the intervals of a sample, where persist buffers are to hold what they would have held: the last lines that were written go
    /// through them, a few times as many as they have entries.
    pub fn absorb_sampled_writes(&mut self) {
        /// Lines that go through a buffer for each of its entries: which ones it holds then no longer depends on those before.
        const ROUNDS: usize = 4;
        let writes = self.take_warm_writes();
        let buffers = self.switches().filter_map(|(_, switch)| switch.persist_buffer());
        let recent = buffers.map(|buffer| buffer.entries() * ROUNDS).max().unwrap_or(0);
        let (old, recent) = writes.split_at(writes.len().saturating_sub(recent));
        for &(host, line, version) in old {
            self.preload(host, line, version);
        }
        for &(host, line, version) in recent {
            self.write_functionally(host, line, version);
        }
    }

    fn take_warm_writes(&mut self) -> Vec<(usize, LineAddress, Version)> {
        let of_host = |(host, of): (usize, &mut Host)| {
            of.take_warm_writes().into_iter().map(move |(line, version)| (host, line, version)).collect::<Vec<_>>()
        };
        self.hosts_mut().enumerate().flat_map(of_host).collect()
    }

    fn switch_mut(&mut self, id: ComponentId) -> &mut Switch {
        match &mut self.components[id.0 as usize] {
            AnyComponent::Switch(switch) => switch,
            _ => unreachable!("only switches are persist points"),
        }
    }

    fn preload(&mut self, host: usize, line: LineAddress, version: Version) {
        let device = self.device_of(line);
        let points = self.persist_points[host][device.0 as usize].clone();
        if !points.into_iter().any(|switch| self.switch_mut(switch).preload(line, version)) {
            self.preload_device(line, version);
        }
    }

    /// Lets a line take its way through the persist buffers to its device without time: what one drains because of it, the next one takes.
    fn write_functionally(&mut self, host: usize, line: LineAddress, version: Version) {
        let now = self.now;
        let device = self.device_of(line);
        let mut writes = vec![(line, version)];
        for switch in self.persist_points[host][device.0 as usize].clone() {
            let switch = self.switch_mut(switch);
            let drained = |(line, version)| switch.write_functionally(line, version, now).unwrap_or_default();
            writes = writes.into_iter().flat_map(drained).collect();
        }
        for (line, version) in writes {
            self.preload_device(line, version);
        }
    }

    fn preload_device(&mut self, line: LineAddress, version: Version) {
        let device = self.devices[self.device_of(line).0 as usize];
        if let AnyComponent::Device(device) = &mut self.components[device.0 as usize] {
            device.preload(line, version);
        }
    }

    /// What is counted over time begins now, unless it has begun.
    pub fn begin_series(&mut self) {
        let now = self.now;
        self.switches_mut().for_each(|switch| switch.begin_series(now));
    }

    fn switches_mut(&mut self) -> impl Iterator<Item = &mut Switch> {
        self.components.iter_mut().filter_map(|component| match component {
            AnyComponent::Switch(switch) => Some(switch.as_mut()),
            _ => None,
        })
    }

    /// A power cut: everything volatile and everything on the wires is gone.
    pub fn power_fail(&mut self) {
        self.queue.clear();
        for component in &mut self.components {
            component.component_mut().power_fail();
        }
    }

    /// Power is back: every component recovers. The events that this takes are still to be handled.
    pub fn recover(&mut self) {
        for id in 0..self.components.len() {
            let mut context = Context::new(self.now, ComponentId(id as u32), &mut self.queue, &self.wires);
            self.components[id].component_mut().recover(&mut context);
        }
    }

    /// Phase 1 of a Global Persistent Flush begins at all hosts.
    pub fn begin_flush_of_hosts(&mut self) {
        self.all_hosts(|host, context| {
            host.begin_global_flush(context);
            true
        });
    }

    /// Phase 2 of a Global Persistent Flush begins at all switches. Devices write what is in their queues anyway.
    pub fn begin_flush_of_switches(&mut self) {
        for id in 0..self.components.len() {
            let mut context = Context::new(self.now, ComponentId(id as u32), &mut self.queue, &self.wires);
            if let AnyComponent::Switch(switch) = &mut self.components[id] {
                switch.begin_global_flush(&mut context);
            }
        }
    }

    /// The switches, with their names.
    pub fn switches(&self) -> impl Iterator<Item = (&str, &Switch)> {
        self.names.iter().zip(&self.components).filter_map(|(name, component)| match component {
            AnyComponent::Switch(switch) => Some((name.as_str(), switch.as_ref())),
            _ => None,
        })
    }

    /// The memory devices, with their names.
    pub fn devices(&self) -> impl Iterator<Item = (&str, &Device)> {
        self.names.iter().zip(&self.components).filter_map(|(name, component)| match component {
            AnyComponent::Device(device) => Some((name.as_str(), device.as_ref())),
            _ => None,
        })
    }

    /// The version of a PM line that the persistent domain holds: what a persist buffer keeps, else what the device does.
    pub fn durable_version(&self, line: LineAddress) -> Version {
        let buffered = self.components.iter().filter_map(|component| match component {
            AnyComponent::Switch(switch) => switch.durable_version(line),
            _ => None,
        });
        let device = self.devices[self.device_of(line).0 as usize];
        let stored = match &self.components[device.0 as usize] {
            AnyComponent::Device(device) => device.durable_version(line),
            _ => None,
        };
        buffered.chain(stored).max().unwrap_or_default()
    }

    fn device_of(&self, line: LineAddress) -> DeviceId {
        let (_, interleave, devices) =
            self.ranges.iter().find(|(range, ..)| range.contains(&line)).expect("a PM line lies in some range");
        devices[interleave.way(line)]
    }

    /// Lets hosts act until one has something to do; whether one had.
    fn any_host(&mut self, mut act: impl FnMut(&mut Host, &mut Context<'_>) -> bool) -> bool {
        self.hosts.clone().into_iter().any(|id| self.with_host(id, &mut act))
    }

    /// Lets every host act; whether one had something to do.
    fn all_hosts(&mut self, mut act: impl FnMut(&mut Host, &mut Context<'_>) -> bool) -> bool {
        let acted: Vec<bool> = self.hosts.clone().into_iter().map(|id| self.with_host(id, &mut act)).collect();
        acted.contains(&true)
    }

    fn with_host<R>(&mut self, id: ComponentId, act: impl FnOnce(&mut Host, &mut Context<'_>) -> R) -> R {
        let mut context = Context::new(self.now, id, &mut self.queue, &self.wires);
        match &mut self.components[id.0 as usize] {
            AnyComponent::Host(host) => act(host, &mut context),
            _ => unreachable!("only hosts are listed"),
        }
    }

    fn add(&mut self, name: impl Into<String>, component: AnyComponent) -> ComponentId {
        self.names.push(name.into());
        self.components.push(component);
        ComponentId(self.components.len() as u32 - 1)
    }
}

/// What a machine says about inserted persists.
pub fn persist_policy(machine: &Machine, mode: PersistMode) -> PersistPolicy {
    let flush = match machine.persist.flush {
        InsertedFlush::Clflush => Flush::CLFLUSH,
        InsertedFlush::Clflushopt => Flush::CLFLUSHOPT,
        InsertedFlush::Clwb => Flush::CLWB,
    };
    let fence = match machine.persist.fence {
        InsertedFence::Mfence => Fence::MFENCE,
        InsertedFence::Sfence => Fence::SFENCE,
    };
    PersistPolicy { mode, flush, fence }
}

/// What every host of a machine is built from.
fn host_config(machine: &Machine) -> HostConfig {
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
    }
}

/// A system in the making.
struct Builder<'a> {
    machine: &'a Machine,
    topology: &'a Topology,
    scheme: Scheme,
    /// The persist points of each device.
    persist_points: Vec<Vec<SwitchId>>,
    system: System,
}

impl Builder<'_> {
    /// Components come in the order host and bridge and DRAM of each host, switches, PM devices.
    const PER_HOST: u32 = 3;

    fn bridge(host: HostId) -> ComponentId {
        ComponentId(host.0 * Self::PER_HOST + 1)
    }

    fn dram(host: HostId) -> ComponentId {
        ComponentId(host.0 * Self::PER_HOST + 2)
    }

    fn switch(&self, switch: SwitchId) -> ComponentId {
        ComponentId(self.topology.hosts.len() as u32 * Self::PER_HOST + switch.0)
    }

    fn device(&self, device: DeviceId) -> ComponentId {
        ComponentId(self.switch(SwitchId(self.topology.switches.len() as u32)).0 + device.0)
    }

    fn build(machine: &Machine, scheme: Scheme, sources: Vec<AnyComponent>) -> Result<System, String> {
        let topology = machine.topology();
        topology.check_scheme(scheme)?;
        let devices = (0..topology.devices.len() as u32).map(DeviceId);
        let persist_points = devices.map(|device| topology.persist_points(device)).collect();
        let mut builder = Builder { machine, topology, scheme, persist_points, system: System::empty() };
        builder.add_hosts(sources)?;
        builder.add_switches()?;
        builder.add_devices()?;
        builder.connect();
        Ok(builder.system)
    }

    /// Adds each host: what its requests come from, its bridge and its DRAM.
    fn add_hosts(&mut self, sources: Vec<AnyComponent>) -> Result<(), String> {
        for (node, source) in self.topology.hosts.iter().zip(sources) {
            let is_host = matches!(source, AnyComponent::Host(_));
            let id = self.system.add(&node.name, source);
            let list = if is_host { &mut self.system.hosts } else { &mut self.system.generators };
            list.push(id);
            let dram_link = local_connection(&MediumConfig::Dram(self.machine.dram.clone()));
            let mut ports = vec![PortDescription { link: dram_link.clone(), keeps_order: true }];
            let description = |edge: &EdgeId| PortDescription {
                link: self.link(*edge),
                keeps_order: self.topology.edge(*edge).connection == Connection::Local,
            };
            ports.extend(node.edges.iter().map(description));
            let port_of = |edge: EdgeId| {
                let index = node.edges.iter().position(|&own| own == edge).expect("a decoder names edges of its host");
                PortId(index as u16 + 2)
            };
            let mut ranges = vec![HdmRange::new(0, PM_BASE, 256, vec![PortId(1)]).map_err(|error| error.to_string())?];
            ranges.extend(hdm_ranges(&node.decoders, port_of)?);
            let decoder = HdmDecoder::new(ranges).map_err(|error| error.to_string())?;
            let bridge = HostBridge::new(&self.machine.host_bridge, decoder, &ports).counting(self.counted_nodes());
            self.system.add(format!("{}_bridge", node.name), AnyComponent::HostBridge(Box::new(bridge)));
            let interleave = Interleave::new(0, 256, 1).map_err(|error| error.to_string())?;
            let dram = Device::new(&MediumConfig::Dram(self.machine.dram.clone()), &[dram_link], interleave);
            self.system.add(format!("{}_dram", node.name), AnyComponent::Device(Box::new(dram)));
        }
        Ok(())
    }

    /// The memory nodes, by which bridges count.
    fn counted_nodes(&self) -> Vec<NodeCounts> {
        let own = NodeCounts::new(OWN_DRAM, LineAddress::containing(PM_BASE));
        let others = self.topology.ranges.iter();
        let others =
            others.map(|range| NodeCounts::new(&range.name, LineAddress::containing(range.base + range.bytes)));
        std::iter::once(own).chain(others).collect()
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
            self.system.add(&node.name, AnyComponent::Switch(Box::new(switch)));
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

    /// The ranges of lines that persist in `switch`. Of an interleaved range it sees only the lines of the devices behind it.
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
            let links: Vec<_> = node.upstream.iter().map(|&edge| self.link(edge)).collect();
            let mut device = Device::new(self.topology.device_config(id), &links, range.interleave);
            if self.topology.pm_sharing == PmSharing::SharedUnsafe {
                device.medium_mut().take_older_writes();
            }
            self.system.add(&node.name, AnyComponent::Device(Box::new(device)));
        }
        for range in &self.topology.ranges {
            self.system.ranges.push((lines(range.base, range.bytes), range.interleave, range.targets.clone()));
        }
        let devices = || (0..self.topology.devices.len() as u32).map(DeviceId);
        self.system.devices = devices().map(|device| self.device(device)).collect();
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
        for host in (0..self.topology.hosts.len() as u32).map(HostId) {
            let bridge = Self::bridge(host);
            self.system.wires.connect((ComponentId(bridge.0 - 1), PortId(0)), (bridge, HOST_PORT));
            self.system.wires.connect((bridge, PortId(1)), (Self::dram(host), PortId(0)));
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
                let index = position(&self.topology.hosts[host.0 as usize].edges).expect("an edge of that host");
                (Self::bridge(host), PortId(index as u16 + 2))
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

/// The connection of a memory controller on the host's own fabric: its buffers are the controller's queues, and it has neither latency (the
/// host bridge has that) nor a limit of bandwidth of its own (the medium has that).
fn local_connection(medium: &MediumConfig) -> LinkConfig {
    let (reads, writes) = match medium {
        MediumConfig::Dram(dram) => (dram.channels * dram.read_queue_entries, dram.channels * dram.write_queue_entries),
        MediumConfig::Pm(pm) => (pm.read_queue_entries, pm.write_queue_entries),
    };
    LinkConfig {
        request_credits: reads,
        request_with_data_credits: writes,
        no_data_response_credits: writes,
        data_response_credits: reads,
        ..LinkConfig::new(FlitFormat::Bytes68, f64::INFINITY, 0.0, 0)
    }
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
