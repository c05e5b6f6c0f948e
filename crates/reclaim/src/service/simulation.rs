//! Operations arrive, are served one after the other by one task, as Redis serves them, and fault where pages are gone;
//! kswapd and ksmd work on the same core or on others of their own.

mod traces;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use rustc_hash::FxHashMap;

use super::caches::{Caches, Found};
use super::costs::Costs;
use super::scheduler::{Core, Nanoseconds, TICK, TaskId};
use crate::linux::ksm::{Contents, Ksm};
use crate::linux::memory::{Job, Memory, Touched};
use crate::linux::preset::Preset;
use crate::page::LINES;
use crate::recorded::Operation;

const SERVER: TaskId = 0;
const KSWAPD: TaskId = 1;
const KSMD: TaskId = 2;
const TASKS: usize = 3;
const NICE_0: u64 = 1024;

/// What an operation's time goes into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Earlier operations.
    Queue,
    /// Another task has the core.
    Core,
    /// Entering the kernel for a fault.
    Fault,
    /// Making room for a page, and copying shared ones.
    Reclaim,
    /// Pages from the pool.
    Decompression,
    /// Pages from the swap device.
    Swap,
    /// The operation itself, with its misses.
    Memory,
}

/// All causes with their names, in order.
pub const CAUSES: [(Cause, &str); 7] = [
    (Cause::Queue, "queue"),
    (Cause::Core, "core"),
    (Cause::Fault, "fault"),
    (Cause::Reclaim, "reclaim"),
    (Cause::Decompression, "decompression"),
    (Cause::Swap, "swap"),
    (Cause::Memory, "memory"),
];

/// ns by cause.
pub type Stack = [Nanoseconds; CAUSES.len()];

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// The core works.
    Core(Nanoseconds),
    /// The core waits for the device.
    Wait(Nanoseconds),
    /// The task sleeps until the device is done.
    Offload(Nanoseconds),
    /// The task sleeps until the swap device is done.
    Disk(Nanoseconds),
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    kind: Kind,
    cause: Cause,
    /// Under the lock that compression and decompression on a core take.
    is_locked: bool,
}

#[derive(Clone, Debug, Default)]
struct Task {
    core: usize,
    segments: VecDeque<Segment>,
    has_begun: bool,
    remaining: Nanoseconds,
    is_awake: bool,
    busy: Nanoseconds,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrival,
    Core { core: usize, epoch: u64 },
    Wake { task: TaskId },
}

#[derive(Clone, Copy, Debug)]
struct Arrived {
    number: u64,
    at: Nanoseconds,
    /// [`Simulation::core_waits`] then.
    core_waits: Nanoseconds,
}

/// What is simulated.
pub struct Setting<'a> {
    /// The kernel.
    pub preset: &'static Preset,
    /// The backend.
    pub costs: &'a Costs,
    /// What the service can do.
    pub operations: &'a [Operation],
    /// Which of that each operation does, over and over.
    pub sequence: &'a [Vec<u32>],
    /// By page: whether it is anonymous.
    pub is_anonymous: &'a [bool],
    /// What pages hold at first.
    pub contents: Contents<'a>,
    /// ns of an instruction whose accesses hit.
    pub instruction_ns: f64,
    /// ns that a miss of the last level adds.
    pub miss_ns: f64,
    /// Arrivals a second; none: an operation arrives when the one before it is done.
    pub arrivals_per_second: Option<f64>,
    /// Operations before those that are measured, and all.
    pub operations_counted: (u64, u64),
    /// Whether ksmd runs.
    pub has_ksm: bool,
    /// Whether kswapd and ksmd have the server's core, or cores of their own.
    pub shares_core: bool,
    /// Whether their work passes caches.
    pub pollutes: bool,
    /// Of the arrivals.
    pub seed: u64,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// ns of each measured operation with what they went into.
    pub latencies: Vec<(Nanoseconds, Stack)>,
    /// From the first measured operation's beginning to the end, in ns.
    pub elapsed: Nanoseconds,
    /// Of each task, in ns.
    pub busy: [Nanoseconds; TASKS],
    /// Of the server: lines that left the second level, and those that memory had.
    pub last_level: (u64, u64),
    /// Over the device's link.
    pub link_bytes: u64,
    /// Whole scans of ksmd.
    pub scans: u64,
}

