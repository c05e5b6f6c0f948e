//! Litmus tests whose threads are devices and cores, on the machine of the study: no run comes to anything forbidden.
//! What the state machines allow, the checker explores.

use std::collections::BTreeSet;

use super::*;
use crate::device::type2::host_side::Holds;
use crate::device::type2::litmus::{self, By, Litmus, Op, Outcome, Start};
use fencepost_kernel::time::{Duration, Time};

const LINES: [LineAddress; litmus::LINES] = [LineAddress(0), LineAddress(16)];
const DEVICES: [DeviceId; litmus::DEVICES] = [TYPE2, DeviceId(2)];

/// A thread of a test on the machine.
struct Running {
    by: By,
    number: usize,
    ops: &'static [Op],
    begun: usize,
}

impl Running {
    fn has_finished(&self, system: &System) -> bool {
        match self.by {
            By::Device => system.accelerator(DEVICES[self.number]).finished().is_some(),
            By::Core => system.coherent_host(HOST).finished(Socket::ALL[self.number]).is_some(),
        }
    }

    /// Begins the next access, at any time from now on; what a device does alike it issues back to back.
    fn begin(&mut self, system: &mut System, random: &mut Random) {
        let Some(op) = self.ops.get(self.begun) else { return };
        self.begun += 1;
        let mut asked = vec![op.line().expect("a barrier follows an access")];
        while self.by == By::Device
            && let Some(next) = self.ops.get(self.begun)
            && std::mem::discriminant(next) == std::mem::discriminant(op)
        {
            asked.extend(next.line());
            self.begun += 1;
        }
        let ends_in_barrier = self.ops.get(self.begun) == Some(&Op::Barrier);
        self.begun += usize::from(ends_in_barrier);
        let at = system.now().max(Time::ZERO + Duration::from_ps(1_000_000)) + Duration::from_ps(random.below(400_000));
        let lines: Vec<LineAddress> = asked.into_iter().map(|line| LINES[line]).collect();
        if self.by == By::Device {
            let kind = match op {
                Op::Read(_) => DeviceAccess::NcRead,
                Op::ReadShared(_) => DeviceAccess::CsRead,
                Op::Write(..) => DeviceAccess::NcWrite,
                Op::WriteOwned(..) => DeviceAccess::CoWrite,
                Op::Barrier => unreachable!("it follows an access"),
            };
            let waits = Waits { observes: false, ends_in_barrier };
            system.with_accelerator(DEVICES[self.number], |own, context| {
                own.begin(Burst { kind, lines }, waits, at, context);
            });
        } else {
            let kind = if op.reads() { CoreAccess::Load } else { CoreAccess::Store };
            let socket = Socket::ALL[self.number];
            system.with_coherent_host(HOST, |host, context| host.begin(socket, Burst { kind, lines }, 1, at, context));
        }
    }

    /// What it has read and left written of a line, in that order.
    fn seen(&self, system: &System, line: LineAddress) -> Vec<Observed> {
        let log = match self.by {
            By::Device => &system.accelerator(DEVICES[self.number]).log,
            By::Core => &system.coherent_host(HOST).log,
        };
        let core = if self.by == By::Core { self.number } else { 0 };
        log.iter().filter(|seen| seen.core == core && seen.line == line).copied().collect()
    }
}

fn place(system: &mut System, start: Start) {
    match start {
        Start::InMemory => {}
        Start::DeviceShares => {
            let [x, _] = LINES;
            system.with_accelerator(TYPE2, |own, _| own.set_functionally(x, CacheState::Shared, Version(0)));
            system.with_coherent_host(HOST, |host, _| {
                host.set_functionally(x, |state| state.devices[0].holds = Holds::Shared);
            });
        }
        Start::CoreOwns => system.with_coherent_host(HOST, |host, _| {
            let own = |state: &mut super::super::home::State| state.cores[0].state = CacheState::Exclusive;
            LINES.into_iter().for_each(|line| host.set_functionally(line, own));
        }),
    }
}

/// Runs a test on a machine, whose threads begin their accesses at any time after the one before.
fn run(machine: &Machine, test: &Litmus, start: Start, random: &mut Random) -> Outcome {
    let mut system = System::with_coherence(machine).expect("it can be built");
    place(&mut system, start);
    let mut threads: Vec<Running> =
        test.numbered().map(|(number, thread)| Running { by: thread.by, number, ops: thread.ops, begun: 0 }).collect();
    threads.iter_mut().for_each(|thread| thread.begin(&mut system, random));
    loop {
        let is_over = system.step() == Stepped::Nowhere;
        let next = threads.iter_mut().find(|thread| thread.begun < thread.ops.len() && thread.has_finished(&system));
        match next {
            Some(thread) => thread.begin(&mut system, random),
            None if is_over => break,
            None => {}
        }
    }
    assert!(system.is_idle(), "{}: {:?}", test.name, system.waiting());
    let values = Values::of(&system, test, &threads);
    let of_read = |thread: usize, index: usize| {
        let ops = test.threads[thread].ops;
        let line = ops[index].line().expect("it reads a line");
        let earlier = ops[..index].iter().filter(|op| op.reads() && op.line() == Some(line)).count();
        let seen = threads[thread].seen(&system, LINES[line]);
        let read = seen.iter().filter(|seen| seen.read_from.is_some()).nth(earlier).expect("it is read");
        values.of_version(line, read.version)
    };
    test.outcome(of_read, |line| values.at_end(&system, line))
}

/// Which value each version stands for: by line, of every write.
struct Values([Vec<(Version, u8)>; litmus::LINES]);

impl Values {
    fn of(system: &System, test: &Litmus, threads: &[Running]) -> Values {
        let mut values = [const { Vec::new() }; litmus::LINES];
        for (running, thread) in threads.iter().zip(test.threads) {
            for op in thread.ops {
                let (Some(line), Some(value)) = (op.line(), op.writes()) else { continue };
                let seen = running.seen(system, LINES[line]);
                let written = seen.iter().find(|seen| seen.read_from.is_none()).expect("it is written");
                values[line].push((written.version, value));
            }
        }
        Values(values)
    }

    fn of_version(&self, line: usize, version: Version) -> u8 {
        let known = self.0[line].iter().find(|(written, _)| *written == version);
        assert!(known.is_some() || version == Version(0), "nobody wrote {version:?}");
        known.map_or(0, |(_, value)| *value)
    }

    fn at_end(&self, system: &System, line: usize) -> u8 {
        let newest = self.0[line].iter().map(|(version, _)| *version).max().unwrap_or_default();
        check_copies(system, &DEVICES, LINES[line], newest);
        self.of_version(line, newest)
    }
}

#[test]
fn the_timed_machine_shows_nothing_that_is_forbidden() {
    let machine = machine(&[
        "fabric.accelerators=[\"type2\", \"second\"]",
        "fabric.edges=[\"host0 -> type3\", \"host0 -> type2\", \"host0 -> second\"]",
    ]);
    let mut random = Random::new(5);
    for test in litmus::ALL {
        let mut seen = BTreeSet::new();
        for start in Start::ALL {
            seen.extend((0..60).map(|_| run(&machine, test, start, &mut random)));
        }
        assert!(test.forbidden_of(&seen).is_empty(), "{}: {seen:?}", test.name);
        assert!(seen.len() > 1, "{}: {seen:?}", test.name);
    }
}
