//! One direction of a link: slots packed into flits, and credits per message class.
//!
//! The sender owns a [`Transmitter`], the receiver a [`Receiver`]. Bandwidth is a reservation of the next free slot, not a queue of events; a
//! message waits in the transmitter only for credits. Slot sizes follow the 68-byte flit of the CXL specification (3.1, chapter 4.2.3): a flit
//! carries four 16-byte slots; a line of data takes four; an M2S header takes one; two S2M headers share one.

use std::collections::VecDeque;

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::component::{Context, PortId};
use super::time::{Duration, Time};
use crate::message::{Message, MessageClass, Stage};
use crate::stats::StatsNode;

const SLOTS_PER_FLIT: u8 = 4;
const DATA_SLOTS: u8 = 4;

/// A link, both directions alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct LinkConfig {
    /// Payload bandwidth of one direction, in GB/s (10^9 bytes a second), flit overhead included.
    #[garde(range(min = 0.1, max = 10_000.0))]
    #[schemars(range(min = 0.1, max = 10_000.0))]
    pub bandwidth_gb_per_s: f64,
    /// Bytes of a flit on the wire; it carries four 16-byte slots.
    #[garde(range(min = 64, max = 256))]
    #[schemars(range(min = 64, max = 256))]
    pub flit_bytes: u32,
    /// One way, from the transmitter's port to the receiver's buffer, both ports' logic included and serialisation excluded, in ns.
    #[garde(range(min = 0.0, max = 100_000.0))]
    #[schemars(range(min = 0.0, max = 100_000.0))]
    pub latency_ns: f64,
    /// Buffer places at the receiver for M2S Req, and so the credits the transmitter starts with.
    #[garde(range(min = 1, max = 4096))]
    #[schemars(range(min = 1, max = 4096))]
    pub request_credits: u16,
    /// Buffer places for M2S RwD.
    #[garde(range(min = 1, max = 4096))]
    #[schemars(range(min = 1, max = 4096))]
    pub request_with_data_credits: u16,
    /// Buffer places for S2M NDR.
    #[garde(range(min = 1, max = 4096))]
    #[schemars(range(min = 1, max = 4096))]
    pub no_data_response_credits: u16,
    /// Buffer places for S2M DRS.
    #[garde(range(min = 1, max = 4096))]
    #[schemars(range(min = 1, max = 4096))]
    pub data_response_credits: u16,
}

impl LinkConfig {
    /// Credits per class, in the order of [`MessageClass::ALL`].
    pub fn credits(&self) -> [u16; MessageClass::COUNT] {
        [
            self.request_credits,
            self.request_with_data_credits,
            self.no_data_response_credits,
            self.data_response_credits,
        ]
    }

    /// How long one flit occupies the link.
    pub fn flit_time(&self) -> Duration {
        Duration::from_ps((f64::from(self.flit_bytes) * 1000.0 / self.bandwidth_gb_per_s).round() as u64)
    }
}

/// What a transmitter counted.
#[derive(Clone, Debug, Default)]
pub struct TransmitterStats {
    /// Messages sent, per class.
    pub messages: [u64; MessageClass::COUNT],
    /// Flits that carried at least one slot.
    pub flits: u64,
    /// Slots used in them; four times `flits` is a full link.
    pub slots: u64,
    /// Messages that found no credit when offered, per class.
    pub credit_stalls: [u64; MessageClass::COUNT],
    /// Time messages waited for a credit, per class, in ps.
    pub credit_wait_ps: [u64; MessageClass::COUNT],
    /// Time during which at least one message waited for a credit, per class, in ps.
    pub credit_stall_ps: [u64; MessageClass::COUNT],
    /// Time messages waited for the link itself, in ps.
    pub link_wait_ps: u64,
    /// Time the link was or is already reserved to be occupied, in ps.
    pub busy_ps: u64,
}

/// The sending end: packs messages into flits, as credits allow.
#[derive(Clone, Debug)]
pub struct Transmitter {
    port: PortId,
    flit_time: Duration,
    latency: Duration,
    initial_credits: [u16; MessageClass::COUNT],
    credits: [u16; MessageClass::COUNT],
    waiting: [VecDeque<(Message, Time)>; MessageClass::COUNT],
    /// Since when something waits, for classes of which something does.
    stalled_since: [Time; MessageClass::COUNT],
    next_class: usize,
    /// The last flit that was started or reserved; it closes at its start.
    flit_start: Time,
    /// Since when, up to that flit's end, flits follow each other without a gap.
    busy_since: Time,
    slots_used: u8,
    half_slot_open: bool,
    stats: TransmitterStats,
}

