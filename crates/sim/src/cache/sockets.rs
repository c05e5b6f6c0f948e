//! All caches of a host: a hierarchy for each of its sockets and, where it has several, the home agents of its memory.
//!
//! Cores have the numbers of the host in every hierarchy. What is timed between sockets is up to the host; accesses
//! without time change the caches of all sockets at once here, and tell the home agents.

use super::array::State;
use super::hierarchy::{Hierarchy, HierarchyConfig, Request, Want};
use crate::home_agent::{AgentId, Agents, Holders, HomeAgent, MemoryDirectory};
use fencepost_isa::micro_op::Flush;
use fencepost_kernel::address_map::is_pm;
use fencepost_kernel::line::{LineAddress, Version};
use fencepost_kernel::message::Cause;
use fencepost_kernel::stats::StatsNode;

/// The caches of a host.
#[derive(Clone)]
pub struct Caches {
    hierarchies: Vec<Hierarchy>,
    cores_each: usize,
    /// None where there is one socket.
    homes: Option<Box<Homes>>,
}

/// The home agents of a host's memory.
#[derive(Clone)]
struct Homes {
    /// One at each socket.
    agents: Vec<HomeAgent>,
    /// Where the memory of each socket ends; what lies behind all belongs to the first socket.
    ends: Vec<LineAddress>,
}

impl Homes {
    fn of_line(&self, line: LineAddress) -> usize {
        self.ends.iter().position(|end| line < *end).unwrap_or(0)
    }
}

impl Caches {
    /// Cold caches of as many sockets as `ends` says where the memory of a socket ends; the cores of `config` are those
    /// of all sockets together. With `memory_directory` memory keeps beside its lines which other sockets may have.
    pub fn new(config: &HierarchyConfig, ends: &[LineAddress], memory_directory: bool) -> Caches {
        let sockets = ends.len().max(1);
        let cores_each = config.cores / sockets;
        let hierarchy = |socket: usize| {
            let own_cores = socket * cores_each..(socket + 1) * cores_each;
            Hierarchy::new(&HierarchyConfig { own_cores, is_one_of_several: sockets > 1, ..config.clone() })
        };
        let home = |socket: usize| match ends.last().filter(|_| memory_directory) {
            // What lies behind the memory of all sockets is no socket's own, and has no such bits.
            Some(end) => HomeAgent::with_memory_directory(MemoryDirectory::new(AgentId(socket as u8), *end)),
            None => HomeAgent::default(),
        };
        let homes = || Box::new(Homes { agents: (0..sockets).map(home).collect(), ends: ends.to_vec() });
        Caches { hierarchies: (0..sockets).map(hierarchy).collect(), cores_each, homes: (sockets > 1).then(homes) }
    }

    /// How many sockets there are.
    pub fn sockets(&self) -> usize {
        self.hierarchies.len()
    }

    /// The socket of a core.
    #[inline]
    pub fn socket_of(&self, core: usize) -> usize {
        if self.homes.is_none() { 0 } else { core / self.cores_each }
    }

    /// The caches of a socket.
    #[inline]
    pub fn of_socket(&mut self, socket: usize) -> &mut Hierarchy {
        &mut self.hierarchies[socket]
    }

    /// Those above which a core is.
    #[inline]
    pub fn of_core(&mut self, core: usize) -> &mut Hierarchy {
        let socket = self.socket_of(core);
        &mut self.hierarchies[socket]
    }

    /// All of them, socket after socket.
    pub fn iter(&self) -> impl Iterator<Item = &Hierarchy> {
        self.hierarchies.iter()
    }

    /// The caches of a host with one socket.
    ///
    /// # Panics
    /// If there are several sockets.
    pub fn only(&self) -> &Hierarchy {
        let [only] = &self.hierarchies[..] else { panic!("a host of several sockets has several hierarchies") };
        only
    }

    /// The same to be changed.
    ///
    /// # Panics
    /// If there are several sockets.
    pub fn only_mut(&mut self) -> &mut Hierarchy {
        let [only] = &mut self.hierarchies[..] else { panic!("a host of several sockets has several hierarchies") };
        only
    }

    /// The socket whose home agent keeps `line`; there must be several.
    pub fn home_of(&self, line: LineAddress) -> usize {
        self.homes.as_ref().expect("there are several sockets").of_line(line)
    }

    /// The home agent at a socket; there must be several.
    pub fn home(&mut self, socket: usize) -> &mut HomeAgent {
        &mut self.homes.as_mut().expect("there are several sockets").agents[socket]
    }

