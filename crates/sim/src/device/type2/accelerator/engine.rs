//! The coherence engine at work: what it does with requests of the load generator and messages of the host, line by
//! line.

use std::collections::VecDeque;

use super::{Accelerator, Asked, DeviceAccess};
use crate::device::type2::Rules;
#[cfg(test)]
use crate::device::type2::burst::Observed;
use crate::device::type2::dcoh::{Line, Outcome};
use crate::device::type2::messages::{CacheState, Pulled, Request, Response};
use crate::device::type2::wire::{self, Trail};
use fencepost_kernel::Context;
use fencepost_kernel::line::{LineAddress, Version};
use fencepost_kernel::message::{Message, Opcode, Stage};
use fencepost_kernel::stats::StatsNode;
use fencepost_kernel::time::{Duration, Time};
use fencepost_kernel::trace::Place;

const RULES: &Rules = &Rules::SOUND;

/// A line of host memory at the engine.
#[derive(Clone, Debug)]
pub(super) struct EngineLine {
    /// What the state machine has of it.
    pub line: Line<Version>,
    /// The request of the load generator that the transaction under way answers; an eviction answers none.
    owner: Option<Asked>,
    /// Requests that wait for the transaction to end.
    waiting: VecDeque<Asked>,
    /// A snoop that comes between GO and data.
    held: Option<Message>,
}

/// What an engine counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EngineStats {
    hits: u64,
    requests: [u64; Request::ALL.len()],
    snoops: u64,
    pub evictions: u64,
    /// Flushes of a whole cache, and the lines that they gave up.
    pub cache_flushes: u64,
    pub flushed_lines: u64,
    transactions_full: u64,
    /// Accesses to its own memory for which the host was asked.
    pub asked_for_bias: u64,
    /// Requests of the host that found a copy to write in the device's cache.
    pub device_copies: u64,
}

impl EngineStats {
    pub fn to_node(self) -> StatsNode {
        let requests = Request::ALL.into_iter().zip(self.requests);
        let requests = requests.map(|(request, count)| (format!("{request:?}"), StatsNode::Counter(count)));
        StatsNode::group([
            ("hits".to_owned(), StatsNode::Counter(self.hits)),
            ("requests".to_owned(), StatsNode::group(requests)),
            ("snoops".to_owned(), StatsNode::Counter(self.snoops)),
            ("evictions".to_owned(), StatsNode::Counter(self.evictions)),
            ("cache_flushes".to_owned(), StatsNode::Counter(self.cache_flushes)),
            ("flushed_lines".to_owned(), StatsNode::Counter(self.flushed_lines)),
            ("transactions_full".to_owned(), StatsNode::Counter(self.transactions_full)),
            ("asked_for_bias".to_owned(), StatsNode::Counter(self.asked_for_bias)),
            ("device_copies".to_owned(), StatsNode::Counter(self.device_copies)),
        ])
    }
}

impl EngineLine {
    pub fn with(line: Line<Version>) -> EngineLine {
        EngineLine { line, owner: None, waiting: VecDeque::new(), held: None }
    }

    fn is_forgettable(&self) -> bool {
        self.line.state == CacheState::Invalid && self.line.transaction.is_none() && self.waiting.is_empty()
    }
}

/// What is done for a request, by the state of its line.
enum Does {
    /// The cache has what it takes: a read.
    Read,
    /// The cache has what it takes: a write.
    Write,
    /// The host is asked.
    Ask(Request),
    /// The copy, which is clean, is dropped first.
    Drop,
    /// The copy is given up first, by that request.
    GiveUp(Request),
    /// There is nothing to do.
    Nothing,
}

impl DeviceAccess {
    fn with(self, state: CacheState) -> Does {
        use CacheState::{Exclusive, Invalid, Modified, Shared};
        match (self, state) {
            (DeviceAccess::NcRead | DeviceAccess::CsRead, Shared | Exclusive | Modified)
            | (DeviceAccess::CoRead, Exclusive | Modified) => Does::Read,
            (DeviceAccess::CoWrite, Exclusive | Modified) => Does::Write,
            (DeviceAccess::NcRead, Invalid) => Does::Ask(Request::RdCurr),
            (DeviceAccess::CsRead, Invalid) => Does::Ask(Request::RdShared),
            (DeviceAccess::CoRead, Invalid | Shared) => Does::Ask(Request::RdOwn),
            (DeviceAccess::CoWrite, Invalid | Shared) => Does::Ask(Request::RdOwnNoData),
            (DeviceAccess::NcWrite, Invalid) => Does::Ask(Request::WOWrInvF),
            (DeviceAccess::NcPWrite, Invalid) => Does::Ask(Request::ItoMWr),
            (DeviceAccess::FlushLine, Invalid) => Does::Nothing,
            (DeviceAccess::NcWrite | DeviceAccess::NcPWrite, Shared | Exclusive) => Does::Drop,
            (DeviceAccess::FlushLine, Shared | Exclusive) => Does::GiveUp(Request::CleanEvictNoData),
            (DeviceAccess::NcWrite | DeviceAccess::NcPWrite | DeviceAccess::FlushLine, Modified) => {
                Does::GiveUp(Request::DirtyEvict)
            }
            (DeviceAccess::FlushHostMemoryCache | DeviceAccess::FlushDeviceMemoryCache, _) => {
                unreachable!("a flush of a cache is one of its lines")
            }
        }
    }
}

