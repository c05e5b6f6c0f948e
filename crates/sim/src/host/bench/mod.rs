//! One host between a program written by hand and a memory that answers when it is told to.
//!
//! The caches hold all of the program's code from the start, and translation costs nothing unless a test asks for it,
//! so that what a test counts in cycles is what it is about. Where the numbers come from: an instruction dispatches in
//! the cycle its core is at (0 at the start), its operands are there one cycle later, it commits one cycle after its
//! result, and a thread ends when everything it did has taken effect.

pub mod assembler;
mod memory;
mod script;

pub use self::memory::{Memory, Sent};
pub use self::script::{CODE, DRAM, PM, Script};

use super::{Host, HostConfig, RegionBoundary, SeveralSockets, Workload};
use crate::address_space::page_table::PageTable;
use crate::cache::array::{Line, State};
use crate::cache::hierarchy::{Hierarchy, Request, Side, Want};
use crate::config::{Machine, SourceText};
use crate::core::persist::{PersistMode, PersistPolicy};
use crate::core::split::split;
use crate::core::stats::CoreStats;
use crate::host::sample_plan::SamplePlan;
use crate::system::persist_policy;
use fencepost_isa::InstructionSet;
use fencepost_isa::micro_op::DecodedBlock;
use fencepost_kernel::address_map::{PM_BASE, is_pm};
use fencepost_kernel::line::{LineAddress, Version};
use fencepost_kernel::message::{Cause, Opcode};
use fencepost_kernel::stats::StatsNode;
use fencepost_kernel::time::{Duration, Time};
use fencepost_kernel::{Component, ComponentId, Context, EventQueue, PortId, Wires};
use fencepost_record::Program;

/// Cycles from a miss's lookup in L1 to its departure from the last level: L1 1, L2 10.
pub const WAY_OUT: u64 = 11;
/// Cycles from memory's answer at the last level to the core.
pub const WAY_BACK: u64 = 1;
/// What memory takes for a read, unless a test says otherwise.
pub const READ: u64 = 100;
/// What memory takes for a write.
pub const WRITE: u64 = 200;
/// From the issue of a load that misses everywhere to its data.
pub const MISS: u64 = WAY_OUT + READ + WAY_BACK;

const HOST: ComponentId = ComponentId(0);
const MEMORY: ComponentId = ComponentId(1);

/// What a test may choose besides the program.
#[derive(Clone, Default)]
pub struct Setup {
    sets: Vec<String>,
    persist: Option<PersistMode>,
    pins: Vec<usize>,
    limits: Vec<u64>,
    pm_writes_limit: Option<u64>,
    seed: u64,
    is_code_cold: bool,
    only_warms: bool,
    keeps_recorded_order: bool,
    vdso: Option<std::ops::Range<u64>>,
    decoder: Option<Decoder>,
}

/// Gives the blocks of a recorded program.
pub type Decoder = fn(&Program) -> Vec<DecodedBlock>;

impl Setup {
    /// One core of the machine `pcs-table1` whose translation costs nothing, nor the way from a first level's fill to
    /// the core, with each `PATH=VALUE` of `sets`.
    pub fn machine(sets: &[&str]) -> Setup {
        Setup { sets: sets.iter().map(|&set| set.to_owned()).collect(), ..Setup::default() }
    }

    /// Persists are inserted.
    pub fn persist(mut self, mode: PersistMode) -> Setup {
        self.persist = Some(mode);
        self
    }

    /// Each thread stops after so many instructions.
    pub fn pins(mut self, pins: &[usize]) -> Setup {
        self.pins = pins.to_vec();
        self
    }

    pub fn limits(mut self, limits: &[u64]) -> Setup {
        self.limits = limits.to_vec();
        self
    }

    /// Threads start late as this seed says.
    pub fn seed(mut self, seed: u64) -> Setup {
        self.seed = seed;
        self
    }

    /// All threads stop after so many writes to PM.
    pub fn pm_writes_limit(mut self, limit: u64) -> Setup {
        self.pm_writes_limit = Some(limit);
        self
    }

    /// No code is in any cache.
    pub fn cold_code(mut self) -> Setup {
        self.is_code_cold = true;
        self
    }

    /// Nothing is replayed in detail: all lies between the intervals of a sample.
    pub fn only_warming(mut self) -> Setup {
        self.only_warms = true;
        self
    }

