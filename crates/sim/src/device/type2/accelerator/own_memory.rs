//! The engine and the device's own memory: accesses of the load generator, requests of the host, bias.
//!
//! A line is worked on by one access or request after the other; only what the device has asked the host for lets
//! requests of the host go first. The memory itself is reached by a port of its own inside the device. Memory without
//! bias is snooped: requests of the host wait then, and what a conflict brings goes past them.

use std::collections::VecDeque;

use super::{Accelerator, Asked, DeviceAccess, STEP, Step};
use crate::device::MEMORY_PORT;
use crate::device::type2::device_memory::device::Line;
use crate::device::type2::device_memory::{Ask, Completion, Kind, MemRequest, MemoryRules, Meta};
use crate::device::type2::messages::{CacheState, Request};
use crate::device::type2::wire::{self, Trail};
use fencepost_kernel::line::{ByteMask, LineAddress, Version};
use fencepost_kernel::message::{Cause, Message, Opcode, Stage, Tag};
use fencepost_kernel::time::Duration;
use fencepost_kernel::{Context, PortId};

const RULES: &MemoryRules = &MemoryRules::SOUND;

/// The engine's end of the port to its memory.
pub const ENGINE_PORT: PortId = PortId(2);

/// A line of the device's own memory.
#[derive(Clone, Debug)]
pub(super) struct OwnLine {
    /// What the state machine has of it.
    pub line: Line<Version>,
    /// What waits for a message of the host.
    asking: Option<Asker>,
    /// What waits for memory.
    busy: Option<Busy>,
    waiting: VecDeque<Work>,
}

/// For whom the host is asked.
#[derive(Clone, Debug)]
enum Asker {
    Generator(Asked),
    /// The snoop filter, which has no place for the line any longer.
    Filter,
}

/// What is to be done to a line.
#[derive(Clone, Debug)]
enum Work {
    Generator(Asked),
    Host(Message),
    /// The host has to give it up: the snoop filter has no place for it.
    Forget,
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

    /// Whether that is done while the device waits for the host, if it does.
    fn may_go(&self, kind: Kind, work: &Work) -> bool {
        match work {
            Work::Generator(_) | Work::Forget => self.asking.is_none(),
            Work::Host(message) => request(message).is_none_or(|request| self.line.answers(RULES, kind, request)),
        }
    }

    pub fn is_idle(&self) -> bool {
        self.asking.is_none() && self.busy.is_none() && self.waiting.is_empty()
    }
}

/// The request that a message of the host is, if it is neither a write nor the answer to what it was asked.
fn request(message: &Message) -> Option<MemRequest> {
    match message.opcode {
        Opcode::MemRd => Some(MemRequest::Read),
        Opcode::MemRdOwn => Some(MemRequest::ReadOwn),
        Opcode::MemInv => Some(MemRequest::Invalidate),
        _ => None,
    }
}

impl Accelerator {
    /// Whether a line is of the device's own memory.
    pub(super) fn is_own(&self, line: LineAddress) -> bool {
        self.own_range.contains(&line)
    }

    pub(super) fn own_line(&mut self, line: LineAddress) -> &mut OwnLine {
        let (host, memory) = (self.bias, &self.memory);
        // What persistent memory has kept through a power cut.
        let kept = || memory.durable_version(line).unwrap_or_default();
        self.own_lines.entry(line).or_insert_with(|| OwnLine::new(Line { host, ..Line::new(kept()) }))
    }

    /// A request of the load generator for the device's own memory has been looked up.
    pub(super) fn own_looked_up(&mut self, asked: Asked, context: &mut Context<'_>) {
        self.work(asked.line, Work::Generator(asked), context);
    }

    /// A request of the host for the device's memory, or an answer of it, has been looked up.
    pub(super) fn host_looked_up(&mut self, mut message: Message, context: &mut Context<'_>) {
        message.stack.charge(Stage::DeviceQueue, context.now());
        match message.opcode {
            // The host's requests wait for what these say.
            Opcode::BiRspI | Opcode::BiRspS => self.forwarded(&message, context),
            Opcode::BiConflict => {
                self.filter.iter_mut().for_each(|filter| filter.conflicts += 1);
                self.answer_host(message, Opcode::BiConflictAck, Version(0), context);
            }
            _ => self.work(message.line, Work::Host(message), context),
        }
    }

