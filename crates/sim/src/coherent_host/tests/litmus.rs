//! Litmus tests whose threads are a device and a core: all outcomes that the state machines allow, and those of runs on
//! the machine of the study, which have to be among them.
//!
//! The device issues its accesses back to back and waits for none, but at a barrier: then everything before it is
//! globally observed. The core's accesses come one after the other: its store buffer is no part of this.

use std::collections::{BTreeSet, HashSet};

use super::*;
use crate::device::type2::Rules;
use crate::device::type2::dcoh::{Line as DeviceLine, Outcome as DeviceOutcome};
use crate::device::type2::host_side::{Access, Holds, Line as HostLine, Output, Requester as Served};
use crate::device::type2::messages::{Part, Payload, Pulled, Request, Response, Snoop, SnoopResponse};
use crate::time::{Duration, Time};

/// What a thread does to a line, which is written by one thread once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    /// The device writes past its cache, weakly ordered; the core stores.
    Write(usize),
    /// The device writes in its cache.
    WriteOwned(usize),
    Read(usize),
    /// Of the device: everything before it is globally observed.
    Barrier,
}
use Op::{Barrier, Read, Write, WriteOwned};

impl Op {
    fn line(self) -> usize {
        match self {
            Write(line) | WriteOwned(line) | Read(line) => line,
            Barrier => unreachable!("it is of no line"),
        }
    }
}

/// Where the lines are at the start, as they are in memory; of those of the device, it shares the first.
#[derive(Clone, Copy, Debug)]
enum Start {
    InMemory,
    DeviceShares,
    CoreOwns,
}

struct Litmus {
    name: &'static str,
    device: &'static [Op],
    core: &'static [Op],
    /// What the device reads, then what the core reads, that must not be.
    forbidden: Option<[u8; 2]>,
    /// What must be possible.
    relaxed: Option<[u8; 2]>,
}

impl Litmus {
    /// What the device has read, then what the core has, in the order of their accesses.
    fn outcome(&self, read: impl Fn(usize, usize) -> Option<u8>) -> [u8; 2] {
        let of = |(thread, ops): (usize, &'static [Op])| {
            ops.iter().filter_map(move |op| if let Read(line) = op { Some((thread, *line)) } else { None })
        };
        let reads = [(DEVICE, self.device), (CORE, self.core)].into_iter().flat_map(of);
        let values: Vec<u8> = reads.map(|(thread, line)| read(thread, line).expect("it is read")).collect();
        values.try_into().expect("two are read")
    }
}

const X: usize = 0;
const Y: usize = 1;

const TESTS: [Litmus; 8] = [
    Litmus {
        name: "message passing by the device",
        device: &[Write(X), Write(Y)],
        core: &[Read(Y), Read(X)],
        forbidden: None,
        relaxed: Some([1, 0]),
    },
    Litmus {
        name: "message passing by the device, with a barrier",
        device: &[Write(X), Barrier, Write(Y)],
        core: &[Read(Y), Read(X)],
        forbidden: Some([1, 0]),
        relaxed: None,
    },
    Litmus {
        name: "message passing by the device in its cache, with a barrier",
        device: &[WriteOwned(X), Barrier, WriteOwned(Y)],
        core: &[Read(Y), Read(X)],
        forbidden: Some([1, 0]),
        relaxed: None,
    },
    Litmus {
        name: "message passing by the core",
        device: &[Read(Y), Read(X)],
        core: &[Write(X), Write(Y)],
        forbidden: None,
        relaxed: Some([1, 0]),
    },
    Litmus {
        name: "message passing by the core, with a barrier",
        device: &[Read(Y), Barrier, Read(X)],
        core: &[Write(X), Write(Y)],
        forbidden: Some([1, 0]),
        relaxed: None,
    },
    Litmus {
        name: "store buffering",
        device: &[Write(X), Read(Y)],
        core: &[Write(Y), Read(X)],
        forbidden: None,
        relaxed: Some([0, 0]),
    },
    Litmus {
        name: "store buffering, with a barrier",
        device: &[Write(X), Barrier, Read(Y)],
        core: &[Write(Y), Read(X)],
        forbidden: Some([0, 0]),
        relaxed: None,
    },
    Litmus {
        name: "store buffering in its cache, with a barrier",
        device: &[WriteOwned(X), Barrier, Read(Y)],
        core: &[Write(Y), Read(X)],
        forbidden: Some([0, 0]),
        relaxed: None,
    },
];

