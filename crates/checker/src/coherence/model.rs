//! What can happen: accesses that devices and cores begin, and messages that arrive.

use fencepost_sim::device::type2::Rules;
use fencepost_sim::device::type2::dcoh::Outcome as DeviceOutcome;
use fencepost_sim::device::type2::device_memory::MemoryRules;
use fencepost_sim::device::type2::host_side::{Access, LastLevel, Outcome, Output, Requester};
use fencepost_sim::device::type2::messages::{CacheState, Part, Request, Response, Snoop, SnoopResponse};

use super::bounds::Bounds;
use super::device_memory::DeviceMemory;
use super::predicates::{DATA_VALUE, Looks, ORDERLY};
use super::world::{Channels, Fresh, Line, World};

/// One action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// The line.
    pub line: usize,
    /// Who does it, and what.
    pub what: What,
}

/// What is done to a line. The first number is that of the device or core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A device sends a request.
    Request(usize, Request),
    /// A device writes its own copy.
    Store(usize),
    /// A device drops a clean copy.
    Drop(usize),
    /// A core starts to wait for what its cache does not have.
    Access(usize, Access),
    /// A core writes its own copy.
    CoreStore(usize),
    /// A core evicts its copy.
    CoreEvict(usize),
    /// The last-level cache evicts the line.
    LastLevelEvict,
    /// The host begins to serve a request of a device, with the first or the second of two right answers.
    ServeDevice(usize, bool),
    /// The host begins to serve a core.
    ServeCore(usize),
    /// A device answers a snoop, and may give the line up where sharing is enough.
    Snooped(usize, bool),
    /// A device takes a response.
    Response(usize),
    /// A device takes data.
    Data(usize),
    /// The host takes the response to a snoop.
    SnoopResponse(usize),
    /// The host takes what a snoop brings.
    SnoopedData(usize),
    /// The host takes what it has pulled.
    Pulled(usize),
}

impl What {
    /// Whether it may be left undone for ever.
    pub fn is_optional(self) -> bool {
        matches!(
            self,
            What::Request(..)
                | What::Store(_)
                | What::Drop(_)
                | What::Access(..)
                | What::CoreStore(_)
                | What::CoreEvict(_)
                | What::LastLevelEvict
        )
    }
}

/// What is explored.
#[derive(Clone, Debug)]
pub struct Model {
    /// The bounds.
    pub bounds: Bounds,
    /// The rules that both ends keep to.
    pub rules: Rules,
    /// The predicates that are looked at.
    pub looks: Looks,
    /// What is explored instead of host memory, if it is device memory.
    pub device_memory: Option<DeviceMemory>,
    pub(super) makes: [bool; Request::ALL.len()],
}

/// What an action leads to.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Everything afterwards.
    pub next: World,
    /// The predicate that the action itself breaks.
    pub breaks: Option<&'static str>,
}

impl Model {
    /// The rules as they should be.
    pub fn sound(bounds: Bounds) -> Model {
        let makes = bounds.makes();
        let device_memory =
            bounds.device_memory.map(|kind| DeviceMemory { kind: kind.into(), rules: MemoryRules::SOUND });
        Model { bounds, rules: Rules::SOUND, looks: Looks::AtAll, device_memory, makes }
    }

    /// How many devices, cores and lines there are.
    pub fn sizes(&self) -> [usize; 3] {
        [self.bounds.devices.into(), self.bounds.cores.into(), self.bounds.lines.into()]
    }

    /// Lets `visit` see everything that can happen.
    pub fn each_action(&self, world: &World, visit: &mut impl FnMut(Action)) {
        let [devices, cores, lines] = self.sizes();
        for line in 0..lines {
            let mut visit = |what| visit(Action { line, what });
            for device in 0..devices {
                self.each_access_of_device(world, line, device, &mut visit);
                self.each_message(&world.lines[line], device, &mut visit);
            }
            let host = &world.lines[line].host;
            for core in 0..cores {
                let waits = world.lines[..lines].iter().any(|line| line.host.cores[core].access.is_some());
                let accesses = Access::ALL.into_iter().filter(|access| !waits && host.may_access(core, *access));
                accesses.for_each(|access| visit(What::Access(core, access)));
                if host.may_store(core) {
                    visit(What::CoreStore(core));
                }
                if host.may_evict(core) {
                    visit(What::CoreEvict(core));
                }
                if host.service.is_none() && host.cores[core].access.is_some() {
                    visit(What::ServeCore(core));
                }
            }
            if host.last_level != LastLevel::Nothing {
                visit(What::LastLevelEvict);
            }
        }
    }

