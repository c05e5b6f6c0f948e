//! The controller of a memory device: the ends of its links, a fixed pipeline, and the medium behind it.
//!
//! An arrived request keeps its buffer place, and so the sender's credit, until the medium has room for it; a full
//! medium thus holds back the fabric. Requests without data and with data wait apart, so a full write queue does not
//! stop reads; nor does a full channel stop requests to others. The ports share the medium in turn, one request each.
//! An answer leaves by the port that its request came in by; where answers cannot leave, the medium gets nothing more
//! from that port.

use std::collections::VecDeque;

use super::load::{LoadReport, LoadThresholds};
use super::medium::{Completion, Medium, MediumConfig};
use super::port::Port;
use crate::host_bridge::Interleave;
use fencepost_kernel::line::{LINE_BYTES, LineAddress, Version};
use fencepost_kernel::link::{LinkConfig, Transmitter};
use fencepost_kernel::message::RequestName;
use fencepost_kernel::message::{Message, Opcode, Stage, Tag, mem};
use fencepost_kernel::stats::{Histogram, StatsNode};
use fencepost_kernel::time::{Duration, Time};
use fencepost_kernel::trace::Place;
use fencepost_kernel::{Component, Context, Event, PortId};

/// The first port to the fabric or the host bridge; others have the numbers that follow.
pub const DEVICE_PORT: PortId = PortId(0);

/// The second port: of an accelerator, the one to its coherence engine.
pub const MEMORY_PORT: PortId = PortId(1);

/// Wakes for requests that have passed the pipeline and for the medium.
const SERVICE: u64 = 0;
/// Wakes for answers that have passed the pipeline; one for each.
const ANSWER: u64 = 1;

/// A memory device.
#[derive(Clone, Debug)]
pub struct Device {
    latency: Duration,
    /// The pipeline's latency for answers that a queue gives.
    queue_answer: Duration,
    ports: Vec<Port>,
    /// The port whose turn it is to give the medium a request, in the order of [`mem::REQUEST_CLASSES`].
    turns: [usize; mem::REQUEST_CLASSES.len()],
    medium: Medium,
    /// Answers in the pipeline, by the time at which they leave it.
    egress: VecDeque<(Time, Message)>,
    /// The earliest [`SERVICE`] wake that is still to come.
    armed: Time,
    /// Room for what the medium answers; empty between events.
    completions: Vec<Completion>,
    /// What answers say of the load; all say that it is light if absent.
    load: Option<Box<LoadReport>>,
    stats: DeviceStats,
}

/// What a device counted.
#[derive(Clone, Debug, Default)]
pub struct DeviceStats {
    /// Reads that arrived.
    pub reads: u64,
    /// Writes that arrived.
    pub writes: u64,
    /// Bytes sent with data.
    pub read_bytes: u64,
    /// Bytes received with data; of a partial write only those of its mask.
    pub write_bytes: u64,
    /// Reads that found the read queue full.
    pub read_queue_full: u64,
    /// Time during which a read waited at the head of a port for room in the read queue, in ps; the sum over ports.
    pub read_queue_full_ps: u64,
    /// Writes that found the write queue full.
    pub write_queue_full: u64,
    /// Time during which a write waited at the head of a port for room in the write queue, in ps; the sum over ports.
    pub write_queue_full_ps: u64,
    /// From a read's arrival until its data leave for the link.
    pub read_latency_ps: Histogram,
    /// From a write's arrival until its completion leaves for the link.
    pub write_latency_ps: Histogram,
}

impl Device {
    /// A device like `config` at the end of `links`, one for each of its ports. Its lines are those of one way of
    /// `interleave`.
    pub fn new(config: &MediumConfig, links: &[LinkConfig], interleave: Interleave) -> Device {
        let ports = links.iter().zip(DEVICE_PORT.0..);
        Device {
            latency: Duration::from_ns(config.controller_latency_ns()),
            queue_answer: Duration::from_ns(config.queue_answer_ns()),
            ports: ports.map(|(link, number)| Port::new(PortId(number), link)).collect(),
            turns: [0; mem::REQUEST_CLASSES.len()],
            medium: Medium::new(config, interleave),
            egress: VecDeque::new(),
            armed: Time::NEVER,
            completions: Vec::new(),
            load: None,
            stats: DeviceStats::default(),
        }
    }

