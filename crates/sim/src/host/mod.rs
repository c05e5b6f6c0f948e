//! A host: its cores, their caches, and the threads of the process that runs on them.
//!
//! Cores and caches are one component because hits and coherence are resolved without events; what leaves the last-level cache goes to the host
//! bridge at port 0, and its answers come back there. What a core asks of the shared levels becomes a wake of this component at the time it gets
//! there, so that all cores' requests are served in the order of simulated time.

#[cfg(test)]
pub(crate) mod bench;
mod recorded_order;
mod regions;
pub mod sample_plan;
mod sampling;
mod scheduler;
mod spin;
#[cfg(test)]
mod tests;
mod thread_placement;
mod waiting_frames;

use std::sync::Arc;

use self::recorded_order::RecordedOrder;
use self::regions::Regions;
use self::sampling::Sampler;
use self::scheduler::{CoreState, ThreadState};
use self::spin::SpinWatch;
use self::waiting_frames::WaitingFrames;
use crate::address_space::page_table::PageTable;
use crate::cache::array::State;
use crate::cache::config::CacheConfig;
use crate::cache::hierarchy::{
    Acknowledged, Departure, Hierarchy, HierarchyConfig, Outcome, Request, Requester, Served, Side,
};
use crate::cache::observation_log::{Access, ObservationLog};
use crate::cache::persist_sites::PersistSites;
use crate::core::config::{
    BranchPredictorConfig, CleanedLine, CoreConfig, FlushAcknowledgement, SimulationConfig, TlbConfig,
};
use crate::core::persist::PersistPolicy;
use crate::core::store_log::{Performed, StoreLog};
use crate::core::synchronisation::Synchronisation;
use crate::core::thread::Thread;
use crate::core::warm::{SampledRegion, WarmEnvironment};
use crate::core::write_order::WriteOrder;
use crate::core::{Core, CoreRequest, Environment, Pause};
use crate::isa::micro_op::{DecodedBlock, Operation};
use crate::kernel::HostActivity;
use crate::kernel::{Component, Context, Divisor, Event, PortId};
use crate::line::{LineAddress, Version};
use crate::message::{Message, Opcode};
use crate::record::{Record, RecordError, ThreadId};
use crate::stats::StatsNode;
use crate::time::{Duration, Time};

pub use self::regions::RegionBoundary;
pub use self::sampling::SampleBoundary;
pub use self::thread_placement::ThreadPlacement;

const BRIDGE: PortId = PortId(0);

/// Everything a host is built from.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// The cores.
    pub core: CoreConfig,
    /// Their TLBs.
    pub tlb: TlbConfig,
    /// Their branch predictors.
    pub branch_predictor: BranchPredictorConfig,
    /// First-level instruction cache.
    pub l1i: CacheConfig,
    /// First-level data cache.
    pub l1d: CacheConfig,
    /// The levels below with their names, nearest first.
    pub levels: Vec<(String, CacheConfig)>,
    /// How far cores compute ahead.
    pub simulation: SimulationConfig,
    /// From the last level to the memory bus and back.
    pub bus_round_trip: Duration,
}

/// The program a host runs.
pub struct Workload {
    /// Its record.
    pub record: Record,
    /// Its decoded blocks; the same for every host and scheme that runs it.
    pub blocks: Arc<[DecodedBlock]>,
    /// Its address space.
    pub table: PageTable,
    /// What is persisted beyond its own flushes.
    pub persist: PersistPolicy,
    /// On which core each thread runs, thread after thread and then from the start again; empty if it runs where there is room.
    pub pins: Vec<usize>,
    /// Instructions after which each thread stops; empty if none does.
    pub limits: Vec<u64>,
    /// Writes to PM after which all threads stop where they are.
    pub pm_writes_limit: Option<u64>,
    /// Which start times threads get; see [`CoreConfig::start_jitter_ns`].
    pub seed: u64,
}