    /// Code at these addresses is the kernel's vDSO.
    pub fn vdso(mut self, range: std::ops::Range<u64>) -> Setup {
        self.vdso = Some(range);
        self
    }

    /// The program is of an instruction set of the test's own.
    pub fn decoded_by(mut self, decoder: Decoder) -> Setup {
        self.decoder = Some(decoder);
        self
    }

    /// Threads do things in the order in which they were recorded.
    pub fn in_recorded_order(mut self) -> Setup {
        self.keeps_recorded_order = true;
        self
    }

    /// The host with that program, about to start.
    pub fn run(self, script: Script) -> Bench {
        Bench::new(self, script)
    }
}

/// A host on the bench.
#[derive(Clone)]
pub struct Bench {
    queue: EventQueue,
    wires: Wires,
    now: Time,
    host: Host,
    /// What answers the host.
    pub memory: Memory,
    /// The boundaries of regions so far, with everything counted up to each.
    pub boundaries: Vec<(RegionBoundary, StatsNode)>,
}

/// The machine that ships, with changes.
pub fn machine(sets: &[String]) -> Machine {
    let text = include_str!("../../../../../machines/pcs-table1.toml").to_owned();
    let base = ["core.count=1", "tlb.enabled=false", "cache.l1d.response_cycles=0", "cache.l1i.response_cycles=0"];
    let base = base.map(str::to_owned);
    let sets: Vec<String> = base.into_iter().chain(sets.iter().cloned()).collect();
    let source = SourceText { name: "pcs-table1".to_owned(), text };
    Machine::resolve(source, &|_| None, &sets).unwrap_or_else(|errors| panic!("{errors}"))
}

/// What a host is built from, out of a machine.
pub fn host_config(machine: &Machine) -> HostConfig {
    let levels = machine.cache_levels();
    HostConfig {
        core: machine.core.clone(),
        tlb: machine.tlb.clone(),
        branch_predictor: machine.branch_predictor.clone(),
        l1i: levels.l1i.clone(),
        l1d: levels.l1d.clone(),
        levels: levels.lower.iter().map(|(name, level)| ((*name).to_owned(), (*level).clone())).collect(),
        simulation: machine.simulation.clone(),
        bus_round_trip: Duration::from_ns(machine.host_bridge.latency_ns) * 2,
        sockets: machine.socket_link.map(|link| SeveralSockets {
            memory_directory: machine.sockets.is_some_and(|sockets| sockets.memory_directory),
            to_ports: Duration::from_ns(link.to_ports_ns),
            memory_ends: (0..machine.sockets()).map(|socket| memory_end(u64::from(socket))).collect(),
            link: link.link(),
        }),
    }
}

/// Where the memory of a socket ends: each but the last has some pages of DRAM, and the last some of PM, so that the
/// pages of most programs lie at several.
fn memory_end(socket: u64) -> LineAddress {
    const PAGES: u64 = 4;
    match socket {
        0 => LineAddress::containing(PAGES << 12),
        _ => LineAddress::containing(PM_BASE + (PAGES << 12) * socket),
    }
}

impl Bench {
    /// Threads that leave their core keep nothing of their records in memory.
    pub fn keep_no_frames(&mut self) {
        self.host.process.waiting_frames.keep_none();
    }

    fn new(setup: Setup, script: Script) -> Bench {
        let machine = machine(&setup.sets);
        let record = script.record();
        let persist: PersistPolicy =
            persist_policy(&machine, InstructionSet::X86_64, setup.persist.unwrap_or(PersistMode::Program));
        let decode = setup.decoder.unwrap_or(|program| InstructionSet::X86_64.decode(program));
        let workload = Workload {
            blocks: split(&decode(record.program()).into(), &machine.core),
            record: record.clone(),
            #[allow(clippy::single_range_in_vec_init, reason = "lists of ranges with one")]
            table: PageTable::in_dram_and_pm(&[PM..PM + (1 << 24)], &[], 1 << 30, &[PM_BASE..PM_BASE + (1 << 24)])
                .with_vdso(setup.vdso.into_iter().collect()),
            persist,
            pins: setup.pins,
            limits: setup.limits,
            pm_writes_limit: setup.pm_writes_limit,
            seed: setup.seed,
        };
        let config = host_config(&machine);
        let mut host = Host::new(&config, workload);
        if setup.only_warms {
            host.sample(SamplePlan { period: 1 << 40, detail: 1, warmup: 0 });
        }
        if setup.keeps_recorded_order {
            host.keep_recorded_order(&record).expect("the record is sound");
        }
        let mut wires = Wires::default();
        wires.connect((HOST, PortId(0)), (MEMORY, PortId(0)));
        for (agent, home) in config.sockets.iter().flat_map(SeveralSockets::wires) {
            wires.connect((HOST, agent), (HOST, home));
        }
        if !setup.is_code_cold {
            warm_code(&mut host);
        }
        let memory = Memory::new(host.clock.period);
        let mut queue = EventQueue::default();
        host.start(&mut Context::new(Time::ZERO, HOST, &mut queue, &wires));
        Bench { queue, wires, now: Time::ZERO, host, memory, boundaries: Vec::new() }
    }

