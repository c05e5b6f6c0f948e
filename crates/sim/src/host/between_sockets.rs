//! What lies between the sockets of a host: the links, and what waits for a write of its own socket to be complete.
//!
//! Port 0 of a host leads to its bridge. Where there are several sockets, each has two ports that are wired to each
//! other: what leaves the caches in a cycle to come arrives at the second one then. Two ports more for each pair of
//! sockets are the ends of the link between them.

use super::BRIDGE;
use super::Host;
use crate::home_agent::{Action, AgentId};
use crate::host_bridge::write_order::WriteOrder;
use fencepost_kernel::line::LineAddress;
use fencepost_kernel::link::{LinkConfig, Transmitter};
use fencepost_kernel::message::{Message, MessageClass, Opcode, Stage};
use fencepost_kernel::stats::StatsNode;
use fencepost_kernel::time::{Duration, Time};
use fencepost_kernel::trace::Place;
use fencepost_kernel::{Context, PortId};

/// The sockets of a host that has several.
#[derive(Clone, Debug)]
pub struct SeveralSockets {
    /// Where the memory of each socket ends; what lies behind all belongs to the first socket.
    pub memory_ends: Vec<LineAddress>,
    /// Whether memory keeps beside its lines that another socket may have them.
    pub memory_directory: bool,
    /// How much later than that of its own socket another socket's read leaves for what lies behind the memory of all.
    pub to_ports: Duration,
    /// The link between any two of them.
    pub link: LinkConfig,
}

/// What lies between sockets.
#[derive(Clone)]
pub(super) struct BetweenSockets {
    /// What each socket holds back behind its writes.
    order: Vec<WriteOrder>,
    ends: Vec<LinkEnd>,
    /// Where what lies behind the memory of all sockets begins, and how much later another socket's reads leave for it.
    ports: (LineAddress, Duration),
    /// Empty between events; kept to reuse its memory.
    actions: Vec<Action>,
}

/// What lies where in a host of several sockets: for those who show it.
#[derive(Clone, Debug)]
pub struct SocketPlan {
    /// How many cores each socket has.
    pub cores_each: usize,
    /// The ports by which links leave, with the socket to which each leads.
    pub links: Vec<(PortId, usize)>,
}

/// One end of a link between two sockets.
#[derive(Clone)]
struct LinkEnd {
    socket: usize,
    other: usize,
    transmitter: Transmitter,
}

impl SeveralSockets {
    /// Ports of a host that are wired to each other.
    pub fn wires(&self) -> Vec<(PortId, PortId)> {
        let sockets = self.memory_ends.len();
        let pairs = sockets + sockets * (sockets - 1) / 2;
        (0..pairs as u16).map(|pair| (PortId(1 + 2 * pair), PortId(2 + 2 * pair))).collect()
    }
}

impl BetweenSockets {
    pub fn new(config: &SeveralSockets) -> BetweenSockets {
        let sockets = config.memory_ends.len();
        let pairs = (0..sockets).flat_map(|one| (one + 1..sockets).map(move |other| (one, other)));
        let both_ways = pairs.flat_map(|(one, other)| [(one, other), (other, one)]);
        let end = |(port, (socket, other))| LinkEnd {
            socket,
            other,
            transmitter: Transmitter::new(PortId(port), &config.link),
        };
        BetweenSockets {
            order: vec![WriteOrder::default(); sockets],
            ends: (1 + 2 * sockets as u16..).zip(both_ways).map(end).collect(),
            ports: (*config.memory_ends.last().expect("there are sockets"), config.to_ports),
            actions: Vec::new(),
        }
    }

    /// The port by which what leaves the caches of `socket` goes.
    fn agent_port(socket: usize) -> PortId {
        PortId(1 + 2 * socket as u16)
    }

    /// The end of a link at that port, if it is one.
    fn end_at(&mut self, port: PortId) -> Option<&mut LinkEnd> {
        self.ends.get_mut(port.index().checked_sub(1 + 2 * self.order.len())?)
    }

