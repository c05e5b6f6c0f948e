//! Switch allocation and traversal: which messages may cross to which port, and which may enter the persist
//! buffer's input.
//!
//! Nothing here runs every cycle. A destination is visited when something may have become possible there: a head got
//! ready, a credit came, the link or the crossbar became free, the controller finished.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;

use super::persist_buffer::Admission;
use super::port::{Buffered, Destination, HeadOfLine};
use super::tags::Requester;
use super::{STAGES_FROM_ALLOCATION, Switch, WAKE_CONTROLLER, WAKE_PORT};
use fencepost_kernel::message::{Message, MessageClass, Opcode, Route, Stage};
use fencepost_kernel::time::{Duration, Time};
use fencepost_kernel::trace::Place;
use fencepost_kernel::{Context, PortId};

/// What the allocator of a port finds.
enum Choice {
    /// This source may cross now, before another whose turn it would be but whose input of the crossbar is busy.
    Allocate { source: usize, before: Option<usize> },
    /// None that has a credit crosses now: its own input of the crossbar is busy until then, or that of one that has
    /// been passed over.
    InputFree(Time),
    /// No source has a credit.
    NoCredit,
}

impl Switch {
    /// Does whatever has become possible.
    pub(super) fn allocate(&mut self, context: &mut Context<'_>) {
        while let Some(destination) = self.to_visit.pop() {
            if destination == self.ports.len() {
                self.admit_to_controller(context);
            } else {
                self.allocate_port(PortId(destination as u16), context);
            }
        }
    }

    fn allocate_port(&mut self, port: PortId, context: &mut Context<'_>) {
        let now = context.now();
        while !self.arbiters[port.index()].is_empty() {
            let at = self.ports[port.index()].allocatable_at(now, self.stage * STAGES_FROM_ALLOCATION);
            if at > now {
                return self.retry(port, at, context);
            }
            match self.choose(port, context) {
                Choice::Allocate { source, before } => {
                    if let Err(other) = self.take_input(source / MessageClass::COUNT, port) {
                        // The last one is visited first.
                        self.to_visit.retain(|destination| *destination != other);
                        self.visit(port.index());
                        return self.visit(other);
                    }
                    if let Some(passed) = before {
                        self.arbiters[port.index()].pass_over(passed);
                    }
                    self.cross(source, port, context);
                }
                Choice::InputFree(at) => return self.retry(port, at, context),
                Choice::NoCredit => return,
            }
        }
    }

    /// `port` takes that input of the crossbar, unless another port waits for it that has had it longer ago; that one
    /// waits no longer then.
    ///
    /// # Errors
    /// The other port.
    #[inline]
    fn take_input(&mut self, input: usize, port: PortId) -> Result<(), usize> {
        let waiting = &mut self.inputs[input].waiting;
        if waiting.is_empty() {
            waiting.has_turn_alone(port.index());
            return Ok(());
        }
        waiting.ask(port.index());
        let first = waiting.asking().reduce(|one, other| waiting.earlier(one, other)).expect("one has just asked");
        if first == port.index() {
            waiting.grant(first);
            return Ok(());
        }
        waiting.withdraw(first);
        Err(first)
    }

    fn retry(&mut self, port: PortId, at: Time, context: &mut Context<'_>) {
        let retry_at = &mut self.ports[port.index()].retry_at;
        if retry_at.is_none_or(|arranged| arranged > at) {
            *retry_at = Some(at);
            context.wake_at(at, WAKE_PORT + u64::from(port.0));
        }
    }

    /// Whose turn it is of those that can cross to `port`. If the input of the one whose turn it is is busy, it is
    /// passed over once; then the port waits for it, though others could cross meanwhile: it might never find both
    /// free.
    fn choose(&mut self, port: PortId, context: &mut Context<'_>) -> Choice {
        let now = context.now();
        let (mut first, mut first_busy, mut input_free_next) = (None, None, Time::NEVER);
        let tags = self.tags_of_heads(port);
        let output = &mut self.ports[port.index()];
        let arbiter = &self.arbiters[port.index()];
        // Without fair queueing there are no tags, and none is less than another.
        let goes_first = |one: usize, other: usize| match tags.get(&one).partial_cmp(&tags.get(&other)) {
            Some(Ordering::Less) => one,
            Some(Ordering::Greater) => other,
            _ => arbiter.earlier(one, other),
        };
        let earlier = |first: Option<usize>, source| Some(first.map_or(source, |first| goes_first(first, source)));
        for source in arbiter.asking() {
            let class = MessageClass::ALL[source % MessageClass::COUNT];
            let input = &mut self.inputs[source / MessageClass::COUNT];
            if !output.transmitter.has_credit(class, context) {
                output.note_no_credit(class, now);
            } else if input.free > now {
                input_free_next = input_free_next.min(input.free);
                input.waiting.ask(port.index());
                first_busy = earlier(first_busy, source);
            } else {
                first = earlier(first, source);
            }
        }
        let Some(source) = first else {
            return if input_free_next < Time::NEVER { Choice::InputFree(input_free_next) } else { Choice::NoCredit };
        };
        let before = first_busy.filter(|busy| goes_first(source, *busy) == *busy);
        match before {
            Some(busy) if arbiter.was_passed_over(busy) => {
                Choice::InputFree(self.inputs[busy / MessageClass::COUNT].free)
            }
            _ => Choice::Allocate { source, before },
        }
    }

