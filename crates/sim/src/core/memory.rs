//! Loads and address translation: from issue to data.

use super::access_sites::Origin;
use super::environment::{CoreRequest, Environment};
use super::page_walks::PageWalks;
use super::pipeline::Core;
use super::reorder_buffer::UNKNOWN;
use super::store_queue::Forwarding;
use super::thread::{Extra, Thread};
use super::translation::Translation;
use crate::address_space::page_table::{PAGE_SHIFT, lines_of_access};
use crate::cache::config::CacheConfig;
use crate::cache::hierarchy::{Served, Side, Want};
use crate::cache::mshr::Room;
use crate::cache::observation_log::Access;
use crate::cache::prefetcher::Prefetcher;
use fencepost_isa::micro_op::{DecodedBlock, MicroOp, Operation, Register};
use fencepost_kernel::line::{LINE_BYTES, LineAddress};
use fencepost_kernel::message::Cause;

/// What waits for a line at the first-level data cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiter {
    /// A part of the load in that slot of the reorder buffer.
    Load(u32),
    /// The store queue: it looks again.
    Stores,
    /// No access: the line is fetched ahead of one.
    Prefetch,
}

/// The prefetcher of the first-level data cache.
#[derive(Clone, Debug)]
pub struct DataPrefetcher {
    pub(super) kind: Prefetcher,
    /// Whether it goes on in the next page.
    pub(super) crosses_pages: bool,
}

impl DataPrefetcher {
    /// The one that the cache's configuration asks for, if any.
    pub fn of(l1d: &CacheConfig) -> Option<DataPrefetcher> {
        Some(DataPrefetcher { kind: Prefetcher::of(l1d)?, crosses_pages: l1d.prefetch_next_page })
    }
}

/// The load queue: a load holds its entry from dispatch to commit.
#[derive(Clone, Debug)]
pub struct LoadQueue {
    /// When the load of each entry commits.
    commits: Box<[u64]>,
    next: usize,
    /// Loads that found no MSHR, in order.
    blocked: Vec<BlockedLoad>,
    /// Loads whose line has just been written past the caches.
    behind_combined: Vec<BlockedLoad>,
    /// Loads, and stores too, that wait for their translation.
    pub(super) walks: PageWalks,
}

/// A load that waits to look for a line again.
#[derive(Clone, Copy, Debug)]
struct BlockedLoad {
    slot: u32,
    line: LineAddress,
    /// The cycle in which it issued.
    issued: u64,
    /// The cycle in which it missed: a register may be free before.
    missed: u64,
}

impl LoadQueue {
    /// An empty queue in front of so many page walkers.
    pub fn new(entries: usize, walkers: u8) -> LoadQueue {
        LoadQueue {
            commits: vec![0; entries].into(),
            next: 0,
            blocked: Vec::new(),
            behind_combined: Vec::new(),
            walks: PageWalks::new(walkers),
        }
    }

    /// Forgets everything: power is gone.
    pub fn clear(&mut self) {
        self.commits.fill(0);
        self.next = 0;
        self.blocked.clear();
        self.behind_combined.clear();
        self.walks.clear();
    }

    /// When an entry is free for the next load; none if that is not known.
    #[inline]
    pub fn room_at(&self) -> Option<u64> {
        let commit = self.commits[self.next];
        (commit != UNKNOWN).then_some(commit)
    }

    /// Whether loads wait for non-temporal stores.
    #[inline]
    pub fn has_behind_combined(&self) -> bool {
        !self.behind_combined.is_empty()
    }

    /// Takes the entry and gives its index.
    #[inline]
    pub fn push(&mut self) -> u32 {
        let index = self.next;
        self.commits[index] = UNKNOWN;
        self.next = if index + 1 == self.commits.len() { 0 } else { index + 1 };
        index as u32
    }

    /// The load of entry `index` commits at `cycle`.
    #[inline]
    pub fn commit(&mut self, index: u32, cycle: u64) {
        self.commits[index as usize] = cycle;
    }
}

