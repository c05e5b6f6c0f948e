//! The home agent of a part of memory: keeps the caches of several sockets coherent.
//!
//! A pure state machine: it takes messages and gives actions, and knows neither time nor wires. Caching agents (the
//! last levels of sockets) send it requests; it serves those of a line one after the other, snoops whoever may have a
//! copy, and asks memory. A line stays blocked until the agent that got a copy has acknowledged it, so that no snoop
//! overtakes a copy. Writes free their line at once: the host bridge keeps the order of writes and reads of a line.
//!
//! What an agent guarantees:
//! - It asks for no line, and writes none, of which a write of its own has no `Complete` yet.
//! - While it has such a write it answers a snoop for the line with `SnoopedInWriteBack`, whatever its caches have.
//!   So the home agent writes what the write carries, or something newer, itself, and drops the write when it comes.
//! - It drops clean copies without a word.

mod config;
mod directory;
mod line_writes;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

pub use config::{SocketLinkConfig, SocketsConfig};
use directory::Directory;
pub use directory::{AgentId, Agents, Holders, MemoryDirectory};
use line_writes::LineWrites;

use fencepost_kernel::address_map::is_pm;
use fencepost_kernel::line::{ByteMask, LineAddress, Version};
use fencepost_kernel::message::{Cause, Message, Opcode, RequestName};
use fencepost_kernel::sparse_table::SparseTable;
use fencepost_kernel::stats::StatsNode;

/// What a home agent wants done, in that order.
#[derive(Clone, Debug)]
pub enum Action {
    /// Send a snoop or an answer to an agent.
    Send(AgentId, Message),
    /// Send a read or write to memory; [`HomeAgent::memory_answered`] gets the answer.
    AskMemory(Message),
}

/// What home agents count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HomeAgentStats {
    /// Requests that came.
    pub requests: u64,
    /// Of these, those that found their line blocked by another.
    pub blocked: u64,
    /// Snoops sent.
    pub snoops: u64,
    /// Snoops that were answered with data.
    pub snoops_with_data: u64,
    /// Writes that were dropped because a snoop had taken what they carry.
    pub dropped_writes: u64,
    /// Writes of memory that carried nothing but who may have the line.
    pub directory_writes: u64,
}

impl HomeAgentStats {
    /// As a tree.
    pub fn stats(&self) -> StatsNode {
        StatsNode::group([
            ("requests", StatsNode::Counter(self.requests)),
            ("blocked", StatsNode::Counter(self.blocked)),
            ("snoops", StatsNode::Counter(self.snoops)),
            ("snoops_with_data", StatsNode::Counter(self.snoops_with_data)),
            ("dropped_writes", StatsNode::Counter(self.dropped_writes)),
            ("directory_writes", StatsNode::Counter(self.directory_writes)),
        ])
    }
}

/// The home agent of some of a host's memory.
#[derive(Clone, Debug, Default)]
pub struct HomeAgent {
    directory: Directory,
    /// None: memory keeps nothing beside its lines.
    in_memory: Option<MemoryDirectory>,
    /// Lines for which a request is being served.
    blocked: FxHashMap<LineAddress, Blocked>,
    writes: LineWrites,
    /// The version of each line that memory was given last.
    written: SparseTable<Version>,
    stats: HomeAgentStats,
}

/// A line whose request is being served.
#[derive(Clone, Debug)]
struct Blocked {
    agent: AgentId,
    /// None while memory reads, or after the answer.
    request: Option<Message>,
    /// Whether the agent shall be the owner, once data are here.
    shall_own: bool,
    /// Agents that have not answered a snoop.
    awaited: Agents,
    /// What snoops have brought.
    dirty: Option<Dirty>,
    /// Requests that came since.
    queue: VecDeque<(AgentId, Message)>,
}

/// What a snoop has brought.
#[derive(Clone, Copy, Debug)]
struct Dirty {
    version: Version,
    /// Whether it has to be written at once, because a write that carries it or something older will be dropped.
    must_be_written: bool,
}

impl HomeAgent {
    /// One whose memory keeps who may have a line.
    pub fn with_memory_directory(in_memory: MemoryDirectory) -> HomeAgent {
        HomeAgent { in_memory: Some(in_memory), ..HomeAgent::default() }
    }

