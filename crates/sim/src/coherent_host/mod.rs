//! The host's side of CXL.cache, timed: home agent with directory and last-level cache, and load generators in the
//! place of cores. It stands where a host's cores and caches would, at port 0 of its bridge.
//!
//! What a request does to its line is decided by the state machine of [`host_side`](crate::device::type2::host_side);
//! here are the stages that messages pass, each with its time: the levels of the caches, the link between sockets, the
//! reads and writes of memory. The last level takes every line that it is given: bursts are small against it. A core of
//! another socket has the levels of its own socket before it, and then the link: it is what studies emulate a device
//! by.

mod cores;
mod device_memory;
mod home;
#[cfg(test)]
mod tests;

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::config::Machine;
use crate::device::type2::burst::{Burst, Finished, Running};
use crate::device::type2::device_memory::Kind;
use crate::device::type2::host_side::LastLevel;
use crate::device::type2::messages::CacheState;
use crate::device::type2::steps::Steps;
use cores::{Generator, Step};
use device_memory::Remote;
use fencepost_kernel::line::{LineAddress, Version};
use fencepost_kernel::link::Transmitter;
use fencepost_kernel::message::{Message, Opcode};
use fencepost_kernel::stats::StatsNode;
use fencepost_kernel::time::{Duration, Time};
use fencepost_kernel::{Component, Context, Event, PortId};
use home::{Home, HomeStats};

pub use cores::{CoreAccess, Socket};

/// The port to the host bridge.
const BRIDGE: PortId = PortId(0);

/// The end of the link between sockets at the other socket, and the end at the home agent.
pub const LINK_ENDS: [PortId; 2] = [PortId(1), PortId(2)];

/// How long the stages take.
#[derive(Clone, Copy, Debug)]
struct Times {
    /// From one access of a core to the next one.
    issue: Duration,
    /// Through the levels above the last one, on the way to it.
    private: Duration,
    /// The last level: to look a line up, and to read it if it is there.
    last_level: Duration,
    /// Through all levels, on the way back.
    response: Duration,
}

/// The host's side.
#[derive(Clone, Debug)]
pub struct CoherentHost {
    times: Times,
    homes: FxHashMap<LineAddress, Home>,
    /// Lines of devices' memory.
    remotes: FxHashMap<LineAddress, Remote>,
    /// Where devices' memory lies, and how the device asks for it.
    device_memory: Vec<(Range<LineAddress>, Kind)>,
    /// The port of the bridge behind which each device is.
    devices: Vec<PortId>,
    /// The ends of the link between sockets, in the order of [`LINK_ENDS`].
    link: Option<[Transmitter; 2]>,
    /// Of each socket.
    generators: [Generator; Socket::COUNT],
    steps: Steps<Step>,
    stats: HomeStats,
    #[cfg(test)]
    log: Vec<crate::device::type2::burst::Observed>,
}

impl CoherentHost {
    /// One of `machine`, with devices behind these ports of its bridge, whose memory lies in these lines.
    pub fn new(
        machine: &Machine,
        devices: Vec<PortId>,
        device_memory: Vec<(Range<LineAddress>, Kind)>,
    ) -> CoherentHost {
        let levels = machine.cache_levels();
        let cycle = Duration::from_ghz(machine.core.clock_ghz);
        let [last, above @ ..] = &levels.lower.iter().rev().map(|(_, level)| *level).collect::<Vec<_>>()[..] else {
            unreachable!("a machine has a last level")
        };
        let private = u64::from(levels.l1d.latency_cycles)
            + above.iter().map(|level| u64::from(level.latency_cycles)).sum::<u64>();
        let last_level = u64::from(last.latency_cycles);
        let response = levels.miss_latency(machine.core.clock_ghz).as_ps() - (cycle * (private + last_level)).as_ps();
        let link = machine.socket_link.filter(|_| machine.sockets() > 1);
        CoherentHost {
            times: Times {
                issue: cycle,
                private: cycle * private,
                last_level: cycle * last_level,
                response: Duration::from_ps(response),
            },
            homes: FxHashMap::default(),
            remotes: FxHashMap::default(),
            device_memory,
            devices,
            link: link.map(|link| LINK_ENDS.map(|port| Transmitter::new(port, &link.link()))),
            generators: [Generator::default(), Generator::default()],
            steps: Steps::default(),
            stats: HomeStats::default(),
            #[cfg(test)]
            log: Vec::new(),
        }
    }

