//! A port: the buffers of what comes in, class by class, and the transmitter of what goes out.

use std::collections::VecDeque;

use fencepost_kernel::PortId;
use fencepost_kernel::link::{BackpressureAverage, LinkConfig, Transmitter};
use fencepost_kernel::message::{Credits, Direction, Message, MessageClass};
use fencepost_kernel::stats::StatsNode;
use fencepost_kernel::time::{Duration, Time};

/// Which way a port looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortDirection {
    /// Towards the hosts: what travels downstream comes in.
    Upstream,
    /// Towards the devices, or a switch further down: what travels upstream comes in.
    Downstream,
    /// Towards a switch with hosts and devices behind it: both come in.
    Both,
}

impl PortDirection {
    /// Whether messages that travel this way come in at such a port.
    pub fn receives(self, direction: Direction) -> bool {
        match self {
            PortDirection::Upstream => direction == Direction::Downstream,
            PortDirection::Downstream => direction == Direction::Upstream,
            PortDirection::Both => true,
        }
    }
}

/// What a switch has to know of one of its ports.
#[derive(Clone, Debug, PartialEq)]
pub struct PortDescription {
    /// The link behind it; both directions are alike.
    pub link: LinkConfig,
    /// Which way it looks.
    pub direction: PortDirection,
}

/// Where a message goes from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Out of a port.
    Port(PortId),
    /// Into the input of the persist buffer's controller (PI).
    Controller,
}

/// A message in an ingress buffer.
#[derive(Clone, Debug)]
pub struct Buffered {
    /// The message; its time is charged up to `ready`.
    pub message: Message,
    /// Where it goes.
    pub destination: Destination,
    /// When it has passed decoding and routing, and may be allocated.
    pub ready: Time,
    /// Where the switch queues fairly, its place in the order of service; 0 elsewhere.
    pub fair_tag: f64,
}

/// The ingress buffer of one port and class: first in, first out, as many places as the link has credits for that
/// class.
#[derive(Clone, Debug, Default)]
pub struct IngressBuffer {
    messages: VecDeque<Buffered>,
    /// Since when the present head has been one.
    head_since: Time,
}

/// How long messages waited behind the head of their buffer because it, and not they, could not go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadOfLine {
    /// Messages that waited behind one for another destination, counted for each they waited behind.
    pub messages: u64,
    /// Their waiting time, in ps.
    pub wait_ps: u64,
}

impl IngressBuffer {
    /// Puts a message at the end, or before those with greater tags. The head stays the head: it may have asked for its
    /// destination.
    pub fn push(&mut self, buffered: Buffered) {
        let behind = self.messages.iter().skip(1).rev().take_while(|other| other.fair_tag > buffered.fair_tag).count();
        self.messages.insert(self.messages.len() - behind, buffered);
    }

    /// The message that goes on next.
    pub fn head(&self) -> Option<&Buffered> {
        self.messages.front()
    }

    /// The head, to be sent elsewhere.
    pub fn head_mut(&mut self) -> Option<&mut Buffered> {
        self.messages.front_mut()
    }

    /// Since when the head could have gone on, had its way been free.
    pub fn head_ready(&self) -> Time {
        self.head().map_or(Time::NEVER, |head| head.ready.max(self.head_since))
    }

    /// Takes the head at `now`, and tells how long others waited for nothing but it.
    pub fn pop(&mut self, now: Time) -> (Buffered, HeadOfLine) {
        let blocked_since = self.head_ready();
        let head = self.messages.pop_front().expect("only a head that is there is taken");
        let mut head_of_line = HeadOfLine::default();
        if blocked_since < now {
            for behind in self.messages.iter().filter(|behind| behind.destination != head.destination) {
                let waited = now.since(blocked_since.max(behind.ready));
                head_of_line.messages += u64::from(waited > Duration::ZERO);
                head_of_line.wait_ps += waited.as_ps();
            }
        }
        self.head_since = now;
        (head, head_of_line)
    }

    /// How many messages are here.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Drops everything: what a power cut does.
    pub fn clear(&mut self) {
        self.messages.clear();
    }
}

/// What a port counted, besides what its transmitter did.
#[derive(Clone, Debug, Default)]
pub struct PortStats {
    /// Messages that came in, per class.
    pub received: [u64; MessageClass::COUNT],
    /// Times that a message at the head of a buffer found no credit for this port, per class.
    pub credit_stalls: [u64; MessageClass::COUNT],
    /// Time during which at least one message stood at the head of a buffer and had no credit for this port, per class,
    /// in ps.
    pub credit_stall_ps: [u64; MessageClass::COUNT],
}

/// One port of a switch.
#[derive(Clone, Debug)]
pub struct Port {
    /// Which way it looks.
    pub direction: PortDirection,
    /// Sends what leaves here, and returns the credits of what came in here.
    pub transmitter: Transmitter,
    /// What came in and has not left its buffer, per class.
    pub ingress: [IngressBuffer; MessageClass::COUNT],
    /// Places of the ingress buffers.
    pub places: Credits,
    /// From when on the crossbar's output to this port is free.
    pub output_free: Time,
    /// When this port is looked at again, if that is arranged.
    pub retry_at: Option<Time>,
    no_credit_since: [Option<Time>; MessageClass::COUNT],
    /// Whether something waits for a credit of this port, as the switch's telemetry samples it; kept if asked for.
    backpressure: Option<BackpressureAverage>,
    stats: PortStats,
}