/// One host.
#[derive(Clone)]
pub struct Host {
    period: Duration,
    /// The period, to divide by.
    clock: Divisor,
    run_ahead: u64,
    time_slice: u64,
    context_switch: u64,
    store_queue_entries: usize,
    blocks: Arc<[DecodedBlock]>,
    persist: PersistPolicy,
    cores: Vec<Core>,
    core_states: Vec<CoreState>,
    threads: Vec<Thread>,
    thread_states: Vec<ThreadState>,
    /// Instructions of all threads. Their sum is wanted each time a core has run, and there may be many threads.
    instructions: u64,
    /// How many threads have ended.
    ended_threads: usize,
    /// All threads before this one have been started.
    first_unstarted: usize,
    waiting_frames: WaitingFrames,
    /// Cycles by which each thread starts late.
    start_delays: Vec<u64>,
    ready: std::collections::VecDeque<usize>,
    pins: Vec<usize>,
    caches: Hierarchy,
    table: PageTable,
    synchronisation: Synchronisation,
    spins: SpinWatch,
    regions: Regions,
    /// Set if only a sample is replayed in detail.
    sampler: Option<Box<Sampler>>,
    /// For how many cycles cores have had threads that left them since.
    busy_cycles: u64,
    pm_writes_limit: Option<u64>,
    instructions_limit: Option<u64>,
    is_limited: bool,
    has_reached_pm_writes: bool,
    finished_at: Time,
    forced_waits: u64,
    /// Waits of which the record does not say what ended them.
    unnamed_waits: u64,
    /// Whether its record says what ended waits, where it is known.
    names_spin_waits: bool,
    events: u64,
    requests: Vec<Option<(usize, CoreRequest)>>,
    free_requests: Vec<u32>,
    scratch: Vec<(u64, CoreRequest)>,
    /// Empty between events; kept for their memory, like `scratch`.
    served: Vec<Served>,
    acknowledged: Vec<Acknowledged>,
    departures: Vec<Departure>,
    /// Kept only where somebody asks for it.
    observations: Option<Box<ObservationLog>>,
    /// Likewise.
    stores: Option<Box<StoreLog>>,
    /// Set if synchronisation happens in the order in which it was recorded.
    recorded_order: Option<Box<RecordedOrder>>,
    /// Set if threads wait for what the record says that they saw of each other.
    write_order: Option<Box<WriteOrder>>,
    is_powered: bool,
    /// A Global Persistent Flush has begun: cores stand still.
    is_flushing: bool,
    /// What could not be read of the record; the simulation ends with it.
    pub error: Option<RecordError>,
}

/// Something that made a line of PM dirty or clean, with the version that was stored or that memory was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirtyLineChange {
    /// A store took effect in a core's first level.
    Stored(LineAddress, Version),
    /// The last level sent it to memory.
    WrittenBack(LineAddress, Version),
}

/// What a wake of the host is for; packed into its token.
#[derive(Clone, Copy, Debug)]
enum Wake {
    Run { core: usize },
    Request { slot: u32 },
}

impl Wake {
    fn token(self) -> u64 {
        match self {
            Wake::Run { core } => core as u64,
            Wake::Request { slot } => 1 << 63 | u64::from(slot),
        }
    }

    fn from_token(token: u64) -> Wake {
        if token >> 63 == 1 { Wake::Request { slot: token as u32 } } else { Wake::Run { core: token as usize } }
    }
}

