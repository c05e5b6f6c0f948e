//! The persist buffer with time: how long the controller (PBC) takes, and the messages behind the packets.
//!
//! While the controller handles a packet nothing else changes the tables, so each piece of work costs one event: its
//! lookup is done when it begins, the rest when its accesses are over, which is when it sends what it has to send. A
//! power cut in between finds the entry not yet valid and the write not yet acknowledged.

use super::counters::{Occupancy, PersistBufferStats};
use super::drain_policy::DrainPolicy;
use super::forecast::Forecast;
use super::held::{HeldRequest, HeldRequests};
use super::invariants;
use super::output::{Outgoing, OutputQueues};
use super::packet::{
    Accesses, Acknowledgement, Action, Input, Output, OutputRoom, Packet, Reaction, Read, RequestId, Write,
};
use super::parameters::Parameters;
use super::rules::Sound;
use super::selector;
use super::state::{EntryState, LineData, Operation, Phase, State};
use super::transition::transition;
use crate::switch::config::PersistBufferConfig;
use crate::switch::port::HeadOfLine;
use crate::switch::scheme::Scheme;
use crate::switch::tags::Requester;
use fencepost_kernel::PortId;
use fencepost_kernel::line::{ByteMask, LineAddress, Version};
use fencepost_kernel::message::{Cause, LatencyStack, Message, MessageClass, Opcode, Stage, Tag};
use fencepost_kernel::stats::StatsNode;
use fencepost_kernel::time::{Duration, Time};

/// 256 entries and the slot for merging.
const SLOTS_MAX: usize = 257;
/// 64 places for requests and 64 for acknowledgements.
const INPUTS_MAX: usize = 128;

/// What became of a packet that was offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It is in the controller's input.
    Admitted,
    /// There is no room; it has to be offered again.
    Refused,
    /// It is a read that goes on to the memory device.
    Passed,
}

/// A piece of work of the controller.
#[derive(Clone, Copy, Debug)]
struct Work {
    /// Since when the controller has been at it.
    since: Time,
    /// What it sends at the end, if the lookup alone decided that.
    output: Option<Output>,
}

/// The persist buffer of one switch.
#[derive(Clone, Debug)]
pub struct PersistBuffer {
    parameters: Parameters,
    /// The policy of the scheme, while a Global Persistent Flush has another.
    usual_policy: DrainPolicy,
    forecast: Forecast,
    /// For each piece of work, besides its accesses.
    service: Duration,
    tag_access: Duration,
    data_access: Duration,
    state: State<SLOTS_MAX, INPUTS_MAX>,
    held: HeldRequests,
    output: OutputQueues,
    work: Option<Work>,
    /// Since when a packet has been parked.
    parked_since: Option<Time>,
    has_new_room: bool,
    stats: PersistBufferStats,
}

impl PersistBuffer {
    /// An empty persist buffer; none if `scheme` has none.
    pub fn new(config: &PersistBufferConfig, scheme: Scheme) -> Option<PersistBuffer> {
        let parameters = Parameters {
            entries: config.entries,
            input_places: config.input_entries,
            acknowledgement_places: config.input_acknowledgement_entries,
            reads_bypass: config.reads_bypass,
            policy: DrainPolicy::of(scheme, config)?,
        };
        Some(PersistBuffer {
            usual_policy: parameters.policy,
            forecast: Forecast::new(config.entries),
            parameters,
            service: Duration::from_ns(config.service_ns),
            tag_access: Duration::from_ns(config.tag_access_ns),
            data_access: Duration::from_ns(config.data_access_ns),
            state: State::new(&parameters),
            held: HeldRequests::default(),
            output: OutputQueues::new(config.output_entries),
            work: None,
            parked_since: None,
            has_new_room: false,
            stats: PersistBufferStats { occupancy: Occupancy::new(config.entries), ..PersistBufferStats::default() },
        })
    }

