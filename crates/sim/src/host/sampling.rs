//! Which instructions of a host are replayed in detail when only a sample of them is.
//!
//! The plan counts instructions of all threads together, inside regions of interest only. Between intervals threads go
//! on functionally, at the pace that they had in the intervals so far, so that they meet at locks and barriers as they
//! would have. An interval ends for all cores at once; as at the end of a region, what is under way comes to rest
//! before anything goes on without time.

use super::Host;
use crate::core::warm::{INITIAL_PACE, Pace};
use crate::host::sample_plan::SamplePlan;
use fencepost_kernel::time::Time;

/// How many instructions a thread goes on between intervals before others have their turn: few, because what threads do
/// at the same time (all of them flush behind a barrier) is to come to the next interval at the same time.
const INSTRUCTIONS_AT_A_TIME: u64 = 250;

/// What a host is doing with the instructions it comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// They only warm.
    Functional,
    /// They are replayed in detail, and not measured.
    WarmUp,
    /// They are measured.
    Measured,
}

/// What has changed at a position of the plan; several things may at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleBoundary {
    /// An interval has come to its end.
    pub ends_measuring: bool,
    /// The interval that was being measured does not count: its region ended first.
    pub abandons: bool,
    /// What has been warmed is about to be used.
    pub begins_detail: bool,
    /// An interval begins here.
    pub begins_measuring: bool,
    /// When: the mean over the running cores of how far they have computed.
    pub time: Time,
    /// Instructions inside regions so far.
    pub position: u64,
}

/// Follows a plan.
#[derive(Clone, Debug)]
pub struct Sampler {
    plan: SamplePlan,
    phase: Phase,
    /// The period whose interval comes next, or is under way.
    period: u64,
    /// Instructions executed outside of regions.
    outside: u64,
    /// Instructions executed when the last region ended, while outside.
    left_at: Option<u64>,
    boundary: Option<SampleBoundary>,
    /// What threads had done when the present interval began, and what they did in all intervals so far.
    at_begin: ThreadProgress,
    measured: ThreadProgress,
    /// Since which cycle each thread waits for another, and for how many cycles those did that wait no longer.
    waiting_since: Vec<Option<u64>>,
    waited: u64,
}

/// What the threads of a host did in some time, all together.
#[derive(Clone, Copy, Debug, Default)]
struct ThreadProgress {
    instructions: u64,
    /// Cycles for which they had cores.
    busy: u64,
    /// Cycles for which they waited for each other, for anything but the end of a thread.
    waited: u64,
}

impl Sampler {
    fn new(plan: SamplePlan, is_inside: bool, threads: usize) -> Sampler {
        Sampler {
            plan,
            phase: Phase::Functional,
            period: 0,
            outside: 0,
            left_at: (!is_inside).then_some(0),
            boundary: None,
            at_begin: ThreadProgress::default(),
            measured: ThreadProgress::default(),
            waiting_since: vec![None; threads],
            waited: 0,
        }
    }

    /// Instructions inside regions, of `instructions` in all.
    fn position(&self, instructions: u64) -> u64 {
        self.left_at.unwrap_or(instructions) - self.outside
    }

    /// Where the present phase ends.
    fn phase_end(&self) -> u64 {
        let begin = self.plan.begin_of(self.period);
        match self.phase {
            Phase::Functional => begin,
            Phase::WarmUp => begin + self.plan.warmup,
            Phase::Measured => begin + self.plan.warmup + self.plan.detail,
        }
    }

    /// The phase behind the present one, and what that changes.
    fn next_phase(&mut self) -> SampleBoundary {
        let mut boundary =
            SampleBoundary { ends_measuring: self.phase == Phase::Measured, ..SampleBoundary::default() };
        if self.phase == Phase::Measured {
            self.period += 1;
        }
        let first = if self.plan.warmup > 0 { Phase::WarmUp } else { Phase::Measured };
        let before = self.phase;
        self.phase = match before {
            Phase::Functional => first,
            Phase::WarmUp => Phase::Measured,
            Phase::Measured if self.plan.functional() > 0 => Phase::Functional,
            Phase::Measured => first,
        };
        boundary.begins_detail = before == Phase::Functional;
        boundary.begins_measuring = self.phase == Phase::Measured;
        boundary
    }

