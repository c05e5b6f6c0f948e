//! Stores, flushes and fences taking effect, in the order of the store queue (x86-TSO with its persistency extensions).
//!
//! A store takes effect when its core owns the line, and not before simulated time has come near that cycle: others see
//! it then. A flush that is ordered with stores holds the queue until it is complete; one that is ordered with fences
//! alone leaves it when it is sent. A fence leaves it when what it waits for is complete: every earlier flush and
//! non-temporal store, unless it only orders. An atomic read-modify-write waits as its own fence does (a locked
//! instruction of x86 for all of that) and then reads and writes atomically.

use std::collections::VecDeque;

use super::config::{ClflushOrder, SfenceOrder};
use super::environment::{CoreRequest, Environment};
use super::issue::Unit;
use super::memory::Waiter;
use super::pipeline::Core;
use super::reorder_buffer::UNKNOWN;
use super::store_log::Performed;
use super::store_queue::StoreEntry;
use super::write_combining::Combined;
use crate::address_space::page_table::lines_of_access;
use crate::cache::array::State;
use crate::cache::hierarchy::Want;
use crate::cache::mshr::Room;
use crate::cache::observation_log::Access;
use crate::cache::persist_sites::FenceWait;
use fencepost_isa::micro_op::{Awaited, Fence, Flush, FlushOrder, Operation, Ordered};
use fencepost_kernel::line::{ByteMask, LINE_BYTES, LineAddress};
use fencepost_kernel::message::Cause;
use fencepost_kernel::time::Time;

/// A line that cores take from each other counts as the core's own again when it has had it for so long: longer than
/// the way of a request through caches and memory, so whoever wanted it has taken it. Exact order costs the host a wake
/// for each store.
const CONTENDED_CYCLES: u64 = 4096;

/// How far stores, flushes and fences have taken effect, and what keeps the next ones.
#[derive(Clone, Default)]
pub(super) struct Effects {
    /// When the last one took effect.
    pub cycle: u64,
    /// Stores that wait for an MSHR to fetch their lines, oldest first.
    pub unowned: VecDeque<UnownedStore>,
    /// The cycle behind the horizon in which the oldest store could take effect.
    pub held: Option<u64>,
    /// Marks that the thread has come to, while stores are logged: how many entries of the store queue come before
    /// each, and the cycle.
    pub marks: VecDeque<(u64, u64)>,
}

/// A store that found no MSHR to fetch its line for ownership.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnownedStore {
    /// Its entry in the store queue.
    index: u32,
    /// Its place in program order: the entry may have another holder by now.
    sequence: u64,
    line: LineAddress,
    /// When its address was there.
    reaches: u64,
}

/// The bytes that an access writes of its line number `index`.
pub(super) fn bytes_of_line(address: u64, size: u16, index: u64) -> ByteMask {
    let line_start = (address / LINE_BYTES + index) * LINE_BYTES;
    let start = address.max(line_start);
    let end = (address + u64::from(size.max(1))).min(line_start + LINE_BYTES);
    ByteMask((u64::MAX >> (64 - (end - start))) << (start - line_start))
}

/// A store misses its line, for the first time unless it `has_missed`: the log of accesses, if it is kept, says so.
fn note_missed_store(env: &mut Environment<'_>, has_missed: bool, index: u32, line: LineAddress) {
    if let Some(sites) = &mut env.accesses {
        sites.store_missed(env.core, index, line, !has_missed);
    }
}

impl Core {
    /// A store or flush has its address and data at its entry's ready time.
    pub(super) fn execute_store(&mut self, slot: u32, unit: Unit, env: &mut Environment<'_>) {
        let ready = self.rob.entry(slot).ready;
        let cycle = self.issue.issue(unit, ready, 1);
        if let Some(translated) = self.translate_store(slot, cycle, env) {
            self.store_translated(slot, translated, env);
        }
    }