/// See the module.
pub struct Simulation<'a> {
    setting: Setting<'a>,
    memory: Memory,
    ksm: Ksm,
    caches: Caches,
    cores: Vec<Core>,
    since: Vec<Nanoseconds>,
    epochs: Vec<u64>,
    locks: Vec<Option<TaskId>>,
    waiting: VecDeque<TaskId>,
    tasks: [Task; TASKS],
    events: BinaryHeap<Reverse<(Nanoseconds, u64, Event)>>,
    sequence: u64,
    now: Nanoseconds,
    queue: VecDeque<Arrived>,
    arrived: u64,
    current: Option<(Arrived, Stack)>,
    core_waits: Nanoseconds,
    device_free: Nanoseconds,
    scanned: u32,
    chance: u64,
    /// Lines that are of no page: of the pool, by page, and what compression works in.
    pool_lines: FxHashMap<u32, u32>,
    first_free_line: u32,
    outcome: Outcome,
    began: Nanoseconds,
    busy_before: [Nanoseconds; TASKS],
}

impl<'a> Simulation<'a> {
    /// At rest, but as things are after a while: ksm has scanned twice, and all operations have been done once, so that
    /// what is there is what they use.
    #[must_use]
    pub fn new(setting: Setting<'a>, mut memory: Memory, caches: impl Fn(usize) -> Caches) -> Self {
        let pages = setting.is_anonymous.len() as u32;
        let mut jobs = Vec::new();
        let mut mergeable: Vec<u32> = (0..pages).filter(|&page| setting.is_anonymous[page as usize]).collect();
        mergeable.sort_by_key(|&page| memory.address(page));
        let count = mergeable.len();
        let mut ksm = Ksm::new(setting.preset, mergeable);
        if setting.has_ksm {
            // What does not change is shared after two scans.
            for _ in 0..2 * count {
                ksm.scan(&mut memory, setting.contents, &mut jobs);
            }
        }
        while memory.is_below_high() && memory.kswapd(&mut jobs) {}
        for &number in setting.sequence.iter().flatten() {
            let touches = &setting.operations[number as usize].touches;
            for touch in touches.iter().filter(|touch| setting.is_anonymous[touch.page() as usize]) {
                memory.touch(touch.page(), touch.writes(), &mut jobs);
                jobs.clear();
            }
            if memory.is_low() {
                while memory.is_below_high() && memory.kswapd(&mut jobs) {}
            }
        }
        memory.counts = Default::default();
        let cores = if setting.shares_core { 1 } else { TASKS };
        let weights = [NICE_0, NICE_0, u64::from(setting.preset.ksm_weight)];
        let core_of = |task: TaskId| if setting.shares_core { 0 } else { task };
        let tasks = std::array::from_fn(|task| Task { core: core_of(task), ..Task::default() });
        Self {
            ksm,
            caches: caches(cores),
            cores: vec![Core::new(&weights); cores],
            since: vec![0; cores],
            epochs: vec![0; cores],
            locks: vec![None; cores],
            waiting: VecDeque::new(),
            tasks,
            events: BinaryHeap::new(),
            sequence: 0,
            now: 0,
            queue: VecDeque::new(),
            arrived: 0,
            current: None,
            core_waits: 0,
            device_free: 0,
            scanned: 0,
            chance: setting.seed.wrapping_mul(2).wrapping_add(1),
            pool_lines: FxHashMap::default(),
            first_free_line: (pages + 1) * LINES + setting.costs.scratch_lines.next_multiple_of(LINES),
            outcome: Outcome::default(),
            began: 0,
            busy_before: [0; TASKS],
            memory,
            setting,
        }
    }

