//! Over which directions of links, and which devices, the channels of a transport go.

use fencepost_pacing::Weight;

use crate::config::topology::{Connection, DeviceId, HostId, Topology, Vertex};
use crate::device::MediumConfig;
use crate::traffic::StreamConfig;
use crate::transport::{Place, Resource, Thread, Way};
use fencepost_kernel::time::{Duration, Time};

/// A device that a thread may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    /// Which.
    pub device: DeviceId,
    /// Whether lines of it are read.
    pub reads: bool,
    /// Whether lines of it are written.
    pub writes: bool,
}

/// The resources of a fabric, found as channels go over them.
#[derive(Clone, Debug, Default)]
pub struct Resources {
    /// In the order in which they were found.
    pub found: Vec<Resource>,
}

impl Resources {
    /// The ways of a thread of `host` that uses these devices, a channel each.
    pub fn ways(&mut self, topology: &Topology, host: HostId, reaches: &[Reached]) -> Vec<Way> {
        let mut ways = Vec::new();
        for (device, reached) in reaches.iter().enumerate() {
            let directions = [(false, reached.reads), (true, reached.writes)];
            for (writes, _) in directions.into_iter().filter(|(_, moves)| *moves) {
                ways.push(Way { device, writes, path: self.path(topology, host, reached.device, writes) });
            }
        }
        ways
    }

    /// The numbers of the resources between `host` and `device`, the device last. Its own memory controllers are no
    /// part of the pool.
    fn path(&mut self, topology: &Topology, host: HostId, device: DeviceId, writes: bool) -> Vec<usize> {
        let route = topology.route(host, device).expect("a thread uses devices that its host reaches");
        let mut path = Vec::new();
        for edge in route.edges.iter().filter(|edge| topology.edge(**edge).connection == Connection::Link) {
            let link = topology.link_of(*edge);
            let Some(config) = topology.link_config(link) else { continue };
            // The two directions of a link between switches are two edges; those of any other link are one.
            let is_downstream = writes == (link == *edge);
            let (from, to) = (topology.edge(*edge).from, topology.edge(*edge).to);
            let (from, to) = if writes { (from, to) } else { (to, from) };
            let name = format!("{} -> {}", topology.name(from), topology.name(to));
            path.push(self.number(Place::Link { link: link.0, is_downstream }, name, config.data_bytes_per_second()));
        }
        let name = topology.name(Vertex::Device(device)).to_owned();
        let capacity = match topology.device_config(device) {
            MediumConfig::Dram(dram) | MediumConfig::BackedDram(dram) => dram.bytes_per_second(),
            // What its banks give depends on the accesses; its link bounds it.
            MediumConfig::Pm(_) => path.last().map_or(f64::MAX, |last| self.found[*last].capacity),
        };
        path.push(self.number(Place::Device(device.0), name, capacity));
        path
    }

    fn number(&mut self, place: Place, name: String, capacity: f64) -> usize {
        let known = self.found.iter().position(|resource| resource.place == place);
        known.unwrap_or_else(|| {
            self.found.push(Resource { place, name, capacity });
            self.found.len() - 1
        })
    }
}

/// The devices of the pool that a stream of `host` goes to.
pub fn reached(topology: &Topology, host: HostId, stream: &StreamConfig) -> Vec<Reached> {
    let is_meant = |device: DeviceId| match stream.memory.as_str() {
        "pm" => topology.is_pm(device),
        "expander" => !topology.is_pm(device),
        name => topology.devices[device.0 as usize].name == name,
    };
    let devices = topology.hosts[host.0 as usize].routes.iter().map(|route| route.device);
    let reads = stream.reads > 0 || stream.modifies;
    devices
        .filter(|device| is_meant(*device))
        .map(|device| Reached { device, reads, writes: stream.writes > 0 })
        .collect()
}

/// A stream as a thread of a transport, which goes these ways.
pub fn thread_of(stream: &StreamConfig, ways: Vec<Way>) -> Thread {
    let weight = Weight::new(stream.weight).expect("the weights of streams have been checked");
    let dies = stream.end_ns.filter(|_| stream.dies).map_or(Time::NEVER, |end| Time::ZERO + Duration::from_ns(end));
    Thread { group: stream.group, counted_part: stream.counted_part, dies, ..Thread::new(weight, ways) }
}