/// What a line holds: 0, or 1 when it has been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Value(u8);

impl Payload for Value {
    fn overlaid(self, written: Value, _: Part) -> Value {
        written
    }
}

/// A line everywhere, and the messages that are on their way.
#[derive(Clone, Debug)]
struct Everywhere {
    host: HostLine<Value, 1, 1>,
    device: DeviceLine<Value>,
    request: Option<Request>,
    snoop: Option<Snoop>,
    response: Option<Response>,
    data: Option<Value>,
    snoop_response: Option<SnoopResponse>,
    snooped: Option<Value>,
    pulled: Option<Pulled<Value>>,
}

#[derive(Clone, Debug)]
struct World {
    lines: [Everywhere; 2],
    /// Accesses that each thread has begun.
    begun: [usize; 2],
    /// Whether the core waits for one.
    core_waits: bool,
    /// By line, what each thread has read.
    reads: [[Option<u8>; 2]; 2],
}

const DEVICE: usize = 0;
const CORE: usize = 1;

/// What is explored: a test under rules; `barriers`: the device waits at them.
struct Explored<'a> {
    test: &'a Litmus,
    rules: Rules,
    barriers: bool,
}

impl World {
    fn new(start: Start) -> World {
        let mut line = Everywhere {
            host: HostLine::new(Value(0)),
            device: DeviceLine::new(Value(0)),
            request: None,
            snoop: None,
            response: None,
            data: None,
            snoop_response: None,
            snooped: None,
            pulled: None,
        };
        if matches!(start, Start::CoreOwns) {
            line.host.cores[0].state = CacheState::Exclusive;
        }
        let mut lines = [line.clone(), line];
        if matches!(start, Start::DeviceShares) {
            lines[X].device.state = CacheState::Shared;
            lines[X].host.devices[0].holds = Holds::Shared;
        }
        World { lines, begun: [0; 2], core_waits: false, reads: [[None; 2]; 2] }
    }
}