    /// A read of `line` comes `now`: whether it has to be offered to the controller. If not, it goes on to the memory
    /// device.
    pub fn selects_read(&mut self, line: LineAddress, now: Time) -> bool {
        self.forecast.read_came(now);
        let is_selected = selector::selects_read::<Sound, _, _>(&self.parameters, &self.state, line);
        if !is_selected {
            self.stats.reads += 1;
            self.read_passes();
        }
        is_selected
    }

    /// A read that this sent on to the memory device, or let pass, is answered.
    pub fn read_answered(&mut self) {
        self.forecast.read_answered();
    }

    /// Offers a read or write. If it is admitted it has to be held before anything else happens here: see
    /// [`Self::hold`].
    pub fn offer(&mut self, message: &Message) -> Admission {
        let (request, line) = (self.held.next_id(), message.line);
        let packet = match message.opcode {
            Opcode::MemRd => Packet::Read(Read { request, line, seen: None }),
            Opcode::MemWr | Opcode::MemWrPtl => {
                Packet::Write(Write { request, line, version: message.version, mask: message.mask })
            }
            other => unreachable!("{other:?} passes a persist buffer by"),
        };
        let admission = self.arrive(packet);
        match (message.opcode, admission) {
            (_, Admission::Refused) => {}
            (Opcode::MemRd, _) => {
                self.stats.reads += 1;
                if admission == Admission::Passed {
                    self.read_passes();
                }
            }
            _ => self.stats.count_write(message.cause),
        }
        admission
    }

    /// Keeps the message that has just been admitted, until it is answered by `port`, where it came in.
    pub fn hold(&mut self, message: Message, port: PortId) {
        self.held.insert(HeldRequest { message, port });
    }

    /// A read goes on to the memory device without having been admitted.
    fn read_passes(&mut self) {
        self.stats.reads_passed += 1;
        self.forecast.read_left();
    }

    /// Offers an acknowledgement of the memory device.
    pub fn offer_acknowledgement(&mut self, drain: Acknowledgement) -> Admission {
        self.arrive(Packet::Acknowledgement(drain))
    }

    fn arrive(&mut self, packet: Packet) -> Admission {
        match self.apply(Input::Arrive(packet)).action {
            Action::Admitted => Admission::Admitted,
            Action::Refused => Admission::Refused,
            Action::Passed => Admission::Passed,
            other => unreachable!("a packet that arrives is not {other:?}"),
        }
    }

    /// A read or write waited for `waited` at the head of an ingress buffer before it was admitted, others behind it.
    pub fn note_input_wait(&mut self, waited: Duration, head_of_line: HeadOfLine) {
        if waited > Duration::ZERO {
            self.stats.input_full_stalls += 1;
            self.stats.input_full_stall_ps += waited.as_ps();
            self.stats.input_full_bystanders += head_of_line.messages;
            self.stats.input_full_bystander_ps += head_of_line.wait_ps;
        }
    }

    /// An acknowledgement waited there for `waited`; `stack` says where the time of its drain went.
    pub fn note_acknowledgement(&mut self, waited: Duration, stack: &LatencyStack) {
        self.stats.drain.add(stack, &[]);
        if self.parameters.policy.keeps_clean() {
            self.forecast.drained(stack.total());
        }
        if waited > Duration::ZERO {
            self.stats.acknowledgement_stalls += 1;
            self.stats.acknowledgement_stall_ps += waited.as_ps();
        }
    }

