//! All caches of one host, and the coherence among its cores.
//!
//! A request is resolved in one step at the time it reaches the first cache behind the first levels: lookups, snoops
//! and changes of state happen at once, and what they cost is added to the time at which the line will be there. A core
//! computes ahead, so the newest version of a line may be one that is stored only in a cycle to come: an access that
//! takes it starts from that cycle. Only what leaves the last level is a message. The last level holds the directory:
//! which cores may have a copy, and whether one may have it exclusively (MESI). It is inclusive or, with a snoop filter
//! for a directory, has what no core has (`exclusive`). Where a host has several sockets, each has a hierarchy; their
//! home agents (`home_agent`) say what the last level may do with a line.
//!
//! Here is the way of a request down the levels. It goes on in `reads` and `writes`, which talk to memory; what it does
//! to the caches is in `coherence`, what others ask in `snoops`; accesses without time are in `functional`.

mod coherence;
mod exclusive;
mod functional;
mod global_flush;
mod levels;
mod logs;
mod prefetching;
mod reads;
mod request;
mod snoops;
mod writes;

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use exclusive::Exclusive;
use levels::{PrivateLevel, SharedLevel};
use prefetching::Worthwhile;
use reads::BlockedRead;
pub use request::{Acknowledged, Departure, Outcome, Request, Requester, Served, Side, Source, Want};
use writes::{BlockedWrite, PendingWrite, WriteAround};

use super::array::{CacheArray, State};
use super::between::MshrsBetween;
use super::config::{CacheConfig, PointOfCoherence};
use super::mshr::MshrFile;
use super::persist_log::PersistLog;
use super::stats::{HierarchyStats, LevelStats};
use crate::cache::persist_sites::PersistSites;
use crate::cache::prefetcher::Prefetcher;
use fencepost_kernel::line::{LINE_BYTES, LineAddress, Version};
use fencepost_kernel::message::{Message, Opcode};
use fencepost_kernel::sparse_table::SparseTable;
use fencepost_kernel::stats::StatsNode;
use fencepost_kernel::time::{Duration, Time};

/// How the hierarchy is built.
#[derive(Clone, Debug)]
pub struct HierarchyConfig {
    /// Cores of the host.
    pub cores: usize,
    /// Of these, the ones of this socket.
    pub own_cores: Range<usize>,
    /// The clock's period.
    pub period: Duration,
    /// First-level instruction cache.
    pub l1i: CacheConfig,
    /// First-level data cache.
    pub l1d: CacheConfig,
    /// The levels below, nearest first; the last one is shared, and is inclusive or has a snoop filter.
    pub levels: Vec<(String, CacheConfig)>,
    /// Cycles from the last level to the memory bus, the point of coherence, and back.
    pub bus_round_trip: u64,
    /// Whether every flush is complete when that bus has ordered it. Otherwise only flushes that reach no further are;
    /// the others are complete when their write's completion returns.
    pub flushes_end_at_bus: bool,
    /// What that point keeps at a power failure: where it is the persistent domain, all flushes reach that.
    pub point_of_coherence: PointOfCoherence,
    /// Whether other sockets cache the same memory: home agents are asked, and not memory.
    pub is_one_of_several: bool,
    /// The state of a core's dirty copy after a flush that does not invalidate; `None` if such a flush invalidates too.
    pub cleaned: Option<State>,
}

