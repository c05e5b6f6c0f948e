//! What can happen to the line.

use fencepost_sim::device::type2::device_memory::host::{Line, Outcome, Output};
use fencepost_sim::device::type2::device_memory::{Ask, Completion, MemRequest};
use fencepost_sim::device::type2::messages::CacheState;

use super::super::predicates::{ORDERLY, Predicate};
use super::super::world::Fresh;
use super::DeviceMemory;
use super::world::World;

/// One action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The device reads or writes by its cache, or asks the host for it.
    Access(Ask),
    /// The device writes memory, past its cache, in device bias.
    WriteMemory,
    /// The device's cache gives its copy up.
    DeviceEvict,
    /// The host sends a request.
    Request(MemRequest),
    /// The host writes its copy.
    HostStore,
    /// The host gives its copy up.
    HostEvict,
    /// The host writes the line past its caches.
    WriteAround,
    /// What the device asks reaches the host.
    Ask,
    /// A request reaches the device: the first that was sent, or the second.
    Arrives(usize),
    /// A write reaches the device.
    Write,
    /// `BIConflict` reaches the device.
    Conflict,
    /// The answer to a snoop reaches the device.
    BiRsp,
    /// An answer without data reaches the host.
    Completion,
    /// Data reach the host.
    Data,
}

impl Action {
    /// Whether it may be left undone for ever.
    pub fn is_optional(self) -> bool {
        matches!(
            self,
            Action::Access(_)
                | Action::WriteMemory
                | Action::DeviceEvict
                | Action::Request(_)
                | Action::HostStore
                | Action::HostEvict
                | Action::WriteAround
        )
    }

    /// In words.
    pub fn said(self, world: &World) -> String {
        match self {
            Action::Access(Ask::Share) => "the device reads".to_owned(),
            Action::Access(Ask::Own) => "the device writes".to_owned(),
            Action::WriteMemory => "the device writes memory past its cache".to_owned(),
            Action::DeviceEvict => "the device's cache gives its copy up".to_owned(),
            Action::Request(request) => format!("the host sends {request:?}"),
            Action::HostStore => "the host writes its copy".to_owned(),
            Action::HostEvict => "the host gives its copy up".to_owned(),
            Action::WriteAround => "the host writes past its caches".to_owned(),
            Action::Ask => format!("the wish of the device to {:?} reaches the host", world.ask),
            Action::Arrives(place) => format!("{:?} reaches the device", world.requests[place]),
            Action::Write => "the host's write reaches the device".to_owned(),
            Action::Conflict => "BIConflict reaches the device".to_owned(),
            Action::BiRsp => format!("BIRsp {:?} reaches the device", world.bi_rsp),
            Action::Completion => format!("{:?} reaches the host", world.completions[0]),
            Action::Data => "data reach the host".to_owned(),
        }
    }
}

/// What an action leads to.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Everything afterwards.
    pub next: World,
    /// The predicate that the action itself breaks.
    pub breaks: Option<&'static Predicate>,
}

/// What both ends leave behind while one of them acts.
struct Sent {
    world: World,
    is_orderly: bool,
    wrote: bool,
}

impl DeviceMemory {
    /// Lets `visit` see everything that can happen.
    pub fn each_action(&self, world: &World, visit: &mut impl FnMut(Action)) {
        let World { device, host, .. } = world;
        let mut may = |is_possible: bool, action| {
            if is_possible {
                visit(action);
            }
        };
        for ask in Ask::ALL {
            // A read that the cache has changes nothing.
            let changes = ask == Ask::Own || !device.has(ask);
            may(device.asked.is_none() && changes, Action::Access(ask));
        }
        let is_alone = device.asked.is_none() && !device.must_ask(Ask::Own);
        may(is_alone, Action::WriteMemory);
        may(device.asked.is_none() && device.cache != CacheState::Invalid, Action::DeviceEvict);
        for request in [MemRequest::Read, MemRequest::ReadOwn, MemRequest::Invalidate] {
            may(host.may_request(request), Action::Request(request));
        }
        may(host.may_store(), Action::HostStore);
        may(host.may_evict(), Action::HostEvict);
        may(host.may_write_around(), Action::WriteAround);
        may(world.ask.is_some() && host.serves(self.kind), Action::Ask);
        for place in 0..2 {
            let is_first = place == 0 || !self.rules.forward_is_not_passed;
            let request = world.requests[place].filter(|_| is_first);
            may(request.is_some_and(|it| device.answers(&self.rules, self.kind, it)), Action::Arrives(place));
        }
        may(world.write.is_some(), Action::Write);
        may(world.conflict, Action::Conflict);
        may(world.bi_rsp.is_some(), Action::BiRsp);
        may(world.completions[0].is_some(), Action::Completion);
        may(world.data.is_some(), Action::Data);
    }

    /// Does an action.
    pub fn apply(&self, world: &World, action: Action) -> Step {
        let mut sent = self.applied(*world, action);
        if sent.wrote {
            // What is written becomes the newest; all else has to be outdated first.
            let mut outdated = *world;
            outdated.outdate();
            sent = self.applied(outdated, action);
        }
        sent.world.forget_invalid();
        Step { next: sent.world, breaks: (!sent.is_orderly).then_some(&ORDERLY) }
    }

