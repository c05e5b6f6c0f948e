//! What rates are made of, measured by simulating single requests: what a line takes while nothing else is under way,
//! and what a device gives to streams that ask for all that it has.

use std::collections::HashMap;

use crate::config::Machine;
use crate::config::topology::HostId;
use crate::error::SimulationError;
use crate::switch::Scheme;
use crate::system::pool::{Reached, reached};
use crate::traffic::{Pattern, StreamConfig};
use crate::traffic_experiment::Experiment;

/// Simulated time of a measurement, in ns: some hundred lines, and tens of refreshes.
const MEASURE_NS: f64 = 100_000.0;
const WARM_UP_NS: f64 = 5_000.0;
/// The same of what devices give: streams drift past each other, and meet in banks or not.
const DEVICE_NS: f64 = 300_000.0;
const DEVICE_WARM_UP_NS: f64 = 50_000.0;
/// Measures, and remembers what was measured: hosts whose ways are alike have lines that take as long.
pub struct Lone<'a> {
    machine: &'a Machine,
    scheme: Scheme,
    found: HashMap<String, f64>,
}

impl<'a> Lone<'a> {
    /// Nothing is measured yet.
    pub fn new(machine: &'a Machine, scheme: Scheme) -> Lone<'a> {
        Lone { machine, scheme, found: HashMap::new() }
    }

    /// What a line of a stream of `host` takes, in ns: the mean of its reads and writes, each as often as it has them.
    ///
    /// # Errors
    /// If the machine cannot run it.
    pub fn line_ns(&mut self, host: usize, config: &StreamConfig, reaches: &[Reached]) -> Result<f64, SimulationError> {
        let key = self.key(host, config, reaches);
        if let Some(known) = self.found.get(&key) {
            return Ok(*known);
        }
        let hosts = self.machine.topology().hosts.len();
        let mut streams = vec![Vec::new(); hosts];
        // Its pattern, a line at a time; delays keep it from falling into step with refreshes.
        streams[host] = vec![StreamConfig {
            request_bytes: 64,
            outstanding: 1,
            lines_outstanding: None,
            dependent: true,
            inject_delay_ns: 0.0,
            inject_jitter_ns: if config.pattern == Pattern::Sequential { 0.0 } else { 100.0 },
            ..unending(config)
        }];
        let alone = Experiment { streams, warm_up_ns: WARM_UP_NS, measure_ns: MEASURE_NS, ..Experiment::default() };
        let measured = alone.run(self.machine, self.scheme)?.to_json();
        let stream = &measured["hosts"][host]["streams"][0];
        let of = |kind: &str| {
            let count = stream[kind]["count"].as_f64().unwrap_or(0.0);
            (count, stream[kind]["latency_ns"]["mean"].as_f64().unwrap_or(0.0))
        };
        let ((reads, read_ns), (writes, write_ns)) = (of("reads"), of("writes"));
        // Where each write follows a read of its line, both are one request.
        let requests = if config.modifies { reads } else { reads + writes };
        if requests == 0.0 {
            return Err(SimulationError::Impossible("no line came back while nothing else was under way".to_owned()));
        }
        let line_ns = (reads * read_ns + writes * write_ns) / requests;
        self.found.insert(key, line_ns);
        Ok(line_ns)
    }

    /// What each device gives, in bytes a ns, while all of these streams ask for as much as they can: those of each
    /// host, none of hosts that are not asked.
    ///
    /// # Errors
    /// If the machine cannot run it.
    pub fn device_rates(&self, of_hosts: &[Vec<&StreamConfig>]) -> Result<Vec<f64>, SimulationError> {
        let streams = of_hosts.iter().map(|of| of.iter().map(|config| unending(config)).collect()).collect();
        let (warm_up_ns, measure_ns) = (DEVICE_WARM_UP_NS, DEVICE_NS);
        let together = Experiment { streams, warm_up_ns, measure_ns, ..Experiment::default() };
        let measured = together.run(self.machine, self.scheme)?.to_json();
        let topology = self.machine.topology();
        let mut rates = vec![0.0; topology.devices.len()];
        for (host, configs) in of_hosts.iter().enumerate() {
            for (number, config) in configs.iter().enumerate() {
                let stream = &measured["hosts"][host]["streams"][number];
                let of = |kind: &str| stream[kind]["bandwidth_gb_per_s"].as_f64().unwrap_or(0.0);
                let reaches = reached(topology, HostId(host as u32), config);
                for one in &reaches {
                    rates[one.device.0 as usize] += (of("reads") + of("writes")) / reaches.len() as f64;
                }
            }
        }
        Ok(rates)
    }

    /// Of all that decides what a line takes.
    fn key(&self, host: usize, config: &StreamConfig, reaches: &[Reached]) -> String {
        let topology = self.machine.topology();
        let mut key = format!("{:?} {} {} {}", config.pattern, config.reads, config.writes, config.modifies);
        for reached in reaches {
            let route = topology.route(HostId(host as u32), reached.device).expect("a stream reaches its devices");
            let links = route.edges.iter().map(|edge| topology.link_config(topology.link_of(*edge)));
            let device = topology.device_config(reached.device);
            key += &format!(" {:?} {device:?}", links.collect::<Vec<_>>());
        }
        key
    }
}

/// The stream as it is, all of the time.
fn unending(config: &StreamConfig) -> StreamConfig {
    StreamConfig { begin_ns: 0.0, end_ns: None, dies: false, group: None, ..config.clone() }
}