/// The caches of a host.
#[derive(Clone)]
pub struct Hierarchy {
    period: Duration,
    /// First-level data caches, one a core. The core looks into its own itself.
    pub l1d: Vec<CacheArray>,
    /// First-level instruction caches, one a core.
    pub l1i: Vec<CacheArray>,
    private: Vec<PrivateLevel>,
    /// Of a last level that is not inclusive, this is the snoop filter.
    shared: Vec<SharedLevel>,
    /// Where the last level is not inclusive.
    exclusive: Option<Box<Exclusive>>,
    between: MshrsBetween,
    /// Cycles from a fill of the first-level data cache, and of the instruction cache, to the core.
    data_response: u64,
    code_response: u64,
    level_names: Vec<String>,
    snoop: u64,
    write_buffers: usize,
    bus_round_trip: u64,
    flushes_end_at_bus: bool,
    point_of_coherence: PointOfCoherence,
    is_one_of_several: bool,
    cleaned: Option<State>,
    mshrs: MshrFile<Request>,
    /// What prefetchers have found and is not fetched yet.
    worthwhile: Vec<Worthwhile>,
    blocked: VecDeque<BlockedRead>,
    blocked_writes: VecDeque<BlockedWrite>,
    writes_behind_reads: Vec<WriteAround>,
    /// What has been written to PM since the last look; allocated only when logging is enabled.
    written_back: Option<Vec<(LineAddress, Version)>>,
    reads: Vec<Option<LineAddress>>,
    writes: Vec<Option<PendingWrite>>,
    writes_under_way: usize,
    writes_sent: u64,
    /// The version of each PM line that left last, by the line's number: what memory must answer with. Version 0 of
    /// those that never left.
    written: SparseTable<Version>,
    /// Writes that left while only warming up, and which of them each was; memory gets them before timing starts.
    warm_writes: HashMap<LineAddress, (Version, u64), rustc_hash::FxBuildHasher>,
    warm_writes_made: u64,
    /// What left while only warming up since the last look; only where there are several sockets.
    functional_writes: Vec<(LineAddress, Version)>,
    departures: Vec<Departure>,
    /// Lines that cores have read from memory, or written around the caches (true), since the last look; kept where a
    /// transport counts them.
    moved: Option<Vec<(usize, LineAddress, bool)>>,
    /// Set once a Global Persistent Flush has begun.
    global_flush: Option<global_flush::GlobalFlush>,
    /// Allocated only when logging is enabled.
    persist_log: Option<Box<PersistLog>>,
    /// Which instructions persist, and what becomes of their writes; likewise.
    pub persist_sites: Option<Box<PersistSites>>,
    stats: HierarchyStats,
}

impl Hierarchy {
    /// Empty caches.
    pub fn new(config: &HierarchyConfig) -> Hierarchy {
        let array = |cache: &CacheConfig| CacheArray::new(u64::from(cache.size_kib) * 1024, usize::from(cache.ways));
        // Cores of other sockets have an array of one line, which nothing ever enters.
        let of_core = |core: usize, cache: &CacheConfig| {
            if config.own_cores.contains(&core) { array(cache) } else { CacheArray::new(LINE_BYTES, 1) }
        };
        let arrays = |cache: &CacheConfig| (0..config.cores).map(|core| of_core(core, cache)).collect::<Vec<_>>();
        let ((_, last), above) = config.levels.split_last().expect("there is a last level");
        // The last level holds the directory and counts as shared, even where there is only one core.
        let first_shared = above.iter().take_while(|(_, level)| !level.shared).count();
        let private = config.levels[..first_shared].iter().map(|(_, level)| PrivateLevel {
            latency: u64::from(level.latency_cycles),
            response: u64::from(level.response_cycles),
            is_inclusive: level.inclusive,
            arrays: arrays(level),
            prefetchers: (0..config.cores).map(|_| Prefetcher::of(level)).collect(),
            prefetch_mshrs: usize::from(level.prefetch_mshrs),
            stats: LevelStats::default(),
        });
        let (exclusive, mut directory) = Exclusive::of(config, array).unzip();
        let shared = config.levels[first_shared..].iter().map(|(_, level)| SharedLevel {
            latency: u64::from(level.latency_cycles),
            response: u64::from(level.response_cycles),
            is_inclusive: level.inclusive,
            array: directory.take().filter(|_| !level.inclusive).unwrap_or_else(|| array(level)),
            stats: LevelStats::default(),
        });
        let between = above.iter().map(|(_, level)| (if level.shared { 1 } else { config.cores }, level.mshrs));
        Hierarchy {
            period: config.period,
            between: MshrsBetween::new(between),
            data_response: u64::from(config.l1d.response_cycles),
            code_response: u64::from(config.l1i.response_cycles),
            l1d: arrays(&config.l1d),
            l1i: arrays(&config.l1i),
            private: private.collect(),
            shared: shared.collect(),
            exclusive: exclusive.map(Box::new),
            level_names: config.levels.iter().map(|(name, _)| name.clone()).collect(),
            snoop: u64::from(last.snoop_cycles),
            write_buffers: usize::from(last.write_buffers),
            bus_round_trip: config.bus_round_trip,
            flushes_end_at_bus: config.flushes_end_at_bus,
            point_of_coherence: config.point_of_coherence,
            is_one_of_several: config.is_one_of_several,
            cleaned: config.cleaned,
            mshrs: MshrFile::new(usize::from(last.mshrs)),
            worthwhile: Vec::new(),
            blocked: VecDeque::new(),
            blocked_writes: VecDeque::new(),
            writes_behind_reads: Vec::new(),
            written_back: None,
            reads: Vec::new(),
            writes: Vec::new(),
            writes_under_way: 0,
            writes_sent: 0,
            written: SparseTable::default(),
            warm_writes: HashMap::default(),
            warm_writes_made: 0,
            functional_writes: Vec::new(),
            departures: Vec::new(),
            moved: None,
            global_flush: None,
            persist_log: None,
            persist_sites: None,
            stats: HierarchyStats::default(),
        }
    }