    fn applied(&self, world: World, action: Action) -> Sent {
        let mut sent = Sent { world, is_orderly: true, wrote: false };
        match action {
            Action::Access(ask) => self.access(&mut sent, ask),
            Action::WriteMemory => {
                sent.world.device.write_memory(Fresh::NEWEST);
                sent.wrote = true;
            }
            Action::DeviceEvict => sent.world.device.evict(),
            Action::Request(request) => {
                sent.world.host.request(request);
                sent.output(Output::Request(request));
            }
            Action::HostStore => {
                sent.world.host.store(Fresh::NEWEST);
                sent.wrote = true;
            }
            Action::HostEvict => {
                let output = sent.world.host.evict();
                output.into_iter().for_each(|output| sent.output(output));
            }
            Action::WriteAround => {
                let output = sent.world.host.write_around(Fresh(0));
                sent.output(output);
                sent.world.is_around = true;
            }
            Action::Ask => {
                let ask = sent.world.ask.take().expect("it arrives");
                self.at_host(&mut sent, |host, send| {
                    host.take_ask(&self.rules, self.kind, ask, &mut |output| send(output));
                    Outcome::Nothing
                });
            }
            Action::Arrives(place) => self.request_arrives(&mut sent, place),
            Action::Write => {
                let (data, meta) = sent.world.write.take().expect("it arrives");
                let is_around = std::mem::take(&mut sent.world.is_around);
                let data = if is_around { Fresh::NEWEST } else { data };
                let completion = sent.world.device.take_write(&self.rules, data, meta);
                sent.complete(completion);
                sent.wrote = is_around;
            }
            Action::Conflict => {
                sent.world.conflict = false;
                sent.complete(Completion::BiConflictAck);
            }
            Action::BiRsp => {
                let meta = sent.world.bi_rsp.take().expect("it arrives");
                let asked = sent.world.device.take_answer(meta);
                self.granted(&mut sent, asked);
            }
            Action::Completion => {
                let [first, second] = sent.world.completions;
                sent.world.completions = [second, None];
                let completion = first.expect("it arrives");
                self.at_host(&mut sent, |host, send| {
                    host.take_completion(&self.rules, self.kind, completion, Fresh::NEWEST, &mut |output| send(output))
                });
            }
            Action::Data => {
                let data = sent.world.data.take().expect("it arrives");
                self.at_host(&mut sent, |host, send| {
                    host.take_data(&self.rules, self.kind, data, Fresh::NEWEST, &mut |output| send(output))
                });
            }
        }
        sent
    }

    /// The device does an access, or asks for it.
    fn access(&self, sent: &mut Sent, ask: Ask) {
        if sent.world.device.has(ask) || !sent.world.device.must_ask(ask) {
            sent.world.device.access(ask, Fresh::NEWEST);
            sent.wrote |= ask == Ask::Own;
            return;
        }
        sent.world.device.ask(ask);
        sent.is_orderly &= sent.world.ask.replace(ask).is_none();
    }

    /// What the device asked for is done now, if the host keeps nothing that is in its way.
    fn granted(&self, sent: &mut Sent, asked: Option<Ask>) {
        match asked {
            Some(ask) => self.access(sent, ask),
            None => sent.is_orderly = false,
        }
    }

    fn request_arrives(&self, sent: &mut Sent, place: usize) {
        let request = sent.world.requests[place].take().expect("it arrives");
        if place == 0 {
            sent.world.requests = [sent.world.requests[1], None];
        }
        if let MemRequest::Forward(meta) = request {
            let asked = sent.world.device.take_answer(meta);
            return self.granted(sent, asked);
        }
        let answer = sent.world.device.take_request(&self.rules, request);
        sent.complete(answer.completion);
        if let Some(data) = answer.data {
            sent.is_orderly &= sent.world.data.replace(data).is_none();
        }
    }

    fn at_host(&self, sent: &mut Sent, act: impl FnOnce(&mut Line<Fresh>, &mut dyn FnMut(Output<Fresh>)) -> Outcome) {
        let mut outputs = Vec::new();
        match act(&mut sent.world.host, &mut |output| outputs.push(output)) {
            Outcome::Nothing => {}
            Outcome::Wrote => sent.wrote = true,
            Outcome::Unexpected => sent.is_orderly = false,
        }
        outputs.into_iter().for_each(|output| sent.output(output));
    }
}

impl Sent {
    fn output(&mut self, output: Output<Fresh>) {
        self.is_orderly &= match output {
            Output::Request(request) => match self.world.requests.iter_mut().find(|place| place.is_none()) {
                Some(place) => place.replace(request).is_none(),
                None => false,
            },
            Output::Write(data, meta) => self.world.write.replace((data, meta)).is_none(),
            Output::BiRsp(meta) => self.world.bi_rsp.replace(meta).is_none(),
            Output::BiConflict => !std::mem::replace(&mut self.world.conflict, true),
        };
    }

    fn complete(&mut self, completion: Completion) {
        self.is_orderly &= match self.world.completions.iter_mut().find(|place| place.is_none()) {
            Some(place) => place.replace(completion).is_none(),
            None => false,
        };
    }
}