impl Core {
    /// A load issues at `cycle`.
    pub(super) fn load(&mut self, slot: u32, cycle: u64, env: &mut Environment<'_>) {
        let cycle = cycle + self.timing.load_pipeline;
        let entry = self.rob.entry(slot);
        let (sequence, instruction, address, size) = (entry.sequence, entry.instruction, entry.address, entry.size);
        if address == 0 {
            // A masked-off element of a gather.
            self.complete(slot, cycle + 1);
            return;
        }
        if let Some(sets) = &mut self.store_sets
            && let Some(store) = self.stores.unexecuted(sequence, address, size, cycle, sets)
        {
            self.stats.overtaken_stores += 1;
            sets.overtaken(instruction, store);
        }
        match self.stores.forward(sequence, address, size, cycle) {
            Forwarding::None => {}
            Forwarding::Covered(data) => {
                self.stats.forwarded_loads += 1;
                self.note_load(slot, 1, env);
                self.complete(slot, cycle.max(data) + u64::from(self.config.forwarding_cycles));
                return;
            }
            // The store has to reach the cache first; its way there is taken to be as long as the load's, which then
            // finds there what the store has written.
            Forwarding::Partial(data) => {
                let lines = lines_of_access(address, size);
                self.stats.loads += lines;
                self.stats.l1d_hits += lines;
                self.note_load(slot, lines, env);
                let forwarding = u64::from(self.config.forwarding_cycles);
                self.complete(slot, cycle.max(data) + forwarding + self.timing.l1d);
                return;
            }
            Forwarding::Waits(store) => {
                if !self.config.loads_hold_issue_queue {
                    self.issue.wait();
                }
                self.rob.wait_for_entry(slot, store);
                return;
            }
        }
        let (physical, translated) = self.translate(slot, address, true, cycle, env);
        if let Some(translated) = translated {
            self.load_translated(slot, physical, cycle, translated, env);
        }
    }

    /// A load that has just been dispatched waits for the last store of its set.
    pub(super) fn wait_for_store_set(&mut self, slot: u32) {
        let instruction = self.rob.entry(slot).instruction;
        let Some(store) = self.store_sets.as_mut().and_then(|sets| sets.load_dispatched(instruction)) else { return };
        let entry = self.rob.entry(store.slot);
        // A store whose slot has another holder by now has committed long ago.
        if entry.sequence != store.sequence {
            return;
        }
        if entry.complete == UNKNOWN {
            self.rob.wait_for_entry(slot, store.slot);
        } else {
            let complete = entry.complete;
            let load = self.rob.entry_mut(slot);
            load.ready = load.ready.max(complete);
        }
    }

    /// A store, flush or locked instruction computes its address at `cycle`; gives the cycle at which it is translated,
    /// if that is known.
    pub(super) fn translate_store(&mut self, slot: u32, cycle: u64, env: &mut Environment<'_>) -> Option<u64> {
        let entry = self.rob.entry(slot);
        let (address, queue_index) = (entry.address, entry.queue_index);
        if matches!(entry.operation, Operation::Fence(_)) || address == 0 {
            return Some(cycle);
        }
        let (physical, translated) = self.translate(slot, address, false, cycle, env);
        self.stores.entry_mut(queue_index).physical = physical;
        translated
    }

    /// A software prefetch. It is dropped where the TLB has no translation: what only hints at an address walks no page
    /// table.
    pub(super) fn prefetch(&mut self, address: u64, cycle: u64, env: &mut Environment<'_>) {
        let translated = self.tlb.translate_if_known(address, env.table);
        let Some(physical) = translated.filter(|&physical| !self.loads.walks.has_waiting(physical)) else {
            self.stats.dropped_prefetches += 1;
            return;
        };
        self.fetch_ahead(physical, self.loads.walks.end_of_walk(physical, cycle), env);
    }

