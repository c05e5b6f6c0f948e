//! Operations arrive, are served one after the other by one task, as Redis serves them, and fault where pages are gone;
//! kswapd and ksmd work on the same core or on others of their own. Here are events and cores: who runs when, and what
//! is waited for.

mod arrivals;
mod device;
mod setting;
mod stack;
mod task;
mod traces;
mod work;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

pub use setting::{Outcome, Setting};
pub use stack::{CAUSES, Cause, Stack};

use arrivals::{Arrivals, Arrived};
use device::Device;
use task::{KSMD, Kind, SERVER, TASKS, Task};
use traces::Traces;

use super::caches::Caches;
use super::scheduler::{Core, Nanoseconds, TICK, TaskId};
use crate::linux::ksm::Ksm;
use crate::linux::memory::Memory;

const NICE_0: u64 = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrival,
    Core { core: usize, epoch: u64 },
    Device,
    Wake { task: TaskId },
}

/// See the module.
pub struct Simulation<'a> {
    setting: Setting<'a>,
    memory: Memory,
    ksm: Ksm,
    traces: Traces,
    cores: Vec<Core>,
    /// By core: until when its time has been accounted for, which of its events counts, and whom it worked for last.
    since: Vec<Nanoseconds>,
    epochs: Vec<u64>,
    worked_for: Vec<Option<TaskId>>,
    /// By core: who holds the lock of its compressor; and who waits for one.
    locks: Vec<Option<TaskId>>,
    waiting: VecDeque<TaskId>,
    tasks: [Task; TASKS],
    events: BinaryHeap<Reverse<(Nanoseconds, u64, Event)>>,
    sequence: u64,
    now: Nanoseconds,
    arrivals: Arrivals,
    /// The operation that is served.
    current: Option<(Arrived, Stack)>,
    /// How long the server has waited for its core.
    core_waits: Nanoseconds,
    device: Device,
    /// Pages of ksmd's batch so far.
    scanned: u32,
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
            traces: Traces::new(caches(cores), pages, setting.costs, setting.pollutes),
            cores: vec![Core::new(&weights); cores],
            since: vec![0; cores],
            epochs: vec![0; cores],
            worked_for: vec![None; cores],
            locks: vec![None; cores],
            waiting: VecDeque::new(),
            tasks,
            events: BinaryHeap::new(),
            sequence: 0,
            now: 0,
            arrivals: Arrivals::new(setting.arrivals_per_second, setting.operations_counted.1, setting.seed),
            current: None,
            core_waits: 0,
            device: Device::default(),
            scanned: 0,
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
            self.wake_at(0, KSMD);
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
                Event::Device => self.look_at_device(),
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

    fn wake_at(&mut self, at: Nanoseconds, task: TaskId) {
        self.push(at, Event::Wake { task });
    }

    fn arrive(&mut self) {
        // What ran until now ran without this one.
        self.charge(self.tasks[SERVER].core);
        if let Some(gap) = self.arrivals.arrive(self.now, self.core_waits) {
            self.push(self.now + gap, Event::Arrival);
        }
        // It may sleep in the middle of an operation too, and is then woken by what it waits for.
        if self.current.is_none() && !self.tasks[SERVER].is_awake {
            self.wake(SERVER);
        }
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
            let is_switch = self.worked_for[core] != Some(current);
            let task = &mut self.tasks[current];
            if task.has_begun && task.remaining > 0 && !is_switch {
                break;
            }
            if task.has_begun && task.remaining == 0 {
                task.has_begun = false;
                let done = task.segments.pop_front().expect("it has begun");
                if done.is_locked {
                    self.unlock(core);
                }
            } else if is_switch {
                self.worked_for[core] = Some(current);
                task.switch_in(self.setting.costs.switch_ns.round() as Nanoseconds);
            } else if task.segments.is_empty() {
                if !self.refill(current) {
                    self.sleep(current);
                }
            } else {
                self.begin(current);
            }
        }
        self.epochs[core] += 1;
        if self.cores[core].current().is_none() {
            self.worked_for[core] = None;
        }
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
        let segment = self.tasks[id].segments.front().expect("there is one").clone();
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
                task.remaining = self.device.urgent(self.now, time) - self.now;
            }
            Kind::Offload(jobs) => {
                self.sleep(id);
                if let Some(at) = self.device.hand_over(self.now, id, jobs) {
                    self.push(at, Event::Device);
                }
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
        self.wake_at(at, task);
    }

    fn look_at_device(&mut self) {
        let next = self.device.look(self.now);
        if let Some(at) = next.look_at {
            self.push(at, Event::Device);
        }
        if let Some(task) = next.done {
            self.wake(task);
        }
    }

    fn unlock(&mut self, core: usize) {
        self.locks[core] = None;
        let waits = |&id: &TaskId| self.tasks[id].core == core;
        if let Some(place) = self.waiting.iter().position(waits)
            && let Some(id) = self.waiting.remove(place)
        {
            self.wake_at(self.now, id);
        }
    }
}

#[cfg(test)]
mod tests;