    /// The medium behind the controller.
    pub fn medium(&self) -> &Medium {
        &self.medium
    }

    /// The same, to be changed: to have commands recorded, for example.
    pub fn medium_mut(&mut self) -> &mut Medium {
        &mut self.medium
    }

    /// From now on answers say how loaded the device is.
    pub fn report_load(&mut self, thresholds: LoadThresholds) {
        self.load = Some(Box::new(LoadReport::new(thresholds, self.ports.len())));
    }

    /// The end of the link at `port`.
    pub(super) fn transmitter(&mut self, port: PortId) -> &mut Transmitter {
        &mut self.ports[port.index()].transmitter
    }

    /// The version of `line` that a power cut now would leave here; none if the medium is volatile.
    pub fn durable_version(&self, line: LineAddress) -> Option<Version> {
        self.medium.durable_version(line)
    }

    /// Bytes that have come here and have to be written to the medium; 0 of a device that has written all but what may
    /// stay in its queue.
    pub fn unwritten_bytes(&self) -> u64 {
        let arrived: usize = self.ports.iter().map(Port::waiting_writes).sum();
        (arrived + self.medium.unwritten_lines()) as u64 * LINE_BYTES
    }

    /// Writes `version` of `line` before time starts: what a program had written before its region of interest.
    pub fn preload(&mut self, line: LineAddress, version: Version) {
        self.medium.preload(line, version);
    }

    /// Everything counted so far, without link and medium.
    pub fn counters(&self) -> &DeviceStats {
        &self.stats
    }

    fn request_arrived(&mut self, port: PortId, mut message: Message, context: &mut Context<'_>) {
        match message.opcode {
            Opcode::MemRd => self.stats.reads += 1,
            Opcode::MemWr | Opcode::MemWrPtl => {
                self.stats.writes += 1;
                self.stats.write_bytes += u64::from(message.mask.0.count_ones());
            }
            other => unreachable!("{other:?} is no request to memory"),
        }
        let port = usize::from(port.0);
        message.tag = tag_inside(message.tag, port, self.ports.len());
        let passed = self.medium.entry_time(context.now() + self.latency);
        self.ports[port].ingress[usize::from(message.is_write())].queue.push_back((passed, message));
        self.arm(passed, context);
    }

    /// Moves requests into the medium, lets it work, and asks for the next wake.
    fn service(&mut self, context: &mut Context<'_>) {
        let now = context.now();
        self.admit(context);
        let medium_next = loop {
            let next = self.medium.advance(now, &mut self.completions);
            if !self.admit(context) {
                break next;
            }
        };
        let mut completions = std::mem::take(&mut self.completions);
        for completion in completions.drain(..) {
            self.answer_later(completion, context);
        }
        self.completions = completions;
        if context.is_tracing() {
            self.medium.take_written().iter().for_each(|write| context.media_write(write));
        }
        let passing = self.ports.iter().filter_map(|port| port.next_passing(now));
        let next = passing.min().unwrap_or(Time::NEVER).min(medium_next);
        self.arm(next, context);
    }

    /// Moves into the medium what has passed the pipeline and finds room, from each port in turn. True if something
    /// moved.
    #[inline]
    fn admit(&mut self, context: &mut Context<'_>) -> bool {
        let now = context.now();
        self.ports.iter().flat_map(Port::heads).any(|passed| passed <= now) && self.admit_heads(context)
    }

    /// The same where something has passed the pipeline.
    fn admit_heads(&mut self, context: &mut Context<'_>) -> bool {
        let mut has_moved = false;
        for ingress in 0..mem::REQUEST_CLASSES.len() {
            let mut without = 0;
            while without < self.ports.len() {
                let port = self.turns[ingress];
                self.turns[ingress] = if port + 1 == self.ports.len() { 0 } else { port + 1 };
                if self.admit_from(port, ingress, context) {
                    has_moved = true;
                    without = 0;
                } else {
                    without += 1;
                }
            }
        }
        has_moved
    }

