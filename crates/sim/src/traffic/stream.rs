//! One stream of a traffic generator: which request comes next, and when it may begin.

use std::collections::VecDeque;

use fencepost_pacing::DevLoadCounts;
use rustc_hash::FxHashMap;

use super::config::{LAST_LEVEL, Pattern, SharedBy, StreamConfig};
use super::entries::{Entries, Waiting};
use super::footprint::Footprint;
use super::keys::{Client, Keys, Member, Put, StaleRead};
use super::pacing::Pacing;
use super::random::Random;
use super::stats::StreamStats;
use super::zipf::Zipf;
use crate::host_bridge::DeviceMap;
use fencepost_kernel::line::{ByteMask, LINE_BYTES, LineAddress, Version};
use fencepost_kernel::message::{Cause, Flow, Message, Stage, Tag};
use fencepost_kernel::time::{Duration, Time};
use fencepost_kernel::{Context, PortId};

/// The port to the host bridge.
pub(super) const BRIDGE: PortId = PortId(0);

/// Bits of a tag that name a request within its stream.
const REQUEST_BITS: u32 = 16;

/// Marks the wake of a request that waited for its key; below it stands the tag.
const GRANTED: u64 = 1 << 32;

/// Marks the wake at which a line comes from a copy that the host's caches have; below it stands the stream.
const COPIED: u64 = 1 << 33;

/// What all streams of a host share.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    /// From a request's start to its departure from the last-level cache, and its way back to the core.
    pub cache_latency: Duration,
    /// The version of the latest write: versions of a line only grow.
    pub version: Version,
    /// What the host's caches have of lines that several hosts share: nobody takes a copy away.
    pub copies: FxHashMap<LineAddress, Version>,
    /// The last level's entries; without a limit if absent.
    pub entries: Option<Entries>,
    /// Which device a line belongs to, and what answers of each said of its load; kept where a transport runs.
    pub devices: Option<Box<Devices>>,
}

/// The pool's devices as a transport at the host sees them.
#[derive(Clone, Debug)]
pub(super) struct Devices {
    pub map: DeviceMap,
    pub loads: Vec<DevLoadCounts>,
}

impl Shared {
    /// The host got, or put, `version` of a line; within the host caches are coherent, so a copy is its newest.
    fn keep_copy(&mut self, line: LineAddress, version: Version) {
        let copy = self.copies.entry(line).or_default();
        *copy = version.max(*copy);
    }
}

/// A stream at work.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    number: u32,
    footprint: Footprint,
    choice: Choice,
    is_shared: bool,
    caches: bool,
    /// Whether its lines are in the host's last-level cache.
    hits: bool,
    /// Lines of gets that will come from copies, in the order of time.
    copied: VecDeque<(u16, LineAddress, Version)>,
    lines_per_request: u32,
    store: Store,
    mix: Mix,
    modifies: bool,
    random: Random,
    outstanding: u32,
    lines_outstanding: u32,
    inject_delay: Duration,
    inject_jitter: Duration,
    dependent: bool,
    /// From the start of the simulation until it begins.
    begins_after: Duration,
    /// From then on it begins no request.
    ends: Time,
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
    /// Puts that have got their key, the first one first.
    granted: VecDeque<u16>,
    /// What a transport does to it, if there is one.
    pub pacing: Option<Box<Pacing>>,
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
    /// The first line, by which its key is known.
    key: LineAddress,
    /// Since when it has the key that it puts; of all others the start.
    granted: Time,
    /// What a put makes of its key.
    version: Version,
    /// What a get has to see at least.
    promised: Put,
    is_stale: bool,
    /// Whether this get of a key is followed by a put of it.
    is_modified: bool,
}

/// Where the next request goes.
#[derive(Clone, Debug)]
enum Choice {
    Random,
    Sequential { next: u64 },
    Zipfian(Zipf),
    Latest(Zipf),
}

