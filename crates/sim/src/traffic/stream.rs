//! One stream of a traffic generator: which request comes next, and when it may begin.

use super::config::{Pattern, StreamConfig};
use super::footprint::Footprint;
use super::random::Random;
use super::stats::StreamStats;
use crate::kernel::{Context, Duration, PortId, Time};
use crate::message::{ByteMask, Cause, Message, Stage, Tag, Version};

/// The port to the host bridge.
pub(super) const BRIDGE: PortId = PortId(0);

/// Bits of a tag that name a request within its stream.
const REQUEST_BITS: u32 = 16;

/// What all streams of a host share.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    /// From a request's start to its departure from the last-level cache, and its way back to the core.
    pub cache_latency: Duration,
    /// The version of the latest write: versions of a line only grow.
    pub version: Version,
}

/// A stream at work.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    number: u32,
    footprint: Footprint,
    pattern: Pattern,
    lines_per_request: u32,
    /// The place of the next sequential request.
    next_place: u64,
    places: u64,
    mix: Mix,
    random: Random,
    outstanding: u32,
    lines_outstanding: u32,
    inject_delay: Duration,
    inject_jitter: Duration,
    dependent: bool,
    /// Requests that may still begin.
    left: u64,
    /// When the next one may.
    next_start: Time,
    /// Whether a wake at `next_start` is under way.
    is_armed: bool,
    in_flight: u32,
    lines_in_flight: u32,
    requests: Vec<Request>,
    free: Vec<u16>,
    /// The request of which not all lines have left.
    leaving: Option<u16>,
    pub stats: StreamStats,
}

/// A request under way.
#[derive(Clone, Copy, Debug)]
struct Request {
    start: Time,
    /// The number of its next line, within the footprint.
    next_line: u64,
    lines_to_send: u32,
    lines_unanswered: u32,
    is_write: bool,
}

/// Reads and writes in a fixed proportion, as evenly mixed as can be.
#[derive(Clone, Debug)]
struct Mix {
    writes: u64,
    all: u64,
    phase: u64,
}

impl Mix {
    fn next_is_write(&mut self) -> bool {
        self.phase += self.writes;
        let is_write = self.phase >= self.all;
        if is_write {
            self.phase -= self.all;
        }
        is_write
    }
}

impl Stream {
    /// Stream `number` of its host, with random numbers of its own.
    pub fn new(number: u32, config: &StreamConfig, footprint: Footprint, mut random: Random) -> Stream {
        let lines_per_request = config.lines_per_request();
        let places = footprint.lines() / u64::from(lines_per_request);
        let all = u64::from(config.reads) + u64::from(config.writes);
        let mix = Mix { writes: config.writes.into(), all, phase: random.below(all) };
        let numbers = config.outstanding as usize;
        Stream {
            number,
            pattern: config.pattern,
            lines_per_request,
            next_place: random.below(places),
            places,
            mix,
            outstanding: config.outstanding,
            lines_outstanding: config.lines_outstanding.unwrap_or(u32::MAX),
            inject_delay: Duration::from_ns(config.inject_delay_ns),
            inject_jitter: Duration::from_ns(config.inject_jitter_ns),
            dependent: config.dependent,
            left: config.requests.unwrap_or(u64::MAX),
            next_start: Time::ZERO,
            is_armed: false,
            in_flight: 0,
            lines_in_flight: 0,
            requests: vec![Request::default(); numbers],
            free: (0..numbers).rev().map(|number| number as u16).collect(),
            leaving: None,
            footprint,
            random,
            stats: StreamStats::default(),
        }
    }

    /// The first request begins at any time within the first inject delay, so that streams with equal delays do not beat as one.
    pub fn start(&mut self, context: &mut Context<'_>) {
        let offset = self.random.below((self.inject_delay + self.inject_jitter).as_ps());
        self.next_start = context.now() + Duration::from_ps(offset);
        self.arm(context);
    }

    /// The time has come that a wake was asked for.
    pub fn wake(&mut self, shared: &mut Shared, context: &mut Context<'_>) {
        self.is_armed = false;
        self.go_on(shared, context);
    }