    /// Moves the first request of a class from that port into the medium that may go there.
    fn admit_from(&mut self, port: usize, ingress: usize, context: &mut Context<'_>) -> bool {
        let now = context.now();
        let (class, answer) = mem::REQUEST_CLASSES[ingress];
        let port = &mut self.ports[port];
        if port.transmitter.waiting(answer) >= self.medium.queue_entries(class) {
            return false;
        }
        let place = port.first_with_room(ingress, &self.medium, now);
        if place == Some(0) {
            self.stats.count_full_time(ingress, port.ingress[ingress].unblock(now));
        } else if port.is_head_without_room(ingress, &self.medium, now) {
            self.stats.count_full(ingress, port.ingress[ingress].block(now));
        }
        let Some(place) = place else { return false };
        let (_, message) = port.ingress[ingress].queue.remove(place).expect("it was looked at");
        port.transmitter.return_credit(class, context);
        self.medium.accept(message, now, &mut self.completions);
        true
    }

    /// Sends an answer of the medium through the pipeline.
    fn answer_later(&mut self, completion: Completion, context: &mut Context<'_>) {
        let Completion { mut answer, at, is_from_queue } = completion;
        let leaves = at + if is_from_queue { self.queue_answer } else { self.latency };
        if answer.request != RequestName::NONE {
            context.show(Place::Bank(self.medium.bank_of(answer.line)), &answer);
        }
        answer.stack.charge(Stage::DeviceQueue, leaves);
        context.show(Place::Anywhere, &answer);
        let place = self.egress.partition_point(|(time, _)| *time <= leaves);
        self.egress.insert(place, (leaves, answer));
        context.wake_at(leaves, ANSWER);
    }

    /// The first answer has passed the pipeline.
    fn answer(&mut self, context: &mut Context<'_>) {
        let (leaves, mut answer) = self.egress.pop_front().expect("each answer in the pipeline asked for one wake");
        debug_assert_eq!(leaves, context.now());
        let parts = answer.stack.parts_ps();
        let parts = [parts[Stage::DeviceQueue as usize], parts[Stage::Media as usize]];
        let latency = Duration::from_ps(parts.into_iter().sum());
        if answer.opcode == Opcode::MemData {
            self.stats.read_bytes += LINE_BYTES;
            self.stats.read_latency_ps.record(latency);
        } else {
            self.stats.write_latency_ps.record(latency);
        }
        let (tag, port) = tag_outside(answer.tag, self.ports.len());
        answer.tag = tag;
        if let Some(load) = &mut self.load {
            answer.dev_load = load.load(port, self.medium.filled(), context.now());
        }
        self.ports[port].transmitter.offer(answer, context);
        self.note_egress(port, context.now());
    }

    /// Answers may wait for credits at that port now, or no longer.
    fn note_egress(&mut self, port: usize, now: Time) {
        if let Some(load) = &mut self.load {
            let transmitter = &self.ports[port].transmitter;
            load.note_egress(
                port,
                mem::REQUEST_CLASSES.iter().any(|(_, answer)| transmitter.waiting(*answer) > 0),
                now,
            );
        }
    }

    /// Asks for a wake at `time`, unless one comes before that.
    fn arm(&mut self, time: Time, context: &mut Context<'_>) {
        if time < self.armed {
            self.armed = time;
            context.wake_at(time, SERVICE);
        }
    }
}

impl DeviceStats {
    /// A request of that class may have found its queue full.
    fn count_full(&mut self, ingress: usize, is_full: bool) {
        match ingress {
            0 => self.read_queue_full += u64::from(is_full),
            _ => self.write_queue_full += u64::from(is_full),
        }
    }

    /// A request of that class waited so long for room.
    fn count_full_time(&mut self, ingress: usize, waited: Duration) {
        match ingress {
            0 => self.read_queue_full_ps += waited.as_ps(),
            _ => self.write_queue_full_ps += waited.as_ps(),
        }
    }
}

