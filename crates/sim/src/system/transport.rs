//! Carries between the transport's agent and the components: what streams moved, what resources signalled, and how long
//! each stream may run. Both ends of it are at the hosts, and its rows are read and written within a window, so it
//! takes no simulated time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::ops::Range;

use fencepost_pacing::{DevLoadCounts, Hierarchy, Weight};
use rustc_hash::FxHashMap;

use super::System;
use super::component::AnyComponent;
use super::pool::{Reached, Resources, reached, thread_of};
use crate::config::Machine;
use crate::config::topology::{DeviceId, HostId};
use crate::host_bridge::{DeviceMap, Interleave};
use crate::switch::Switch;
use crate::traffic::pacing::Pacing;
use crate::traffic::{Generator, StreamConfig};
use crate::transport::{Agent, Due, Pace, Place, Thread, Transport};
use fencepost_kernel::line::LineAddress;
use fencepost_kernel::message::Flow;
use fencepost_kernel::time::{Duration, Time};
use fencepost_kernel::{ComponentId, Context, PortId};

/// A transport at work.
#[derive(Clone)]
pub(super) struct Carried {
    agent: Agent,
    window: Duration,
    paced: Vec<Paced>,
    /// When threads of programs are to stop, and which; streams of traffic do so themselves.
    stops: BinaryHeap<Reverse<(Time, usize)>>,
    /// The ports of switches that send in some direction of a link.
    egress: HashMap<Place, (ComponentId, PortId)>,
}

/// A thread of a program, or a stream of traffic.
#[derive(Clone, Debug)]
struct Paced {
    /// The host or the generator.
    component: ComponentId,
    /// Its number there.
    number: usize,
    /// The devices that it reaches.
    devices: Vec<usize>,
}

impl Carried {
    /// When a thread is to stop, or a window or an interval ends.
    fn due(&self) -> Time {
        let stops = self.stops.peek().map_or(Time::NEVER, |Reverse((time, _))| *time);
        self.agent.due().min(stops)
    }
}

impl System {
    /// Lets `transport` share the fabric out to these streams of traffic, from now on. Nothing may be under way.
    /// Everything is divided among the same `groups`.
    pub fn begin_transport(
        &mut self,
        transport: Transport,
        machine: &Machine,
        streams: &[&[StreamConfig]],
        groups: &Hierarchy,
    ) {
        if transport == Transport::SwitchWfq {
            let of_host = |(host, streams): (u32, &&[StreamConfig])| {
                let weights = (0..).zip(streams.iter()).map(|(number, stream)| (number, stream.weight));
                weights.map(|(number, weight)| (Flow::of_host(host, number), weight)).collect::<Vec<_>>()
            };
            let weights: FxHashMap<Flow, f64> = (0..).zip(streams).flat_map(of_host).collect();
            self.switches_mut().for_each(|switch| switch.queue_fairly(weights.clone()));
        }
        if !transport.has_agent() {
            return;
        }
        let map = self.device_map();
        let (mut resources, mut threads, mut paced) = (Resources::default(), Vec::new(), Vec::new());
        for (number, streams) in streams.iter().enumerate() {
            let (host, component) = (HostId(number as u32), self.generators[number]);
            self.generator_mut(component).begin_pacing(&map);
            for (number, stream) in streams.iter().enumerate() {
                let reaches = reached(machine.topology(), host, stream);
                paced.push(Paced { component, number, devices: numbers(&reaches) });
                let ways = resources.ways(machine.topology(), host, &reaches);
                threads.push(thread_of(stream, ways));
            }
        }
        self.carry(transport, machine, resources, groups, &threads, paced);
    }

    /// Lets `transport` share the fabric out to the threads of all programs, from now on, with equal weights.
    pub fn begin_transport_of_programs(&mut self, transport: Transport, machine: &Machine) {
        if transport == Transport::SwitchWfq {
            self.switches_mut().for_each(|switch| switch.queue_fairly(FxHashMap::default()));
        }
        if !transport.has_agent() {
            return;
        }
        let map = self.device_map();
        let (mut resources, mut threads, mut paced) = (Resources::default(), Vec::new(), Vec::new());
        let components = self.hosts.clone();
        for (index, (program, component)) in self.hosts_mut().zip(components).enumerate() {
            program.begin_pacing(&map);
            let host = HostId(index as u32);
            let routes = machine.topology().hosts[index].routes.iter();
            let reaches: Vec<_> =
                routes.map(|route| Reached { device: route.device, reads: true, writes: true }).collect();
            for number in 0..program.threads() {
                paced.push(Paced { component, number, devices: numbers(&reaches) });
                let ways = resources.ways(machine.topology(), host, &reaches);
                threads.push(Thread::new(Weight::ONE, ways));
            }
        }
        self.carry(transport, machine, resources, &Hierarchy::default(), &threads, paced);
    }

    fn device_map(&self) -> DeviceMap {
        let range = |(lines, interleave, devices): &(Range<LineAddress>, Interleave, Vec<DeviceId>)| {
            (lines.clone(), *interleave, devices.iter().map(|device| device.0 as usize).collect())
        };
        DeviceMap { ranges: self.ranges.iter().map(range).collect(), devices: self.devices.len() }
    }

