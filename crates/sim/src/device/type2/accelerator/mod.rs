//! An accelerator, timed: a Type-2 device with its load generator, its coherence engine and its memory.
//!
//! The load generator issues a burst of requests; the engine looks each up in the tags of its cache of host memory,
//! answers what it has, and asks the host for what it has not. What the engine does with a line is decided by the state
//! machine of [`dcoh`]; here are the stages that its messages pass, each with its time, and what waits for what. One
//! link carries CXL.cache to and from the engine, and CXL.mem to and from the memory, which is a [`Device`] of its own.

mod cache_flush;
mod engine;
mod own_memory;
mod snoop_filter;
mod tags;

use std::collections::VecDeque;
use std::ops::Range;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::burst::{Burst, Finished, Running};
use super::config::{DeviceCacheConfig, Type2Config};
use super::dcoh;
use super::device_memory::Meta;
use super::messages::CacheState;
use super::steps::Steps;
use super::wire::Trail;
use crate::device::{DEVICE_PORT, Device};
use cache_flush::Flushes;
use engine::{EngineLine, EngineStats};
use fencepost_kernel::line::{LineAddress, Version};
use fencepost_kernel::link::{LinkConfig, Transmitter};
use fencepost_kernel::message::{Message, Opcode, Stage, cache};
use fencepost_kernel::stats::StatsNode;
use fencepost_kernel::time::{Duration, Time};
use fencepost_kernel::trace::Place;
use fencepost_kernel::{Component, Context, Event};
use own_memory::{ENGINE_PORT, OwnLine};
use snoop_filter::SnoopFilter;
use tags::CacheTags;

/// The tokens of the memory's own wakes are smaller.
const STEP: u64 = 1 << 32;

/// What the load generator asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceAccess {
    /// Reads a line as it is now; the device's cache keeps nothing.
    NcRead,
    /// Reads a line to share it.
    CsRead,
    /// Reads a line to own it.
    CoRead,
    /// Writes a line to memory.
    NcWrite,
    /// Writes a line in the device's cache, which owns it.
    CoWrite,
    /// Writes a line into the host's last-level cache.
    NcPWrite,
    /// Gives a line up: to the host if it is modified.
    FlushLine,
    /// Gives up all lines of the cache of host memory.
    FlushHostMemoryCache,
    /// Gives up all lines of the cache of the device's own memory.
    FlushDeviceMemoryCache,
}

impl DeviceAccess {
    /// Its name, as users write it.
    pub fn name(self) -> &'static str {
        match self {
            DeviceAccess::NcRead => "nc_read",
            DeviceAccess::CsRead => "cs_read",
            DeviceAccess::CoRead => "co_read",
            DeviceAccess::NcWrite => "nc_write",
            DeviceAccess::CoWrite => "co_write",
            DeviceAccess::NcPWrite => "nc_p_write",
            DeviceAccess::FlushLine => "flush_line",
            DeviceAccess::FlushHostMemoryCache => "flush_host_memory_cache",
            DeviceAccess::FlushDeviceMemoryCache => "flush_device_memory_cache",
        }
    }
}

/// What the load generator waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Weakly ordered writes are answered when they are globally observed, and not when their order is fixed.
    pub observes: bool,
    /// A barrier follows the last request of a burst: it is answered when all of them are globally observed.
    pub ends_in_barrier: bool,
}

/// A request of the load generator, or of a flush of a whole cache.
#[derive(Clone, Debug)]
struct Asked {
    access: DeviceAccess,
    line: LineAddress,
    trail: Trail,
    is_of_flush: bool,
}

/// What happens later.
#[derive(Clone, Debug)]
enum Step {
    /// The load generator issues the request of that number.
    Issue(usize),
    /// A request has been looked up in the tags.
    LookedUp(Asked),
    /// A message of the engine is at the port.
    Leaves(Message),
    /// A message from the port is at the engine.
    Enters(Message),
    /// An answer for that line is at the load generator.
    Answered(LineAddress, Trail),
    /// A request of CXL.mem has been looked up in the tags.
    HostLookedUp(Message),
    /// A request of the engine leaves for the memory.
    ToMemory(Message),
    /// A flush has come to that set of its cache.
    Flushes(usize),
    /// The barrier is at the engine.
    Barrier,
    /// Its answer is at the load generator.
    BarrierAnswered,
}

/// How long the stages take.
#[derive(Clone, Copy, Debug)]
struct Times {
    cycle: Duration,
    issue: Duration,
    generator: Duration,
    lookup: Duration,
    read: Duration,
    fill: Duration,
    port: Duration,
}