/// What a write now makes of its line: each owner of the line writes it later than its owner before.
pub(super) fn written_at(now: Time) -> Version {
    Version(now.as_ps() / 1000)
}

impl Accelerator {
    fn own(&mut self, line: LineAddress) -> &mut EngineLine {
        self.lines.entry(line).or_insert_with(|| EngineLine::with(Line::new(Version(0))))
    }

    /// A request has been looked up: it waits behind others of its line, or is done.
    pub(super) fn looked_up(&mut self, asked: Asked, context: &mut Context<'_>) {
        let own = self.own(asked.line);
        if own.line.transaction.is_some() || !own.waiting.is_empty() {
            own.waiting.push_back(asked);
        } else {
            self.decide(asked, context);
        }
    }

    /// Does a request whose line has no transaction under way.
    fn decide(&mut self, mut asked: Asked, context: &mut Context<'_>) {
        let (read, fill) = (self.times.read, self.times.fill);
        asked.trail.stack.charge(Stage::DeviceQueue, context.now());
        let line = asked.line;
        match asked.access.with(self.own(line).line.state) {
            Does::Read => {
                self.stats.hits += 1;
                self.touch(line, context);
                #[cfg(test)]
                self.log_read(line, &asked.trail, None);
                self.answer(asked, read, context);
            }
            Does::Write => {
                self.stats.hits += 1;
                self.touch(line, context);
                self.own(line).line.store(written_at(context.now()));
                #[cfg(test)]
                self.log_write(line, written_at(context.now()));
                self.answer(asked, fill, context);
            }
            Does::Nothing => self.answer(asked, Duration::ZERO, context),
            Does::Drop => {
                self.own(line).line.drop_copy();
                self.tags.remove(line);
                self.decide(asked, context);
            }
            Does::GiveUp(request) => self.ask(request, asked, context),
            Does::Ask(request) => self.ask(request, asked, context),
        }
    }

    /// Begins a transaction for a request of the load generator, if there may be one more.
    fn ask(&mut self, request: Request, asked: Asked, context: &mut Context<'_>) {
        if self.transactions >= self.transactions_max {
            self.stats.transactions_full += 1;
            self.queue.push_back(asked);
            return;
        }
        let (line, trail) = (asked.line, asked.trail.clone());
        self.own(line).owner = Some(asked);
        self.begin_transaction(line, request, &trail, context);
    }

    fn begin_transaction(&mut self, line: LineAddress, request: Request, trail: &Trail, context: &mut Context<'_>) {
        self.transactions += 1;
        self.stats.requests[request as usize] += 1;
        self.own(line).line.request(request);
        self.send(trail.message(wire::of_request(request), line, Version(0)), Duration::ZERO, context);
    }

    /// A message of the host is at the engine.
    pub(super) fn entered(&mut self, mut message: Message, context: &mut Context<'_>) {
        let now = context.now();
        message.stack.charge(Stage::DeviceQueue, now);
        context.show(Place::Anywhere, &message);
        if wire::snoop(message.opcode).is_some() {
            self.stats.snoops += 1;
            return self.snooped(message, context);
        }
        let line = message.line;
        let own = self.own(line);
        let request = own.line.transaction.map(|transaction| transaction.request);
        let outcome = match wire::response(message.opcode) {
            Some(response) => own.line.take_response(RULES, response, written_at(now)),
            None => own.line.take_data(RULES, message.version),
        };
        let trail = Trail::of(&message);
        #[cfg(test)]
        self.log_outcome(line, request, &outcome, &trail, written_at(now));
        match outcome {
            Outcome::Nothing | Outcome::Wrote(_) | Outcome::Read(_) => {}
            Outcome::Send(pulled) => self.send_pulled(line, pulled, &trail, context),
            other => unreachable!("{:?} of line {:#x} leads to {other:?}", message.opcode, line.byte()),
        }
        let request = request.expect("a response answers a transaction");
        let has_order = wire::response(message.opcode) == Some(Response::FastGoWritePull) && !self.waits.observes;
        if self.own(line).line.transaction.is_none() {
            self.transaction_ended(line, request, trail, context);
        } else if has_order && let Some(asked) = self.own(line).owner.take() {
            debug_assert_eq!(asked.line, line);
            self.answer(Asked { trail, ..asked }, Duration::ZERO, context);
        }
        if self.own(line).line.answers_snoops(RULES)
            && let Some(snoop) = self.own(line).held.take()
        {
            self.snooped(snoop, context);
        }
    }