    fn each_access_of_device(&self, world: &World, line: usize, device: usize, visit: &mut impl FnMut(What)) {
        let lines = &world.lines[..self.sizes()[2]];
        let own = &lines[line].devices[device].line;
        if own.may_store() {
            visit(What::Store(device));
        }
        if own.may_drop() {
            visit(What::Drop(device));
        }
        let transactions = || lines.iter().filter_map(|line| line.devices[device].line.transaction);
        let is_flushing = transactions().any(|transaction| transaction.request == Request::CacheFlushed);
        if is_flushing || transactions().count() >= usize::from(self.bounds.transactions) {
            return;
        }
        for request in Request::ALL {
            let is_empty = || lines.iter().all(|line| line.devices[device].line.may_request(request));
            if self.makes[request as usize]
                && own.may_request(request)
                && (request != Request::CacheFlushed || is_empty())
            {
                visit(What::Request(device, request));
            }
        }
    }

    /// Messages arrive in any order, but for one rule: a response pushes the snoops that were sent after it.
    fn each_message(&self, line: &Line, device: usize, visit: &mut impl FnMut(What)) {
        let Channels { request, snoop_response, snooped, pulled, snoop, response, data } =
            line.devices[device].channels;
        if request && line.host.service.is_none() {
            visit(What::ServeDevice(device, false));
            let asked = line.devices[device].line.transaction.map(|transaction| transaction.request);
            if matches!(asked, Some(Request::CleanEvict | Request::ItoMWr | Request::WrCur)) {
                visit(What::ServeDevice(device, true));
            }
        }
        let own = &line.devices[device].line;
        let is_pushed = self.rules.snoop_pushes_go && response.is_some();
        if let Some(snoop) = snoop
            && !is_pushed
            && own.answers_snoops(&self.rules)
            && snoop_response.is_none()
        {
            visit(What::Snooped(device, false));
            if snoop == Snoop::SnpData && own.state != CacheState::Invalid {
                visit(What::Snooped(device, true));
            }
        }
        let arrivals = [
            (response.is_some(), What::Response(device)),
            (data.is_some(), What::Data(device)),
            (snoop_response.is_some(), What::SnoopResponse(device)),
            (snooped.is_some(), What::SnoopedData(device)),
            (pulled.is_some(), What::Pulled(device)),
        ];
        arrivals.into_iter().filter(|(has_arrived, _)| *has_arrived).for_each(|(_, what)| visit(what));
    }

    /// Does an action.
    pub fn apply(&self, world: &World, action: Action) -> Step {
        let (mut step, wrote) = self.applied(*world, action);
        if let Some(part) = wrote {
            // What is written becomes the newest; all else has to be outdated first.
            let mut outdated = *world;
            outdated.lines[action.line].outdate(part);
            step = self.applied(outdated, action).0;
        }
        step.next.lines[action.line].forget_invalid();
        step
    }

    fn applied(&self, mut next: World, action: Action) -> (Step, Option<Part>) {
        let line = &mut next.lines[action.line];
        let mut wrote = None;
        let mut is_orderly = true;
        let mut reads = None;
        match action.what {
            What::Request(device, request) => {
                line.devices[device].line.request(request);
                line.devices[device].channels.request = true;
            }
            What::Store(device) => {
                line.devices[device].line.store(Fresh::NEWEST);
                wrote = Some(Part::Some);
            }
            What::Drop(device) => line.devices[device].line.drop_copy(),
            What::Access(core, access) => line.host.cores[core].access = Some(access),
            What::CoreStore(core) => {
                line.host.store(core, Fresh::NEWEST);
                wrote = Some(Part::Some);
            }
            What::CoreEvict(core) => line.host.evict(core),
            What::LastLevelEvict => line.host.evict_last_level(),
            What::Snooped(device, gives_up) => is_orderly = self.snooped(line, device, gives_up),
            What::Response(device) | What::Data(device) => {
                let outcome = self.arrives_at_device(line, device, matches!(action.what, What::Data(_)));
                (is_orderly, wrote, reads) = follow(line, device, outcome);
            }
            what => {
                let outcome = self.arrives_at_host(line, what, &mut is_orderly);
                match outcome {
                    Outcome::Wrote(part) => wrote = Some(part),
                    Outcome::Unexpected => is_orderly = false,
                    Outcome::HoldsNothing(device) => {
                        next.lines.iter_mut().for_each(|line| line.host.forget(&self.rules, device));
                    }
                    Outcome::Nothing => {}
                }
            }
        }
        let breaks = if !is_orderly && self.looks.at(&ORDERLY) {
            Some(ORDERLY.name)
        } else if reads.is_some_and(|data| data != Fresh::NEWEST) && self.looks.at(&DATA_VALUE) {
            Some(DATA_VALUE.name)
        } else {
            None
        };
        (Step { next, breaks }, wrote)
    }