    /// The address of a store or flush is translated.
    pub(super) fn store_translated(&mut self, slot: u32, cycle: u64, env: &mut Environment<'_>) {
        let entry = *self.rob.entry(slot);
        let physical = self.stores.entry_mut(entry.queue_index).physical;
        let waits_for_its_turn = match entry.operation {
            Operation::Atomic(_) => true,
            Operation::Flush(flush) => self.is_full_fence(flush),
            _ => false,
        };
        if waits_for_its_turn {
            let entry = self.rob.entry_mut(slot);
            entry.ready = entry.ready.max(cycle);
            entry.outstanding -= 1;
            return;
        }
        self.complete(slot, cycle + 1);
        if entry.operation == Operation::Store && self.config.prefetch_for_ownership {
            let line = LineAddress::containing(physical);
            let store = UnownedStore { index: entry.queue_index, sequence: entry.sequence, line, reaches: cycle };
            if !self.own_ahead(&store, cycle, env) {
                self.effects.unowned.push_back(store);
            }
            self.train_by_store(entry.queue_index, cycle, env);
        }
    }

    /// A store has looked into l1d in `cycle`: the prefetcher learns from the first time.
    #[inline]
    fn train_by_store(&mut self, queue_index: u32, cycle: u64, env: &mut Environment<'_>) {
        if self.prefetcher.is_none() {
            return;
        }
        let entry = self.stores.entry_mut(queue_index);
        let (instruction, address) = (entry.instruction, entry.address);
        if !std::mem::replace(&mut entry.has_trained, true) && address != 0 {
            self.train_prefetcher(instruction, address, cycle, env);
        }
    }

    /// An MSHR has become known to be free at `cycle`: stores that found none to fetch their lines ahead of their turn
    /// look again, oldest first.
    pub(super) fn retry_ownership(&mut self, cycle: u64, env: &mut Environment<'_>) {
        while let Some(&store) = self.effects.unowned.front() {
            let entry = self.stores.entry_mut(store.index);
            let is_waiting = entry.sequence == store.sequence && entry.released == UNKNOWN;
            if is_waiting && !self.own_ahead(&store, cycle.max(store.reaches), env) {
                return;
            }
            self.effects.unowned.pop_front();
        }
    }

    /// Fetches the line of a store for ownership ahead of its turn, unless it is here or on its way. False if there is
    /// no MSHR for that.
    fn own_ahead(&mut self, store: &UnownedStore, cycle: u64, env: &mut Environment<'_>) -> bool {
        let is_owned = env.l1d.get(store.line).is_some_and(|line| line.state != State::Shared);
        if is_owned || self.mshrs.find(store.line).is_some() {
            return true;
        }
        if self.mshrs.room(cycle) != Room::Now {
            return false;
        }
        let entry = self.stores.entry_mut(store.index);
        let has_missed = std::mem::replace(&mut entry.has_missed, true);
        self.stats.l1d_misses += u64::from(!has_missed);
        note_missed_store(env, has_missed, store.index, store.line);
        let reaches = cycle + self.timing.l1d;
        self.miss(store.line, Want::Own, Cause::DemandRead, Waiter::Prefetch, cycle, reaches, env);
        true
    }

    /// Whether the load in `slot` waits with `line`, which it looks for at `cycle`: a non-temporal store to it that is
    /// older has to be complete. Nothing is forwarded from one.
    #[inline]
    pub(super) fn waits_for_combined(&mut self, slot: u32, line: LineAddress, cycle: u64) -> bool {
        let combining = &mut self.combining;
        if combining.open.is_empty() && combining.written.is_empty() && !self.stores.has_non_temporal() {
            return false;
        }
        let load = self.rob.entry(slot);
        combining.holds_up_load(line, cycle)
            || self.stores.has_non_temporal_before(load.sequence, load.address, load.size)
    }

    /// A flush or non-temporal store of this core is complete at `cycle`.
    pub fn write_acknowledged(&mut self, id: u32, cycle: u64) {
        self.combining.under_way -= 1;
        self.combining.completions.push(cycle);
        self.combining.last_complete = self.combining.last_complete.max(cycle);
        if let Some(index) = self.combining.written.iter().position(|(_, sent)| *sent == id) {
            self.combining.written.swap_remove(index);
            self.combining.returned = Some(cycle);
        }
        if self.combining.holding == Some(id) {
            self.combining.holding_complete = Some(cycle);
        }
    }

    /// Sends what is left in the combining buffers: the thread is at its end.
    pub(super) fn send_combined(&mut self, env: &mut Environment<'_>) {
        let cycle = self.effects.cycle.max(self.last_commit.cycle);
        self.close_combining(cycle, env);
    }

