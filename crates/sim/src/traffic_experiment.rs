//! Traffic on a machine for some simulated time, and what came of it.

use fencepost_pacing::{Hierarchy, Node, Weight};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::config::Machine;
use crate::error::SimulationError;
use crate::replay::livelock::{self, LivelockWatch};
use crate::results;
use crate::switch::Scheme;
use crate::system::{LinkEnd, System};
use crate::traffic::{Member, StaleRead, StreamConfig};
use crate::transport::{Agent, Transport};
use fencepost_kernel::message::Stage;
use fencepost_kernel::stats::StatsNode;
use fencepost_kernel::time::{Duration, Time};

#[cfg(doc)]
use crate::config::topology::Topology;

/// What traffic is to run, and for how long.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The streams of each host, in the order of hosts. A single list is meant for every host.
    pub streams: Vec<Vec<StreamConfig>>,
    /// Simulated time before anything counts, in ns.
    pub warm_up_ns: f64,
    /// Simulated time that counts, in ns.
    pub measure_ns: f64,
    /// Whether each line holds one of the last level's `mshrs` until it is answered, be it a hit or a miss.
    #[serde(default)]
    pub holds_entries: bool,
    /// Who sees to it that they share the fabric fairly.
    #[serde(default)]
    pub transport: Transport,
    /// Which random numbers the streams get.
    #[serde(default)]
    pub seed: u64,
    /// Whether single requests are simulated, or rates.
    #[serde(default)]
    pub level: Level,
    /// Groups among which a transport divides every link and device; a parent stands before its children.
    #[serde(default)]
    pub groups: Vec<Group>,
    /// Links and devices that carry less, or as much as before, from some time on: with rates alone.
    #[serde(default)]
    pub changes: Vec<Change>,
}

/// What is simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Every request on its way.
    #[default]
    Request,
    /// The rates of streams.
    Flow,
}

/// A group of streams.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// The group that it is part of, by its number.
    #[serde(default)]
    pub parent: Option<usize>,
    /// Its part beside its siblings'.
    pub weight: f64,
}

/// A link or a device that carries another part of what it should from some time on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// When, in ns from the start.
    pub at_ns: f64,
    /// `FROM -> TO`, or the device.
    pub resource: String,
    /// The part that it carries then.
    pub part: f64,
}

/// What came of an experiment: what was counted between the end of the warm-up and the end of the measurement.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// How long that was.
    pub interval: Duration,
    /// The names of the hosts.
    pub hosts: Vec<String>,
    /// The senders of all links, in the order of the machine file.
    pub links: Vec<LinkEnd>,
    /// Everything counted.
    pub stats: StatsNode,
    /// Events handled, warm-up included.
    pub events: u64,
    /// The first get that was stale, warm-up included.
    first_stale: Option<Value>,
    /// What the transport did, if one ran.
    transport: Option<Value>,
}

impl Experiment {
    /// The machine with a traffic generator in the place of every host, about to start.
    ///
    /// # Errors
    /// If the machine cannot run the scheme, or there is no such traffic on it; with the reason.
    pub fn system(&self, machine: &Machine, scheme: Scheme) -> Result<System, SimulationError> {
        let streams = self.streams_of_hosts(machine)?;
        let groups = self.hierarchy()?;
        if !self.changes.is_empty() {
            let message = "links and devices change what they carry at the level of flows only";
            return Err(SimulationError::Impossible(message.to_owned()));
        }
        let mut system = System::with_traffic(machine, scheme, &streams, self.holds_entries, self.seed)
            .map_err(SimulationError::Impossible)?;
        system.begin_transport(self.transport, machine, &streams, &groups);
        Ok(system)
    }

    /// The streams of each host, checked.
    pub(crate) fn streams_of_hosts(&self, machine: &Machine) -> Result<Vec<&[StreamConfig]>, SimulationError> {
        let hosts = machine.topology().hosts.len();
        let streams: Vec<&[StreamConfig]> = match &self.streams[..] {
            [all] => vec![all; hosts],
            each if each.len() == hosts => each.iter().map(Vec::as_slice).collect(),
            each => {
                let message = format!("each of {hosts} hosts needs its streams, and there are {}", each.len());
                return Err(SimulationError::Impossible(message));
            }
        };
        for stream in streams.iter().copied().flatten() {
            stream.check().map_err(SimulationError::Impossible)?;
            if let Some(group) = stream.group.filter(|group| *group >= self.groups.len()) {
                let message = format!("there is no group {group}: there are {}", self.groups.len());
                return Err(SimulationError::Impossible(message));
            }
        }
        Ok(streams)
    }

    /// The groups among which everything is divided.
    pub(crate) fn hierarchy(&self) -> Result<Hierarchy, SimulationError> {
        let impossible = |error: String| SimulationError::Impossible(error);
        let node = |group: &Group| {
            let weight = Weight::new(group.weight).map_err(|error| impossible(error.to_string()))?;
            Ok(Node { parent: group.parent, weight })
        };
        let nodes = self.groups.iter().map(node).collect::<Result<_, SimulationError>>()?;
        Hierarchy::new(nodes).map_err(|error| impossible(error.to_string()))
    }

