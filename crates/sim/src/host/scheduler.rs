//! Which thread runs on which core: threads that are ready take idle cores, and share them round-robin when there are
//! too few.

use std::collections::VecDeque;

use super::clock::CycleClock;
use super::run_loop::Wake;
use super::{Host, Workload};
use crate::core::Pause;
use crate::core::config::CoreConfig;
use crate::core::thread::{EventPhase, PendingRelease};
use crate::core::watched::WatchedStore;
use crate::core::write_order::Writes;
use fencepost_kernel::Context;
use fencepost_record::{Clock, Event, ThreadId};

/// What a thread is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadState {
    /// No thread has created it yet.
    #[default]
    Unstarted,
    /// It could run.
    Ready,
    /// It runs.
    Running,
    /// It waits for another thread.
    Blocked,
    /// A transport has paused it.
    Paused,
    /// It is at the end of its record.
    Ended,
}

/// What a core is doing.
#[derive(Clone, Debug, Default)]
pub struct CoreState {
    /// The thread it runs.
    pub thread: Option<usize>,
    /// The thread it ran last.
    pub last_thread: Option<usize>,
    /// When its thread got it.
    pub slice_start: u64,
    /// How many instructions its thread had executed then.
    pub slice_instructions: u64,
    /// For when its next run is scheduled.
    pub scheduled: Option<u64>,
    /// What its thread has come to, at a cycle that is not there yet.
    pub deferred: Option<Pause>,
    /// Whether it drains to give its core to another thread.
    pub is_preempting: bool,
    /// Whether it waits at the boundary of a region: until nothing of an earlier one is under way, or until the
    /// regions of other hosts begin.
    pub is_held: bool,
}

/// Which threads wait for cores, and the rules by which they get them. All times are in cycles.
#[derive(Clone, Debug)]
pub(super) struct Scheduler {
    /// Threads that wait for a core, in order.
    pub ready: VecDeque<usize>,
    /// As [`Workload::pins`] says.
    pub pins: Vec<usize>,
    /// How long a thread keeps its core while another wants it.
    pub time_slice: u64,
    pub context_switch: u64,
    /// How late each thread starts.
    pub start_delays: Vec<u64>,
}

impl Scheduler {
    pub fn new(config: &CoreConfig, clock: &CycleClock, workload: &Workload) -> Scheduler {
        let jitter = clock.cycles(config.start_jitter_ns);
        Scheduler {
            ready: VecDeque::new(),
            pins: workload.pins.clone(),
            time_slice: clock.cycles(config.time_slice_us * 1000.0),
            context_switch: clock.cycles(config.context_switch_ns),
            start_delays: start_delays(workload.seed, workload.record.threads(), jitter),
        }
    }

    /// Whether a thread that may run on `core` waits for one.
    pub fn wants(&self, core: usize) -> bool {
        self.ready.iter().any(|&ready| may_run(&self.pins, ready, core))
    }
}

/// By how many cycles each thread starts late: not at all with seed 0, else up to `most`.
fn start_delays(seed: u64, threads: usize, most: u64) -> Vec<u64> {
    let delay = |thread: usize| match seed {
        0 => 0,
        _ => mixed(mixed(seed) ^ thread as u64) % (most + 1),
    };
    (0..threads).map(delay).collect()
}

/// SplitMix64's finalizer (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Whether `thread` may run on `core`, as [`Workload::pins`](super::Workload::pins) says.
fn may_run(pins: &[usize], thread: usize, core: usize) -> bool {
    pins.is_empty() || pins[thread % pins.len()] == core
}

impl Host {
    /// `thread` may go on from `cycle` on.
    pub(super) fn make_ready(&mut self, thread: usize, cycle: u64, context: &mut Context<'_>) {
        if matches!(self.process.states[thread], ThreadState::Ready | ThreadState::Running | ThreadState::Ended) {
            return;
        }
        self.note_wait_over(thread, cycle);
        let is_new = self.process.states[thread] == ThreadState::Unstarted;
        let cycle = if is_new { cycle + self.scheduler.start_delays[thread] } else { cycle };
        self.process.states[thread] = ThreadState::Ready;
        let pins = &self.scheduler.pins;
        let core_where = |is_right: &dyn Fn(&CoreState) -> bool| {
            let mut states = self.socket.states.iter().enumerate();
            let found =
                states.find(|(core, state)| state.thread.is_none() && may_run(pins, thread, *core) && is_right(state));
            found.map(|(core, _)| core)
        };
        let own = core_where(&|state| state.last_thread == Some(thread));
        let unused = || core_where(&|state| state.last_thread.is_none());
        let any = || core_where(&|_| true);
        match own.or_else(unused).or_else(any) {
            Some(core) => self.assign(core, thread, cycle, context),
            None => {
                self.scheduler.ready.push_back(thread);
                self.free_stalled_cores(cycle, context);
            }
        }
    }

