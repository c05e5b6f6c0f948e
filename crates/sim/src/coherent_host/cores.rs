//! Load generators in the place of cores: those of the home agent's own socket, and those of the other one.

use serde::{Deserialize, Serialize};

use super::home::Pending;
use super::{BRIDGE, CoherentHost, LINK_ENDS};
use crate::device::type2::burst::{Burst, Running};
use crate::device::type2::device_memory::Ask;
use crate::device::type2::host_side::{Access, Requester};
use crate::device::type2::messages::CacheState;
use crate::device::type2::wire::Trail;
use fencepost_kernel::line::{LineAddress, Version};
use fencepost_kernel::link::Transmitter;
use fencepost_kernel::message::{Message, Opcode, Stage};
use fencepost_kernel::time::Time;
use fencepost_kernel::{Context, PortId};

/// What a core does to a whole line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CoreAccess {
    /// Loads it.
    Load,
    /// Loads it by a non-temporal load, which of ordinary memory is a load.
    NtLoad,
    /// Stores to it: the core asks to own it, and for its data.
    Store,
    /// Stores to all of it past the caches: done when memory says so.
    NtStore,
    /// Flushes it to memory.
    Flush,
}

impl CoreAccess {
    /// As the home agent sees it.
    pub(super) fn access(self) -> Access {
        match self {
            CoreAccess::Load | CoreAccess::NtLoad => Access::Load,
            CoreAccess::Store => Access::Store,
            CoreAccess::NtStore => Access::WriteAround,
            CoreAccess::Flush => Access::Flush,
        }
    }

    /// What asks for it on the link between sockets, and what answers.
    fn opcodes(self) -> (Opcode, Opcode) {
        match self {
            CoreAccess::Load | CoreAccess::NtLoad => (Opcode::ReadLine, Opcode::GrantShared),
            CoreAccess::Store => (Opcode::OwnLine, Opcode::GrantExclusive),
            CoreAccess::NtStore => (Opcode::WriteAround, Opcode::Complete),
            CoreAccess::Flush => (Opcode::FlushLine, Opcode::Complete),
        }
    }

    /// Whether it is looked up in the core's own caches on its way. Non-temporal stores leave write-combining buffers.
    fn passes_caches(self) -> bool {
        self != CoreAccess::NtStore
    }
}

/// Where cores are, seen from the home agent; also the number of their cache in its state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Socket {
    /// In its own socket.
    Own,
    /// In the other one.
    Other,
}

impl Socket {
    /// How many there are.
    pub const COUNT: usize = 2;
    /// Both.
    pub const ALL: [Socket; Self::COUNT] = [Socket::Own, Socket::Other];
}

/// The cores of a socket.
#[derive(Clone, Debug, Default)]
pub(super) struct Generator {
    pub running: Option<Running<CoreAccess>>,
    next: usize,
    outstanding: u32,
    outstanding_max: u32,
}

/// What happens later.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// A socket's next access may be issued.
    Issue(Socket),
    /// A request has been looked up in the last level.
    LookedUp(LineAddress, Pending),
    /// What a device asks for a line of its own memory has been looked up.
    DeviceAsks(Ask, Message),
    /// A message leaves the caches of the other socket.
    LeavesSocket(Message),
    /// An answer is at a core.
    Answered(Socket, Trail),
}

impl CoherentHost {
    pub(super) fn begin_burst(
        &mut self,
        socket: Socket,
        burst: Burst<CoreAccess>,
        outstanding: u32,
        begin: Time,
        context: &mut Context<'_>,
    ) {
        let generator = &mut self.generators[socket as usize];
        assert!(generator.running.as_ref().is_none_or(Running::is_finished), "one burst after the other");
        let running = Some(Running::new(burst, begin));
        *generator = Generator { running, next: 0, outstanding: 0, outstanding_max: outstanding };
        self.steps.at(begin, Step::Issue(socket), 0, context);
    }

    /// The end of the link between sockets at `port`.
    pub(super) fn link_end(&mut self, port: PortId) -> &mut Transmitter {
        let number = LINK_ENDS.iter().position(|end| *end == port).expect("a port of the link between sockets");
        &mut self.link.as_mut().expect("there is another socket")[number]
    }

    pub(super) fn step(&mut self, context: &mut Context<'_>) {
        match self.steps.take(context.now()) {
            Step::Issue(socket) => self.issue(socket, context),
            Step::LookedUp(line, pending) if self.is_remote(line) => self.remote_looked_up(line, pending, context),
            Step::LookedUp(line, pending) => self.looked_up(line, pending, context),
            Step::DeviceAsks(ask, message) => self.device_asks(ask, message, context),
            Step::LeavesSocket(message) => self.link_end(LINK_ENDS[0]).offer(message, context),
            Step::Answered(socket, trail) => {
                let generator = &mut self.generators[socket as usize];
                let was_full = generator.outstanding == generator.outstanding_max;
                generator.outstanding -= 1;
                generator.running.as_mut().expect("a burst is under way").answered(&trail.stack);
                if was_full {
                    self.issue(socket, context);
                }
            }
        }
    }

