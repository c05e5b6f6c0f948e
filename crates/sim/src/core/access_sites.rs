//! Which instructions wait for memory, so that stalls can be attributed to lines of the program.
//!
//! Allocated only when enabled. A site is a load or a store of the program's code. A load's wait is the time for which
//! its core had nothing older to commit; a store's is the time for which it kept the store queue's head waiting for its
//! line. No instant of a core belongs to two loads, nor to two stores.

use std::collections::HashMap;
use std::sync::Arc;

use super::callers::Callers;
use super::thread::Thread;
use crate::cache::hierarchy::Source;
use fencepost_isa::micro_op::{DecodedBlock, Operation};
use fencepost_kernel::address_map::{EXPANDER_BASE, is_pm};
use fencepost_kernel::line::LineAddress;
use fencepost_kernel::time::Duration;

/// Which instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AccessKey {
    /// Its block; 0 for the access to an object that stands for a synchronisation.
    pub block: u32,
    /// Its micro-operation there.
    pub micro_op: u32,
    /// Whether it stores.
    pub is_store: bool,
    /// Of one without source lines, the block with some whose call led to it; 0 if there is none, or it has its own.
    pub caller: u32,
}

/// What was counted at one site while time counted.
#[derive(Clone, Copy, Debug)]
pub struct AccessSite {
    /// Which.
    pub key: AccessKey,
    /// Its part of what the cores count as loads, forwarded loads and stores.
    pub count: u64,
    /// Lines that it waited for, by [`Origin`]; those that its own caches had are not counted.
    pub lines: [u64; Origin::COUNT],
    /// For how long it kept commit, or the store queue, waiting, by where the line came from.
    pub waits_ps: [u64; Origin::COUNT],
}

impl AccessSite {
    fn new(key: AccessKey) -> AccessSite {
        AccessSite { key, count: 0, lines: [0; Origin::COUNT], waits_ps: [0; Origin::COUNT] }
    }

    /// For how long it kept commit, or the store queue, waiting.
    pub fn wait_ps(&self) -> u64 {
        self.waits_ps.iter().sum()
    }

    fn count_line(&mut self, origin: Origin, is_counted: bool) {
        self.lines[origin.index()] += u64::from(is_counted && origin != Origin::CACHES);
    }

    /// Lines that it waited for and memory of that kind sent, whichever socket it belongs to.
    pub fn from_memory(&self, kind: MemoryKind) -> u64 {
        let [own, other] = [Source::Memory, Source::OtherMemory].map(|source| Origin::new(source, kind));
        self.lines[own.index()] + self.lines[other.index()]
    }
}

/// Where in a host's memory a line lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// The host's own DRAM.
    Dram,
    /// Persistent memory.
    Pm,
    /// A memory expander.
    Expander,
}

impl MemoryKind {
    /// All of them.
    pub const ALL: [MemoryKind; 3] = [MemoryKind::Dram, MemoryKind::Pm, MemoryKind::Expander];
    /// The names of all, in order.
    pub const NAMES: [&str; 3] = ["dram", "pm", "expander"];

    /// That of `line`.
    pub fn of(line: LineAddress) -> MemoryKind {
        match line {
            line if is_pm(line) => MemoryKind::Pm,
            line if line.byte() >= EXPANDER_BASE => MemoryKind::Expander,
            _ => MemoryKind::Dram,
        }
    }
}

/// Where an access got its line from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin(u8);

