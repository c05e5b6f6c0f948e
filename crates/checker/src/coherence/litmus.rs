//! Litmus tests across devices and cores, explored: every outcome that the state machines of host memory allow, from
//! every start. The tests are those of [`fencepost_sim::device::type2::litmus`].
//!
//! What is forbidden has to be out of reach, what is relaxed within it; and something forbidden has to come back where
//! barriers do not wait. Which of the [`mutants`] bring it back is found by trying all.

use std::collections::{BTreeSet, HashSet};

use fencepost_sim::device::type2::Rules;
use fencepost_sim::device::type2::dcoh::{Line as DeviceLine, Outcome as AtDevice};
use fencepost_sim::device::type2::host_side::{
    Access, Holds, Line as HostLine, Outcome as AtHost, Output, Requester as Served,
};
use fencepost_sim::device::type2::litmus::{self, By, CORES, DEVICES, LINES, Litmus, Op, Outcome, Start};
use fencepost_sim::device::type2::messages::{
    CacheState, Part, Payload, Pulled, Request, Response, Snoop, SnoopResponse,
};
use fencepost_sim::nearest::there_is_no;
use serde::Serialize;

use super::mutants::{self, Mutant};

/// The variant in which devices do not wait at barriers.
pub const BARRIERS_DO_NOT_WAIT: &str = "barriers-do-not-wait";

/// The most threads of a test.
const THREADS: usize = DEVICES + CORES;
/// The most accesses of a thread.
const OPS: usize = 3;

/// What came of a test.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Its name.
    pub name: &'static str,
    /// The threads, in words.
    pub threads: Vec<Shown>,
    /// What the values of an outcome are of.
    pub columns: Vec<String>,
    /// All outcomes.
    pub outcomes: BTreeSet<Outcome>,
    /// What must not be among them.
    pub forbidden: Vec<Outcome>,
    /// What must be, though no order of the accesses explains it.
    pub relaxed: Vec<Outcome>,
    /// States seen, of all starts together.
    pub states: u64,
    /// Whether nothing forbidden is reached and nothing relaxed is missed, no state is stuck, and something forbidden
    /// is reached where barriers do not wait.
    pub holds: bool,
    /// The broken variants that come to something forbidden; where barriers do not wait, whether or not.
    pub broken: Vec<Broken>,
}

/// A thread in words.
#[derive(Clone, Debug, Serialize)]
pub struct Shown {
    /// Who it is.
    pub by: String,
    /// What it does.
    pub does: Vec<String>,
}

/// A broken variant of a test.
#[derive(Clone, Debug, Serialize)]
pub struct Broken {
    /// Its name: a mutant's, or [`BARRIERS_DO_NOT_WAIT`].
    pub name: &'static str,
    /// What it does wrong.
    pub does: &'static str,
    /// The forbidden outcomes that it comes to.
    pub reaches: Vec<Outcome>,
}

/// The test of that name.
pub fn named(name: &str) -> Result<&'static Litmus, String> {
    litmus::ALL.iter().find(|test| test.name == name).ok_or_else(|| {
        let names: Vec<&str> = litmus::ALL.iter().map(|test| test.name).collect();
        there_is_no("litmus test", name, &names)
    })
}

/// Explores a test and its broken variants.
pub fn explore(test: &'static Litmus) -> Report {
    explore_with(test, mutants::ALL)
}

