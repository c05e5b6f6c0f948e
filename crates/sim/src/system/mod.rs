//! All components of a machine, wired, and the events under way between them.
//!
//! `build.rs` makes components and links of a machine's topology; the other files act on all components of a kind at
//! once.

#[cfg(test)]
pub(crate) mod broken;
mod build;
mod coherence;
mod component;
mod functional;
mod hosts;
pub(crate) mod pool;
mod power;
#[cfg(test)]
mod tests;
mod transport;

use std::ops::Range;

use crate::config::topology::DeviceId;
use crate::device::Device;
use crate::host::Host;
use crate::host_bridge::Interleave;
use crate::switch::Switch;
use crate::traffic::{Generator, Keys};
use crate::transport::Place;
#[cfg(test)]
use broken::{Broken, Fault};
use fencepost_kernel::HostActivity;
use fencepost_kernel::line::LineAddress;
use fencepost_kernel::stats::StatsNode;
use fencepost_kernel::time::Time;
use fencepost_kernel::trace::Trace;
use fencepost_kernel::{ComponentId, Context, EventQueue, PortId, Wires};
use transport::Carried;

pub use build::persist_policy;
pub use component::AnyComponent;

/// Where an event was handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stepped {
    /// No event was left.
    Nowhere,
    /// In a host: instructions may have gone on, and a region may have begun or ended.
    InHost,
    /// Anywhere else.
    InFabric,
}

/// One direction of a CXL link, named by its sender.
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
    /// Allocated only while single requests are traced.
    trace: Option<Box<Trace>>,
    now: Time,
    hosts: Vec<ComponentId>,
    coherent_hosts: Vec<ComponentId>,
    generators: Vec<ComponentId>,
    keys: Keys,
    links: Vec<LinkEnd>,
    /// The devices of each range of lines in the fabric.
    ranges: Vec<(Range<LineAddress>, Interleave, Vec<DeviceId>)>,
    devices: Vec<ComponentId>,
    /// The switches whose persist buffers a persist passes, by host and device, in the order of the route.
    persist_points: Vec<Vec<Vec<ComponentId>>>,
    /// The ports of switches that send in some direction of a link.
    switch_egress: Vec<(Place, (ComponentId, PortId))>,
    transport: Option<Box<Carried>>,
    /// When the transport's next window or interval ends; never without one.
    transport_due: Time,
}

impl System {
    /// Replaces the component `name` by a broken one, before anything is under way.
    #[cfg(test)]
    pub fn break_component(&mut self, name: &str, fault: Fault) {
        let index = self.names.iter().position(|own| own == name).expect("there is such a component");
        let id = ComponentId(index as u32);
        let is_host = self.hosts.contains(&id) || self.generators.contains(&id);
        self.hosts.retain(|host| *host != id);
        self.generators.retain(|generator| *generator != id);
        self.components[index] = AnyComponent::Broken(Broken::new(fault, is_host));
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
        if self.transport_due < Time::NEVER && self.transport_is_next() {
            self.run_transport();
            return Stepped::InFabric;
        }
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

    /// Starts tracing single requests.
    pub fn trace(&mut self, trace: Trace) {
        // The trace also shows the credits in hand.
        self.queue.stop_holding_credits();
        self.trace = Some(Box::new(trace));
    }

    /// Stops tracing and returns the trace.
    pub fn take_trace(&mut self) -> Option<Trace> {
        self.trace.take().map(|trace| *trace)
    }

    /// The trace, if requests are traced.
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
    #[inline]
    pub fn next_time(&self) -> Option<Time> {
        if self.transport_due == Time::NEVER {
            return self.queue.next_time();
        }
        let next = self.queue.next_time().unwrap_or(Time::NEVER).min(self.transport_wakes());
        (next < Time::NEVER).then_some(next)
    }

    /// Whether the transport acts before the next event; of the same time it does.
    fn transport_is_next(&self) -> bool {
        let wakes = self.transport_wakes();
        wakes < Time::NEVER && self.queue.next_time().is_none_or(|next| wakes <= next)
    }

    /// Whether every program, or every stream of traffic, has ended.
    pub fn is_finished(&self) -> bool {
        self.hosts().all(Host::is_finished) && self.generators().all(Generator::is_finished)
    }

    /// The keys that traffic has put, and what it was promised about them.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The number of the host that a traffic generator replaces.
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

    /// How many events were handled so far: a measure of the work done.
    pub fn events(&self) -> u64 {
        self.queue.taken()
    }

    /// How far each host, or the traffic in its place, has come, by its name.
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

    /// What each component waits for, one line each, and where the ports of waiting components lead.
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

    /// Everything counted up to `time`, which lies between the last event and the next one.
    pub fn stats_at(&self, time: Time) -> StatsNode {
        debug_assert!(self.now <= time && self.next_time().is_none_or(|next| time <= next));
        let named = self.names.iter().zip(&self.components);
        StatsNode::group(named.map(|(name, component)| (name.clone(), component.component().stats(time))))
    }

    /// The senders of all directions of all CXL links, in the order of the machine file.
    pub fn links(&self) -> &[LinkEnd] {
        &self.links
    }

    fn switch_mut(&mut self, id: ComponentId) -> &mut Switch {
        match &mut self.components[id.0 as usize] {
            AnyComponent::Switch(switch) => switch,
            _ => unreachable!("only switches are persist points"),
        }
    }

    /// Starts the series over time, unless they have started.
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

    /// The switches, with their names.
    pub fn switches(&self) -> impl Iterator<Item = (&str, &Switch)> {
        self.names.iter().zip(&self.components).filter_map(|(name, component)| match component {
            AnyComponent::Switch(switch) => Some((name.as_str(), switch.as_ref())),
            _ => None,
        })
    }

    /// The memory devices, with their names.
    pub fn devices(&self) -> impl Iterator<Item = (&str, &Device)> {
        let named = self.names.iter().zip(&self.components);
        named.filter_map(|(name, component)| Some((name.as_str(), component.memory()?)))
    }

    fn device_of(&self, line: LineAddress) -> DeviceId {
        let (_, interleave, devices) =
            self.ranges.iter().find(|(range, ..)| range.contains(&line)).expect("a PM line lies in some range");
        devices[interleave.way(line)]
    }
}