    /// Serves a request that missed the first level at cycle `now`, or asks memory.
    pub fn request(&mut self, request: Request, now: u64) -> Outcome {
        let outcome = self.descend(request, 0, true, now);
        self.prefetch();
        outcome
    }

    /// Takes a request down from the level `from`; one that is not new has looked into that level before, and been
    /// counted there.
    fn descend(&mut self, request: Request, from: usize, is_new: bool, now: u64) -> Outcome {
        let mut cycle = now;
        for level in from..self.private.len() + self.shared.len() {
            let is_first_look = is_new || level > from;
            if is_first_look {
                cycle += self.latency(level);
            }
            let hit = self.look_into(level, &request, cycle);
            if is_first_look {
                self.level_stats(level).count(hit.is_some());
                self.train(level, &request, cycle);
            }
            if let Some((ready, version)) = hit {
                self.between.release(&request, ready);
                self.write_left(now);
                return Outcome::Ready(ready, version);
            }
            let Some(start) = self.between.claim(level, &request, cycle) else {
                self.level_stats(level).mshr_full += u64::from(is_first_look);
                return Outcome::Pending;
            };
            cycle = start;
        }
        self.stats.llc_misses += 1;
        self.ask_memory(BlockedRead { request, missed: cycle }, cycle);
        Outcome::Pending
    }

    /// Messages that have left since the last call, added to `departures`.
    pub fn take_departures(&mut self, departures: &mut Vec<Departure>) {
        if departures.is_empty() {
            std::mem::swap(departures, &mut self.departures);
        } else {
            departures.append(&mut self.departures);
        }
    }

    /// The core that asked for what a message that has just left does.
    pub fn asker(&mut self, message: &Message) -> Option<u16> {
        let takes_a_write_buffer =
            message.is_write() || matches!(message.opcode, Opcode::FlushLine | Opcode::CleanLine);
        let core = match takes_a_write_buffer {
            true => self.writes[message.tag.0 as usize].as_ref()?.acknowledge.first()?.core,
            false => self.mshrs.find(message.line)?.first()?.core,
        };
        Some(core as u16)
    }

