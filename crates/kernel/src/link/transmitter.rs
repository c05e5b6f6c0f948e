//! One end of a link: sends messages as credits allow, and returns the credits of what came in.

use std::collections::VecDeque;

use super::config::LinkConfig;
use super::packing::Packing;
use super::retry::Retry;
use super::schedule::Schedule;
use crate::component::Context;
use crate::id::PortId;
use crate::message::{Credits, Message, MessageClass, Stage};
use crate::stats::StatsNode;
use crate::time::Time;

/// What a transmitter counted.
#[derive(Clone, Debug, Default)]
pub struct TransmitterStats {
    /// Messages sent, per class.
    pub messages: [u64; MessageClass::COUNT],
    /// Slots that messages took, of 16 bytes or shorter ones for headers only.
    pub slots: u64,
    /// Messages that found no credit when offered, per class.
    pub credit_stalls: [u64; MessageClass::COUNT],
    /// Time messages waited for a credit, per class, in ps.
    pub credit_wait_ps: [u64; MessageClass::COUNT],
    /// Time during which at least one message waited for a credit, per class, in ps.
    pub credit_stall_ps: [u64; MessageClass::COUNT],
    /// Time messages waited for the link itself, retries included, in ps.
    pub link_wait_ps: u64,
}

/// One end of a link. The buffers of what comes in belong to its component.
#[derive(Clone, Debug)]
pub struct Transmitter {
    port: PortId,
    packing: Packing,
    schedule: Schedule,
    initial_credits: Credits,
    credits: [u16; MessageClass::COUNT],
    waiting: [VecDeque<(Message, Time)>; MessageClass::COUNT],
    /// Since when something waits, for classes of which something does.
    stalled_since: [Time; MessageClass::COUNT],
    next_class: usize,
    stats: TransmitterStats,
}

impl Transmitter {
    /// The transmitter of `port` on a link like `config`, all credits in hand.
    pub fn new(port: PortId, config: &LinkConfig) -> Transmitter {
        Transmitter {
            port,
            packing: Packing::new(config.flit_format, config.one_header_per_slot),
            schedule: Schedule::new(config),
            initial_credits: config.credits,
            credits: config.credits.by_class(),
            waiting: Default::default(),
            stalled_since: Default::default(),
            next_class: 0,
            stats: TransmitterStats::default(),
        }
    }

    /// Takes `message` and sends it as soon as its class has a credit; within a class in the order offered.
    #[inline]
    pub fn offer(&mut self, message: Message, context: &mut Context<'_>) {
        if self.has_credit(message.class(), context) {
            self.transmit(message, context);
        } else {
            let class = message.class().index();
            self.stats.credit_stalls[class] += 1;
            if self.waiting[class].is_empty() {
                self.stalled_since[class] = context.now();
            }
            self.waiting[class].push_back((message, context.now()));
        }
    }

    /// The receiver has freed a place of `class`: what waits for it goes out.
    #[inline]
    pub fn credit_returned(&mut self, class: MessageClass, context: &mut Context<'_>) {
        self.credits[class.index()] += 1;
        debug_assert!(
            self.credits[class.index()] <= self.initial_credits.of(class),
            "the receiver returned a credit it never got"
        );
        if self.waiting.iter().any(|waiting| !waiting.is_empty()) {
            self.send_waiting(context);
        }
    }

    /// A buffer place of `class`, which something that came in by this port had, is free again: the credit goes back
    /// with the next flit.
    #[inline]
    pub fn return_credit(&mut self, class: MessageClass, context: &mut Context<'_>) {
        let arrival = self.schedule.return_credit(class, context.now());
        context.return_credit(self.port, class, arrival);
    }

    /// Whether a message of `class` would find a credit.
    #[inline]
    pub fn has_credit(&mut self, class: MessageClass, context: &mut Context<'_>) -> bool {
        self.waiting[class.index()].is_empty() && self.take_credit(class, context)
    }

    /// Whether a credit of `class` is in hand; if not, the next one comes as an event.
    #[inline]
    fn take_credit(&mut self, class: MessageClass, context: &mut Context<'_>) -> bool {
        let credits = &mut self.credits[class.index()];
        if *credits == 0 {
            *credits = context.take_credits(self.port, class);
            debug_assert!(*credits <= self.initial_credits.of(class), "the receiver returned a credit it never got");
        }
        *credits > 0
    }

    /// From when on at most one flit is waiting to start: the time to offer the next message without queueing on the
    /// link.
    #[inline]
    pub fn ready_at(&self, now: Time) -> Time {
        self.packing.ready_at(now)
    }

    /// The credits of `class` in hand. Others may have come back without an event and not be taken yet, until all is at
    /// rest.
    #[inline]
    pub fn credits(&self, class: MessageClass) -> u16 {
        self.credits[class.index()]
    }