    /// Lets everything at the head of the store queue take effect that can, and loads go on that waited for that.
    pub(super) fn drain_stores(&mut self, env: &mut Environment<'_>) {
        self.perform_stores(env);
        while let Some(cycle) = self.combining.returned.take() {
            self.retry_behind_combined(cycle, env);
            self.perform_stores(env);
        }
    }

    fn perform_stores(&mut self, env: &mut Environment<'_>) {
        self.effects.held = None;
        self.pass_marks(env);
        if !self.combining.open.is_empty() {
            self.send_full(self.effects.cycle, env);
        }
        while let Some(head) = self.stores.head() {
            if head.operation == Operation::Store && head.committed == UNKNOWN {
                return;
            }
            let entry = *head;
            let done = match entry.operation {
                Operation::Store => self.perform_store(&entry, env),
                Operation::NonTemporalStore => self.perform_non_temporal(&entry, env),
                Operation::Flush(flush) => match flush.order() {
                    FlushOrder::Stores => self.perform_ordered_flush(&entry, flush, env),
                    FlushOrder::Fences => self.perform_weak_flush(&entry, flush, env),
                },
                Operation::Fence(fence) => self.perform_fence(&entry, fence, env),
                Operation::Atomic(fence) => self.perform_atomic(&entry, fence, env),
                other => unreachable!("{other:?} does not use the store queue"),
            };
            let Some(cycle) = done else { return };
            self.effects.cycle = cycle;
            self.stores.release_head(cycle);
            self.pass_marks(env);
        }
    }

    /// The first cycle in which the head of the queue could take effect, if it has committed.
    fn turn(&self, entry: &StoreEntry) -> Option<u64> {
        (entry.committed != UNKNOWN).then(|| entry.committed.max(self.effects.cycle) + 1)
    }

    /// The same for what completes only when it is the oldest of all, and so commits after that.
    fn turn_of_oldest(&self, entry: &StoreEntry) -> Option<u64> {
        let (slot, head) = self.rob.head()?;
        let is_oldest = slot == entry.slot && head.sequence == entry.sequence && head.outstanding == 0;
        is_oldest.then(|| self.last_commit.cycle.max(self.effects.cycle).max(head.ready) + 1)
    }

    pub(super) fn time(&self, cycle: u64) -> Time {
        Time::ZERO + self.timing.period * cycle
    }

    fn perform_store(&mut self, entry: &StoreEntry, env: &mut Environment<'_>) -> Option<u64> {
        let turn = self.turn(entry)?;
        let owned = self.own(entry, turn, env);
        self.train_by_store(self.stores.head_index(), turn, env);
        let cycle = owned?;
        self.stats.stores += 1;
        let is_behind = self.config.fill_performs_store && cycle > turn;
        let performed = cycle - u64::from(is_behind);
        if let Some(sites) = &mut env.accesses {
            sites.store_performed(env.core, self.stores.head_index(), performed - turn);
        }
        Some(performed)
    }

    fn perform_atomic(&mut self, entry: &StoreEntry, fence: Fence, env: &mut Environment<'_>) -> Option<u64> {
        let turn = self.turn_of_oldest(entry)?;
        let ordered = self.when_awaited(fence, turn, env)?;
        let cycle = self.own(entry, ordered, env)? + self.timing.l1d;
        let alone = self.last_commit.cycle.max(self.rob.entry(entry.slot).ready) + 1;
        self.count_fence_stall(entry, FenceWait { alone, turn, ends: ordered }, env);
        self.stats.atomics += 1;
        self.stats.non_speculative += 1;
        self.complete(entry.slot, cycle);
        Some(cycle)
    }

