//! The home agent between three caching agents that do whatever they may, and channels that deliver in any order that
//! their classes allow.
//!
//! The reference is a number for each line: how many stores were performed on it.

use std::collections::{HashMap, VecDeque};

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use fencepost_kernel::address_map::PM_BASE_LINE;
use fencepost_kernel::message::{MessageClass, Tag};
use fencepost_kernel::time::Time;

const AGENTS: u8 = 3;
const LINES: u64 = 2;

fn line(number: u64) -> LineAddress {
    LineAddress(PM_BASE_LINE.0 + number % LINES)
}

/// What an agent has of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Copy {
    version: Version,
    may_write: bool,
    is_dirty: bool,
}

/// A caching agent of two lines.
#[derive(Default)]
struct Agent {
    copies: HashMap<LineAddress, Copy>,
    /// Requests for a copy that are not answered.
    asked: HashMap<LineAddress, Opcode>,
    /// Writes that are not complete, with the newest version that they stand for.
    writes: HashMap<LineAddress, Version>,
    /// Flushes without data that are not complete, with what must be in memory then.
    flushes: HashMap<LineAddress, Version>,
}

/// Where messages are under way: from whom to whom, none for the home agent, in which class.
type Channel = (Option<AgentId>, Option<AgentId>, MessageClass);

#[derive(Default)]
struct World {
    home: HomeAgent,
    agents: [Agent; AGENTS as usize],
    channels: HashMap<Channel, VecDeque<Message>>,
    /// Requests to memory, by line, in order.
    memory_requests: HashMap<LineAddress, VecDeque<Message>>,
    memory: HashMap<LineAddress, Version>,
    newest: HashMap<LineAddress, Version>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Read { agent: u8, line: u64 },
    Own { agent: u8, line: u64 },
    Store { agent: u8, line: u64 },
    Evict { agent: u8, line: u64 },
    Flush { agent: u8, line: u64, keep: bool },
    WriteAround { agent: u8, line: u64 },
    Deliver { which: usize },
    Memory { which: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let place = (0..AGENTS, 0..LINES);
    prop_oneof![
        3 => place.clone().prop_map(|(agent, line)| Step::Read { agent, line }),
        3 => place.clone().prop_map(|(agent, line)| Step::Own { agent, line }),
        4 => place.clone().prop_map(|(agent, line)| Step::Store { agent, line }),
        2 => place.clone().prop_map(|(agent, line)| Step::Evict { agent, line }),
        2 => (place.clone(), any::<bool>()).prop_map(|((agent, line), keep)| Step::Flush { agent, line, keep }),
        1 => place.prop_map(|(agent, line)| Step::WriteAround { agent, line }),
        20 => any::<usize>().prop_map(|which| Step::Deliver { which }),
        6 => any::<usize>().prop_map(|which| Step::Memory { which }),
    ]
}

fn message(opcode: Opcode, line: LineAddress, version: Version) -> Message {
    let read = Message::read(line, Tag(0), Cause::DemandRead, Time::ZERO);
    Message { opcode, version, ..read }
}

impl World {
    fn step(&mut self, step: Step) {
        match step {
            Step::Read { agent, line: number } => self.ask(agent, line(number), false),
            Step::Own { agent, line: number } => self.ask(agent, line(number), true),
            Step::Store { agent, line: number } => self.store(agent, line(number)),
            Step::Evict { agent, line: number } => self.evict(agent, line(number)),
            Step::Flush { agent, line: number, keep } => self.flush(agent, line(number), keep),
            Step::WriteAround { agent, line: number } => self.write_around(agent, line(number)),
            Step::Deliver { which } => self.deliver(which),
            Step::Memory { which } => self.answer_from_memory(which),
        }
    }

    fn newest(&self, line: LineAddress) -> Version {
        self.newest.get(&line).copied().unwrap_or_default()
    }

    fn post(&mut self, from: Option<AgentId>, to: Option<AgentId>, message: Message) {
        self.channels.entry((from, to, message.class())).or_default().push_back(message);
    }