    /// The tags of the heads that ask for `port`, where messages are served by flows. What the persist buffer sends has
    /// none.
    fn tags_of_heads(&self, port: PortId) -> FxHashMap<usize, f64> {
        if self.fair_queueing.is_none() {
            return FxHashMap::default();
        }
        let of_ports = self.ports.len() * MessageClass::COUNT;
        let heads = self.arbiters[port.index()].asking().filter(|source| *source < of_ports);
        heads.filter_map(|source| Some((source, self.ingress(source).head()?.fair_tag))).collect()
    }

    /// Allocates the head of `source` to `port`. It reaches the transmitter two stages later.
    fn cross(&mut self, source: usize, port: PortId, context: &mut Context<'_>) {
        let now = context.now();
        let (mut message, requester) = self.take(source, port, context);
        context.show(Place::Anywhere, &message);
        let waited = now.since(message.stack.charged_until());
        self.stats.allocated += 1;
        self.stats.arbitration_wait_ps += waited.as_ps();
        let at_transmitter = now + self.stage * STAGES_FROM_ALLOCATION;
        message.stack.charge(Stage::Arbitration, now);
        context.show(Place::Port(port), &message);
        message.stack.charge(Stage::SwitchPipeline, at_transmitter);
        context.show(Place::Port(port), &message);
        if let Some(requester) = requester {
            message.tag = self.outstanding.insert(requester);
        }
        let occupied_until = now + self.crossbar_flit * message.class().slots() / SLOTS_PER_FLIT;
        self.inputs[source / MessageClass::COUNT].free = occupied_until;
        self.ports[port.index()].output_free = occupied_until;
        self.ports[port.index()].transmitter.offer(message, &mut context.at(at_transmitter));
    }

    /// Takes the head of `source` out of its buffer; if it is a request, with the requester of the answer.
    fn take(&mut self, source: usize, to: PortId, context: &mut Context<'_>) -> (Message, Option<Requester>) {
        if source / MessageClass::COUNT == self.ports.len() {
            return self.take_from_controller(source, to, context);
        }
        let (buffered, _) = self.leave_ingress(source, to.index(), self.stage, context);
        let mut message = buffered.message;
        let requester = match message.class().route() {
            Route::ByTag => {
                let Requester::Neighbour { tag, is_counted, .. } = self.outstanding.remove(message.tag) else {
                    unreachable!("the controller's acknowledgements leave by no port");
                };
                message.tag = tag;
                if is_counted {
                    self.persist_buffer.as_mut().expect("it counted the read").read_answered();
                }
                None
            }
            Route::ByLine => {
                let port = PortId((source / MessageClass::COUNT) as u16);
                let is_counted = message.opcode == Opcode::MemRd && self.persists_here(message.line);
                Some(Requester::Neighbour { port, tag: message.tag, is_counted })
            }
        };
        (message, requester)
    }

    fn take_from_controller(
        &mut self,
        source: usize,
        to: PortId,
        context: &mut Context<'_>,
    ) -> (Message, Option<Requester>) {
        let class = MessageClass::ALL[source % MessageClass::COUNT];
        self.arbiters[to.index()].grant(source);
        let buffer = self.persist_buffer.as_mut().expect("only a persist buffer asks as this source");
        let mut sent = buffer.take_output(class);
        if let Some(Requester::PersistBuffer(_)) = sent.requester {
            context.begin_drain(&mut sent.message);
        }
        self.ask_for_output(class);
        self.run_controller(context);
        (sent.message, sent.requester)
    }

    /// Takes the head of an ingress buffer, gives its place back `after` from now, and lets the next head have its way.
    fn leave_ingress(
        &mut self,
        source: usize,
        arbiter: usize,
        after: Duration,
        context: &mut Context<'_>,
    ) -> (Buffered, HeadOfLine) {
        let now = context.now();
        self.arbiters[arbiter].grant(source);
        let (buffered, head_of_line) = self.ingress_mut(source).pop(now);
        if let Some(queueing) = &mut self.fair_queueing {
            queueing.served(&buffered.message, buffered.fair_tag);
        }
        self.stats.head_of_line_messages += head_of_line.messages;
        self.stats.head_of_line_ps += head_of_line.wait_ps;
        let class = MessageClass::ALL[source % MessageClass::COUNT];
        self.ports[source / MessageClass::COUNT].transmitter.return_credit(class, &mut context.at(now + after));
        self.head_changed(source, context);
        (buffered, head_of_line)
    }