    /// At which pace threads go on between intervals: all at one, as they did on average in them. What an interval
    /// shows of one thread alone is mostly what it happened to do there; threads that do the same between two barriers
    /// would drift apart.
    fn pace(&self) -> Pace {
        Pace::of(self.measured.instructions, self.measured.busy).unwrap_or(INITIAL_PACE)
    }
}

impl Host {
    /// Replays only a sample in detail; to be called before the start.
    pub fn sample(&mut self, plan: SamplePlan) {
        self.sampler =
            Some(Box::new(Sampler::new(plan, !self.process.regions.is_warming(), self.process.threads.len())));
    }

    /// Which part of their time threads waited for each other in the intervals measured so far; none if there are none.
    /// Waits for the end of another thread are no such waits, and time without a core is no such time.
    pub fn sampled_wait_share(&self) -> Option<f64> {
        let ThreadProgress { busy, waited, .. } = self.sampler.as_deref()?.measured;
        (busy + waited > 0).then(|| waited as f64 / (busy + waited) as f64)
    }

    /// A thread waits for another from `cycle` on.
    pub(super) fn note_wait(&mut self, thread: usize, cycle: u64) {
        if let Some(sampler) = &mut self.sampler {
            sampler.waiting_since[thread] = Some(cycle);
        }
    }

    /// It goes on at `cycle`, if it waited.
    pub(super) fn note_wait_over(&mut self, thread: usize, cycle: u64) {
        if let Some(sampler) = &mut self.sampler
            && let Some(since) = sampler.waiting_since[thread].take()
        {
            sampler.waited += cycle.saturating_sub(since);
        }
    }

    /// What has changed at a position of the plan since the last call.
    pub fn take_sample_boundary(&mut self) -> Option<SampleBoundary> {
        self.sampler.as_mut()?.boundary.take()
    }

    /// Whether there is such a change that was not taken yet.
    pub(super) fn has_sample_boundary(&self) -> bool {
        self.sampler.as_deref().is_some_and(|sampler| sampler.boundary.is_some())
    }

    /// Whether what is executed now only warms: outside of regions, or between the intervals of a sample.
    pub fn is_warming(&self) -> bool {
        self.process.regions.is_warming() || self.is_between_intervals()
    }

    /// Whether a region is under way, and no interval of its sample.
    pub fn is_between_intervals(&self) -> bool {
        let is_functional = |sampler: &Sampler| sampler.left_at.is_none() && sampler.phase == Phase::Functional;
        self.sampler.as_deref().is_some_and(is_functional)
    }

    /// Inside regions that are sampled: at which pace threads go on between intervals, and how many instructions one
    /// may execute until others have their turn, or until the next interval.
    pub(super) fn way_to_interval(&self) -> Option<(Pace, u64)> {
        let sampler = self.sampler.as_deref().filter(|_| self.is_between_intervals())?;
        let left = sampler.phase_end().saturating_sub(sampler.position(self.instructions()));
        let most = if self.runs_alone() { u64::MAX } else { INSTRUCTIONS_AT_A_TIME };
        Some((sampler.pace(), left.min(most)))
    }

    /// By how many cycles more than in detail a core may compute ahead while it only warms: no thread waits for a core
    /// that runs alone, and between intervals the others meet it only in the caches.
    pub(super) fn functional_run_ahead(&self) -> u64 {
        const ALONE: u64 = 10_000;
        const WITH_OTHERS: u64 = 1_000;
        match (self.runs_alone(), self.is_between_intervals()) {
            (true, _) => ALONE,
            (false, true) => WITH_OTHERS,
            (false, false) => 0,
        }
    }