impl Host {
    /// A host with cold caches, about to run `workload`.
    pub fn new(config: &HostConfig, workload: Workload) -> Host {
        let period = Duration::from_ghz(config.core.clock_ghz);
        let cycles = |ns: f64| Duration::from_ns(ns).as_ps().div_ceil(period.as_ps());
        let cores = usize::from(config.core.count);
        let caches = Hierarchy::new(&HierarchyConfig {
            cores,
            period,
            l1i: config.l1i.clone(),
            l1d: config.l1d.clone(),
            levels: config.levels.clone(),
            bus_round_trip: config.bus_round_trip.as_ps().div_ceil(period.as_ps()),
            flushes_end_at_bus: config.core.flush_acknowledged_by == FlushAcknowledgement::MemoryBus,
            cleaned: match config.core.clwb_leaves {
                CleanedLine::Exclusive => State::Exclusive,
                CleanedLine::Shared => State::Shared,
            },
        });
        let mut threads: Vec<_> = (0..workload.record.threads())
            .map(|thread| Thread::new(workload.record.reader(ThreadId(thread as u32))))
            .collect();
        for (thread, &limit) in threads.iter_mut().zip(&workload.limits) {
            thread.limit = limit;
        }
        let core = || Core::new(&config.core, &config.tlb, &config.branch_predictor, &config.l1i, &config.l1d, period);
        let has_regions = workload.record.info().options.roi.is_some()
            || workload
                .blocks
                .iter()
                .any(|block| block.micro_ops.iter().any(|op| op.operation == Operation::RoiMarker));
        Host {
            period,
            clock: Divisor::new(period.as_ps()),
            run_ahead: cycles(config.simulation.run_ahead_ns).max(1),
            time_slice: cycles(config.core.time_slice_us * 1000.0),
            context_switch: cycles(config.core.context_switch_ns),
            store_queue_entries: usize::from(config.core.store_queue_entries),
            blocks: workload.blocks,
            persist: workload.persist,
            cores: (0..cores).map(|_| core()).collect(),
            core_states: vec![CoreState::default(); cores],
            thread_states: vec![ThreadState::Unstarted; threads.len()],
            instructions: 0,
            ended_threads: 0,
            first_unstarted: 0,
            waiting_frames: WaitingFrames::new(threads.len()),
            busy_cycles: 0,
            start_delays: scheduler::start_delays(workload.seed, threads.len(), cycles(config.core.start_jitter_ns)),
            threads,
            ready: std::collections::VecDeque::new(),
            pins: workload.pins,
            caches,
            table: workload.table,
            synchronisation: Synchronisation::default(),
            spins: SpinWatch::default(),
            regions: Regions::new(has_regions),
            sampler: None,
            pm_writes_limit: workload.pm_writes_limit,
            instructions_limit: None,
            is_limited: !workload.limits.is_empty(),
            has_reached_pm_writes: false,
            finished_at: Time::ZERO,
            forced_waits: 0,
            unnamed_waits: 0,
            names_spin_waits: workload.record.info().names_spin_waits(),
            events: 0,
            requests: Vec::new(),
            free_requests: Vec::new(),
            scratch: Vec::new(),
            served: Vec::new(),
            acknowledged: Vec::new(),
            departures: Vec::new(),
            observations: None,
            stores: None,
            recorded_order: None,
            write_order: None,
            is_powered: true,
            is_flushing: false,
            error: None,
        }
    }

    /// Starts the program's first thread.
    pub fn start(&mut self, context: &mut Context<'_>) {
        if !self.threads.is_empty() {
            self.make_ready(0, 0, context);
        }
    }

    /// Whether every thread has come to its end and nothing is under way.
    pub fn is_finished(&self) -> bool {
        self.ended_threads == self.threads.len() && self.caches.is_idle()
    }

    /// No event is left and threads still wait: ends the wait for that at the end of a region, or one wait in recorded order; says whether there was
    /// one.
    pub fn unblock(&mut self, context: &mut Context<'_>) -> bool {
        if !self.is_powered {
            return false;
        }
        let cycle = self.cycle(context.now());
        if self.regions.settle() {
            self.resume_held(cycle, context);
            return true;
        }
        self.end_blocked_at_their_limits(cycle);
        if self.force_order(cycle, context) || self.force_write_order(cycle, context) {
            self.forced_waits += u64::from(!self.is_limited);
            return true;
        }
        let forced = self.synchronisation.force().map(|thread| thread.0 as usize);
        let Some(thread) = forced.or_else(|| self.next_unstarted()) else { return false };
        self.spins.give_up(thread);
        if let Some(order) = &mut self.recorded_order {
            order.forced(thread);
        }
        // Where threads stop at a position, others may wait for what comes behind it: that says nothing about the record.
        self.forced_waits += u64::from(!self.is_limited);
        self.make_ready(thread, cycle, context);
        true
    }

    /// Cores that wait at the boundary of a region go on at `cycle`.
    fn resume_held(&mut self, cycle: u64, context: &mut Context<'_>) {
        for core in 0..self.cores.len() {
            if std::mem::take(&mut self.core_states[core].is_held) {
                self.cores[core].resume_at(cycle);
                self.schedule_run(core, cycle, context);
            }
        }
    }

    /// The first thread that nobody has created yet.
    fn next_unstarted(&mut self) -> Option<usize> {
        let states = &self.thread_states[self.first_unstarted..];
        let next = states.iter().position(|state| *state == ThreadState::Unstarted);
        self.first_unstarted += next.unwrap_or(states.len());
        next.map(|_| self.first_unstarted)
    }

    /// `thread` has nothing more to do.
    fn end_thread(&mut self, thread: usize) {
        let state = std::mem::replace(&mut self.thread_states[thread], ThreadState::Ended);
        self.ended_threads += usize::from(state != ThreadState::Ended);
        self.waiting_frames.release(thread);
    }