/// An accelerator.
#[derive(Clone, Debug)]
pub struct Accelerator {
    memory: Device,
    times: Times,
    transactions_max: usize,
    tags: CacheTags,
    lines: FxHashMap<LineAddress, EngineLine>,
    /// The lines of its own memory, which is in that bias until it is touched.
    own_range: Range<LineAddress>,
    bias: Meta,
    own_tags: CacheTags,
    /// Of memory without bias.
    filter: Option<SnoopFilter>,
    own_lines: FxHashMap<LineAddress, OwnLine>,
    /// Leads to the memory, inside the device.
    to_memory: Transmitter,
    /// Requests that wait for a transaction to end.
    queue: VecDeque<Asked>,
    /// Transactions under way.
    transactions: usize,
    running: Option<Running<DeviceAccess>>,
    waits: Waits,
    /// Requests of the burst that the engine has not answered.
    unanswered: usize,
    /// Whether a barrier waits for that, and for the transactions that are under way.
    has_barrier: bool,
    flushes: Flushes,
    steps: Steps<Step>,
    stats: EngineStats,
    #[cfg(test)]
    pub(crate) log: Vec<super::burst::Observed>,
}

impl Accelerator {
    /// An accelerator like `config`, with that memory, in which these lines lie; `inner` is the link of its last port,
    /// which leads to the engine.
    pub fn new(config: &Type2Config, memory: Device, lines: Range<LineAddress>, inner: &LinkConfig) -> Accelerator {
        let cycles = |cycles| config.cycles(cycles);
        Accelerator {
            memory,
            times: Times {
                cycle: cycles(1),
                issue: cycles(config.issue_cycles),
                generator: cycles(config.generator_cycles),
                lookup: cycles(config.lookup_cycles),
                read: cycles(config.read_cycles),
                fill: cycles(config.fill_cycles),
                port: cycles(config.port_cycles),
            },
            transactions_max: usize::from(config.transactions),
            tags: CacheTags::new(&config.host_memory_cache),
            lines: FxHashMap::default(),
            own_range: lines,
            bias: Meta::Any,
            own_tags: CacheTags::new(&config.device_memory_cache),
            filter: None,
            own_lines: FxHashMap::default(),
            to_memory: Transmitter::new(ENGINE_PORT, inner),
            queue: VecDeque::new(),
            transactions: 0,
            running: None,
            waits: Waits::default(),
            unanswered: 0,
            has_barrier: false,
            flushes: Flushes::default(),
            steps: Steps::default(),
            stats: EngineStats::default(),
            #[cfg(test)]
            log: Vec::new(),
        }
    }

    /// The same, with its memory in device bias until it is touched, and not in host bias.
    #[must_use]
    pub fn in_device_bias(mut self) -> Accelerator {
        self.bias = Meta::Invalid;
        self
    }

    /// The same, with memory that has no bias: the device snoops its host, by what such a filter knows.
    #[must_use]
    pub fn with_snoop_filter(mut self, filter: &DeviceCacheConfig) -> Accelerator {
        self.bias = Meta::Invalid;
        self.filter = Some(SnoopFilter::new(filter));
        self
    }

    /// Its memory.
    pub fn memory(&self) -> &Device {
        &self.memory
    }

    /// The same, to be changed.
    pub fn memory_mut(&mut self) -> &mut Device {
        &mut self.memory
    }

    /// Begins a burst at `begin`.
    ///
    /// # Panics
    /// If another one is under way.
    pub fn begin(&mut self, burst: Burst<DeviceAccess>, waits: Waits, begin: Time, context: &mut Context<'_>) {
        assert!(self.running.as_ref().is_none_or(Running::is_finished), "one burst after the other");
        let count = burst.lines.len();
        let running = Running::new(burst, begin);
        self.running = Some(if waits.ends_in_barrier { running.with_barrier() } else { running });
        (self.waits, self.unanswered) = (waits, count);
        let nth = |number: usize| begin + self.times.issue * number as u64;
        for number in 0..count {
            self.steps.at(nth(number), Step::Issue(number), STEP, context);
        }
        if waits.ends_in_barrier {
            let at_engine = nth(count) + self.times.generator + self.times.lookup;
            self.steps.at(at_engine, Step::Barrier, STEP, context);
        }
    }

    /// What came of the burst that ended last; nothing while it is under way.
    pub fn finished(&self) -> Option<Finished> {
        self.running.as_ref().filter(|running| running.is_finished()).map(Running::finished)
    }