    /// Whether an agent may ask for a line, or write it.
    fn is_free(&self, agent: u8, line: LineAddress) -> bool {
        let agent = &self.agents[usize::from(agent)];
        !agent.writes.contains_key(&line) && !agent.asked.contains_key(&line)
    }

    fn ask(&mut self, agent: u8, line: LineAddress, to_write: bool) {
        let copy = self.agents[usize::from(agent)].copies.get(&line).copied();
        if !self.is_free(agent, line) || copy.is_some_and(|copy| copy.may_write || !to_write) {
            return;
        }
        let opcode = match (to_write, copy.is_some()) {
            (false, _) => Opcode::ReadLine,
            (true, false) => Opcode::OwnLine,
            (true, true) => Opcode::UpgradeLine,
        };
        self.agents[usize::from(agent)].asked.insert(line, opcode);
        self.post(Some(AgentId(agent)), None, message(opcode, line, Version(0)));
    }

    fn store(&mut self, agent: u8, line: LineAddress) {
        let newest = self.newest(line);
        let Some(copy) = self.agents[usize::from(agent)].copies.get_mut(&line) else { return };
        if copy.may_write {
            assert_eq!(copy.version, newest, "whoever may write has the newest version");
            *copy = Copy { version: Version(newest.0 + 1), is_dirty: true, ..*copy };
            self.newest.insert(line, Version(newest.0 + 1));
        }
    }

    fn evict(&mut self, agent: u8, line: LineAddress) {
        if self.agents[usize::from(agent)].writes.contains_key(&line) {
            return;
        }
        let Some(copy) = self.agents[usize::from(agent)].copies.remove(&line) else { return };
        if copy.is_dirty {
            self.send_write(agent, message(Opcode::WriteEvicted, line, copy.version));
        }
    }

    fn flush(&mut self, agent: u8, line: LineAddress, keep: bool) {
        let newest = self.newest(line);
        let own = &mut self.agents[usize::from(agent)];
        if own.writes.contains_key(&line) || own.flushes.contains_key(&line) {
            return;
        }
        let copy = own.copies.get(&line).copied();
        if !keep {
            own.copies.remove(&line);
        }
        match copy {
            Some(copy) if copy.is_dirty => {
                if let Some(kept) = own.copies.get_mut(&line) {
                    kept.is_dirty = false;
                }
                let opcode = if keep { Opcode::WriteCleaned } else { Opcode::WriteFlushed };
                self.send_write(agent, message(opcode, line, copy.version));
            }
            _ => {
                own.flushes.insert(line, newest);
                let opcode = if keep { Opcode::CleanLine } else { Opcode::FlushLine };
                let request = Message { cause: Cause::Flush, ..message(opcode, line, Version(0)) };
                self.post(Some(AgentId(agent)), None, request);
            }
        }
    }

    /// A store around the caches: of a line that the agent does not have.
    fn write_around(&mut self, agent: u8, line: LineAddress) {
        let has_copy = self.agents[usize::from(agent)].copies.contains_key(&line);
        if !self.is_free(agent, line) || has_copy {
            return;
        }
        let (mask, cause) = (ByteMask(0xff), Cause::NonTemporalStore);
        self.send_write(agent, Message { mask, cause, ..message(Opcode::WriteAroundPtl, line, Version(0)) });
    }

    fn send_write(&mut self, agent: u8, message: Message) {
        self.agents[usize::from(agent)].writes.insert(message.line, message.version);
        self.post(Some(AgentId(agent)), None, message);
    }

    /// Delivers the oldest message of a channel.
    fn deliver(&mut self, which: usize) {
        let mut channels: Vec<Channel> =
            self.channels.iter().filter(|(_, queue)| !queue.is_empty()).map(|(channel, _)| *channel).collect();
        channels.sort_unstable();
        if channels.is_empty() {
            return;
        }
        let channel = channels[which % channels.len()];
        let message = self.channels.get_mut(&channel).expect("it is listed").pop_front().expect("it is not empty");
        match channel {
            (Some(agent), None, _) => self.at_home(agent, message),
            (None, Some(agent), _) => self.at_agent(agent, message),
            other => unreachable!("{other:?}"),
        }
    }