    /// Threads that wait at the position at which they stop are done, at `cycle`.
    fn end_blocked_at_their_limits(&mut self, cycle: u64) {
        if !self.is_limited {
            return;
        }
        for index in 0..self.threads.len() {
            let (thread, state) = (&self.threads[index], self.thread_states[index]);
            if matches!(state, ThreadState::Blocked | ThreadState::Unstarted) && thread.instructions >= thread.limit {
                self.synchronisation.give_up(thread.id);
                self.end_thread(index);
                self.spins.give_up(index);
                self.note_wait_over(index, cycle);
            }
        }
    }

    /// Instructions of the record dispatched so far, warming included.
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// How many events it has handled, and what came of them: instructions, their micro-operations, answered requests.
    pub fn activity(&self) -> HostActivity {
        debug_assert_eq!(self.instructions, self.threads.iter().map(|thread| thread.instructions).sum::<u64>());
        let micro_ops: u64 = self.cores.iter().map(|core| core.stats.micro_ops).sum();
        let progress = self.instructions() + micro_ops + self.caches.counters().completed();
        HostActivity { progress, events: self.events, cores: self.cores.len() as u64 }
    }

    /// Where each thread is, in instructions.
    pub fn positions(&self) -> Vec<u64> {
        self.threads.iter().map(|thread| thread.instructions).collect()
    }

    /// The boundary of a region of interest that has just been crossed.
    pub fn take_region_boundary(&mut self) -> Option<RegionBoundary> {
        self.regions.take_boundary()
    }

    /// From now on regions of interest begin together with those of other hosts; to be called before the start.
    pub fn meet_others(&mut self) {
        self.regions.meet_others();
    }

    /// Whether it waits at the boundary of a region for other hosts or for what is under way.
    pub fn is_at_boundary(&self) -> bool {
        self.regions.is_waiting() || self.regions.is_settling()
    }

    /// Whether a region is to begin here with those of other hosts.
    pub fn waits_to_begin(&self) -> bool {
        self.is_powered && self.regions.is_waiting()
    }

    /// Nothing is under way any more anywhere: what comes after a region goes on, if this host waits for that; whether it does.
    pub fn leave_region(&mut self, context: &mut Context<'_>) -> bool {
        let has_settled = self.is_powered && !self.regions.is_waiting() && self.regions.settle();
        if has_settled {
            self.resume_held(self.cycle(context.now()), context);
        }
        has_settled
    }

    /// The regions of all hosts begin: that of this host, if it waits for that; whether it does.
    pub fn begin_region(&mut self, context: &mut Context<'_>) -> bool {
        let begins = self.waits_to_begin();
        if begins {
            self.regions.begin();
            self.resume_held(self.cycle(context.now()), context);
        }
        begins
    }

    /// All threads stop where they are when this host has come to so many instructions.
    pub fn limit_instructions(&mut self, limit: u64) {
        self.instructions_limit = Some(limit);
    }

    /// Every thread stops where it is.
    pub fn stop_here(&mut self) {
        self.is_limited = true;
        for thread in &mut self.threads {
            thread.limit = thread.limit.min(thread.instructions);
        }
    }

    /// When the last thread came to its end.
    pub fn finished_at(&self) -> Time {
        self.finished_at
    }

    /// Whether the limit of PM writes has been reached.
    pub fn has_reached_pm_writes_limit(&self) -> bool {
        self.has_reached_pm_writes
    }

    /// Waits that were ended because nothing else could go on.
    pub fn forced_waits(&self) -> u64 {
        self.forced_waits
    }

    /// Whether the record says what ended waits at words, where that is known.
    pub fn names_spin_waits(&self) -> bool {
        self.names_spin_waits
    }

    /// Instructions so far in rounds that only read the same addresses again, without being recognised as waiting.
    pub fn polling_instructions(&self) -> u64 {
        self.threads.iter().map(|thread| thread.polling).sum()
    }

    /// Waits at a word of which the record does not say which store ended them.
    pub fn unnamed_waits(&self) -> u64 {
        self.unnamed_waits
    }

    /// The memory of which the program touches more than the machine has.
    pub fn exhausted_memory(&self) -> Option<&str> {
        self.table.exhausted()
    }

    /// PM lines written while warming up, for the devices to take over.
    pub fn take_warm_writes(&mut self) -> Vec<(LineAddress, Version)> {
        for core in &mut self.cores {
            core.send_warm_combined(&mut self.caches);
        }
        self.caches.take_warm_writes()
    }

