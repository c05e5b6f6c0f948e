//! Litmus tests whose threads are devices and cores: what each does to lines of host memory, and what it may come to.
//!
//! The checker explores them on the state machines of this room, and the timed machine runs them in its tests. A device
//! issues its accesses back to back, and waits at a barrier until everything before it is globally observed. A second
//! access to a line waits for the first. A core's accesses come one after the other: its store buffer is no part of
//! this.

/// What a thread does to a line, which holds 0 at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// The device writes past its cache, weakly ordered; the core stores.
    Write(usize, u8),
    /// The device writes in its cache.
    WriteOwned(usize, u8),
    /// The device reads and keeps nothing; the core loads.
    Read(usize),
    /// The device reads into its cache.
    ReadShared(usize),
    /// Of a device: everything before it is globally observed.
    Barrier,
}
use Op::{Barrier, Read, ReadShared, Write, WriteOwned};

impl Op {
    /// The line that it is of.
    pub fn line(self) -> Option<usize> {
        match self {
            Write(line, _) | WriteOwned(line, _) | Read(line) | ReadShared(line) => Some(line),
            Barrier => None,
        }
    }

    /// Whether it reads.
    pub fn reads(self) -> bool {
        matches!(self, Read(_) | ReadShared(_))
    }

    /// What it writes, if it does.
    pub fn writes(self) -> Option<u8> {
        match self {
            Write(_, value) | WriteOwned(_, value) => Some(value),
            _ => None,
        }
    }

    /// In words, with the names of the lines.
    pub fn shown(self) -> String {
        let name = |line: usize| ["x", "y"][line];
        match self {
            Write(line, value) => format!("write {} = {value}", name(line)),
            WriteOwned(line, value) => format!("own and write {} = {value}", name(line)),
            Read(line) => format!("read {}", name(line)),
            ReadShared(line) => format!("read {} to share", name(line)),
            Barrier => "barrier".to_owned(),
        }
    }
}

/// Who a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A device.
    Device,
    /// A core of the host.
    Core,
}

/// A thread.
#[derive(Clone, Copy, Debug)]
pub struct Thread {
    /// Who it is.
    pub by: By,
    /// What it does, in this order.
    pub ops: &'static [Op],
}

/// What one run of a test comes to: what is read, by thread and in order, then, if the test asks for it, what the lines
/// hold at the end.
pub type Outcome = Vec<u8>;

/// A test.
#[derive(Clone, Copy, Debug)]
pub struct Litmus {
    /// Its name on the command line.
    pub name: &'static str,
    /// At most [`DEVICES`] devices and [`CORES`] cores.
    pub threads: &'static [Thread],
    /// Whether what the lines hold at the end is part of the outcome.
    pub looks_at_end: bool,
    /// What must not be.
    pub forbidden: &'static [&'static [u8]],
    /// What must be possible, though no order of the accesses explains it.
    pub relaxed: &'static [&'static [u8]],
}

/// Where the lines are at the start; their values are those in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// In no cache.
    InMemory,
    /// The first device shares the first line.
    DeviceShares,
    /// The first core owns both.
    CoreOwns,
}

impl Start {
    /// All of them.
    pub const ALL: [Start; 3] = [Start::InMemory, Start::DeviceShares, Start::CoreOwns];
}

/// Devices of a test at most.
pub const DEVICES: usize = 2;
/// Cores of a test at most.
pub const CORES: usize = 2;
/// Lines of a test.
pub const LINES: usize = 2;

impl Litmus {
    /// Each thread with its number among the devices or among the cores.
    pub fn numbered(&self) -> impl Iterator<Item = (usize, Thread)> {
        let mut counts = [0; 2];
        self.threads.iter().map(move |thread| {
            let count = &mut counts[thread.by as usize];
            *count += 1;
            (*count - 1, *thread)
        })
    }

    /// Whether a device waits at a barrier.
    pub fn has_barriers(&self) -> bool {
        self.threads.iter().any(|thread| thread.ops.contains(&Barrier))
    }

    /// The outcome, of what each thread has read by its accesses and of what lines hold at the end.
    pub fn outcome(&self, read: impl Fn(usize, usize) -> u8, at_end: impl Fn(usize) -> u8) -> Outcome {
        let mut values = Vec::new();
        for (number, thread) in self.threads.iter().enumerate() {
            let reads = thread.ops.iter().enumerate().filter(|(_, op)| op.reads());
            values.extend(reads.map(|(index, _)| read(number, index)));
        }
        if self.looks_at_end {
            values.extend((0..LINES).map(at_end));
        }
        values
    }

    /// What the values of an outcome are of.
    pub fn columns(&self) -> Vec<String> {
        let name = |line: usize| ["x", "y"][line];
        let mut columns = Vec::new();
        for (number, thread) in self.numbered() {
            let by = ["device", "core"][thread.by as usize];
            let reads = thread.ops.iter().filter(|op| op.reads());
            columns.extend(reads.map(|op| format!("{by} {number}: {}", name(op.line().expect("it reads a line")))));
        }
        if self.looks_at_end {
            columns.extend((0..LINES).map(|line| format!("at the end: {}", name(line))));
        }
        columns
    }

    /// What of some outcomes must not be.
    pub fn forbidden_of<'a>(&self, outcomes: impl IntoIterator<Item = &'a Outcome>) -> Vec<Outcome> {
        outcomes.into_iter().filter(|outcome| self.forbidden.contains(&outcome.as_slice())).cloned().collect()
    }

    /// What must be possible, and is none of some outcomes.
    pub fn missed<'a>(&self, outcomes: impl IntoIterator<Item = &'a Outcome> + Clone) -> Vec<Outcome> {
        let is_missed = |relaxed: &&&[u8]| !outcomes.clone().into_iter().any(|outcome| outcome == **relaxed);
        self.relaxed.iter().filter(is_missed).map(|relaxed| relaxed.to_vec()).collect()
    }
}