    /// A line of the page behind the one that a prefetcher follows: a walk whose entry is at hand is part of it, if a
    /// walker is free.
    fn prefetch_next_page(&mut self, address: u64, cycle: u64, env: &mut Environment<'_>) {
        let can_walk = self.tlb.is_known(address) || self.loads.walks.is_free(cycle);
        let near = if can_walk { self.tlb.translate_if_near(address, env.table) } else { None };
        let translated = match near.filter(|&(physical, _)| !self.loads.walks.has_waiting(physical)) {
            Some((physical, Translation::Walk)) => self.walk_without_read(physical, cycle).map(|end| (physical, end)),
            Some((physical, _)) => Some((physical, self.loads.walks.end_of_walk(physical, cycle))),
            None => None,
        };
        match translated {
            Some((physical, cycle)) => self.fetch_ahead(physical, cycle, env),
            None => self.stats.dropped_prefetches += 1,
        }
    }

    /// Fetches the line at `physical` at `cycle`, if it is neither there nor on its way and there is room.
    fn fetch_ahead(&mut self, physical: u64, cycle: u64, env: &mut Environment<'_>) {
        let line = LineAddress::containing(physical);
        if env.l1d.find(line).is_some() || self.mshrs.find(line).is_some() || self.mshrs.room(cycle) != Room::Now {
            return;
        }
        self.miss(line, Want::Read, Cause::Prefetch, Waiter::Prefetch, cycle, cycle, env);
    }

    /// A line that this core asked for is there, or known to be at `served.ready`.
    pub fn line_arrived(&mut self, served: &Served, env: &mut Environment<'_>) {
        let line = served.request.line;
        match served.request.side {
            Side::Instruction => {
                if self.front_end.awaited == Some(line) {
                    self.front_end.awaited = None;
                    self.front_end.arrived = Some(line);
                    self.dispatch_from(served.ready);
                }
            }
            Side::Walker => self.walk_done(line, served.ready, env),
            Side::Level(_) => unreachable!("no core is told what a level has fetched for itself"),
            Side::Data => {
                if let Some(sites) = &mut env.accesses {
                    sites.line_arrived(env.core, line, Origin::of(served.source, line));
                }
                let mut stores_wait = false;
                for waiter in self.mshrs.resolve(line, served.ready) {
                    match waiter {
                        Waiter::Load(slot) => {
                            env.observe(served.ready, line, served.version, Access::Fill);
                            if let Some(sites) = &mut env.accesses {
                                let origin = Origin::of(served.source, line);
                                sites.load_got_line(env.core, self.rob.entry(slot).queue_index, origin);
                            }
                            self.part_arrived(slot, served.ready);
                        }
                        Waiter::Stores => stores_wait = true,
                        Waiter::Prefetch => {}
                    }
                }
                self.retry_blocked(served.ready, env);
                self.retry_ownership(served.ready, env);
                if stores_wait {
                    self.drain_stores(env);
                }
            }
        }
    }

    /// A line comes that was only prefetched, when the core has no thread any more.
    pub fn prefetch_arrived(&mut self, served: &Served) {
        if served.request.side == Side::Data {
            let waiters = self.mshrs.resolve(served.request.line, served.ready);
            // A store may have found its line when another one came: lines that come together are filled together.
            let has_load = waiters.iter().any(|waiter| matches!(waiter, Waiter::Load(_)));
            debug_assert!(!has_load, "a thread left with a load under way");
        }
    }

    /// Asks the next level for `line`, at `cycle` at the earliest, for what issued in cycle `issued`.
    #[expect(clippy::too_many_arguments, reason = "each says something of the request that the others do not")]
    pub(super) fn miss(
        &mut self,
        line: LineAddress,
        want: Want,
        cause: Cause,
        waiter: Waiter,
        issued: u64,
        cycle: u64,
        env: &mut Environment<'_>,
    ) {
        self.mshrs.allocate(line, waiter, cycle);
        env.requests.push((cycle, CoreRequest::Line { line, want, side: Side::Data, cause, issued }));
    }