    /// The physical line of a virtual address of the program, if it has been touched.
    pub fn line_of(&self, address: u64) -> Option<LineAddress> {
        self.table.physical(address).map(LineAddress::containing)
    }

    /// Logs from now on what this host is promised about PM; [`Hierarchy::persist_log`] has the log.
    pub fn log_persists(&mut self) {
        self.caches.log_persists();
    }

    /// Takes down from now on which versions of PM lines loads observe and stores make.
    pub fn log_observations(&mut self) {
        let period = self.period;
        self.observations.get_or_insert_with(|| Box::new(ObservationLog::new(period)));
    }

    /// Takes down from now on which store makes which version of a PM line.
    pub fn log_stores(&mut self) {
        self.stores.get_or_insert_default();
    }

    /// Counts from now on which instructions persist and which fences wait for them; to be called before the start.
    pub fn log_persist_sites(&mut self) {
        let sites = PersistSites::new(self.cores.len(), self.period, self.store_queue_entries);
        self.caches.persist_sites = Some(Box::new(sites));
    }

    /// Whether time counts from now on for what is counted of these.
    pub fn count_persist_sites(&mut self, counts: bool) {
        if let Some(sites) = &mut self.caches.persist_sites {
            sites.count(counts);
        }
    }

    /// What has been counted of these, if it is.
    pub fn persist_sites(&self) -> Option<&PersistSites> {
        self.caches.persist_sites.as_deref()
    }

    /// What has been taken down of stores, if it is.
    pub fn stores(&self) -> Option<&StoreLog> {
        self.stores.as_deref()
    }

    /// Takes down from now on which lines of PM become dirty and which are written back, for [`Host::dirty_lines_changed`].
    pub fn log_dirty_lines(&mut self) {
        self.log_stores();
        self.caches.log_written_back();
    }

    /// Tells of each line of PM that a store made dirty since the last call, then of each that was written back, with the version.
    pub fn dirty_lines_changed(&mut self, mut change: impl FnMut(DirtyLineChange)) {
        for entry in self.stores.iter_mut().flat_map(|log| log.take()) {
            if let Performed::Store(version) = entry.performed {
                change(DirtyLineChange::Stored(entry.line, version));
            }
        }
        self.caches.take_written_back().for_each(|(line, version)| change(DirtyLineChange::WrittenBack(line, version)));
    }

    /// Everything is timed, whatever regions of interest the program has; to be called before the start.
    pub fn ignore_regions(&mut self) {
        self.regions = Regions::new(false);
    }

    /// What has been taken down, if it is.
    pub fn observations(&self) -> Option<&ObservationLog> {
        self.observations.as_deref()
    }

    /// Stops all cores, and begins to write back what the caches have of PM: phase 1 of a Global Persistent Flush.
    pub fn begin_global_flush(&mut self, context: &mut Context<'_>) {
        self.is_flushing = true;
        self.caches.begin_global_flush(self.cycle(context.now()));
        self.send_departures(context);
    }

    /// Writes nothing more back: the time for it is over.
    pub fn abandon_global_flush(&mut self) {
        self.caches.abandon_global_flush();
    }

    /// The caches of this host.
    pub fn caches(&self) -> &Hierarchy {
        &self.caches
    }

    fn cycle(&self, now: Time) -> u64 {
        self.clock.divide_up(now.as_ps())
    }

    fn time(&self, cycle: u64) -> Time {
        Time::ZERO + self.period * cycle
    }