    /// Until all operations are done.
    #[must_use]
    pub fn run(mut self) -> (Outcome, Memory) {
        self.push(0, Event::Arrival);
        if self.setting.has_ksm {
            self.push(0, Event::Wake { task: KSMD });
        }
        while self.outcome.latencies.len() as u64 + self.setting.operations_counted.0
            < self.setting.operations_counted.1
        {
            let Reverse((at, _, event)) = self.events.pop().expect("operations go on arriving");
            self.now = at;
            match event {
                Event::Arrival => self.arrive(),
                Event::Core { core, epoch } if epoch == self.epochs[core] => {
                    self.charge(core);
                    if at % TICK == 0 {
                        self.cores[core].tick();
                    }
                    self.go_on(core);
                }
                Event::Core { .. } => {}
                Event::Wake { task } => self.wake(task),
            }
        }
        self.outcome.elapsed = self.now - self.began;
        self.outcome.busy = std::array::from_fn(|task| self.tasks[task].busy - self.busy_before[task]);
        self.outcome.scans = self.ksm.scans;
        (self.outcome, self.memory)
    }

    fn push(&mut self, at: Nanoseconds, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((at, self.sequence, event)));
    }

    /// Uniform in (0, 1]: xorshift64*.
    fn draw(&mut self) -> f64 {
        self.chance ^= self.chance >> 12;
        self.chance ^= self.chance << 25;
        self.chance ^= self.chance >> 27;
        let bits = self.chance.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11;
        (bits + 1) as f64 / (1u64 << 53) as f64
    }

    fn arrive(&mut self) {
        // What ran until now ran without this one.
        self.charge(self.tasks[SERVER].core);
        self.enqueue();
        if let Some(rate) = self.setting.arrivals_per_second
            && self.arrived < self.setting.operations_counted.1
        {
            let gap = -self.draw().ln() / rate * 1e9;
            self.push(self.now + gap as Nanoseconds, Event::Arrival);
        }
        // It may sleep in the middle of an operation too, and is then woken by what it waits for.
        if self.current.is_none() && !self.tasks[SERVER].is_awake {
            self.wake(SERVER);
        }
    }

    fn enqueue(&mut self) {
        self.queue.push_back(Arrived { number: self.arrived, at: self.now, core_waits: self.core_waits });
        self.arrived += 1;
    }

    fn wake(&mut self, task: TaskId) {
        let core = self.tasks[task].core;
        self.charge(core);
        self.tasks[task].is_awake = true;
        self.cores[core].wake(task);
        self.go_on(core);
    }

    /// Accounts for what ran on a core until now.
    fn charge(&mut self, core: usize) {
        let time = self.now - self.since[core];
        self.since[core] = self.now;
        self.cores[core].ran(time);
        let current = self.cores[core].current();
        if let Some(current) = current {
            let task = &mut self.tasks[current];
            task.busy += time;
            task.remaining -= time;
            if current == SERVER
                && let (Some((_, stack)), Some(segment)) = (&mut self.current, task.segments.front())
            {
                stack[segment.cause as usize] += time;
            }
        }
        if core == self.tasks[SERVER].core && self.tasks[SERVER].is_awake && current != Some(SERVER) {
            self.core_waits += time;
        }
    }

    /// Has a core do what comes next, and says when it is to be looked at again.
    fn go_on(&mut self, core: usize) {
        while let Some(current) = self.cores[core].current() {
            let task = &mut self.tasks[current];
            if task.has_begun && task.remaining > 0 {
                break;
            }
            if std::mem::take(&mut task.has_begun) {
                let done = task.segments.pop_front().expect("it has begun");
                if done.is_locked {
                    self.unlock(core);
                }
            } else if task.segments.is_empty() {
                if !self.refill(current) {
                    self.sleep(current);
                }
            } else {
                self.begin(current);
            }
        }
        self.epochs[core] += 1;
        if let Some(current) = self.cores[core].current() {
            let end = self.now + self.tasks[current].remaining;
            let is_contended = self.tasks.iter().filter(|task| task.core == core && task.is_awake).count() > 1;
            let tick = (self.now / TICK + 1) * TICK;
            let at = if is_contended { end.min(tick) } else { end };
            self.push(at, Event::Core { core, epoch: self.epochs[core] });
        }
    }

    fn sleep(&mut self, task: TaskId) {
        self.tasks[task].is_awake = false;
        self.cores[self.tasks[task].core].sleep();
    }

    fn begin(&mut self, id: TaskId) {
        let core = self.tasks[id].core;
        let segment = *self.tasks[id].segments.front().expect("there is one");
        if segment.is_locked {
            if self.locks[core].is_some_and(|holder| holder != id) {
                self.waiting.push_back(id);
                self.sleep(id);
                return;
            }
            self.locks[core] = Some(id);
        }
        let task = &mut self.tasks[id];
        task.has_begun = true;
        task.remaining = 0;
        match segment.kind {
            Kind::Core(time) => task.remaining = time,
            Kind::Wait(time) => {
                let done = self.device_free.max(self.now) + time;
                self.device_free = done;
                task.remaining = done - self.now;
            }
            Kind::Offload(time) => {
                let done = self.device_free.max(self.now) + time;
                self.device_free = done;
                self.sleep_until(id, done);
            }
            Kind::Disk(time) => {
                if let (SERVER, Some((_, stack))) = (id, &mut self.current) {
                    stack[Cause::Swap as usize] += time;
                }
                self.sleep_until(id, self.now + time);
            }
        }
    }

    fn sleep_until(&mut self, task: TaskId, at: Nanoseconds) {
        self.sleep(task);
        self.push(at, Event::Wake { task });
    }

    fn unlock(&mut self, core: usize) {
        self.locks[core] = None;
        let waits = |&id: &TaskId| self.tasks[id].core == core;
        if let Some(place) = self.waiting.iter().position(waits)
            && let Some(id) = self.waiting.remove(place)
        {
            self.push(self.now, Event::Wake { task: id });
        }
    }

    /// What a task does next; false if that is nothing.
    fn refill(&mut self, task: TaskId) -> bool {
        match task {
            SERVER => self.serve(),
            KSWAPD => {
                let mut jobs = Vec::new();
                self.memory.is_below_high() && self.memory.kswapd(&mut jobs) && {
                    self.give(KSWAPD, &jobs, Cause::Reclaim);
                    true
                }
            }
            _ => self.scan(),
        }
    }

    fn scan(&mut self) -> bool {
        while self.scanned < self.setting.preset.ksm_pages {
            self.scanned += 1;
            let mut jobs = Vec::new();
            self.ksm.scan(&mut self.memory, self.setting.contents, &mut jobs);
            if !jobs.is_empty() {
                self.give(KSMD, &jobs, Cause::Reclaim);
                return true;
            }
        }
        self.scanned = 0;
        let at = self.now + u64::from(self.setting.preset.ksm_sleep_ms) * 1_000_000;
        self.push(at, Event::Wake { task: KSMD });
        false
    }

    fn serve(&mut self) -> bool {
        if let Some((arrived, mut stack)) = self.current.take() {
            let latency = self.now - arrived.at;
            stack[Cause::Core as usize] = self.core_waits - arrived.core_waits;
            stack[Cause::Queue as usize] = latency.saturating_sub(stack.iter().sum());
            let first = self.setting.operations_counted.0;
            if arrived.number >= first {
                self.outcome.latencies.push((latency, stack));
            } else if arrived.number + 1 == first {
                self.start_measuring();
            }
            if self.setting.arrivals_per_second.is_none() {
                self.enqueue();
            }
        }
        let Some(arrived) = self.queue.pop_front() else { return false };
        self.current = Some((arrived, Stack::default()));
        let (operations, sequence) = (self.setting.operations, self.setting.sequence);
        for &number in &sequence[arrived.number as usize % sequence.len()] {
            self.plan(&operations[number as usize]);
        }
        if self.memory.is_low() && !self.tasks[KSWAPD].is_awake && self.tasks[KSWAPD].segments.is_empty() {
            self.tasks[KSWAPD].is_awake = true;
            self.push(self.now, Event::Wake { task: KSWAPD });
        }
        true
    }

    fn start_measuring(&mut self) {
        self.began = self.now;
        self.busy_before = std::array::from_fn(|task| self.tasks[task].busy);
        (self.outcome.last_level, self.outcome.link_bytes) = ((0, 0), 0);
        self.memory.counts = Default::default();
    }

    fn plan(&mut self, operation: &Operation) {
        let mut misses = 0;
        let mut jobs = Vec::new();
        for &touch in &operation.touches {
            let page = touch.page();
            if self.setting.is_anonymous[page as usize] {
                let found = self.memory.touch(page, touch.writes(), &mut jobs);
                if found != Touched::Present {
                    self.core_segment(SERVER, self.setting.costs.kernel_entry_ns, Cause::Fault, false);
                    // Pages that are read ahead from the swap device come while the operation goes on.
                    if jobs.contains(&Job::SwapRead { page }) {
                        let kind = Kind::Disk(self.setting.costs.swap_read_ns as Nanoseconds);
                        self.tasks[SERVER].segments.push_back(Segment { kind, cause: Cause::Swap, is_locked: false });
                    }
                    self.give(SERVER, &jobs, Cause::Reclaim);
                    jobs.clear();
                }
            }
            match self.caches.access(self.tasks[SERVER].core, touch.line()) {
                Found::Own => {}
                Found::LastLevel => self.outcome.last_level.0 += 1,
                Found::Memory => {
                    self.outcome.last_level.0 += 1;
                    self.outcome.last_level.1 += 1;
                    misses += 1;
                }
            }
        }
        let time =
            operation.instructions as f64 * self.setting.instruction_ns + f64::from(misses) * self.setting.miss_ns;
        self.core_segment(SERVER, time, Cause::Memory, false);
    }

    fn core_segment(&mut self, task: TaskId, time: f64, cause: Cause, is_locked: bool) {
        let kind = Kind::Core(time.round() as Nanoseconds);
        self.tasks[task].segments.push_back(Segment { kind, cause, is_locked });
    }

    /// Gives a task work to do.
    fn give(&mut self, task: TaskId, jobs: &[Job], cause: Cause) {
        for &job in jobs {
            self.leave_traces(task, job);
            let Some(step) = self.setting.costs.of(job) else {
                if matches!(job, Job::SwapWrite { .. }) {
                    self.core_segment(task, self.setting.costs.swap_write_ns, cause, false);
                }
                continue;
            };
            let (cause, is_locked) = match job {
                Job::Decompress { .. } => (Cause::Decompression, true),
                Job::Compress { .. } => (cause, true),
                _ => (cause, false),
            };
            self.outcome.link_bytes += step.link_bytes;
            let time = step.device_ns.round() as Nanoseconds;
            if time == 0 {
                self.core_segment(task, step.core_ns, cause, is_locked);
                continue;
            }
            // A fault is short: its core waits. The others let it go.
            self.core_segment(task, step.core_ns, cause, false);
            let kind = if task == SERVER { Kind::Wait(time) } else { Kind::Offload(time) };
            self.tasks[task].segments.push_back(Segment { kind, cause, is_locked });
            if task != SERVER {
                self.core_segment(task, self.setting.costs.kernel_entry_ns, cause, false);
            }
        }
    }
}

#[cfg(test)]
mod tests;
