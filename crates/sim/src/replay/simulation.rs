//! One replay from start to end: the run loop, regions of interest, limits, power failure and recovery.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::address_space::{PageTable, Placement};
use crate::config::Machine;
use crate::config::topology::HostId;
use crate::core::persist::PersistMode;
use crate::core::split::split;
use crate::error::SimulationError;
use crate::host::sample_plan::SamplePlan;
use crate::host::{Host, RegionBoundary, ThreadPlacement, Workload};
use crate::isa::InstructionSet;
use crate::isa::micro_op::{DecodedBlock, MicroOp, WarmBlock};
use crate::kernel::trace::Trace;
use crate::line::{LineAddress, Version};
use crate::record::{AddressRanges, Problem, Record, RecordError};
use crate::replay::livelock::{self, LivelockWatch};
use crate::replay::sampling::{Sample, Sampling, refuse_sampling};
use crate::stats::StatsNode;
use crate::switch::Scheme;
use crate::system::{LinkEnd, Stepped, System, persist_policy};
use crate::time::{Duration, Time};
use crate::timeline::Timeline;

#[cfg(doc)]
use crate::config::topology::Topology;

/// What can be chosen for a replay besides machine, records and scheme.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is persisted beyond the program's own flushes.
    pub persist: PersistMode,
    /// Writes to PM out of the last-level caches of all hosts together after which all threads stop where they are.
    pub pm_writes_limit: Option<u64>,
    /// Instructions of all hosts together after which every thread stops at the end of the block that it is in; warming counts.
    pub instructions_limit: Option<u64>,
    /// On which cores threads run.
    pub threads: ThreadPlacement,
    /// Which start times threads get; with 0 none starts late.
    pub seed: u64,
    /// Which parts are replayed in detail; all if there is none.
    pub sample: Option<SamplePlan>,
}

/// A program ready to be replayed: its record and its decoded code, shared by all its replays.
#[derive(Clone)]
pub struct Program {
    record: Record,
    instruction_set: InstructionSet,
    blocks: Arc<[DecodedBlock]>,
}

impl Program {
    /// Decodes the code of `record`; refuses one of an instruction set that cannot be decoded.
    pub fn new(record: Record) -> Result<Program, RecordError> {
        let found = &record.info().isa;
        let Some(instruction_set) = InstructionSet::from_name(found) else {
            let problem = Problem::OtherInstructionSet { found: found.clone(), replayable: InstructionSet::NAMES };
            return Err(RecordError { record: record.source().name().to_owned(), frame: None, problem });
        };
        let blocks = instruction_set.decode(record.program()).into();
        Ok(Program { record, instruction_set, blocks })
    }

    /// Its instruction set, which names its flushes and fences.
    pub fn instruction_set(&self) -> InstructionSet {
        self.instruction_set
    }

    /// Its record.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Its decoded blocks, by id; that of 0 is empty.
    pub fn blocks(&self) -> &[DecodedBlock] {
        &self.blocks
    }

    /// The address of the instruction that micro-operation number `micro_op` of a block belongs to.
    pub fn instruction_of(&self, block: u32, micro_op: u32) -> Option<u64> {
        let before = self.blocks.get(block as usize)?.micro_ops.get(..micro_op as usize)?;
        let ended = before.iter().filter(|micro_op| micro_op.ends_instruction).count();
        self.record.program().block(block).instructions().nth(ended).map(|(address, _)| address)
    }

    /// The same program without the flushes at these addresses of its code: what its run would take without them.
    #[must_use]
    pub fn without_flushes(&self, addresses: &BTreeSet<u64>) -> Program {
        let mut blocks = self.blocks.to_vec();
        for (id, decoded) in blocks.iter_mut().enumerate().skip(1) {
            let mut instructions = self.record.program().block(id as u32).instructions();
            let mut address = instructions.next().map(|(address, _)| address);
            for micro_op in &mut decoded.micro_ops {
                let is_dropped = micro_op.operation.is_flush() && address.is_some_and(|at| addresses.contains(&at));
                let ends_instruction = micro_op.ends_instruction;
                if is_dropped {
                    *micro_op = MicroOp { ends_instruction, ..MicroOp::default() };
                }
                if ends_instruction {
                    address = instructions.next().map(|(address, _)| address);
                }
            }
            decoded.warm = WarmBlock::of(&decoded.micro_ops);
        }
        Program { blocks: blocks.into(), ..self.clone() }
    }
}