    /// Lets into the controller's input (PI) the messages that have room there, in turn.
    fn admit_to_controller(&mut self, context: &mut Context<'_>) {
        let controller = self.ports.len();
        let mut asking: Vec<usize> = self.arbiters[controller].asking().collect();
        asking.sort_unstable_by_key(|source| self.arbiters[controller].turn(*source));
        for source in asking {
            match self.offer_to_controller(source) {
                Admission::Refused => {}
                Admission::Passed => {
                    // The entry that the selector saw was freed meanwhile: the read goes to the device after all.
                    self.arbiters[controller].withdraw(source);
                    let line = self.ingress(source).head().expect("it is still there").message.line;
                    let destination = Destination::Port(self.routing.port(line));
                    self.ingress_mut(source).head_mut().expect("it is still there").destination = destination;
                    self.ask(source, destination);
                }
                Admission::Admitted => {
                    let now = context.now();
                    let ready = self.ingress(source).head_ready();
                    let (buffered, head_of_line) = self.leave_ingress(source, controller, Duration::ZERO, context);
                    self.stats.arbitration_wait_ps += ready.since(buffered.ready).as_ps();
                    let waited = now.since(ready);
                    let buffer = self.persist_buffer.as_mut().expect("there is a controller");
                    let mut message = buffered.message;
                    message.stack.charge(Stage::Arbitration, ready);
                    if let Opcode::Cmp = message.opcode {
                        self.outstanding.remove(message.tag);
                        message.stack.charge(Stage::PersistBufferWait, now);
                        buffer.note_acknowledgement(waited, &message.stack);
                        context.show(Place::Anywhere, &message);
                        context.complete_request(&message, None);
                    } else {
                        buffer.note_input_wait(waited, head_of_line);
                        if message.is_write() {
                            context.enter_buffer(&message);
                        }
                        buffer.hold(message, PortId((source / MessageClass::COUNT) as u16));
                    }
                }
            }
        }
        self.run_controller(context);
    }

    fn offer_to_controller(&mut self, source: usize) -> Admission {
        let ingress = &self.ports[source / MessageClass::COUNT].ingress[source % MessageClass::COUNT];
        let message = &ingress.head().expect("a head asks").message;
        let buffer = self.persist_buffer.as_mut().expect("there is a controller");
        match message.opcode {
            Opcode::Cmp => match self.outstanding.requester(message.tag) {
                Requester::PersistBuffer(drain) => buffer.offer_acknowledgement(drain),
                Requester::Neighbour { .. } => unreachable!("it goes to a port"),
            },
            _ => buffer.offer(message),
        }
    }

    /// The controller does what it can; its next result is due when it says.
    pub(super) fn run_controller(&mut self, context: &mut Context<'_>) {
        let Some(buffer) = &mut self.persist_buffer else { return };
        if let Some(done) = buffer.start(context.now()) {
            context.wake_at(done, WAKE_CONTROLLER);
        }
        // What was taken out of the input made room there.
        if !self.arbiters[self.ports.len()].is_empty()
            && self.persist_buffer.as_mut().is_some_and(|buffer| buffer.has_new_room())
        {
            self.visit(self.ports.len());
        }
    }

    /// The controller has finished a piece of work: its output may have got a message.
    pub(super) fn controller_finished(&mut self, context: &mut Context<'_>) {
        let buffer = self.persist_buffer.as_mut().expect("only a controller finishes");
        if let Some(class) = buffer.finish(context.now()) {
            self.ask_for_output(class);
        }
        self.run_controller(context);
    }

    /// The head of the controller's output (PO) of `class` asks for its port.
    fn ask_for_output(&mut self, class: MessageClass) {
        let buffer = self.persist_buffer.as_ref().expect("there is a controller");
        let Some(head) = buffer.output_head(class) else { return };
        let port = match head.answers {
            Some(port) => port,
            None => self.routing.port(head.message.line),
        };
        self.ask(self.ports.len() * MessageClass::COUNT + class.index(), Destination::Port(port));
    }

    /// What is waiting here and for what, for the deadlock report.
    pub(super) fn report_waiting(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (id, port) in self.ports.iter().enumerate() {
            for class in MessageClass::ALL {
                let buffer = &port.ingress[class.index()];
                let Some(head) = buffer.head() else { continue };
                let (count, class_name, line) = (buffer.len(), class.name(), head.message.line.byte());
                let target = match head.destination {
                    Destination::Controller => "room in the persist buffer's input".to_owned(),
                    Destination::Port(to) => match self.ports[to.index()].transmitter.credits(class) > 0 {
                        true => format!("its turn at port {}", to.0),
                        false => format!("a credit at port {}", to.0),
                    },
                };
                lines.push(format!("port {id}: {count} {class_name}, the first ({line:#x}) waits for {target}"));
            }
        }
        if !self.outstanding.is_empty() {
            lines.push(format!("{} requests wait for the answers of devices", self.outstanding.len()));
        }
        lines.extend(self.persist_buffer.iter().flat_map(|buffer| buffer.waiting()));
        lines
    }
}

/// Slots of a flit, in the crossbar as on a link. A message occupies those of its header and its data.
const SLOTS_PER_FLIT: u64 = 4;
