//! The engine and the device's own memory: accesses of the load generator, requests of the host, bias.
//!
//! A line is worked on by one access or request after the other; only what the device has asked the host for lets
//! requests of the host go first. The memory itself is reached by a port of its own inside the device.

use std::collections::VecDeque;

use super::{Accelerator, Asked, DeviceAccess, STEP, Step};
use crate::device::MEMORY_PORT;
use crate::device::type2::device_memory::device::Line;
use crate::device::type2::device_memory::{Ask, Completion, Kind, MemRequest, MemoryRules, Meta};
use crate::device::type2::messages::{CacheState, Request};
use crate::device::type2::wire::{self, Trail};
use crate::kernel::{Context, PortId};
use crate::line::{ByteMask, LineAddress, Version};
use crate::message::{Cause, Message, Opcode, Stage, Tag};
use crate::time::Duration;

const RULES: &MemoryRules = &MemoryRules::SOUND;

/// The engine's end of the port to its memory.
pub const ENGINE_PORT: PortId = PortId(2);

/// A line of the device's own memory.
#[derive(Clone, Debug)]
pub(super) struct OwnLine {
    /// What the state machine has of it.
    pub line: Line<Version>,
    /// What waits for a message of the host.
    asking: Option<Asked>,
    /// What waits for memory.
    busy: Option<Busy>,
    waiting: VecDeque<Work>,
}

/// What is to be done to a line.
#[derive(Clone, Debug)]
enum Work {
    Generator(Asked),
    Host(Message),
}

/// What is under way for a line.
#[derive(Clone, Debug)]
enum Busy {
    /// Memory is read for the load generator.
    Read(Asked),
    /// Memory is written for the load generator.
    Write(Asked),
    /// Memory is read for the host, which gets the answer with that opcode.
    HostRead(Message, Opcode),
    /// Memory is written for the host.
    HostWrite(Message),
    /// What the cache had modified is written; then the host has its turn.
    WriteBack(Message, Opcode),
    /// What the cache had modified is written.
    Evict,
}

impl OwnLine {
    pub fn new(line: Line<Version>) -> OwnLine {
        OwnLine { line, asking: None, busy: None, waiting: VecDeque::new() }
    }

    pub fn is_idle(&self) -> bool {
        self.asking.is_none() && self.busy.is_none() && self.waiting.is_empty()
    }
}

impl Accelerator {
    /// Whether a line is of the device's own memory.
    pub(super) fn is_own(&self, line: LineAddress) -> bool {
        self.own_range.contains(&line)
    }

    pub(super) fn own_line(&mut self, line: LineAddress) -> &mut OwnLine {
        let host = self.bias;
        self.own_lines.entry(line).or_insert_with(|| OwnLine::new(Line { host, ..Line::new(Version(0)) }))
    }

    /// A request of the load generator for the device's own memory has been looked up.
    pub(super) fn own_looked_up(&mut self, asked: Asked, context: &mut Context<'_>) {
        self.work(asked.line, Work::Generator(asked), context);
    }

    /// A request of the host for the device's memory has been looked up.
    pub(super) fn host_looked_up(&mut self, mut message: Message, context: &mut Context<'_>) {
        message.stack.charge(Stage::DeviceQueue, context.now());
        self.work(message.line, Work::Host(message), context);
    }

    fn work(&mut self, line: LineAddress, work: Work, context: &mut Context<'_>) {
        let own = self.own_line(line);
        let waits = own.busy.is_some()
            || match work {
                Work::Generator(_) => own.asking.is_some() || !own.waiting.is_empty(),
                // What the device has asked for is answered behind such requests.
                Work::Host(_) => own.waiting.iter().any(|other| matches!(other, Work::Host(_))),
            };
        if waits {
            own.waiting.push_back(work);
            return;
        }
        match work {
            Work::Generator(asked) => self.access(asked, context),
            Work::Host(message) => self.serve_host(message, context),
        }
    }

    /// A line is free: goes on with what waits for it.
    fn work_on(&mut self, line: LineAddress, context: &mut Context<'_>) {
        loop {
            let own = self.own_line(line);
            if own.busy.is_some() {
                return;
            }
            let may_go = |work: &Work| own.asking.is_none() || matches!(work, Work::Host(_));
            let Some(place) = own.waiting.iter().position(may_go) else { return };
            match own.waiting.remove(place) {
                Some(Work::Generator(asked)) => self.access(asked, context),
                Some(Work::Host(message)) => self.serve_host(message, context),
                None => return,
            }
        }
    }