    /// Takes a request of `agent`; adds what is to be done to `actions`.
    pub fn request(&mut self, agent: AgentId, request: Message, actions: &mut Vec<Action>) {
        self.stats.requests += 1;
        if let Some(blocked) = self.blocked.get_mut(&request.line) {
            self.stats.blocked += 1;
            blocked.queue.push_back((agent, request));
            return;
        }
        self.serve(agent, request, VecDeque::new(), actions);
    }

    /// Takes an agent's answer to a snoop.
    ///
    /// # Panics
    /// If it was not asked.
    pub fn snooped(&mut self, agent: AgentId, answer: &Message, actions: &mut Vec<Action>) {
        let blocked = self.blocked.get_mut(&answer.line).expect("a snooped line is blocked");
        assert!(blocked.awaited.contains(agent), "{agent:?} answers a snoop of {:?} that it did not get", answer.line);
        blocked.awaited = blocked.awaited.without(agent);
        // The snoop may have overtaken the completion of a write that it finds under way; a newer one may be in memory.
        let is_newer = answer.version > self.written.get(answer.line.0);
        if answer.opcode != Opcode::SnoopedNothing && is_newer {
            self.stats.snoops_with_data += 1;
            let must_be_written = answer.opcode == Opcode::SnoopedInWriteBack;
            debug_assert!(blocked.dirty.is_none(), "a line is dirty at two agents");
            blocked.dirty = Some(Dirty { version: answer.version, must_be_written });
        }
        if blocked.awaited.is_empty() {
            self.all_snooped(answer.line, actions);
        }
    }

    /// The agent that got a copy of `line` has it.
    pub fn acknowledged(&mut self, line: LineAddress, actions: &mut Vec<Action>) {
        let blocked = self.blocked.remove(&line).expect("a granted line is blocked until it is acknowledged");
        debug_assert!(blocked.request.is_none(), "a line is acknowledged before it is granted");
        self.serve_queue(blocked.queue, actions);
    }

    /// Takes memory's answer to a read or write.
    pub fn memory_answered(&mut self, mut answer: Message, actions: &mut Vec<Action>) {
        let line = answer.line;
        if answer.opcode == Opcode::MemData {
            let written = self.written.get(line.0);
            debug_assert!(!is_pm(line) || answer.version >= written, "memory has lost a version of {line:?}");
            answer.version = answer.version.max(written);
            let blocked = &self.blocked[&line];
            let (agent, owns) = (blocked.agent, blocked.shall_own);
            answer.opcode = if owns { Opcode::GrantExclusive } else { Opcode::GrantShared };
            let granted = answer.clone();
            actions.push(Action::Send(agent, answer));
            self.keep_in_memory(&granted, actions);
            return;
        }
        let (by, waiting) = self.writes.complete(line);
        if let Some(agent) = by {
            answer.opcode = Opcode::Complete;
            actions.push(Action::Send(agent, answer));
        }
        for (agent, request) in waiting {
            complete(agent, request, actions);
        }
    }

