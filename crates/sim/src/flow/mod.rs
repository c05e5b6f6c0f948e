//! Traffic as rates: for more hosts, and for longer, than single requests can be simulated.
//!
//! The transport is the same: [`Agent`] ends windows and intervals and asks `fencepost_pacing`. What it is told comes
//! from `network`: between two events every stream that runs moves what it has under way over the time of a line.
//! What a line takes in the empty fabric is measured by simulating single requests (`lone`).
//!
//! What it does not know: order, bursts shorter than a step, blocks that queue behind blocks, arbitration by inputs,
//! and banks.

mod lone;
mod network;
mod report;
mod signals;

use serde_json::Value;

use crate::config::Machine;
use crate::config::topology::HostId;
use crate::error::SimulationError;
use crate::switch::Scheme;
use crate::system::pool::{Reached, Resources, reached, thread_of};
use crate::traffic::{SharedBy, StreamConfig};
use crate::traffic_experiment::{Experiment, Level};
use crate::transport::{Agent, Due, Pace, Place, Resource, Transport, Way};
use fencepost_kernel::line::LINE_BYTES;
use fencepost_kernel::time::{Duration, Time};
use network::{Flow, Leg, Network};
use report::Measured;
use signals::Signals;

/// A window has at most so many steps: what ends within one is done at its end.
const STEPS_OF_WINDOW: u64 = 64;
/// The streams of so many hosts are simulated request by request, to see what devices give.
const SAMPLED_HOSTS_MAX: usize = 64;
/// A device that gives less than this part of what links would let through is what limits.
const DEVICE_LIMITS: f64 = 0.98;

/// Runs the traffic at its level, and says what came of it: see docs/traffic.md.
///
/// # Errors
/// If the machine cannot run it, or nothing can go on.
pub fn result(experiment: &Experiment, machine: &Machine, scheme: Scheme) -> Result<Value, SimulationError> {
    match experiment.level {
        Level::Request => Ok(experiment.run(machine, scheme)?.to_json()),
        Level::Flow => Ok(Flows::new(experiment, machine, scheme)?.run()),
    }
}

/// A stream in the course of the simulation.
#[derive(Clone, Debug)]
struct Stream {
    begins: Time,
    ends: Time,
    /// From then on it is paused.
    runs_until: Time,
    ways: Vec<Way>,
    /// The part of its lines that goes each way.
    parts: Vec<f64>,
    devices: usize,
    /// Bytes by way.
    moved: Vec<f64>,
}

impl Stream {
    /// The part of the time from `begin` to `end` in which it runs.
    fn running(&self, begin: Time, end: Time) -> f64 {
        let (from, to) = (self.begins.max(begin), self.ends.min(self.runs_until).min(end));
        if to <= from { 0.0 } else { to.since(from).as_ps() as f64 / end.since(begin).as_ps() as f64 }
    }

    /// Bytes read and written by device.
    fn moved_by_device(&self) -> Vec<[u64; 2]> {
        let mut moved = vec![[0; 2]; self.devices];
        for (way, bytes) in self.ways.iter().zip(&self.moved) {
            moved[way.device][usize::from(way.writes)] = *bytes as u64;
        }
        moved
    }
}

/// A simulation of rates.
struct Flows {
    streams: Vec<Stream>,
    network: Network,
    agent: Option<Agent>,
    signals: Signals,
    measured: Measured,
    /// What changes when: resource and capacity, in bytes a ns.
    changes: Vec<(Time, usize, f64)>,
    step_min: Duration,
    warm_up: Time,
    end: Time,
}