impl Origin {
    /// How many there are.
    pub const COUNT: usize = 8;
    /// The names of all, in order: `other_` stands for what is at another socket, and so behind the socket link.
    pub const NAMES: [&'static str; Self::COUNT] =
        ["caches", "dram", "pm", "expander", "other_caches", "other_dram", "other_pm", "other_expander"];
    /// Caches of the core's own socket.
    pub const CACHES: Origin = Origin(0);

    fn new(source: Source, kind: MemoryKind) -> Origin {
        Origin(match source {
            Source::Caches => 0,
            Source::Memory => 1 + kind as u8,
            Source::OtherCaches => 4,
            Source::OtherMemory => 5 + kind as u8,
        })
    }

    /// That of `line`, which `source` has sent.
    pub fn of(source: Source, line: LineAddress) -> Origin {
        Origin::new(source, MemoryKind::of(line))
    }

    /// Its place in the order of [`Origin::NAMES`].
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl Default for Origin {
    fn default() -> Origin {
        Origin::CACHES
    }
}

/// How many cycles after its dispatch an instruction of no latency commits, at the earliest.
const COMMITS_AFTER: u64 = 2;

/// An access in the load or the store queue.
#[derive(Clone, Copy, Debug, Default)]
struct InQueue {
    /// Its site.
    site: u32,
    /// When it was dispatched.
    dispatched: u64,
    /// Where the line came from that it has waited for last.
    origin: Origin,
}

/// A line that a store has missed.
#[derive(Clone, Copy, Debug)]
struct Missed {
    line: LineAddress,
    site: u32,
    /// The store's place in its queue.
    index: u32,
    /// Whether it is counted: a store that loses its line before its turn misses it again, and is counted once.
    is_first: bool,
}

/// What one core has under way.
#[derive(Clone, Debug)]
struct CoreAccesses {
    /// By place in the load queue.
    loads: Box<[InQueue]>,
    /// By place in the store queue.
    stores: Box<[InQueue]>,
    /// Lines that stores have missed and that have not come.
    missed: Vec<Missed>,
}

/// All sites of one host.
#[derive(Clone, Debug)]
pub struct AccessSites {
    period: Duration,
    is_counting: bool,
    sites: Vec<AccessSite>,
    numbers: HashMap<AccessKey, u32, rustc_hash::FxBuildHasher>,
    cores: Vec<CoreAccesses>,
    callers: Callers,
}

impl AccessSites {
    /// No site yet, of so many cores with that clock and these queues; `has_source` is that of [`Callers`].
    pub fn new(
        cores: usize,
        period: Duration,
        load_queue_places: usize,
        store_queue_places: usize,
        has_source: Arc<[bool]>,
    ) -> AccessSites {
        let core = CoreAccesses {
            loads: vec![InQueue::default(); load_queue_places].into(),
            stores: vec![InQueue::default(); store_queue_places].into(),
            missed: Vec::new(),
        };
        AccessSites {
            period,
            is_counting: false,
            sites: Vec::new(),
            numbers: HashMap::default(),
            cores: vec![core; cores],
            callers: Callers::new(cores, has_source),
        }
    }

    /// All of them.
    pub fn sites(&self) -> &[AccessSite] {
        &self.sites
    }

    /// On whose behalf instructions execute.
    pub(super) fn callers(&mut self) -> &mut Callers {
        &mut self.callers
    }

    /// From now on time counts, or does not.
    pub fn count(&mut self, counts: bool) {
        self.is_counting = counts;
    }

    /// A load or store of `core` enters place `index` of its queue at `cycle`.
    pub(super) fn dispatched(&mut self, core: usize, index: u32, key: AccessKey, cycle: u64) {
        let sites = &mut self.sites;
        let site = *self.numbers.entry(key).or_insert_with(|| {
            sites.push(AccessSite::new(key));
            sites.len() as u32 - 1
        });
        let own = &mut self.cores[core];
        let queue = if key.is_store { &mut own.stores } else { &mut own.loads };
        queue[index as usize] = InQueue { site, dispatched: cycle, origin: Origin::CACHES };
    }

    /// The load at `index` accesses so many lines, or gets its data from the store queue.
    pub(super) fn load_accessed(&mut self, core: usize, index: u32, accesses: u64) {
        let load = self.cores[core].loads[index as usize];
        self.sites[load.site as usize].count += if self.is_counting { accesses } else { 0 };
    }

    /// The load at `index` has waited for a line, which came from there.
    pub(super) fn load_got_line(&mut self, core: usize, index: u32, origin: Origin) {
        let load = &mut self.cores[core].loads[index as usize];
        load.origin = origin;
        self.sites[load.site as usize].count_line(origin, self.is_counting);
    }

    /// The store at `index` misses `line`, for the first time or again.
    pub(super) fn store_missed(&mut self, core: usize, index: u32, line: LineAddress, is_first: bool) {
        let own = &mut self.cores[core];
        let site = own.stores[index as usize].site;
        if is_first || !own.missed.iter().any(|missed| (missed.line, missed.index) == (line, index)) {
            own.missed.push(Missed { line, site, index, is_first });
        }
    }

    /// A line arrives at `core` from there: whatever stores have missed it have it.
    pub(super) fn line_arrived(&mut self, core: usize, line: LineAddress, origin: Origin) {
        let CoreAccesses { stores, missed, .. } = &mut self.cores[core];
        while let Some(place) = missed.iter().position(|missed| missed.line == line) {
            let Missed { site, index, is_first, .. } = missed.swap_remove(place);
            self.sites[site as usize].count_line(origin, is_first && self.is_counting);
            // Its place has another holder once it has taken effect.
            let store = &mut stores[index as usize];
            if store.site == site {
                store.origin = origin;
            }
        }
    }

    /// The load at `index` commits at `cycle`; whatever came before it has committed at `previous`.
    pub(super) fn load_committed(&mut self, core: usize, index: u32, previous: u64, cycle: u64) {
        let load = self.cores[core].loads[index as usize];
        self.waited(load, cycle.saturating_sub(previous.max(load.dispatched + COMMITS_AFTER)));
    }

    /// The store at `index` takes effect so many cycles after its turn.
    pub(super) fn store_performed(&mut self, core: usize, index: u32, cycles: u64) {
        let store = self.cores[core].stores[index as usize];
        self.sites[store.site as usize].count += u64::from(self.is_counting);
        self.waited(store, cycles);
    }

    fn waited(&mut self, access: InQueue, cycles: u64) {
        if self.is_counting {
            let site = &mut self.sites[access.site as usize];
            site.waits_ps[access.origin.index()] += (self.period * cycles).as_ps();
        }
    }
}

/// The site of the access that `thread` dispatches.
pub(super) fn key(
    callers: &mut Callers,
    core: usize,
    thread: &Thread,
    blocks: &[DecodedBlock],
    operation: Operation,
) -> AccessKey {
    // The parts of a string instruction come when that has been passed.
    let micro_op = thread.micro_op.saturating_sub(u32::from(!thread.extra.is_empty()));
    let micro_op = if thread.block == 0 { 0 } else { blocks[thread.block as usize].unsplit_number(micro_op) };
    let caller = if callers.has_source(thread.block) { 0 } else { callers.of(core, thread, blocks) };
    let caller = if callers.has_source(caller) { caller } else { 0 };
    AccessKey { block: thread.block, micro_op, is_store: operation == Operation::Store, caller }
}
