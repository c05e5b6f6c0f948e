//! Memory of devices in the host's caches: loads and stores of cores that go there, and what devices ask of their own
//! lines. All caches of the host are one here, as in the state machine of
//! [`device_memory`](crate::device::type2::device_memory).

use std::collections::VecDeque;

use super::CoherentHost;
use super::cores::{CoreAccess, Step};
use super::home::{Pending, written_at};
use crate::device::type2::device_memory::host::{Line, Outcome, Output, Transaction};
use crate::device::type2::device_memory::{Ask, Completion, Kind, MemRequest, MemoryRules, Meta};
use crate::device::type2::messages::CacheState;
use crate::device::type2::wire::Trail;
use fencepost_kernel::Context;
use fencepost_kernel::line::{ByteMask, LineAddress, Version};
use fencepost_kernel::message::{Cause, Flow, Message, Opcode, Stage, Tag};
use fencepost_kernel::trace::Place;

const RULES: &MemoryRules = &MemoryRules::SOUND;

/// A line of a device's memory at the host.
#[derive(Clone, Debug)]
pub(super) struct Remote {
    pub line: Line<Version>,
    /// The access that is under way.
    served: Option<Pending>,
    queue: VecDeque<Pending>,
    /// What the device asks while an access is under way, with the port behind which it is.
    asked: Option<(Ask, Flow, Trail)>,
    /// Whom the answer goes to that waits for a write, or for the end of a conflict.
    asker: Option<(Flow, Trail)>,
}

impl Default for Remote {
    fn default() -> Self {
        let line = Line::new(Version(0));
        Remote { line, served: None, queue: VecDeque::new(), asked: None, asker: None }
    }
}

impl Remote {
    pub fn is_idle(&self) -> bool {
        self.served.is_none() && self.queue.is_empty() && self.asked.is_none() && self.line.serving.is_none()
    }
}

impl CoherentHost {
    /// Whether a line is of some accelerator's memory.
    pub(super) fn is_remote(&self, line: LineAddress) -> bool {
        self.device_memory.iter().any(|(lines, _)| lines.contains(&line))
    }

    /// How the device asks for a line of its memory.
    fn kind_of(&self, line: LineAddress) -> Kind {
        let of = self.device_memory.iter().find(|(lines, _)| lines.contains(&line));
        of.map(|(_, kind)| *kind).expect("it is a line of a device's memory")
    }

    /// An access of a core to a device's memory has been looked up in the last level.
    pub(super) fn remote_looked_up(&mut self, line: LineAddress, pending: Pending, context: &mut Context<'_>) {
        let remote = self.remotes.entry(line).or_default();
        if remote.served.is_some() || remote.line.serving.is_some() {
            remote.queue.push_back(pending);
            return;
        }
        self.serve_core(line, pending, context);
    }

    fn serve_core(&mut self, line: LineAddress, mut pending: Pending, context: &mut Context<'_>) {
        let now = context.now();
        pending.trail.stack.charge(Stage::Cache, now);
        let remote = self.remotes.entry(line).or_default();
        let state = remote.line.state;
        let output = match pending.access.expect("cores access the memory of devices") {
            CoreAccess::Load | CoreAccess::NtLoad if state == CacheState::Invalid => {
                remote.line.request(MemRequest::Read);
                Some(Output::Request(MemRequest::Read))
            }
            CoreAccess::Store if remote.line.may_store() => {
                remote.line.store(written_at(now));
                None
            }
            CoreAccess::Store => {
                remote.line.request(MemRequest::ReadOwn);
                Some(Output::Request(MemRequest::ReadOwn))
            }
            CoreAccess::NtStore => Some(remote.line.write_around(written_at(now))),
            CoreAccess::Flush => remote.line.evict(),
            CoreAccess::Load | CoreAccess::NtLoad => None,
        };
        match output {
            None => {
                #[cfg(test)]
                self.log_remote(line, &pending, Version(0));
                self.answer_core(line, pending, context);
            }
            Some(output) => {
                let trail = pending.trail.clone();
                remote.served = Some(pending);
                self.send_to_memory(line, output, Flow::default(), &trail, context);
            }
        }
    }