/// What one host replays.
#[derive(Clone)]
pub struct HostProgram {
    /// The program.
    pub program: Program,
    /// Where its memory lies.
    pub placement: Placement,
    /// Instructions after which each of its threads stops; empty if none does.
    pub thread_limits: Vec<u64>,
}

/// How far a replay is; read from other threads while it runs.
#[derive(Debug, Default)]
pub struct Progress {
    simulated_ps: AtomicU64,
    instructions: AtomicU64,
    is_cancelled: AtomicBool,
}

impl Progress {
    /// Simulated picoseconds so far.
    pub fn simulated_ps(&self) -> u64 {
        self.simulated_ps.load(Ordering::Relaxed)
    }

    /// Instructions replayed so far, warming included.
    pub fn instructions(&self) -> u64 {
        self.instructions.load(Ordering::Relaxed)
    }

    /// Makes the replay end soon, with [`SimulationError::Cancelled`].
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }
}

/// How a replay ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// At the end of the record.
    Complete,
    /// At the limit of PM writes.
    LimitPmWrites,
    /// At the limit of instructions.
    LimitInstructions,
}

/// What was counted between two instants.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Its beginning.
    pub start: Time,
    /// Its end: the last of `host_ends`.
    pub end: Time,
    /// When each host came to the end of its region, or of its program; the beginning for a host that was at its end before.
    pub host_ends: Vec<Time>,
    /// Over how long it was counted: from the event that began it to the event that ended it, and at the end of a replay until what was under way
    /// has come to rest.
    pub counted: Duration,
    /// What was counted in it.
    pub stats: StatsNode,
    /// How long its replay took, in seconds of the machine that replays.
    pub host_seconds: f64,
}

/// What a replay gives.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How it ended.
    pub ended: Ended,
    /// The regions of interest; one interval of everything if the program has none.
    pub intervals: Vec<Interval>,
    /// Whether the intervals are regions that the program marks.
    pub has_regions: bool,
    /// Instructions replayed, warming included.
    pub instructions: u64,
    /// Instructions of each thread at the end, host by host.
    pub positions: Vec<Vec<u64>>,
    /// The names of the hosts.
    pub hosts: Vec<String>,
    /// What was counted in the whole replay.
    pub stats: StatsNode,
    /// The ends of links, in the order of the machine file.
    pub links: Vec<LinkEnd>,
    /// What was measured if only a sample was replayed in detail.
    pub sample: Option<Sample>,
    /// Waits of all hosts that were ended because nothing else could go on.
    pub forced_waits: u64,
    /// Why the figures are not those of the program that was recorded; empty if they are.
    pub unreliable_because: Vec<String>,
    /// Instructions in rounds that only read the same addresses again, without being recognised as waiting.
    pub polling_instructions: u64,
    /// What else a reader of the figures has to know.
    pub warnings: Vec<String>,
}

/// Where a region begins.
#[derive(Clone, Debug)]
struct RegionStart {
    /// When the first core began it.
    time: Time,
    /// When it was noticed.
    noticed: Time,
    /// Everything counted until then.
    stats: StatsNode,
    /// When that was on the machine that replays.
    clock: Instant,
}

impl RegionStart {
    /// The region began at `time`, which is noticed now.
    fn noticed_now(system: &mut System, time: Time) -> RegionStart {
        system.begin_series();
        RegionStart { time, noticed: system.now(), stats: system.stats(), clock: Instant::now() }
    }
}

/// One replay. A clone is a snapshot: it goes on from the same instant in the same way.
#[derive(Clone)]
pub struct Simulation {
    system: System,
    livelock: LivelockWatch,
    options: Options,
    region_start: Option<RegionStart>,
    /// When each host's part of the present region ended.
    host_ends: Vec<Option<Time>>,
    intervals: Vec<Interval>,
    has_regions: bool,
    /// Whether several hosts time their regions together.
    hosts_meet: bool,
    /// The writes to PM by several hosts together that are the limit, as long as it is not reached.
    shared_pm_writes_limit: Option<u64>,
    has_reached_shared_pm_writes: bool,
    /// The instructions of several hosts together that are the limit, as long as it is not reached.
    shared_instructions_limit: Option<u64>,
    /// Set if only a sample is replayed in detail.
    sampling: Option<Box<Sampling>>,
}