    /// Writes the lines of a store, from `turn` on; gives the cycle of the last one, or asks for what is missing. What
    /// reads them, too, holds them until it is done.
    fn own(&mut self, entry: &StoreEntry, turn: u64, env: &mut Environment<'_>) -> Option<u64> {
        if entry.address == 0 {
            // A masked-off element of a scatter.
            return Some(turn);
        }
        let lines = lines_of_access(entry.address, entry.size);
        let mut cycle = turn.max(entry.lines_ready);
        let held = if matches!(entry.operation, Operation::Atomic(_)) { self.timing.l1d } else { 0 };
        // Each line is written as soon as it is owned: two cores that want the same two lines would take them from each
        // other for ever.
        for index in u64::from(entry.lines_written)..lines {
            let line = env.table.line_of_access(entry.address, entry.physical, index);
            let owned = env.l1d.find(line).filter(|&index| env.l1d.line(index).state != State::Shared);
            let head = self.stores.head().expect("it is the head");
            let Some(owned) = owned else {
                let has_missed = std::mem::replace(&mut head.has_missed, true);
                self.stats.l1d_misses += u64::from(!has_missed);
                if entry.operation == Operation::Store {
                    note_missed_store(env, has_missed, self.stores.head_index(), line);
                }
                self.ask_to_own(line, turn, cycle, env);
                return None;
            };
            // An older flush or non-temporal store takes the line as it is without this store.
            let overtakes =
                if self.combining.sent.is_empty() { None } else { self.combining.reaches(line, self.window.now) };
            let copy = env.l1d.line(owned);
            let may_lose_it = copy.is_contended && turn < copy.ready + CONTENDED_CYCLES;
            let limit = if may_lose_it { self.window.now } else { self.window.horizon };
            if turn > limit || overtakes.is_some() {
                self.effects.held = Some(overtakes.map_or(turn, |reaches| reaches + 1));
                return None;
            }
            env.l1d.touch(line, owned);
            let copy = env.l1d.line_mut(owned);
            copy.state = State::Modified;
            copy.version.0 += 1;
            cycle = cycle.max(copy.ready);
            copy.stored = cycle + held;
            let version = copy.version;
            env.observe(cycle, line, version, Access::Store);
            head.lines_written += 1;
            head.lines_ready = cycle;
            env.log_store(self.time(cycle), line, Performed::Store(version), (entry.address, entry.size));
        }
        self.stats.l1d_hits += if entry.has_missed { 0 } else { lines };
        self.watch(entry.physical, entry.size, cycle);
        Some(cycle)
    }

    fn ask_to_own(&mut self, line: LineAddress, issued: u64, cycle: u64, env: &mut Environment<'_>) {
        if let Some(mshr) = self.mshrs.find(line) {
            if !mshr.has(&Waiter::Stores) {
                mshr.add(Waiter::Stores);
            }
            return;
        }
        let cycle = cycle + self.timing.l1d;
        match self.mshrs.room(cycle) {
            Room::Now => self.miss(line, Want::Own, Cause::DemandRead, Waiter::Stores, issued, cycle, env),
            Room::At(later) => self.miss(line, Want::Own, Cause::DemandRead, Waiter::Stores, issued, later, env),
            // It looks again when any line arrives: settling always drains the store queue.
            Room::Unknown => self.stats.l1d_mshr_full += 1,
        }
    }

    fn perform_non_temporal(&mut self, entry: &StoreEntry, env: &mut Environment<'_>) -> Option<u64> {
        let begins = self.turn(entry)?;
        let mut turn = begins;
        let lines = lines_of_access(entry.address, entry.size);
        for index in 0..lines {
            let line = env.table.line_of_access(entry.address, entry.physical, index);
            let is_open = self.combining.open.iter().any(|open| open.line == line);
            if !is_open && self.combining.open.len() >= self.combining.buffers {
                turn = self.send_open(0, turn, env)?;
            }
        }
        self.note_hold(entry, begins, turn, env);
        for index in 0..lines {
            let line = env.table.line_of_access(entry.address, entry.physical, index);
            let mask = bytes_of_line(entry.address, entry.size, index);
            match self.combining.open.iter_mut().find(|open| open.line == line) {
                Some(open) => (open.mask.0, open.youngest) = (open.mask.0 | mask.0, turn),
                None => self.combining.open.push(Combined { line, mask, youngest: turn, awaited: None }),
            }
            env.log_store(self.time(turn), line, Performed::Combined, (entry.address, entry.size));
            if let Some(sites) = &mut env.sites {
                sites.combined(env.core, line, entry.instruction);
            }
        }
        self.stats.non_temporal_stores += 1;
        self.combining.returned = self.loads.has_behind_combined().then_some(turn);
        self.watch(entry.physical, entry.size, turn);
        self.send_full(turn, env);
        Some(turn)
    }