    fn snooped(&self, line: &mut Line, device: usize, gives_up: bool) -> bool {
        let Line { host, devices } = line;
        let device = &mut devices[device];
        let snoop = device.channels.snoop.take().expect("it arrives");
        let (response, data) = device.line.take_snoop(&self.rules, snoop, gives_up);
        // An owner that answers so may write its copy at once, before the host reads its own. What the host reads then
        // is what it has now, and that is the newest now: a right answer to `RdCurr`.
        if response == SnoopResponse::RspVHitV {
            let held = host.held();
            host.service.iter_mut().for_each(|service| service.current = service.current.or(Some(held)));
        }
        device.channels.snoop_response = Some(response);
        let is_orderly = data.is_none() || device.channels.snooped.is_none();
        device.channels.snooped = data.or(device.channels.snooped);
        is_orderly
    }

    fn arrives_at_device(&self, line: &mut Line, device: usize, is_data: bool) -> DeviceOutcome<Fresh> {
        let device = &mut line.devices[device];
        if is_data {
            let data = device.channels.data.take().expect("it arrives");
            device.line.take_data(&self.rules, data)
        } else {
            let response = device.channels.response.take().expect("it arrives");
            device.line.take_response(&self.rules, response, Fresh::NEWEST)
        }
    }

    fn arrives_at_host(&self, line: &mut Line, what: What, is_orderly: &mut bool) -> Outcome {
        let (rules, written) = (&self.rules, Fresh::NEWEST);
        let Line { host, devices } = line;
        let channels = match what {
            What::ServeDevice(device, _)
            | What::SnoopResponse(device)
            | What::SnoopedData(device)
            | What::Pulled(device) => devices[device].channels,
            _ => Channels::default(),
        };
        let asked = match what {
            What::ServeDevice(device, _) => devices[device].line.transaction.map(|transaction| transaction.request),
            _ => None,
        };
        match what {
            What::ServeDevice(device, _) => devices[device].channels.request = false,
            What::SnoopResponse(device) => devices[device].channels.snoop_response = None,
            What::SnoopedData(device) => devices[device].channels.snooped = None,
            What::Pulled(device) => devices[device].channels.pulled = None,
            _ => {}
        }
        let mut send = |output: Output<Fresh>| *is_orderly &= put(devices, output);
        match what {
            What::ServeDevice(device, second) => {
                // Where a rule is broken, a device may have ended its transaction before its request is taken.
                let Some(request) = asked else { return Outcome::Unexpected };
                let requester = Requester::Device(device, request);
                if host.refuses(rules, requester) {
                    send(Output::Response(device, Response::Go(CacheState::Invalid)));
                    return Outcome::Nothing;
                }
                host.serve(rules, requester, second, written, &mut send)
            }
            What::ServeCore(core) => {
                let access = host.cores[core].access.expect("it waits");
                host.serve(rules, Requester::Core(core, access), false, written, &mut send)
            }
            What::SnoopResponse(device) => {
                let response = channels.snoop_response.expect("it arrives");
                host.take_snoop_response(rules, device, response, written, &mut send)
            }
            What::SnoopedData(device) => {
                host.take_snooped_data(rules, device, channels.snooped.expect("it arrives"), written, &mut send)
            }
            What::Pulled(device) => host.take_pulled(rules, device, channels.pulled.expect("it arrives"), &mut send),
            _ => unreachable!("{what:?} does not arrive at the host"),
        }
    }
}

/// A message of the host goes into its channel. Whether that was empty.
fn put(devices: &mut [super::world::Device], output: Output<Fresh>) -> bool {
    match output {
        Output::Snoop(device, snoop) => devices[device].channels.snoop.replace(snoop).is_none(),
        Output::Response(device, response) => devices[device].channels.response.replace(response).is_none(),
        Output::Data(device, data) => devices[device].channels.data.replace(data).is_none(),
    }
}

/// What the device does goes where it belongs. Whether all was as it should be, what was written, and what was read.
fn follow(line: &mut Line, device: usize, outcome: DeviceOutcome<Fresh>) -> (bool, Option<Part>, Option<Fresh>) {
    let channels = &mut line.devices[device].channels;
    match outcome {
        DeviceOutcome::Nothing => (true, None, None),
        DeviceOutcome::Send(pulled) => (channels.pulled.replace(pulled).is_none(), None, None),
        DeviceOutcome::SendAndRequest(pulled) => {
            channels.request = true;
            (channels.pulled.replace(pulled).is_none(), None, None)
        }
        DeviceOutcome::Request => {
            channels.request = true;
            (true, None, None)
        }
        DeviceOutcome::Wrote(part) => (true, Some(part), None),
        DeviceOutcome::Read(data) => (true, None, Some(data)),
        DeviceOutcome::Unexpected => (false, None, None),
    }
}