const X: usize = 0;
const Y: usize = 1;

const fn device(ops: &'static [Op]) -> Thread {
    Thread { by: By::Device, ops }
}

const fn core(ops: &'static [Op]) -> Thread {
    Thread { by: By::Core, ops }
}

const NONE: &[&[u8]] = &[];

/// A test that looks at what is read: name, threads, what is forbidden, and what is possible.
const fn of_reads(
    name: &'static str,
    threads: &'static [Thread],
    forbidden: &'static [&'static [u8]],
    relaxed: &'static [&'static [u8]],
) -> Litmus {
    Litmus { name, threads, looks_at_end: false, forbidden, relaxed }
}

/// All of them. MP, SB, LB, 2+2W, CoRR, WRC and IRIW are the usual names: message passing, store buffering, load
/// buffering, two threads that write both lines, two reads of one line, a write that is read and then followed by
/// another, and independent reads of independent writes.
pub const ALL: &[Litmus] = &[
    of_reads("mp-device", &[device(&[Write(X, 1), Write(Y, 1)]), core(&[Read(Y), Read(X)])], NONE, &[&[1, 0]]),
    of_reads(
        "mp-device-barrier",
        &[device(&[Write(X, 1), Barrier, Write(Y, 1)]), core(&[Read(Y), Read(X)])],
        &[&[1, 0]],
        NONE,
    ),
    of_reads(
        "mp-device-owned-barrier",
        &[device(&[WriteOwned(X, 1), Barrier, WriteOwned(Y, 1)]), core(&[Read(Y), Read(X)])],
        &[&[1, 0]],
        NONE,
    ),
    of_reads("mp-core", &[device(&[Read(Y), Read(X)]), core(&[Write(X, 1), Write(Y, 1)])], NONE, &[&[1, 0]]),
    of_reads(
        "mp-core-barrier",
        &[device(&[Read(Y), Barrier, Read(X)]), core(&[Write(X, 1), Write(Y, 1)])],
        &[&[1, 0]],
        NONE,
    ),
    of_reads("sb", &[device(&[Write(X, 1), Read(Y)]), core(&[Write(Y, 1), Read(X)])], NONE, &[&[0, 0]]),
    of_reads(
        "sb-barrier",
        &[device(&[Write(X, 1), Barrier, Read(Y)]), core(&[Write(Y, 1), Read(X)])],
        &[&[0, 0]],
        NONE,
    ),
    of_reads(
        "sb-owned-barrier",
        &[device(&[WriteOwned(X, 1), Barrier, Read(Y)]), core(&[Write(Y, 1), Read(X)])],
        &[&[0, 0]],
        NONE,
    ),
    of_reads("lb", &[device(&[Read(X), Write(Y, 1)]), core(&[Read(Y), Write(X, 1)])], NONE, &[&[1, 1]]),
    of_reads(
        "lb-barrier",
        &[device(&[Read(X), Barrier, Write(Y, 1)]), core(&[Read(Y), Write(X, 1)])],
        &[&[1, 1]],
        NONE,
    ),
    of_reads("corr-device", &[device(&[Read(X), Read(X)]), core(&[Write(X, 1)])], &[&[1, 0]], NONE),
    of_reads("corr-device-shared", &[device(&[ReadShared(X), ReadShared(X)]), core(&[Write(X, 1)])], &[&[1, 0]], NONE),
    of_reads("corr-core", &[device(&[Write(X, 1)]), core(&[Read(X), Read(X)])], &[&[1, 0]], NONE),
    of_reads("corr-core-owned", &[device(&[WriteOwned(X, 1)]), core(&[Read(X), Read(X)])], &[&[1, 0]], NONE),
    Litmus {
        name: "2+2w",
        threads: &[device(&[Write(X, 1), Write(Y, 2)]), core(&[Write(Y, 1), Write(X, 2)])],
        looks_at_end: true,
        forbidden: NONE,
        relaxed: &[&[1, 1]],
    },
    Litmus {
        name: "2+2w-barrier",
        threads: &[device(&[Write(X, 1), Barrier, Write(Y, 2)]), core(&[Write(Y, 1), Write(X, 2)])],
        looks_at_end: true,
        forbidden: &[&[1, 1]],
        relaxed: NONE,
    },
    Litmus {
        name: "2+2w-owned-barrier",
        threads: &[device(&[WriteOwned(X, 1), Barrier, WriteOwned(Y, 2)]), core(&[Write(Y, 1), Write(X, 2)])],
        looks_at_end: true,
        forbidden: &[&[1, 1]],
        relaxed: NONE,
    },
    of_reads(
        "wrc-barrier",
        &[device(&[Write(X, 1)]), device(&[Read(X), Barrier, Write(Y, 1)]), core(&[Read(Y), Read(X)])],
        &[&[1, 1, 0]],
        NONE,
    ),
    of_reads(
        "wrc-shared-barrier",
        &[device(&[ReadShared(X), Barrier, Write(Y, 1)]), device(&[Read(Y), Barrier, Read(X)]), core(&[Write(X, 1)])],
        &[&[1, 1, 0]],
        NONE,
    ),
    of_reads(
        "iriw-barrier",
        &[
            device(&[Write(X, 1)]),
            device(&[Read(X), Barrier, Read(Y)]),
            core(&[Write(Y, 1)]),
            core(&[Read(Y), Read(X)]),
        ],
        &[&[1, 0, 1, 0]],
        NONE,
    ),
];