/// Explores a test, and tries those mutants.
fn explore_with(test: &'static Litmus, tried: &[Mutant]) -> Report {
    let sound = Explored { test, rules: Rules::SOUND, barriers_wait: true }.of_all_starts();
    let needs_barriers = test.has_barriers() && !test.forbidden.is_empty();
    let barriers = needs_barriers.then(|| {
        let broken = Explored { test, rules: Rules::SOUND, barriers_wait: false }.of_all_starts();
        let does = "devices do not wait at barriers";
        Broken { name: BARRIERS_DO_NOT_WAIT, does, reaches: test.forbidden_of(&broken.outcomes) }
    });
    let mutants = tried.iter().filter(|_| !test.forbidden.is_empty()).map(|mutant| {
        let broken = Explored { test, rules: mutant.rules, barriers_wait: true }.of_all_starts();
        Broken { name: mutant.name, does: mutant.does, reaches: test.forbidden_of(&broken.outcomes) }
    });
    let mutants = mutants.filter(|broken| !broken.reaches.is_empty());
    let broken: Vec<Broken> = barriers.into_iter().chain(mutants).collect();
    let is_sound = test.forbidden_of(&sound.outcomes).is_empty() && test.missed(&sound.outcomes).is_empty();
    let all = |outcomes: &[&[u8]]| outcomes.iter().map(|outcome| outcome.to_vec()).collect();
    Report {
        name: test.name,
        threads: test.numbered().map(shown).collect(),
        columns: test.columns(),
        forbidden: all(test.forbidden),
        relaxed: all(test.relaxed),
        states: sound.states,
        holds: is_sound && sound.stuck == 0 && broken.iter().all(|variant| !variant.reaches.is_empty()),
        outcomes: sound.outcomes,
        broken,
    }
}

fn shown((number, thread): (usize, litmus::Thread)) -> Shown {
    let by = ["device", "core"][thread.by as usize];
    Shown { by: format!("{by} {number}"), does: thread.ops.iter().map(|op| op.shown()).collect() }
}

/// What is explored: a test under rules; `barriers_wait`: devices wait at them.
struct Explored {
    test: &'static Litmus,
    rules: Rules,
    barriers_wait: bool,
}

/// What was found.
#[derive(Default)]
struct Found {
    outcomes: BTreeSet<Outcome>,
    states: u64,
    /// States in which nothing can go on, though something is left to be done, or a message came that nothing waits
    /// for.
    stuck: u64,
}

/// What a line holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Value(u8);

impl Payload for Value {
    fn overlaid(self, written: Value, _: Part) -> Value {
        written
    }
}

type Host = HostLine<Value, DEVICES, CORES>;

/// A line at a device, and the messages between it and the host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Device {
    line: DeviceLine<Value>,
    /// The access whose transaction is under way.
    op: usize,
    request: Option<Request>,
    snoop: Option<Snoop>,
    response: Option<Response>,
    data: Option<Value>,
    snoop_response: Option<SnoopResponse>,
    snooped: Option<Value>,
    pulled: Option<Pulled<Value>>,
}

/// A line everywhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Everywhere {
    host: Host,
    devices: [Device; DEVICES],
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    lines: [Everywhere; LINES],
    /// Accesses that each thread has begun.
    begun: [usize; THREADS],
    /// By thread, whether a core waits for its last one.
    waits: [bool; THREADS],
    /// By thread and access, what was read.
    reads: [[u8; OPS]; THREADS],
    /// A message has come that nothing waits for.
    is_broken: bool,
}

/// A thread of a test: its number among all, and among the devices or the cores.
#[derive(Clone, Copy)]
struct Who {
    thread: usize,
    number: usize,
}

impl World {
    fn new(start: Start) -> World {
        let device = Device {
            line: DeviceLine::new(Value(0)),
            op: 0,
            request: None,
            snoop: None,
            response: None,
            data: None,
            snoop_response: None,
            snooped: None,
            pulled: None,
        };
        let mut line = Everywhere { host: Host::new(Value(0)), devices: [device.clone(), device] };
        if start == Start::CoreOwns {
            line.host.cores[0].state = CacheState::Exclusive;
        }
        let mut lines = [line.clone(), line];
        if start == Start::DeviceShares {
            lines[0].devices[0].line.state = CacheState::Shared;
            lines[0].host.devices[0].holds = Holds::Shared;
        }
        World { lines, begun: [0; THREADS], waits: [false; THREADS], reads: [[0; OPS]; THREADS], is_broken: false }
    }

    /// Whether nothing is under way of any device, or of one.
    fn is_quiet(&self, device: Option<usize>) -> bool {
        let is_quiet = |at: &Device| at.line.transaction.is_none();
        self.lines.iter().all(|line| match device {
            Some(device) => is_quiet(&line.devices[device]),
            None => line.devices.iter().all(is_quiet) && line.host.service.is_none(),
        })
    }