impl Simulation {
    /// A replay on `machine` under `scheme`, about to start: one program for each host, in the order of hosts.
    ///
    /// Each process has frames of its own in PM, see [`Topology::frames_of`]: no two hosts ever write the same line.
    ///
    /// # Errors
    /// If the machine cannot run the scheme, or there is not one program for each host.
    pub fn new(
        machine: &Machine,
        scheme: Scheme,
        programs: &[HostProgram],
        options: Options,
    ) -> Result<Simulation, SimulationError> {
        let hosts = machine.topology().hosts.len();
        if hosts != programs.len() {
            let message = format!("each of {hosts} hosts needs a program, and there are {}", programs.len());
            return Err(SimulationError::Impossible(message));
        }
        if let Some(plan) = options.sample {
            refuse_sampling(plan, hosts, programs, &options).map_err(SimulationError::Impossible)?;
        }
        let workloads =
            programs.iter().zip(0..).map(|(program, host)| workload(machine, program, HostId(host), &options));
        let workloads = workloads.collect::<Result<_, _>>()?;
        let mut system = System::new(machine, scheme, workloads).map_err(SimulationError::Impossible)?;
        let has_regions = system.hosts().any(Host::is_warming);
        let hosts_meet = has_regions && hosts > 1;
        if hosts_meet {
            system.hosts_mut().for_each(Host::meet_others);
        }
        if let Some(limit) = options.instructions_limit {
            system.hosts_mut().for_each(|host| host.limit_instructions(limit));
        }
        if let Some(plan) = options.sample {
            system.hosts_mut().for_each(|host| host.sample(plan));
        }
        system.start();
        let region_start = (!has_regions).then(|| RegionStart::noticed_now(&mut system, Time::ZERO));
        Ok(Simulation {
            livelock: LivelockWatch::new(&system),
            shared_pm_writes_limit: options.pm_writes_limit.filter(|_| hosts > 1),
            shared_instructions_limit: options.instructions_limit.filter(|_| hosts > 1),
            has_reached_shared_pm_writes: false,
            sampling: options.sample.map(|plan| Box::new(Sampling::new(plan))),
            system,
            options,
            region_start,
            host_ends: vec![None; hosts],
            intervals: Vec::new(),
            has_regions,
            hosts_meet,
        })
    }

    /// Replays to the end.
    ///
    /// # Errors
    /// If the record cannot be read, someone cancels, or nothing can go on.
    pub fn run(mut self, progress: &Progress) -> Result<Outcome, SimulationError> {
        self.run_to_end(progress)
    }

    /// The same, and what was logged can be looked at afterwards.
    ///
    /// # Errors
    /// As [`Simulation::run`].
    pub fn run_to_end(&mut self, progress: &Progress) -> Result<Outcome, SimulationError> {
        loop {
            self.look(progress)?;
            for _ in 0..self.livelock.events_per_look() {
                if !self.step() {
                    self.look(progress)?;
                    return self.finish();
                }
            }
        }
    }

    /// Follows single requests from now on. That changes nothing of what happens.
    pub fn trace(&mut self, trace: Trace) {
        self.system.trace(trace);
    }

    /// Replays until what `trace` selects has been taken down, or to the end; gives the trace and the components it names.
    ///
    /// # Errors
    /// As [`Simulation::run`].
    pub fn run_traced(mut self, trace: Trace, progress: &Progress) -> Result<Timeline, SimulationError> {
        self.trace(trace);
        loop {
            self.look(progress)?;
            for _ in 0..self.livelock.events_per_look() {
                let region = self.region_start.is_some().then_some(self.intervals.len() as u32);
                let now = self.system.now();
                let trace = self.system.trace_mut().expect("it has just been given");
                trace.in_region(region);
                let is_over = trace.is_over(now);
                let is_at_end = !is_over && !self.step();
                if is_at_end {
                    self.look(progress)?;
                    self.check_rest()?;
                }
                if is_over || is_at_end {
                    let trace = self.system.take_trace().expect("it is there");
                    return Ok(Timeline::new(trace, self.system.names(), self.system.wires()));
                }
            }
        }
    }

    /// Handles the next event; if there is none and the program is not at its end, ends one wait. Whether there was anything to do.
    #[inline]
    pub fn step(&mut self) -> bool {
        match self.system.step() {
            Stepped::InFabric => return true,
            Stepped::InHost => {
                self.cross_boundaries();
                if self.sampling.is_some() {
                    self.follow_sample();
                }
                if self.shared_pm_writes_limit.is_some() {
                    self.look_at_shared_limit();
                }
                if let Some(limit) = self.shared_instructions_limit {
                    self.share_instructions(limit);
                }
                return true;
            }
            Stepped::Nowhere => {}
        }
        !self.system.is_finished() && if self.hosts_meet { self.meet() } else { self.system.unblock() }
    }