impl Explored<'_> {
    /// Every outcome, from that start.
    fn outcomes(&self, start: Start) -> BTreeSet<[u8; 2]> {
        let (mut seen, mut open) = (HashSet::new(), vec![World::new(start)]);
        let mut outcomes = BTreeSet::new();
        while let Some(world) = open.pop() {
            if !seen.insert(format!("{world:?}")) {
                continue;
            }
            let before = open.len();
            self.successors(&world, &mut open);
            if open.len() == before {
                let is_over = world.begun == [self.test.device.len(), self.test.core.len()];
                let is_quiet = world.lines.iter().all(|line| line.device.transaction.is_none());
                assert!(is_over && is_quiet && !world.core_waits, "{}: nothing can go on: {world:?}", self.test.name);
                outcomes.insert(self.test.outcome(|thread, line| world.reads[thread][line]));
            }
        }
        outcomes
    }

    fn successors(&self, world: &World, open: &mut Vec<World>) {
        self.device_begins(world, open);
        self.core_begins(world, open);
        for line in 0..2 {
            self.arrivals(world, line, open);
        }
    }

    fn device_begins(&self, world: &World, open: &mut Vec<World>) {
        let Some(op) = self.test.device.get(world.begun[DEVICE]) else { return };
        let mut next = world.clone();
        next.begun[DEVICE] += 1;
        let (line, request) = match *op {
            Barrier => {
                let is_observed = world.lines.iter().all(|line| line.device.transaction.is_none());
                if is_observed || !self.barriers {
                    open.push(next);
                }
                return;
            }
            Read(line) => (line, Request::RdCurr),
            Write(line) => (line, Request::WOWrInvF),
            WriteOwned(line) => (line, Request::RdOwnNoData),
        };
        let at = &mut next.lines[line];
        if matches!(op, Read(_)) && at.device.state != CacheState::Invalid {
            next.reads[DEVICE][line] = Some(at.device.data.0);
            return open.push(next);
        }
        if matches!(op, Write(_)) {
            // A clean copy is dropped first.
            at.device.drop_copy();
        }
        at.device.request(request);
        at.request = Some(request);
        open.push(next);
    }

    fn core_begins(&self, world: &World, open: &mut Vec<World>) {
        let Some(op) = self.test.core.get(world.begun[CORE]).filter(|_| !world.core_waits) else { return };
        let mut next = world.clone();
        next.begun[CORE] += 1;
        let (line, access) = match *op {
            Read(line) => (line, Access::Load),
            Write(line) => (line, Access::Store),
            WriteOwned(_) | Barrier => unreachable!("these are the device's"),
        };
        let host = &mut next.lines[line].host;
        if host.may_access(0, access) {
            host.cores[0].access = Some(access);
            next.core_waits = true;
        } else if access == Access::Store {
            host.store(0, Value(1));
        } else {
            next.reads[CORE][line] = Some(host.cores[0].data.0);
        }
        open.push(next);
    }

    /// Each message of a line that may arrive now: a response pushes the snoops behind it.
    fn arrivals(&self, world: &World, line: usize, open: &mut Vec<World>) {
        let at = &world.lines[line];
        let is_free = at.host.service.is_none();
        let is_pushed = self.rules.snoop_pushes_go && at.response.is_some();
        let may_be_snooped = at.device.answers_snoops(&self.rules) && at.snoop_response.is_none();
        let mut go = |may: bool, act: &dyn Fn(&mut World)| {
            if may {
                let mut next = world.clone();
                act(&mut next);
                open.push(next);
            }
        };
        go(at.request.is_some() && is_free, &|next| {
            let request = next.lines[line].request.take().expect("it arrives");
            self.serve(next, line, Served::Device(0, request));
        });
        go(at.host.cores[0].access.is_some() && is_free, &|next| {
            let access = next.lines[line].host.cores[0].access.expect("it waits");
            self.serve(next, line, Served::Core(0, access));
        });
        go(at.snoop.is_some() && !is_pushed && may_be_snooped, &|next| {
            let at = &mut next.lines[line];
            let snoop = at.snoop.take().expect("it arrives");
            let (response, data) = at.device.take_snoop(&self.rules, snoop, false);
            (at.snoop_response, at.snooped) = (Some(response), data.or(at.snooped));
        });
        go(at.response.is_some(), &|next| {
            let at = &mut next.lines[line];
            let response = at.response.take().expect("it arrives");
            let outcome = at.device.take_response(&self.rules, response, Value(1));
            self.device_goes_on(next, line, outcome);
        });
        go(at.data.is_some(), &|next| {
            let at = &mut next.lines[line];
            let data = at.data.take().expect("it arrives");
            let outcome = at.device.take_data(&self.rules, data);
            self.device_goes_on(next, line, outcome);
        });
        go(at.snoop_response.is_some(), &|next| {
            let response = next.lines[line].snoop_response.take().expect("it arrives");
            self.at_host(next, line, |host, rules, send| {
                host.take_snoop_response(rules, 0, response, Value(1), &mut |output| send(output));
            });
        });
        go(at.snooped.is_some(), &|next| {
            let data = next.lines[line].snooped.take().expect("it arrives");
            self.at_host(next, line, |host, rules, send| {
                host.take_snooped_data(rules, 0, data, Value(1), &mut |output| send(output));
            });
        });
        go(at.pulled.is_some(), &|next| {
            let pulled = next.lines[line].pulled.take().expect("it arrives");
            self.at_host(next, line, |host, rules, send| {
                host.take_pulled(rules, 0, pulled, &mut |output| send(output));
            });
        });
    }

    fn serve(&self, next: &mut World, line: usize, requester: Served) {
        self.at_host(next, line, |host, rules, send| {
            host.serve(rules, requester, false, Value(1), &mut |output| send(output));
        });
    }

    /// The host does something; its messages go out, and a core whose access is done goes on.
    fn at_host(
        &self,
        next: &mut World,
        line: usize,
        act: impl FnOnce(&mut HostLine<Value, 1, 1>, &Rules, &mut dyn FnMut(Output<Value>)),
    ) {
        let at = &mut next.lines[line];
        let waited = at.host.cores[0].access;
        let mut outputs = Vec::new();
        act(&mut at.host, &self.rules, &mut |output| outputs.push(output));
        for output in outputs {
            match output {
                Output::Snoop(_, snoop) => at.snoop = Some(snoop),
                Output::Response(_, response) => at.response = Some(response),
                Output::Data(_, data) => at.data = Some(data),
            }
        }
        if let Some(access) = waited.filter(|_| at.host.cores[0].access.is_none()) {
            if access == Access::Load {
                next.reads[CORE][line] = Some(at.host.cores[0].data.0);
            }
            next.core_waits = false;
        }
    }

    fn device_goes_on(&self, next: &mut World, line: usize, outcome: DeviceOutcome<Value>) {
        let at = &mut next.lines[line];
        match outcome {
            DeviceOutcome::Nothing | DeviceOutcome::Wrote(_) => {}
            DeviceOutcome::Send(pulled) => at.pulled = Some(pulled),
            DeviceOutcome::Read(data) => next.reads[DEVICE][line] = Some(data.0),
            other => panic!("{}: {other:?}", self.test.name),
        }
    }
}

