//! What each task does next, as segments: operations with their faults, reclaim, scans.

use std::collections::VecDeque;

use super::Simulation;
use super::stack::{Cause, Stack};
use super::task::{KSMD, KSWAPD, Kind, SERVER, Segment};
use crate::linux::memory::{Job, Touched};
use crate::recorded::Operation;
use crate::service::caches::Found;
use crate::service::scheduler::{Nanoseconds, TaskId};

impl Simulation<'_> {
    /// Gives a task what it does next; false if that is nothing.
    pub(super) fn refill(&mut self, task: TaskId) -> bool {
        match task {
            SERVER => self.serve(),
            KSWAPD => self.free_page(),
            _ => self.scan(),
        }
    }

    fn free_page(&mut self) -> bool {
        let mut jobs = Vec::new();
        let has_freed = self.memory.is_below_high() && self.memory.kswapd(&mut jobs);
        self.give(KSWAPD, &jobs, Cause::Reclaim);
        has_freed
    }

    fn scan(&mut self) -> bool {
        while self.scanned < self.setting.preset.ksm_pages {
            let chains = if self.setting.costs.on_core {
                vec![self.scan_page()]
            } else {
                std::iter::from_fn(|| (self.scanned < self.setting.preset.ksm_pages).then(|| self.scan_page()))
                    .collect()
            };
            // What a page is compared with depends on the comparison before: of each page one job is handed over.
            for round in rounds(&chains) {
                self.give(KSMD, &round, Cause::Reclaim);
            }
            if !self.tasks[KSMD].segments.is_empty() {
                return true;
            }
        }
        self.scanned = 0;
        let at = self.now + u64::from(self.setting.preset.ksm_sleep_ms) * 1_000_000;
        self.wake_at(at, KSMD);
        false
    }

    fn scan_page(&mut self) -> Vec<Job> {
        self.scanned += 1;
        let mut jobs = Vec::new();
        self.ksm.scan(&mut self.memory, self.setting.contents, &mut jobs);
        jobs
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
            if self.arrivals.is_closed() {
                self.arrivals.arrive(self.now, self.core_waits);
            }
        }
        let Some(arrived) = self.arrivals.take() else { return false };
        self.current = Some((arrived, Stack::default()));
        let (operations, sequence) = (self.setting.operations, self.setting.sequence);
        for &number in &sequence[arrived.number as usize % sequence.len()] {
            self.plan(&operations[number as usize]);
        }
        if self.memory.is_low() && !self.tasks[KSWAPD].is_awake && self.tasks[KSWAPD].segments.is_empty() {
            self.tasks[KSWAPD].is_awake = true;
            self.wake_at(self.now, KSWAPD);
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
        let core = self.tasks[SERVER].core;
        for &touch in &operation.touches {
            if self.setting.is_anonymous[touch.page() as usize] {
                self.touch(touch.page(), touch.writes());
            }
            let found = self.traces.access(core, touch.line());
            self.outcome.last_level.0 += u64::from(found != Found::Own);
            self.outcome.last_level.1 += u64::from(found == Found::Memory);
            misses += u32::from(found == Found::Memory);
        }
        let time =
            operation.instructions as f64 * self.setting.instruction_ns + f64::from(misses) * self.setting.miss_ns;
        self.core_segment(SERVER, time, Cause::Memory, false);
    }

    /// The server touches an anonymous page, and faults where that is not mapped.
    fn touch(&mut self, page: u32, writes: bool) {
        let mut jobs = Vec::new();
        if self.memory.touch(page, writes, &mut jobs) == Touched::Present {
            return;
        }
        self.core_segment(SERVER, self.setting.costs.fault_ns, Cause::Fault, false);
        // Pages that are read ahead from the swap device come while the operation goes on.
        if jobs.contains(&Job::SwapRead { page }) {
            let kind = Kind::Disk(self.setting.costs.swap_read_ns as Nanoseconds);
            self.tasks[SERVER].segments.push_back(Segment { kind, cause: Cause::Swap, is_locked: false });
        }
        self.give(SERVER, &jobs, Cause::Reclaim);
    }

    fn core_segment(&mut self, task: TaskId, time: f64, cause: Cause, is_locked: bool) {
        let kind = Kind::Core(time.round() as Nanoseconds);
        self.tasks[task].segments.push_back(Segment { kind, cause, is_locked });
    }

    /// Gives a task jobs to do. Those of ksmd that a device does are handed over together, those of others one by one.
    fn give(&mut self, task: TaskId, jobs: &[Job], cause: Cause) {
        let core = self.tasks[task].core;
        let mut handed_over = VecDeque::new();
        for &job in jobs {
            self.traces.leave(core, job);
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
            let is_further = !handed_over.is_empty();
            let core_ns = if is_further { self.setting.costs.further_job_ns } else { step.core_ns };
            self.core_segment(task, core_ns, cause, false);
            // A fault is short: its core waits. The others let it go.
            let kind = match task {
                SERVER => Kind::Wait(time),
                KSWAPD => Kind::Offload([time].into()),
                _ => {
                    handed_over.push_back(time);
                    continue;
                }
            };
            self.tasks[task].segments.push_back(Segment { kind, cause, is_locked });
        }
        if !handed_over.is_empty() {
            let kind = Kind::Offload(handed_over);
            self.tasks[task].segments.push_back(Segment { kind, cause, is_locked: false });
        }
    }
}

/// The first jobs of all chains, the second ones, and so on.
fn rounds(chains: &[Vec<Job>]) -> impl Iterator<Item = Vec<Job>> {
    let longest = chains.iter().map(Vec::len).max().unwrap_or(0);
    (0..longest).map(|place| chains.iter().filter_map(|chain| chain.get(place).copied()).collect())
}