    fn carry(
        &mut self,
        transport: Transport,
        machine: &Machine,
        resources: Resources,
        groups: &Hierarchy,
        threads: &[Thread],
        paced: Vec<Paced>,
    ) {
        let agent = Agent::new(transport, &machine.transport, resources.found, groups, threads);
        let thresholds = machine.transport.load;
        for component in &mut self.components {
            match component {
                AnyComponent::Switch(switch) => switch.sample_backpressure(thresholds.average()),
                other => other.memory_mut().into_iter().for_each(|device| device.report_load(thresholds)),
            }
        }
        self.transport_due = agent.due();
        self.transport = Some(Box::new(Carried {
            agent,
            window: machine.transport.window(),
            paced,
            stops: BinaryHeap::new(),
            egress: self.switch_egress.iter().copied().collect(),
        }));
    }

    /// The agent of the transport that runs, if one does.
    pub fn transport(&self) -> Option<&Agent> {
        self.transport.as_ref().map(|carried| &carried.agent)
    }

    /// Does what is due: a thread stops, or a window or an interval ends.
    pub(super) fn run_transport(&mut self) {
        let Some(mut carried) = self.transport.take() else { return };
        self.now = self.transport_due;
        match carried.stops.peek() {
            Some(Reverse((time, thread))) if *time == self.now => {
                let Paced { component, number, .. } = carried.paced[*thread];
                carried.stops.pop();
                self.with_host(component, |host, context| host.pause(number, context));
            }
            _ => match carried.agent.next() {
                Due::Window(thread) => self.end_window(&mut carried, thread),
                Due::Interval => self.end_interval(&mut carried),
            },
        }
        self.transport_due = carried.due();
        self.transport = Some(carried);
    }

    fn end_window(&mut self, carried: &mut Carried, thread: usize) {
        let Paced { component, number, devices } = &carried.paced[thread];
        let (component, number, now) = (*component, *number, self.now);
        let is_program = self.hosts.contains(&component);
        let all = if is_program {
            self.with_host(component, |host, _| host.moved(number).to_vec())
        } else {
            self.generator_mut(component).moved(number).to_vec()
        };
        let moved: Vec<_> = devices.iter().map(|device| all[*device]).collect();
        let pace = carried.agent.end_window(thread, now, &moved);
        if is_program {
            let Pace::Until(time) = pace else { unreachable!("programs are paused, not delayed") };
            self.with_host(component, |host, context| host.resume(number, context));
            if time < Time::NEVER {
                carried.stops.push(Reverse((time, thread)));
            }
            return;
        }
        let window = carried.window;
        let change = |pacing: &mut Pacing| match pace {
            Pace::Until(time) => pacing.runs_until = time,
            Pace::Credit(rates) => {
                devices.iter().zip(rates).for_each(|(device, rate)| pacing.set_credit(*device, rate, window, now));
            }
        };
        let mut context = Context::new(now, component, &mut self.queue, &self.wires);
        match &mut self.components[component.0 as usize] {
            AnyComponent::Generator(generator) => generator.pace(number, change, &mut self.keys, &mut context),
            _ => unreachable!("only generators are listed"),
        }
    }

    fn end_interval(&mut self, carried: &mut Carried) {
        let mut answers = vec![DevLoadCounts::default(); self.devices.len()];
        for component in &mut self.components {
            let loads = match component {
                AnyComponent::Generator(generator) => generator.take_loads(),
                AnyComponent::Host(host) => host.take_loads(),
                _ => continue,
            };
            answers.iter_mut().zip(loads).for_each(|(sum, loads)| add(sum, loads));
        }
        let now = self.now;
        let components = &mut self.components;
        let congested = |place: Place| match place {
            Place::Device(device) => answers[device as usize].congested(),
            Place::Link { .. } => carried.egress.get(&place).map_or(0.0, |(switch, port)| {
                let part = switch_of(&mut components[switch.0 as usize]).backpressure(*port, now);
                fencepost_pacing::backpressure(100.0 * part)
            }),
        };
        carried.agent.end_interval(now, congested);
    }

    fn generator_mut(&mut self, id: ComponentId) -> &mut Generator {
        match &mut self.components[id.0 as usize] {
            AnyComponent::Generator(generator) => generator,
            _ => unreachable!("only generators are listed"),
        }
    }

    /// When the next window or interval ends, as long as anything can come of it: `Time::NEVER` otherwise.
    pub(super) fn transport_wakes(&self) -> Time {
        let Some(carried) = &self.transport else { return Time::NEVER };
        // Where no event is left only what is paused goes on.
        let goes_on = self.queue.next_time().is_some() || !self.is_finished() && carried.agent.has_paused(self.now);
        if goes_on { self.transport_due } else { Time::NEVER }
    }
}

fn add(sum: &mut DevLoadCounts, more: DevLoadCounts) {
    sum.light += more.light;
    sum.optimal += more.optimal;
    sum.moderate += more.moderate;
    sum.severe += more.severe;
}

fn switch_of(component: &mut AnyComponent) -> &mut Switch {
    match component {
        AnyComponent::Switch(switch) => switch,
        _ => unreachable!("egress ports are those of switches"),
    }
}

fn numbers(reached: &[Reached]) -> Vec<usize> {
    reached.iter().map(|one| one.device.0 as usize).collect()
}