    /// The agent whose request for `line` is being served.
    pub fn served(&self, line: LineAddress) -> Option<AgentId> {
        self.blocked.get(&line).map(|blocked| blocked.agent)
    }

    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.blocked.is_empty() && self.writes.is_empty()
    }

    /// The lines that are blocked, in ascending order: for the deadlock report.
    pub fn waiting(&self) -> Vec<LineAddress> {
        let mut lines: Vec<_> = self.blocked.keys().copied().collect();
        lines.sort_unstable();
        lines
    }

    /// Who may have copies of `line`.
    pub fn holders(&self, line: LineAddress) -> Holders {
        self.directory.holders(line)
    }

    /// The version of `line` that memory was given last.
    pub fn written(&self, line: LineAddress) -> Version {
        self.written.get(line.0)
    }

    /// The holders of `line` have changed without messages.
    pub fn set_functionally(&mut self, line: LineAddress, holders: Holders) {
        self.directory.set(line, holders);
        if let Some(in_memory) = &mut self.in_memory {
            in_memory.given(line, holders);
        }
    }

    /// `line` has been written without messages.
    pub fn written_functionally(&mut self, line: LineAddress, version: Version) {
        *self.written.get_mut(line.0) = version;
        if let Some(in_memory) = &mut self.in_memory {
            in_memory.written(line, Holders::default());
        }
    }

    /// Everything counted so far.
    pub fn counters(&self) -> &HomeAgentStats {
        &self.stats
    }

    /// Power is gone, and every cache with it.
    pub fn power_fail(&mut self) {
        self.directory.clear();
        self.in_memory.iter_mut().for_each(MemoryDirectory::clear);
        self.blocked.clear();
        self.writes.clear();
    }

    /// Begins to serve a request for a line that is not blocked; `queue` comes after it.
    fn serve(
        &mut self,
        agent: AgentId,
        request: Message,
        queue: VecDeque<(AgentId, Message)>,
        actions: &mut Vec<Action>,
    ) {
        let line = request.line;
        let holders = self.directory.holders(line);
        let others = holders.agents.without(agent);
        // Whoever may have written the line has the newest version; if nobody may, memory has.
        let owner = if holders.is_owned { holders.agents } else { Agents::default() };
        let (asked, snoop) = match request.opcode {
            Opcode::ReadLine => (owner.without(agent), Opcode::SnoopShare),
            // A dirty copy may have been on its way to the agent itself.
            Opcode::CleanLine => (owner, Opcode::SnoopShare),
            Opcode::FlushLine if holders.is_owned => (owner, Opcode::SnoopInvalidate),
            Opcode::WriteEvicted | Opcode::WriteFlushed | Opcode::WriteCleaned => {
                (Agents::default(), Opcode::SnoopInvalidate)
            }
            _ => (others, Opcode::SnoopInvalidate),
        };
        for asked in asked.iter() {
            self.stats.snoops += 1;
            let mut message = Message::read(line, request.tag, request.cause, request.stack.charged_until());
            message.opcode = snoop;
            if request.request != RequestName::NONE {
                // A trace shows it as a part of what it is sent for.
                (message.request, message.stack) = (request.request, request.stack.clone());
            }
            actions.push(Action::Send(asked, message));
        }
        let blocked = Blocked { agent, request: Some(request), shall_own: false, awaited: asked, dirty: None, queue };
        self.blocked.insert(line, blocked);
        if asked.is_empty() {
            self.all_snooped(line, actions);
        }
    }

    /// Goes on with the next of those who wait for a line.
    fn serve_queue(&mut self, mut queue: VecDeque<(AgentId, Message)>, actions: &mut Vec<Action>) {
        if let Some((agent, request)) = queue.pop_front() {
            self.serve(agent, request, queue, actions);
        }
    }

    /// Nobody's answer is missing any longer.
    fn all_snooped(&mut self, line: LineAddress, actions: &mut Vec<Action>) {
        let blocked = self.blocked.get_mut(&line).expect("a snooped line is blocked");
        let request = blocked.request.take().expect("a request is served once");
        let (agent, dirty) = (blocked.agent, blocked.dirty.take());
        match request.opcode {
            Opcode::ReadLine | Opcode::OwnLine | Opcode::UpgradeLine => self.grant(agent, request, dirty, actions),
            Opcode::FlushLine | Opcode::CleanLine => self.flush(agent, request, dirty, actions),
            Opcode::WriteAround | Opcode::WriteAroundPtl => self.write_around(agent, request, dirty, actions),
            Opcode::WriteEvicted | Opcode::WriteFlushed | Opcode::WriteCleaned => {
                self.write_back(agent, request, actions);
            }
            other => unreachable!("{other:?} is no request of a caching agent"),
        }
    }

    /// Gives `agent` the copy it asked for, or asks memory for it. The line stays blocked.
    fn grant(&mut self, agent: AgentId, mut request: Message, dirty: Option<Dirty>, actions: &mut Vec<Action>) {
        let line = request.line;
        let before = self.directory.holders(line);
        let wants_to_write = request.opcode != Opcode::ReadLine;
        let is_upgrade = request.opcode == Opcode::UpgradeLine && before.agents.contains(agent);
        let others = before.agents.without(agent);
        let owns = wants_to_write || others.is_empty();
        let holders = if owns { Holders::owner(agent) } else { Holders::shared(before.agents.with(agent)) };
        self.directory.set(line, holders);
        self.blocked.get_mut(&line).expect("it is being served").shall_own = owns;
        match dirty {
            Some(Dirty { version, must_be_written }) => {
                if !wants_to_write || must_be_written {
                    self.write_snooped(line, version, &request, actions);
                }
                // An owner whose copy is clean may take it to be in memory, and a write may still be under way.
                request.opcode = if owns { Opcode::GrantModified } else { Opcode::GrantForwarded };
                request.version = version;
                let granted = request.clone();
                actions.push(Action::Send(agent, request));
                self.keep_in_memory(&granted, actions);
            }
            None if is_upgrade => {
                // Again, a clean copy would say that the line is in memory.
                let is_being_written = self.writes.has(line);
                request.opcode = if is_being_written { Opcode::GrantModified } else { Opcode::GrantUpgrade };
                request.version = self.written.get(line.0);
                let granted = request.clone();
                actions.push(Action::Send(agent, request));
                self.keep_in_memory(&granted, actions);
            }
            None => {
                request.opcode = Opcode::MemRd;
                actions.push(Action::AskMemory(request));
            }
        }
    }

    /// Writes memory if it has to keep who may have the line that was `granted`: what it has of the line stays.
    fn keep_in_memory(&mut self, granted: &Message, actions: &mut Vec<Action>) {
        let line = granted.line;
        let holders = self.directory.holders(line);
        if self.in_memory.as_mut().is_some_and(|in_memory| in_memory.given(line, holders)) {
            self.stats.directory_writes += 1;
            self.write_snooped(line, self.written.get(line.0), granted, actions);
        }
    }

    /// Completes a flush of a line that is not dirty at `agent`.
    fn flush(&mut self, agent: AgentId, mut request: Message, dirty: Option<Dirty>, actions: &mut Vec<Action>) {
        let line = request.line;
        let before = self.directory.holders(line);
        let agents = match request.opcode {
            Opcode::CleanLine => before.agents,
            // A read of its own may have come in between and brought it a copy that it shares.
            _ if !before.is_owned && before.agents.contains(agent) => Agents::only(agent),
            _ => Agents::default(),
        };
        self.directory.set(line, Holders::shared(agents));
        match dirty {
            Some(Dirty { version, .. }) => {
                request.version = version;
                self.write(Some(agent), request, actions);
            }
            None => {
                if let Some(request) = self.writes.wait(agent, request) {
                    complete(agent, request, actions);
                }
            }
        }
        self.free(line, actions);
    }

    /// Writes what an agent sends for no cache to keep.
    fn write_around(&mut self, agent: AgentId, mut request: Message, dirty: Option<Dirty>, actions: &mut Vec<Action>) {
        let line = request.line;
        self.directory.set(line, Holders::default());
        // The store is the newest one of its line; if it covers only a part, it goes into what another agent had.
        let before = dirty.map_or(Version(0), |dirty| dirty.version).max(self.written.get(line.0));
        request.version = request.version.max(Version(before.0 + 1));
        if dirty.is_some() {
            request.mask = ByteMask::FULL;
        }
        self.write(Some(agent), request, actions);
        self.free(line, actions);
    }

    /// Writes a line that `agent` had dirty, unless a snoop has taken it on the way.
    fn write_back(&mut self, agent: AgentId, request: Message, actions: &mut Vec<Action>) {
        let line = request.line;
        if request.opcode != Opcode::WriteCleaned && self.directory.holders(line).may_be_dirty_at(agent) {
            self.directory.set(line, Holders::default());
        }
        if request.version > self.written.get(line.0) {
            self.write(Some(agent), request, actions);
        } else {
            self.stats.dropped_writes += 1;
            if let Some(request) = self.writes.wait(agent, request) {
                complete(agent, request, actions);
            }
        }
        self.free(line, actions);
    }

    /// Writes what a snoop has brought, or what memory has already, on behalf of `request`.
    fn write_snooped(&mut self, line: LineAddress, version: Version, request: &Message, actions: &mut Vec<Action>) {
        let now = request.stack.charged_until();
        let write = Message::write(line, request.tag, Cause::Writeback, version, ByteMask::FULL, now);
        self.write(None, write, actions);
    }

    /// Sends a write to memory.
    fn write(&mut self, by: Option<AgentId>, mut message: Message, actions: &mut Vec<Action>) {
        message.opcode = if message.mask.is_full() { Opcode::MemWr } else { Opcode::MemWrPtl };
        self.writes.begin(message.line, by);
        *self.written.get_mut(message.line.0) = message.version;
        if let Some(in_memory) = &mut self.in_memory {
            in_memory.written(message.line, self.directory.holders(message.line));
        }
        actions.push(Action::AskMemory(message));
    }

    /// A line is served, and not granted to anybody who would have to acknowledge it.
    fn free(&mut self, line: LineAddress, actions: &mut Vec<Action>) {
        let blocked = self.blocked.remove(&line).expect("it was being served");
        self.serve_queue(blocked.queue, actions);
    }
}

/// Tells an agent that its write or flush is complete.
fn complete(agent: AgentId, mut request: Message, actions: &mut Vec<Action>) {
    request.opcode = Opcode::Complete;
    actions.push(Action::Send(agent, request));
}
