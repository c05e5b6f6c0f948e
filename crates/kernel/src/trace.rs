//! The log of traced requests: where each was, from when until when.
//!
//! A traced request has a name, which its messages carry; all others carry [`RequestName::NONE`], and cost one
//! comparison where a message is sent. The log comes from the latency stack: a component that has charged it shows
//! the message here, and the time charged since it was last shown becomes slices. So the slices of a request follow
//! each other without a gap and sum to its latency stack. Tracing changes no time.

use std::collections::BTreeMap;

use super::id::{ComponentId, PortId};
use crate::address_map::is_pm;
use crate::line::{LineAddress, Version};
use crate::message::{Cause, Message, Opcode, RequestName, Stage};
use crate::time::{Duration, Time};

/// Which requests are traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Everything that leaves a host from the first persist on: of that region of interest, or of the first one.
    FromFirstPersist(Option<u32>),
    /// The persist of that number, counted from 1 inside regions of interest, and what it causes.
    Persist(u64),
    /// Everything that begins from the first time on and before the second.
    Window(Time, Time),
}

/// What a slice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// A part of the latency stack.
    Stage(Stage),
    /// The answer is on its way from the last-level cache to the core.
    ToCore,
    /// The medium writes the line; the write has been acknowledged before.
    MediaWrite,
}

/// Where in a component a slice lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Nowhere in particular.
    Anywhere,
    /// At that port.
    Port(PortId),
    /// In that bank of the medium.
    Bank(u32),
    /// In that core.
    Core(u16),
    /// At that socket of a host that has several.
    Socket(u16),
}

/// Some time of one request.
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    /// Whose.
    pub request: RequestName,
    /// Where.
    pub component: ComponentId,
    /// Where in it.
    pub place: Place,
    /// What.
    pub doing: Doing,
    /// The message that was there, where it is a part of the latency stack.
    pub message: Option<Opcode>,
    /// From when.
    pub from: Time,
    /// Until when.
    pub until: Time,
}

/// A traced request.
#[derive(Clone, Debug)]
pub struct TracedRequest {
    /// Why it was made.
    pub cause: Cause,
    /// Its line.
    pub line: LineAddress,
    /// The version that a write brings.
    pub version: Version,
    /// The component that made it.
    pub component: ComponentId,
    /// The core that asked for it, if one did.
    pub core: Option<u16>,
    /// Of a drain, the traced writes that brought what it drains.
    pub drains: Vec<RequestName>,
    /// What it is called, where its cause does not say it: what the load generator of a device asked for.
    pub called: Option<&'static str>,
    /// When it is complete; none while it is under way.
    pub completed: Option<Time>,
    /// What of its stack was in slices each time that it was shown.
    shown: Vec<Shown>,
}

/// How far a request's stack is in slices. Messages that come of one and go different ways, such as a snoop's answer
/// and its data, each go on from where they parted.
#[derive(Clone, Copy, Debug)]
struct Shown {
    parts_ps: [u64; Stage::COUNT],
    until: Time,
    message: Option<Opcode>,
}

impl Shown {
    fn is_before(&self, message: &Message) -> bool {
        let parts = self.parts_ps.iter().zip(message.stack.parts_ps());
        parts.into_iter().all(|(shown, part)| shown <= part)
    }
}

/// The value of something that is watched, from a time on.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Whose.
    pub component: ComponentId,
    /// What.
    pub gauge: String,
    /// From when on.
    pub time: Time,
    /// How much.
    pub value: u64,
}

/// What is taken down.
#[derive(Clone, Debug)]
pub struct Trace {
    selection: Selection,
    slices_max: usize,
    has_begun: bool,
    region: Option<u32>,
    persists: u64,
    under_way: usize,
    requests: Vec<TracedRequest>,
    slices: Vec<Slice>,
    samples: Vec<Sample>,
    levels: BTreeMap<(ComponentId, String), u64>,
    /// Traced writes in a persist buffer that are not drained yet.
    buffered: BTreeMap<LineAddress, Vec<RequestName>>,
    /// Traced writes to PM that are not on the medium yet.
    unwritten: BTreeMap<LineAddress, Vec<RequestName>>,
}

