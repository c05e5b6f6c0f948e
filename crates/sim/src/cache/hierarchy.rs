//! All caches of one host, and the coherence among its cores.
//!
//! A request is resolved in one step at the time it reaches the first cache behind the first levels: lookups, snoops and changes of state
//! happen at once, and what they cost is added to the time at which the line will be there. A core computes ahead, so the newest version of a line
//! may be one that is stored only in a cycle to come: whoever takes it starts from that cycle. Only what leaves the last level is a message. The
//! last level is inclusive and holds the directory: which cores may have a copy, and whether one may have it exclusively (MESI).
//!
//! Here is the way of a request down and of its answer up; what it does to the caches is in `coherence`, accesses without time are in
//! `functional`.

mod coherence;
mod functional;
mod global_flush;
mod request;

use std::collections::{HashMap, VecDeque};

use coherence::Victim;
pub use request::{Acknowledged, Departure, Outcome, Request, Requester, Served, Side, Want};

use super::array::{CacheArray, State};
use super::between::{Blocked, MshrsBetween};
use super::config::CacheConfig;
use super::mshr::{MshrFile, Room, Waiters};
use super::persist_log::{PersistLog, Promise};
use super::stats::{HierarchyStats, LevelStats};
use crate::address_map::is_pm;
use crate::cache::persist_sites::{self, PersistSites};
use crate::isa::micro_op::{Flush, Reach};
use crate::line::{ByteMask, LineAddress, Version};
use crate::message::{Cause, Message, Stage, Tag};
use crate::sparse_table::SparseTable;
use crate::stats::StatsNode;
use crate::time::{Duration, Time};

/// A request that missed the last level and waits for an MSHR, or for a write buffer for what it would evict.
#[derive(Clone, Copy, Debug)]
struct BlockedRead {
    request: Request,
    /// The cycle in which it missed.
    missed: u64,
}

/// A flush or non-temporal store that waits for room among the write buffers.
#[derive(Clone, Copy, Debug)]
enum BlockedWrite {
    Flush { by: Requester, line: LineAddress, flush: Flush, arrived: u64 },
    NonTemporal(WriteAround),
}

/// A non-temporal store that has to wait.
#[derive(Clone, Copy, Debug)]
struct WriteAround {
    by: Requester,
    line: LineAddress,
    mask: ByteMask,
    /// The cycle in which it came.
    arrived: u64,
}

/// When a request came to where its time is counted.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// The cycle in which its core issued it; for what no core asked for, that in which it came to be.
    begun: u64,
    /// The cycle in which the last level had been looked up for it.
    looked_up: u64,
}

#[derive(Clone, Debug)]
struct PendingWrite {
    line: LineAddress,
    version: Version,
    /// Its place among all writes.
    sequence: u64,
    /// The cycle in which it leaves.
    departs: u64,
    acknowledge: Waiters<Requester>,
}

#[derive(Clone, Debug)]
struct PrivateLevel {
    latency: u64,
    response: u64,
    is_inclusive: bool,
    arrays: Vec<CacheArray>,
    stats: LevelStats,
}

#[derive(Clone, Debug)]
struct SharedLevel {
    latency: u64,
    response: u64,
    is_inclusive: bool,
    array: CacheArray,
    stats: LevelStats,
}

