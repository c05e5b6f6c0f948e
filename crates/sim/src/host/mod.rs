//! A host: its cores, their caches, and the threads of the process that runs on them.
//!
//! Cores and caches are one component because hits and coherence are resolved without events; what leaves the
//! last-level cache goes to the host bridge at port 0, and its answers come back there. What a core asks of the shared
//! levels becomes a wake of this component at the time it gets there, so that all cores' requests are served in the
//! order of simulated time.

#[cfg(test)]
pub(crate) mod bench;
mod between_sockets;
mod clock;
mod early_loads;
mod limits;
mod observers;
mod pacing;
mod process;
mod recorded_order;
mod regions;
mod run_loop;
pub mod sample_plan;
mod sampling;
mod scheduler;
mod socket;
#[cfg(test)]
mod tests;
mod thread_placement;
mod waiting_frames;

use std::sync::Arc;

use self::clock::CycleClock;
use self::limits::Limits;
use self::observers::Observers;
use self::pacing::Pacing;
use self::process::Process;
use self::run_loop::Wake;
use self::sampling::Sampler;
use self::scheduler::Scheduler;
use self::socket::{Buffers, Socket};
use crate::address_space::page_table::PageTable;
use crate::cache::config::CacheConfig;
use crate::cache::hierarchy::Hierarchy;
use crate::core::config::{BranchPredictorConfig, CoreConfig, SimulationConfig, TlbConfig};
use crate::core::persist::PersistPolicy;
use fencepost_isa::micro_op::DecodedBlock;
use fencepost_kernel::HostActivity;
use fencepost_kernel::line::{LineAddress, Version};
use fencepost_kernel::message::Opcode;
use fencepost_kernel::stats::StatsNode;
use fencepost_kernel::time::{Duration, Time};
use fencepost_kernel::{Component, Context, Event, PortId};
use fencepost_record::{Record, RecordError};

pub use self::between_sockets::{SeveralSockets, SocketPlan};
pub use self::observers::DirtyLineChange;
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
    /// Its sockets, if it has several.
    pub sockets: Option<SeveralSockets>,
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
    /// On which core each thread runs, thread after thread and then from the start again; empty if it runs where there
    /// is room.
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
    clock: CycleClock,
    /// How many cycles cores compute ahead.
    run_ahead: u64,
    process: Process,
    scheduler: Scheduler,
    socket: Socket,
    buffers: Buffers,
    limits: Limits,
    observers: Observers,
    /// Set if only a sample is replayed in detail.
    sampler: Option<Box<Sampler>>,
    /// What a transport does to its threads, if one runs.
    pacing: Option<Box<Pacing>>,
    power: Power,
    /// Events handled so far.
    events: u64,
    /// Why the record could not be read; the simulation ends with it.
    pub error: Option<RecordError>,
}

/// Whether a host runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Power {
    On,
    /// A Global Persistent Flush has begun: cores stand still.
    Flushing,
    Off,
}

impl Host {
    /// A host with cold caches, about to run `workload`.
    pub fn new(config: &HostConfig, workload: Workload) -> Host {
        let clock = CycleClock::new(config.core.clock_ghz);
        let limits = Limits {
            pm_writes: workload.pm_writes_limit,
            is_limited: !workload.limits.is_empty(),
            ..Limits::default()
        };
        Host {
            run_ahead: clock.cycles(config.simulation.run_ahead_ns).max(1),
            scheduler: Scheduler::new(&config.core, &clock, &workload),
            socket: Socket::new(config, clock.period),
            process: Process::new(workload),
            clock,
            buffers: Buffers::default(),
            limits,
            observers: Observers::default(),
            sampler: None,
            pacing: None,
            power: Power::On,
            events: 0,
            error: None,
        }
    }

    /// Starts the program's first thread.
    pub fn start(&mut self, context: &mut Context<'_>) {
        if !self.process.threads.is_empty() {
            self.make_ready(0, 0, context);
        }
    }

    /// Whether every thread has ended and nothing is under way.
    pub fn is_finished(&self) -> bool {
        let between_is_idle = || self.socket.between.as_ref().is_none_or(|between| between.is_idle());
        self.process.is_finished() && self.socket.caches.is_idle() && between_is_idle()
    }

    /// How many events it has handled, and the progress they made: instructions, their micro-operations, answered
    /// requests.
    pub fn activity(&self) -> HostActivity {
        debug_assert_eq!(
            self.process.instructions,
            self.process.threads.iter().map(|thread| thread.instructions).sum::<u64>()
        );
        let micro_ops: u64 = self.socket.cores.iter().map(|core| core.stats.micro_ops).sum();
        let progress = self.instructions() + micro_ops + self.socket.caches.completed();
        HostActivity { progress, events: self.events, cores: self.socket.cores.len() as u64 }
    }