    /// Nothing is under way, and hosts that time their regions together are not at their end. One that waits at no boundary lacks a wake. If there is
    /// none, a region is over; hosts that have left it go on until all have come to the next one, which then begins. Whether there was anything to do.
    fn meet(&mut self) -> bool {
        if self.system.unblock_within_regions() {
            return true;
        }
        self.close_region();
        if self.system.leave_regions() {
            return true;
        }
        if !self.system.hosts().any(Host::waits_to_begin) {
            return false;
        }
        self.system.absorb_warm_writes();
        self.begin_region(self.system.now());
        self.system.begin_regions()
    }

    /// Handles all events up to `time`; whether any are left.
    ///
    /// # Errors
    /// If the record cannot be read, or nothing comes of the events.
    pub fn run_until(&mut self, time: Time) -> Result<bool, SimulationError> {
        loop {
            self.livelock.look(&self.system)?;
            for _ in 0..self.livelock.events_per_look() {
                if self.system.next_time().is_some_and(|next| next > time) {
                    return Ok(true);
                }
                if !self.step() {
                    return self.check_error().map(|()| false);
                }
            }
        }
    }

    /// Cuts the power now.
    pub fn power_fail(&mut self) {
        self.system.power_fail();
    }

    /// Lets the fabric recover, until nothing is under way any more.
    ///
    /// # Errors
    /// If recovery does not come to an end.
    pub fn recover(&mut self) -> Result<(), SimulationError> {
        self.start_recovery();
        let mut watch = LivelockWatch::new(&self.system);
        livelock::run_until(&mut self.system, &mut watch, Time::NEVER)?;
        if self.system.is_idle() {
            return Ok(());
        }
        Err(self.deadlock())
    }

    /// Power is back. What recovery takes is still to be handled, by [`Simulation::step`], and may be cut again.
    pub fn start_recovery(&mut self) {
        self.system.recover();
    }

    /// Logs from now on what the hosts are promised about PM.
    pub fn log_persists(&mut self) {
        self.system.hosts_mut().for_each(Host::log_persists);
    }

    /// Takes down from now on which versions of PM lines loads observe and stores make; [`Host::observations`] has them.
    pub fn log_observations(&mut self) {
        self.system.hosts_mut().for_each(Host::log_observations);
    }

    /// Takes down from now on which store makes which version of a PM line; [`Host::stores`] has them.
    pub fn log_stores(&mut self) {
        self.system.hosts_mut().for_each(Host::log_stores);
    }

    /// Counts from now on which instructions persist and which fences wait for them, over the time that counts; [`Host::persist_sites`] has it. To be
    /// called before the first step.
    pub fn log_persist_sites(&mut self) {
        let counts = self.region_start.is_some();
        for host in self.system.hosts_mut() {
            host.log_persist_sites();
            host.count_persist_sites(counts);
        }
    }

    /// Everything is timed, whatever regions of interest the programs have; to be called before the first step.
    pub fn ignore_regions(&mut self) {
        self.system.hosts_mut().for_each(Host::ignore_regions);
        self.has_regions = false;
        self.hosts_meet = false;
        self.region_start = Some(RegionStart::noticed_now(&mut self.system, Time::ZERO));
    }

    /// Synchronisation happens in the order in which it was recorded; to be called before the first step, with the program of each host.
    ///
    /// # Errors
    /// If a record cannot be read.
    pub fn keep_recorded_order(&mut self, programs: &[HostProgram]) -> Result<(), RecordError> {
        for (host, HostProgram { program, .. }) in self.system.hosts_mut().zip(programs) {
            host.keep_recorded_order(&program.record)?;
        }
        Ok(())
    }

    /// The version of a PM line that the persistent domain holds.
    pub fn durable_version(&self, line: LineAddress) -> Version {
        self.system.durable_version(line)
    }

    /// The components, for what happens to all of them at once.
    pub(crate) fn system_mut(&mut self) -> &mut System {
        &mut self.system
    }

    /// The components.
    pub fn system(&self) -> &System {
        &self.system
    }

    /// A region of interest may have begun or ended with the last event.
    #[inline]
    fn cross_boundaries(&mut self) {
        if !self.has_regions {
            return;
        }
        let Some((host, boundary)) = self.system.take_region_boundary() else { return };
        self.cross(host, &boundary);
    }