    pub(super) fn load_translated(
        &mut self,
        slot: u32,
        physical: u64,
        issued: u64,
        cycle: u64,
        env: &mut Environment<'_>,
    ) {
        let (address, size) = (self.rob.entry(slot).address, self.rob.entry(slot).size);
        let mut data = cycle;
        let lines = lines_of_access(address, size);
        self.stats.loads += lines;
        self.note_load(slot, lines, env);
        for index in 0..lines {
            let line = env.table.line_of_access(address, physical, index);
            if self.waits_for_combined(slot, line, cycle) {
                self.stats.l1d_misses += 1;
                self.rob.entry_mut(slot).outstanding += 1;
                self.loads.behind_combined.push(BlockedLoad { slot, line, issued, missed: cycle + self.timing.l1d });
                continue;
            }
            match env.l1d.find_and_touch(line) {
                Some(index) => {
                    self.stats.l1d_hits += 1;
                    let (ready, version) = (env.l1d.line(index).ready, env.l1d.line(index).version);
                    let there = ready.max(cycle + self.timing.l1d);
                    data = data.max(there);
                    env.observe(there, line, version, Access::Hit);
                }
                None => {
                    self.stats.l1d_misses += 1;
                    self.rob.entry_mut(slot).outstanding += 1;
                    self.load_missed(slot, line, issued, cycle + self.timing.l1d, env);
                }
            }
        }
        let entry = self.rob.entry_mut(slot);
        entry.ready = entry.ready.max(data);
        let instruction = entry.instruction;
        if entry.outstanding == 0 {
            self.complete(slot, data);
        }
        self.train_prefetcher(instruction, address, cycle, env);
    }

    /// The load in `slot` accesses so many lines, or gets its data from the store queue: what has just been counted of
    /// the core is counted of its site.
    #[inline]
    fn note_load(&mut self, slot: u32, accesses: u64, env: &mut Environment<'_>) {
        if let Some(sites) = &mut env.accesses {
            sites.load_accessed(env.core, self.rob.entry(slot).queue_index, accesses);
        }
    }

    /// A load or store of `instruction` has looked into l1d: what is worth having next is fetched, within its page or,
    /// where the prefetcher does that, in the next one.
    #[inline]
    pub(super) fn train_prefetcher(&mut self, instruction: u32, address: u64, cycle: u64, env: &mut Environment<'_>) {
        let Some(prefetcher) = &mut self.prefetcher else { return };
        let crosses_pages = prefetcher.crosses_pages;
        for ahead in prefetcher.kind.observe(instruction, address) {
            if ahead >> PAGE_SHIFT == address >> PAGE_SHIFT {
                self.stats.prefetches += 1;
                self.prefetch(ahead, cycle, env);
            } else if crosses_pages && ahead >> PAGE_SHIFT == (address >> PAGE_SHIFT) + 1 {
                self.stats.prefetches += 1;
                self.prefetch_next_page(ahead, cycle, env);
            }
        }
    }

    fn load_missed(&mut self, slot: u32, line: LineAddress, issued: u64, cycle: u64, env: &mut Environment<'_>) {
        if let Some(mshr) = self.mshrs.find(line) {
            mshr.add(Waiter::Load(slot));
            return;
        }
        match self.mshrs.room(cycle) {
            Room::Now => self.miss(line, Want::Read, Cause::DemandRead, Waiter::Load(slot), issued, cycle, env),
            Room::At(later) => {
                self.stats.l1d_mshr_full += 1;
                self.miss(line, Want::Read, Cause::DemandRead, Waiter::Load(slot), issued, later, env);
            }
            Room::Unknown => {
                self.stats.l1d_mshr_full += 1;
                self.loads.blocked.push(BlockedLoad { slot, line, issued, missed: cycle });
            }
        }
    }

    /// One line of a load is there.
    fn part_arrived(&mut self, slot: u32, cycle: u64) {
        let entry = self.rob.entry_mut(slot);
        entry.ready = entry.ready.max(cycle);
        entry.outstanding -= 1;
        if entry.outstanding == 0 {
            let ready = entry.ready;
            self.complete(slot, ready);
        }
    }