    /// Lets the controller take up work if it is idle and there is some. Gives the time at which [`Self::finish`] is
    /// due.
    pub fn start(&mut self, now: Time) -> Option<Time> {
        if self.work.is_some() {
            return None;
        }
        let mut accesses = Accesses::NONE;
        let mut output = None;
        if self.state.operation == Operation::Idle {
            let inputs = self.state.input.packets().len();
            if let DrainPolicy::Adaptive { hold } = &mut self.parameters.policy {
                *hold = self.forecast.hold(self.state.count(EntryState::Drain), self.state.parked.is_some(), now);
            }
            let reaction = self.apply(Input::Step(self.output.room()));
            if reaction.action == Action::Nothing {
                return None;
            }
            self.has_new_room |= self.state.input.packets().len() < inputs;
            self.count(&reaction, now);
            (accesses, output) = (reaction.accesses, reaction.output);
        }
        if let Some(request) = self.request_in_work(output) {
            self.held.get_mut(request).message.stack.charge(Stage::PersistBufferWait, now);
        }
        self.work = Some(Work { since: now, output });
        self.stats.tag_accesses += u64::from(accesses.tag);
        let ahead = self.state.operation.accesses_ahead::<Sound>();
        Some(now + self.service + self.time(accesses + ahead))
    }

    /// The work that [`Self::start`] began is over. Gives the class of the output that has a new head, if one has.
    pub fn finish(&mut self, now: Time) -> Option<MessageClass> {
        let work = self.work.take().expect("only what was started finishes");
        self.stats.controller_busy_ps += now.since(work.since).as_ps();
        let phase = self.state.phase;
        let output = work.output.or_else(|| self.rest_of_work());
        self.has_new_room |= self.state.phase != phase;
        self.stats.occupancy.set(self.state.occupied(), now);
        let outgoing = self.outgoing(output?, now);
        let class = outgoing.message.class();
        self.output.push(outgoing).then_some(class)
    }

    /// Does the steps of the present operation until it sends something or ends.
    fn rest_of_work(&mut self) -> Option<Output> {
        while self.state.operation != Operation::Idle {
            let reaction = self.apply(Input::Step(self.output.room()));
            self.stats.tag_accesses += u64::from(reaction.accesses.tag);
            self.stats.data_accesses += u64::from(reaction.accesses.data);
            if reaction.output.is_some() {
                return reaction.output;
            }
        }
        None
    }

    /// Whether the input may have got room since this was last asked.
    pub fn has_new_room(&mut self) -> bool {
        std::mem::take(&mut self.has_new_room)
    }

    /// The head of the controller's output of `class`.
    pub fn output_head(&self, class: MessageClass) -> Option<&Outgoing> {
        self.output.head(class)
    }

    /// Takes the head of the controller's output of `class`.
    pub fn take_output(&mut self, class: MessageClass) -> Outgoing {
        self.output.pop(class)
    }

    /// The request that the controller has just taken up.
    fn request_in_work(&self, output: Option<Output>) -> Option<RequestId> {
        match (self.state.operation, output) {
            (Operation::Write { write, .. }, _) => Some(write.request),
            (Operation::Answer { request, .. }, _) | (_, Some(Output::Forwarded(request))) => Some(request),
            _ => None,
        }
    }

    /// The message for an output.
    fn outgoing(&mut self, output: Output, now: Time) -> Outgoing {
        debug_assert!(invariants::is_whole(&output), "a part of a line is sent: {output:?}");
        match output {
            Output::Completed(request) => {
                let HeldRequest { mut message, port } = self.held.remove(request);
                message.stack.charge(Stage::PersistBufferAccess, now);
                Outgoing { message: message.completion(), answers: Some(port), requester: None }
            }
            Output::Answered(request, data) => {
                self.stats.read_hits += 1;
                let HeldRequest { mut message, port } = self.held.remove(request);
                message.stack.charge(Stage::PersistBufferAccess, now);
                Outgoing { message: message.answer(data.version), answers: Some(port), requester: None }
            }
            Output::Forwarded(request) => {
                let HeldRequest { mut message, port } = self.held.remove(request);
                message.stack.charge(Stage::PersistBufferAccess, now);
                self.forecast.read_left();
                let requester = Some(Requester::Neighbour { port, tag: message.tag, is_counted: true });
                Outgoing { message, answers: None, requester }
            }
            Output::Drain(drain, data) => {
                self.stats.drains += 1;
                self.stats.recovery_drains += u64::from(self.state.phase == Phase::Recovering);
                // The tag is given when the message leaves by a port.
                let message = Message::write(drain.line, Tag(0), Cause::Drain, data.version, data.mask, now);
                Outgoing { message, answers: None, requester: Some(Requester::PersistBuffer(drain)) }
            }
        }
    }

