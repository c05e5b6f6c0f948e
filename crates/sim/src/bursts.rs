//! Bursts of coherent requests on a machine with accelerators, one after the other, and what each took: the latency of
//! a request type where its line is found in a given place, and the bandwidth of many.
//!
//! Before each burst the lines are put where they are to be found, without time; then the burst runs until the machine
//! is at rest again. The same machine, bursts and seed give the same figures, bit for bit.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::coherent_host::{CoreAccess, Socket};
use crate::config::topology::{DeviceId, HostId, Vertex};
use crate::config::{Bias, Machine};
use crate::device::type2::burst::{Burst, Finished};
use crate::device::type2::device_memory::Meta;
use crate::device::type2::host_side::Holds;
use crate::device::type2::messages::CacheState;
use crate::device::type2::{DeviceAccess, Waits};
use crate::error::SimulationError;
use crate::nearest::there_is_no;
use crate::system::{Stepped, System};
use crate::timeline::Timeline;
use crate::traffic::Random;
use fencepost_kernel::line::{LINE_BYTES, LineAddress, Version};
use fencepost_kernel::message::Stage;
use fencepost_kernel::time::{Duration, Time};
use fencepost_kernel::trace::{Selection, Trace};

/// The longest pause before a burst: some times between two refreshes.
const PAUSE_MAX: Duration = Duration::from_ps(20_000_000);

/// How much of requests is followed.
const SLICES_MAX: usize = 1 << 20;

/// The most requests of a burst.
pub const REQUESTS_MAX: u32 = 65_536;

/// Who makes the requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "by", deny_unknown_fields)]
pub enum Requester {
    /// The load generator of an accelerator.
    Device {
        /// Its name.
        name: String,
        /// What it asks for.
        access: DeviceAccess,
        /// Whether weakly ordered writes count as done only when they are globally observed, as with barriers.
        #[serde(default)]
        observes: bool,
        /// Whether a barrier follows the last request: the burst is over when all of its requests are globally
        /// observed.
        #[serde(default)]
        barrier: bool,
    },
    /// Cores of a host.
    Core {
        /// Of which socket, seen from the memory.
        socket: Socket,
        /// What they do.
        access: CoreAccess,
        /// How many cores.
        #[serde(default = "one")]
        cores: u32,
    },
}

/// Where the lines of a burst are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FoundIn {
    /// In memory, and in no cache.
    Memory,
    /// In the last-level cache of the memory's socket.
    LastLevel,
    /// In the requester's own cache, which owns them: of a device's own memory in host bias, to read.
    OwnCache,
    /// In the requesting device's own cache, which has modified them.
    OwnModified,
    /// Of a device's memory: in the device's cache, which owns them, and they are as in memory.
    DeviceOwned,
    /// Of a device's memory: in the device's cache, which has modified them.
    DeviceModified,
    /// In the last-level cache, where a burst of `nc_p_write` of the first accelerator has put them.
    Pushed,
    /// Of host memory: in the cache of another accelerator, which has modified them.
    OtherCache,
}

/// Bursts of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bursts {
    /// Who makes them.
    pub requester: Requester,
    /// Where their lines are found.
    pub found_in: FoundIn,
    /// The memory that they are of: `dram`, the host's own, or a device by its name.
    pub memory: String,
    /// Requests of a burst, each for a line of its own; the lines that a flush of a cache, which is one request, finds.
    pub requests: u32,
    /// How much memory the lines are chosen from, at random, in bytes.
    pub footprint_bytes: u64,
    /// How many bursts.
    pub repetitions: u32,
    /// Which random numbers they get.
    #[serde(default)]
    pub seed: u64,
}

fn one() -> u32 {
    1
}

/// What came of bursts.
#[derive(Clone, Debug)]
pub struct Measured {
    bursts: Bursts,
    finished: Vec<Finished>,
    stats: fencepost_kernel::stats::StatsNode,
}

/// Who begins a burst, as components name him.
#[derive(Clone, Copy)]
enum By {
    Device(DeviceId, DeviceAccess, Waits),
    Core(Socket, CoreAccess, u32),
}