    fn access(&mut self, mut asked: Asked, context: &mut Context<'_>) {
        let now = context.now();
        asked.trail.stack.charge(Stage::DeviceQueue, now);
        let (line, read, fill) = (asked.line, self.times.read, self.times.fill);
        let ask = match asked.access {
            DeviceAccess::NcRead | DeviceAccess::CsRead => Ask::Share,
            _ => Ask::Own,
        };
        let state = self.own_line(line).line;
        match asked.access {
            DeviceAccess::FlushLine => {
                let is_dirty = state.cache == CacheState::Modified;
                self.own_line(line).line.evict();
                self.own_tags.remove(line);
                match is_dirty {
                    true => self.write_own(line, Busy::Write(asked), context),
                    false => self.answer(line, asked.trail, Duration::ZERO, context),
                }
            }
            DeviceAccess::NcRead | DeviceAccess::CsRead | DeviceAccess::CoRead if state.has(ask) => {
                self.touch_own(line, context);
                self.answer(line, asked.trail, read, context);
            }
            _ if state.must_ask(ask) => {
                let request = if ask == Ask::Share { Request::RdShared } else { Request::RdOwnNoData };
                self.own_line(line).line.ask(ask);
                self.stats.asked_for_bias += 1;
                self.send(asked.trail.message(wire::of_request(request), line, Version(0)), Duration::ZERO, context);
                self.own_line(line).asking = Some(asked);
            }
            DeviceAccess::CoWrite => {
                self.own_line(line).line.access(Ask::Own, super::engine::written_at(now));
                self.touch_own(line, context);
                self.answer(line, asked.trail, fill, context);
            }
            DeviceAccess::NcWrite | DeviceAccess::NcPWrite => {
                self.own_line(line).line.write_memory(super::engine::written_at(now));
                self.own_tags.remove(line);
                self.write_own(line, Busy::Write(asked), context);
            }
            DeviceAccess::NcRead | DeviceAccess::CsRead | DeviceAccess::CoRead => {
                let trail = asked.trail.clone();
                self.read_own(line, Busy::Read(asked), &trail, context);
            }
        }
    }

    fn serve_host(&mut self, message: Message, context: &mut Context<'_>) {
        let line = message.line;
        let request = match message.opcode {
            Opcode::MemRdFwdI | Opcode::MemRdFwdS => return self.forwarded(&message, context),
            Opcode::MemWr | Opcode::MemWrPtl => {
                let completion = self.own_line(line).line.take_write(RULES, message.version, Meta::Invalid);
                debug_assert_eq!(completion, Completion::Cmp);
                self.own_tags.remove(line);
                return self.write_own(line, Busy::HostWrite(message), context);
            }
            Opcode::MemRdOwn => MemRequest::ReadOwn,
            Opcode::MemInv => MemRequest::Invalidate,
            _ => MemRequest::Read,
        };
        let own = self.own_line(line);
        debug_assert!(own.line.answers(RULES, Kind::Bias, request));
        let was = own.line.cache;
        let answer = own.line.take_request(RULES, request);
        if own.line.cache == CacheState::Invalid {
            self.own_tags.remove(line);
        }
        let opcode = match (answer.completion, answer.data) {
            (Completion::CmpS, _) => Opcode::MemDataS,
            (_, Some(_)) => Opcode::MemData,
            (_, None) => Opcode::CmpE,
        };
        // A copy that changes its state is written in the tags first.
        let delay = if was.is_owner() { self.times.fill } else { Duration::ZERO };
        self.stats.device_copies += u64::from(was.is_owner());
        if answer.wrote_back {
            self.write_own_later(line, Busy::WriteBack(message, opcode), delay, context);
        } else {
            self.give_host(line, message, opcode, delay, context);
        }
    }

    /// The host gets its answer, from memory if it has data.
    fn give_host(
        &mut self,
        line: LineAddress,
        message: Message,
        opcode: Opcode,
        delay: Duration,
        context: &mut Context<'_>,
    ) {
        if opcode == Opcode::CmpE {
            return self.answer_host(message, opcode, Version(0), context);
        }
        let mut trail = Trail::of(&message);
        self.own_line(line).busy = Some(Busy::HostRead(message, opcode));
        let at = context.now() + delay;
        trail.stack.charge(Stage::DeviceQueue, at);
        let read = trail.message(Opcode::MemRd, line, Version(0));
        self.steps.at(at, Step::ToMemory(read), STEP, context);
    }