    /// A host has crossed a boundary of a region.
    #[cold]
    fn cross(&mut self, host: usize, boundary: &RegionBoundary) {
        if boundary.begins {
            // Between intervals what was written is still gathered; it is taken over when the next begins.
            if self.sampling.is_none() {
                self.system.absorb_warm_writes();
            }
            self.begin_region(boundary.time);
        } else {
            self.host_ends[host] = Some(boundary.time);
            if !self.hosts_meet {
                self.close_region();
            }
        }
    }

    /// The last event may have brought the host to a position of the plan.
    fn follow_sample(&mut self) {
        let Some(boundary) = self.system.hosts_mut().find_map(Host::take_sample_boundary) else { return };
        let sampling = self.sampling.as_deref_mut().expect("a host follows a plan only if there is one");
        if boundary.ends_measuring || boundary.abandons {
            sampling.end(&boundary, &self.system, self.intervals.len());
        }
        if boundary.begins_detail {
            self.system.absorb_sampled_writes();
        }
        if boundary.begins_measuring {
            sampling.begin(&boundary, &self.system);
        }
    }

    /// A region began at `time`, which is noticed now.
    fn begin_region(&mut self, time: Time) {
        self.region_start = Some(RegionStart::noticed_now(&mut self.system, time));
        self.system.hosts_mut().for_each(|host| host.count_persist_sites(true));
    }

    /// The present region is over, if there is one.
    fn close_region(&mut self) {
        let hosts = self.host_ends.len();
        let ends = std::mem::replace(&mut self.host_ends, vec![None; hosts]);
        if let Some(start) = self.region_start.take() {
            let host_seconds = start.clock.elapsed().as_secs_f64();
            let stats = self.system.stats().since(&start.stats);
            let counted = self.system.now().since(start.noticed);
            let hosts = self.system.hosts().zip(ends);
            let host_ends: Vec<Time> =
                hosts.map(|(host, end)| end.unwrap_or_else(|| host.finished_at()).max(start.time)).collect();
            let end = host_ends.iter().copied().max().unwrap_or(start.time);
            self.intervals.push(Interval { start: start.time, end, host_ends, counted, stats, host_seconds });
            self.system.hosts_mut().for_each(|host| host.count_persist_sites(false));
        }
    }

    fn look_at_shared_limit(&mut self) {
        let writes: u64 = self.system.hosts().map(|host| host.caches().counters().pm_writes).sum();
        if self.shared_pm_writes_limit.is_some_and(|limit| writes >= limit) {
            self.shared_pm_writes_limit = None;
            self.has_reached_shared_pm_writes = true;
            self.system.hosts_mut().for_each(Host::stop_here);
        }
    }

    /// Each event lets one host go on. It may use up what all are still allowed together.
    fn share_instructions(&mut self, limit: u64) {
        let instructions = self.instructions();
        if instructions >= limit {
            self.shared_instructions_limit = None;
            self.system.hosts_mut().for_each(Host::stop_here);
        } else {
            self.system
                .hosts_mut()
                .for_each(|host| host.limit_instructions(host.instructions() + limit - instructions));
        }
    }

    pub(crate) fn look(&mut self, progress: &Progress) -> Result<(), SimulationError> {
        self.check_error()?;
        let instructions = self.instructions();
        progress.simulated_ps.store(self.system.now().as_ps(), Ordering::Relaxed);
        progress.instructions.store(instructions, Ordering::Relaxed);
        if progress.is_cancelled.load(Ordering::Relaxed) {
            return Err(SimulationError::Cancelled);
        }
        self.livelock.look(&self.system)
    }