impl Bursts {
    /// Runs them on `machine`.
    ///
    /// # Errors
    /// If the machine cannot run them, or nothing can go on.
    pub fn run(&self, machine: &Machine) -> Result<Measured, SimulationError> {
        let impossible = SimulationError::Impossible;
        let by = self.by(machine).map_err(impossible)?;
        let first = self.first_line(machine).map_err(impossible)?;
        let mut system = System::with_coherence(machine).map_err(impossible)?;
        let mut random = Random::new(self.seed);
        let mut finished = Vec::new();
        for _ in 0..self.repetitions {
            let lines = self.choose(first, &mut random);
            self.place(&mut system, machine, by, &lines)?;
            // At any time: otherwise bursts fall into step with what happens at regular times, such as refreshes.
            let pause = Duration::from_ps(random.below(PAUSE_MAX.as_ps()));
            let issued = lines[..self.issued() as usize].to_vec();
            finished.push(run_burst(&mut system, by, issued, pause)?);
        }
        let stats = system.stats();
        Ok(Measured { bursts: self.clone(), finished, stats })
    }

    /// Runs one burst and follows its requests; gives the requests with what each part of their time was.
    ///
    /// # Errors
    /// As [`Bursts::run`], and if cores make the requests.
    pub fn follow(&self, machine: &Machine) -> Result<Timeline, SimulationError> {
        let impossible = SimulationError::Impossible;
        let by = self.by(machine).map_err(impossible)?;
        if matches!(by, By::Core(..)) {
            return Err(impossible("requests of devices are followed, and not those of cores".to_owned()));
        }
        let mut system = System::with_coherence(machine).map_err(impossible)?;
        let lines = self.choose(self.first_line(machine).map_err(impossible)?, &mut Random::new(self.seed));
        self.place(&mut system, machine, by, &lines)?;
        system.trace(Trace::new(Selection::Window(system.now(), Time::NEVER), SLICES_MAX));
        run_burst(&mut system, by, lines[..self.issued() as usize].to_vec(), Duration::ZERO)?;
        let trace = system.take_trace().expect("it has just been given");
        Ok(Timeline::new(trace, system.names(), system.wires()))
    }

    /// How many requests a burst issues: a flush of a whole cache is one.
    fn issued(&self) -> u32 {
        match self.requester {
            Requester::Device {
                access: DeviceAccess::FlushHostMemoryCache | DeviceAccess::FlushDeviceMemoryCache,
                ..
            } => 1,
            _ => self.requests,
        }
    }

    /// The requester on `machine`, if all is there that these bursts need.
    fn by(&self, machine: &Machine) -> Result<By, String> {
        if self.requests == 0 || self.requests > REQUESTS_MAX {
            return Err(format!("a burst of {} requests cannot be: 1 to {REQUESTS_MAX} can", self.requests));
        }
        if self.repetitions == 0 {
            return Err("there has to be a burst".to_owned());
        }
        let lines = self.footprint_bytes / LINE_BYTES;
        if lines < u64::from(self.requests) {
            return Err(format!("a footprint of {} bytes has no {} lines", self.footprint_bytes, self.requests));
        }
        match &self.requester {
            Requester::Device { name, access, observes, barrier } => {
                let device = accelerator(machine, name)?;
                if *access == DeviceAccess::NcPWrite && self.memory == *name {
                    return Err(format!(
                        "nc_p_write pushes a line of the host's memory into its last level, and {name} is the home of \
                         its own: use nc_write"
                    ));
                }
                let config = machine.type2.as_ref().expect("an accelerator has its table");
                let cache = if self.memory == *name { config.device_memory_cache } else { config.host_memory_cache };
                let room = u64::from(cache.size_kib) * 1024 / LINE_BYTES;
                if matches!(self.found_in, FoundIn::OwnCache | FoundIn::OwnModified) && lines > room {
                    return Err(format!("the cache of {name} has room for {room} lines, and not for {lines}"));
                }
                self.fits_into_filter(machine, lines)?;
                let waits = Waits { observes: *observes, ends_in_barrier: *barrier };
                Ok(By::Device(device, *access, waits))
            }
            Requester::Core { socket, access, cores } => {
                if *socket == Socket::Other && machine.sockets() < 2 {
                    return Err("the machine has no other socket: see [sockets] and [socket_link]".to_owned());
                }
                if self.found_in == FoundIn::OwnModified {
                    return Err("a device has modified lines in its own cache, and not a core".to_owned());
                }
                let misses = match access {
                    CoreAccess::NtStore => machine.core.write_combining_buffers,
                    _ => machine.cache_levels().l1d.mshrs,
                };
                self.fits_into_filter(machine, lines)?;
                Ok(By::Core(*socket, *access, u32::from(misses) * cores))
            }
        }
    }