    /// Runs a core until it can go no further at `now`, dealing with what its thread comes to.
    fn run_core(&mut self, core: usize, now: u64, context: &mut Context<'_>) {
        while self.error.is_none() {
            let Some(thread) = self.core_states[core].thread else { return };
            let horizon = now + self.run_ahead;
            self.cores[core].look_ahead(now, horizon);
            let pause = match self.core_states[core].deferred.take() {
                Some(pause) => {
                    let (cpu, mut env) = self.environment(core, thread);
                    cpu.settle(&mut env);
                    pause
                }
                None => match self.compute(core, thread, now, horizon) {
                    Ok(pause) => pause,
                    Err(error) => return self.error = Some(error),
                },
            };
            self.post_requests(core, context);
            self.notice_stores(core, thread, context);
            self.notice_awaited_writes(core, context);
            if let Some(cycle) = self.cores[core].held_store() {
                self.schedule_run(core, cycle, context);
            }
            if self.has_sample_boundary() && !matches!(pause, Pause::Waiting | Pause::Horizon) {
                // The simulation takes down what was counted up to here before the pause is dealt with.
                self.core_states[core].deferred = Some(pause);
                return self.schedule_run(core, now, context);
            }
            if self.regions.is_waiting() && !matches!(pause, Pause::Waiting | Pause::Horizon) {
                self.core_states[core].deferred = Some(pause);
                self.core_states[core].is_held = true;
                return;
            }
            match pause {
                Pause::Waiting => {
                    if self.core_states[core].is_preempting || !self.has_used_its_slice(core) {
                        return;
                    }
                    // A thread that always waits for memory never comes to the horizon.
                    self.core_states[core].is_preempting = true;
                }
                Pause::Horizon if self.core_states[core].is_preempting => self.preempt(core, thread, context),
                Pause::Horizon => {
                    self.core_states[core].is_preempting = self.has_used_its_slice(core);
                    if !self.core_states[core].is_preempting {
                        return self.schedule_run(core, self.cores[core].cycle(), context);
                    }
                }
                Pause::Event(cycle) | Pause::Marker { cycle, .. } | Pause::End(cycle) if cycle > now => {
                    self.core_states[core].deferred = Some(pause);
                    return self.schedule_run(core, cycle, context);
                }
                Pause::Event(_) => self.handle_event(core, thread, now, context),
                // A core that still drains at a boundary comes to its next one late, however early that would have been.
                Pause::Marker { code, cycle } => self.regions.marker(code, self.time(cycle.max(now))),
                Pause::End(_) => self.handle_end(core, thread, context),
            }
            if self.regions.has_boundary() {
                self.sample_crosses_region(now);
                // What was counted up to here is taken down before anything goes on. If a region begins, nobody has to wait for the end of the last.
                if !self.regions.is_settling() {
                    self.resume_held(now, context);
                }
                return self.schedule_run(core, now, context);
            }
        }
    }

    /// Lets a core compute for its thread. A core that is to be taken from its thread, or that goes over from detail to warming, first
    /// drains.
    fn compute(&mut self, core: usize, thread: usize, now: u64, horizon: u64) -> Result<Pause, RecordError> {
        let pause = self.compute_to_limit(core, thread, horizon);
        self.follow_plan(now);
        pause
    }

    fn compute_to_limit(&mut self, core: usize, thread: usize, horizon: u64) -> Result<Pause, RecordError> {
        let Some(limit) = self.instructions_limit else { return self.compute_unlimited(core, thread, horizon) };
        // It may use up what all are still allowed together, and no more; the others stop where they are then.
        let allowed = limit.saturating_sub(self.instructions());
        let own = &mut self.threads[thread];
        let own_limit = own.limit;
        own.limit = own_limit.min(own.instructions + allowed);
        let pause = self.compute_unlimited(core, thread, horizon);
        self.threads[thread].limit = own_limit;
        if self.instructions() >= limit {
            self.instructions_limit = None;
            self.stop_here();
        }
        pause
    }

    fn compute_unlimited(&mut self, core: usize, thread: usize, horizon: u64) -> Result<Pause, RecordError> {
        let before = self.threads[thread].instructions;
        let pause = self.compute_in_mode(core, thread, horizon);
        self.instructions += self.threads[thread].instructions - before;
        pause
    }

    /// In detail, or warming.
    fn compute_in_mode(&mut self, core: usize, thread: usize, horizon: u64) -> Result<Pause, RecordError> {
        let (is_preempting, is_warming) = (self.core_states[core].is_preempting, self.is_warming());
        let (cpu, mut env) = self.environment(core, thread);
        if !is_preempting && !is_warming {
            return cpu.run(&mut env);
        }
        if !cpu.drain(&mut env) {
            return Ok(Pause::Waiting);
        }
        if is_preempting {
            return Ok(Pause::Horizon);
        }
        if self.regions.is_settling() || self.regions.is_waiting() {
            self.core_states[core].is_held = true;
            return Ok(Pause::Waiting);
        }
        let horizon = horizon + self.functional_run_ahead();
        let way = self.way_to_interval();
        let sampled = way.map(|(pace, left)| SampledRegion {
            persist: &self.persist,
            pace,
            stop_at: self.threads[thread].instructions + left,
        });
        let mut env = WarmEnvironment {
            core,
            sampled,
            thread: &mut self.threads[thread],
            blocks: &self.blocks,
            caches: &mut self.caches,
            table: &mut self.table,
        };
        self.cores[core].warm(horizon, &mut env)
    }