    /// Gives `core` to the next thread that is ready for it, if there is one.
    fn assign_next(&mut self, core: usize, cycle: u64, context: &mut Context<'_>) {
        let next = self.scheduler.ready.iter().position(|&thread| may_run(&self.scheduler.pins, thread, core));
        if let Some(thread) = next.and_then(|next| self.scheduler.ready.remove(next)) {
            self.assign(core, thread, cycle, context);
        }
    }

    fn assign(&mut self, core: usize, thread: usize, cycle: u64, context: &mut Context<'_>) {
        self.take_up_frame(thread);
        let state = &mut self.socket.states[core];
        let is_switch = state.last_thread.is_some_and(|last| last != thread);
        state.thread = Some(thread);
        state.last_thread = Some(thread);
        self.process.states[thread] = ThreadState::Running;
        let cost = if is_switch { self.scheduler.context_switch } else { 0 };
        self.socket.cores[core].stats.context_switches += u64::from(is_switch);
        self.socket.cores[core].start_thread(cycle + cost);
        for release in &self.process.threads[thread].releases {
            self.socket.cores[core].watch_word(release.word);
        }
        // It may have been paused while it waited for a core.
        self.socket.states[core].is_preempting = self.pacing.as_ref().is_some_and(|pacing| pacing.pauses(thread));
        let start = self.socket.cores[core].cycle();
        self.socket.states[core].slice_start = start;
        self.socket.states[core].slice_instructions = self.process.threads[thread].instructions;
        self.schedule_run(core, start, context);
    }

    /// Schedules a run of `core` at `cycle`, unless it runs before.
    pub(super) fn schedule_run(&mut self, core: usize, cycle: u64, context: &mut Context<'_>) {
        let time = self.time(cycle).max(context.now());
        let cycle = self.cycle(time);
        if self.socket.states[core].scheduled.is_none_or(|scheduled| scheduled > cycle) {
            self.socket.states[core].scheduled = Some(cycle);
            context.wake_at(time, Wake::Run { core }.token());
        }
    }

    /// Whether another thread is to have the core of this one. A thread that has executed nothing keeps it: where a
    /// slice is shorter than it takes to fetch an instruction, threads would take the line from each other for ever.
    pub(super) fn has_used_its_slice(&self, core: usize) -> bool {
        let state = &self.socket.states[core];
        let has_executed =
            state.thread.is_some_and(|thread| self.process.threads[thread].instructions > state.slice_instructions);
        let is_wanted = || self.scheduler.wants(core);
        has_executed && self.socket.cores[core].cycle() >= state.slice_start + self.scheduler.time_slice && is_wanted()
    }

    fn note_core_time(&mut self, core: usize, cycle: u64) {
        self.socket.busy_cycles += cycle.saturating_sub(self.socket.states[core].slice_start);
    }

    /// The core has drained: its thread goes to the end of the queue.
    pub(super) fn preempt(&mut self, core: usize, thread: usize, context: &mut Context<'_>) {
        let cycle = self.socket.cores[core].cycle();
        self.note_core_time(core, cycle);
        let state = &mut self.socket.states[core];
        state.is_preempting = false;
        state.thread = None;
        self.keep_frame(thread);
        if self.pacing.as_ref().is_some_and(|pacing| pacing.pauses(thread)) {
            self.process.states[thread] = ThreadState::Paused;
        } else {
            self.process.states[thread] = ThreadState::Ready;
            self.scheduler.ready.push_back(thread);
        }
        self.assign_next(core, cycle, context);
    }

