//! The controller of a memory device: the end of a link, a fixed pipeline, and the medium behind it.
//!
//! An arrived request keeps its buffer place, and so the sender's credit, until the medium has room for it; a full medium thus holds back
//! the fabric. Requests without data and with data wait apart, so a full write queue does not stop reads. Answers go back through a
//! transmitter; when they cannot leave, the medium gets nothing more to answer.

use std::collections::VecDeque;

use super::medium::{Completion, Medium, MediumConfig};
use crate::host_bridge::Interleave;
use crate::kernel::link::{LinkConfig, Receiver, Transmitter};
use crate::kernel::{Component, Context, Duration, Event, PortId, Time};
use crate::message::{LINE_BYTES, LineAddress, Message, MessageClass, Stage, Version};
use crate::stats::{Histogram, StatsNode};

/// The port to the fabric or the host bridge.
pub const DEVICE_PORT: PortId = PortId(0);

/// The classes of requests, in the order in which they are looked at, each with the class of its answers.
const REQUEST_CLASSES: [(MessageClass, MessageClass); 2] = [
    (MessageClass::Request, MessageClass::DataResponse),
    (MessageClass::RequestWithData, MessageClass::NoDataResponse),
];

/// Wakes for requests that have passed the pipeline and for the medium.
const SERVICE: u64 = 0;
/// Wakes for answers that have passed the pipeline; one for each.
const ANSWER: u64 = 1;

/// A memory device.
#[derive(Clone, Debug)]
pub struct Device {
    latency: Duration,
    transmitter: Transmitter,
    receiver: Receiver,
    /// Requests that occupy buffer places of the link, in the order of [`REQUEST_CLASSES`].
    ingress: [Ingress; 2],
    medium: Medium,
    /// Answers in the pipeline, by the time at which they leave it.
    egress: VecDeque<(Time, Message)>,
    /// The earliest [`SERVICE`] wake that is still to come.
    armed: Time,
    /// Room for what the medium answers; empty between events.
    completions: Vec<Completion>,
    stats: DeviceStats,
}

/// Requests of one class, with the time at which each has passed the pipeline.
#[derive(Clone, Debug, Default)]
struct Ingress {
    queue: VecDeque<(Time, Message)>,
    /// Since when the first one waits for room in the medium.
    blocked_since: Option<Time>,
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
    /// Time during which a read waited for room in the read queue, in ps.
    pub read_queue_full_ps: u64,
    /// Writes that found the write queue full.
    pub write_queue_full: u64,
    /// Time during which a write waited for room in the write queue, in ps.
    pub write_queue_full_ps: u64,
    /// From a read's arrival until its data leave for the link.
    pub read_latency_ps: Histogram,
    /// From a write's arrival until its completion leaves for the link.
    pub write_latency_ps: Histogram,
}