    /// Counts what the idle controller took up.
    fn count(&mut self, reaction: &Reaction, now: Time) {
        if self.parameters.policy.keeps_clean() {
            self.forecast.taken_up(reaction.action, now);
        }
        match reaction.action {
            Action::Coalescing => self.stats.writes_coalesced += 1,
            Action::Missed => self.stats.reads_missed += 1,
            Action::Freeing => self.stats.acknowledgements += 1,
            Action::Ignored => self.stats.acknowledgements_ignored += 1,
            _ => {}
        }
        match (self.parked_since, self.state.parked) {
            (None, Some(packet)) => {
                self.parked_since = Some(now);
                match packet {
                    Packet::Read(_) => self.stats.reads_parked += 1,
                    _ => self.stats.stalls += 1,
                }
            }
            (Some(since), None) => {
                self.parked_since = None;
                match self.state.operation {
                    Operation::Write { .. } => self.stats.stall_ps += now.since(since).as_ps(),
                    _ => self.stats.reads_parked_ps += now.since(since).as_ps(),
                }
            }
            _ => {}
        }
    }

    /// Applies an input to the logic, under the right rules.
    fn apply(&mut self, input: Input) -> Reaction {
        let finishing = self.state.operation;
        let reaction = transition::<Sound, _, _>(&self.parameters, &mut self.state, input);
        if cfg!(debug_assertions) {
            if let (Operation::Write { write, .. }, Some(Output::Completed(_))) = (finishing, reaction.output) {
                assert!(invariants::is_durable(&self.state, &write), "{write:?} is acknowledged and not durable");
            }
            if let Some(name) = invariants::violated(&self.parameters, &self.state) {
                panic!("the persist buffer's invariant {name} does not hold after {input:?}: {reaction:?}");
            }
        }
        reaction
    }

    fn time(&self, accesses: Accesses) -> Duration {
        self.tag_access * u64::from(accesses.tag) + self.data_access * u64::from(accesses.data)
    }

    /// Every entry is to be drained now, whatever the scheme says: phase 2 of a Global Persistent Flush.
    pub fn begin_global_flush(&mut self) {
        self.parameters.policy = DrainPolicy::AtOnce;
    }

    /// Power is gone: what is durable stays, everything else is lost.
    pub fn power_fail(&mut self) {
        self.parameters.policy = self.usual_policy;
        self.forecast = Forecast::new(self.parameters.entries);
        self.apply(Input::PowerFail);
        self.held = HeldRequests::default();
        self.output.clear();
        self.work = None;
        self.parked_since = None;
    }

    /// Power is back and nothing sent before is still under way: the entries are drained, then packets are admitted
    /// again.
    pub fn recover(&mut self, now: Time) {
        self.apply(Input::PowerOn);
        self.has_new_room = true;
        self.stats.occupancy.set(self.state.occupied(), now);
    }

    /// The version of `line` that a recovery would bring to the memory device.
    pub fn durable_version(&self, line: LineAddress) -> Option<Version> {
        self.state.durable_version(line)
    }

    /// Makes the entry of `line` hold the whole of `version`, without time; whether there is one. For what a program
    /// writes outside the time that is simulated, while nothing is under way here.
    pub fn preload(&mut self, line: LineAddress, version: Version) -> bool {
        debug_assert!(self.is_idle(), "what takes no time happens between what does");
        if let Some(clean) = self.state.clean(line) {
            // The memory device gets the version, and this is an older one now.
            self.state.empty(clean);
        }
        let Some(index) = self.state.youngest(line) else { return false };
        self.state.slot_mut(index).data = LineData { version, mask: ByteMask::FULL, is_torn: false };
        true
    }