/// How the hierarchy is built.
#[derive(Clone, Debug)]
pub struct HierarchyConfig {
    /// Cores.
    pub cores: usize,
    /// The clock's period.
    pub period: Duration,
    /// First-level instruction cache.
    pub l1i: CacheConfig,
    /// First-level data cache.
    pub l1d: CacheConfig,
    /// The levels below, nearest first; the last one is shared and inclusive.
    pub levels: Vec<(String, CacheConfig)>,
    /// Cycles from the last level to the memory bus, the point of coherence, and back.
    pub bus_round_trip: u64,
    /// Whether every flush is complete when that bus has ordered it. Otherwise only flushes that reach no further are; the others are complete when
    /// their write's completion returns.
    pub flushes_end_at_bus: bool,
    /// The state of a core's dirty copy after a flush that does not invalidate.
    pub cleaned: State,
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
    shared: Vec<SharedLevel>,
    between: MshrsBetween,
    /// Cycles from a fill of the first-level data cache, and of the instruction cache, to the core.
    data_response: u64,
    code_response: u64,
    level_names: Vec<String>,
    snoop: u64,
    write_buffers: usize,
    bus_round_trip: u64,
    flushes_end_at_bus: bool,
    cleaned: State,
    mshrs: MshrFile<Request>,
    blocked: VecDeque<BlockedRead>,
    blocked_writes: VecDeque<BlockedWrite>,
    writes_behind_reads: Vec<WriteAround>,
    /// What has been written to PM since the last look; kept only where somebody asks for it.
    written_back: Option<Vec<(LineAddress, Version)>>,
    reads: Vec<Option<LineAddress>>,
    writes: Vec<Option<PendingWrite>>,
    writes_under_way: usize,
    writes_sent: u64,
    /// The version of each PM line that left last, by the line's number: what memory must answer with. Version 0 of those that never left.
    written: SparseTable<Version>,
    /// Writes that left while only warming up, and which of them each was; memory gets them before timing starts.
    warm_writes: HashMap<LineAddress, (Version, u64), rustc_hash::FxBuildHasher>,
    warm_writes_made: u64,
    departures: Vec<Departure>,
    /// Set once a Global Persistent Flush has begun.
    global_flush: Option<global_flush::GlobalFlush>,
    /// Kept only where somebody asks for it.
    persist_log: Option<Box<PersistLog>>,
    /// Which instructions persist, and what comes of it; likewise.
    pub persist_sites: Option<Box<PersistSites>>,
    stats: HierarchyStats,
}