    /// What a line holds when nothing is under way.
    fn held(&self, line: usize) -> u8 {
        let Everywhere { host, devices } = &self.lines[line];
        let device = devices.iter().find(|device| device.line.state == CacheState::Modified);
        let core = host.cores.iter().find(|core| core.state == CacheState::Modified);
        let cached = device.map(|device| device.line.data).or(core.map(|core| core.data));
        cached.unwrap_or(host.held()).0
    }
}

impl Explored {
    fn of_all_starts(&self) -> Found {
        let mut found = Found::default();
        Start::ALL.into_iter().for_each(|start| self.explore(start, &mut found));
        found
    }

    /// Adds every outcome from that start.
    fn explore(&self, start: Start, found: &mut Found) {
        let (mut seen, mut open) = (HashSet::new(), vec![World::new(start)]);
        while let Some(world) = open.pop() {
            if !seen.insert(world.clone()) {
                continue;
            }
            found.states += 1;
            if world.is_broken {
                found.stuck += 1;
                continue;
            }
            let before = open.len();
            self.successors(&world, &mut open);
            if open.len() > before {
                continue;
            }
            let mut threads = self.test.threads.iter().zip(world.begun).zip(world.waits);
            if threads.all(|((thread, begun), waits)| begun == thread.ops.len() && !waits) && world.is_quiet(None) {
                found.outcomes.insert(self.test.outcome(|thread, op| world.reads[thread][op], |line| world.held(line)));
            } else {
                found.stuck += 1;
            }
        }
    }

    fn successors(&self, world: &World, open: &mut Vec<World>) {
        for (thread, (number, litmus::Thread { by, ops })) in self.test.numbered().enumerate() {
            let Some(op) = ops.get(world.begun[thread]) else { continue };
            let who = Who { thread, number };
            match by {
                By::Device => self.device_begins(world, who, *op, open),
                By::Core => Self::core_begins(world, who, *op, open),
            }
        }
        for line in 0..LINES {
            self.requests_arrive(world, line, open);
            for device in 0..DEVICES {
                self.device_is_told(world, line, device, open);
                self.host_is_told(world, line, device, open);
            }
        }
    }

    fn device_begins(&self, world: &World, who: Who, op: Op, open: &mut Vec<World>) {
        let mut next = world.clone();
        let index = world.begun[who.thread];
        next.begun[who.thread] += 1;
        let Some(line) = op.line() else {
            if world.is_quiet(Some(who.number)) || !self.barriers_wait {
                open.push(next);
            }
            return;
        };
        let at = &mut next.lines[line].devices[who.number];
        if at.line.transaction.is_some() {
            return;
        }
        let request = match op {
            Op::Read(_) => Request::RdCurr,
            Op::ReadShared(_) => Request::RdShared,
            Op::Write(..) => Request::WOWrInvF,
            Op::WriteOwned(..) => Request::RdOwnNoData,
            Op::Barrier => unreachable!("it is of no line"),
        };
        if op.reads() && at.line.state != CacheState::Invalid {
            next.reads[who.thread][index] = at.line.data.0;
            return open.push(next);
        }
        if matches!(op, Op::Write(..)) {
            // A clean copy is dropped first; no test writes past a modified one.
            at.line.drop_copy();
        }
        at.line.request(request);
        (at.request, at.op) = (Some(request), index);
        open.push(next);
    }

    fn core_begins(world: &World, who: Who, op: Op, open: &mut Vec<World>) {
        if world.waits[who.thread] {
            return;
        }
        let mut next = world.clone();
        let index = world.begun[who.thread];
        next.begun[who.thread] += 1;
        let (line, access) = match op {
            Op::Read(line) => (line, Access::Load),
            Op::Write(line, _) => (line, Access::Store),
            Op::WriteOwned(..) | Op::ReadShared(_) | Op::Barrier => unreachable!("these are the devices'"),
        };
        let host = &mut next.lines[line].host;
        if host.may_access(who.number, access) {
            host.cores[who.number].access = Some(access);
            next.waits[who.thread] = true;
        } else if let Some(value) = op.writes() {
            host.store(who.number, Value(value));
        } else {
            next.reads[who.thread][index] = host.cores[who.number].data.0;
        }
        open.push(next);
    }