impl Transmitter {
    /// The transmitter of `port` on a link like `config`, all credits in hand.
    pub fn new(port: PortId, config: &LinkConfig) -> Transmitter {
        Transmitter {
            port,
            flit_time: config.flit_time(),
            latency: Duration::from_ns(config.latency_ns),
            initial_credits: config.credits(),
            credits: config.credits(),
            waiting: Default::default(),
            stalled_since: Default::default(),
            next_class: 0,
            flit_start: Time::ZERO,
            busy_since: Time::ZERO,
            slots_used: SLOTS_PER_FLIT,
            half_slot_open: false,
            stats: TransmitterStats::default(),
        }
    }

    /// Takes `message` and sends it as soon as its class has a credit; within a class in the order offered.
    pub fn offer(&mut self, message: Message, context: &mut Context<'_>) {
        let class = message.class().index();
        if self.credits[class] > 0 && self.waiting[class].is_empty() {
            self.transmit(message, context);
        } else {
            self.stats.credit_stalls[class] += 1;
            if self.waiting[class].is_empty() {
                self.stalled_since[class] = context.now();
            }
            self.waiting[class].push_back((message, context.now()));
        }
    }

    /// The receiver has freed a place of `class`: what waits for it goes out.
    pub fn credit_returned(&mut self, class: MessageClass, context: &mut Context<'_>) {
        self.credits[class.index()] += 1;
        debug_assert!(
            self.credits[class.index()] <= self.initial_credits[class.index()],
            "the receiver returned a credit it never got"
        );
        self.send_waiting(context);
    }

    /// Whether a message of `class` would find a credit.
    pub fn has_credit(&self, class: MessageClass) -> bool {
        self.credits[class.index()] > 0 && self.waiting[class.index()].is_empty()
    }

    /// From when on at most one flit is waiting to start: the time to offer the next message without queueing on the link.
    pub fn ready_at(&self, now: Time) -> Time {
        if self.flit_start > now && self.slots_used == SLOTS_PER_FLIT { self.flit_start } else { now }
    }

    /// How many messages of `class` wait for credits here.
    pub fn waiting(&self, class: MessageClass) -> usize {
        self.waiting[class.index()].len()
    }

    /// Whether nothing waits here and every credit has come back.
    pub fn is_idle(&self) -> bool {
        self.waiting.iter().all(VecDeque::is_empty) && self.credits == self.initial_credits
    }

    /// Power is gone: what waited is lost, and the link starts again with all its credits.
    pub fn power_fail(&mut self) {
        self.waiting = Default::default();
        self.credits = self.initial_credits;
        self.slots_used = SLOTS_PER_FLIT;
        self.half_slot_open = false;
    }

    /// Everything counted so far.
    pub fn counters(&self) -> &TransmitterStats {
        &self.stats
    }

    /// Everything counted up to `now`, as a tree.
    pub fn stats(&self, now: Time) -> StatsNode {
        let stats = &self.stats;
        let reserved = (self.flit_start + self.flit_time).since(now.max(self.busy_since));
        let per_class = |values: &[u64; MessageClass::COUNT]| {
            StatsNode::group(
                MessageClass::ALL.iter().map(|class| (class.name(), StatsNode::Counter(values[class.index()]))),
            )
        };
        StatsNode::group([
            ("messages", per_class(&stats.messages)),
            ("flits", StatsNode::Counter(stats.flits)),
            ("slots", StatsNode::Counter(stats.slots)),
            ("credit_stalls", per_class(&stats.credit_stalls)),
            ("credit_wait_ps", per_class(&stats.credit_wait_ps)),
            ("credit_stall_ps", per_class(&stats.credit_stall_ps)),
            ("link_wait_ps", StatsNode::Counter(stats.link_wait_ps)),
            ("busy_ps", StatsNode::Counter(stats.busy_ps.saturating_sub(reserved.as_ps()))),
        ])
    }