    /// Sends the combining buffer at `index`, as soon as the limit allows from `cycle` on: gives that cycle, if it is
    /// known.
    fn send_open(&mut self, index: usize, cycle: u64, env: &mut Environment<'_>) -> Option<u64> {
        let closes = cycle;
        let cycle = self.combining.room_at(cycle)?;
        let Combined { line, mask, youngest, .. } = self.combining.open.remove(index);
        let id = self.combining.send(line, cycle.max(self.window.now));
        self.combining.written.push((line, id));
        let issued = if mask.is_full() { youngest.min(cycle) } else { closes };
        env.log_store(self.time(cycle), line, Performed::SentCombined(id), (0, 0));
        if let Some(sites) = &mut env.sites {
            sites.sent_combined(env.core, id, line);
        }
        env.requests.push((cycle, CoreRequest::WriteAround { line, mask, id, issued }));
        Some(cycle)
    }

    /// Sends the combining buffers that are full or that loads wait for, as far as the limit allows.
    fn send_full(&mut self, cycle: u64, env: &mut Environment<'_>) {
        let leaves = |open: &Combined| open.mask.is_full() || open.awaited.is_some();
        while let Some(index) = self.combining.open.iter().position(leaves) {
            let awaited = self.combining.open[index].awaited.unwrap_or(cycle);
            if self.send_open(index, cycle.max(awaited), env).is_none() {
                return;
            }
        }
    }

    /// Sends all combining buffers, as far as the limit allows; says whether none is left.
    fn close_combining(&mut self, cycle: u64, env: &mut Environment<'_>) -> bool {
        while !self.combining.open.is_empty() {
            if self.send_open(0, cycle, env).is_none() {
                return false;
            }
        }
        true
    }

    /// The cycle, from `turn` on, in which every flush and non-temporal store so far is complete; none if that is not
    /// known.
    fn when_flushed(&mut self, turn: u64, env: &mut Environment<'_>) -> Option<u64> {
        if !self.close_combining(turn, env) || self.combining.under_way > 0 {
            return None;
        }
        Some(turn.max(self.combining.last_complete))
    }

    /// Whether `flush` waits until it is the oldest, and holds back loads as a full fence does.
    #[inline]
    pub(super) fn is_full_fence(&self, flush: Flush) -> bool {
        flush.order() == FlushOrder::Stores && self.config.clflush_order == ClflushOrder::FullFence
    }

    fn perform_ordered_flush(&mut self, entry: &StoreEntry, flush: Flush, env: &mut Environment<'_>) -> Option<u64> {
        let is_fence = self.is_full_fence(flush);
        let turn = if is_fence { self.turn_of_oldest(entry)? } else { self.turn(entry)? };
        if !entry.is_issued {
            self.send_holding_flush(entry, turn, flush, env)?;
            return None;
        }
        let complete = self.combining.holding_complete?;
        let mut cycle = complete.max(turn);
        if is_fence {
            cycle = self.when_flushed(cycle, env)? + u64::from(self.config.fence_cycles);
        }
        self.combining.holding = None;
        self.stats.clflush_stall.record(self.timing.period * (cycle - turn));
        self.note_hold(entry, turn, cycle, env);
        self.stats.non_speculative += u64::from(is_fence);
        if is_fence {
            if let Some(sites) = &mut env.sites {
                sites.fence(env.core, entry.instruction, FenceWait { alone: turn, turn: cycle, ends: cycle });
            }
            self.complete(entry.slot, cycle);
        }
        Some(cycle)
    }

    fn perform_weak_flush(&mut self, entry: &StoreEntry, flush: Flush, env: &mut Environment<'_>) -> Option<u64> {
        let turn = self.turn(entry)?;
        if !self.config.flush_holds_stores {
            let cycle = self.send_flush(entry, turn, flush, env)?;
            self.note_hold(entry, turn, cycle, env);
            return Some(cycle);
        }
        if !entry.is_issued {
            self.send_holding_flush(entry, turn, flush, env)?;
            return None;
        }
        let complete = self.combining.holding_complete?;
        self.combining.holding = None;
        self.note_hold(entry, turn, complete.max(turn), env);
        Some(complete.max(turn))
    }

