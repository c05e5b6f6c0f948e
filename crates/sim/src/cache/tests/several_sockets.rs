//! 6xx: two sockets of two cores each do whatever they may, with a home agent between them, and channels that deliver
//! in any order that their classes allow.
//!
//! The reference is as in 5xx: a number for each line.

use std::collections::VecDeque;

use proptest::collection::vec;
use proptest::prelude::*;

use super::random::{LINES, SHAPES, levels, line};
use super::*;
use crate::home_agent::{Action as HomeAction, AgentId, HomeAgent};
use crate::host_bridge::write_order::WriteOrder;
use fencepost_kernel::message::MessageClass;

const SOCKETS: usize = 2;
const CORES: usize = 2;

#[derive(Clone, Copy, Debug)]
enum Action {
    Load {
        at: Place,
        line: u64,
    },
    Store {
        at: Place,
        line: u64,
    },
    Fetch {
        at: Place,
        line: u64,
    },
    Walk {
        at: Place,
        line: u64,
    },
    Flush {
        at: Place,
        line: u64,
        keep: bool,
    },
    WriteAround {
        at: Place,
        line: u64,
        mask: u64,
    },
    /// The next message of one of the channels arrives.
    Deliver {
        which: usize,
    },
    /// Memory answers the oldest request of one of the lines.
    Answer {
        which: usize,
    },
}

/// A core of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Place {
    socket: usize,
    core: usize,
}

fn action() -> impl Strategy<Value = Action> {
    let place = ((0..SOCKETS, 0..CORES).prop_map(|(socket, core)| Place { socket, core }), 0..LINES);
    prop_oneof![
        3 => place.clone().prop_map(|(at, line)| Action::Load { at, line }),
        4 => place.clone().prop_map(|(at, line)| Action::Store { at, line }),
        1 => place.clone().prop_map(|(at, line)| Action::Fetch { at, line }),
        1 => place.clone().prop_map(|(at, line)| Action::Walk { at, line }),
        2 => (place.clone(), any::<bool>()).prop_map(|((at, line), keep)| Action::Flush { at, line, keep }),
        1 => (place, prop_oneof![Just(u64::MAX), 1..u64::MAX])
            .prop_map(|((at, line), mask)| Action::WriteAround { at, line, mask }),
        16 => any::<usize>().prop_map(|which| Action::Deliver { which }),
        5 => any::<usize>().prop_map(|which| Action::Answer { which }),
    ]
}