    /// PM lines written during warming, which the devices have not got yet.
    pub fn take_warm_writes(&mut self) -> Vec<(LineAddress, Version)> {
        for core in &mut self.socket.cores {
            core.send_warm_combined(&mut self.socket.caches);
        }
        self.socket.caches.take_warm_writes()
    }

    /// Stops all cores and starts writing back the dirty PM lines of the caches: phase 1 of a Global Persistent Flush.
    pub fn begin_global_flush(&mut self, context: &mut Context<'_>) {
        self.power = Power::Flushing;
        let now = self.cycle(context.now());
        self.socket.caches.only_mut().begin_global_flush(now);
        self.send_departures(context);
    }

    /// Stops writing back: the time for it is over.
    pub fn abandon_global_flush(&mut self) {
        self.socket.caches.only_mut().abandon_global_flush();
    }

    /// The caches of this host, which has one socket.
    ///
    /// # Panics
    /// If it has several.
    pub fn caches(&self) -> &Hierarchy {
        self.socket.caches.only()
    }

    /// The newest version of a line, in any cache or on its way to memory.
    pub fn newest_version(&self, line: LineAddress) -> Version {
        self.socket.caches.newest_version(line)
    }

    /// How many sockets it has.
    pub fn sockets(&self) -> usize {
        self.socket.caches.sockets()
    }

    /// Writes to PM that left the caches, complete or not.
    pub fn pm_writes(&self) -> u64 {
        self.socket.caches.pm_writes()
    }

    fn is_powered(&self) -> bool {
        self.power != Power::Off
    }

    fn cycle(&self, now: Time) -> u64 {
        self.clock.cycle(now)
    }

    fn time(&self, cycle: u64) -> Time {
        self.clock.time(cycle)
    }
}

impl Component for Host {
    fn handle(&mut self, event: Event, context: &mut Context<'_>) {
        if self.power == Power::Off {
            return;
        }
        self.events += 1;
        let now = self.cycle(context.now());
        if self.power == Power::Flushing {
            if let Event::Arrival { message, .. } = event
                && message.opcode == Opcode::Cmp
            {
                self.socket.caches.only_mut().write_flushed(&message, now);
                self.send_departures(context);
            }
            return;
        }
        match event {
            Event::Arrival { port, message } if self.socket.between.is_some() => {
                self.arrived_between(port, message, context);
            }
            Event::Arrival { message, .. } => self.handle_message(&message, now, context),
            Event::Wake { token } => match Wake::from_token(token) {
                Wake::Run { core } => {
                    // A wake that an earlier one has overtaken would otherwise schedule another, for ever.
                    if self.socket.states[core].scheduled == Some(now) {
                        self.socket.states[core].scheduled = None;
                        self.run_core(core, now, context);
                    }
                }
                Wake::Request { slot } => self.serve_request(slot, now, context),
            },
            Event::Credit { port, class } => {
                let between = self.socket.between.as_mut().expect("the host bridge gives no credits to its host");
                between.credit_returned(port, class, context);
            }
        }
        self.send_departures(context);
    }

    fn power_fail(&mut self) {
        self.power = Power::Off;
        self.socket.power_fail();
    }

    fn is_idle(&self) -> bool {
        !self.is_powered() || self.is_finished()
    }

    fn waiting(&self) -> Vec<String> {
        let mut lines = self.process.synchronisation.waiting();
        lines.extend(self.socket.caches.waiting());
        lines.extend(self.socket.between.iter().flat_map(|between| between.waiting()));
        for (core, state) in self.socket.states.iter().enumerate() {
            if let Some(thread) = state.thread {
                lines.push(format!("core {core} runs thread {thread}: {}", self.socket.cores[core].waiting_for()));
            }
        }
        lines
    }

    fn stats(&self, now: Time) -> StatsNode {
        let mut nodes: Vec<_> =
            self.socket.cores.iter().enumerate().map(|(core, cpu)| (format!("core{core}"), cpu.stats())).collect();
        nodes.extend(self.socket.caches.stats());
        nodes.extend(self.socket.stats_by_socket(now));
        let (dram, pm) = self.process.table.frames_taken();
        nodes.push((
            "threads".into(),
            StatsNode::group([
                ("count", StatsNode::Level(self.process.threads.len() as u64)),
                ("forced_waits", StatsNode::Counter(self.process.forced_waits)),
            ]),
        ));
        let by_node = self.process.table.nodes().map(|(node, pages)| (node.name.clone(), StatsNode::Level(pages)));
        let pages = [
            ("dram".to_owned(), StatsNode::Level(dram)),
            ("pm".to_owned(), StatsNode::Level(pm)),
            ("by_node".to_owned(), StatsNode::group(by_node)),
        ];
        nodes.push(("pages".into(), StatsNode::group(pages)));
        StatsNode::group(nodes)
    }
}