    /// A device snoops a line of its own memory, which is looked up.
    pub(super) fn device_snoops(&mut self, mut message: Message, context: &mut Context<'_>) {
        let at = context.now() + self.times.last_level;
        message.stack.charge(Stage::Cache, at);
        context.show(Place::Anywhere, &message);
        let ask = if message.opcode == Opcode::BiSnpData { Ask::Share } else { Ask::Own };
        self.steps.at(at, Step::DeviceAsks(ask, message), 0, context);
    }

    /// A device asks for a line of its own memory, by CXL.cache or by a snoop.
    pub(super) fn device_asks(&mut self, ask: Ask, mut message: Message, context: &mut Context<'_>) {
        message.stack.charge(Stage::Cache, context.now());
        let kind = self.kind_of(message.line);
        let remote = self.remotes.entry(message.line).or_default();
        if remote.line.serves(kind) {
            self.give_up(message.line, ask, message.flow, Trail::of(&message), context);
        } else {
            debug_assert!(remote.asked.is_none(), "a device asks for a line once");
            remote.asked = Some((ask, message.flow, Trail::of(&message)));
        }
    }

    fn give_up(&mut self, line: LineAddress, ask: Ask, to: Flow, trail: Trail, context: &mut Context<'_>) {
        let kind = self.kind_of(line);
        let remote = self.remotes.entry(line).or_default();
        let mut outputs = Vec::new();
        remote.line.take_ask(RULES, kind, ask, &mut |output| outputs.push(output));
        remote.asker = remote.line.serving.map(|_| (to, trail.clone()));
        for output in outputs {
            self.send_to_memory(line, output, to, &trail, context);
        }
    }

    fn send_to_memory(
        &mut self,
        line: LineAddress,
        output: Output<Version>,
        to: Flow,
        trail: &Trail,
        context: &mut Context<'_>,
    ) {
        let message = match output {
            Output::Request(request) => {
                let opcode = match request {
                    MemRequest::Read => Opcode::MemRd,
                    MemRequest::ReadOwn => Opcode::MemRdOwn,
                    MemRequest::Invalidate => Opcode::MemInv,
                    MemRequest::Forward(Meta::Invalid) => Opcode::MemRdFwdI,
                    MemRequest::Forward(_) => Opcode::MemRdFwdS,
                };
                trail.message(opcode, line, Version(0))
            }
            Output::Write(version, _) => {
                let write =
                    Message::write(line, Tag(0), Cause::NonTemporalStore, version, ByteMask::FULL, context.now());
                Message { stack: trail.stack.clone(), request: trail.request, ..write }
            }
            Output::BiRsp(Meta::Invalid) => trail.message(Opcode::BiRspI, line, Version(0)),
            Output::BiRsp(_) => trail.message(Opcode::BiRspS, line, Version(0)),
            Output::BiConflict => {
                self.stats.conflicts += 1;
                trail.message(Opcode::BiConflict, line, Version(0))
            }
        };
        self.stats.remote_requests += 1;
        self.send_out(Message { flow: to, ..message }, context);
    }

