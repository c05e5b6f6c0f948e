//! What came of streams between the end of the warm-up and the end: in the shape that single requests are reported in,
//! without what rates do not have.

use serde_json::{Value, json};

use crate::config::Machine;
use crate::traffic::StreamConfig;
use crate::traffic_experiment::transport_json;
use crate::transport::{Agent, Place, Resource, Way};
use fencepost_kernel::time::Duration;

#[derive(Clone, Debug, Default)]
struct OfStream {
    host: usize,
    request_bytes: f64,
    asks_for: f64,
    /// Read and written.
    bytes: [f64; 2],
    /// Bytes, each times what its line took in ns.
    byte_ns: f64,
}

/// What is measured.
#[derive(Clone, Debug)]
pub struct Measured {
    hosts: Vec<String>,
    streams: Vec<OfStream>,
    /// Names and capacities (bytes a ns) of resources, whether it is a link's direction, and bytes.
    resources: Vec<(String, f64, bool, f64)>,
}

impl Measured {
    /// Nothing yet.
    pub fn new(machine: &Machine, streams: &[&[StreamConfig]], resources: &[Resource]) -> Measured {
        let of_stream = |host: usize, config: &StreamConfig| {
            let delay_ns = config.inject_delay_ns + config.inject_jitter_ns / 2.0;
            let is_limited = !config.dependent && delay_ns > 0.0;
            let request_bytes = f64::from(config.request_bytes);
            let asks_for = if is_limited { request_bytes / delay_ns } else { f64::INFINITY };
            OfStream { host, request_bytes, asks_for, ..OfStream::default() }
        };
        let of_resource = |resource: &Resource| {
            let is_link = matches!(resource.place, Place::Link { .. });
            (resource.name.clone(), resource.capacity * 1e-9, is_link, 0.0)
        };
        let of_host = |(host, configs): (usize, &&[StreamConfig])| {
            configs.iter().map(|config| of_stream(host, config)).collect::<Vec<_>>()
        };
        Measured {
            hosts: machine.topology().hosts.iter().map(|host| host.name.clone()).collect(),
            streams: streams.iter().enumerate().flat_map(of_host).collect(),
            resources: resources.iter().map(of_resource).collect(),
        }
    }

    /// The most that a stream asks for, in bytes a ns.
    pub fn asks_for(&self, stream: usize) -> f64 {
        self.streams[stream].asks_for
    }

    /// A stream moved `rate` bytes a ns for `ns`, by parts over its ways; its lines took `line_ns`.
    pub fn moved(&mut self, stream: usize, ways: &[Way], parts: &[f64], rate: f64, ns: f64, line_ns: f64) {
        let of = &mut self.streams[stream];
        of.byte_ns += rate * ns * line_ns;
        for (way, part) in ways.iter().zip(parts) {
            let bytes = rate * part * ns;
            of.bytes[usize::from(way.writes)] += bytes;
            way.path.iter().for_each(|resource| self.resources[*resource].3 += bytes);
        }
    }

    /// As docs/traffic.md describes it; figures that rates do not have are null.
    pub fn to_json(&self, agent: Option<&Agent>, interval: Duration) -> Value {
        let ns = interval.as_ns();
        let direction = |of: &OfStream, bytes: f64| {
            let all: f64 = of.bytes.iter().sum();
            let mean = (bytes > 0.0 && all > 0.0).then(|| of.byte_ns / all);
            json!({
                "count": (bytes / of.request_bytes) as u64,
                "bytes": bytes as u64,
                "bandwidth_gb_per_s": bytes / ns,
                "latency_ns": {"mean": mean, "p50": null, "p90": null, "p99": null, "max": null},
                "parts_ns": {},
                "cdf": [],
            })
        };
        let hosts = self.hosts.iter().enumerate().map(|(host, name)| {
            let of_host = self.streams.iter().filter(|of| of.host == host);
            let streams = of_host.map(|of| {
                json!({"reads": direction(of, of.bytes[0]), "writes": direction(of, of.bytes[1]), "stale_reads": 0})
            });
            json!({"name": name, "streams": streams.collect::<Vec<_>>()})
        });
        let links = self.resources.iter().filter(|(.., is_link, _)| *is_link);
        let links = links.map(|(name, capacity, _, bytes)| {
            json!({"name": name, "bytes": *bytes as u64, "utilisation_rate": bytes / (capacity * ns)})
        });
        let mut document = json!({
            "interval_ns": ns,
            "hosts": hosts.collect::<Vec<_>>(),
            "first_stale_read": null,
            "overwritten": 0,
            "links": links.collect::<Vec<_>>(),
        });
        if let Some(agent) = agent {
            document["transport"] = transport_json(agent);
        }
        document
    }
}