    /// Whether one core has a thread, and no other thread waits for one.
    fn runs_alone(&self) -> bool {
        self.scheduler.ready.is_empty() && self.socket.states.iter().filter(|state| state.thread.is_some()).count() == 1
    }

    /// The host may have come to a position of the plan, at cycle `now`.
    pub(super) fn follow_plan(&mut self, now: u64) {
        let instructions = self.process.instructions;
        let is_due = |sampler: &&mut Sampler| sampler.left_at.is_none() && sampler.boundary.is_none();
        let Some(sampler) = self.sampler.as_deref_mut().filter(is_due) else {
            return;
        };
        let position = sampler.position(instructions);
        if position < sampler.phase_end() {
            return;
        }
        let boundary = sampler.next_phase();
        let begins_functional = sampler.phase == Phase::Functional;
        let time = self.mean_time(now);
        let progress = self.progress(now);
        let sampler = self.sampler_mut();
        if boundary.ends_measuring {
            sampler.measured.add(&progress, &sampler.at_begin);
        }
        if boundary.begins_measuring {
            sampler.at_begin = progress;
        }
        if begins_functional {
            self.process.regions.settle_first();
        }
        self.sampler_mut().boundary = Some(SampleBoundary { time, position, ..boundary });
    }

    /// A region has begun or ended.
    pub(super) fn sample_crosses_region(&mut self, now: u64) {
        let (instructions, is_outside, time) =
            (self.instructions(), self.process.regions.is_warming(), self.mean_time(now));
        let Some(sampler) = self.sampler.as_deref_mut() else { return };
        match (is_outside, sampler.left_at) {
            (true, None) => {
                sampler.left_at = Some(instructions);
                if sampler.phase != Phase::Functional {
                    let position = sampler.position(instructions);
                    sampler.phase = Phase::Functional;
                    sampler.period = sampler.plan.period_from(position).max(sampler.period + 1);
                    let boundary = SampleBoundary { abandons: true, time, position, ..SampleBoundary::default() };
                    sampler.boundary = Some(boundary);
                }
            }
            (false, Some(left_at)) => {
                sampler.left_at = None;
                sampler.outside += instructions - left_at;
                // Something of an earlier region may be under way still.
                self.process.regions.settle_first();
            }
            _ => {}
        }
    }

    fn sampler_mut(&mut self) -> &mut Sampler {
        self.sampler.as_deref_mut().expect("this host samples")
    }

    /// The mean over the running cores of how far they have computed; `now` if none runs.
    fn mean_time(&self, now: u64) -> Time {
        let running = self.socket.states.iter().zip(&self.socket.cores).filter(|(state, _)| state.thread.is_some());
        let (mut cycles, mut cores) = (0, 0);
        for (_, core) in running {
            cycles += core.cycle().max(now);
            cores += 1;
        }
        self.time(cycles.checked_div(cores).unwrap_or(now))
    }

    /// What all threads have done until cycle `now`.
    fn progress(&self, now: u64) -> ThreadProgress {
        let running = self.socket.states.iter().zip(&self.socket.cores).filter(|(state, _)| state.thread.is_some());
        let cycles = running.map(|(state, core)| core.cycle().saturating_sub(state.slice_start));
        let sampler = self.sampler.as_deref().expect("this host samples");
        let waits = sampler.waiting_since.iter().flatten().map(|since| now.saturating_sub(*since));
        ThreadProgress {
            instructions: self.instructions(),
            busy: self.socket.busy_cycles + cycles.sum::<u64>(),
            waited: sampler.waited + waits.sum::<u64>(),
        }
    }
}

impl ThreadProgress {
    /// Adds what was done between `begin` and `end`.
    fn add(&mut self, end: &ThreadProgress, begin: &ThreadProgress) {
        self.instructions += end.instructions - begin.instructions;
        self.busy += end.busy - begin.busy;
        // A wait that was open at the beginning may have ended before: the core that ended it had not computed as far
        // ahead.
        self.waited += end.waited.saturating_sub(begin.waited);
    }
}