    /// Begins a burst of a socket's cores at `begin`: `outstanding` accesses of theirs are under way at a time.
    ///
    /// # Panics
    /// If another one is under way there, or there is no such socket.
    pub fn begin(
        &mut self,
        socket: Socket,
        burst: Burst<CoreAccess>,
        outstanding: u32,
        begin: Time,
        context: &mut Context<'_>,
    ) {
        assert!(socket == Socket::Own || self.link.is_some(), "there is one socket");
        self.begin_burst(socket, burst, outstanding, begin, context);
    }

    /// What came of the burst of that socket that ended last; nothing while it is under way.
    pub fn finished(&self, socket: Socket) -> Option<Finished> {
        let running = self.generators[socket as usize].running.as_ref();
        running.filter(|running| running.is_finished()).map(Running::finished)
    }

    /// Whether there is another socket.
    pub fn has_other_socket(&self) -> bool {
        self.link.is_some()
    }

    /// Changes what the host has of a line, without time.
    pub fn set_functionally(&mut self, line: LineAddress, change: impl FnOnce(&mut home::State)) {
        change(&mut self.homes.entry(line).or_default().line);
    }

    /// Puts a line into the last level, clean, or takes it away.
    pub fn set_last_level(&mut self, line: LineAddress, is_there: bool) {
        self.set_functionally(line, |state| {
            state.last_level = if is_there { LastLevel::Clean(state.memory) } else { LastLevel::Nothing };
        });
    }

    /// What memory has of a line, as the home agent knows.
    pub fn memory(&self, line: LineAddress) -> Version {
        self.homes.get(&line).map_or(Version(0), |home| home.line.memory)
    }

    /// All lines are in memory, and in no cache.
    pub fn empty_caches(&mut self) {
        self.homes.values_mut().for_each(|home| home.line = home::State::new(home.line.memory));
        self.remotes.clear();
    }

    /// What each agent has of a line: the last level's, those of the cores of both sockets.
    pub fn copies(&self, line: LineAddress) -> (LastLevel<Version>, [(CacheState, Version); Socket::COUNT]) {
        let home = self.homes.get(&line);
        home.map_or((LastLevel::Nothing, Default::default()), |home| {
            (home.line.last_level, home.line.cores.map(|core| (core.state, core.data)))
        })
    }

    fn number_of(&self, message: &Message) -> usize {
        let port = message.flow.0;
        self.devices.iter().position(|own| u32::from(own.0) == port).expect("only devices of this host send here")
    }
}

impl Component for CoherentHost {
    fn handle(&mut self, event: Event, context: &mut Context<'_>) {
        match event {
            Event::Arrival { port: BRIDGE, message } => match message.opcode {
                Opcode::MemData | Opcode::MemDataS | Opcode::Cmp | Opcode::CmpE if self.is_remote(message.line) => {
                    self.remote_answered(message, context);
                }
                Opcode::GrantedS | Opcode::GrantedE | Opcode::BiConflictAck => self.remote_answered(message, context),
                Opcode::BiSnpData | Opcode::BiSnpInv => self.device_snoops(message, context),
                Opcode::MemData => self.memory_answered(message, context),
                Opcode::Cmp => self.memory_written(message, context),
                _ => self.device_says(message, context),
            },
            Event::Arrival { port, message } => self.crossed(port, message, context),
            Event::Credit { port, class } => self.link_end(port).credit_returned(class, context),
            Event::Wake { .. } => self.step(context),
        }
    }

    fn power_fail(&mut self) {
        self.homes.clear();
        self.remotes.clear();
        self.generators = [Generator::default(), Generator::default()];
        self.steps.clear();
        self.link.iter_mut().flatten().for_each(Transmitter::power_fail);
        self.stats.writes_under_way = 0;
    }

    fn is_idle(&self) -> bool {
        self.steps.is_empty()
            && self.stats.writes_under_way == 0
            && self.homes.values().all(Home::is_idle)
            && self.remotes.values().all(Remote::is_idle)
            && self.link.iter().flatten().all(Transmitter::is_idle)
    }

    fn waiting(&self) -> Vec<String> {
        let mut busy: Vec<_> = self.homes.iter().filter(|(_, home)| !home.is_idle()).collect();
        busy.sort_unstable_by_key(|(line, _)| **line);
        busy.into_iter().map(|(line, home)| format!("line {:#x}: {}", line.byte(), home.describe())).collect()
    }

    fn stats(&self, now: Time) -> StatsNode {
        let mut nodes = self.stats.to_nodes();
        let ends = ["other_socket", "home"].into_iter().zip(self.link.iter().flatten());
        nodes.extend(ends.map(|(name, end)| (name.to_owned(), end.stats(now))));
        StatsNode::group(nodes)
    }
}