    /// Whether the snoop filter of the memory, if it has one, has room for lines that the host is to have of it.
    fn fits_into_filter(&self, machine: &Machine, lines: u64) -> Result<(), String> {
        let filter = machine.type2.as_ref().and_then(|type2| type2.snoop_filter).filter(|_| {
            machine.fabric.bias.get(&self.memory) == Some(&Bias::BackInvalidate)
                && matches!(self.found_in, FoundIn::LastLevel | FoundIn::OwnCache)
        });
        match filter.map(|filter| u64::from(filter.size_kib) * 1024 / LINE_BYTES) {
            Some(room) if lines > room => {
                Err(format!("the snoop filter of {} has room for {room} lines, and not for {lines}", self.memory))
            }
            _ => Ok(()),
        }
    }

    /// The first line of the memory.
    fn first_line(&self, machine: &Machine) -> Result<LineAddress, String> {
        let nodes = machine.nodes_of(HostId(0));
        let own = if self.memory == "dram" { "dram0" } else { &self.memory };
        let node = nodes.iter().find(|node| node.name == own).ok_or_else(|| {
            let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
            there_is_no("memory", &self.memory, &names)
        })?;
        let bytes = node.frames.end - node.frames.start;
        if self.footprint_bytes > bytes {
            return Err(format!("a footprint of {} bytes is more than {} has", self.footprint_bytes, self.memory));
        }
        let is_of_device = |device: DeviceId| machine.topology().name(Vertex::Device(device)) == self.memory;
        match self.requester {
            Requester::Device { ref name, .. } if own != "dram0" && *name != self.memory => {
                return Err(format!("{name} caches its host's dram and its own memory, and not {}", self.memory));
            }
            _ if self.found_in == FoundIn::Pushed && (accelerators(machine).next().is_none() || own != "dram0") => {
                return Err("an accelerator pushes lines of dram, and there has to be one".to_owned());
            }
            _ if self.found_in == FoundIn::OtherCache && (own != "dram0" || self.other(machine).is_none()) => {
                return Err("another accelerator has lines of dram, and the first host has no other".to_owned());
            }
            _ if self.is_of_device_cache() && !accelerators(machine).any(is_of_device) => {
                return Err(format!("{} is no accelerator, which would have a cache of it", self.memory));
            }
            _ => {}
        }
        Ok(LineAddress::containing(node.frames.start))
    }

    /// An accelerator of the first host that does not make the requests.
    fn other(&self, machine: &Machine) -> Option<DeviceId> {
        let requester = match &self.requester {
            Requester::Device { name, .. } => accelerator(machine, name).ok(),
            Requester::Core { .. } => None,
        };
        let topology = machine.topology();
        let mut others = accelerators(machine).filter(|device| Some(*device) != requester);
        others.find(|device| topology.devices[device.0 as usize].hosts.contains(&HostId(0)))
    }

    fn is_of_device_cache(&self) -> bool {
        matches!(self.found_in, FoundIn::DeviceOwned | FoundIn::DeviceModified)
    }

    /// Different lines of the footprint.
    fn choose(&self, first: LineAddress, random: &mut Random) -> Vec<LineAddress> {
        let lines = self.footprint_bytes / LINE_BYTES;
        let mut chosen = rustc_hash::FxHashSet::default();
        let mut in_order = Vec::new();
        // Floyd's way to take some of many, each as likely as any other.
        for last in lines - u64::from(self.requests)..lines {
            let any = random.below(last + 1);
            let number = if chosen.insert(any) { any } else { last };
            chosen.insert(number);
            in_order.push(LineAddress(first.0 + number));
        }
        for index in (1..in_order.len()).rev() {
            in_order.swap(index, random.below(index as u64 + 1) as usize);
        }
        in_order
    }