    /// Takes a whole line at `now` as if everything took no time: gives what drains to the memory device meanwhile,
    /// which has it at once. For what is written between the intervals of a sample, while nothing is under way here.
    /// Lines come here once each, without their times: the forecast learns nothing from them, and as much is held back
    /// as was last, at first everything.
    pub fn write_functionally(
        &mut self,
        line: LineAddress,
        version: Version,
        now: Time,
    ) -> Vec<(LineAddress, Version)> {
        debug_assert!(self.is_idle(), "what takes no time happens between what does");
        let write = Write { request: self.held.next_id(), line, version, mask: ByteMask::FULL };
        let admitted = self.apply(Input::Arrive(Packet::Write(write))).action;
        debug_assert_eq!(admitted, Action::Admitted, "an idle buffer admits everything");
        let mut drained = Vec::new();
        loop {
            let reaction = self.apply(Input::Step(OutputRoom::ALL));
            if let Some(Output::Drain(drain, data)) = reaction.output {
                drained.push((drain.line, data.version));
                self.apply(Input::Arrive(Packet::Acknowledgement(drain)));
            }
            if reaction.action == Action::Nothing {
                break;
            }
        }
        self.stats.occupancy.set(self.state.occupied(), now);
        drained
    }

    /// What is counted over time begins `now`, unless it has begun: with the first region of interest.
    pub fn begin_series(&mut self, now: Time) {
        self.stats.occupancy.begin_series(now);
    }

    /// How many lines it can hold.
    pub fn entries(&self) -> usize {
        usize::from(self.parameters.entries)
    }

    /// The state of the logic.
    pub fn state(&self) -> &State<SLOTS_MAX, INPUTS_MAX> {
        &self.state
    }

    /// Whether nothing is under way: no work, no packet, no message, no drain, no read at the device, no recovery.
    /// Dirty entries may be there.
    pub fn is_idle(&self) -> bool {
        self.work.is_none()
            && self.state.operation == Operation::Idle
            && self.state.phase == Phase::Running
            && self.state.input.packets().is_empty()
            && self.state.parked.is_none()
            && self.output.is_empty()
            && !self.state.slots().iter().any(|slot| slot.is_sent)
            && !self.forecast.has_reads_under_way()
    }

    /// What is waiting here and for what, for the deadlock report.
    pub fn waiting(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let sent = self.state.slots().iter().filter(|slot| slot.is_sent).count();
        if sent > 0 {
            lines.push(format!("persist buffer: {sent} drains wait for the memory device"));
        }
        if self.state.phase != Phase::Running {
            lines.push(format!("persist buffer: {:?}, {} entries left", self.state.phase, self.state.occupied()));
        }
        if let Some(packet) = self.state.parked {
            lines.push(format!("persist buffer: {packet:?} is parked until an entry is freed"));
        }
        let inputs = self.state.input.packets().len();
        if inputs > 0 {
            lines.push(format!("persist buffer: {inputs} packets wait for the controller"));
        }
        for class in MessageClass::ALL {
            let count = self.output.len(class);
            if count > 0 {
                lines.push(format!("persist buffer: {count} {} wait to leave", class.name()));
            }
        }
        lines
    }

    /// Everything counted so far.
    pub fn counters(&self) -> &PersistBufferStats {
        &self.stats
    }

    /// Everything counted up to `now`, as a tree.
    pub fn stats(&self, now: Time) -> StatsNode {
        let mut stats = self.stats.clone();
        stats.occupancy.settle(now);
        stats.controller_busy_ps += self.work.as_ref().map_or(0, |work| now.since(work.since).as_ps());
        stats.to_node()
    }
}