    /// Sends what has credits, one message of each class in turn.
    fn send_waiting(&mut self, context: &mut Context<'_>) {
        let mut idle_classes = 0;
        while idle_classes < MessageClass::COUNT {
            let class = self.next_class;
            self.next_class = (class + 1) % MessageClass::COUNT;
            if self.credits[class] == 0 {
                idle_classes += 1;
                continue;
            }
            match self.waiting[class].pop_front() {
                Some((message, offered)) => {
                    self.stats.credit_wait_ps[class] += context.now().since(offered).as_ps();
                    self.stats.credit_stall_ps[class] += context.now().since(self.stalled_since[class]).as_ps();
                    self.stalled_since[class] = context.now();
                    self.transmit(message, context);
                    idle_classes = 0;
                }
                None => idle_classes += 1,
            }
        }
    }

    fn transmit(&mut self, mut message: Message, context: &mut Context<'_>) {
        let class = message.class();
        self.credits[class.index()] -= 1;
        self.stats.messages[class.index()] += 1;
        let now = context.now();
        let (first_flit, last_flit) = self.reserve(class, now);
        let arrival = last_flit + self.flit_time + self.latency;
        self.stats.link_wait_ps += first_flit.since(now).as_ps();
        message.stack.charge(Stage::LinkWait, first_flit.max(message.stack.charged_until()));
        message.stack.charge(Stage::Link, arrival);
        context.send(self.port, message, arrival);
    }

    /// Finds room for a message; gives the starts of the flits that carry its first and its last slot.
    fn reserve(&mut self, class: MessageClass, now: Time) -> (Time, Time) {
        let shares_header_slot = matches!(class, MessageClass::NoDataResponse | MessageClass::DataResponse);
        let first = if shares_header_slot && self.half_slot_open && self.flit_start >= now {
            self.half_slot_open = false;
            self.flit_start
        } else {
            let start = self.take_slot(now);
            self.half_slot_open = shares_header_slot;
            start
        };
        let mut last = first;
        if matches!(class, MessageClass::RequestWithData | MessageClass::DataResponse) {
            for _ in 0..DATA_SLOTS {
                last = self.take_slot(now);
            }
        }
        (first, last)
    }

    fn take_slot(&mut self, now: Time) -> Time {
        if self.slots_used == SLOTS_PER_FLIT || self.flit_start < now {
            let free = if self.stats.flits == 0 { now } else { self.flit_start + self.flit_time };
            self.flit_start = free.max(now);
            if self.flit_start > free || self.stats.flits == 0 {
                self.busy_since = self.flit_start;
            }
            self.slots_used = 0;
            self.half_slot_open = false;
            self.stats.flits += 1;
            self.stats.busy_ps += self.flit_time.as_ps();
        }
        self.slots_used += 1;
        self.stats.slots += 1;
        self.flit_start
    }
}

/// The receiving end: it only returns credits. The buffer itself belongs to the component.
#[derive(Clone, Copy, Debug)]
pub struct Receiver {
    port: PortId,
    latency: Duration,
}

impl Receiver {
    /// The receiver of `port` on a link like `config`.
    pub fn new(port: PortId, config: &LinkConfig) -> Receiver {
        Receiver { port, latency: Duration::from_ns(config.latency_ns) }
    }

    /// A buffer place of `class` is free again; the credit travels back with the link's latency (in a header field of some flit that
    /// goes there anyway, so it takes no slot).
    pub fn release(&self, class: MessageClass, context: &mut Context<'_>) {
        context.return_credit(self.port, class, context.now() + self.latency);
    }
}

#[cfg(test)]
mod tests {
    use super::super::component::{ComponentId, Event, Wires};
    use super::super::events::EventQueue;
    use super::*;
    use crate::message::{ByteMask, Cause, LineAddress, Tag, Version};

    const SENDER: ComponentId = ComponentId(0);
    const PORT: PortId = PortId(0);

    struct Bench {
        queue: EventQueue,
        wires: Wires,
        transmitter: Transmitter,
    }

    /// A link whose flit takes 1000 ps and whose flight takes 5 ns.
    fn bench(credits: u16) -> Bench {
        let config = LinkConfig {
            bandwidth_gb_per_s: 68.0,
            flit_bytes: 68,
            latency_ns: 5.0,
            request_credits: credits,
            request_with_data_credits: credits,
            no_data_response_credits: credits,
            data_response_credits: credits,
        };
        let mut wires = Wires::default();
        wires.connect((SENDER, PORT), (ComponentId(1), PORT));
        Bench { queue: EventQueue::default(), wires, transmitter: Transmitter::new(PORT, &config) }
    }