    /// How many messages of `class` wait for credits here.
    #[inline]
    pub fn waiting(&self, class: MessageClass) -> usize {
        self.waiting[class.index()].len()
    }

    /// How many credits have not come back; exact where all is at rest.
    pub fn missing_credits(&self) -> u64 {
        let initial = self.initial_credits.by_class();
        initial.into_iter().zip(self.credits).map(|(initial, now)| u64::from(initial.abs_diff(now))).sum()
    }

    /// Whether nothing waits here and every credit has come back; exact where all is at rest.
    pub fn is_idle(&self) -> bool {
        self.waiting.iter().all(VecDeque::is_empty) && self.credits == self.initial_credits.by_class()
    }

    /// Power is gone: what waited is lost, and the link starts again with all its credits.
    pub fn power_fail(&mut self) {
        self.waiting = Default::default();
        self.credits = self.initial_credits.by_class();
        self.packing.power_fail();
        self.schedule.power_fail();
    }

    /// Everything counted so far.
    pub fn counters(&self) -> &TransmitterStats {
        &self.stats
    }

    /// Flits that carried messages, each counted once.
    pub fn flits(&self) -> u64 {
        self.schedule.flits()
    }

    /// Everything counted up to `now`, as a tree.
    pub fn stats(&self, now: Time) -> StatsNode {
        let stats = &self.stats;
        let (schedule, retry) = (&self.schedule, self.schedule.retry.as_deref());
        let of_retry = |count: fn(&Retry) -> u64| StatsNode::Counter(retry.map_or(0, count));
        let per_class = |values: &[u64; MessageClass::COUNT]| {
            let carried = self.initial_credits.carried();
            StatsNode::group(carried.map(|class| (class.name(), StatsNode::Counter(values[class.index()]))))
        };
        StatsNode::group([
            ("messages", per_class(&stats.messages)),
            ("flits", StatsNode::Counter(schedule.flits())),
            ("control_flits", StatsNode::Counter(schedule.control_flits(now))),
            ("slots", StatsNode::Counter(stats.slots)),
            ("credit_stalls", per_class(&stats.credit_stalls)),
            ("credit_wait_ps", per_class(&stats.credit_wait_ps)),
            ("credit_stall_ps", per_class(&stats.credit_stall_ps)),
            ("link_wait_ps", StatsNode::Counter(stats.link_wait_ps)),
            ("busy_ps", StatsNode::Counter(schedule.busy_ps.saturating_sub(schedule.reserved_ps(now)))),
            ("crc_errors", of_retry(|retry| retry.crc_errors)),
            ("replayed_flits", of_retry(|retry| retry.replayed_flits)),
            ("retry_ps", of_retry(|retry| retry.retry_ps)),
            ("retry_buffer_wait_ps", of_retry(|retry| retry.buffer_wait_ps)),
        ])
    }

    /// Sends what has credits, one message of each class in turn.
    fn send_waiting(&mut self, context: &mut Context<'_>) {
        let mut idle_classes = 0;
        while idle_classes < MessageClass::COUNT {
            let class = self.next_class;
            self.next_class = (class + 1) % MessageClass::COUNT;
            if self.waiting[class].is_empty() || !self.take_credit(MessageClass::ALL[class], context) {
                idle_classes += 1;
                continue;
            }
            let (message, offered) = self.waiting[class].pop_front().expect("something waits");
            self.stats.credit_wait_ps[class] += context.now().since(offered).as_ps();
            self.stats.credit_stall_ps[class] += context.now().since(self.stalled_since[class]).as_ps();
            self.stalled_since[class] = context.now();
            self.transmit(message, context);
            idle_classes = 0;
        }
    }

    fn transmit(&mut self, mut message: Message, context: &mut Context<'_>) {
        let class = message.class();
        self.credits[class.index()] -= 1;
        self.stats.messages[class.index()] += 1;
        let now = context.now();
        if self.schedule.is_instant() {
            let arrival = self.schedule.instant_arrival(now);
            message.stack.charge(Stage::Link, arrival);
            return context.send(self.port, message, arrival);
        }
        if self.schedule.flits() == 0
            && let Some(retry) = &mut self.schedule.retry
        {
            retry.seed(u64::from(context.component().0) << 16 | u64::from(self.port.0));
        }
        let placement = self.packing.place(message.opcode, now, &mut self.schedule);
        self.stats.slots += placement.slots;
        self.stats.link_wait_ps += placement.header.delivered.since(now).as_ps();
        message.stack.charge(Stage::LinkWait, placement.header.delivered.max(message.stack.charged_until()));
        message.stack.charge(Stage::Link, placement.arrival);
        context.send(self.port, message, placement.arrival);
    }
}