    fn check_error(&mut self) -> Result<(), SimulationError> {
        if let Some(memory) = self.system.hosts().find_map(Host::exhausted_memory) {
            let key = if memory == "PM" { "pm" } else { "dram" };
            let message = format!("the program touches more {memory} than the machine has (see {key}.capacity_mib)");
            return Err(SimulationError::Impossible(message));
        }
        match self.system.hosts_mut().find_map(|host| host.error.take()) {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }

    fn instructions(&self) -> u64 {
        self.system.hosts().map(Host::instructions).sum()
    }

    fn deadlock(&self) -> SimulationError {
        SimulationError::Deadlock { time: self.system.now(), waiting: self.system.waiting() }
    }

    /// No event is left. What a persist buffer keeps, or a write queue, is no deadlock; what is under way there and cannot go on is.
    fn check_rest(&self) -> Result<(), SimulationError> {
        if self.system.is_finished() && self.system.is_idle() { Ok(()) } else { Err(self.deadlock()) }
    }

    pub(crate) fn finish(&mut self) -> Result<Outcome, SimulationError> {
        self.check_rest()?;
        self.close_region();
        let wait_share = self.system.hosts().find_map(Host::sampled_wait_share).unwrap_or_default();
        let sample = self.sampling.take().map(|sampling| sampling.finish(wait_share)).transpose()?;
        let stats = self.system.stats();
        let ended = if self.has_reached_shared_pm_writes || self.system.hosts().any(Host::has_reached_pm_writes_limit) {
            Ended::LimitPmWrites
        } else if self.options.instructions_limit.is_some_and(|limit| self.instructions() >= limit) {
            Ended::LimitInstructions
        } else {
            Ended::Complete
        };
        let forced_waits = self.system.hosts().map(Host::forced_waits).sum();
        let warnings = self.warnings();
        Ok(Outcome {
            ended,
            intervals: std::mem::take(&mut self.intervals),
            has_regions: self.has_regions,
            instructions: self.instructions(),
            positions: self.system.hosts().map(Host::positions).collect(),
            hosts: self.system.host_names().map(str::to_owned).collect(),
            links: self.system.links().to_vec(),
            sample,
            forced_waits,
            polling_instructions: self.system.hosts().map(Host::polling_instructions).sum(),
            unreliable_because: unreliable_because(forced_waits, self.unnamed_waits(false)),
            warnings,
            stats,
        })
    }

    /// Waits at words of which nothing says what ended them, in records of versions that say so, or of those that do not.
    fn unnamed_waits(&self, in_versions_that_name_them: bool) -> u64 {
        let hosts = self.system.hosts().filter(|host| host.names_spin_waits() == in_versions_that_name_them);
        hosts.map(Host::unnamed_waits).sum()
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.has_regions && self.intervals.is_empty() {
            warnings.push("the program marks regions of interest, but came to none: nothing was timed".into());
        }
        let unnamed = self.unnamed_waits(true);
        if unnamed > 0 {
            warnings.push(format!(
                "{} at a polled word for a store that the recorder did not see: {} with the next store there, which may be another one",
                waits(unnamed),
                if unnamed == 1 { "it ends" } else { "they end" }
            ));
        }
        warnings
    }

    /// The total length of intervals.
    pub fn total(intervals: &[Interval]) -> Duration {
        intervals.iter().map(|interval| interval.end.since(interval.start)).sum()
    }
}

/// Why a replay with so many forced waits, and so many that end when they may not have ended, is not of the program that was recorded; empty if it is.
fn unreliable_because(forced_waits: u64, unnamed_waits: u64) -> Vec<String> {
    let mut reasons = Vec::new();
    if forced_waits > 0 {
        reasons.push(format!(
            "{} ended because nothing else could go on: wake-ups are missing from the record, or come in another order",
            waits(forced_waits)
        ));
    }
    if unnamed_waits > 0 {
        reasons.push(format!(
            "{} for a store that the record does not name: records of its format version do not, so record the program again",
            waits(unnamed_waits)
        ));
    }
    reasons
}

fn waits(count: u64) -> String {
    if count == 1 { "1 wait was".to_owned() } else { format!("{count} waits were") }
}

/// What `host` runs, with the frames of PM that are its own.
fn workload(
    machine: &Machine,
    program: &HostProgram,
    host: HostId,
    options: &Options,
) -> Result<Workload, RecordError> {
    let HostProgram { program, placement, thread_limits } = program;
    let bytes =
        |ranges: &AddressRanges| ranges.as_slice().iter().map(|range| range.start..range.end).collect::<Vec<_>>();
    let mapped = program.record.memory_map()?.mappings().iter().map(|mapping| mapping.range);
    let mapped = bytes(&AddressRanges::union(mapped));
    let table = PageTable::new(placement, &mapped, machine.nodes_of(host))
        .with_vdso(bytes(&program.record.memory_map()?.vdso()));
    let is_alone = machine.topology().hosts.len() == 1;
    // Hosts with equal records are not to start alike.
    let seed = if options.seed == 0 { 0 } else { options.seed.wrapping_add(u64::from(host.0) << 48) };
    Ok(Workload {
        record: program.record.clone(),
        blocks: split(&program.blocks, &machine.core),
        table,
        persist: persist_policy(machine, options.persist),
        pins: options.threads.pins(usize::from(machine.core.count)),
        limits: thread_limits.clone(),
        pm_writes_limit: options.pm_writes_limit.filter(|_| is_alone),
        seed,
    })
}