    /// A device's memory has answered, or granted what its data come apart for, or ended a conflict.
    pub(super) fn remote_answered(&mut self, message: Message, context: &mut Context<'_>) {
        let written = written_at(context.now());
        let (line, kind) = (message.line, self.kind_of(message.line));
        let trail = Trail::of(&message);
        let remote = self.remotes.get_mut(&line).expect("it was asked");
        let mut outputs = Vec::new();
        let mut send = |output| outputs.push(output);
        let brings_data = matches!(message.opcode, Opcode::MemData | Opcode::MemDataS);
        let completion = match message.opcode {
            Opcode::Cmp => Some(Completion::Cmp),
            Opcode::GrantedS => Some(Completion::CmpS),
            Opcode::BiConflictAck => Some(Completion::BiConflictAck),
            // Of memory with bias, data and the grant that belongs to them come together.
            Opcode::MemDataS if kind == Kind::Bias => Some(Completion::CmpS),
            Opcode::MemData | Opcode::MemDataS if kind == Kind::BackInvalidate => None,
            _ => Some(Completion::CmpE),
        };
        let mut take = |completion| remote.line.take_completion(RULES, kind, completion, written, &mut send);
        let granted = completion.map_or(Outcome::Nothing, &mut take);
        let taken = match brings_data {
            true => remote.line.take_data(RULES, kind, message.version, written, &mut send),
            false => Outcome::Nothing,
        };
        debug_assert!(taken != Outcome::Unexpected && granted != Outcome::Unexpected);
        // What comes for the device's request goes on with that; all else is for the access that is under way.
        let is_for_asker = match message.opcode {
            Opcode::BiConflictAck => true,
            Opcode::Cmp => remote.served.is_none(),
            _ => false,
        };
        if is_for_asker && let Some((_, asker)) = &mut remote.asker {
            asker.stack = trail.stack.clone();
        }
        let asker = match remote.line.serving {
            Some(_) => remote.asker.clone(),
            None => remote.asker.take(),
        };
        let served = remote.served.take_if(|_| remote.line.transaction.is_none());
        if let Some(mut served) = served {
            served.trail = trail;
            #[cfg(test)]
            self.log_remote(line, &served, message.version);
            self.answer_core(line, served, context);
        }
        if !outputs.is_empty() {
            let (to, told) = asker.expect("a device asked");
            for output in outputs {
                self.send_to_memory(line, output, to, &told, context);
            }
        }
        self.remote_goes_on(line, context);
    }

    /// Notes what an access to a device's memory has read or written; `version` is what it wrote past the caches.
    #[cfg(test)]
    fn log_remote(&mut self, line: LineAddress, served: &Pending, version: Version) {
        let data = self.remotes[&line].line.data;
        let crate::device::type2::host_side::Requester::Core(core, _) = served.requester else { return };
        let (version, read_from) = match served.access {
            Some(CoreAccess::Load | CoreAccess::NtLoad) => (data, Some(served.trail.stack.start())),
            Some(CoreAccess::Store) => (data, None),
            Some(CoreAccess::NtStore) => (version, None),
            Some(CoreAccess::Flush) | None => return,
        };
        self.log.push(crate::device::type2::burst::Observed { core, line, version, read_from });
    }

    fn remote_goes_on(&mut self, line: LineAddress, context: &mut Context<'_>) {
        while let Some(remote) = self.remotes.get_mut(&line)
            && remote.served.is_none()
            && remote.line.serving.is_none()
        {
            if let Some((ask, to, trail)) = remote.asked.take() {
                self.give_up(line, ask, to, trail, context);
            } else if let Some(next) = remote.queue.pop_front() {
                self.serve_core(line, next, context);
            } else {
                return;
            }
        }
    }

    /// What the host has of a line of a device's memory.
    #[cfg(test)]
    pub(crate) fn remote_copy(&self, line: LineAddress) -> (CacheState, Version) {
        self.remotes.get(&line).map_or((CacheState::Invalid, Version(0)), |own| (own.line.state, own.line.data))
    }

    /// Puts a line of a device's memory into the host's caches without time, or takes it away.
    pub fn set_remote_functionally(&mut self, line: LineAddress, state: CacheState, data: Version) {
        let remote = self.remotes.entry(line).or_default();
        debug_assert!(remote.is_idle() && remote.line.transaction != Some(Transaction::Write));
        (remote.line.state, remote.line.data) = (state, data);
    }
}