impl Trace {
    /// Nothing yet. After `slices_max` slices no more requests are taken up.
    pub fn new(selection: Selection, slices_max: usize) -> Trace {
        Trace {
            selection,
            slices_max,
            has_begun: false,
            region: None,
            persists: 0,
            under_way: 0,
            requests: Vec::new(),
            slices: Vec::new(),
            samples: Vec::new(),
            levels: BTreeMap::new(),
            buffered: BTreeMap::new(),
            unwritten: BTreeMap::new(),
        }
    }

    /// A region of interest begins, or none is any more. A program without any is one region as a whole.
    pub fn in_region(&mut self, region: Option<u32>) {
        self.region = region;
    }

    /// The requests, in the order in which they left; the first has the name 1.
    pub fn requests(&self) -> &[TracedRequest] {
        &self.requests
    }

    /// The slices, in the order in which they became known; those of one request in the order of time.
    pub fn slices(&self) -> &[Slice] {
        &self.slices
    }

    /// What was watched meanwhile, in the order of time.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Whether nothing more is to be taken down.
    pub fn is_over(&self, now: Time) -> bool {
        let takes_no_more = self.slices.len() >= self.slices_max
            || match self.selection {
                Selection::FromFirstPersist(_) => false,
                Selection::Persist(number) => self.persists >= number,
                Selection::Window(_, end) => now >= end,
            };
        takes_no_more && self.under_way == 0 && self.buffered.is_empty() && self.unwritten.is_empty()
    }

    /// Whether something is being followed.
    pub fn is_following(&self) -> bool {
        self.under_way > 0
    }

    /// A request leaves the last-level cache of `host`, which is at `place`; `core` asked for it. Gives it a name if it
    /// is to be traced.
    pub fn begin(&mut self, host: ComponentId, core: Option<u16>, place: Place, message: &mut Message) {
        let is_persist = message.cause.is_persist() && is_pm(message.line);
        self.persists += u64::from(is_persist && self.region.is_some());
        let is_selected = match self.selection {
            Selection::FromFirstPersist(region) => {
                let is_there = self.region.is_some() && region.is_none_or(|region| self.region == Some(region));
                self.has_begun |= is_there && is_persist;
                is_there && self.has_begun
            }
            Selection::Persist(number) => {
                is_persist && self.region.is_some() && self.persists == number && !self.has_begun
            }
            Selection::Window(from, until) => (from..until).contains(&message.stack.start()),
        };
        if !is_selected || self.slices.len() >= self.slices_max {
            return;
        }
        self.has_begun = true;
        self.add(host, core, message, Vec::new());
        self.show(host, core.map_or(place, Place::Core), message);
    }

    /// A component's own request begins, which is called so. Gives it a name if it is to be traced.
    pub fn begin_called(&mut self, component: ComponentId, called: &'static str, message: &mut Message) {
        let Selection::Window(from, until) = self.selection else { return };
        if (from..until).contains(&message.stack.start()) && self.slices.len() < self.slices_max {
            self.add(component, None, message, Vec::new());
            self.requests.last_mut().expect("it has just been added").called = Some(called);
        }
    }

    fn add(&mut self, component: ComponentId, core: Option<u16>, message: &mut Message, drains: Vec<RequestName>) {
        self.requests.push(TracedRequest {
            cause: message.cause,
            line: message.line,
            version: message.version,
            component,
            core,
            drains,
            called: None,
            completed: None,
            shown: vec![Shown { parts_ps: [0; Stage::COUNT], until: message.stack.start(), message: None }],
        });
        message.request = RequestName(self.requests.len() as u32);
        self.under_way += 1;
        if message.is_write() && is_pm(message.line) {
            self.unwritten.entry(message.line).or_default().push(message.request);
        }
    }