impl Flows {
    fn new(experiment: &Experiment, machine: &Machine, scheme: Scheme) -> Result<Flows, SimulationError> {
        let impossible = |message: String| SimulationError::Impossible(message);
        let of_hosts = experiment.streams_of_hosts(machine)?;
        let groups = experiment.hierarchy()?;
        if experiment.transport == Transport::SwitchWfq {
            return Err(impossible("switch_wfq orders single requests: the level of flows has none".to_owned()));
        }
        if experiment.holds_entries {
            return Err(impossible("entries of the table of requests are not known at the level of flows".to_owned()));
        }
        let mut lone = lone::Lone::new(machine, scheme);
        let mut resources = Resources::default();
        let (mut streams, mut flows, mut threads) = (Vec::new(), Vec::new(), Vec::new());
        for (host, configs) in of_hosts.iter().enumerate() {
            for config in *configs {
                let reaches = check(config, host, machine).map_err(impossible)?;
                let ways = resources.ways(machine.topology(), HostId(host as u32), &reaches);
                let parts = parts(config, &reaches, &ways);
                let line_ns = lone.line_ns(host, config, &reaches)?;
                threads.push(thread_of(config, ways.clone()));
                flows.push(flow(config, line_ns, &ways, &parts));
                let ns = |ns: f64| Time::ZERO + Duration::from_ns(ns);
                streams.push(Stream {
                    begins: ns(config.begin_ns),
                    ends: config.end_ns.map_or(Time::NEVER, ns),
                    runs_until: Time::NEVER,
                    moved: vec![0.0; ways.len()],
                    devices: reaches.len(),
                    ways,
                    parts,
                });
            }
        }
        let capacities = capacities(&lone, &resources.found, &of_hosts, &flows)?;
        let mut changes = Vec::new();
        for change in &experiment.changes {
            let found = resources.found.iter().position(|resource| resource.name == change.resource);
            let resource = found
                .ok_or_else(|| impossible(format!("no stream goes over a `{}` that could change", change.resource)))?;
            if !(change.part > 0.0 && change.part <= 1.0 && (0.0..=1e12).contains(&change.at_ns)) {
                return Err(impossible(format!("{}: a part above 0 and up to 1, from 0 to 10^12 ns", change.resource)));
            }
            let at = Time::ZERO + Duration::from_ns(change.at_ns);
            changes.push((at, resource, capacities[resource] * change.part));
        }
        changes.sort_by_key(|(at, ..)| std::cmp::Reverse(*at));
        let signals = Signals::new(machine, &resources.found);
        let measured = Measured::new(machine, &of_hosts, &resources.found);
        let agent = experiment
            .transport
            .has_agent()
            .then(|| Agent::new(experiment.transport, &machine.transport, resources.found, &groups, &threads));
        let warm_up = Time::ZERO + Duration::from_ns(experiment.warm_up_ns);
        Ok(Flows {
            network: Network::new(flows, &capacities),
            streams,
            agent,
            signals,
            measured,
            changes,
            step_min: machine.transport.window() / STEPS_OF_WINDOW,
            warm_up,
            end: warm_up + Duration::from_ns(experiment.measure_ns),
        })
    }

    fn run(mut self) -> Value {
        let mut now = Time::ZERO;
        while now < self.end {
            while let Some((_, resource, capacity)) = self.changes.pop_if(|(at, ..)| *at <= now) {
                self.network.set_capacity(resource, capacity);
            }
            let next = self.step_end(now);
            self.pass(now, next);
            now = next;
            self.pace(now);
        }
        self.measured.to_json(self.agent.as_ref(), self.end.since(self.warm_up))
    }

    /// Until when nothing happens that is further away than a step.
    fn step_end(&self, now: Time) -> Time {
        let mut next = self.end;
        if now < self.warm_up {
            next = next.min(self.warm_up);
        }
        let hard = self.changes.last().map_or(next, |(at, ..)| next.min(*at));
        let later = |time: Time| if time > now { time } else { Time::NEVER };
        let mut soon = self.agent.as_ref().map_or(Time::NEVER, Agent::due);
        for stream in &self.streams {
            soon = soon.min(later(stream.begins)).min(later(stream.ends)).min(later(stream.runs_until));
        }
        // What is at `hard` may be nearer than a step, and is kept to exactly.
        hard.min(soon.max(now + self.step_min))
    }

    /// Everything that moves from `now` to `next`.
    fn pass(&mut self, now: Time, next: Time) {
        for (stream, flow) in self.streams.iter().zip(&mut self.network.flows) {
            flow.running = stream.running(now, next);
        }
        self.network.settle();
        let ns = next.since(now).as_ns();
        self.signals.begin_step(&self.network);
        for (number, stream) in self.streams.iter_mut().enumerate() {
            let rate = self.network.flows[number].rate;
            if rate == 0.0 {
                continue;
            }
            for ((way, part), moved) in stream.ways.iter().zip(&stream.parts).zip(&mut stream.moved) {
                let bytes = rate * part * ns;
                *moved += bytes;
                self.signals.moved(way, bytes);
            }
            if now >= self.warm_up {
                let line_ns = self.network.line_ns(number);
                self.measured.moved(number, &stream.ways, &stream.parts, rate, ns, line_ns);
            }
        }
    }