impl Hierarchy {
    /// Empty caches.
    pub fn new(config: &HierarchyConfig) -> Hierarchy {
        let array = |cache: &CacheConfig| CacheArray::new(u64::from(cache.size_kib) * 1024, usize::from(cache.ways));
        let arrays = |cache: &CacheConfig| (0..config.cores).map(|_| array(cache)).collect::<Vec<_>>();
        let ((_, last), above) = config.levels.split_last().expect("there is a last level");
        // The last level holds the directory and is everybody's, even where there is only one core and nothing to share.
        let first_shared = above.iter().take_while(|(_, level)| !level.shared).count();
        let private = config.levels[..first_shared].iter().map(|(_, level)| PrivateLevel {
            latency: u64::from(level.latency_cycles),
            response: u64::from(level.response_cycles),
            is_inclusive: level.inclusive,
            arrays: arrays(level),
            stats: LevelStats::default(),
        });
        let shared = config.levels[first_shared..].iter().map(|(_, level)| SharedLevel {
            latency: u64::from(level.latency_cycles),
            response: u64::from(level.response_cycles),
            is_inclusive: level.inclusive,
            array: array(level),
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
            level_names: config.levels.iter().map(|(name, _)| name.clone()).collect(),
            snoop: u64::from(last.snoop_cycles),
            write_buffers: usize::from(last.write_buffers),
            bus_round_trip: config.bus_round_trip,
            flushes_end_at_bus: config.flushes_end_at_bus,
            cleaned: config.cleaned,
            mshrs: MshrFile::new(usize::from(last.mshrs)),
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
            departures: Vec::new(),
            global_flush: None,
            persist_log: None,
            persist_sites: None,
            stats: HierarchyStats::default(),
        }
    }

    /// Serves a request that missed the first level at cycle `now`, or asks memory.
    pub fn request(&mut self, request: Request, now: u64) -> Outcome {
        self.descend(request, 0, true, now)
    }

    /// Takes a request down from the level `from`; one that is not new has looked into that level before, and been counted there.
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
            }
            if let Some((ready, version)) = hit {
                self.between.release(&request, ready);
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

    /// Looks for the line of `request`, which is at `level` at `cycle`: gives when the core has it, and in which version, if it is there.
    fn look_into(&mut self, level: usize, request: &Request, cycle: u64) -> Option<(u64, Version)> {
        match level.checked_sub(self.private.len()) {
            None => self.look_into_private(level, request, cycle),
            Some(shared) => self.look_into_shared(shared, request, cycle),
        }
    }

    fn look_into_shared(&mut self, level: usize, request: &Request, cycle: u64) -> Option<(u64, Version)> {
        let index = self.shared[level].array.find_and_touch(request.line)?;
        let in_last = if level == self.shared.len() - 1 { index } else { self.in_last(request.line) };
        let there = self.grant(request, level, in_last, cycle);
        let ready = there + self.way_back(level) + self.to_core(request.side);
        if level > 0 {
            // The shared levels that it missed get it too.
            let version = self.shared[level].array.line(index).version;
            self.fill_upper(request.line, version, there);
        }
        Some((ready, self.fill_first_level(request, in_last, ready)))
    }

    fn look_into_private(&mut self, level: usize, request: &Request, cycle: u64) -> Option<(u64, Version)> {
        let array = &mut self.private[level].arrays[request.core];
        let index = array
            .find_and_touch(request.line)
            .filter(|&index| request.want == Want::Read || array.line(index).state != State::Shared)?;
        let line = *array.line(index);
        let response: u64 = self.private[..=level].iter().map(|level| level.response).sum();
        let ready = cycle.max(line.ready) + response + self.to_core(request.side);
        self.fill_private(request, line.state, line.version, level, ready);
        Some((ready, line.version))
    }

    fn latency(&self, level: usize) -> u64 {
        let private = self.private.len();
        if level < private { self.private[level].latency } else { self.shared[level - private].latency }
    }

    fn level_stats(&mut self, level: usize) -> &mut LevelStats {
        let private = self.private.len();
        if level < private { &mut self.private[level].stats } else { &mut self.shared[level - private].stats }
    }

    /// Memory has answered the read `message` at cycle `now`: adds everyone who is served by that to `served`, in order.
    pub fn data_arrived(&mut self, message: &Message, now: u64, served: &mut Vec<Served>) {
        let line = self.reads[message.tag.0 as usize].take().expect("an answer belongs to a request");
        self.stats.read_completed(message, line);
        let newest = match self.written.get(line.0) {
            Version(0) => message.version,
            written => written,
        };
        // What was written while only warming up has not been sent to memory yet.
        if message.version != newest && !self.warm_writes.contains_key(&line) {
            debug_assert!(false, "a read of {line:?} got {:?} and not {newest:?}, which left last", message.version);
            self.stats.stale_reads += 1;
        }
        let (in_last, victim) = self.fill_shared(line, newest, now);
        if let Some(victim) = victim {
            self.write_back(victim, now);
        }
        for request in self.mshrs.resolve(line, now) {
            served.push(self.serve_from_last(request, in_last, now));
        }
        if !self.writes_behind_reads.is_empty() {
            for write in std::mem::take(&mut self.writes_behind_reads) {
                self.write_around_since(write, now);
            }
        }
        self.admit(now, served);
    }

    /// A write is complete: adds the cores whose flush or non-temporal store this ends to `acknowledged`, and requests that had waited for room to
    /// `served`.
    pub fn write_completed(
        &mut self,
        message: &Message,
        now: u64,
        acknowledged: &mut Vec<Acknowledged>,
        served: &mut Vec<Served>,
    ) {
        let write = self.writes[message.tag.0 as usize].take().expect("a completion belongs to a write");
        self.writes_under_way -= 1;
        self.stats.write_completed(message, write.line);
        self.log_completed(&write, now);
        if let Some(sites) = &mut self.persist_sites {
            sites.completed(message.tag.0 as usize, &message.stack);
        }
        let cycle = now + self.acknowledge_latency();
        acknowledged.extend(write.acknowledge.into_iter().map(|by| Acknowledged { by, cycle }));
        while self.writes_under_way < self.write_buffers
            && let Some(blocked) = self.blocked_writes.pop_front()
        {
            let done = match blocked {
                BlockedWrite::Flush { by, line, flush, arrived } => {
                    self.flush_since(by, line, flush, arrived, now).map(|cycle| (by, cycle))
                }
                BlockedWrite::NonTemporal(write) => {
                    self.write_around_since(write, now);
                    None
                }
            };
            acknowledged.extend(done.map(|(by, cycle)| Acknowledged { by, cycle }));
        }
        self.admit(now, served);
    }

    /// Flushes `line` out of every cache: gives the cycle at which it is complete if that is known, else
    /// [`Hierarchy::write_completed`] will tell.
    pub fn flush(&mut self, by: Requester, line: LineAddress, flush: Flush, now: u64) -> Option<u64> {
        self.flush_since(by, line, flush, now, now)
    }

    /// The same for a flush that came in cycle `arrived` and may have had to wait.
    fn flush_since(&mut self, by: Requester, line: LineAddress, flush: Flush, arrived: u64, now: u64) -> Option<u64> {
        let lookup: u64 = self.private.iter().map(|level| level.latency).sum::<u64>()
            + self.shared.iter().map(|level| level.latency).sum::<u64>();
        if self.writes_under_way >= self.write_buffers {
            self.stats.write_buffer_full += 1;
            self.blocked_writes.push_back(BlockedWrite::Flush { by, line, flush, arrived });
            return None;
        }
        let (newest, snooped) = self.collect(line, Some(by.core), !flush.invalidates());
        let ends_at_bus = self.flushes_end_at_bus || flush.reaches() == Reach::Coherence;
        let bus = ends_at_bus.then_some(self.bus_round_trip);
        let stored = newest.map_or(0, |(_, stored)| stored);
        let cycle = stored.max(now + lookup) + if snooped { self.snoop } else { 0 };
        if bus.is_none() {
            self.log_promise(by, line, newest.map(|(version, _)| version), cycle);
        }
        match newest {
            Some((version, _)) => {
                let way = Way { begun: by.issued, looked_up: arrived + lookup };
                let slot = self.write(line, version, ByteMask::FULL, Cause::Flush, way, cycle);
                self.note_served(by, line, persist_sites::Served::Sent(slot));
                if let Some(bus) = bus {
                    return Some(cycle + bus + self.acknowledge_latency());
                }
                self.writes[slot].as_mut().expect("just made").acknowledge.add(by);
                None
            }
            None => {
                self.stats.clean_flushes += 1;
                // Writes of a line are completed in order, so the youngest stands for all.
                let same_line = self.writes.iter_mut().flatten().filter(|write| write.line == line);
                match same_line.max_by_key(|write| write.sequence) {
                    Some(write) if bus.is_none() => {
                        self.stats.flushes_behind_writes += 1;
                        write.acknowledge.add(by);
                        self.note_served(by, line, persist_sites::Served::Clean { waits: true });
                        None
                    }
                    _ => {
                        self.log_kept(by, now);
                        self.note_served(by, line, persist_sites::Served::Clean { waits: false });
                        Some(cycle + bus.unwrap_or(0) + self.acknowledge_latency())
                    }
                }
            }
        }
    }

    /// Writes the bytes `mask` of `line` around the caches (a combined non-temporal store). [`Hierarchy::write_completed`] tells when it is
    /// complete.
    pub fn write_around(&mut self, by: Requester, line: LineAddress, mask: ByteMask, now: u64) {
        self.write_around_since(WriteAround { by, line, mask, arrived: now }, now);
    }

    /// The same for one that may have had to wait.
    fn write_around_since(&mut self, write: WriteAround, now: u64) {
        if self.mshrs.find(write.line).is_some() {
            // A read that is under way would bring back what was there before, and leave it in the caches.
            self.writes_behind_reads.push(write);
            return;
        }
        if self.writes_under_way >= self.write_buffers {
            self.stats.write_buffer_full += 1;
            self.blocked_writes.push_back(BlockedWrite::NonTemporal(write));
            return;
        }
        self.send_around(write, now);
    }

    /// Sends one for which there is room.
    fn send_around(&mut self, write: WriteAround, now: u64) {
        let WriteAround { by, line, mask, arrived } = write;
        let (newest, _) = self.collect(line, Some(by.core), false);
        let (before, stored) = newest.unwrap_or_else(|| (self.written.get(line.0), now));
        let mask = if newest.is_some() { ByteMask::FULL } else { mask };
        let version = Version(before.0 + 1);
        self.log_promise(by, line, Some(version), stored.max(now));
        let way = Way { begun: by.issued, looked_up: arrived };
        let slot = self.write(line, version, mask, Cause::NonTemporalStore, way, stored.max(now));
        self.note_served(by, line, persist_sites::Served::Sent(slot));
        self.writes[slot].as_mut().expect("just made").acknowledge.add(by);
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
        let core = match message.is_write() {
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

    /// Logs from now on what leaves for PM and what is acknowledged.
    pub fn log_persists(&mut self) {
        self.persist_log.get_or_insert_default();
    }

    /// That log, if it is kept.
    pub fn persist_log(&self) -> Option<&PersistLog> {
        self.persist_log.as_deref()
    }

    /// The newest version of a PM line: in any cache, else the last that left. A load that missed no invalidation sees this one.
    pub fn newest_version(&self, line: LineAddress) -> Version {
        let private = self.private.iter().flat_map(|level| &level.arrays);
        let shared = self.shared.iter().map(|level| &level.array);
        let cached = self.l1d.iter().chain(private).chain(shared).filter_map(|array| array.get(line));
        cached.map(|copy| copy.version).fold(self.written.get(line.0), Version::max)
    }

    /// Every copy of every line, for tests of what must hold among them.
    #[cfg(test)]
    pub(super) fn copies(&self) -> Vec<super::tests::Copy> {
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
        let levels = levels.enumerate().map(|(index, level)| level.stats(index == last));
        let mut nodes: Vec<_> = self.level_names.iter().cloned().zip(levels).collect();
        nodes.push(("memory_border".into(), self.stats.stats()));
        nodes
    }

    /// Cycles from the last level's knowledge that a write is complete to the core's.
    fn acknowledge_latency(&self) -> u64 {
        self.way_back(self.shared.len() - 1) + self.data_response
    }

    /// Cycles from a fill of a first level to the core.
    fn to_core(&self, side: Side) -> u64 {
        match side {
            Side::Data => self.data_response,
            Side::Instruction => self.code_response,
            Side::Walker => 0,
        }
    }

    /// Cycles from data in the shared level `level` to the first level.
    fn way_back(&self, level: usize) -> u64 {
        let private: u64 = self.private.iter().map(|level| level.response).sum();
        private + self.shared[..=level].iter().map(|level| level.response).sum::<u64>()
    }

    fn time_of(&self, cycle: u64) -> Time {
        Time::ZERO + self.period * cycle
    }

    /// Serves a request whose line lies at `in_last` in the last level, and in none above it.
    fn serve_from_last(&mut self, request: Request, in_last: usize, cycle: u64) -> Served {
        let last = self.shared.len() - 1;
        let ready = self.grant(&request, last, in_last, cycle) + self.way_back(last) + self.to_core(request.side);
        let version = self.fill_first_level(&request, in_last, ready);
        self.between.release(&request, ready);
        Served { request, ready, version }
    }

    fn write_back(&mut self, victim: Victim, now: u64) {
        let way = Way { begun: now, looked_up: now };
        self.write(victim.line, victim.version, ByteMask::FULL, Cause::Writeback, way, victim.stored.max(now));
    }

    /// Asks memory at `cycle` for a line that may have been missed earlier: its latency runs from there.
    fn ask_memory(&mut self, read: BlockedRead, cycle: u64) {
        let BlockedRead { request, missed } = read;
        if let Some(mshr) = self.mshrs.find(request.line) {
            self.stats.merged += 1;
            mshr.add(request);
            return;
        }
        if self.mshrs.room(cycle) != Room::Now || self.writes_under_way >= self.write_buffers {
            self.stats.mshr_full += 1;
            self.blocked.push_back(read);
            return;
        }
        self.mshrs.allocate(request.line, request);
        let cycle = self.behind_writes(request.line, cycle);
        let tag = free_slot(&mut self.reads, request.line);
        let mut message = Message::read(request.line, Tag(tag as u32), request.cause, self.time_of(request.issued));
        message.stack.charge(Stage::Core, self.time_of(missed));
        message.stack.charge(Stage::Cache, self.time_of(cycle));
        self.departures.push(Departure { cycle, message });
    }

    /// Requests that found no MSHR go on as far as there is room now.
    fn admit_blocked(&mut self, now: u64, served: &mut Vec<Served>) {
        while let Some(&read) = self.blocked.front() {
            let request = read.request;
            // Room may come before it has even missed.
            let cycle = read.missed.max(now);
            let fits = self.mshrs.find(request.line).is_some()
                || (self.mshrs.room(now) == Room::Now && self.writes_under_way < self.write_buffers);
            if !fits {
                return;
            }
            self.blocked.pop_front();
            let last = self.shared.len() - 1;
            match self.shared[last].array.find_and_touch(request.line) {
                None => self.ask_memory(read, cycle),
                // Another core's request has brought it meanwhile.
                Some(in_last) => served.push(self.serve_from_last(request, in_last, cycle)),
            }
        }
    }

    /// Requests that found no room go on as far as there is some now.
    fn admit(&mut self, now: u64, served: &mut Vec<Served>) {
        self.admit_blocked(now, served);
        if self.between.is_idle() {
            return;
        }
        for Blocked { request, level, missed } in self.between.take_blocked() {
            if let Outcome::Ready(ready, version) = self.descend(request, level, false, missed.max(now)) {
                served.push(Served { request, ready, version });
            }
        }
    }

    /// The first cycle from `cycle` on in which a request for `line` leaves behind the writes of it: a look at other caches takes longer for some
    /// requests than for others.
    fn behind_writes(&self, line: LineAddress, cycle: u64) -> u64 {
        if self.writes_under_way == 0 {
            return cycle;
        }
        let same_line = self.writes.iter().flatten().filter(|write| write.line == line);
        same_line.map(|write| write.departs).fold(cycle, u64::max)
    }

    /// Takes down from now on what is written to PM.
    pub fn log_written_back(&mut self) {
        self.written_back.get_or_insert_default();
    }

    /// What has been written to PM since the last call, if that is taken down.
    pub fn take_written_back(&mut self) -> impl Iterator<Item = (LineAddress, Version)> {
        self.written_back.iter_mut().flat_map(|log| log.drain(..))
    }

    /// Sends a write and gives its slot.
    fn write(
        &mut self,
        line: LineAddress,
        version: Version,
        mask: ByteMask,
        cause: Cause,
        way: Way,
        cycle: u64,
    ) -> usize {
        let departs = self.behind_writes(line, cycle);
        let time = self.time_of(departs);
        if is_pm(line) {
            self.stats.pm_writes += 1;
            self.leave_for_pm(line, version, departs);
        }
        self.writes_sent += 1;
        let pending =
            PendingWrite { line, version, sequence: self.writes_sent, departs, acknowledge: Waiters::default() };
        let slot = free_slot(&mut self.writes, pending);
        self.writes_under_way += 1;
        let begun = self.time_of(way.begun);
        let mut message = Message::write(line, Tag(slot as u32), cause, version, mask, begun);
        message.stack.charge(Stage::Core, self.time_of(way.looked_up));
        message.stack.charge(Stage::Cache, time);
        self.departures.push(Departure { cycle: departs, message });
        slot
    }

    /// Takes down that a PM line leaves in `cycle`.
    fn leave_for_pm(&mut self, line: LineAddress, version: Version, cycle: u64) {
        debug_assert_ne!(version, Version(0), "what is written has been stored");
        *self.written.get_mut(line.0) = version;
        if let Some(log) = &mut self.written_back {
            log.push((line, version));
        }
        let time = self.time_of(cycle);
        if let Some(log) = &mut self.persist_log {
            log.issue(time, line, version);
        }
    }

    fn note_served(&mut self, by: Requester, line: LineAddress, served: persist_sites::Served) {
        if let Some(sites) = &mut self.persist_sites {
            sites.served(by.core, by.id, line, served);
        }
    }

    fn log_promise(&mut self, by: Requester, line: LineAddress, newest: Option<Version>, cycle: u64) {
        let time = self.time_of(cycle);
        if let Some(log) = self.persist_log.as_mut().filter(|_| is_pm(line)) {
            let version = newest.unwrap_or_else(|| self.written.get(line.0));
            log.promise(Promise { time, by, line, version, is_clean: newest.is_none(), kept: None });
        }
    }

    fn log_kept(&mut self, by: Requester, now: u64) {
        let time = self.time_of(now);
        if let Some(log) = &mut self.persist_log {
            log.keep(time, by);
        }
    }

    fn log_completed(&mut self, write: &PendingWrite, now: u64) {
        let time = self.time_of(now);
        if let Some(log) = self.persist_log.as_mut().filter(|_| is_pm(write.line)) {
            log.complete(time, write.line, write.version);
            write.acknowledge.iter().for_each(|&by| log.keep(time, by));
        }
    }
}

/// Puts `content` into the first free slot.
fn free_slot<T>(slots: &mut Vec<Option<T>>, content: T) -> usize {
    match slots.iter().position(Option::is_none) {
        Some(slot) => {
            slots[slot] = Some(content);
            slot
        }
        None => {
            slots.push(Some(content));
            slots.len() - 1
        }
    }
}