    fn at_home(&mut self, agent: AgentId, message: Message) {
        let mut actions = Vec::new();
        match message.opcode {
            Opcode::SnoopedNothing | Opcode::SnoopedDirty | Opcode::SnoopedInWriteBack => {
                self.home.snooped(agent, &message, &mut actions);
            }
            Opcode::Acknowledge => self.home.acknowledged(message.line, &mut actions),
            _ => self.home.request(agent, message, &mut actions),
        }
        self.act(actions);
    }

    fn act(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Send(agent, message) => self.post(None, Some(agent), message),
                Action::AskMemory(message) => {
                    if message.cause == Cause::NonTemporalStore {
                        let newest = self.newest(message.line);
                        assert_eq!(message.version, Version(newest.0 + 1), "it comes after all other stores");
                        self.newest.insert(message.line, message.version);
                    }
                    self.memory_requests.entry(message.line).or_default().push_back(message);
                }
            }
        }
    }

    fn at_agent(&mut self, id: AgentId, mut message: Message) {
        let line = message.line;
        let newest = self.newest(line);
        let agent = &mut self.agents[usize::from(id.0)];
        match message.opcode {
            Opcode::SnoopShare | Opcode::SnoopInvalidate => {
                let kind = message.opcode;
                let copy = agent.copies.get(&line).copied();
                let written = agent.writes.get(&line).copied();
                let dirty = copy.filter(|copy| copy.is_dirty).map(|copy| copy.version);
                message.opcode = match (dirty, written) {
                    // A store around caches carries a part of a line only, and is a request of its own.
                    (_, Some(version)) if version != Version(0) => Opcode::SnoopedInWriteBack,
                    (Some(_), _) => Opcode::SnoopedDirty,
                    _ => Opcode::SnoopedNothing,
                };
                message.version = copy.map(|copy| copy.version).max(written).unwrap_or_default();
                match kind {
                    Opcode::SnoopInvalidate => _ = agent.copies.remove(&line),
                    _ => {
                        if let Some(copy) = agent.copies.get_mut(&line) {
                            (copy.may_write, copy.is_dirty) = (false, false);
                        }
                    }
                }
                self.post(Some(id), None, message);
            }
            Opcode::GrantShared
            | Opcode::GrantForwarded
            | Opcode::GrantExclusive
            | Opcode::GrantModified
            | Opcode::GrantUpgrade => {
                let asked = agent.asked.remove(&line).expect("a grant answers a request");
                let may_write = !matches!(message.opcode, Opcode::GrantShared | Opcode::GrantForwarded);
                let is_dirty = message.opcode == Opcode::GrantModified;
                assert!(may_write || asked == Opcode::ReadLine, "who wants to write may");
                if message.opcode == Opcode::GrantUpgrade {
                    // Its copy may have been dropped meanwhile; then it asks again.
                    if let Some(copy) = agent.copies.get_mut(&line) {
                        copy.may_write = true;
                    }
                } else {
                    assert_eq!(message.version, newest, "a copy is the newest version");
                    agent.copies.insert(line, Copy { version: message.version, may_write, is_dirty });
                }
                message.opcode = Opcode::Acknowledge;
                self.post(Some(id), None, message);
            }
            Opcode::Complete => {
                let in_memory = self.memory.get(&line).copied().unwrap_or_default();
                let (flushed, written) = (agent.flushes.get(&line).copied(), agent.writes.get(&line).copied());
                // The two kinds of requests for a line are told apart by their tags elsewhere; here there is one each.
                let of_flush = message.cause == Cause::Flush;
                let promised = if of_flush { flushed } else { written }.expect("a completion answers a request");
                assert!(in_memory >= promised, "{in_memory:?} is in memory, {promised:?} was to be");
                if of_flush {
                    agent.flushes.remove(&line)
                } else {
                    agent.writes.remove(&line)
                };
            }
            other => unreachable!("{other:?}"),
        }
        self.check(line);
    }

    /// Memory answers the oldest request of a line.
    fn answer_from_memory(&mut self, which: usize) {
        let mut lines: Vec<_> =
            self.memory_requests.iter().filter(|(_, queue)| !queue.is_empty()).map(|(line, _)| *line).collect();
        lines.sort_unstable();
        if lines.is_empty() {
            return;
        }
        let line = lines[which % lines.len()];
        let request = self.memory_requests.get_mut(&line).expect("it is listed").pop_front().expect("it is not empty");
        let memory = self.memory.entry(line).or_default();
        if request.is_write() {
            assert!(request.version >= *memory, "memory never goes back");
            *memory = request.version;
        }
        let answer = request.answer(*memory);
        let mut actions = Vec::new();
        self.home.memory_answered(answer, &mut actions);
        self.act(actions);
    }

    /// At most one may write, and then nobody else has a copy that it could read. A clean copy that may be written is
    /// in memory.
    fn check(&self, line: LineAddress) {
        for agent in &self.agents {
            let copy = agent.copies.get(&line).filter(|copy| copy.may_write && !copy.is_dirty);
            if let Some(copy) = copy.filter(|_| !agent.writes.contains_key(&line)) {
                assert_eq!(Some(copy.version), self.memory.get(&line).copied().or(Some(Version(0))), "{copy:?}");
            }
        }
        let copies: Vec<Copy> = self.agents.iter().filter_map(|agent| agent.copies.get(&line).copied()).collect();
        if copies.iter().any(|copy| copy.may_write) {
            assert_eq!(copies.len(), 1, "{copies:?}");
        }
    }

    /// Delivers everything.
    fn settle(&mut self) {
        for _ in 0..10_000 {
            if self.channels.values().all(VecDeque::is_empty) && self.memory_requests.values().all(VecDeque::is_empty) {
                return;
            }
            self.deliver(0);
            self.answer_from_memory(0);
        }
        panic!("it does not come to rest");
    }
}