    /// Sends a message over the link from one socket to another.
    fn send(&mut self, socket: usize, other: usize, message: Message, context: &mut Context<'_>) {
        let end = self.ends.iter_mut().find(|end| (end.socket, end.other) == (socket, other));
        end.expect("any two sockets are linked").transmitter.offer(message, context);
    }

    /// The ports by which links leave, with the socket to which each leads.
    fn links(&self) -> Vec<(PortId, usize)> {
        let first = 1 + 2 * self.order.len() as u16;
        (first..).map(PortId).zip(self.ends.iter().map(|end| end.other)).collect()
    }

    pub fn credit_returned(&mut self, port: PortId, class: MessageClass, context: &mut Context<'_>) {
        let end = self.end_at(port).expect("only links have credits");
        end.transmitter.credit_returned(class, context);
    }

    /// Whether nothing waits behind a write.
    pub fn is_idle(&self) -> bool {
        self.order.iter().all(WriteOrder::is_empty)
    }

    pub fn waiting(&self) -> Vec<String> {
        let held = self.order.iter().enumerate().flat_map(|(socket, order)| {
            let line = move |(line, count): (LineAddress, usize)| {
                format!("{count} requests of socket {socket} wait behind the write to line {:#x}", line.byte())
            };
            order.waiting().into_iter().map(line)
        });
        held.collect()
    }

    pub fn power_fail(&mut self) {
        self.order.fill(WriteOrder::default());
        self.ends.iter_mut().for_each(|end| end.transmitter.power_fail());
    }

    /// What the links that start at `socket` count.
    pub fn stats_of(&self, socket: usize, now: Time) -> impl Iterator<Item = (String, StatsNode)> {
        let ends = self.ends.iter().filter(move |end| end.socket == socket);
        ends.map(move |end| (format!("to_socket{}", end.other), end.transmitter.stats(now)))
    }
}

/// Whether a message of a socket's caches answers a home agent; it asks for something if not.
pub(super) fn is_answer(message: &Message) -> bool {
    matches!(
        message.opcode,
        Opcode::SnoopedNothing | Opcode::SnoopedDirty | Opcode::SnoopedInWriteBack | Opcode::Acknowledge
    )
}

/// Whether it is for the caches of the socket at which it arrives; it is for the home agent if not.
fn is_for_caches(message: &Message) -> bool {
    matches!(
        message.opcode,
        Opcode::SnoopShare
            | Opcode::SnoopInvalidate
            | Opcode::GrantShared
            | Opcode::GrantForwarded
            | Opcode::GrantExclusive
            | Opcode::GrantModified
            | Opcode::GrantUpgrade
            | Opcode::Complete
    )
}

impl Host {
    /// What lies where, if there are several sockets.
    pub fn socket_plan(&self) -> Option<SocketPlan> {
        let between = self.socket.between.as_ref()?;
        let cores_each = self.socket.cores.len() / self.sockets();
        Some(SocketPlan { cores_each, links: between.links() })
    }

    /// The port by which what leaves the caches of `socket` goes.
    pub(super) fn port_of_socket(&self, socket: usize) -> PortId {
        if self.socket.between.is_some() { BetweenSockets::agent_port(socket) } else { BRIDGE }
    }

    fn between(&mut self) -> &mut BetweenSockets {
        self.socket.between.as_mut().expect("there are several sockets")
    }

    /// A message arrives at a host of several sockets.
    pub(super) fn arrived_between(&mut self, port: PortId, message: Message, context: &mut Context<'_>) {
        if port == BRIDGE {
            let home = self.socket.caches.home_of(message.line);
            let mut actions = std::mem::take(&mut self.between().actions);
            self.socket.caches.home(home).memory_answered(message, &mut actions);
            return self.act_for_home(home, actions, context);
        }
        let Some(end) = self.between().end_at(port) else {
            let socket = (port.index() - 1) / 2;
            return self.left_caches(socket, message, context);
        };
        let (socket, other) = (end.socket, end.other);
        end.transmitter.return_credit(message.class(), context);
        if is_for_caches(&message) {
            self.arrived_at_caches(socket, message, context);
        } else {
            self.arrived_at_home(socket, AgentId(other as u8), message, context);
        }
    }