    /// A line of request `number` has its answer.
    pub fn line_answered(&mut self, number: u16, answer: &Message, shared: &mut Shared, context: &mut Context<'_>) {
        self.lines_in_flight -= 1;
        let request = &mut self.requests[usize::from(number)];
        request.lines_unanswered -= 1;
        self.stats.line_answered(request.is_write);
        if request.lines_unanswered == 0 {
            debug_assert_eq!(answer.stack.start(), request.start, "a request's time runs from its start");
            debug_assert_eq!(answer.stack.charged_until(), context.now(), "all of a request's time is charged");
            self.stats.request_answered(request.is_write, &answer.stack);
            self.free.push(number);
            self.in_flight -= 1;
            if self.dependent {
                self.next_start = context.now() + self.next_delay();
            }
        }
        self.go_on(shared, context);
    }

    /// Sends what may leave now, and sees to it that what may leave later does.
    fn go_on(&mut self, shared: &mut Shared, context: &mut Context<'_>) {
        loop {
            if let Some(number) = self.leaving {
                if self.lines_in_flight == self.lines_outstanding {
                    return;
                }
                self.send_line(number, shared, context);
            } else if self.may_begin() && !self.is_armed {
                if self.next_start > context.now() {
                    return self.arm(context);
                }
                self.begin(context.now());
            } else {
                return;
            }
        }
    }

    fn may_begin(&self) -> bool {
        self.in_flight < self.outstanding && self.left > 0
    }

    fn next_delay(&mut self) -> Duration {
        if self.inject_jitter == Duration::ZERO {
            return self.inject_delay;
        }
        self.inject_delay + Duration::from_ps(self.random.below(self.inject_jitter.as_ps() + 1))
    }

    fn arm(&mut self, context: &mut Context<'_>) {
        self.is_armed = true;
        context.wake_at(self.next_start, u64::from(self.number));
    }

    fn begin(&mut self, now: Time) {
        let place = match self.pattern {
            Pattern::Random => self.random.below(self.places),
            Pattern::Sequential => {
                let place = self.next_place;
                self.next_place = if place + 1 == self.places { 0 } else { place + 1 };
                place
            }
        };
        let number = self.free.pop().expect("there are as many numbers as requests under way");
        self.requests[usize::from(number)] = Request {
            start: now,
            next_line: place * u64::from(self.lines_per_request),
            lines_to_send: self.lines_per_request,
            lines_unanswered: self.lines_per_request,
            is_write: self.mix.next_is_write(),
        };
        self.leaving = Some(number);
        self.in_flight += 1;
        self.left -= 1;
        self.next_start = now + self.next_delay();
    }

    fn send_line(&mut self, number: u16, shared: &mut Shared, context: &mut Context<'_>) {
        let request = &mut self.requests[usize::from(number)];
        let line = self.footprint.line(request.next_line);
        let tag = Tag(self.number << REQUEST_BITS | u32::from(number));
        let departure = context.now() + shared.cache_latency;
        let mut message = if request.is_write {
            shared.version = Version(shared.version.0.saturating_add(1));
            Message::write(line, tag, Cause::NonTemporalStore, shared.version, ByteMask::FULL, request.start)
        } else {
            Message::read(line, tag, Cause::DemandRead, request.start)
        };
        message.stack.charge(Stage::Cache, departure);
        context.send(BRIDGE, message, departure);
        request.next_line += 1;
        request.lines_to_send -= 1;
        if request.lines_to_send == 0 {
            self.leaving = None;
        }
        self.lines_in_flight += 1;
    }

    /// Lines that were sent, and those that were answered besides.
    pub fn progress(&self) -> u64 {
        2 * self.stats.lines() + u64::from(self.lines_in_flight)
    }

    /// Whether nothing is under way and nothing more will begin.
    pub fn is_at_end(&self) -> bool {
        self.in_flight == 0 && self.left == 0
    }

    /// Power is gone: what was under way is lost, and nothing more begins.
    pub fn power_fail(&mut self) {
        self.left = 0;
        self.in_flight = 0;
        self.lines_in_flight = 0;
        self.leaving = None;
        self.is_armed = false;
    }

    /// What is under way, for the deadlock report; nothing if there is nothing.
    pub fn waiting(&self) -> Option<String> {
        let (number, lines) = (self.number, self.lines_in_flight);
        (self.in_flight > 0).then(|| format!("stream {number}: {} requests wait for {lines} lines", self.in_flight))
    }
}

impl Default for Request {
    fn default() -> Self {
        Request { start: Time::ZERO, next_line: 0, lines_to_send: 0, lines_unanswered: 0, is_write: false }
    }
}

/// The stream and the request that a tag names.
pub(super) fn named_by(tag: Tag) -> (usize, u16) {
    ((tag.0 >> REQUEST_BITS) as usize, tag.0 as u16)
}