/// The tag by which a device with so many ports knows a request: those of different ports may be equal, so it names the
/// port too.
fn tag_inside(tag: Tag, port: usize, ports: usize) -> Tag {
    let inside = u64::from(tag.0) * ports as u64 + port as u64;
    Tag(u32::try_from(inside).expect("far fewer requests are under way"))
}

/// The tag that a request came with, and the port that it came in by.
fn tag_outside(tag: Tag, ports: usize) -> (Tag, usize) {
    (Tag(tag.0 / ports as u32), tag.0 as usize % ports)
}

impl Component for Device {
    fn handle(&mut self, event: Event, context: &mut Context<'_>) {
        match event {
            Event::Arrival { port, message } => self.request_arrived(port, message, context),
            Event::Credit { port, class } => {
                let transmitter = &mut self.ports[usize::from(port.0)].transmitter;
                let is_awaited = transmitter.waiting(class) > 0;
                transmitter.credit_returned(class, context);
                self.note_egress(usize::from(port.0), context.now());
                // Answers that waited may have held requests back.
                if is_awaited && self.ports.iter().flat_map(Port::heads).any(|passed| passed <= context.now()) {
                    self.service(context);
                }
            }
            Event::Wake { token: ANSWER } => self.answer(context),
            // A wake that an earlier one has replaced finds another time armed, or none.
            Event::Wake { .. } if self.armed == context.now() => {
                self.armed = Time::NEVER;
                self.service(context);
            }
            Event::Wake { .. } => {}
        }
    }

    fn power_fail(&mut self) {
        self.ports.iter_mut().for_each(Port::power_fail);
        self.egress.clear();
        self.medium.power_fail();
        self.armed = Time::NEVER;
    }

    fn recover(&mut self, context: &mut Context<'_>) {
        self.service(context);
    }

    fn is_idle(&self) -> bool {
        self.ports.iter().all(Port::is_idle) && self.egress.is_empty() && self.medium.is_idle()
    }

    fn waiting(&self) -> Vec<String> {
        let mut waiting = Vec::new();
        for (number, port) in self.ports.iter().enumerate() {
            let place = if self.ports.len() == 1 { String::new() } else { format!("port {number}: ") };
            for (ingress, (class, answer)) in port.ingress.iter().zip(mem::REQUEST_CLASSES) {
                if !ingress.queue.is_empty() {
                    let requests = format!("{} {}", ingress.queue.len(), class.name());
                    waiting.push(format!("{place}{requests} wait for room in the medium"));
                }
                let count = port.transmitter.waiting(answer);
                if count > 0 {
                    waiting.push(format!("{place}{count} {} wait for credits", answer.name()));
                }
            }
        }
        waiting.extend(self.medium.waiting());
        waiting
    }

    fn gauges(&self) -> Vec<(String, u64)> {
        let [reads, writes] = self.medium.gauges();
        vec![("reads in the queue".to_owned(), reads), ("writes in the queue".to_owned(), writes)]
    }

    fn stats(&self, now: Time) -> StatsNode {
        let stats = &self.stats;
        let (medium_name, medium) = self.medium.stats(now);
        let mut nodes: Vec<(String, StatsNode)> = [
            ("reads", StatsNode::Counter(stats.reads)),
            ("writes", StatsNode::Counter(stats.writes)),
            ("read_bytes", StatsNode::Counter(stats.read_bytes)),
            ("write_bytes", StatsNode::Counter(stats.write_bytes)),
            ("read_queue_full", StatsNode::Counter(stats.read_queue_full)),
            ("read_queue_full_ps", StatsNode::Counter(stats.read_queue_full_ps)),
            ("write_queue_full", StatsNode::Counter(stats.write_queue_full)),
            ("write_queue_full_ps", StatsNode::Counter(stats.write_queue_full_ps)),
            ("read_latency_ps", StatsNode::histogram(&stats.read_latency_ps)),
            ("write_latency_ps", StatsNode::histogram(&stats.write_latency_ps)),
            (medium_name, medium),
        ]
        .map(|(name, node)| (name.to_owned(), node))
        .into();
        let ports = self.ports.iter().enumerate();
        nodes.extend(ports.map(|(number, port)| (format!("port{number}"), port.transmitter.stats(now))));
        StatsNode::group(nodes)
    }
}