    /// Handles the next event; whether there was one.
    pub fn step(&mut self) -> bool {
        let Some((time, target, event)) = self.queue.pop() else { return false };
        assert!(time >= self.now, "time goes back");
        self.now = time;
        let mut context = Context::new(time, target, &mut self.queue, &self.wires);
        if target == MEMORY {
            self.memory.handle(event, &mut context);
        } else {
            self.host.handle(event, &mut context);
            if let Some(boundary) = self.host.take_region_boundary() {
                // While warming, what DRAM holds is not tracked.
                self.memory.versions.retain(|line, _| is_pm(*line));
                self.memory.versions.extend(self.host.take_warm_writes());
                self.boundaries.push((boundary, self.host.stats(self.now)));
            }
        }
        true
    }

    /// Handles all events up to `cycle`.
    pub fn run_until(&mut self, cycle: u64) {
        let time = self.host.time(cycle);
        while self.queue.next_time().is_some_and(|next| next <= time) {
            self.step();
        }
    }

    /// Goes on where no event is left and threads still wait; whether that helped.
    pub fn unblock(&mut self) -> bool {
        let mut context = Context::new(self.now, HOST, &mut self.queue, &self.wires);
        !self.host.is_finished() && self.host.unblock(&mut context)
    }

    /// All threads stop after so many instructions together.
    pub fn limit_instructions(&mut self, limit: u64) {
        self.host.limit_instructions(limit);
    }

    /// Runs to the end and gives the cycle in which the last thread ended.
    pub fn end(&mut self) -> u64 {
        while self.step() || self.unblock() {}
        assert!(self.host.error.is_none(), "{:?}", self.host.error);
        assert!(self.host.is_finished(), "nothing can go on: {:?}", self.host.waiting());
        assert!(self.host.socket.cores.iter().all(|core| core.is_drained()), "something is left in a core");
        self.host.cycle(self.host.finished_at())
    }

    /// The physical line of a virtual address.
    pub fn line(&mut self, address: u64) -> LineAddress {
        LineAddress::containing((self.host.process.table.frame(address >> 12) << 12) | (address & 0xfff))
    }

    /// Brings a line into the caches of `core`, to be read or as its own, before anything runs.
    pub fn warm(&mut self, core: usize, address: u64, want: Want) {
        let line = self.line(address);
        self.host.socket.caches.access_functionally(Request {
            core,
            line,
            want,
            side: Side::Data,
            cause: Cause::DemandRead,
            issued: 0,
        });
        for (line, version) in self.host.take_warm_writes() {
            self.memory.versions.insert(line, version);
        }
    }

    /// Takes a clean line out of the first-level data cache of `core`.
    pub fn forget_l1d(&mut self, core: usize, line: LineAddress) {
        let copy = self.host.socket.caches.of_core(core).l1d[core].remove(line).expect("the line is there");
        assert_ne!(copy.state, State::Modified, "its content would be lost");
    }

    /// Puts a copy of a line that should not be there into the first-level data cache of `core`.
    pub fn plant_l1d(&mut self, core: usize, address: u64, copy: Line) {
        let line = self.line(address);
        self.host.socket.caches.of_core(core).l1d[core].insert(line, copy);
    }

    /// Takes down which versions loads observe and stores make.
    pub fn log_observations(&mut self) {
        self.host.log_observations();
    }