    /// Puts the lines where they are to be found, and all others into memory.
    fn place(
        &self,
        system: &mut System,
        machine: &Machine,
        by: By,
        lines: &[LineAddress],
    ) -> Result<(), SimulationError> {
        for device in accelerators(machine) {
            system.with_accelerator(device, |accelerator, _| {
                for line in accelerator.held() {
                    accelerator.set_functionally(line, CacheState::Invalid, Version(0));
                }
                accelerator.empty_own_cache();
            });
        }
        system.with_coherent_host(HostId(0), |host, _| host.empty_caches());
        let of_device =
            accelerators(machine).find(|device| machine.topology().name(Vertex::Device(*device)) == self.memory);
        match of_device {
            Some(device) => self.place_in_device_memory(system, machine, by, device, lines),
            None => self.place_in_host_memory(system, machine, by, lines),
        }
        if self.found_in == FoundIn::Pushed {
            let pusher = accelerators(machine).next().expect("it was looked for");
            run_burst(
                system,
                By::Device(pusher, DeviceAccess::NcPWrite, Waits::default()),
                lines.to_vec(),
                Duration::ZERO,
            )?;
        }
        Ok(())
    }

    fn place_in_host_memory(&self, system: &mut System, machine: &Machine, by: By, lines: &[LineAddress]) {
        match (self.found_in, by) {
            (FoundIn::LastLevel, _) => system.with_coherent_host(HostId(0), |host, _| {
                lines.iter().for_each(|line| host.set_last_level(*line, true));
            }),
            (FoundIn::OwnCache | FoundIn::OwnModified, By::Device(device, ..)) => {
                let number = number_at_host(machine, device);
                let is_modified = self.found_in == FoundIn::OwnModified;
                let state = if is_modified { CacheState::Modified } else { CacheState::Exclusive };
                for line in lines {
                    let memory = system.coherent_host(HostId(0)).memory(*line);
                    system.with_coherent_host(HostId(0), |host, _| {
                        host.set_functionally(*line, |state| state.devices[number].holds = Holds::Owner);
                    });
                    system.with_accelerator(device, |accelerator, _| {
                        accelerator.set_functionally(*line, state, Version(memory.0 + u64::from(is_modified)));
                    });
                }
            }
            (FoundIn::OtherCache, _) => {
                let other = self.other(machine).expect("it was looked for");
                let number = number_at_host(machine, other);
                for line in lines {
                    let memory = system.coherent_host(HostId(0)).memory(*line);
                    system.with_coherent_host(HostId(0), |host, _| {
                        host.set_functionally(*line, |state| state.devices[number].holds = Holds::Owner);
                    });
                    system.with_accelerator(other, |accelerator, _| {
                        accelerator.set_functionally(*line, CacheState::Modified, Version(memory.0 + 1));
                    });
                }
            }
            (FoundIn::OwnCache, By::Core(socket, ..)) => system.with_coherent_host(HostId(0), |host, _| {
                for line in lines {
                    host.set_functionally(*line, |state| {
                        let memory = state.memory;
                        let core = &mut state.cores[socket as usize];
                        (core.state, core.data) = (CacheState::Exclusive, memory);
                    });
                }
            }),
            _ => {}
        }
    }

    fn place_in_device_memory(
        &self,
        system: &mut System,
        machine: &Machine,
        by: By,
        device: DeviceId,
        lines: &[LineAddress],
    ) {
        let name = machine.topology().name(Vertex::Device(device));
        let bias = machine.fabric.bias.get(name);
        let is_device_bias = matches!(bias, Some(Bias::Device | Bias::BackInvalidate));
        // What the device has of the lines, and what the host may have.
        let (state, host) = match (self.found_in, by) {
            (FoundIn::OwnCache, By::Device(..)) if is_device_bias => (CacheState::Exclusive, Meta::Invalid),
            (FoundIn::OwnCache, By::Device(..)) => (CacheState::Shared, Meta::Shared),
            (FoundIn::DeviceOwned, _) => (CacheState::Exclusive, Meta::Invalid),
            (FoundIn::DeviceModified, _) | (FoundIn::OwnModified, By::Device(..)) => {
                (CacheState::Modified, Meta::Invalid)
            }
            (FoundIn::LastLevel | FoundIn::OwnCache, _) => (CacheState::Invalid, Meta::Any),
            _ => return,
        };
        for line in lines {
            let memory = system.with_accelerator(device, |accelerator, _| {
                accelerator.set_own_functionally(*line, state, host);
                accelerator.own_memory(*line)
            });
            if host == Meta::Any {
                system.with_coherent_host(HostId(0), |at_host, _| {
                    at_host.set_remote_functionally(*line, CacheState::Exclusive, memory);
                });
            }
        }
    }
}