    /// Makes slices of the time that has been charged to a traced message since it was last shown. What was charged to
    /// several stages was so in the order of [`Stage`].
    pub fn show(&mut self, component: ComponentId, place: Place, message: &Message) {
        let name = message.request;
        let request = &mut self.requests[name.0 as usize - 1];
        let mut before = request.shown.iter().rev().filter(|shown| shown.is_before(message));
        let same = before.clone().find(|shown| shown.message == Some(message.opcode));
        let before = *same.or_else(|| before.next()).expect("all that a request brings begins where it began");
        let mut from = before.until;
        for (stage, (part, seen)) in
            Stage::ALL.into_iter().zip(message.stack.parts_ps().iter().copied().zip(before.parts_ps))
        {
            if part > seen {
                let until = from + Duration::from_ps(part - seen);
                let (doing, message) = (Doing::Stage(stage), Some(message.opcode));
                self.slices.push(Slice { request: name, component, place, doing, message, from, until });
                from = until;
            }
        }
        debug_assert_eq!(from, message.stack.charged_until(), "charges are in another order than that of the stages");
        let (parts_ps, until) = (*message.stack.parts_ps(), message.stack.charged_until());
        request.shown.push(Shown { parts_ps, until, message: Some(message.opcode) });
    }

    /// A traced write is in a persist buffer.
    pub fn enter_buffer(&mut self, message: &Message) {
        take(&mut self.unwritten, message.line, |name| name == message.request);
        self.buffered.entry(message.line).or_default().push(message.request);
    }

    /// A persist buffer drains a line: a request of its own, which is traced if a write that brought the line is.
    pub fn begin_drain(&mut self, switch: ComponentId, message: &mut Message) {
        let requests = &self.requests;
        let is_in_it = |name: RequestName| requests[name.0 as usize - 1].version <= message.version;
        let drains = take(&mut self.buffered, message.line, is_in_it);
        if !drains.is_empty() {
            self.add(switch, None, message, drains);
        }
    }

    /// A traced request is complete: its answer is where it was made. The core knows at `at_core`.
    pub fn complete(&mut self, component: ComponentId, message: &Message, at_core: Option<Time>) {
        let request = &mut self.requests[message.request.0 as usize - 1];
        let from = message.stack.charged_until();
        request.completed = Some(from);
        self.under_way -= 1;
        if let Some((until, core)) = at_core.filter(|&until| until > from).zip(request.core) {
            let (request, place, doing) = (message.request, Place::Core(core), Doing::ToCore);
            self.slices.push(Slice { request, component, place, doing, message: None, from, until });
        }
    }

    /// The medium of a device writes a line in its bank.
    pub fn media_write(&mut self, component: ComponentId, write: &MediaWrite) {
        let requests = &self.requests;
        let is_in_it = |name: RequestName| requests[name.0 as usize - 1].version <= write.version;
        let names = take(&mut self.unwritten, write.line, is_in_it);
        if let Some(&request) = names.last().filter(|_| write.is_complete) {
            let (place, doing) = (Place::Bank(write.bank), Doing::MediaWrite);
            let (from, until) = (write.from, write.until);
            self.slices.push(Slice { request, component, place, doing, message: None, from, until });
        }
    }

    /// Takes the values of what is watched in a component down, where they have changed.
    pub fn sample(&mut self, component: ComponentId, time: Time, gauges: Vec<(String, u64)>) {
        for (gauge, value) in gauges {
            let before = self.levels.insert((component, gauge.clone()), value);
            if before != Some(value) {
                self.samples.push(Sample { component, gauge, time, value });
            }
        }
    }
}

/// A line that a medium writes.
#[derive(Clone, Copy, Debug)]
pub struct MediaWrite {
    /// The line.
    pub line: LineAddress,
    /// What is written.
    pub version: Version,
    /// The bank.
    pub bank: u32,
    /// From when.
    pub from: Time,
    /// Until when.
    pub until: Time,
    /// Whether the write was complete before: if not, this time is part of its latency stack.
    pub is_complete: bool,
}

/// Takes the names of a line for which that holds.
fn take(
    names: &mut BTreeMap<LineAddress, Vec<RequestName>>,
    line: LineAddress,
    holds: impl Fn(RequestName) -> bool,
) -> Vec<RequestName> {
    let Some(list) = names.get_mut(&line) else { return Vec::new() };
    let (taken, left) = list.drain(..).partition(|&name| holds(name));
    *list = left;
    if list.is_empty() {
        names.remove(&line);
    }
    taken
}