    /// Logs what the host is promised about PM.
    pub fn log_persists(&mut self) {
        self.host.log_persists();
    }

    /// Counts which instructions persist and which fences wait for them.
    pub fn log_sites(&mut self) {
        self.log_sites_without_source(&[]);
    }

    /// The same where source lines of these blocks are not known.
    pub fn log_sites_without_source(&mut self, blocks: &[u32]) {
        let end = blocks.iter().max().map_or(0, |last| last + 1);
        self.host.log_sites((0..end).map(|block| !blocks.contains(&block)).collect());
        self.host.count_sites(true);
    }

    /// Does not count any more.
    pub fn pause_sites(&mut self) {
        self.host.count_sites(false);
    }

    /// What has been sent to memory, in order.
    pub fn sent(&self) -> &[Sent] {
        &self.memory.sent
    }

    /// The cycles at which reads of data were sent.
    pub fn reads(&self) -> Vec<u64> {
        self.cycles(|sent| sent.opcode == Opcode::MemRd)
    }

    /// The cycles at which writes were sent.
    pub fn writes(&self) -> Vec<u64> {
        self.cycles(|sent| sent.opcode != Opcode::MemRd)
    }

    fn cycles(&self, which: impl Fn(&Sent) -> bool) -> Vec<u64> {
        self.memory.sent.iter().filter(|sent| which(sent)).map(|sent| sent.cycle).collect()
    }

    /// The first-level data cache's copy of a line.
    pub fn l1d(&mut self, core: usize, address: u64) -> Option<Line> {
        let line = self.line(address);
        self.host.socket.caches.of_core(core).l1d[core].get(line).copied()
    }

    /// The state of that copy.
    pub fn state(&mut self, core: usize, address: u64) -> Option<State> {
        self.l1d(core, address).map(|line| line.state)
    }

    /// What a core counted.
    pub fn core(&self, core: usize) -> &CoreStats {
        &self.host.socket.cores[core].stats
    }

    /// What a core has learnt: its TLB and the prefetcher of its first-level data cache.
    pub fn learnt(&self, core: usize) -> [String; 2] {
        self.host.socket.cores[core].learnt()
    }

    /// The cycle in which the read of a line was first sent.
    pub fn read_of(&mut self, address: u64) -> u64 {
        let line = self.line(address);
        let read = self.memory.sent.iter().find(|sent| sent.line == line && sent.opcode == Opcode::MemRd);
        read.unwrap_or_else(|| panic!("{address:#x} was never read")).cycle
    }

    /// Where the boundaries of regions were, in cycles.
    pub fn region_cycles(&self) -> Vec<(bool, u64)> {
        self.boundaries.iter().map(|(boundary, _)| (boundary.begins, self.host.cycle(boundary.time))).collect()
    }

    /// The newest version of a line in any cache.
    pub fn newest_version(&self, line: LineAddress) -> Version {
        self.host.socket.caches.newest_version(line)
    }

    /// Reads that did not bring the newest version.
    pub fn stale_reads(&self) -> u64 {
        self.host.socket.caches.iter().map(|caches| caches.counters().stale_reads).sum()
    }

    /// The caches of a socket.
    pub fn caches_of(&self, socket: usize) -> &Hierarchy {
        self.host.socket.caches.iter().nth(socket).expect("there is that socket")
    }

    /// The caches.
    pub fn caches(&self) -> &Hierarchy {
        self.host.caches()
    }

    /// The host.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// A counter of the host, by its path.
    pub fn counter(&self, path: &str) -> u64 {
        let stats = self.host.stats(self.now);
        assert!(stats.get(path).is_some(), "there is no counter {path}");
        stats.counter(path)
    }
}

/// Brings all code into every core's instruction cache.
fn warm_code(host: &mut Host) {
    let blocks = std::sync::Arc::clone(&host.process.blocks);
    for block in blocks.iter().filter(|block| block.end > block.address) {
        for line in block.address / 64..=(block.end - 1) / 64 {
            let line = LineAddress((host.process.table.frame(line >> 6) << 6) | (line & 63));
            for core in 0..host.socket.cores.len() {
                let side = Side::Instruction;
                let request = Request { core, line, want: Want::Read, side, cause: Cause::InstructionFetch, issued: 0 };
                host.socket.caches.access_functionally(request);
            }
        }
    }
}