    /// Sends a flush that holds the store queue, if it can be sent.
    fn send_holding_flush(
        &mut self,
        entry: &StoreEntry,
        turn: u64,
        flush: Flush,
        env: &mut Environment<'_>,
    ) -> Option<()> {
        self.send_flush(entry, turn, flush, env)?;
        self.combining.holding = Some(self.combining.next_id);
        self.combining.holding_complete = None;
        self.stores.head().expect("it is the head").is_issued = true;
        Some(())
    }

    /// Sends a flush as soon as the limit of flushes in flight allows from `turn` on: gives that cycle, if it is known.
    fn send_flush(&mut self, entry: &StoreEntry, turn: u64, flush: Flush, env: &mut Environment<'_>) -> Option<u64> {
        let line = LineAddress::containing(entry.physical);
        if let Some(open) = self.combining.open.iter().position(|open| open.line == line) {
            self.send_open(open, turn, env)?;
        }
        let cycle = self.combining.room_at(turn)?;
        let reaches = cycle + self.timing.l1d;
        let id = self.combining.send(line, reaches.max(self.window.now));
        self.stats.flushes += 1;
        if self.config.point_of_coherence.persists(flush) {
            env.log_store(self.time(reaches), line, Performed::SentFlush(id), (entry.address, entry.size));
        }
        if let Some(sites) = &mut env.sites {
            sites.sent(env.core, id, entry.instruction);
        }
        env.requests.push((reaches, CoreRequest::Flush { line, flush, id, issued: turn }));
        Some(cycle)
    }

    fn perform_fence(&mut self, entry: &StoreEntry, fence: Fence, env: &mut Environment<'_>) -> Option<u64> {
        if fence.orders() == Ordered::LoadsAndStores || self.config.sfence_order == SfenceOrder::Oldest {
            return self.perform_oldest_fence(entry, fence, env);
        }
        let turn = self.turn(entry)?;
        let cycle = self.when_awaited(fence, turn, env)?;
        self.stats.fences += 1;
        self.count_fence_stall(entry, FenceWait { alone: entry.committed + 1, turn, ends: cycle }, env);
        Some(cycle)
    }

    /// A fence that completes as the oldest micro-operation, so that nothing after it commits before.
    fn perform_oldest_fence(&mut self, entry: &StoreEntry, fence: Fence, env: &mut Environment<'_>) -> Option<u64> {
        let turn = self.turn_of_oldest(entry)?;
        let cycle = self.when_awaited(fence, turn, env)? + u64::from(self.config.fence_cycles);
        let alone = self.last_commit.cycle.max(self.rob.entry(entry.slot).ready) + 1;
        self.stats.non_speculative += 1;
        self.stats.fences += 1;
        self.count_fence_stall(entry, FenceWait { alone, turn, ends: cycle }, env);
        self.complete(entry.slot, cycle);
        Some(cycle)
    }

    /// The cycle, from `turn` on, at which `fence` has nothing left to wait for; `None` while unknown.
    fn when_awaited(&mut self, fence: Fence, turn: u64, env: &mut Environment<'_>) -> Option<u64> {
        match fence.awaits() {
            Awaited::Completion => self.when_flushed(turn, env),
            // What is being combined must not be joined by younger stores.
            Awaited::Nothing => self.close_combining(turn, env).then_some(turn),
        }
    }

    /// A fence or locked instruction goes on.
    fn count_fence_stall(&mut self, entry: &StoreEntry, wait: FenceWait, env: &mut Environment<'_>) {
        if wait.ends > wait.alone {
            self.stats.fence_stall.record(self.timing.period * (wait.ends - wait.alone));
        }
        if let Some(sites) = &mut env.sites {
            sites.fence(env.core, entry.instruction, wait);
        }
    }

    /// A flush or non-temporal store held the store queue from its turn on.
    #[inline]
    fn note_hold(&self, entry: &StoreEntry, turn: u64, until: u64, env: &mut Environment<'_>) {
        if let Some(sites) = env.sites.as_mut().filter(|_| until > turn) {
            sites.held(env.core, entry.instruction, turn, until);
        }
    }
}
