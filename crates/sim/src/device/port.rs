//! A port of a memory device: what arrived by its link and waits for the medium, and the way back.

use std::collections::VecDeque;

use super::medium::Medium;
use fencepost_kernel::PortId;
use fencepost_kernel::line::LineAddress;
use fencepost_kernel::link::{LinkConfig, Transmitter};
use fencepost_kernel::message::{Message, mem};
use fencepost_kernel::time::{Duration, Time};

/// One end of a link.
#[derive(Clone, Debug)]
pub struct Port {
    /// Sends answers, and returns the credits of requests.
    pub transmitter: Transmitter,
    /// Requests that occupy buffer places of the link, in the order of [`mem::REQUEST_CLASSES`].
    pub ingress: [Ingress; mem::REQUEST_CLASSES.len()],
}

/// Requests of one class, with the time at which each has passed the pipeline.
#[derive(Clone, Debug, Default)]
pub struct Ingress {
    /// In the order of their arrival.
    pub queue: VecDeque<(Time, Message)>,
    /// Since when the first one waits for room in the medium.
    blocked_since: Option<Time>,
}

impl Port {
    /// Port `number`, at the end of a link like `link`.
    pub fn new(number: PortId, link: &LinkConfig) -> Port {
        Port { transmitter: Transmitter::new(number, link), ingress: Default::default() }
    }

    /// When the first request of each class has passed the pipeline.
    pub fn heads(&self) -> impl Iterator<Item = Time> {
        self.ingress.iter().filter_map(|ingress| ingress.queue.front().map(|(passed, _)| *passed))
    }

    /// When the next request passes the pipeline after `now`.
    pub fn next_passing(&self, now: Time) -> Option<Time> {
        let next = |ingress: &Ingress| {
            let passed = ingress.queue.partition_point(|(passed, _)| *passed <= now);
            ingress.queue.get(passed).map(|(passed, _)| *passed)
        };
        self.ingress.iter().filter_map(next).min()
    }

    /// The first request of a class that the medium takes at `now`, by its place. Those to one channel go in the order
    /// of their arrival, and hold up no others.
    pub fn first_with_room(&self, ingress: usize, medium: &Medium, now: Time) -> Option<usize> {
        let mut full_channels = 0_u64;
        for (place, (_, message)) in self.passed(ingress, now).enumerate() {
            let channel = 1 << medium.channel(message.line);
            if full_channels & channel != 0 {
                continue;
            }
            if self.is_next(message) && medium.has_room(message) {
                return Some(place);
            }
            full_channels |= channel;
            if full_channels.count_ones() == medium.channels() {
                break;
            }
        }
        None
    }

    /// Whether the oldest request of a class has passed the pipeline at `now` and waits for room in the medium only.
    pub fn is_head_without_room(&self, ingress: usize, medium: &Medium, now: Time) -> bool {
        self.passed(ingress, now).next().is_some_and(|(_, message)| self.is_next(message) && !medium.has_room(message))
    }

    /// The requests of a class that have passed the pipeline at `now`.
    fn passed(&self, ingress: usize, now: Time) -> impl Iterator<Item = &(Time, Message)> {
        self.ingress[ingress].queue.iter().take_while(move |(passed, _)| *passed <= now)
    }

    /// Whether nothing waits here that must get to the medium before `message`.
    fn is_next(&self, message: &Message) -> bool {
        message.is_write() || !self.has_waiting_write(message.line)
    }

    /// Whether a write to `line` waits here. A read that came after it must not get to the medium before it.
    fn has_waiting_write(&self, line: LineAddress) -> bool {
        self.ingress[1].queue.iter().any(|(_, message)| message.line == line)
    }

    /// Writes that wait here.
    pub fn waiting_writes(&self) -> usize {
        self.ingress[1].queue.len()
    }

    /// Whether nothing waits here and every credit has come back.
    pub fn is_idle(&self) -> bool {
        self.ingress.iter().all(|ingress| ingress.queue.is_empty()) && self.transmitter.is_idle()
    }

    /// Power is gone: what waited is lost.
    pub fn power_fail(&mut self) {
        self.transmitter.power_fail();
        self.ingress = Default::default();
    }
}

impl Ingress {
    /// The first request finds no room; whether it had not yet noticed.
    pub fn block(&mut self, now: Time) -> bool {
        let is_new = self.blocked_since.is_none();
        self.blocked_since.get_or_insert(now);
        is_new
    }

    /// The first request finds room; how long it has waited for that.
    pub fn unblock(&mut self, now: Time) -> Duration {
        self.blocked_since.take().map_or(Duration::ZERO, |since| now.since(since))
    }
}