    /// Runs the traffic on `machine` under `scheme`.
    ///
    /// # Errors
    /// If the machine cannot run it, or nothing can go on.
    pub fn run(&self, machine: &Machine, scheme: Scheme) -> Result<Measurement, SimulationError> {
        self.measure(machine, self.system(machine, scheme)?)
    }

    /// Runs `system`, which [`Experiment::system`] made of `machine`.
    pub(crate) fn measure(&self, machine: &Machine, mut system: System) -> Result<Measurement, SimulationError> {
        system.start();
        let begin = Time::ZERO + Duration::from_ns(self.warm_up_ns);
        let end = begin + Duration::from_ns(self.measure_ns);
        let mut watch = LivelockWatch::new(&system);
        run_until(&mut system, &mut watch, begin)?;
        let before = system.stats_at(begin);
        run_until(&mut system, &mut watch, end)?;
        Ok(Measurement {
            interval: end.since(begin),
            hosts: machine.topology().hosts.iter().map(|host| host.name.clone()).collect(),
            links: system.links().to_vec(),
            stats: system.stats_at(end).since(&before),
            events: system.events(),
            transport: system.transport().map(transport_json),
            first_stale: system.keys().first_stale().map(|read| story(machine, &system, read)),
        })
    }
}

/// What owners had at the end of each interval, and what it took: `{control_bytes, resources: [{name, capacity,
/// intervals: [[ns, share, capacity, used]]}]}`, in bytes a second.
pub(crate) fn transport_json(agent: &Agent) -> Value {
    let resources = agent.resources().map(|(resource, history)| {
        let intervals =
            history.iter().map(|sample| json!([sample.at.as_ns(), sample.share, sample.capacity, sample.used]));
        json!({
            "name": resource.name,
            "capacity": resource.capacity,
            "intervals": intervals.collect::<Vec<_>>(),
        })
    });
    json!({"control_bytes": agent.control_bytes(), "resources": resources.collect::<Vec<_>>()})
}

/// Who put what and when, and who read what after it.
fn story(machine: &Machine, system: &System, read: &StaleRead) -> Value {
    let who = |by: Member| {
        let host = system.host_of(by.generator).expect("only hosts have streams");
        json!({"host": machine.topology().hosts[host].name, "stream": by.stream})
    };
    let ns = |time: Time| time.since(Time::ZERO).as_ns();
    json!({
        "key": read.key.byte(),
        "put": {
            "by": who(read.put.by),
            "version": read.put.version.0,
            "begun_ns": ns(read.put.begun),
            "acknowledged_ns": ns(read.put.acknowledged),
        },
        "get": {
            "by": who(read.by),
            "version": read.seen.0,
            "begun_ns": ns(read.begun),
            "answered_ns": ns(read.answered),
        },
    })
}

/// Handles all events up to `time`.
fn run_until(system: &mut System, watch: &mut LivelockWatch, time: Time) -> Result<(), SimulationError> {
    let has_more = livelock::run_until(system, watch, time)?;
    // A stream that is not at its end has an event to come, unless something that it waits for cannot.
    if !has_more && !system.is_finished() {
        return Err(SimulationError::Deadlock { time: system.now(), waiting: system.waiting() });
    }
    Ok(())
}

impl Measurement {
    /// `{interval_ns, hosts: [{name, streams: [{reads, writes, stale_reads}]}], first_stale_read, overwritten, links}`,
    /// as docs/traffic.md describes it.
    pub fn to_json(&self) -> Value {
        let hosts = self.hosts.iter().map(|name| {
            let streams = self.stats.get(name).map_or(&[][..], StatsNode::children);
            let streams = streams.iter().map(|(_, stream)| {
                json!({
                    "reads": self.direction(stream, "reads"),
                    "writes": self.direction(stream, "writes"),
                    "stale_reads": stream.counter("stale_reads"),
                })
            });
            json!({"name": name, "streams": streams.collect::<Vec<_>>()})
        });
        let mut document = json!({
            "interval_ns": self.interval.as_ns(),
            "hosts": hosts.collect::<Vec<_>>(),
            "first_stale_read": self.first_stale,
            "overwritten": self.stats.children().iter().map(|(_, device)| device.counter("pm.older_writes")).sum::<u64>(),
            "links": results::links(&self.links, &self.stats, self.interval),
        });
        if let Some(transport) = &self.transport {
            document["transport"] = transport.clone();
        }
        document
    }

    fn direction(&self, stream: &StatsNode, name: &str) -> Value {
        let count = |counter: &str| stream.counter(&format!("{name}.{counter}"));
        let requests = count("requests");
        let mut direction = match stream.get(&format!("{name}.latency")) {
            Some(StatsNode::Histogram(latency)) => results::measure(latency),
            _ => Value::Null,
        };
        let mean = |ps: u64| (requests > 0).then(|| ps as f64 / requests as f64 / 1000.0);
        let parts =
            Stage::NAMES.iter().map(|stage| ((*stage).to_owned(), json!(mean(count(&format!("parts_ps.{stage}"))))));
        direction["bytes"] = json!(count("bytes"));
        // Bytes in a nanosecond are 10^9 bytes in a second.
        direction["bandwidth_gb_per_s"] = json!(count("bytes") as f64 / self.interval.as_ns());
        direction["parts_ns"] = Value::Object(parts.collect::<Map<_, _>>());
        direction
    }
}