    /// Puts a line into the cache without time, or takes it away: `data` means nothing if it is invalid.
    pub fn set_functionally(&mut self, line: LineAddress, state: CacheState, data: Version) {
        if state == CacheState::Invalid {
            self.lines.remove(&line);
            self.tags.remove(line);
            return;
        }
        let victim = self.tags.touch(line);
        debug_assert!(victim.is_none(), "a cache is filled without time only as far as it has room");
        self.lines.insert(line, EngineLine::with(dcoh::Line { state, data, transaction: None }));
    }

    /// Puts a line of its own memory into its cache without time, or takes it away; the host may have `host` of it.
    pub fn set_own_functionally(&mut self, line: LineAddress, state: CacheState, host: Meta) {
        if state == CacheState::Invalid {
            self.own_tags.remove(line);
        } else {
            let victim = self.own_tags.touch(line);
            debug_assert!(victim.is_none(), "a cache is filled without time only as far as it has room");
        }
        if let Some(filter) = &mut self.filter {
            let victim = filter.follow(line, host);
            debug_assert!(victim.is_none(), "a filter is filled without time only as far as it has room");
        }
        let own = &mut self.own_line(line).line;
        (own.cache, own.host, own.data) = (state, host, own.memory);
    }

    /// What its memory has of a line, as the engine knows.
    pub fn own_memory(&mut self, line: LineAddress) -> Version {
        self.own_line(line).line.memory
    }

    /// Empties the cache of its own memory without time, and forgets what the host has.
    pub fn empty_own_cache(&mut self) {
        self.own_tags.drain();
        self.filter.iter_mut().for_each(SnoopFilter::clear);
        let bias = self.bias;
        for own in self.own_lines.values_mut() {
            (own.line.cache, own.line.host) = (CacheState::Invalid, bias);
        }
    }

    /// The state of a line in the cache.
    pub fn state(&self, line: LineAddress) -> CacheState {
        self.lines.get(&line).map_or(CacheState::Invalid, |own| own.line.state)
    }

    /// Gives an accelerator's copy of a line of host memory.
    #[cfg(test)]
    pub(crate) fn copy_of(line: LineAddress) -> impl Fn(&Accelerator) -> (CacheState, Version) {
        move |own| own.lines.get(&line).map_or((CacheState::Invalid, Version(0)), |own| (own.line.state, own.line.data))
    }

    /// The lines in the cache, in the order of their addresses.
    pub fn held(&self) -> Vec<LineAddress> {
        let held = self.lines.iter().filter(|(_, own)| own.line.state != CacheState::Invalid);
        let mut held: Vec<LineAddress> = held.map(|(line, _)| *line).collect();
        held.sort_unstable();
        held
    }

    fn step(&mut self, context: &mut Context<'_>) {
        let now = context.now();
        match self.steps.take(now) {
            Step::Issue(number) => {
                let running = self.running.as_ref().expect("a burst is under way");
                let (access, line) = (running.burst.kind, running.burst.lines[number]);
                let mut trail = Trail::starting(now);
                if context.is_tracing() {
                    let mut request = trail.message(Opcode::RdCurr, line, Version(0));
                    context.begin_own_request(access.name(), &mut request);
                    trail.request = request.request;
                }
                let asked = Asked { access, line, trail, is_of_flush: false };
                let looked_up = now + self.times.generator + self.times.lookup;
                self.steps.at(looked_up, Step::LookedUp(asked), STEP, context);
            }
            Step::LookedUp(mut asked) => {
                asked.trail.stack.charge(Stage::DeviceQueue, now);
                match asked.access {
                    DeviceAccess::FlushHostMemoryCache | DeviceAccess::FlushDeviceMemoryCache => {
                        self.flush_cache(asked, context);
                    }
                    _ if self.is_own(asked.line) => self.own_looked_up(asked, context),
                    _ => self.looked_up(asked, context),
                }
            }
            Step::Flushes(set) => self.flush_set(set, context),
            Step::Barrier => self.has_barrier = true,
            Step::BarrierAnswered => self.running.as_mut().expect("a burst is under way").barrier_answered(now),
            Step::HostLookedUp(message) => self.host_looked_up(message, context),
            Step::ToMemory(message) => {
                context.show(Place::Anywhere, &message);
                self.to_memory.offer(message, context);
            }
            Step::Leaves(message) => {
                context.show(Place::Anywhere, &message);
                self.memory.transmitter(DEVICE_PORT).offer(message, context);
            }
            Step::Enters(message) => self.entered(message, context),
            Step::Answered(line, trail) => {
                if context.is_tracing() {
                    let answer = trail.message(Opcode::ReadData, line, Version(0));
                    context.show(Place::Anywhere, &answer);
                    context.complete_request(&answer, None);
                }
                let running = self.running.as_mut().expect("a burst is under way");
                running.answered(&trail.stack);
            }
        }
    }