/// Of the memory at agent 0.
fn with_memory_directory() -> HomeAgent {
    HomeAgent::with_memory_directory(MemoryDirectory::new(AgentId(0), LineAddress(PM_BASE_LINE.0 + LINES)))
}

#[test]
fn memory_is_written_when_another_socket_gets_a_line_first_and_after_each_write_back() {
    let mut world = World { home: with_memory_directory(), ..World::default() };
    let directory_writes = |world: &mut World, steps: &[Step]| {
        steps.iter().for_each(|&step| world.step(step));
        world.settle();
        world.home.counters().directory_writes
    };
    let line = 0;
    let read_by = |agent| Step::Read { agent, line };
    assert_eq!(directory_writes(&mut world, &[read_by(0)]), 0, "its own socket's");
    assert_eq!(directory_writes(&mut world, &[read_by(1)]), 1);
    assert_eq!(directory_writes(&mut world, &[read_by(2)]), 1, "memory knows of others");
    assert_eq!(directory_writes(&mut world, &[Step::Own { agent: 1, line }]), 1);
    assert_eq!(directory_writes(&mut world, &[Step::Store { agent: 1, line }, Step::Evict { agent: 1, line }]), 1);
    assert_eq!(directory_writes(&mut world, &[Step::Own { agent: 2, line }]), 2, "what was written back says nobody");
    assert_eq!(directory_writes(&mut world, &[Step::Own { agent: 1, line }]), 2);
    assert_eq!(HomeAgent::default().counters().directory_writes, 0);
}

proptest! {
    #[test]
    fn whatever_agents_do_and_in_whatever_order_messages_come_all_see_the_newest_version(
        steps in vec(step(), 1..300),
        memory_directory: bool,
    ) {
        let mut world = World::default();
        if memory_directory {
            world.home = with_memory_directory();
        }
        for step in steps {
            world.step(step);
        }
        world.settle();
        prop_assert!(world.home.is_idle());
        for agent in &world.agents {
            prop_assert!(agent.asked.is_empty() && agent.writes.is_empty() && agent.flushes.is_empty());
        }
        for number in 0..LINES {
            let line = line(number);
            let held = world.agents.iter().filter_map(|agent| agent.copies.get(&line)).map(|copy| copy.version);
            let memory = world.memory.get(&line).copied().unwrap_or_default();
            prop_assert_eq!(held.fold(memory, Version::max), world.newest(line));
        }
    }
}
