//! One replay from start to end: the run loop, power failure and recovery. Regions of interest, limits and the outcome
//! have files of their own.

mod limits;
mod observers;
mod outcome;
mod program;
mod progress;
mod regions;

use std::sync::atomic::Ordering;

use self::regions::RegionStart;
use crate::config::Machine;
use crate::config::topology::HostId;
use crate::core::persist::PersistMode;
use crate::error::SimulationError;
use crate::host::sample_plan::SamplePlan;
use crate::host::{Host, ThreadPlacement};
use crate::replay::livelock::{self, LivelockWatch};
use crate::replay::sampling::{Sampling, refuse_sampling};
use crate::switch::Scheme;
use crate::system::{Stepped, System};
use crate::timeline::Timeline;
use crate::transport::Transport;
use fencepost_kernel::line::{LineAddress, Version};
use fencepost_kernel::time::{Duration, Time};
use fencepost_kernel::trace::Trace;

pub use self::outcome::{Ended, Interval, Outcome};
pub use self::program::{HostProgram, Program};
pub use self::progress::Progress;

#[cfg(doc)]
use crate::config::topology::Topology;

/// What can be chosen for a replay besides machine, records and scheme.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is persisted beyond the program's own flushes.
    pub persist: PersistMode,
    /// Writes to PM out of the last-level caches of all hosts together after which all threads stop where they are.
    pub pm_writes_limit: Option<u64>,
    /// Instructions of all hosts together after which every thread stops at the end of the block that it is in; warming
    /// counts.
    pub instructions_limit: Option<u64>,
    /// On which cores threads run.
    pub threads: ThreadPlacement,
    /// Which start times threads get; with 0 none starts late.
    pub seed: u64,
    /// Which parts are replayed in detail; all if there is none.
    pub sample: Option<SamplePlan>,
    /// Who sees to it that threads share the fabric fairly.
    pub transport: Transport,
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

/// What has not learnt yet that a host may have several sockets is refused.
fn refuse_several_sockets(sockets: u16, asked: &str) -> Result<(), SimulationError> {
    if sockets < 2 {
        return Ok(());
    }
    Err(SimulationError::Impossible(format!(
        "{asked}: that is possible only where each host has one socket, and here it has {sockets}"
    )))
}

impl Simulation {
    /// Whether each host has one socket, which `asked` (an option, or what it does) needs.
    ///
    /// # Errors
    /// If they have several.
    pub fn needs_one_socket(&self, asked: &str) -> Result<(), SimulationError> {
        let sockets = self.system.hosts().map(Host::sockets).max().unwrap_or(1);
        refuse_several_sockets(sockets as u16, asked)
    }

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
            refuse_several_sockets(machine.sockets(), "--sample")?;
        }
        let workloads =
            programs.iter().zip(0..).map(|(program, host)| program::workload(machine, program, HostId(host), &options));
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
        if !options.transport.paces_programs() {
            let message = format!(
                "transport {}: that delays single requests, which only synthetic traffic can be",
                options.transport
            );
            return Err(SimulationError::Impossible(message));
        }
        if options.transport.has_agent() && options.sample.is_some() {
            let message =
                format!("--sample: not under transport {}, whose windows go on between intervals", options.transport);
            return Err(SimulationError::Impossible(message));
        }
        system.begin_transport_of_programs(options.transport, machine);
        system.start();
        let region_start = (!has_regions).then(|| RegionStart::noticed_now(&mut system, Time::ZERO));
        Ok(Simulation {
            livelock: LivelockWatch::new(&system),
            shared_pm_writes_limit: options.pm_writes_limit.filter(|_| hosts > 1),
            shared_instructions_limit: options.instructions_limit.filter(|_| hosts > 1),
            has_reached_shared_pm_writes: false,
            sampling: options.sample.map(|plan| Box::new(Sampling::new(plan))),
            system,
            region_start,
            host_ends: vec![None; hosts],
            intervals: Vec::new(),
            has_regions,
            hosts_meet,
            options,
        })
    }

    /// Replays to the end.
    ///
    /// # Errors
    /// If the record cannot be read, someone cancels, or nothing can go on.
    pub fn run(mut self, progress: &Progress) -> Result<Outcome, SimulationError> {
        self.run_to_end(progress)
    }

    /// The same; logs remain readable afterwards.
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

    /// Starts tracing single requests. That changes nothing in the simulation.
    pub fn trace(&mut self, trace: Trace) {
        self.system.trace(trace);
    }

    /// Replays until `trace` has what it selects, or to the end; returns the trace with the components it names.
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
                    let timeline = Timeline::new(trace, self.system.names(), self.system.wires());
                    return Ok(timeline.with_sockets(self.system.socket_plans()));
                }
            }
        }
    }

    /// Handles the next event; if there is none and the program has not ended, ends one wait. Says whether there was
    /// anything to do.
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

    /// Handles all events up to `time`; says whether any are left.
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

    /// Lets the fabric recover until nothing is under way.
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

    /// No event is left. What a persist buffer keeps, or a write queue, is no deadlock; what is under way there and
    /// cannot go on is.
    fn check_rest(&self) -> Result<(), SimulationError> {
        if self.system.is_finished() && self.system.is_idle() { Ok(()) } else { Err(self.deadlock()) }
    }

    /// The total length of intervals.
    pub fn total(intervals: &[Interval]) -> Duration {
        intervals.iter().map(|interval| interval.end.since(interval.start)).sum()
    }
}
