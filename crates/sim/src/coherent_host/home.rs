//! The home agent at work: it serves the requests of a line one after the other, and reads and writes memory for them.

use std::collections::VecDeque;

use super::CoherentHost;
use super::cores::{CoreAccess, Socket, Step};
use crate::device::type2::device_memory::Ask;
use crate::device::type2::host_side::{Access, LastLevel, Line, Outcome, Output, Requester};
use crate::device::type2::messages::{Pulled, Request, Response};
use crate::device::type2::wire::{self, Trail};
use crate::device::type2::{DEVICES_MAX, Rules};
use fencepost_kernel::Context;
use fencepost_kernel::line::{ByteMask, LineAddress, Version};
use fencepost_kernel::message::{Cause, Flow, Message, Opcode, Stage, Tag};
use fencepost_kernel::stats::StatsNode;
use fencepost_kernel::time::Time;
use fencepost_kernel::trace::Place;

const RULES: &Rules = &Rules::SOUND;

/// What the state machine has of a line.
pub type State = Line<Version, DEVICES_MAX, { Socket::COUNT }>;

/// A request that waits for its turn, or is served.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub requester: Requester,
    /// What the core does, if it is a core.
    pub access: Option<CoreAccess>,
    pub trail: Trail,
}

impl Pending {
    pub fn of_core(socket: Socket, access: CoreAccess, trail: Trail) -> Pending {
        Pending { requester: Requester::Core(socket as usize, access.access()), access: Some(access), trail }
    }

    /// Whether it is over only when memory has what it wrote: a write past the caches, or a flush.
    fn waits_for_write(&self) -> bool {
        match self.requester {
            Requester::Device(_, request) => request == Request::CLFlush || request.writes().is_some(),
            Requester::Core(_, access) => matches!(access, Access::WriteAround | Access::Flush),
        }
    }

    /// Whether its answer brings data, wherever they are.
    fn takes_data(&self) -> bool {
        match self.requester {
            Requester::Device(_, request) => request.reads(),
            Requester::Core(_, access) => matches!(access, Access::Load | Access::Store),
        }
    }
}

/// What is to be sent when memory has answered.
#[derive(Clone, Debug)]
enum Held {
    /// The data of a read of a device.
    Data(usize, Version),
    /// The completion of a write of a device.
    Response(usize, Response),
    /// That of a core.
    Core,
}

/// A line at the home agent.
#[derive(Clone, Debug)]
pub(super) struct Home {
    pub line: State,
    queue: VecDeque<Pending>,
    /// What is being served.
    served: Option<Pending>,
    /// Whether a snoop has brought its data.
    is_brought: bool,
    held: Option<Held>,
}

impl Default for Home {
    fn default() -> Self {
        Home { line: State::new(Version(0)), queue: VecDeque::new(), served: None, is_brought: false, held: None }
    }
}

impl Home {
    pub fn is_idle(&self) -> bool {
        self.served.is_none() && self.queue.is_empty()
    }

    pub fn describe(&self) -> String {
        let served = self.served.as_ref().map(|served| served.requester);
        let waits = if self.held.is_some() { "for memory".to_owned() } else { format!("{:?}", self.line.service) };
        format!("{served:?} is served and waits {waits}; {} requests wait", self.queue.len())
    }
}

/// What a home agent counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HomeStats {
    requests: u64,
    queued: u64,
    hits: u64,
    snoops: u64,
    memory_reads: u64,
    memory_writes: u64,
    /// Messages to devices' memory.
    pub remote_requests: u64,
    /// Snoops of devices that crossed a request for their line.
    pub conflicts: u64,
    pub writes_under_way: u64,
}

impl HomeStats {
    pub fn to_nodes(self) -> Vec<(String, StatsNode)> {
        let counters = [
            ("requests", self.requests),
            ("queued", self.queued),
            ("hits", self.hits),
            ("snoops", self.snoops),
            ("memory_reads", self.memory_reads),
            ("memory_writes", self.memory_writes),
            ("remote_requests", self.remote_requests),
            ("conflicts", self.conflicts),
        ];
        counters.map(|(name, count)| (name.to_owned(), StatsNode::Counter(count))).into()
    }
}

/// What a write now makes of its line: whoever has the line writes it later than whoever had it before.
pub(super) fn written_at(now: Time) -> Version {
    Version(now.as_ps() / 1000)
}