    /// The answer to a request leaves the engine in `delay`.
    fn answer(&mut self, asked: Asked, delay: Duration, context: &mut Context<'_>) {
        if asked.is_of_flush {
            return self.line_flushed(context);
        }
        self.unanswered -= 1;
        let Asked { line, mut trail, .. } = asked;
        let at = context.now() + delay + self.times.generator;
        trail.stack.charge(Stage::DeviceQueue, at);
        self.steps.at(at, Step::Answered(line, trail), STEP, context);
    }

    /// Answers a barrier, if there is one and nothing of the burst is under way any longer.
    fn answer_barrier(&mut self, context: &mut Context<'_>) {
        if self.has_barrier && self.unanswered == 0 && self.transactions == 0 {
            self.has_barrier = false;
            self.steps.at(context.now() + self.times.generator, Step::BarrierAnswered, STEP, context);
        }
    }

    /// A message of the engine leaves it in `delay`, and is at the port after that.
    fn send(&mut self, mut message: Message, delay: Duration, context: &mut Context<'_>) {
        let at = context.now() + delay + self.times.port;
        message.stack.charge(Stage::DeviceQueue, at);
        self.steps.at(at, Step::Leaves(message), STEP, context);
    }
}

impl Component for Accelerator {
    fn handle(&mut self, event: Event, context: &mut Context<'_>) {
        match event {
            Event::Arrival { port, message } if cache::CLASSES.contains(&message.class()) => {
                // The engine has a place for all that its transactions can bring.
                self.memory.transmitter(port).return_credit(message.class(), context);
                let at = context.now() + self.times.port;
                self.steps.at(at, Step::Enters(message), STEP, context);
            }
            // The engine looks at what the host asks of the memory, before the memory does.
            Event::Arrival { port: DEVICE_PORT, message } => {
                self.memory.transmitter(DEVICE_PORT).return_credit(message.class(), context);
                let at = context.now() + self.times.port + self.times.lookup;
                self.steps.at(at, Step::HostLookedUp(message), STEP, context);
            }
            Event::Arrival { port: ENGINE_PORT, message } => self.memory_says(message, context),
            Event::Credit { port: ENGINE_PORT, class } => self.to_memory.credit_returned(class, context),
            Event::Wake { token: STEP } => self.step(context),
            other => self.memory.handle(other, context),
        }
        self.answer_barrier(context);
    }

    fn power_fail(&mut self) {
        self.memory.power_fail();
        self.tags.drain();
        self.lines.clear();
        self.own_tags.drain();
        self.filter.iter_mut().for_each(SnoopFilter::clear);
        self.own_lines.clear();
        self.to_memory.power_fail();
        self.queue.clear();
        self.transactions = 0;
        self.running = None;
        self.has_barrier = false;
        self.flushes = Flushes::default();
        self.steps.clear();
    }

    fn recover(&mut self, context: &mut Context<'_>) {
        self.memory.recover(context);
    }

    fn is_idle(&self) -> bool {
        self.memory.is_idle()
            && self.transactions == 0
            && self.queue.is_empty()
            && self.steps.is_empty()
            && !self.has_barrier
            && self.flushes.is_idle()
            && self.to_memory.is_idle()
            && self.own_lines.values().all(OwnLine::is_idle)
    }

    fn waiting(&self) -> Vec<String> {
        let mut waiting = self.memory.waiting();
        let mut under_way: Vec<_> = self.lines.iter().filter(|(_, own)| own.line.transaction.is_some()).collect();
        under_way.sort_unstable_by_key(|(line, _)| **line);
        waiting.extend(under_way.into_iter().filter_map(|(line, own)| {
            let transaction = own.line.transaction?;
            Some(format!("{:?} of line {:#x} waits for {:?}", transaction.request, line.byte(), transaction.waits))
        }));
        if !self.queue.is_empty() {
            waiting.push(format!("{} requests wait for a transaction to end", self.queue.len()));
        }
        waiting
    }

    fn gauges(&self) -> Vec<(String, u64)> {
        let mut gauges = self.memory.gauges();
        gauges.push(("transactions under way".to_owned(), self.transactions as u64));
        gauges.push(("requests that wait for one to end".to_owned(), self.queue.len() as u64));
        gauges
    }

    fn stats(&self, now: Time) -> StatsNode {
        let StatsNode::Group(mut nodes) = self.memory.stats(now) else { unreachable!("a device has a group") };
        nodes.push(("engine".to_owned(), self.stats.to_node()));
        nodes.extend(self.filter.as_ref().map(|filter| ("snoop_filter".to_owned(), filter.to_node())));
        StatsNode::Group(nodes)
    }
}