    fn kind(&self) -> Kind {
        if self.filter.is_some() { Kind::BackInvalidate } else { Kind::Bias }
    }

    fn work(&mut self, line: LineAddress, work: Work, context: &mut Context<'_>) {
        let kind = self.kind();
        let own = self.own_line(line);
        let waits = own.busy.is_some()
            || !own.may_go(kind, &work)
            || match work {
                Work::Generator(_) | Work::Forget => !own.waiting.is_empty(),
                // What the device has asked for is answered behind such requests.
                Work::Host(_) => own.waiting.iter().any(|other| matches!(other, Work::Host(_))),
            };
        if waits {
            own.waiting.push_back(work);
            return;
        }
        self.begin_work(line, work, context);
    }

    fn begin_work(&mut self, line: LineAddress, work: Work, context: &mut Context<'_>) {
        match work {
            Work::Generator(asked) => self.access(asked, context),
            Work::Host(message) => self.serve_host(message, context),
            Work::Forget => self.forget_at_host(line, context),
        }
    }

    /// A line is free: goes on with what waits for it.
    fn work_on(&mut self, line: LineAddress, context: &mut Context<'_>) {
        let kind = self.kind();
        loop {
            let own = self.own_line(line);
            if own.busy.is_some() {
                return;
            }
            let Some(place) = own.waiting.iter().position(|work| own.may_go(kind, work)) else { return };
            let work = own.waiting.remove(place).expect("it has just been found");
            self.begin_work(line, work, context);
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
                    false => self.answer(asked, Duration::ZERO, context),
                }
            }
            DeviceAccess::NcRead | DeviceAccess::CsRead | DeviceAccess::CoRead if state.has(ask) => {
                self.touch_own(line, context);
                #[cfg(test)]
                self.log_own_read(line, &asked.trail);
                self.answer(asked, read, context);
            }
            _ if state.must_ask(ask) => {
                let trail = asked.trail.clone();
                match &mut self.filter {
                    Some(filter) => filter.snoops += 1,
                    None => self.stats.asked_for_bias += 1,
                }
                self.ask_host(line, ask, Asker::Generator(asked), &trail, context);
            }
            DeviceAccess::CoWrite => {
                self.own_line(line).line.access(Ask::Own, super::engine::written_at(now));
                #[cfg(test)]
                self.log_write(line, super::engine::written_at(now));
                self.touch_own(line, context);
                self.answer(asked, fill, context);
            }
            DeviceAccess::NcWrite => {
                self.own_line(line).line.write_memory(super::engine::written_at(now));
                #[cfg(test)]
                self.log_write(line, super::engine::written_at(now));
                self.own_tags.remove(line);
                self.write_own(line, Busy::Write(asked), context);
            }
            DeviceAccess::NcPWrite => unreachable!("lines of host memory are pushed alone"),
            DeviceAccess::FlushHostMemoryCache | DeviceAccess::FlushDeviceMemoryCache => {
                unreachable!("a flush of a cache is one of its lines")
            }
            DeviceAccess::NcRead | DeviceAccess::CsRead | DeviceAccess::CoRead => {
                let trail = asked.trail.clone();
                self.read_own(line, Busy::Read(asked), &trail, context);
            }
        }
    }

    /// Asks the host for a line that it may have: by CXL.cache, or by a snoop.
    fn ask_host(&mut self, line: LineAddress, ask: Ask, asker: Asker, trail: &Trail, context: &mut Context<'_>) {
        let opcode = match (self.kind(), ask) {
            (Kind::Bias, Ask::Share) => wire::of_request(Request::RdShared),
            (Kind::Bias, Ask::Own) => wire::of_request(Request::RdOwnNoData),
            (Kind::BackInvalidate, Ask::Share) => Opcode::BiSnpData,
            (Kind::BackInvalidate, Ask::Own) => Opcode::BiSnpInv,
        };
        let own = self.own_line(line);
        own.line.ask(ask);
        own.asking = Some(asker);
        self.send(trail.message(opcode, line, Version(0)), Duration::ZERO, context);
    }

    /// The filter follows what the host may have of a line; another line may have to leave it, and the host.
    fn follow(&mut self, line: LineAddress, context: &mut Context<'_>) {
        let host = self.own_line(line).line.host;
        if let Some(victim) = self.filter.as_mut().and_then(|filter| filter.follow(line, host)) {
            self.work(victim, Work::Forget, context);
        }
    }

    /// The filter has no place for a line any longer: the host gives it up, if it still has it.
    fn forget_at_host(&mut self, line: LineAddress, context: &mut Context<'_>) {
        if self.own_line(line).line.must_ask(Ask::Own) {
            self.filter.iter_mut().for_each(|filter| filter.evictions += 1);
            self.ask_host(line, Ask::Own, Asker::Filter, &Trail::starting(context.now()), context);
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
                self.write_own(line, Busy::HostWrite(message), context);
                return self.follow(line, context);
            }
            _ => request(&message).expect("all else that the host sends is a request"),
        };
        let kind = self.kind();
        let own = self.own_line(line);
        debug_assert!(own.line.answers(RULES, kind, request));
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
        self.follow(line, context);
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
        // Where the device snoops, a grant comes apart from its data, in front of the end of a conflict.
        if self.kind() == Kind::BackInvalidate
            && let Some(grant) = match opcode {
                Opcode::MemData => Some(Opcode::GrantedE),
                Opcode::MemDataS => Some(Opcode::GrantedS),
                _ => None,
            }
        {
            self.send(Message { opcode: grant, version: Version(0), ..request.clone() }, Duration::ZERO, context);
        }
        let answer = Message { opcode, version, ..request };
        self.send(answer, Duration::ZERO, context);
    }

    /// The host has done what the device asked for.
    fn forwarded(&mut self, message: &Message, context: &mut Context<'_>) {
        let keeps_nothing = matches!(message.opcode, Opcode::MemRdFwdI | Opcode::BiRspI);
        let meta = if keeps_nothing { Meta::Invalid } else { Meta::Shared };
        let own = self.own_line(message.line);
        own.line.take_answer(meta).expect("the host answers what it was asked");
        let asker = own.asking.take().expect("somebody waits for it");
        self.follow(message.line, context);
        if let Asker::Generator(mut asked) = asker {
            asked.trail = Trail::of(message);
            self.access(asked, context);
        }
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
                #[cfg(test)]
                self.log_own_read(line, &trail);
                self.answer(Asked { trail, ..asked }, Duration::ZERO, context);
            }
            Busy::Read(asked) => {
                self.own_line(line).line.access(Ask::Share, Version(0));
                self.touch_own(line, context);
                #[cfg(test)]
                self.log_own_read(line, &trail);
                self.answer(Asked { trail, ..asked }, fill + read, context);
            }
            Busy::Write(asked) => self.answer(Asked { trail, ..asked }, Duration::ZERO, context),
            Busy::HostRead(mut request, opcode) => {
                request.stack = trail.stack;
                // What was written without time, the memory alone knows.
                let own = &mut self.own_line(line).line;
                own.memory = own.memory.max(message.version);
                let version = own.memory;
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

    #[cfg(test)]
    fn log_own_read(&mut self, line: LineAddress, trail: &Trail) {
        let own = &self.own_line(line).line;
        let version = if own.cache == CacheState::Invalid { own.memory } else { own.data };
        self.log_read(line, trail, Some(version));
    }

    /// What the device has of a line of its own memory: its cache, what the host may have, memory.
    #[cfg(test)]
    pub(crate) fn own_copy(&mut self, line: LineAddress) -> Line<Version> {
        self.own_line(line).line
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