/// What comes to the state machine of a line.
enum Comes {
    Request(Requester),
    Message(usize, Message),
}

impl CoherentHost {
    /// A message of a device has come.
    pub(super) fn device_says(&mut self, mut message: Message, context: &mut Context<'_>) {
        let device = self.number_of(&message);
        let now = context.now();
        let Some(request) = wire::request(message.opcode) else {
            return self.go_on(message.line, Comes::Message(device, message), context);
        };
        let at = now + self.times.last_level;
        message.stack.charge(Stage::Cache, at);
        context.show(Place::Anywhere, &message);
        if self.is_remote(message.line) {
            let ask = if request == Request::RdShared { Ask::Share } else { Ask::Own };
            return self.steps.at(at, Step::DeviceAsks(ask, message), 0, context);
        }
        let requester = Requester::Device(device, request);
        let pending = Pending { requester, access: None, trail: Trail::of(&message) };
        self.steps.at(at, Step::LookedUp(message.line, pending), 0, context);
    }

    /// A request has been looked up; it is served when its line is free.
    pub(super) fn looked_up(&mut self, line: LineAddress, pending: Pending, context: &mut Context<'_>) {
        self.stats.requests += 1;
        let home = self.homes.entry(line).or_default();
        if home.served.is_some() {
            self.stats.queued += 1;
            home.queue.push_back(pending);
            return;
        }
        self.serve(line, pending, context);
    }

    fn serve(&mut self, line: LineAddress, mut pending: Pending, context: &mut Context<'_>) {
        pending.trail.stack.charge(Stage::Cache, context.now());
        let home = self.homes.entry(line).or_default();
        let requester = pending.requester;
        if let Requester::Core(core, access) = requester {
            if !home.line.may_access(core, access) {
                // An access before it has brought the line.
                if access == Access::Store {
                    home.line.store(core, written_at(context.now()));
                }
                return self.answer_core(line, pending, context);
            }
            home.line.cores[core].access = Some(access);
        }
        home.is_brought = false;
        home.served = Some(pending);
        self.go_on(line, Comes::Request(requester), context);
    }

    /// Gives the state machine of a line what comes, and does what it says.
    fn go_on(&mut self, line: LineAddress, comes: Comes, context: &mut Context<'_>) {
        let now = context.now();
        let written = written_at(now);
        let home = self.homes.get_mut(&line).expect("a line is known from its first request on");
        let before = home.line;
        let mut outputs = Vec::new();
        let mut send = |output| outputs.push(output);
        let state = &mut home.line;
        let outcome = match &comes {
            Comes::Request(requester) => state.serve(RULES, *requester, false, written, &mut send),
            Comes::Message(device, message) => match (message.opcode, wire::snoop_response(message.opcode)) {
                (_, Some(response)) => state.take_snoop_response(RULES, *device, response, written, &mut send),
                (Opcode::SnoopedData, _) => {
                    home.is_brought = true;
                    state.take_snooped_data(RULES, *device, message.version, written, &mut send)
                }
                (opcode, _) => {
                    let pulled = Pulled { data: message.version, is_bogus: opcode == Opcode::BogusData };
                    state.take_pulled(RULES, *device, pulled, &mut send)
                }
            },
        };
        if let Comes::Message(_, message) = &comes {
            let served = home.served.as_mut().expect("what a device answers is served");
            served.trail = Trail::of(message);
            served.trail.stack.charge(Stage::Cache, now);
        }
        let is_done = home.line.service.is_none();
        let served = home.served.clone().expect("something is served");
        let has_copy = before.last_level != LastLevel::Nothing
            || before.cores.iter().any(|core| core.state.is_owner())
            || home.is_brought;
        let memory = home.line.memory;
        self.stats.hits += u64::from(is_done && served.takes_data() && has_copy);
        match outcome {
            Outcome::Nothing | Outcome::Wrote(_) => {}
            Outcome::HoldsNothing(device) => self.homes.values_mut().for_each(|home| home.line.forget(RULES, device)),
            Outcome::Unexpected => unreachable!("line {:#x}: nothing waits for what has come", line.byte()),
        }
        let writes_memory = memory != before.memory;
        // Who writes past the caches, or flushes, waits until memory has it.
        let waits_for_write = is_done && writes_memory && served.waits_for_write();
        if writes_memory {
            self.write_memory(line, memory, waits_for_write.then_some(&served.trail), context);
        }
        let reads_memory = is_done && served.takes_data() && !has_copy;
        for output in outputs {
            match output {
                Output::Snoop(device, snoop) => {
                    self.stats.snoops += 1;
                    self.send_to_device(device, wire::of_snoop(snoop), line, Version(0), &served.trail, context);
                }
                Output::Response(device, response) if waits_for_write => {
                    self.homes.get_mut(&line).expect("it is served").held = Some(Held::Response(device, response));
                }
                Output::Response(device, response) => {
                    self.send_to_device(device, wire::of_response(response), line, Version(0), &served.trail, context);
                }
                Output::Data(device, version) if reads_memory => {
                    self.homes.get_mut(&line).expect("it is served").held = Some(Held::Data(device, version));
                }
                Output::Data(device, version) => {
                    self.send_to_device(device, Opcode::ReadData, line, version, &served.trail, context);
                }
            }
        }
        if reads_memory {
            self.stats.memory_reads += 1;
            if let Requester::Core(..) = served.requester {
                self.homes.get_mut(&line).expect("it is served").held = Some(Held::Core);
            }
            let read = served.trail.message(Opcode::MemRd, line, Version(0));
            self.send_out(read, context);
        } else if waits_for_write {
            self.homes.get_mut(&line).expect("it is served").held.get_or_insert(Held::Core);
        } else if is_done {
            self.done(line, context);
        }
    }