impl Device {
    /// A device like `config` at the end of a `link`. Its lines are those of one way of `interleave`.
    pub fn new(config: &MediumConfig, link: &LinkConfig, interleave: Interleave) -> Device {
        Device {
            latency: Duration::from_ns(config.controller_latency_ns()),
            transmitter: Transmitter::new(DEVICE_PORT, link),
            receiver: Receiver::new(DEVICE_PORT, link),
            ingress: Default::default(),
            medium: Medium::new(config, interleave),
            egress: VecDeque::new(),
            armed: Time::NEVER,
            completions: Vec::new(),
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

    /// The version of `line` that a power cut now would leave here; none if the medium is volatile.
    pub fn durable_version(&self, line: LineAddress) -> Option<Version> {
        self.medium.durable_version(line)
    }

    /// Writes `version` of `line` before time starts: what a program had written before its region of interest.
    pub fn preload(&mut self, line: LineAddress, version: Version) {
        self.medium.preload(line, version);
    }

    /// Everything counted so far, without link and medium.
    pub fn counters(&self) -> &DeviceStats {
        &self.stats
    }

    fn request_arrived(&mut self, message: Message, context: &mut Context<'_>) {
        let ingress = match message.is_write() {
            false => {
                self.stats.reads += 1;
                &mut self.ingress[0]
            }
            true => {
                self.stats.writes += 1;
                self.stats.write_bytes += u64::from(message.mask.0.count_ones());
                &mut self.ingress[1]
            }
        };
        let passed = self.medium.entry_time(context.now() + self.latency);
        ingress.queue.push_back((passed, message));
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
        let first = |ingress: &Ingress| ingress.queue.front().map(|(passed, _)| *passed);
        let passing = self.ingress.iter().filter_map(first).filter(|passed| *passed > now);
        let next = passing.min().unwrap_or(Time::NEVER).min(medium_next);
        self.arm(next, context);
    }

    /// Moves into the medium what has passed the pipeline and finds room. True if something moved.
    fn admit(&mut self, context: &mut Context<'_>) -> bool {
        let now = context.now();
        let mut has_moved = false;
        for (ingress, (class, answer)) in REQUEST_CLASSES.into_iter().enumerate() {
            while let Some((passed, message)) = self.ingress[ingress].queue.front().copied() {
                if passed > now {
                    break;
                }
                if self.transmitter.waiting(answer) >= self.medium.queue_entries(class) {
                    break;
                }
                if !self.medium.has_room(&message) {
                    self.block(ingress, now);
                    break;
                }
                self.unblock(ingress, now);
                self.ingress[ingress].queue.pop_front();
                self.receiver.release(class, context);
                self.medium.accept(message, now, &mut self.completions);
                has_moved = true;
            }
        }
        has_moved
    }

    fn block(&mut self, ingress: usize, now: Time) {
        if self.ingress[ingress].blocked_since.is_none() {
            self.ingress[ingress].blocked_since = Some(now);
            match ingress {
                0 => self.stats.read_queue_full += 1,
                _ => self.stats.write_queue_full += 1,
            }
        }
    }

    fn unblock(&mut self, ingress: usize, now: Time) {
        if let Some(since) = self.ingress[ingress].blocked_since.take() {
            let waited = now.since(since).as_ps();
            match ingress {
                0 => self.stats.read_queue_full_ps += waited,
                _ => self.stats.write_queue_full_ps += waited,
            }
        }
    }

    /// Sends an answer of the medium through the pipeline.
    fn answer_later(&mut self, completion: Completion, context: &mut Context<'_>) {
        let Completion { mut answer, at } = completion;
        let leaves = at + self.latency;
        answer.stack.charge(Stage::DeviceQueue, leaves);
        let place = self.egress.partition_point(|(time, _)| *time <= leaves);
        self.egress.insert(place, (leaves, answer));
        context.wake_at(leaves, ANSWER);
    }

    /// The first answer has passed the pipeline.
    fn answer(&mut self, context: &mut Context<'_>) {
        let (leaves, answer) = self.egress.pop_front().expect("each answer in the pipeline asked for one wake");
        debug_assert_eq!(leaves, context.now());
        let parts = answer.stack.parts_ps();
        let parts = [parts[Stage::DeviceQueue as usize], parts[Stage::Media as usize]];
        let latency = Duration::from_ps(parts.into_iter().map(u64::from).sum());
        if answer.class() == MessageClass::DataResponse {
            self.stats.read_bytes += LINE_BYTES;
            self.stats.read_latency_ps.record(latency);
        } else {
            self.stats.write_latency_ps.record(latency);
        }
        self.transmitter.offer(answer, context);
    }

    /// Asks for a wake at `time`, unless one comes before that.
    fn arm(&mut self, time: Time, context: &mut Context<'_>) {
        if time < self.armed {
            self.armed = time;
            context.wake_at(time, SERVICE);
        }
    }
}

impl Component for Device {
    fn handle(&mut self, event: Event, context: &mut Context<'_>) {
        match event {
            Event::Arrival { message, .. } => self.request_arrived(message, context),
            Event::Credit { class, .. } => {
                self.transmitter.credit_returned(class, context);
                let has_passed = |(passed, _): &(Time, Message)| *passed <= context.now();
                if self.ingress.iter().any(|ingress| ingress.queue.front().is_some_and(has_passed)) {
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
        self.transmitter.power_fail();
        self.ingress = Default::default();
        self.egress.clear();
        self.medium.power_fail();
        self.armed = Time::NEVER;
    }

    fn recover(&mut self, context: &mut Context<'_>) {
        self.service(context);
    }

    fn is_idle(&self) -> bool {
        let has_request = self.ingress.iter().any(|ingress| !ingress.queue.is_empty());
        !has_request && self.egress.is_empty() && self.medium.is_idle() && self.transmitter.is_idle()
    }

    fn waiting(&self) -> Vec<String> {
        let mut waiting = Vec::new();
        for (ingress, (class, answer)) in self.ingress.iter().zip(REQUEST_CLASSES) {
            if !ingress.queue.is_empty() {
                waiting.push(format!("{} {} wait for room in the medium", ingress.queue.len(), class.name()));
            }
            let count = self.transmitter.waiting(answer);
            if count > 0 {
                waiting.push(format!("{count} {} wait for credits", answer.name()));
            }
        }
        waiting.extend(self.medium.waiting());
        waiting
    }

    fn stats(&self, now: Time) -> StatsNode {
        let stats = &self.stats;
        let (medium_name, medium) = self.medium.stats(now);
        StatsNode::group([
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
            ("port", self.transmitter.stats(now)),
            (medium_name, medium),
        ])
    }
}