fn allowed(test: &Litmus, start: Start) -> BTreeSet<[u8; 2]> {
    Explored { test, rules: Rules::SOUND, barriers: true }.outcomes(start)
}

const STARTS: [Start; 3] = [Start::InMemory, Start::DeviceShares, Start::CoreOwns];

fn of_any_start(explore: impl Fn(Start) -> BTreeSet<[u8; 2]>) -> BTreeSet<[u8; 2]> {
    STARTS.into_iter().flat_map(explore).collect()
}

#[test]
fn the_state_machines_allow_what_they_should_and_nothing_else() {
    for test in &TESTS {
        let outcomes = of_any_start(|start| allowed(test, start));
        assert!(outcomes.len() > 1, "{}: {outcomes:?}", test.name);
        assert!(test.forbidden.is_none_or(|outcome| !outcomes.contains(&outcome)), "{}: {outcomes:?}", test.name);
        assert!(test.relaxed.is_none_or(|outcome| outcomes.contains(&outcome)), "{}: {outcomes:?}", test.name);
    }
}

#[test]
fn what_is_forbidden_is_reached_where_a_rule_is_broken() {
    let no_barriers = |test| Explored { test, rules: Rules::SOUND, barriers: false };
    let broken = |test, rules| Explored { test, rules, barriers: true };
    let stale = Rules { stores_snoop_sharers: false, ..Rules::SOUND };
    for (name, explored) in [
        ("message passing by the device, with a barrier", no_barriers(&TESTS[1])),
        ("message passing by the device in its cache, with a barrier", no_barriers(&TESTS[2])),
        ("message passing by the core, with a barrier", no_barriers(&TESTS[4])),
        ("message passing by the core, with a barrier", broken(&TESTS[4], stale)),
        ("store buffering, with a barrier", no_barriers(&TESTS[6])),
        ("store buffering in its cache, with a barrier", no_barriers(&TESTS[7])),
    ] {
        assert_eq!(explored.test.name, name);
        let forbidden = explored.test.forbidden.expect("something is");
        let outcomes = of_any_start(|start| explored.outcomes(start));
        assert!(outcomes.contains(&forbidden), "{name}: {outcomes:?}");
    }
}