    /// Windows and intervals that have ended by `now`.
    fn pace(&mut self, now: Time) {
        let Some(agent) = &mut self.agent else { return };
        while agent.due() <= now {
            let due = agent.due();
            match agent.next() {
                Due::Interval => {
                    let signals = &self.signals;
                    agent.end_interval(due, |place| signals.congested(place));
                    self.signals.clear();
                }
                Due::Window(thread) => {
                    let stream = &mut self.streams[thread];
                    match agent.end_window(thread, due, &stream.moved_by_device()) {
                        Pace::Until(time) => stream.runs_until = time,
                        Pace::Credit(rates) => {
                            let of_way =
                                |(way, part): (&Way, &f64)| rates[way.device][usize::from(way.writes)] * 1e-9 / part;
                            let allowed =
                                stream.ways.iter().zip(&stream.parts).map(of_way).fold(f64::INFINITY, f64::min);
                            self.network.flows[thread].rate_max = allowed.min(self.measured.asks_for(thread));
                        }
                    }
                }
            }
        }
    }
}

/// What resources carry, in bytes a ns: links what lines need of them; devices what single requests get of them, where
/// that is less than what links let through.
fn capacities(
    lone: &lone::Lone<'_>,
    resources: &[Resource],
    of_hosts: &[&[StreamConfig]],
    flows: &[Flow],
) -> Result<Vec<f64>, SimulationError> {
    let mut capacities: Vec<f64> = resources.iter().map(|resource| resource.capacity * 1e-9).collect();
    // Hosts at equal distances stand for all.
    let chosen = of_hosts.len().min(SAMPLED_HOSTS_MAX);
    let mut is_chosen = vec![false; of_hosts.len()];
    (0..chosen).for_each(|at| is_chosen[at * of_hosts.len() / chosen] = true);
    let of_chosen =
        |(host, configs): (usize, &&[StreamConfig])| -> Vec<_> { configs.iter().map(|_| is_chosen[host]).collect() };
    let runs: Vec<bool> = of_hosts.iter().enumerate().flat_map(of_chosen).collect();
    let running = |(flow, runs): (&Flow, &bool)| Flow { running: f64::from(u8::from(*runs)), ..flow.clone() };
    let mut network = Network::new(flows.iter().zip(&runs).map(running).collect(), &capacities);
    network.settle();
    let streams: Vec<Vec<&StreamConfig>> = of_hosts
        .iter()
        .zip(&is_chosen)
        .map(|(configs, is_chosen)| configs.iter().filter(|_| *is_chosen).collect())
        .collect();
    let measured = lone.device_rates(&streams)?;
    for (number, (resource, capacity)) in resources.iter().zip(&mut capacities).enumerate() {
        let Place::Device(device) = resource.place else { continue };
        let measured = measured[device as usize];
        if measured > 0.0 && measured < DEVICE_LIMITS * network.load(number) {
            *capacity = measured;
        }
    }
    Ok(capacities)
}

/// The devices of a stream, if rates can stand for it.
fn check(config: &StreamConfig, host: usize, machine: &Machine) -> Result<Vec<Reached>, String> {
    if config.requests.is_some() || config.caches || config.shared_by != SharedBy::Stream {
        return Err("the level of flows knows streams that go on, over lines of their own".to_owned());
    }
    let reaches = reached(machine.topology(), HostId(host as u32), config);
    if reaches.is_empty() {
        return Err(format!("at the level of flows streams go to the pool, not to `{}`", config.memory));
    }
    Ok(reaches)
}

/// Of a stream's lines, the part that goes each way.
fn parts(config: &StreamConfig, reaches: &[Reached], ways: &[Way]) -> Vec<f64> {
    let (reads, writes) = (f64::from(config.reads), f64::from(config.writes));
    let all = (reads + writes) * reaches.len() as f64;
    let read = if config.modifies { reads + writes } else { reads };
    ways.iter().map(|way| if way.writes { writes / all } else { read / all }).collect()
}

fn flow(config: &StreamConfig, line_ns: f64, ways: &[Way], parts: &[f64]) -> Flow {
    let lines = config.outstanding.saturating_mul(config.lines_per_request());
    let lines = config.lines_outstanding.map_or(lines, |most| lines.min(most));
    let delay_ns = config.inject_delay_ns + config.inject_jitter_ns / 2.0;
    let request_bytes = f64::from(config.request_bytes);
    // A request that waits for the one before it begins a delay after that was complete.
    let (line_ns, rate_max) = match (config.dependent, delay_ns > 0.0) {
        (true, _) => (line_ns + delay_ns, f64::INFINITY),
        (false, true) => (line_ns, request_bytes / delay_ns),
        (false, false) => (line_ns, f64::INFINITY),
    };
    let leg = |(way, &part): (&Way, &f64)| Leg { part, path: way.path.clone() };
    Flow {
        under_way: f64::from(lines) * LINE_BYTES as f64,
        line_ns,
        rate_max,
        running: 0.0,
        legs: ways.iter().zip(parts).map(leg).collect(),
        rate: 0.0,
    }
}