    /// Whether messages have left since the last [`Hierarchy::take_departures`].
    pub fn has_departures(&self) -> bool {
        !self.departures.is_empty()
    }

    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.mshrs.pending() == 0
            && self.writes_under_way == 0
            && self.blocked.is_empty()
            && self.between.is_idle()
            && self.blocked_writes.is_empty()
            && self.writes_behind_reads.is_empty()
    }

    /// What is under way, one line each.
    pub fn waiting(&self) -> Vec<String> {
        let reads = self.mshrs.lines().map(|line| format!("read of line {:#x}", line.byte()));
        let writes = self.writes.iter().flatten().map(|write| format!("write of line {:#x}", write.line.byte()));
        let blocked = self.blocked.iter().map(|read| &read.request).chain(self.between.blocked()).map(|request| {
            format!("core {} waits for an MSHR or write buffer for line {:#x}", request.core, request.line.byte())
        });
        reads.chain(writes).chain(blocked).collect()
    }

    /// Power is gone, and with it everything in the caches.
    pub fn power_fail(&mut self) {
        for array in self.l1d.iter_mut().chain(&mut self.l1i) {
            array.clear();
        }
        for array in self.private.iter_mut().flat_map(|level| &mut level.arrays) {
            array.clear();
        }
        for level in &mut self.shared {
            level.array.clear();
        }
        if let Some(exclusive) = &mut self.exclusive {
            exclusive.clear();
        }
        self.mshrs.clear();
        self.between.clear();
        self.blocked.clear();
        self.blocked_writes.clear();
        self.writes_behind_reads.clear();
        self.reads.clear();
        self.writes.clear();
        self.writes_under_way = 0;
        self.departures.clear();
        self.global_flush = None;
        if let Some(log) = &mut self.persist_log {
            log.power_fail();
        }
    }

    /// The newest version of a PM line: in any cache, else the last that left. A load that missed no invalidation sees
    /// this one.
    pub fn newest_version(&self, line: LineAddress) -> Version {
        let private = self.private.iter().flat_map(|level| &level.arrays);
        let shared =
            self.shared.iter().map(|level| &level.array).chain(self.exclusive.as_ref().map(|last| &last.array));
        let cached = self.l1d.iter().chain(private).chain(shared).filter_map(|array| array.get(line));
        cached.map(|copy| copy.version).fold(self.written.get(line.0), Version::max)
    }

    /// Every copy of every line, for tests of what must hold among them.
    #[cfg(test)]
    pub(crate) fn copies(&self) -> Vec<super::tests::Copy> {
        let mut copies = Vec::new();
        let mut add = |array: &CacheArray, core: Option<usize>, level: (bool, bool, bool)| {
            let (is_first_level_data, is_code, is_last_level) = level;
            let copy = |(line, content): (LineAddress, &super::array::Line)| super::tests::Copy {
                line,
                content: *content,
                core,
                is_first_level_data,
                is_code,
                is_last_level,
            };
            copies.extend(array.iter().map(copy));
        };
        for core in 0..self.l1d.len() {
            add(&self.l1d[core], Some(core), (true, false, false));
            add(&self.l1i[core], Some(core), (false, true, false));
            self.private.iter().for_each(|level| add(&level.arrays[core], Some(core), (false, false, false)));
        }
        for (index, level) in self.shared.iter().enumerate() {
            add(&level.array, None, (false, false, index + 1 == self.shared.len()));
        }
        if let Some(exclusive) = &self.exclusive {
            add(&exclusive.array, None, (false, false, true));
        }
        copies
    }

    /// What this host counted on its way to memory.
    pub fn counters(&self) -> &HierarchyStats {
        &self.stats
    }

    /// Everything counted by the levels behind the first, and at the border to memory.
    pub fn stats(&self) -> Vec<(String, StatsNode)> {
        let levels = self.private.iter().map(|level| &level.stats).chain(self.shared.iter().map(|level| &level.stats));
        let last = self.level_names.len() - 1;
        let prefetches = |index: usize| self.private.get(index).is_some_and(|level| level.prefetchers.is_some());
        let levels = levels.enumerate().map(|(index, level)| level.stats(index == last, prefetches(index)));
        let mut nodes: Vec<_> = self.level_names.iter().cloned().zip(levels).collect();
        nodes.extend(self.exclusive.as_ref().map(|last| ("snoop_filter".into(), last.stats())));
        nodes.push(("memory_border".into(), self.stats.stats()));
        nodes
    }

    fn time_of(&self, cycle: u64) -> Time {
        Time::ZERO + self.period * cycle
    }
}