impl Choice {
    fn next(&mut self, store: &Store, is_write: bool, keys: &mut Keys, random: &mut Random) -> u64 {
        let places = store.places;
        match self {
            Choice::Random => random.below(places),
            Choice::Sequential { next } => {
                let place = *next;
                *next = if place + 1 == places { 0 } else { place + 1 };
                place
            }
            Choice::Zipfian(zipf) => zipf.next(random),
            Choice::Latest(_) if is_write => keys.next_place(store.first, places),
            Choice::Latest(zipf) => keys.place_of_age(store.first, places, zipf.rank(random)),
        }
    }
}

/// The places that a stream's requests go to.
#[derive(Clone, Copy, Debug)]
struct Store {
    first: LineAddress,
    places: u64,
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
        let first = random.below(places);
        Stream {
            number,
            choice: match config.pattern {
                Pattern::Random => Choice::Random,
                Pattern::Sequential => Choice::Sequential { next: first },
                Pattern::Zipfian => Choice::Zipfian(Zipf::new(places, footprint.line(0).0)),
                Pattern::Latest => Choice::Latest(Zipf::new(places, footprint.line(0).0)),
            },
            is_shared: config.shared_by != SharedBy::Stream,
            caches: config.caches,
            hits: config.memory == LAST_LEVEL,
            copied: VecDeque::new(),
            lines_per_request,
            store: Store { first: footprint.line(0), places },
            mix,
            modifies: config.modifies,
            outstanding: config.outstanding,
            lines_outstanding: config.lines_outstanding.unwrap_or(u32::MAX),
            inject_delay: Duration::from_ns(config.inject_delay_ns),
            inject_jitter: Duration::from_ns(config.inject_jitter_ns),
            dependent: config.dependent,
            begins_after: Duration::from_ns(config.begin_ns),
            ends: config.end_ns.map_or(Time::NEVER, |ns| Time::ZERO + Duration::from_ns(ns)),
            left: config.requests.unwrap_or(u64::MAX),
            next_start: Time::ZERO,
            is_armed: false,
            in_flight: 0,
            lines_in_flight: 0,
            requests: vec![Request::default(); numbers],
            free: (0..numbers).rev().map(|number| number as u16).collect(),
            leaving: None,
            granted: VecDeque::new(),
            pacing: None,
            footprint,
            random,
            stats: StreamStats::default(),
        }
    }

    /// The first request begins at any time within the first inject delay, so that streams with equal delays do not
    /// beat as one.
    pub fn start(&mut self, context: &mut Context<'_>) {
        let offset = self.random.below((self.inject_delay + self.inject_jitter).as_ps());
        self.next_start = context.now() + self.begins_after + Duration::from_ps(offset);
        self.arm(context);
    }

    /// The time has come that a wake was asked for.
    pub fn wake(&mut self, shared: &mut Shared, keys: &mut Keys, context: &mut Context<'_>) {
        self.is_armed = false;
        self.go_on(shared, keys, context);
    }

    /// Request `number` has got its key.
    pub fn granted(&mut self, number: u16, shared: &mut Shared, keys: &mut Keys, context: &mut Context<'_>) {
        let request = &mut self.requests[usize::from(number)];
        request.granted = context.now();
        request.version = keys.begin(request.key, context.now());
        self.granted.push_back(number);
        self.go_on(shared, keys, context);
    }

    /// A copy answers the line whose turn it is.
    pub fn copy_answers(&mut self, shared: &mut Shared, keys: &mut Keys, context: &mut Context<'_>) {
        // Power may be gone since it was looked up.
        let Some((number, line, version)) = self.copied.pop_front() else { return };
        let request = &self.requests[usize::from(number)];
        let mut message = Message::read(line, self.tag(number), Cause::DemandRead, request.start);
        message.stack.charge(Stage::Cache, context.now());
        self.line_answered(number, &message.answer(version), shared, keys, context);
    }

    /// A line of request `number` has its answer.
    pub fn line_answered(
        &mut self,
        number: u16,
        answer: &Message,
        shared: &mut Shared,
        keys: &mut Keys,
        context: &mut Context<'_>,
    ) {
        self.lines_in_flight -= 1;
        let request = &mut self.requests[usize::from(number)];
        request.lines_unanswered -= 1;
        if self.is_shared && !request.is_write && answer.version < request.promised.version {
            request.is_stale = true;
            keys.note_stale(StaleRead {
                key: request.key,
                put: request.promised,
                by: Member { generator: context.component(), stream: self.number },
                begun: request.start,
                answered: context.now(),
                seen: answer.version,
            });
        }
        if self.caches {
            shared.keep_copy(answer.line, answer.version);
        }
        self.stats.line_answered(request.is_write);
        if let (Some(pacing), Some(devices)) = (&mut self.pacing, &mut shared.devices)
            && let Some(device) = devices.map.device(answer.line)
        {
            pacing.moved[device][usize::from(request.is_write)] += LINE_BYTES;
            devices.loads[device].count(answer.dev_load);
        }
        if request.lines_unanswered == 0 {
            debug_assert_eq!(answer.stack.start(), request.start, "a request's time runs from its start");
            debug_assert_eq!(answer.stack.charged_until(), context.now(), "all of a request's time is charged");
            self.stats.request_answered(request.is_write, &answer.stack);
            self.stats.stale_reads += u64::from(request.is_stale);
            if self.is_shared
                && request.is_write
                && let Some(next) = keys.acknowledge(
                    request.key,
                    Member { generator: context.component(), stream: self.number },
                    context.now(),
                )
            {
                context.wake_other(next.generator, context.now(), next.token);
            }
            if request.is_modified {
                let first_line = request.next_line - u64::from(self.lines_per_request);
                if self.prepare(number, first_line, true, false, keys, context) {
                    self.granted.push_back(number);
                }
            } else {
                self.free.push(number);
                self.in_flight -= 1;
                if self.dependent {
                    self.next_start = context.now() + self.next_delay();
                }
            }
        }
        self.go_on(shared, keys, context);
    }

    /// Sends what may leave now, and sees to it that what may leave later does.
    pub fn go_on(&mut self, shared: &mut Shared, keys: &mut Keys, context: &mut Context<'_>) {
        if self.pacing.as_ref().is_some_and(|pacing| pacing.runs_until <= context.now()) {
            return;
        }
        loop {
            self.leaving = self.leaving.or_else(|| self.granted.pop_front());
            if let Some(number) = self.leaving {
                if self.lines_in_flight == self.lines_outstanding {
                    return;
                }
                if let Err(time) = self.take_credit(number, shared, context.now()) {
                    if !self.is_armed {
                        self.is_armed = true;
                        context.wake_at(time, u64::from(self.number));
                    }
                    return;
                }
                self.send_line(number, shared, context);
            } else if self.may_begin() && !self.is_armed {
                if self.next_start.max(context.now()) >= self.ends {
                    self.left = 0;
                    return;
                }
                if self.next_start > context.now() {
                    return self.arm(context);
                }
                self.begin(keys, context);
            } else {
                return;
            }
        }
    }

    /// Takes a transport's credit for the next line of request `number`; if there is not enough, says when to ask
    /// again.
    fn take_credit(&mut self, number: u16, shared: &Shared, now: Time) -> Result<(), Time> {
        let (Some(pacing), Some(devices)) = (&mut self.pacing, &shared.devices) else { return Ok(()) };
        let request = &self.requests[usize::from(number)];
        let device = devices.map.device(self.footprint.line(request.next_line));
        device.map_or(Ok(()), |device| pacing.take_credit(device, request.is_write, now))
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

    fn begin(&mut self, keys: &mut Keys, context: &mut Context<'_>) {
        let is_write = self.mix.next_is_write();
        let place = self.choice.next(&self.store, is_write, keys, &mut self.random);
        let number = self.free.pop().expect("there are as many numbers as requests under way");
        let is_modified = is_write && self.modifies;
        let first_line = place * u64::from(self.lines_per_request);
        let may_leave = self.prepare(number, first_line, is_write && !is_modified, is_modified, keys, context);
        self.leaving = may_leave.then_some(number);
        self.in_flight += 1;
        self.left -= 1;
        self.next_start = context.now() + self.next_delay();
    }

    /// Makes request `number` a new one, of the lines from `first_line` on: whether it may leave now, or waits for its
    /// key.
    fn prepare(
        &mut self,
        number: u16,
        first_line: u64,
        is_write: bool,
        is_modified: bool,
        keys: &mut Keys,
        context: &mut Context<'_>,
    ) -> bool {
        let now = context.now();
        let mut request = Request {
            start: now,
            next_line: first_line,
            lines_to_send: self.lines_per_request,
            lines_unanswered: self.lines_per_request,
            is_write,
            key: self.footprint.line(first_line),
            granted: now,
            is_modified,
            ..Request::default()
        };
        let mut may_leave = true;
        if self.is_shared && is_write {
            let token = GRANTED | u64::from(self.tag(number).0);
            may_leave = keys.ask(request.key, Client { generator: context.component(), token });
            if may_leave {
                request.version = keys.begin(request.key, now);
            }
        } else if self.is_shared {
            request.promised = keys.acknowledged(request.key);
        }
        self.requests[usize::from(number)] = request;
        may_leave
    }

    fn tag(&self, number: u16) -> Tag {
        Tag(self.number << REQUEST_BITS | u32::from(number))
    }

    fn send_line(&mut self, number: u16, shared: &mut Shared, context: &mut Context<'_>) {
        let request = &mut self.requests[usize::from(number)];
        let line = self.footprint.line(request.next_line);
        request.next_line += 1;
        request.lines_to_send -= 1;
        if request.lines_to_send == 0 {
            self.leaving = None;
        }
        self.lines_in_flight += 1;
        let waiting = Waiting { stream: self.number, request: number, line };
        if shared.entries.as_mut().is_none_or(|entries| entries.take(waiting)) {
            self.depart(number, line, shared, context);
        }
    }

    /// The line of request `number` goes through the caches, and out of them if it is not there.
    pub fn depart(&mut self, number: u16, line: LineAddress, shared: &mut Shared, context: &mut Context<'_>) {
        let tag = self.tag(number);
        let request = &self.requests[usize::from(number)];
        let departure = context.now() + shared.cache_latency;
        let copy = if self.hits {
            Some(Version(0))
        } else if self.caches && !request.is_write {
            shared.copies.get(&line).copied()
        } else {
            None
        };
        if let Some(version) = copy {
            self.copied.push_back((number, line, version));
            context.wake_at(departure, COPIED | u64::from(self.number));
            return;
        }
        let mut message = if request.is_write {
            let version = if self.is_shared {
                request.version
            } else {
                shared.version = Version(shared.version.0 + 1);
                shared.version
            };
            Message::write(line, tag, Cause::NonTemporalStore, version, ByteMask::FULL, request.start)
        } else {
            Message::read(line, tag, Cause::DemandRead, request.start)
        };
        message.flow = Flow(self.number);
        message.stack.charge(Stage::Core, request.granted);
        message.stack.charge(Stage::Cache, departure);
        context.send(BRIDGE, message, departure);
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
        self.granted.clear();
        self.copied.clear();
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
        Request {
            start: Time::ZERO,
            next_line: 0,
            lines_to_send: 0,
            lines_unanswered: 0,
            is_write: false,
            key: LineAddress(0),
            granted: Time::ZERO,
            version: Version(0),
            promised: Put::default(),
            is_stale: false,
            is_modified: false,
        }
    }
}

/// The stream and the request that a tag names.
pub(super) fn named_by(tag: Tag) -> (usize, u16) {
    ((tag.0 >> REQUEST_BITS) as usize, tag.0 as u16)
}

/// The stream that a copy answers, if that is what a wake says.
pub(super) fn copied_by(token: u64) -> Option<usize> {
    (token & COPIED != 0).then_some(token as u32 as usize)
}

/// The stream and the request whose key has come, if that is what a wake says.
pub(super) fn granted_by(token: u64) -> Option<(usize, u16)> {
    (token & GRANTED != 0).then(|| named_by(Tag(token as u32)))
}