    /// Issues the next access of a socket's cores, if there is one and it may be under way.
    fn issue(&mut self, socket: Socket, context: &mut Context<'_>) {
        let now = context.now();
        let generator = &mut self.generators[socket as usize];
        let burst = &generator.running.as_ref().expect("a burst is under way").burst;
        if generator.next == burst.lines.len() || generator.outstanding == generator.outstanding_max {
            return;
        }
        let (access, line) = (burst.kind, burst.lines[generator.next]);
        generator.next += 1;
        generator.outstanding += 1;
        if generator.outstanding < generator.outstanding_max {
            self.steps.at(now + self.times.issue, Step::Issue(socket), 0, context);
        }
        self.go_to_home(socket, access, line, context);
    }

    fn go_to_home(&mut self, socket: Socket, access: CoreAccess, line: LineAddress, context: &mut Context<'_>) {
        let now = context.now();
        let mut trail = Trail::starting(now);
        if self.has_in_cache(socket, access, line, now) {
            #[cfg(test)]
            self.log_access(line, socket as usize, access, &trail);
            let at = now + self.times.private;
            trail.stack.charge(Stage::Cache, at);
            return self.steps.at(at, Step::Answered(socket, trail), 0, context);
        }
        let own_caches = if access.passes_caches() { now + self.times.private } else { now };
        match socket {
            Socket::Own => {
                let at = own_caches + self.times.last_level;
                trail.stack.charge(Stage::Cache, at);
                self.steps.at(at, Step::LookedUp(line, Pending::of_core(socket, access, trail)), 0, context);
            }
            Socket::Other => {
                // The last level of its own socket has no line of another one's memory, and is passed all the same.
                let at = own_caches + self.times.last_level;
                trail.stack.charge(Stage::Cache, at);
                let mut message = trail.message(access.opcodes().0, line, Version(0));
                message.tag.0 = access as u32;
                self.steps.at(at, Step::LeavesSocket(message), 0, context);
            }
        }
    }

    /// Whether a core's own cache has what the access takes; then it is done.
    fn has_in_cache(&mut self, socket: Socket, access: CoreAccess, line: LineAddress, now: Time) -> bool {
        let Some(home) = self.homes.get_mut(&line) else { return false };
        match access.access() {
            Access::Load => home.line.cores[socket as usize].state != CacheState::Invalid,
            Access::Store if home.line.may_store(socket as usize) => {
                home.line.store(socket as usize, super::home::written_at(now));
                true
            }
            _ => false,
        }
    }

    /// A message has crossed the link between sockets.
    pub(super) fn crossed(&mut self, port: PortId, mut message: Message, context: &mut Context<'_>) {
        self.link_end(port).return_credit(message.class(), context);
        let now = context.now();
        if port == LINK_ENDS[0] {
            let at = now + self.times.response;
            message.stack.charge(Stage::Cache, at);
            return self.steps.at(at, Step::Answered(Socket::Other, Trail::of(&message)), 0, context);
        }
        const ACCESSES: [CoreAccess; 5] =
            [CoreAccess::Load, CoreAccess::NtLoad, CoreAccess::Store, CoreAccess::NtStore, CoreAccess::Flush];
        let access = ACCESSES[message.tag.0 as usize];
        let at = now + self.times.last_level;
        message.stack.charge(Stage::Cache, at);
        let pending = Pending::of_core(Socket::Other, access, Trail::of(&message));
        self.steps.at(at, Step::LookedUp(message.line, pending), 0, context);
    }

    /// The home agent has done what a core wanted.
    pub(super) fn answer_core(&mut self, line: LineAddress, pending: Pending, context: &mut Context<'_>) {
        let Pending { requester: Requester::Core(core, _), access: Some(access), mut trail } = pending else {
            unreachable!("a core is answered")
        };
        let now = context.now();
        trail.stack.charge(Stage::Cache, now);
        #[cfg(test)]
        self.log_access(line, core, access, &trail);
        if Socket::ALL[core] == Socket::Own {
            let at = now + self.times.response;
            trail.stack.charge(Stage::Cache, at);
            return self.steps.at(at, Step::Answered(Socket::Own, trail), 0, context);
        }
        let message = trail.message(access.opcodes().1, line, Version(0));
        self.link_end(LINK_ENDS[1]).offer(message, context);
    }

    #[cfg(test)]
    fn log_access(&mut self, line: LineAddress, core: usize, access: CoreAccess, trail: &Trail) {
        let Some(home) = self.homes.get(&line) else { return };
        let (version, read_from) = match access {
            CoreAccess::Load | CoreAccess::NtLoad => (home.line.cores[core].data, Some(trail.stack.start())),
            CoreAccess::Store => (home.line.cores[core].data, None),
            CoreAccess::NtStore => (home.line.memory, None),
            CoreAccess::Flush => return,
        };
        self.log.push(crate::device::type2::burst::Observed { core, line, version, read_from });
    }

    /// Sends a message by the bridge.
    pub(super) fn send_out(&mut self, mut message: Message, context: &mut Context<'_>) {
        let now = context.now();
        message.stack.charge(Stage::Cache, now);
        context.send(BRIDGE, message, now);
    }
}