/// The accelerators of a machine.
fn accelerators(machine: &Machine) -> impl Iterator<Item = DeviceId> {
    machine.topology().accelerators.clone().map(|index| DeviceId(index as u32))
}

/// Which of its host's accelerators a device is.
fn number_at_host(machine: &Machine, device: DeviceId) -> usize {
    let topology = machine.topology();
    let ends = topology.hosts[0].edges.iter().filter_map(|edge| match topology.edge(*edge).to {
        Vertex::Device(end) if topology.is_accelerator(end) => Some(end),
        _ => None,
    });
    ends.into_iter().position(|end| end == device).expect("it is the host's")
}

/// The accelerator of that name.
fn accelerator(machine: &Machine, name: &str) -> Result<DeviceId, String> {
    let topology = machine.topology();
    let mut devices = topology.accelerators.clone();
    let names = || topology.devices[topology.accelerators.clone()].iter().map(|device| device.name.as_str());
    let found = devices.find(|index| topology.devices[*index].name == name).map(|index| DeviceId(index as u32));
    let found = found.filter(|device| topology.devices[device.0 as usize].hosts.contains(&HostId(0)));
    found.ok_or_else(|| match names().collect::<Vec<_>>()[..] {
        [] => "the machine has no accelerator: see fabric.accelerators".to_owned(),
        ref names => format!("the first host has no accelerator {name:?}; there are {}", names.join(", ")),
    })
}

/// Runs one burst, which begins after a pause, until the machine is at rest.
fn run_burst(
    system: &mut System,
    by: By,
    lines: Vec<LineAddress>,
    pause: Duration,
) -> Result<Finished, SimulationError> {
    let begin = system.now() + pause;
    match by {
        By::Device(device, kind, waits) => system.with_accelerator(device, |accelerator, context| {
            accelerator.begin(Burst { kind, lines }, waits, begin, context)
        }),
        By::Core(socket, kind, outstanding) => system.with_coherent_host(HostId(0), |host, context| {
            host.begin(socket, Burst { kind, lines }, outstanding, begin, context);
        }),
    }
    while system.step() != Stepped::Nowhere {}
    let finished = match by {
        By::Device(device, ..) => system.accelerator(device).finished(),
        By::Core(socket, ..) => system.coherent_host(HostId(0)).finished(socket),
    };
    match finished {
        Some(finished) if system.is_idle() => Ok(finished),
        _ => Err(SimulationError::Deadlock { time: system.now(), waiting: system.waiting() }),
    }
}

impl Measured {
    /// `{bursts, elapsed_ns: {mean, min, max}, latency_ns, bandwidth_gb_per_s, parts_ns, counters}`, as docs/type2.md
    /// describes it.
    pub fn to_json(&self) -> Value {
        let requests = f64::from(self.bursts.requests);
        let issued = f64::from(self.bursts.issued());
        let count = self.finished.len() as f64;
        let elapsed = || self.finished.iter().map(|finished| finished.elapsed);
        let sum = |durations: &mut dyn Iterator<Item = Duration>| durations.map(Duration::as_ns).sum::<f64>();
        let mean = sum(&mut elapsed()) / count;
        let latency = sum(&mut self.finished.iter().map(|finished| finished.latency)) / (count * issued);
        let part = |stage: usize| {
            let ps: u64 = self.finished.iter().map(|finished| finished.parts_ps[stage]).sum();
            json!(ps as f64 / 1000.0 / (count * issued))
        };
        let parts = (0..Stage::COUNT).map(|stage| (Stage::NAMES[stage].to_owned(), part(stage)));
        json!({
            "bursts": self.bursts,
            "elapsed_ns": {
                "mean": mean,
                "min": elapsed().min().map(Duration::as_ns),
                "max": elapsed().max().map(Duration::as_ns),
            },
            "latency_ns": latency,
            "bandwidth_gb_per_s": requests * LINE_BYTES as f64 / mean,
            "parts_ns": parts.collect::<Map<_, _>>(),
            "counters": self.stats.to_json(),
        })
    }
}
