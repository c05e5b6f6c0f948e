//! Which instructions wait for memory, so that stalls can be attributed to lines of the program.
//!
//! Allocated only when enabled. A site is a load or a store of the program's code. A load's wait is the time for which
//! its core had nothing older to commit; a store's is the time for which it kept the store queue's head waiting for its
//! line. No instant of a core belongs to two loads, nor to two stores.

use std::collections::HashMap;

use super::thread::Thread;
use crate::address_map::{EXPANDER_BASE, is_pm};
use crate::isa::micro_op::{DecodedBlock, Operation};
use crate::line::LineAddress;
use crate::time::Duration;

/// Which instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AccessKey {
    /// Its block; 0 for the access to an object that stands for a synchronisation.
    pub block: u32,
    /// Its micro-operation there.
    pub micro_op: u32,
    /// Whether it stores.
    pub is_store: bool,
}

/// What was counted at one site while time counted.
#[derive(Clone, Copy, Debug)]
pub struct AccessSite {
    /// Which.
    pub key: AccessKey,
    /// Accesses that committed, or took effect; each part of one that is split.
    pub count: u64,
    /// Lines that it waited for and memory sent, by [`MemoryKind`].
    pub from_memory: [u64; MemoryKind::NAMES.len()],
    /// For how long it kept commit, or the store queue, waiting.
    pub wait_ps: u64,
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

/// How many cycles after its dispatch an instruction of no latency commits, at the earliest.
const COMMITS_AFTER: u64 = 2;

/// An access in the load or the store queue.
#[derive(Clone, Copy, Debug, Default)]
struct InQueue {
    /// Its site.
    site: u32,
    /// When it was dispatched.
    dispatched: u64,
}

/// What one core has under way.
#[derive(Clone, Debug)]
struct CoreAccesses {
    /// By place in the load queue.
    loads: Box<[InQueue]>,
    /// By place in the store queue.
    stores: Box<[InQueue]>,
    /// Lines that stores have missed, with the sites of these.
    fetched: Vec<(LineAddress, u32)>,
}

/// All sites of one host.
#[derive(Clone, Debug)]
pub struct AccessSites {
    period: Duration,
    is_counting: bool,
    sites: Vec<AccessSite>,
    numbers: HashMap<AccessKey, u32, rustc_hash::FxBuildHasher>,
    cores: Vec<CoreAccesses>,
}

impl AccessSites {
    /// No site yet, of so many cores with that clock and these queues.
    pub fn new(cores: usize, period: Duration, load_queue_places: usize, store_queue_places: usize) -> AccessSites {
        let core = CoreAccesses {
            loads: vec![InQueue::default(); load_queue_places].into(),
            stores: vec![InQueue::default(); store_queue_places].into(),
            fetched: Vec::new(),
        };
        AccessSites {
            period,
            is_counting: false,
            sites: Vec::new(),
            numbers: HashMap::default(),
            cores: vec![core; cores],
        }
    }

    /// All of them.
    pub fn sites(&self) -> &[AccessSite] {
        &self.sites
    }

    /// From now on time counts, or does not.
    pub fn count(&mut self, counts: bool) {
        self.is_counting = counts;
    }

    /// A load or store of `core` enters place `index` of its queue at `cycle`.
    pub(super) fn dispatched(&mut self, core: usize, index: u32, key: AccessKey, cycle: u64) {
        let sites = &mut self.sites;
        let site = *self.numbers.entry(key).or_insert_with(|| {
            sites.push(AccessSite { key, count: 0, from_memory: [0; 3], wait_ps: 0 });
            sites.len() as u32 - 1
        });
        let own = &mut self.cores[core];
        let queue = if key.is_store { &mut own.stores } else { &mut own.loads };
        queue[index as usize] = InQueue { site, dispatched: cycle };
    }

    /// The load at `index` has waited for `line`, which memory sent.
    pub(super) fn load_got_line(&mut self, core: usize, index: u32, line: LineAddress) {
        let site = self.cores[core].loads[index as usize].site;
        self.sites[site as usize].from_memory[MemoryKind::of(line) as usize] += u64::from(self.is_counting);
    }

    /// The store at `index` has missed `line`.
    pub(super) fn store_missed(&mut self, core: usize, index: u32, line: LineAddress) {
        let own = &mut self.cores[core];
        own.fetched.push((line, own.stores[index as usize].site));
    }

    /// A line arrives at `core`, from memory or from another cache: whatever stores have missed it have it.
    pub(super) fn line_arrived(&mut self, core: usize, line: LineAddress, is_from_memory: bool) {
        let fetched = &mut self.cores[core].fetched;
        while let Some(place) = fetched.iter().position(|(missed, _)| *missed == line) {
            let (_, site) = fetched.swap_remove(place);
            let counted = u64::from(is_from_memory && self.is_counting);
            self.sites[site as usize].from_memory[MemoryKind::of(line) as usize] += counted;
        }
    }

    /// The load at `index` commits at `cycle`; whatever came before it has committed at `previous`.
    pub(super) fn load_committed(&mut self, core: usize, index: u32, previous: u64, cycle: u64) {
        let InQueue { site, dispatched } = self.cores[core].loads[index as usize];
        self.waited(site, cycle.saturating_sub(previous.max(dispatched + COMMITS_AFTER)));
    }

    /// The store at `index` takes effect so many cycles after its turn.
    pub(super) fn store_performed(&mut self, core: usize, index: u32, cycles: u64) {
        self.waited(self.cores[core].stores[index as usize].site, cycles);
    }

    fn waited(&mut self, site: u32, cycles: u64) {
        if self.is_counting {
            let site = &mut self.sites[site as usize];
            site.count += 1;
            site.wait_ps += (self.period * cycles).as_ps();
        }
    }
}

/// The site of the access that `thread` dispatches.
pub(super) fn key(thread: &Thread, blocks: &[DecodedBlock], operation: Operation) -> AccessKey {
    // The parts of a string instruction come when that has been passed.
    let micro_op = thread.micro_op.saturating_sub(u32::from(!thread.extra.is_empty()));
    let micro_op = if thread.block == 0 { 0 } else { blocks[thread.block as usize].unsplit_number(micro_op) };
    AccessKey { block: thread.block, micro_op, is_store: operation == Operation::Store }
}