    /// A message leaves the caches of a socket, unless it has to wait for a write of the same line.
    fn left_caches(&mut self, socket: usize, message: Message, context: &mut Context<'_>) {
        if is_answer(&message) {
            return self.send_home(socket, message, context);
        }
        if let Some(message) = self.between().order[socket].admit(message, context.now()) {
            self.send_home(socket, message, context);
        }
    }

    /// Sends a message of a socket's caches to the home agent of its line.
    fn send_home(&mut self, socket: usize, mut message: Message, context: &mut Context<'_>) {
        message.stack.charge(Stage::HostBridge, context.now());
        context.show(Place::Socket(socket as u16), &message);
        let home = self.socket.caches.home_of(message.line);
        if home == socket {
            self.arrived_at_home(home, AgentId(socket as u8), message, context);
        } else {
            self.between().send(socket, home, message, context);
        }
    }

    fn arrived_at_home(&mut self, socket: usize, agent: AgentId, message: Message, context: &mut Context<'_>) {
        let mut actions = std::mem::take(&mut self.between().actions);
        let home = self.socket.caches.home(socket);
        match message.opcode {
            Opcode::SnoopedNothing | Opcode::SnoopedDirty | Opcode::SnoopedInWriteBack => {
                home.snooped(agent, &message, &mut actions);
            }
            Opcode::Acknowledge => home.acknowledged(message.line, &mut actions),
            _ => home.request(agent, message, &mut actions),
        }
        self.act_for_home(socket, actions, context);
    }

    /// Does what the home agent at a socket wants done.
    fn act_for_home(&mut self, socket: usize, mut actions: Vec<Action>, context: &mut Context<'_>) {
        let now = context.now();
        for action in actions.drain(..) {
            match action {
                Action::AskMemory(mut message) => {
                    let departs = now + self.way_to_memory(socket, &message);
                    message.stack.charge(Stage::HostBridge, departs);
                    context.show(Place::Socket(socket as u16), &message);
                    context.send(BRIDGE, message, departs);
                }
                Action::Send(agent, mut message) => {
                    message.stack.charge(Stage::HostBridge, now);
                    context.show(Place::Socket(socket as u16), &message);
                    let to = usize::from(agent.0);
                    if to == socket {
                        self.arrived_at_caches(to, message, context);
                    } else {
                        self.between().send(socket, to, message, context);
                    }
                }
            }
        }
        self.between().actions = actions;
    }

    /// How long a home agent's message takes before it leaves for memory. Writes of a line go on while another request
    /// for it is served, so only reads, behind which the line is blocked, may take longer than others.
    fn way_to_memory(&mut self, socket: usize, message: &Message) -> Duration {
        let (begin, later) = self.between().ports;
        if message.is_write() || message.line < begin || later == Duration::ZERO {
            return Duration::ZERO;
        }
        let served = self.socket.caches.home(socket).served(message.line);
        if served == Some(AgentId(socket as u8)) { Duration::ZERO } else { later }
    }

    /// A home agent's message arrives at the caches of a socket.
    fn arrived_at_caches(&mut self, socket: usize, message: Message, context: &mut Context<'_>) {
        let now = self.cycle(context.now());
        match message.opcode {
            Opcode::SnoopShare | Opcode::SnoopInvalidate => self.socket.caches.of_socket(socket).snoop(message, now),
            Opcode::Complete => {
                if self.socket.caches.of_socket(socket).has_carried_data(&message) {
                    for held in self.between().order[socket].finished(message.line) {
                        self.send_home(socket, held.message, context);
                    }
                }
                self.write_completed(socket, &message, now, context);
            }
            _ => self.data_arrived(socket, &message, now, context),
        }
    }
}