    fn environment(&mut self, core: usize, thread: usize) -> (&mut Core, Environment<'_>) {
        if let Some(order) = &mut self.write_order {
            order.is_core_wanted = self.ready.iter().any(|&ready| scheduler::may_run(&self.pins, ready, core));
        }
        let env = Environment {
            thread: &mut self.threads[thread],
            blocks: &self.blocks,
            l1d: &mut self.caches.l1d[core],
            l1i: &mut self.caches.l1i[core],
            table: &mut self.table,
            persist: &self.persist,
            requests: &mut self.scratch,
            core,
            observations: self.observations.as_deref_mut(),
            stores: self.stores.as_deref_mut(),
            order: self.write_order.as_deref_mut(),
            sites: self.caches.persist_sites.as_deref_mut(),
        };
        (&mut self.cores[core], env)
    }

    /// Turns what a core asked for into wakes at the times it gets to the next level.
    fn post_requests(&mut self, core: usize, context: &mut Context<'_>) {
        let mut requests = std::mem::take(&mut self.scratch);
        for (cycle, request) in requests.drain(..) {
            let slot = match self.free_requests.pop() {
                Some(slot) => {
                    self.requests[slot as usize] = Some((core, request));
                    slot
                }
                None => {
                    self.requests.push(Some((core, request)));
                    self.requests.len() as u32 - 1
                }
            };
            let time = self.time(cycle).max(context.now());
            context.wake_at(time, Wake::Request { slot }.token());
        }
        self.scratch = requests;
    }

    /// A core's request gets to the shared levels.
    fn serve_request(&mut self, slot: u32, now: u64, context: &mut Context<'_>) {
        let (core, request) = self.requests[slot as usize].take().expect("each request is served once");
        self.free_requests.push(slot);
        match request {
            CoreRequest::Line { line, want, side, cause, issued } => {
                let request = Request { core, line, want, side, cause, issued };
                if let Outcome::Ready(ready, version) = self.caches.request(request, now) {
                    let served = [Served { request, ready, version }];
                    self.note_brought(&served);
                    self.deliver(&served, now, context);
                }
            }
            CoreRequest::Flush { line, flush, id, issued } => {
                if let Some(cycle) = self.caches.flush(Requester { core, id, issued }, line, flush, now) {
                    self.write_acknowledged(core, id, cycle);
                    self.run_core(core, now, context);
                }
            }
            CoreRequest::WriteAround { line, mask, id, issued } => {
                self.caches.write_around(Requester { core, id, issued }, line, mask, now);
            }
        }
    }

    /// Takes down what the caches have brought to cores, before any core goes on with it.
    fn note_brought(&mut self, served: &[Served]) {
        if let Some(log) = &mut self.observations {
            for Served { request, ready, version } in served.iter().filter(|served| served.request.side == Side::Data) {
                log.record(request.core, *ready, request.line, *version, Access::Brought);
            }
        }
    }

    /// Gives cores the lines they asked for.
    fn deliver(&mut self, served: &[Served], now: u64, context: &mut Context<'_>) {
        for served in served {
            let core = served.request.core;
            let Some(thread) = self.core_states[core].thread else {
                self.cores[core].prefetch_arrived(served);
                continue;
            };
            let horizon = now + self.run_ahead;
            let (cpu, mut env) = self.environment(core, thread);
            cpu.look_ahead(now, horizon);
            cpu.line_arrived(served, &mut env);
            self.run_core(core, now, context);
        }
    }

    fn handle_message(&mut self, message: &Message, now: u64, context: &mut Context<'_>) {
        match message.opcode {
            Opcode::MemData => {
                let mut served = std::mem::take(&mut self.served);
                self.caches.data_arrived(message, now, &mut served);
                context.complete_request(message, served.first().map(|served| self.time(served.ready)));
                self.note_brought(&served);
                self.deliver(&served, now, context);
                served.clear();
                self.served = served;
            }
            Opcode::Cmp => {
                let mut acknowledged = std::mem::take(&mut self.acknowledged);
                let mut served = std::mem::take(&mut self.served);
                self.caches.write_completed(message, now, &mut acknowledged, &mut served);
                context.complete_request(message, acknowledged.first().map(|first| self.time(first.cycle)));
                self.note_brought(&served);
                for acknowledged in acknowledged.drain(..) {
                    self.write_acknowledged(acknowledged.by.core, acknowledged.by.id, acknowledged.cycle);
                    self.run_core(acknowledged.by.core, now, context);
                }
                self.acknowledged = acknowledged;
                self.deliver(&served, now, context);
                served.clear();
                self.served = served;
            }
            other => unreachable!("a host is never sent {other:?}"),
        }
    }