    impl Bench {
        fn at<R>(&mut self, ps: u64, act: impl FnOnce(&mut Transmitter, &mut Context<'_>) -> R) -> R {
            let mut context = Context::new(Time::from_ps(ps), SENDER, &mut self.queue, &self.wires);
            act(&mut self.transmitter, &mut context)
        }

        fn offer(&mut self, ps: u64, message: Message) {
            self.at(ps, |transmitter, context| transmitter.offer(message, context));
        }

        fn arrivals(&mut self) -> Vec<(u64, MessageClass)> {
            std::iter::from_fn(|| self.queue.pop())
                .map(|(time, _, event)| match event {
                    Event::Arrival { message, .. } => (time.as_ps(), message.class()),
                    other => panic!("{other:?}"),
                })
                .collect()
        }
    }

    fn read(ps: u64) -> Message {
        Message::read(LineAddress(1), Tag(0), Cause::DemandRead, Time::from_ps(ps))
    }

    fn write(ps: u64) -> Message {
        Message::write(LineAddress(1), Tag(0), Cause::Flush, Version(1), ByteMask::FULL, Time::from_ps(ps))
    }

    #[test]
    fn a_read_takes_one_flit_time_and_the_flight() {
        let mut bench = bench(4);
        bench.offer(0, read(0));
        assert_eq!(bench.arrivals(), [(6_000, MessageClass::Request)]);
    }

    #[test]
    fn a_write_takes_five_slots_and_so_two_flits() {
        let mut bench = bench(4);
        bench.offer(0, write(0));
        assert_eq!(bench.arrivals(), [(7_000, MessageClass::RequestWithData)]);
        assert_eq!(bench.transmitter.counters().slots, 5);
        assert_eq!(bench.transmitter.counters().flits, 2);
    }

    #[test]
    fn four_writes_back_to_back_fill_five_flits() {
        let mut bench = bench(8);
        for _ in 0..4 {
            bench.offer(0, write(0));
        }
        assert_eq!(bench.transmitter.counters().flits, 5);
        assert_eq!(bench.arrivals().last(), Some(&(10_000, MessageClass::RequestWithData)));
    }

    #[test]
    fn a_flit_is_closed_once_it_has_started() {
        let mut bench = bench(4);
        bench.offer(0, read(0));
        bench.offer(1, read(1));
        assert_eq!(bench.arrivals(), [(6_000, MessageClass::Request), (7_000, MessageClass::Request)]);
    }

    #[test]
    fn two_completions_share_a_slot() {
        let mut bench = bench(16);
        for _ in 0..8 {
            bench.offer(0, write(0).answer(Version(1)));
        }
        assert_eq!(bench.transmitter.counters().flits, 1);
        assert_eq!(bench.transmitter.counters().slots, 4);
    }

    #[test]
    fn without_a_credit_a_message_waits_and_other_classes_pass_it() {
        let mut bench = bench(1);
        bench.offer(0, write(0));
        bench.offer(0, write(0));
        bench.offer(0, read(0));
        assert_eq!(bench.arrivals().len(), 2);
        bench.at(50_000, |transmitter, context| {
            transmitter.credit_returned(MessageClass::RequestWithData, context);
        });
        assert_eq!(bench.arrivals(), [(57_000, MessageClass::RequestWithData)]);
        assert_eq!(bench.transmitter.counters().credit_wait_ps[1], 50_000);
        assert!(!bench.transmitter.is_idle());
    }

    #[test]
    fn the_latency_stack_holds_wait_and_flight() {
        let mut bench = bench(8);
        bench.offer(0, write(0));
        bench.offer(500, write(500));
        bench.queue.pop();
        let Some((arrival, _, Event::Arrival { message, .. })) = bench.queue.pop() else { panic!("two were sent") };
        let parts = message.stack.parts_ps();
        assert_eq!(
            parts[Stage::LinkWait as usize],
            500,
            "three slots of the second flit are free, which starts at 1000"
        );
        assert_eq!(message.stack.total(), arrival.since(Time::from_ps(500)));
    }
}