/// Runs a test on a machine, whose threads begin their accesses at any time after the one before.
fn run(machine: &Machine, test: &Litmus, start: Start, random: &mut Random) -> [u8; 2] {
    let mut system = System::with_coherence(machine).expect("it can be built");
    let lines = [LineAddress(0), LineAddress(16)];
    match start {
        Start::InMemory => {}
        Start::DeviceShares => {
            let x = lines[X];
            system.with_accelerator(TYPE2, |own, _| own.set_functionally(x, CacheState::Shared, Version(0)));
            system.with_coherent_host(HOST, |host, _| {
                host.set_functionally(x, |state| state.devices[0].holds = Holds::Shared);
            });
        }
        Start::CoreOwns => system.with_coherent_host(HOST, |host, _| {
            let own = |state: &mut super::super::home::State| state.cores[0].state = CacheState::Exclusive;
            lines.into_iter().for_each(|line| host.set_functionally(line, own));
        }),
    }
    let mut begun = [0, 0];
    let mut begin = |system: &mut System, thread: usize, begun: &mut [usize; 2]| {
        let ops = if thread == DEVICE { test.device } else { test.core };
        let Some(op) = ops.get(begun[thread]) else { return };
        begun[thread] += 1;
        let mut asked = vec![op.line()];
        // What the device does alike it issues back to back.
        while thread == DEVICE
            && let Some(next) = ops.get(begun[thread])
            && std::mem::discriminant(next) == std::mem::discriminant(op)
        {
            asked.push(next.line());
            begun[thread] += 1;
        }
        let ends_in_barrier = ops.get(begun[thread]) == Some(&Barrier);
        begun[thread] += usize::from(ends_in_barrier);
        let at = system.now().max(Time::ZERO + Duration::from_ps(1_000_000)) + Duration::from_ps(random.below(400_000));
        let kind = match *op {
            Read(_) => DeviceAccess::NcRead,
            Write(_) => DeviceAccess::NcWrite,
            WriteOwned(_) => DeviceAccess::CoWrite,
            Barrier => unreachable!("it follows an access"),
        };
        let lines: Vec<LineAddress> = asked.into_iter().map(|line| lines[line]).collect();
        if thread == DEVICE {
            let waits = Waits { observes: false, ends_in_barrier };
            system.with_accelerator(TYPE2, |own, context| own.begin(Burst { kind, lines }, waits, at, context));
        } else {
            let kind = if matches!(op, Read(_)) { CoreAccess::Load } else { CoreAccess::Store };
            system.with_coherent_host(HOST, |host, context| {
                host.begin(Socket::Own, Burst { kind, lines }, 1, at, context);
            });
        }
    };
    begin(&mut system, DEVICE, &mut begun);
    begin(&mut system, CORE, &mut begun);
    loop {
        let is_over = system.step() == Stepped::Nowhere;
        if begun[DEVICE] < test.device.len() && system.accelerator(TYPE2).finished().is_some() {
            begin(&mut system, DEVICE, &mut begun);
        } else if begun[CORE] < test.core.len() && system.coherent_host(HOST).finished(Socket::Own).is_some() {
            begin(&mut system, CORE, &mut begun);
        } else if is_over {
            break;
        }
    }
    assert!(system.is_idle(), "{}: {:?}", test.name, system.waiting());
    test.outcome(|thread, line| {
        let log = if thread == DEVICE { &system.accelerator(TYPE2).log } else { &system.coherent_host(HOST).log };
        let read = log.iter().find(|seen| seen.line == lines[line] && seen.read_from.is_some());
        read.map(|seen| u8::from(seen.version != Version(0)))
    })
}

#[test]
fn the_timed_machine_shows_nothing_that_is_not_allowed() {
    let machine = machine(&[]);
    let mut random = Random::new(5);
    for test in &TESTS {
        let mut seen = BTreeSet::new();
        for start in STARTS {
            let allowed = allowed(test, start);
            for _ in 0..60 {
                let outcome = run(&machine, test, start, &mut random);
                assert!(allowed.contains(&outcome), "{}, {start:?}: {outcome:?} of {allowed:?}", test.name);
                seen.insert(outcome);
            }
        }
        assert!(seen.len() > 1, "{}: {seen:?}", test.name);
    }
}