    /// Memory has answered a write; somebody may wait for it.
    pub(super) fn memory_written(&mut self, message: Message, context: &mut Context<'_>) {
        self.stats.writes_under_way -= 1;
        if message.cause == Cause::NonTemporalStore {
            self.memory_answered(message, context);
        }
    }

    /// Memory has answered: what waited for it goes out.
    pub(super) fn memory_answered(&mut self, message: Message, context: &mut Context<'_>) {
        let line = message.line;
        let home = self.homes.get_mut(&line).expect("a line that is read is served");
        debug_assert_eq!(message.version, home.line.memory, "memory has another version of {line:?} than it was given");
        let trail = Trail::of(&message);
        home.served.as_mut().expect("it is served").trail = trail.clone();
        match home.held.take().expect("a read was held back") {
            Held::Data(device, version) => {
                self.send_to_device(device, Opcode::ReadData, line, version, &trail, context);
            }
            Held::Response(device, response) => {
                self.send_to_device(device, wire::of_response(response), line, Version(0), &trail, context);
            }
            Held::Core => {}
        }
        self.done(line, context);
    }

    /// A request is served: a core is answered, and the next one has its turn.
    fn done(&mut self, line: LineAddress, context: &mut Context<'_>) {
        let home = self.homes.get_mut(&line).expect("it was served");
        let served = home.served.take().expect("it was served");
        if matches!(served.requester, Requester::Core(..)) {
            self.answer_core(line, served, context);
        }
        // One that needs nothing is done at once, and leaves the line to the next.
        while let Some(home) = self.homes.get_mut(&line)
            && home.served.is_none()
            && let Some(next) = home.queue.pop_front()
        {
            self.serve(line, next, context);
        }
    }

    fn send_to_device(
        &mut self,
        device: usize,
        opcode: Opcode,
        line: LineAddress,
        version: Version,
        trail: &Trail,
        context: &mut Context<'_>,
    ) {
        let mut message = trail.message(opcode, line, version);
        message.flow = Flow(u32::from(self.devices[device].0));
        self.send_out(message, context);
    }

    /// Writes memory; `waits` is of a request that waits for it.
    fn write_memory(&mut self, line: LineAddress, version: Version, waits: Option<&Trail>, context: &mut Context<'_>) {
        self.stats.memory_writes += 1;
        self.stats.writes_under_way += 1;
        let cause = if waits.is_some() { Cause::NonTemporalStore } else { Cause::Writeback };
        let mut write = Message::write(line, Tag(0), cause, version, ByteMask::FULL, context.now());
        if let Some(trail) = waits {
            (write.stack, write.request) = (trail.stack.clone(), trail.request);
        }
        self.send_out(write, context);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_writes_later_has_the_newer_version_for_more_than_four_seconds() {
        let at = |ns: u64| written_at(Time::from_ps(1000 * ns));
        assert!(at(u64::from(u32::MAX) + 2) > at(u32::MAX.into()));
    }
}