impl Port {
    /// Port number `id` of a switch.
    pub fn new(id: PortId, description: &PortDescription) -> Port {
        Port {
            direction: description.direction,
            transmitter: Transmitter::new(id, &description.link),
            ingress: Default::default(),
            places: description.link.credits,
            output_free: Time::ZERO,
            retry_at: None,
            no_credit_since: [None; MessageClass::COUNT],
            backpressure: None,
            stats: PortStats::default(),
        }
    }

    /// Puts a message that came in into the buffer of its class.
    pub fn receive(&mut self, buffered: Buffered) {
        let class = buffered.message.class().index();
        self.stats.received[class] += 1;
        self.ingress[class].push(buffered);
        debug_assert!(
            self.ingress[class].len() <= usize::from(self.places.by_class()[class]),
            "the neighbour sent more than its credits allow"
        );
    }

    /// From when on, at `now`, a message may be allocated to this port: it reaches the transmitter `through` later, and
    /// finds the crossbar free and the link with at most one flit still to start.
    pub fn allocatable_at(&self, now: Time, through: Duration) -> Time {
        let at_transmitter = now + through;
        let link_wait = self.transmitter.ready_at(at_transmitter).since(at_transmitter);
        self.output_free.max(now + link_wait)
    }

    /// A message of `class` at the head of a buffer finds no credit.
    pub fn note_no_credit(&mut self, class: MessageClass, now: Time) {
        let since = &mut self.no_credit_since[class.index()];
        if since.is_none() {
            *since = Some(now);
            self.stats.credit_stalls[class.index()] += 1;
            if let Some(backpressure) = &mut self.backpressure {
                backpressure.set(true, now);
            }
        }
    }

    /// A credit of `class` has come; true if a message waited for it.
    pub fn note_credit(&mut self, class: MessageClass, now: Time) -> bool {
        let Some(since) = self.no_credit_since[class.index()].take() else { return false };
        self.stats.credit_stall_ps[class.index()] += now.since(since).as_ps();
        if let Some(backpressure) = &mut self.backpressure {
            backpressure.set(self.no_credit_since.iter().any(Option::is_some), now);
        }
        true
    }

    /// From now on its backpressure average is kept.
    pub fn sample_backpressure(&mut self, average: BackpressureAverage) {
        self.backpressure = Some(average);
    }

    /// The backpressure average at `now`, 0 to 1; 0 if it is not kept.
    pub fn backpressure(&mut self, now: Time) -> f64 {
        self.backpressure.as_mut().map_or(0.0, |backpressure| backpressure.part(now))
    }

    /// Power is gone.
    pub fn power_fail(&mut self) {
        self.transmitter.power_fail();
        self.ingress.iter_mut().for_each(IngressBuffer::clear);
        self.retry_at = None;
        self.no_credit_since = [None; MessageClass::COUNT];
    }

    /// Everything counted so far.
    pub fn counters(&self) -> &PortStats {
        &self.stats
    }

    /// Everything counted up to `now`, as a tree.
    pub fn stats(&self, now: Time) -> StatsNode {
        let per_class = |values: &[u64; MessageClass::COUNT]| {
            let carried = self.places.carried();
            StatsNode::group(carried.map(|class| (class.name(), StatsNode::Counter(values[class.index()]))))
        };
        StatsNode::group([
            ("received", per_class(&self.stats.received)),
            ("credit_stalls", per_class(&self.stats.credit_stalls)),
            ("credit_stall_ps", per_class(&self.stats.credit_stall_ps)),
            ("link", self.transmitter.stats(now)),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost_kernel::line::LineAddress;
    use fencepost_kernel::message::{Cause, Tag};

    fn buffered(destination: u16, ready: u64) -> Buffered {
        let message = Message::read(LineAddress(0), Tag(0), Cause::DemandRead, Time::ZERO);
        Buffered {
            message,
            destination: Destination::Port(PortId(destination)),
            ready: Time::from_ps(ready),
            fair_tag: 0.0,
        }
    }

    #[test]
    fn a_lesser_tag_goes_before_greater_ones_but_not_before_the_head() {
        let mut buffer = IngressBuffer::default();
        for (destination, fair_tag) in [(1, 9.0), (2, 3.0), (3, 5.0), (4, 3.0), (5, 1.0)] {
            buffer.push(Buffered { fair_tag, ..buffered(destination, 0) });
        }
        let order: Vec<_> = (0..5).map(|_| buffer.pop(Time::ZERO).0.destination).collect();
        assert_eq!(order, [1, 5, 2, 4, 3].map(|port| Destination::Port(PortId(port))));
    }

    #[test]
    fn only_time_behind_a_head_for_another_destination_is_head_of_line() {
        let mut buffer = IngressBuffer::default();
        for (destination, ready) in [(1, 100), (2, 150), (1, 200), (2, 900)] {
            buffer.push(buffered(destination, ready));
        }
        let (_, head_of_line) = buffer.pop(Time::from_ps(600));
        assert_eq!(head_of_line, HeadOfLine { messages: 1, wait_ps: 450 }, "the second one, from 150 on");
        let (_, head_of_line) = buffer.pop(Time::from_ps(1000));
        assert_eq!(
            head_of_line,
            HeadOfLine { messages: 1, wait_ps: 400 },
            "the third, from 600 on; the fourth has the same way"
        );
        let (_, head_of_line) = buffer.pop(Time::from_ps(1000));
        assert_eq!(head_of_line, HeadOfLine::default(), "a head that goes at once holds nobody back");
    }
}