    /// A core's flush or non-temporal store is complete at `cycle`.
    fn write_acknowledged(&mut self, core: usize, id: u32, cycle: u64) {
        self.cores[core].write_acknowledged(id, cycle);
        if let Some(sites) = &mut self.caches.persist_sites {
            sites.acknowledged(core, id, cycle);
        }
    }

    fn send_departures(&mut self, context: &mut Context<'_>) {
        if self.caches.has_departures() {
            let mut departures = std::mem::take(&mut self.departures);
            self.caches.take_departures(&mut departures);
            for mut departure in departures.drain(..) {
                if context.is_tracing() {
                    context.begin_request(self.caches.asker(&departure.message), &mut departure.message);
                }
                let time = self.time(departure.cycle).max(context.now());
                context.send(BRIDGE, departure.message, time);
            }
            self.departures = departures;
        }
        if self.pm_writes_limit.is_some_and(|limit| self.caches.counters().pm_writes >= limit) {
            self.pm_writes_limit = None;
            self.has_reached_pm_writes = true;
            self.stop_here();
        }
    }
}

impl Component for Host {
    fn handle(&mut self, event: Event, context: &mut Context<'_>) {
        if !self.is_powered {
            return;
        }
        self.events += 1;
        let now = self.cycle(context.now());
        if self.is_flushing {
            if let Event::Arrival { message, .. } = event
                && message.opcode == Opcode::Cmp
            {
                self.caches.write_flushed(&message, now);
                self.send_departures(context);
            }
            return;
        }
        match event {
            Event::Arrival { message, .. } => self.handle_message(&message, now, context),
            Event::Wake { token } => match Wake::from_token(token) {
                Wake::Run { core } => {
                    // One that was overtaken by an earlier run would ask for another of its kind for ever.
                    if self.core_states[core].scheduled == Some(now) {
                        self.core_states[core].scheduled = None;
                        self.run_core(core, now, context);
                    }
                }
                Wake::Request { slot } => self.serve_request(slot, now, context),
            },
            Event::Credit { .. } => unreachable!("the host bridge gives no credits to its host"),
        }
        self.send_departures(context);
    }

    fn power_fail(&mut self) {
        self.is_powered = false;
        self.is_flushing = false;
        self.caches.power_fail();
        for core in &mut self.cores {
            core.power_fail();
        }
        self.requests.clear();
        self.free_requests.clear();
    }

    fn is_idle(&self) -> bool {
        !self.is_powered || self.is_finished()
    }

    fn waiting(&self) -> Vec<String> {
        let mut lines = self.synchronisation.waiting();
        lines.extend(self.caches.waiting());
        for (core, state) in self.core_states.iter().enumerate() {
            if let Some(thread) = state.thread {
                lines.push(format!("core {core} runs thread {thread}: {}", self.cores[core].waiting_for()));
            }
        }
        lines
    }

    fn stats(&self, _now: Time) -> StatsNode {
        let mut nodes: Vec<_> =
            self.cores.iter().enumerate().map(|(core, cpu)| (format!("core{core}"), cpu.stats())).collect();
        nodes.extend(self.caches.stats());
        let (dram, pm) = self.table.frames_taken();
        nodes.push((
            "threads".into(),
            StatsNode::group([
                ("count", StatsNode::Level(self.threads.len() as u64)),
                ("forced_waits", StatsNode::Counter(self.forced_waits)),
                ("unnamed_waits", StatsNode::Counter(self.unnamed_waits)),
            ]),
        ));
        let by_node = self.table.nodes().map(|(node, pages)| (node.name.clone(), StatsNode::Level(pages)));
        let pages = [
            ("dram".to_owned(), StatsNode::Level(dram)),
            ("pm".to_owned(), StatsNode::Level(pm)),
            ("by_node".to_owned(), StatsNode::group(by_node)),
        ];
        nodes.push(("pages".into(), StatsNode::group(pages)));
        StatsNode::group(nodes)
    }
}