/// Where messages are under way: from or to the caches of a socket, and in which class. What leaves a socket waits in
/// a channel without a class first: it leaves in the order of its cycles.
type Channel = (usize, Direction, Option<MessageClass>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Direction {
    ToHome,
    ToCaches,
}

/// Caches of a socket, and what waits in front of their agent.
struct Socket {
    caches: Hierarchy,
    order: WriteOrder,
    /// What each core waits for.
    awaited: Vec<(usize, LineAddress, Side, Want)>,
}

struct World {
    sockets: Vec<Socket>,
    home: HomeAgent,
    channels: HashMap<Channel, VecDeque<Pending>>,
    /// Requests to memory, by line, in order.
    asked: HashMap<LineAddress, VecDeque<Message>>,
    memory: HashMap<LineAddress, u64>,
    now: u64,
    newest: HashMap<LineAddress, u64>,
    /// When each version was stored, by a core that computed ahead.
    stored: HashMap<(LineAddress, u64), u64>,
    /// Flushes that are not acknowledged, with what must be in memory when they are.
    promised: HashMap<(Place, u32), (LineAddress, u64)>,
    /// Non-temporal stores that are not acknowledged.
    around: HashMap<(Place, u32), LineAddress>,
    next_id: u32,
}

impl World {
    fn new(shape: usize, cleaned: Option<State>) -> World {
        let config = HierarchyConfig { is_one_of_several: true, cleaned, ..hierarchy(CORES, &levels(shape)) };
        let socket = || Socket { caches: Hierarchy::new(&config), order: WriteOrder::default(), awaited: Vec::new() };
        World {
            sockets: (0..SOCKETS).map(|_| socket()).collect(),
            home: HomeAgent::default(),
            channels: HashMap::new(),
            asked: HashMap::new(),
            memory: HashMap::new(),
            now: 0,
            newest: HashMap::new(),
            stored: HashMap::new(),
            promised: HashMap::new(),
            around: HashMap::new(),
            next_id: 0,
        }
    }

    fn newest(&self, line: LineAddress) -> u64 {
        self.newest.get(&line).copied().unwrap_or_default()
    }

    fn in_memory(&self, line: LineAddress) -> u64 {
        self.memory.get(&line).copied().unwrap_or_default()
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Load { at, line: number } => self.load(at, line(number)),
            Action::Store { at, line: number } => self.store(at, line(number)),
            Action::Fetch { at, line: number } => self.ask(at, line(number), Want::Read, Side::Instruction),
            Action::Walk { at, line: number } => self.ask(at, line(number), Want::Read, Side::Walker),
            Action::Flush { at, line: number, keep } => self.flush(at, line(number), keep),
            Action::WriteAround { at, line: number, mask } => self.write_around(at, line(number), ByteMask(mask)),
            Action::Deliver { which } => self.deliver(which),
            Action::Answer { which } => self.answer(which),
        }
    }

    fn load(&mut self, at: Place, line: LineAddress) {
        let newest = self.newest(line);
        let l1d = &mut self.sockets[at.socket].caches.l1d[at.core];
        match l1d.find_and_touch(line) {
            Some(index) => assert_eq!(l1d.line(index).version.0, newest, "a load sees the last store"),
            None => self.ask(at, line, Want::Read, Side::Data),
        }
    }

    fn state(&self, at: Place, line: LineAddress) -> Option<State> {
        self.sockets[at.socket].caches.l1d[at.core].get(line).map(|copy| copy.state)
    }

    fn store(&mut self, at: Place, line: LineAddress) {
        if self.state(at, line).is_none_or(|state| state == State::Shared) {
            return self.ask(at, line, Want::Own, Side::Data);
        }
        let newest = self.newest(line);
        let l1d = &mut self.sockets[at.socket].caches.l1d[at.core];
        let index = l1d.find_and_touch(line).expect("it has a state");
        let copy = l1d.line_mut(index);
        assert_eq!(copy.version.0, newest, "a store comes after the last one");
        copy.state = State::Modified;
        copy.version.0 += 1;
        copy.stored = copy.settled().max(self.now + 17 * copy.version.0 % 50);
        self.stored.insert((line, copy.version.0), copy.stored);
        self.newest.insert(line, newest + 1);
    }

    fn ask(&mut self, at: Place, line: LineAddress, want: Want, side: Side) {
        let now = self.now;
        let Socket { caches, awaited, .. } = &mut self.sockets[at.socket];
        let core = at.core;
        let waits_already = awaited.iter().any(|waits| (waits.0, waits.1, waits.2) == (core, line, side));
        if waits_already || side == Side::Instruction && caches.l1i[core].find_and_touch(line).is_some() {
            return;
        }
        let request = Request { core, line, want, side, cause: Cause::DemandRead, issued: now };
        match caches.request(request, now) {
            Outcome::Pending => awaited.push((core, line, side, want)),
            Outcome::Ready(ready, _) => {
                assert!(ready > now);
                self.served(at, line, want, side);
            }
        }
        self.depart(at.socket);
    }

    fn served(&mut self, at: Place, line: LineAddress, want: Want, side: Side) {
        let owns = self.state(at, line).is_some_and(|state| state != State::Shared);
        if side == Side::Data && want == Want::Own && owns {
            self.store(at, line);
        }
    }

    fn flush(&mut self, at: Place, line: LineAddress, keep: bool) {
        let must_be_there = self.newest(line);
        let flush = if keep { Flush::CLWB } else { Flush::CLFLUSHOPT };
        self.next_id += 1;
        let by = Requester { core: at.core, id: self.next_id, issued: self.now };
        match self.sockets[at.socket].caches.flush(by, line, flush, self.now) {
            Some(_) => assert!(self.in_memory(line) >= must_be_there, "a flush is done before its line is safe"),
            None => _ = self.promised.insert((at, self.next_id), (line, must_be_there)),
        }
        self.depart(at.socket);
    }

    fn write_around(&mut self, at: Place, line: LineAddress, mask: ByteMask) {
        self.next_id += 1;
        let by = Requester { core: at.core, id: self.next_id, issued: self.now };
        self.around.insert((at, self.next_id), line);
        self.sockets[at.socket].caches.write_around(by, line, mask, self.now);
        self.depart(at.socket);
    }

    /// Takes what leaves the caches of a socket: in the order of its cycles.
    fn depart(&mut self, socket: usize) {
        let mut departures = Vec::new();
        self.sockets[socket].caches.take_departures(&mut departures);
        let channel = self.channels.entry((socket, Direction::ToHome, None)).or_default();
        channel.extend(
            departures.into_iter().map(|departure| Pending { cycle: departure.cycle, message: departure.message }),
        );
        channel.make_contiguous().sort_by_key(|pending| pending.cycle);
    }

    fn post(&mut self, socket: usize, direction: Direction, message: Message) {
        let channel = (socket, direction, Some(message.class()));
        self.channels.entry(channel).or_default().push_back(Pending { cycle: self.now, message });
    }

    fn deliver(&mut self, which: usize) {
        let is_there = |(_, queue): &(&Channel, &VecDeque<Pending>)| !queue.is_empty();
        let mut channels: Vec<Channel> = self.channels.iter().filter(is_there).map(|(channel, _)| *channel).collect();
        channels.sort_unstable();
        if channels.is_empty() {
            return;
        }
        let channel = channels[which % channels.len()];
        let queue = self.channels.get_mut(&channel).expect("it is listed");
        let Pending { cycle, message } = queue.pop_front().expect("it is not empty");
        self.now = self.now.max(cycle);
        match channel {
            (socket, Direction::ToHome, None) => self.leaves(socket, message),
            (socket, Direction::ToHome, _) => self.at_home(AgentId(socket as u8), message),
            (socket, Direction::ToCaches, _) => self.at_caches(socket, message),
        }
    }

    /// A message leaves a socket, unless it has to wait for a write.
    fn leaves(&mut self, socket: usize, message: Message) {
        let is_request = !matches!(
            message.opcode,
            Opcode::SnoopedNothing | Opcode::SnoopedDirty | Opcode::SnoopedInWriteBack | Opcode::Acknowledge
        );
        let goes = if is_request { self.sockets[socket].order.admit(message, Time::ZERO) } else { Some(message) };
        if let Some(message) = goes {
            self.post(socket, Direction::ToHome, message);
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
        self.act_for_home(actions);
    }

    fn act_for_home(&mut self, actions: Vec<HomeAction>) {
        for action in actions {
            match action {
                HomeAction::Send(agent, message) => {
                    self.post(usize::from(agent.0), Direction::ToCaches, message);
                }
                HomeAction::AskMemory(message) => {
                    if message.cause == Cause::NonTemporalStore {
                        let newest = self.newest(message.line);
                        assert_eq!(message.version.0, newest + 1, "it comes after all other stores");
                        self.newest.insert(message.line, message.version.0);
                    }
                    self.asked.entry(message.line).or_default().push_back(message);
                }
            }
        }
    }

    /// Memory answers the oldest request of a line; the host bridge lets nothing overtake a write of it.
    fn answer(&mut self, which: usize) {
        let mut lines: Vec<_> =
            self.asked.iter().filter(|(_, queue)| !queue.is_empty()).map(|(line, _)| *line).collect();
        lines.sort_unstable();
        if lines.is_empty() {
            return;
        }
        let line = lines[which % lines.len()];
        let request = self.asked.get_mut(&line).expect("it is listed").pop_front().expect("it is not empty");
        let held = self.memory.entry(line).or_default();
        if request.is_write() {
            assert!(request.version.0 >= *held, "memory never goes back");
            *held = request.version.0;
        }
        let answer = request.answer(Version(*held));
        let mut actions = Vec::new();
        self.home.memory_answered(answer, &mut actions);
        self.act_for_home(actions);
    }

    fn at_caches(&mut self, socket: usize, message: Message) {
        match message.opcode {
            Opcode::SnoopShare | Opcode::SnoopInvalidate => {
                self.sockets[socket].caches.snoop(message, self.now);
            }
            Opcode::GrantShared
            | Opcode::GrantForwarded
            | Opcode::GrantExclusive
            | Opcode::GrantModified
            | Opcode::GrantUpgrade => {
                let mut served = Vec::new();
                self.sockets[socket].caches.data_arrived(&message, self.now, &mut served);
                self.serve(socket, served);
            }
            Opcode::Complete => self.completed(socket, &message),
            other => unreachable!("{other:?}"),
        }
        self.depart(socket);
    }

    fn completed(&mut self, socket: usize, message: &Message) {
        let (mut acknowledged, mut served) = (Vec::new(), Vec::new());
        let at_socket = &mut self.sockets[socket];
        if at_socket.caches.has_carried_data(message) {
            for held in at_socket.order.finished(message.line) {
                self.post(socket, Direction::ToHome, held.message);
            }
        }
        let caches = &mut self.sockets[socket].caches;
        caches.write_completed(message, self.now, &mut acknowledged, &mut served);
        for Acknowledged { by, .. } in acknowledged {
            let key = (Place { socket, core: by.core }, by.id);
            if self.around.remove(&key).is_some() {
                continue;
            }
            let (line, version) = self.promised.remove(&key).expect("each is acknowledged once");
            assert!(self.in_memory(line) >= version, "{line:?} is not safe in version {version}");
        }
        self.serve(socket, served);
    }

    fn serve(&mut self, socket: usize, served: Vec<Served>) {
        for Served { request, ready, .. } in served {
            assert!(ready >= self.now);
            let Request { core, line, want, side, .. } = request;
            self.sockets[socket].awaited.retain(|waits| (waits.0, waits.1, waits.2) != (core, line, side));
            self.served(Place { socket, core }, line, want, side);
        }
    }

    /// Everything that carries a line, with the cycle before which it is not there. What version a non-temporal store
    /// makes its home agent knows.
    fn carriers(&self) -> impl Iterator<Item = (u64, &Message)> {
        let carries = |message: &Message| {
            let is_line = matches!(message.class(), MessageClass::AgentWb | MessageClass::AgentData);
            is_line && message.cause != Cause::NonTemporalStore
        };
        let channels = self.channels.values().flatten();
        channels.map(|pending| (pending.cycle, &pending.message)).filter(move |(_, message)| carries(message))
    }

    fn check(&self) {
        for (cycle, message) in self.carriers() {
            let stored = self.stored.get(&(message.line, message.version.0)).copied().unwrap_or_default();
            assert!(cycle >= stored, "{message:?} leaves at {cycle} and is stored at {stored}");
        }
        for number in 0..LINES {
            self.check_line(line(number));
        }
    }

    fn check_line(&self, line: LineAddress) {
        let newest = self.newest(line);
        let copies: Vec<Vec<Copy>> = self
            .sockets
            .iter()
            .map(|socket| socket.caches.copies().into_iter().filter(|copy| copy.line == line).collect())
            .collect();
        let owners: Vec<usize> = (0..SOCKETS)
            .filter(|&socket| {
                copies[socket].iter().any(|copy| copy.is_last_level && copy.content.state != State::Shared)
            })
            .collect();
        if let Some(&owner) = owners.first() {
            for other in (0..SOCKETS).filter(|&socket| socket != owner) {
                assert!(copies[other].is_empty(), "{line:?} is owned by socket {owner}, and at {other} too");
            }
        }
        for of_line in &copies {
            self.check_socket(line, newest, of_line);
        }
    }

    /// What must hold among the copies of a line in a socket.
    fn check_socket(&self, line: LineAddress, newest: u64, of_line: &[Copy]) {
        let at_cores: Vec<_> = of_line.iter().filter(|copy| copy.core.is_some()).collect();
        for copy in at_cores.iter().filter(|copy| copy.is_first_level_data) {
            assert_eq!(copy.content.version.0, newest, "{copy:?} may be read");
        }
        let last = of_line.iter().find(|copy| copy.is_last_level);
        let owner = at_cores.iter().find(|copy| copy.content.state != State::Shared && !copy.is_code);
        if let Some(owner) = owner {
            let others = at_cores.iter().filter(|copy| copy.core != owner.core).count();
            assert_eq!(others, 0, "{line:?} is owned by core {:?} and elsewhere too", owner.core);
            let last = last.expect("the last level is inclusive");
            assert!(
                last.content.is_owned && last.content.state != State::Shared,
                "{line:?} is owned in {owner:?} alone"
            );
        } else if let Some(last) = last {
            assert_eq!(last.content.version.0, newest, "{last:?} may be read");
        }
    }

    fn settle(&mut self) {
        for _ in 0..20_000 {
            let nothing_under_way = self.channels.values().all(VecDeque::is_empty);
            if nothing_under_way && self.asked.values().all(VecDeque::is_empty) {
                return;
            }
            self.now += 1;
            self.deliver(0);
            self.answer(0);
            self.check();
        }
        panic!("it does not come to rest");
    }

    fn finish(&mut self) {
        self.settle();
        assert!(self.home.is_idle(), "{:?}", self.home.waiting());
        for Socket { caches, order, awaited } in &self.sockets {
            assert!(caches.is_idle() && order.is_empty(), "{:?}", caches.waiting());
            assert!(awaited.is_empty(), "{awaited:?}");
        }
        assert!(self.promised.is_empty() && self.around.is_empty());
        for number in 0..LINES {
            self.flush(Place { socket: number as usize % SOCKETS, core: 0 }, line(number), number % 2 == 0);
            self.settle();
            assert_eq!(self.in_memory(line(number)), self.newest(line(number)));
        }
        assert!(self.promised.is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn c601_between_sockets_no_store_is_lost_none_is_read_late_and_nothing_is_promised_too_early(
        shape in 0..SHAPES,
        cleaned in prop_oneof![Just(Some(State::Exclusive)), Just(Some(State::Shared)), Just(None)],
        actions in vec((0..16u64, action()), 1..400),
    ) {
        let mut world = World::new(shape, cleaned);
        for (pause, action) in actions {
            world.now += pause;
            world.act(action);
            world.check();
        }
        world.finish();
    }
}