    /// The home agents, socket after socket; none where there is one socket.
    pub fn homes(&self) -> &[HomeAgent] {
        self.homes.as_ref().map_or(&[], |homes| &homes.agents)
    }

    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.hierarchies.iter().all(Hierarchy::is_idle) && self.homes().iter().all(HomeAgent::is_idle)
    }

    /// What is under way, one line each.
    pub fn waiting(&self) -> Vec<String> {
        let blocked = self.homes().iter().enumerate().flat_map(|(socket, home)| {
            home.waiting().into_iter().map(move |line| format!("line {:#x} is blocked at socket {socket}", line.byte()))
        });
        self.hierarchies.iter().flat_map(Hierarchy::waiting).chain(blocked).collect()
    }

    /// Requests that memory has answered.
    pub fn completed(&self) -> u64 {
        self.hierarchies.iter().map(|caches| caches.counters().completed()).sum()
    }

    /// Writes to PM that left, complete or not.
    pub fn pm_writes(&self) -> u64 {
        self.hierarchies.iter().map(|caches| caches.counters().pm_writes).sum()
    }

    /// Power is gone, and with it everything in the caches.
    pub fn power_fail(&mut self) {
        self.hierarchies.iter_mut().for_each(Hierarchy::power_fail);
        self.homes.iter_mut().flat_map(|homes| &mut homes.agents).for_each(HomeAgent::power_fail);
    }

    /// Everything counted, all sockets together.
    pub fn stats(&self) -> Vec<(String, StatsNode)> {
        let (first, others) = self.hierarchies.split_first().expect("there is a socket");
        let mut sum = first.stats();
        for other in others {
            for ((_, node), (_, more)) in sum.iter_mut().zip(other.stats()) {
                *node = node.plus(&more);
            }
        }
        sum
    }

    /// The newest version of a line, in any cache or under way to memory.
    pub fn newest_version(&self, line: LineAddress) -> Version {
        let written = self.homes().iter().map(|home| home.written(line));
        self.hierarchies.iter().map(|caches| caches.newest_version(line)).chain(written).max().unwrap_or_default()
    }

    /// Performs an access at once and without time: to warm the caches up.
    #[inline]
    pub fn access_functionally(&mut self, request: Request) {
        if self.homes.is_none() {
            return self.hierarchies[0].access_functionally(request);
        }
        let socket = self.socket_of(request.core);
        // What a first level may do, its socket may.
        if self.hierarchies[socket].hits_functionally(&request) {
            return;
        }
        if !self.hierarchies[socket].may(request.want, request.line) {
            self.take_functionally(socket, &request);
        }
        self.hierarchies[socket].miss_functionally(request);
        self.tell_homes();
    }

    /// Brings a line, or the right to write it, to a socket, which has not.
    fn take_functionally(&mut self, socket: usize, request: &Request) {
        let (line, agent) = (request.line, AgentId(socket as u8));
        let home = self.home_of(line);
        let to_write = request.want == Want::Own;
        let before = self.home(home).holders(line);
        let others = before.agents.without(agent);
        let mut version = self.home(home).written(line);
        for other in others.iter() {
            version = version.max(self.hierarchies[usize::from(other.0)].give_functionally(line, to_write));
        }
        let owns = to_write || others.is_empty();
        let holders = if owns { Holders::owner(agent) } else { Holders::shared(before.agents.with(agent)) };
        self.home(home).set_functionally(line, holders);
        let state = if owns { State::Exclusive } else { State::Shared };
        self.hierarchies[socket].take_functionally(request, state, version);
    }

    /// Flushes a line at once and without time.
    pub fn flush_functionally(&mut self, line: LineAddress, flush: Flush) {
        let counting = if self.homes.is_some() { self.home_of(line) } else { 0 };
        self.hierarchies[counting].flush_functionally(line, flush);
        for other in (0..self.sockets()).filter(|socket| *socket != counting) {
            self.hierarchies[other].write_back_functionally(line, flush);
        }
        self.tell_homes();
    }

    /// Writes around the caches at once and without time.
    pub fn write_around_functionally(&mut self, line: LineAddress) {
        if self.homes.is_none() {
            return self.hierarchies[0].write_around_functionally(line);
        }
        let home = self.home_of(line);
        let written = self.home(home).written(line);
        let newest =
            self.hierarchies.iter_mut().map(|caches| caches.drop_functionally(line)).fold(written, Version::max);
        self.home(home).set_functionally(line, Holders::shared(Agents::default()));
        self.hierarchies[home].write_functionally(line, Version(newest.0 + 1), Cause::NonTemporalStore, 0);
        self.tell_homes();
    }

    /// Tells the home agents what has been written without time. What of it belongs into PM is kept with the caches of
    /// the first socket.
    fn tell_homes(&mut self) {
        let Some(homes) = &mut self.homes else { return };
        for socket in 0..self.hierarchies.len() {
            for (line, version) in self.hierarchies[socket].take_functional_writes() {
                let home = homes.of_line(line);
                homes.agents[home].written_functionally(line, version);
                if is_pm(line) {
                    self.hierarchies[0].keep_warm_write(line, version);
                }
            }
        }
    }

    /// The PM lines that were written while warming up, the one written last behind all others; they are forgotten
    /// here.
    pub fn take_warm_writes(&mut self) -> Vec<(LineAddress, Version)> {
        self.hierarchies[0].take_warm_writes()
    }
}