    #[cfg(test)]
    pub(super) fn log_read(&mut self, line: LineAddress, trail: &Trail, version: Option<Version>) {
        let version = version.unwrap_or(self.own(line).line.data);
        self.log.push(Observed { core: 0, line, version, read_from: Some(trail.stack.start()) });
    }

    #[cfg(test)]
    pub(super) fn log_write(&mut self, line: LineAddress, version: Version) {
        self.log.push(Observed { core: 0, line, version, read_from: None });
    }

    #[cfg(test)]
    fn log_outcome(
        &mut self,
        line: LineAddress,
        request: Option<Request>,
        outcome: &Outcome<Version>,
        trail: &Trail,
        written: Version,
    ) {
        let is_over = self.own(line).line.transaction.is_none();
        match (outcome, request) {
            (Outcome::Read(version), _) => self.log_read(line, trail, Some(*version)),
            (Outcome::Wrote(_), _) => self.log_write(line, written),
            (Outcome::Send(_), Some(request)) if request.writes().is_some() => self.log_write(line, written),
            (Outcome::Nothing, Some(Request::RdShared | Request::RdOwn)) if is_over => self.log_read(line, trail, None),
            _ => {}
        }
    }

    fn send_pulled(&mut self, line: LineAddress, pulled: Pulled<Version>, trail: &Trail, context: &mut Context<'_>) {
        let opcode = if pulled.is_bogus { Opcode::BogusData } else { Opcode::PulledData };
        self.send(trail.message(opcode, line, pulled.data), self.times.read, context);
    }

    /// A transaction has ended: its request is answered, or goes on, and then those that waited for it.
    fn transaction_ended(&mut self, line: LineAddress, request: Request, trail: Trail, context: &mut Context<'_>) {
        self.transactions -= 1;
        let (read, fill) = (self.times.read, self.times.fill);
        if self.own(line).line.state == CacheState::Invalid {
            self.tags.remove(line);
        } else {
            self.touch(line, context);
        }
        if let Some(asked) = self.own(line).owner.take() {
            let asked = Asked { trail, ..asked };
            // What is kept is written into the cache, and read from there.
            let delay = match request {
                Request::RdShared | Request::RdAny | Request::RdOwn => Some(fill + read),
                Request::RdOwnNoData => Some(fill),
                _ if request.is_eviction() && asked.access != DeviceAccess::FlushLine => None,
                _ => Some(Duration::ZERO),
            };
            match delay {
                Some(delay) => self.answer(asked, delay, context),
                None => self.decide(asked, context),
            }
        }
        while self.own(line).line.transaction.is_none()
            && let Some(asked) = self.own(line).waiting.pop_front()
        {
            self.decide(asked, context);
        }
        if self.own(line).is_forgettable() {
            self.lines.remove(&line);
        }
        while self.transactions < self.transactions_max
            && let Some(asked) = self.queue.pop_front()
        {
            self.looked_up(asked, context);
        }
    }

    /// A line is used; another one may have to leave the cache for it.
    fn touch(&mut self, line: LineAddress, context: &mut Context<'_>) {
        let Some(victim) = self.tags.touch(line) else { return };
        self.stats.evictions += 1;
        let own = self.own(victim);
        if own.line.may_drop() {
            own.line.drop_copy();
        } else if own.line.transaction.is_none() && own.line.state == CacheState::Modified {
            let trail = Trail::starting(context.now());
            self.begin_transaction(victim, Request::DirtyEvict, &trail, context);
        }
    }

    /// Answers a snoop, unless it comes between GO and data.
    fn snooped(&mut self, message: Message, context: &mut Context<'_>) {
        let snoop = wire::snoop(message.opcode).expect("a snoop was given");
        let (lookup, read) = (self.times.lookup, self.times.read);
        let line = message.line;
        let own = self.own(line);
        if !own.line.answers_snoops(RULES) {
            own.held = Some(message);
            return;
        }
        let (response, data) = own.line.take_snoop(RULES, snoop, false);
        let is_gone = own.line.state == CacheState::Invalid;
        let is_forgettable = own.is_forgettable();
        if is_gone {
            self.tags.remove(line);
        }
        if is_forgettable {
            self.lines.remove(&line);
        }
        let trail = Trail::of(&message);
        self.send(trail.message(wire::of_snoop_response(response), line, Version(0)), lookup, context);
        if let Some(data) = data {
            self.send(trail.message(Opcode::SnoopedData, line, data), lookup + read, context);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_after_four_seconds_writes_a_newer_version() {
        let at = |ns: u64| written_at(Time::from_ps(1000 * ns));
        assert!(at(u64::from(u32::MAX) + 2) > at(u32::MAX.into()));
    }
}