    /// The host takes a request, if it serves none of the line; of two right answers it gives either.
    fn requests_arrive(&self, world: &World, line: usize, open: &mut Vec<World>) {
        let Everywhere { host, devices } = &world.lines[line];
        if host.service.is_some() {
            return;
        }
        let of_devices = devices.iter().enumerate();
        let of_devices = of_devices.filter_map(|(number, at)| Some(Served::Device(number, at.request?)));
        let of_cores = host.cores.iter().enumerate();
        let of_cores = of_cores.filter_map(|(number, core)| Some(Served::Core(number, core.access?)));
        for requester in of_devices.chain(of_cores) {
            for second in [false, true] {
                let mut next = world.clone();
                if let Served::Device(number, _) = requester {
                    next.lines[line].devices[number].request = None;
                }
                let written = self.written(&next, line, requester);
                self.at_host(&mut next, line, |host, rules, send| {
                    host.serve(rules, requester, second, written, &mut |output| send(output))
                });
                open.push(next);
            }
        }
    }

    /// Each message to a device that may arrive: a response pushes the snoops behind it.
    fn device_is_told(&self, world: &World, line: usize, device: usize, open: &mut Vec<World>) {
        let at = &world.lines[line].devices[device];
        let is_pushed = self.rules.snoop_pushes_go && at.response.is_some();
        let answers = at.line.answers_snoops(&self.rules) && at.snoop_response.is_none() && at.snooped.is_none();
        if let Some(snoop) = at.snoop.filter(|_| !is_pushed && answers) {
            for gives_up in [false, true] {
                let mut next = world.clone();
                let at = &mut next.lines[line].devices[device];
                let (response, data) = at.line.take_snoop(&self.rules, snoop, gives_up);
                (at.snoop, at.snoop_response, at.snooped) = (None, Some(response), data);
                open.push(next);
            }
        }
        if let Some(response) = at.response {
            let mut next = world.clone();
            let written = self.of_device(&next, line, device).writes().unwrap_or_default();
            let at = &mut next.lines[line].devices[device];
            at.response = None;
            let outcome = at.line.take_response(&self.rules, response, Value(written));
            self.device_goes_on(&mut next, line, device, outcome);
            open.push(next);
        }
        if let Some(data) = at.data {
            let mut next = world.clone();
            let at = &mut next.lines[line].devices[device];
            at.data = None;
            let outcome = at.line.take_data(&self.rules, data);
            self.device_goes_on(&mut next, line, device, outcome);
            open.push(next);
        }
    }

    /// Each message of a device to the host that may arrive.
    fn host_is_told(&self, world: &World, line: usize, device: usize, open: &mut Vec<World>) {
        let Everywhere { host, devices } = &world.lines[line];
        let at = &devices[device];
        let served = host.service.map(|service| service.requester);
        let written = served.map_or(Value(0), |requester| self.written(world, line, requester));
        if let Some(response) = at.snoop_response {
            let mut next = world.clone();
            next.lines[line].devices[device].snoop_response = None;
            self.at_host(&mut next, line, |host, rules, send| {
                host.take_snoop_response(rules, device, response, written, &mut |output| send(output))
            });
            open.push(next);
        }
        if let Some(data) = at.snooped {
            let mut next = world.clone();
            next.lines[line].devices[device].snooped = None;
            self.at_host(&mut next, line, |host, rules, send| {
                host.take_snooped_data(rules, device, data, written, &mut |output| send(output))
            });
            open.push(next);
        }
        if let Some(pulled) = at.pulled {
            let mut next = world.clone();
            next.lines[line].devices[device].pulled = None;
            self.at_host(&mut next, line, |host, rules, send| {
                host.take_pulled(rules, device, pulled, &mut |output| send(output))
            });
            open.push(next);
        }
    }

    /// The thread that a device or a core is.
    fn thread_of(&self, by: By, number: usize) -> usize {
        let mut numbered = self.test.numbered();
        numbered.position(|(other, thread)| thread.by == by && other == number).expect("only threads do anything")
    }