    fn answer_host(&mut self, request: Message, opcode: Opcode, version: Version, context: &mut Context<'_>) {
        let answer = Message { opcode, version, ..request };
        self.send(answer, Duration::ZERO, context);
    }

    /// The host has done what the device asked for.
    fn forwarded(&mut self, message: &Message, context: &mut Context<'_>) {
        let meta = if message.opcode == Opcode::MemRdFwdI { Meta::Invalid } else { Meta::Shared };
        let own = self.own_line(message.line);
        own.line.take_answer(meta).expect("the host answers what it was asked");
        let mut asked = own.asking.take().expect("an access waits for it");
        asked.trail = Trail::of(message);
        self.access(asked, context);
        self.work_on(message.line, context);
    }

    fn read_own(&mut self, line: LineAddress, busy: Busy, trail: &Trail, context: &mut Context<'_>) {
        self.own_line(line).busy = Some(busy);
        self.to_memory.offer(trail.message(Opcode::MemRd, line, Version(0)), context);
    }

    fn write_own(&mut self, line: LineAddress, busy: Busy, context: &mut Context<'_>) {
        self.write_own_later(line, busy, Duration::ZERO, context);
    }

    /// What memory holds from now on is written, in `delay`.
    fn write_own_later(&mut self, line: LineAddress, busy: Busy, delay: Duration, context: &mut Context<'_>) {
        let trail = match &busy {
            Busy::Write(asked) | Busy::Read(asked) => asked.trail.clone(),
            Busy::HostRead(message, _) | Busy::HostWrite(message) | Busy::WriteBack(message, _) => Trail::of(message),
            Busy::Evict => Trail::starting(context.now()),
        };
        let own = self.own_line(line);
        let version = own.line.memory;
        own.busy = Some(busy);
        let mut write = Message::write(line, Tag(0), Cause::Writeback, version, ByteMask::FULL, context.now());
        (write.stack, write.request) = (trail.stack, trail.request);
        // What the host writes comes with its request; all else is read from the cache, or from a buffer.
        let is_here = matches!(self.own_line(line).busy, Some(Busy::HostWrite(_)));
        let at = context.now() + delay + if is_here { Duration::ZERO } else { self.times.read };
        write.stack.charge(Stage::DeviceQueue, at);
        self.steps.at(at, Step::ToMemory(write), STEP, context);
    }

    /// The memory has answered the engine.
    pub(super) fn memory_says(&mut self, message: Message, context: &mut Context<'_>) {
        self.to_memory.return_credit(message.class(), context);
        let (line, read, fill) = (message.line, self.times.read, self.times.fill);
        let trail = Trail::of(&message);
        let busy = self.own_line(line).busy.take().expect("memory was asked for it");
        match busy {
            Busy::Read(asked) if asked.access == DeviceAccess::NcRead => {
                self.answer(line, trail, Duration::ZERO, context);
            }
            Busy::Read(_) => {
                self.own_line(line).line.access(Ask::Share, Version(0));
                self.touch_own(line, context);
                self.answer(line, trail, fill + read, context);
            }
            Busy::Write(_) => self.answer(line, trail, Duration::ZERO, context),
            Busy::HostRead(mut request, opcode) => {
                request.stack = trail.stack;
                let version = self.own_line(line).line.memory;
                self.answer_host(request, opcode, version, context);
            }
            Busy::HostWrite(mut request) => {
                request.stack = trail.stack;
                self.answer_host(request, Opcode::Cmp, message.version, context);
            }
            Busy::WriteBack(mut request, opcode) => {
                request.stack = trail.stack;
                self.give_host(line, request, opcode, Duration::ZERO, context);
            }
            Busy::Evict => {}
        }
        self.work_on(line, context);
    }

    /// A line of the device's own memory is used in the cache; another one may have to leave for it.
    fn touch_own(&mut self, line: LineAddress, context: &mut Context<'_>) {
        let Some(victim) = self.own_tags.touch(line) else { return };
        self.stats.evictions += 1;
        let own = self.own_line(victim);
        let is_dirty = own.line.cache == CacheState::Modified;
        own.line.evict();
        if is_dirty && own.busy.is_none() {
            self.write_own(victim, Busy::Evict, context);
        }
    }

    /// The port of the memory that the engine reaches it by, and the engine's end.
    pub const INNER_PORTS: [PortId; 2] = [MEMORY_PORT, ENGINE_PORT];
}