    /// An MSHR has become known to be free: loads that found none look again.
    fn retry_blocked(&mut self, cycle: u64, env: &mut Environment<'_>) {
        if self.loads.blocked.is_empty() {
            return;
        }
        let blocked = std::mem::take(&mut self.loads.blocked);
        self.look_again(blocked, cycle, env);
    }

    /// A non-temporal store is complete at `cycle`: loads that wait for one look again.
    pub(super) fn retry_behind_combined(&mut self, cycle: u64, env: &mut Environment<'_>) {
        let waiting = std::mem::take(&mut self.loads.behind_combined);
        self.look_again(waiting, cycle, env);
    }

    fn look_again(&mut self, loads: Vec<BlockedLoad>, cycle: u64, env: &mut Environment<'_>) {
        for BlockedLoad { slot, line, issued, missed } in loads {
            let cycle = cycle.max(missed);
            if self.waits_for_combined(slot, line, cycle) {
                self.loads.behind_combined.push(BlockedLoad { slot, line, issued, missed });
                continue;
            }
            match env.l1d.find(line) {
                Some(index) => {
                    let (ready, version) = (env.l1d.line(index).ready.max(cycle), env.l1d.line(index).version);
                    env.observe(ready, line, version, Access::Hit);
                    self.part_arrived(slot, ready);
                }
                None => self.load_missed(slot, line, issued, cycle, env),
            }
        }
    }
}

impl Thread {
    /// Turns a repeated string instruction into loads and stores of up to a line each, to be dispatched next.
    pub(super) fn push_string(&mut self, block: &DecodedBlock, micro_op: &MicroOp) {
        debug_assert_eq!(block.micro_ops[self.micro_op as usize], *micro_op, "the instruction that comes next");
        let operands = micro_op.string;
        let [source_pointer, destination_pointer, ..] = micro_op.sources;
        let pair = |first: u16| (self.slot(first), self.slot(first + 1));
        let access = operands.access;
        let source = access.has_source().then(|| pair(micro_op.slot));
        let destination =
            access.has_destination().then(|| pair(micro_op.slot + if access.has_source() { 2 } else { 0 }));
        let (before, after) = destination.or(source).expect("a string instruction has an operand");
        let bytes = before.abs_diff(after);
        let start =
            |(before, after): (u64, u64)| if after >= before { before } else { after + u64::from(micro_op.size) };
        let (source, destination) = (source.map(start), destination.map(start));
        let mut done = 0;
        while done < bytes {
            let place = destination.or(source).expect("there is an operand") + done;
            let chunk = (LINE_BYTES - place % LINE_BYTES).min(bytes - done);
            let mut part = MicroOp { size: chunk as u16, ..MicroOp::default() };
            if let Some(source) = source {
                part.operation = Operation::Load;
                part.sources[..3].copy_from_slice(&[Register::BARRIER, source_pointer, operands.count]);
                part.destinations[0] = Register::FIRST_LOADED;
                self.extra.push_back(Extra { micro_op: part, address: source + done });
            }
            if let Some(destination) = destination {
                let data = if access.has_source() { Register::FIRST_LOADED } else { operands.value };
                part.operation = if access.writes() { Operation::Store } else { Operation::Load };
                part.sources[0] = if access.writes() { data } else { Register::BARRIER };
                part.sources[1..3].copy_from_slice(&[destination_pointer, operands.count]);
                part.destinations[0] = if access.writes() { Register::NONE } else { Register::FIRST_LOADED };
                self.extra.push_back(Extra { micro_op: part, address: destination + done });
            }
            done += chunk;
        }
        self.push_string_result(micro_op);
    }

    /// The pointers and the count after a string instruction; if it compares, they depend on what was read.
    fn push_string_result(&mut self, micro_op: &MicroOp) {
        let mut result = *micro_op;
        result.operation = Operation::Integer;
        if !micro_op.string.access.writes() {
            result.sources[3] = Register::FIRST_LOADED;
        }
        self.extra.push_back(Extra { micro_op: result, address: 0 });
    }
}