    /// The thread of `core` has come to a synchronisation event, at `now`.
    pub(super) fn handle_event(&mut self, core: usize, thread: usize, now: u64, context: &mut Context<'_>) {
        debug_assert_eq!(self.process.threads[thread].phase, EventPhase::Accessed, "the object is accessed before");
        let event = self.process.threads[thread].event().clone();
        if let Event::SpinRelease { .. } = event {
            self.socket.cores[core].expect_release(&mut self.process.threads[thread], &mut self.process.table);
        }
        let own = &mut self.process.threads[thread];
        own.pass_event();
        own.clock = event.clock().map_or(own.clock, |clock| clock.max(own.clock));
        self.socket.cores[core].stats.synchronisations += 1;
        let is_join = matches!(event, Event::ThreadJoin { .. });
        let proceeds = match event {
            Event::Roi { begin } => {
                self.process.regions.set(begin, self.time(now));
                true
            }
            Event::ThreadCreate { clock, thread: created } => {
                let created = created.0 as usize;
                if let Some(created) = self.process.threads.get_mut(created) {
                    created.clock = created.clock.max(clock);
                }
                if self.process.states.get(created) == Some(&ThreadState::Unstarted) {
                    self.make_ready(created, now, context);
                }
                self.synchronise(thread, &event, now, context)
            }
            Event::SpinWait { .. } | Event::SpinRelease { .. } => self.wait_at_word(thread, &event, now, context),
            Event::Order { thread: of, writes: count } => self.wait_for_writes(thread, Writes { of, count }),
            _ => self.synchronise(thread, &event, now, context),
        };
        if self.process.synchronisation.remembers_many() {
            self.process.synchronisation.forget_before(self.clock_passed_by_all());
        }
        if proceeds {
            self.socket.cores[core].resume_at(now);
        } else {
            self.process.states[thread] = ThreadState::Blocked;
            self.keep_frame(thread);
            if !is_join {
                self.note_wait(thread, now);
            }
            self.leave(core, now, context);
        }
    }

    /// A place in the process clock that every thread has passed. One that is to be created comes to nothing before the
    /// place of its creation.
    fn clock_passed_by_all(&self) -> Clock {
        let goes_on = |(_, state): &(_, &ThreadState)| !matches!(state, ThreadState::Unstarted | ThreadState::Ended);
        let threads = self.process.threads.iter().zip(&self.process.states).filter(goes_on);
        threads.map(|(thread, _)| thread.passed_clock()).min().unwrap_or_default()
    }

    /// The thread of `core` is at the end of its record.
    pub(super) fn handle_end(&mut self, core: usize, thread: usize, context: &mut Context<'_>) {
        let cycle = self.socket.cores[core].cycle();
        self.process.finished_at = self.process.finished_at.max(self.time(cycle));
        self.process.end_thread(thread);
        let id = ThreadId(thread as u32);
        // Stores that the record announces and does not have: it is cut.
        for PendingRelease { clock, lock, .. } in std::mem::take(&mut self.process.threads[thread].releases) {
            let decision = self.process.synchronisation.stored(id, clock, lock);
            self.wake_all(&decision.woken, cycle, context);
        }
        let decision = self.process.synchronisation.end(id);
        self.wake_all(&decision.woken, cycle, context);
        self.leave(core, cycle, context);
    }

    /// Handles the stores of a core to words at which threads wait.
    pub(super) fn notice_stores(&mut self, core: usize, thread: usize, context: &mut Context<'_>) {
        if self.socket.cores[core].watched.stores.is_empty() {
            return;
        }
        let now = self.cycle(context.now());
        for store in std::mem::take(&mut self.socket.cores[core].watched.stores) {
            self.give_release(thread, &store, store.cycle.max(now), context);
        }
    }

    /// Wakes the threads that wait for this store, which has taken effect.
    fn give_release(&mut self, thread: usize, store: &WatchedStore, cycle: u64, context: &mut Context<'_>) {
        let stored = store.address..store.address + u64::from(store.size.max(1));
        let releases = &mut self.process.threads[thread].releases;
        let Some(at) = releases.iter().position(|release| stored.contains(&release.word)) else { return };
        let PendingRelease { clock, lock, .. } = releases.remove(at).expect("it is there");
        let decision = self.process.synchronisation.stored(ThreadId(thread as u32), clock, lock);
        self.wake_all(&decision.woken, cycle, context);
    }

    /// Handles a thread that waits at a word: for a store of another thread, or to get a lock. Says
    /// whether it goes on at once.
    fn wait_at_word(&mut self, thread: usize, event: &Event, now: u64, context: &mut Context<'_>) -> bool {
        let (id, synchronisation) = (ThreadId(thread as u32), &mut self.process.synchronisation);
        let decision = match *event {
            Event::SpinWait { clock, object, wake, maker, lends } => {
                synchronisation.wait_for_word(id, clock, object, (wake, maker), lends)
            }
            Event::SpinRelease { clock, lock, .. } => synchronisation.take_word(id, clock, lock),
            _ => unreachable!("no other event waits at a word"),
        };
        self.wake_all(&decision.woken, now, context);
        decision.proceeds
    }

    fn wake_all(&mut self, woken: &[ThreadId], cycle: u64, context: &mut Context<'_>) {
        for thread in woken {
            self.make_ready(thread.0 as usize, cycle, context);
        }
    }

    fn leave(&mut self, core: usize, cycle: u64, context: &mut Context<'_>) {
        self.note_core_time(core, cycle);
        self.socket.states[core].thread = None;
        self.assign_next(core, cycle, context);
    }
}