    /// The access whose transaction is under way at a device.
    fn of_device(&self, world: &World, line: usize, device: usize) -> Op {
        self.test.threads[self.thread_of(By::Device, device)].ops[world.lines[line].devices[device].op]
    }

    /// What a requester writes, if it does.
    fn written(&self, world: &World, line: usize, requester: Served) -> Value {
        let op = match requester {
            Served::Device(number, _) => self.of_device(world, line, number),
            Served::Core(number, _) => {
                let thread = self.thread_of(By::Core, number);
                self.test.threads[thread].ops[world.begun[thread] - 1]
            }
        };
        Value(op.writes().unwrap_or_default())
    }

    /// The host does something; its messages go out, and cores whose accesses are done go on.
    fn at_host(
        &self,
        next: &mut World,
        line: usize,
        act: impl FnOnce(&mut Host, &Rules, &mut dyn FnMut(Output<Value>)) -> AtHost,
    ) {
        let Everywhere { host, devices } = &mut next.lines[line];
        let waited = host.cores.map(|core| core.access);
        let mut outputs = Vec::new();
        let outcome = act(host, &self.rules, &mut |output| outputs.push(output));
        next.is_broken |= outcome == AtHost::Unexpected;
        for output in outputs {
            let has_room = match output {
                Output::Snoop(device, snoop) => devices[device].snoop.replace(snoop).is_none(),
                Output::Response(device, response) => devices[device].response.replace(response).is_none(),
                Output::Data(device, data) => devices[device].data.replace(data).is_none(),
            };
            next.is_broken |= !has_room;
        }
        for (number, access) in waited.into_iter().enumerate() {
            let core = next.lines[line].host.cores[number];
            let Some(access) = access.filter(|_| core.access.is_none()) else { continue };
            let thread = self.thread_of(By::Core, number);
            if access == Access::Load {
                next.reads[thread][next.begun[thread] - 1] = core.data.0;
            }
            next.waits[thread] = false;
        }
    }

    fn device_goes_on(&self, next: &mut World, line: usize, device: usize, outcome: AtDevice<Value>) {
        let thread = self.thread_of(By::Device, device);
        let at = &mut next.lines[line].devices[device];
        match outcome {
            AtDevice::Nothing if at.line.transaction.is_none() => {
                if matches!(self.test.threads[thread].ops[at.op], Op::ReadShared(_)) {
                    next.reads[thread][at.op] = at.line.data.0;
                }
            }
            AtDevice::Nothing | AtDevice::Wrote(_) => {}
            AtDevice::Send(pulled) => at.pulled = Some(pulled),
            AtDevice::Read(data) => next.reads[thread][at.op] = data.0,
            AtDevice::Request => at.request = at.line.transaction.map(|transaction| transaction.request),
            AtDevice::SendAndRequest(_) | AtDevice::Unexpected => next.is_broken = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_machines_allow_what_they_should_and_nothing_else() {
        for test in litmus::ALL {
            let report = explore_with(test, &[]);
            assert!(report.holds, "{report:#?}");
            // What is not forbidden is possible.
            let values = if test.looks_at_end { [1, 2] } else { [0, 1] };
            let mut all = vec![Vec::new()];
            for _ in &report.columns {
                all = all.into_iter().flat_map(|begun| values.map(|value| [&begun[..], &[value]].concat())).collect();
            }
            let possible = all.into_iter().filter(|outcome| !report.forbidden.contains(outcome));
            assert_eq!(report.outcomes, possible.collect(), "{}", test.name);
        }
    }

    #[test]
    fn rules_that_are_broken_bring_back_what_is_forbidden() {
        let broken_by = |name: &str| -> Vec<&str> {
            explore(named(name).unwrap()).broken.into_iter().map(|broken| broken.name).collect()
        };
        assert_eq!(
            broken_by("mp-core-barrier"),
            [BARRIERS_DO_NOT_WAIT, "go-before-snoops", "snp-inv-leaves-shared", "stores-leave-sharers"]
        );
        assert_eq!(broken_by("sb-owned-barrier"), [BARRIERS_DO_NOT_WAIT, "go-before-snoops", "snooped-data-lost"]);
    }
}
