//! From dispatch to commit.

use std::collections::VecDeque;

use super::branch_predictor::BranchPredictor;
use super::config::{BranchPredictorConfig, CoreConfig, SfenceOrder, TlbConfig, Vdso};
use super::issue::{IssueCalendar, Unit};
use super::memory::{LoadQueue, Waiter};
use super::persist::PersistPolicy;
use super::persist_site;
use super::reorder_buffer::{ReorderBuffer, UNKNOWN};
use super::stats::CoreStats;
use super::store_log::{LoggedStore, Performed, StoreLog};
use super::store_queue::StoreQueue;
use super::store_sets::{LastStore, StoreSets};
use super::stores::{UnownedStore, WriteCombining};
use super::thread::{Extra, Step, Thread};
use super::translation::Tlb;
use super::warm::{INITIAL_PACE, Pace};
use super::write_order::{WriteOrder, Writes};
use crate::address_map::is_pm;
use crate::address_space::page_table::PageTable;
use crate::cache::array::CacheArray;
use crate::cache::config::CacheConfig;
use crate::cache::hierarchy::{Side, Want};
use crate::cache::mshr::MshrFile;
use crate::cache::observation_log::{Access, ObservationLog};
use crate::cache::persist_sites::PersistSites;
use crate::cache::prefetcher::StridePrefetcher;
use crate::isa::micro_op::{DecodedBlock, Exit, Flush, MicroOp, Operation, Ordered};
use crate::line::{ByteMask, LineAddress, Version};
use crate::message::Cause;
use crate::record::RecordError;
use crate::stats::StatsNode;
use crate::time::{Duration, Time};

/// What a core asks of the caches behind its own, at a cycle to come.
#[derive(Clone, Copy, Debug)]
pub enum CoreRequest {
    /// A line that its first level, or its walker, does not have.
    Line {
        /// The line.
        line: LineAddress,
        /// To read or to write it.
        want: Want,
        /// For which first level.
        side: Side,
        /// Why.
        cause: Cause,
        /// The cycle in which what asks for it issued; of a store, that in which it was its turn.
        issued: u64,
    },
    /// A flush.
    Flush {
        /// The line.
        line: LineAddress,
        /// Which.
        flush: Flush,
        /// The core's name for it.
        id: u32,
        /// The cycle in which it was its turn.
        issued: u64,
    },
    /// A combined non-temporal store.
    WriteAround {
        /// The line.
        line: LineAddress,
        /// The bytes it writes.
        mask: ByteMask,
        /// The core's name for it.
        id: u32,
        /// The cycle in which its combining buffer was complete.
        issued: u64,
    },
}

/// Everything a core works on that is not its own.
pub struct Environment<'a> {
    /// The thread it runs.
    pub thread: &'a mut Thread,
    /// The program's decoded blocks.
    pub blocks: &'a [DecodedBlock],
    /// The first-level data cache.
    pub l1d: &'a mut CacheArray,
    /// The first-level instruction cache.
    pub l1i: &'a mut CacheArray,
    /// The process's address space.
    pub table: &'a mut PageTable,
    /// What is persisted beyond the program's own flushes.
    pub persist: &'a PersistPolicy,
    /// Requests made, with the cycle at which they reach the next level.
    pub requests: &'a mut Vec<(u64, CoreRequest)>,
    /// The core's number.
    pub core: usize,
    /// Where versions that loads observe and stores make are taken down, if somebody asks for that.
    pub observations: Option<&'a mut ObservationLog>,
    /// Where stores are taken down as they take effect, if somebody asks for that.
    pub stores: Option<&'a mut StoreLog>,
    /// Which writes others wait for, in a replay that keeps their order.
    pub order: Option<&'a mut WriteOrder>,
    /// Where it is counted which instructions persist and wait, if somebody asks for that.
    pub sites: Option<&'a mut PersistSites>,
}

impl Environment<'_> {
    #[inline]
    pub(super) fn observe(&mut self, cycle: u64, line: LineAddress, version: Version, access: Access) {
        if let Some(log) = &mut self.observations {
            log.record(self.core, cycle, line, version, access);
        }
    }

    /// Takes down that the thread came to a call that concerns persistent memory, if somebody asks for that.
    pub(super) fn log_call(&mut self, time: Time) {
        if let Some(log) = &mut self.stores {
            let (core, thread, performed) = (self.core, self.thread.id, Performed::CameToCall);
            log.push(LoggedStore { core, thread, time, line: LineAddress(0), performed, address: 0, size: 0 });
        }
    }

    /// Takes down what happens to a line, if somebody asks for that; `access` is the virtual address and the size of the whole access.
    #[inline]
    pub(super) fn log_store(&mut self, time: Time, line: LineAddress, performed: Performed, access: (u64, u16)) {
        if let Some(log) = self.stores.as_mut().filter(|_| is_pm(line)) {
            let (core, thread, (address, size)) = (self.core, self.thread.id, access);
            log.push(LoggedStore { core, thread, time, line, performed, address, size });
        }
    }
}

/// Why a core has stopped computing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// It has come to the horizon.
    Horizon,
    /// It waits for an answer.
    Waiting,
    /// Its thread has come to an event, everything before has committed at that cycle.
    Event(u64),
    /// Its thread has come to a marker, everything before has committed.
    Marker {
        /// The marker's code.
        code: u16,
        /// The cycle.
        cycle: u64,
    },
    /// Its thread is at the end of its record or at its limit, and everything before has committed.
    End(u64),
}

/// A store to a line at which threads spin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchedStore {
    /// Physical address.
    pub address: u64,
    /// Bytes.
    pub size: u16,
    /// The cycle in which it took effect.
    pub cycle: u64,
}

/// What could not go on, and depends on something unknown.
pub(super) struct Blocked;

/// Where and for how long something is executed.
#[derive(Clone, Copy, Debug)]
struct Execution {
    unit: Unit,
    /// Cycles until its result is there.
    latency: u8,
    /// Cycles for which it keeps its unit.
    busy: u8,
}

impl Execution {
    fn of(operation: Operation, config: &CoreConfig) -> Execution {
        let latency = match operation {
            Operation::Multiply => config.latency.multiply,
            Operation::Divide => config.latency.divide,
            Operation::FloatAdd => config.latency.float_add,
            Operation::FloatMultiply => config.latency.float_multiply,
            Operation::FloatDivide => config.latency.float_divide,
            Operation::Vector => config.latency.vector,
            _ => config.latency.integer,
        };
        let busy = if matches!(operation, Operation::Divide | Operation::FloatDivide) { latency } else { 1 };
        Execution { unit: Unit::of(operation), latency, busy }
    }
}

/// One core.
#[derive(Clone)]
pub struct Core {
    pub(super) config: CoreConfig,
    pub(super) period: Duration,
    pub(super) l1_latency: u64,
    pub(super) load_pipeline: u64,
    l1i_latency: u64,
    pub(super) walk_cycles: u64,
    /// Unit and latency of each operation that accesses no memory, by its kind.
    executions: [Execution; Operation::KINDS],
    pub(super) rob: ReorderBuffer,
    pub(super) issue: IssueCalendar,
    pub(super) loads: LoadQueue,
    pub(super) stores: StoreQueue,
    pub(super) store_sets: Option<StoreSets>,
    pub(super) combining: WriteCombining,
    pub(super) mshrs: MshrFile<Waiter>,
    pub(super) prefetcher: Option<StridePrefetcher>,
    /// Lines (low six bits of their number) at which threads spin, one bit each.
    pub watch_filter: u64,
    /// Stores to such lines, not yet taken notice of.
    pub watched_stores: Vec<WatchedStore>,
    /// Writes that others wait for: how many entries the store queue had been given then.
    marks: VecDeque<(u64, Writes)>,
    pub(super) tlb: Tlb,
    pub(super) predictor: BranchPredictor,
    /// Micro-operations whose completion has become known so far.
    completions: u64,
    /// Entries whose sources have become known and that are to be executed.
    pub(super) ready: Vec<u32>,
    /// The cycle in which the next micro-operation dispatches, and how many do so already.
    pub(super) dispatch_cycle: u64,
    dispatched: u8,
    /// The last commit, and how many share its cycle.
    pub(super) commit_cycle: u64,
    committed: u8,
    /// When the last store, flush or fence took effect.
    pub(super) store_cycle: u64,
    /// The present.
    pub(super) now: u64,
    /// Up to which cycle it may compute: nothing dispatches, and no store takes effect, in a later one.
    pub(super) horizon: u64,
    /// Stores that wait for an MSHR to fetch their lines, oldest first.
    pub(super) unowned: VecDeque<UnownedStore>,
    /// The cycle for which the oldest store waits that could take effect behind the horizon.
    pub(super) held_store: Option<u64>,
    /// The line of instructions fetched last, and the code page it lies in.
    fetched_line: u64,
    pub(super) code_page: (u64, u64),
    /// The instruction line that dispatch waits for.
    pub(super) awaited_fetch: Option<LineAddress>,
    /// The instruction line that has come for dispatch, until that takes it: from the answer, since the caches may have lost it again.
    pub(super) arrived_fetch: Option<LineAddress>,
    /// The block that is fetched only in part, by its address, and its next line.
    partly_fetched: Option<(u64, u64)>,
    /// The last branch, for its misprediction: its slot and its sequence.
    last_branch: (u32, u64),
    mispredicted: bool,
    /// How long an instruction takes that only warms, and what part of a cycle the last ones have begun (in its unit).
    pub(super) warm_pace: Pace,
    pub(super) warm_fraction: u64,
    /// Non-temporal stores that combine while it only warms.
    pub(super) warm_combined: Vec<(LineAddress, ByteMask)>,
    /// What the core counted.
    pub stats: CoreStats,
}

impl Core {
    /// An idle core.
    pub fn new(
        config: &CoreConfig,
        tlb: &TlbConfig,
        predictor: &BranchPredictorConfig,
        l1i: &CacheConfig,
        l1d: &CacheConfig,
        period: Duration,
    ) -> Core {
        Core {
            config: config.clone(),
            period,
            l1_latency: u64::from(l1d.latency_cycles),
            load_pipeline: u64::from(config.load_pipeline_cycles),
            l1i_latency: u64::from(l1i.latency_cycles),
            walk_cycles: u64::from(tlb.walk_cycles),
            executions: Operation::OF_EACH_KIND.map(|operation| Execution::of(operation, config)),
            rob: ReorderBuffer::new(usize::from(config.rob_entries)),
            issue: IssueCalendar::new(config),
            loads: LoadQueue::new(usize::from(config.load_queue_entries)),
            stores: StoreQueue::new(usize::from(config.store_queue_entries)),
            store_sets: StoreSets::of(&config.store_sets),
            combining: WriteCombining::new(config),
            mshrs: MshrFile::new(usize::from(l1d.mshrs)),
            prefetcher: StridePrefetcher::of(l1d),
            watch_filter: 0,
            watched_stores: Vec::new(),
            marks: VecDeque::new(),
            tlb: Tlb::new(tlb),
            predictor: BranchPredictor::new(predictor),
            completions: 0,
            ready: Vec::new(),
            dispatch_cycle: 0,
            dispatched: 0,
            commit_cycle: 0,
            committed: 0,
            store_cycle: 0,
            now: 0,
            horizon: 0,
            unowned: VecDeque::new(),
            held_store: None,
            fetched_line: u64::MAX,
            code_page: (u64::MAX, 0),
            awaited_fetch: None,
            arrived_fetch: None,
            partly_fetched: None,
            last_branch: (0, 0),
            mispredicted: false,
            warm_pace: INITIAL_PACE,
            warm_fraction: 0,
            warm_combined: Vec::new(),
            stats: CoreStats::default(),
        }
    }

    /// It is `now`, and the core may compute up to `horizon`.
    pub fn look_ahead(&mut self, now: u64, horizon: u64) {
        self.now = now;
        self.issue.advance(now);
        self.horizon = horizon;
    }

    /// The cycle at which it has to compute again, because then a store takes effect that lies behind the horizon now.
    pub fn held_store(&self) -> Option<u64> {
        self.held_store
    }

    /// Computes until the thread comes to an event, something unknown stops dispatch, or dispatch reaches the horizon.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub fn run(&mut self, env: &mut Environment<'_>) -> Result<Pause, RecordError> {
        self.settle(env);
        loop {
            if self.dispatch_cycle >= self.horizon {
                return Ok(Pause::Horizon);
            }
            let before = self.known();
            let step = self.dispatch_some(env)?;
            self.settle(env);
            match step {
                Progress::Dispatched => {}
                Progress::Blocked if self.known() == before => return Ok(Pause::Waiting),
                // What was dispatched, or settled, may be what dispatch waits for.
                Progress::Blocked => {}
                Progress::Paused(pause) => return Ok(pause),
            }
        }
    }

    /// How much is known of what is in flight; grows with everything that becomes known.
    #[inline]
    fn known(&self) -> (u64, u64, u64) {
        (self.rob.known(), self.completions, self.stores.known())
    }

    /// Lets another thread (or the same again) start on this core at `cycle`; nothing may be in flight.
    pub fn start_thread(&mut self, cycle: u64) {
        self.dispatch_from(cycle);
        self.rob.start_thread(self.dispatch_cycle);
        self.fetched_line = u64::MAX;
        self.code_page = (u64::MAX, 0);
        self.arrived_fetch = None;
        self.partly_fetched = None;
        self.mispredicted = false;
    }

    /// The thread goes on at `cycle`, later than it came to where it is.
    pub fn resume_at(&mut self, cycle: u64) {
        self.dispatch_from(cycle);
    }

    /// Nothing dispatches before `cycle`.
    #[inline]
    pub(super) fn dispatch_from(&mut self, cycle: u64) {
        if cycle > self.dispatch_cycle {
            self.dispatch_cycle = cycle;
            self.dispatched = 0;
        }
    }

    /// Lets everything in flight take effect without dispatching more; whether nothing is left.
    pub fn drain(&mut self, env: &mut Environment<'_>) -> bool {
        self.settle(env);
        self.send_combined(env);
        if !self.is_drained() || self.awaited_fetch.is_some() {
            return false;
        }
        let effective = self.commit_cycle.max(self.store_cycle).max(self.combining.last_complete());
        self.dispatch_from(effective);
        true
    }

    /// The thread has made writes that others wait for.
    pub(super) fn mark_writes(&mut self, writes: Writes) {
        self.marks.push_back((self.stores.entered(), writes));
    }

    /// Such writes that have taken effect since the last call, the next of them, with the cycle.
    pub fn take_performed(&mut self) -> Option<(Writes, u64)> {
        let (entered, _) = self.marks.front()?;
        let is_performed = *entered <= self.stores.known();
        is_performed.then(|| self.marks.pop_front().map(|(_, writes)| (writes, self.store_cycle))).flatten()
    }

    /// What keeps this core, for the deadlock report.
    pub fn waiting_for(&self) -> String {
        if let Some(line) = self.awaited_fetch {
            return format!("instructions of line {:#x}", line.byte());
        }
        match self.rob.head() {
            Some((_, entry)) => {
                format!("{:?} of address {:#x} is the oldest and not complete", entry.operation, entry.address)
            }
            None if !self.stores.is_empty() => "stores that have not taken effect".into(),
            None if !self.combining.is_idle() => "flushes or non-temporal stores under way".into(),
            None => format!("nothing in flight, at cycle {}", self.dispatch_cycle),
        }
    }

    /// Whether nothing is in flight: reorder buffer, store queue, flushes.
    pub fn is_drained(&self) -> bool {
        self.rob.is_drained() && self.stores.is_empty() && self.combining.is_idle()
    }

    /// The cycle up to which the core has dispatched.
    pub fn cycle(&self) -> u64 {
        self.dispatch_cycle
    }

    /// Power is gone.
    pub fn power_fail(&mut self) {
        self.rob.clear();
        self.issue.clear();
        self.loads = LoadQueue::new(usize::from(self.config.load_queue_entries));
        self.stores.clear();
        self.marks.clear();
        self.store_sets = StoreSets::of(&self.config.store_sets);
        self.combining = WriteCombining::new(&self.config);
        self.mshrs.clear();
        self.tlb.clear();
        self.ready.clear();
        self.awaited_fetch = None;
        self.held_store = None;
        self.unowned.clear();
    }

    /// How many entries its store queue has.
    pub fn store_queue_entries(&self) -> usize {
        usize::from(self.config.store_queue_entries)
    }

    /// Everything counted so far.
    pub fn stats(&self) -> StatsNode {
        let mut nodes = self.stats.stats();
        nodes.push((
            "tlb",
            StatsNode::group([
                ("hits", StatsNode::Counter(self.tlb.hits)),
                ("walks", StatsNode::Counter(self.tlb.walks)),
                ("walk_reads", StatsNode::Counter(self.tlb.walk_reads)),
            ]),
        ));
        StatsNode::group(nodes)
    }

    /// Dispatches a block, or as much of it as can be.
    fn dispatch_some(&mut self, env: &mut Environment<'_>) -> Result<Progress, RecordError> {
        if self.awaited_fetch.is_some() {
            return Ok(Progress::Blocked);
        }
        while let Some(&Extra { micro_op, address }) = env.thread.extra.front() {
            if self.dispatch(&micro_op, address, env).is_err() {
                return Ok(Progress::Blocked);
            }
            self.stats.inserted_flushes += u64::from(micro_op.operation.is_flush());
            env.thread.extra.pop_front();
            if micro_op.operation == Operation::Store {
                env.persist.after_store(env.thread, env.table, address, micro_op.size);
            }
        }
        if env.thread.block != 0 {
            return self.dispatch_block(env);
        }
        match env.thread.peek()? {
            // Events at the limit still happen: which of them others wait for depends on the machine, and positions must not.
            Step::Block(_) if env.thread.instructions >= env.thread.limit => Ok(self.come_to_limit(env)),
            Step::Block(block) => {
                if self.enter_block(block, env).is_err() {
                    return Ok(Progress::Blocked);
                }
                self.dispatch_block(env)
            }
            Step::Event => self.come_to_event(env),
            Step::End => Ok(self.come_to_end(env)),
        }
    }

    /// Pauses if everything has committed, else blocks.
    pub(super) fn when_drained(&mut self, pause: impl FnOnce(u64) -> Pause) -> Progress {
        if !self.rob.is_drained() {
            return Progress::Blocked;
        }
        self.dispatch_from(self.commit_cycle);
        Progress::Paused(pause(self.dispatch_cycle))
    }

    /// Fetches a block: predicts the way to it and brings its instructions into the cache.
    fn enter_block(&mut self, block: u32, env: &mut Environment<'_>) -> Result<(), Blocked> {
        let decoded = &env.blocks[block as usize];
        if self.is_emulated(decoded, env.table) {
            env.thread.pass_over_block(block, decoded);
            self.stats.instructions += u64::from(decoded.instructions);
            return Ok(());
        }
        if env.thread.left_block != 0 {
            let left = &env.blocks[env.thread.left_block as usize];
            let is_right = self.predict(left, decoded, env.thread);
            if left.exit != Exit::FallThrough {
                self.stats.branches += 1;
                self.mispredicted = !is_right;
                self.stats.mispredictions += u64::from(self.mispredicted);
                if decoded.address != left.end {
                    self.fetch_goes_elsewhere();
                }
            }
            env.thread.left_block = 0;
        }
        let mut lookup = 0;
        if self.mispredicted {
            let (slot, sequence) = self.last_branch;
            let branch = self.rob.entry(slot);
            if branch.sequence == sequence && branch.complete == UNKNOWN {
                self.stats.blocked_by_branch += 1;
                return Err(Blocked);
            }
            // A branch whose slot has another holder by now has committed long ago.
            let resolved = if branch.sequence == sequence { branch.complete } else { 0 };
            self.dispatch_from(resolved + u64::from(self.config.front_end_cycles));
            self.mispredicted = false;
            lookup = self.l1i_latency;
        }
        self.fetch(decoded, env)?;
        // Where the line is missing, looking for it is a part of that.
        self.dispatch_from(self.dispatch_cycle + lookup);
        env.thread.start_block(block, decoded.slots, decoded.micro_ops.len() as u32);
        if let Some(instructions) = env.thread.interrupted_after() {
            let ends = decoded.micro_ops.iter().enumerate().filter(|(_, micro_op)| micro_op.ends_instruction);
            let executed = ends.take(instructions as usize).last().map_or(0, |(index, _)| index + 1);
            env.thread.micro_ops = executed as u32;
        }
        Ok(())
    }

    /// Predicts the way of `thread` from the block it left to the next one, and says whether the prediction was right.
    #[inline]
    pub(super) fn predict(&mut self, left: &DecodedBlock, next: &DecodedBlock, thread: &Thread) -> bool {
        if thread.has_passed_call {
            self.predictor.predict_around_call(left, next.address)
        } else {
            self.predictor.predict(left, next.address)
        }
    }

    /// Whether `block` is the kernel's and not executed here.
    #[inline]
    pub(super) fn is_emulated(&self, block: &DecodedBlock, table: &PageTable) -> bool {
        self.config.vdso == Vdso::Emulated && table.is_vdso(block.address)
    }

    /// Fetch follows a taken branch.
    fn fetch_goes_elsewhere(&mut self) {
        let branch = self.dispatch_cycle - u64::from(self.dispatched == 0);
        self.dispatch_from(branch + u64::from(self.config.taken_branch_cycles));
    }

    fn fetch(&mut self, block: &DecodedBlock, env: &mut Environment<'_>) -> Result<(), Blocked> {
        let last = (block.end - 1) / 64;
        let mut line = block.address / 64;
        if line == self.fetched_line {
            line += 1;
        }
        if let Some((_, next)) = self.partly_fetched.take().filter(|(address, _)| *address == block.address) {
            line = next;
        }
        while line <= last {
            let page = line >> 6;
            if page != self.code_page.0 {
                self.code_page = (page, env.table.frame(page));
            }
            let physical = LineAddress((self.code_page.1 << 6) | (line & 63));
            match env.l1i.find_and_touch(physical) {
                _ if self.arrived_fetch.take() == Some(physical) => self.fetched_line = line,
                Some(index) => {
                    self.stats.l1i_hits += 1;
                    self.dispatch_from(env.l1i.line(index).ready);
                    self.fetched_line = line;
                }
                None => {
                    self.stats.l1i_misses += 1;
                    self.stats.blocked_by_fetch += 1;
                    self.awaited_fetch = Some(physical);
                    self.partly_fetched = Some((block.address, line));
                    let request = CoreRequest::Line {
                        line: physical,
                        want: Want::Read,
                        side: Side::Instruction,
                        cause: Cause::InstructionFetch,
                        issued: self.dispatch_cycle,
                    };
                    env.requests.push((self.dispatch_cycle + self.l1i_latency, request));
                    return Err(Blocked);
                }
            }
            line += 1;
        }
        Ok(())
    }

    fn dispatch_block(&mut self, env: &mut Environment<'_>) -> Result<Progress, RecordError> {
        let block = &env.blocks[env.thread.block as usize];
        while env.thread.micro_op < env.thread.micro_ops {
            let micro_op = &block.micro_ops[env.thread.micro_op as usize];
            match micro_op.operation {
                Operation::RoiMarker => {
                    let code = micro_op.slot;
                    let progress = self.when_drained(|cycle| Pause::Marker { code, cycle });
                    if matches!(progress, Progress::Paused(_)) {
                        env.thread.micro_op += 1;
                        self.count_instruction(env);
                    }
                    return Ok(progress);
                }
                Operation::String => {
                    env.thread.push_string(block, micro_op);
                    env.thread.micro_op += 1;
                    if micro_op.ends_instruction {
                        self.count_instruction(env);
                    }
                    return Ok(Progress::Dispatched);
                }
                Operation::Drain => {
                    if !self.rob.is_drained() {
                        return Ok(Progress::Blocked);
                    }
                    self.dispatch_from(self.commit_cycle);
                }
                operation if env.persist.before_operation(env.thread, operation) => return Ok(Progress::Dispatched),
                _ => {}
            }
            let access = if micro_op.size != 0 { env.thread.slot(micro_op.slot) } else { 0 };
            if self.dispatch(micro_op, micro_op.address_of_part(access), env).is_err() {
                return Ok(Progress::Blocked);
            }
            env.thread.micro_op += 1;
            if micro_op.ends_instruction {
                self.count_instruction(env);
            }
            if matches!(micro_op.operation, Operation::Store | Operation::NonTemporalStore | Operation::Atomic)
                && !block.continues(env.thread.micro_op)
            {
                let inserted = env.persist.after_store(env.thread, env.table, access, micro_op.size_so_far());
                if inserted {
                    return Ok(Progress::Dispatched);
                }
            }
        }
        env.thread.leave_block(block.micro_ops.len());
        Ok(Progress::Dispatched)
    }

    #[inline]
    fn count_instruction(&mut self, env: &mut Environment<'_>) {
        env.thread.instructions += 1;
        self.stats.instructions += 1;
    }

    /// Dispatches one micro-operation, as soon as every structure has room for it.
    #[inline(always)]
    fn dispatch(&mut self, micro_op: &MicroOp, address: u64, env: &mut Environment<'_>) -> Result<(), Blocked> {
        let cycle = self.dispatch_at(micro_op.operation)?;
        self.stats.micro_ops += 1;
        if cycle > self.dispatch_cycle {
            self.dispatch_cycle = cycle;
            self.dispatched = 0;
        }
        self.dispatched += 1;
        if self.dispatched == self.config.dispatch_width {
            self.dispatch_cycle += 1;
            self.dispatched = 0;
        }
        let operation = micro_op.operation;
        // Most micro-operations only compute, and what from is known.
        if !operation.accesses_memory()
            && let Some(sources) = self.rob.known_sources(&micro_op.sources)
        {
            let complete = self.compute(operation, sources.max(cycle + 1));
            let sequence = self.rob.push_complete(operation, complete, &micro_op.destinations);
            if operation == Operation::Branch {
                self.last_branch = (self.rob.slot(sequence), sequence);
            }
            return Ok(());
        }
        let slot = self.rob.push(operation, address, micro_op.size, cycle + 1);
        if operation == Operation::Load {
            let entry = self.rob.entry_mut(slot);
            entry.queue_index = self.loads.push();
            entry.instruction = (env.thread.block << 6) ^ env.thread.micro_op;
            if self.store_sets.is_some() {
                self.wait_for_store_set(slot);
            }
        } else if operation.uses_store_queue() {
            let sequence = self.rob.entry(slot).sequence;
            let index = self.stores.push(operation, sequence, slot, address, micro_op.size);
            self.rob.entry_mut(slot).queue_index = index;
            if operation == Operation::Store {
                let instruction = (env.thread.block << 6) ^ env.thread.micro_op;
                self.stores.entry_mut(index).instruction = instruction;
                if let Some(sets) = self.store_sets.as_mut() {
                    sets.store_dispatched(instruction, LastStore { slot, sequence });
                }
            } else if env.sites.is_some() {
                self.note_site(index, operation, env);
            }
        } else if operation == Operation::Branch {
            self.last_branch = (slot, self.rob.entry(slot).sequence);
        }
        self.rob.read_sources(slot, &micro_op.sources);
        if self.rob.entry(slot).outstanding == 0 {
            self.execute(slot, env);
        } else {
            self.issue.wait();
        }
        // A flush that is no fence must not take the barrier of an earlier fence from later loads.
        if !matches!(operation, Operation::Flush(flush) if !self.is_full_fence(flush)) {
            self.rob.write_destinations(slot, &micro_op.destinations);
        }
        Ok(())
    }

    /// The entry `index` of the store queue belongs to what the thread is at. Out of line: hardly anybody asks for that.
    #[cold]
    #[inline(never)]
    fn note_site(&mut self, index: u32, operation: Operation, env: &mut Environment<'_>) {
        if let Some(sites) = &mut env.sites {
            self.stores.entry_mut(index).instruction =
                persist_site::site(sites, env.core, env.thread, env.blocks, operation);
        }
    }

    /// The first cycle in which reorder buffer, issue queue and load or store queue have room.
    #[inline(always)]
    fn dispatch_at(&mut self, operation: Operation) -> Result<u64, Blocked> {
        let Some(cycle) = self.rob.room_at() else {
            self.stats.blocked_by_reorder_buffer += 1;
            return Err(Blocked);
        };
        let mut cycle = cycle.max(self.dispatch_cycle);
        if operation == Operation::Load {
            let Some(room) = self.loads.room_at() else {
                self.stats.blocked_by_load_queue += 1;
                return Err(Blocked);
            };
            cycle = cycle.max(room);
        } else if operation.uses_store_queue() {
            let Some(room) = self.stores.room_at() else {
                self.stats.blocked_by_store_queue += 1;
                return Err(Blocked);
            };
            cycle = cycle.max(room);
        }
        let Some(cycle) = self.issue.room_at(cycle) else {
            self.stats.blocked_by_issue_queue += 1;
            return Err(Blocked);
        };
        Ok(cycle)
    }

    /// All sources of the entry at `slot` are known: finds out when it issues and, if it can, when it completes.
    #[inline(always)]
    pub(super) fn execute(&mut self, slot: u32, env: &mut Environment<'_>) {
        let entry = self.rob.entry(slot);
        let (operation, ready) = (entry.operation, entry.ready);
        if operation.accesses_memory() {
            return self.execute_access(slot, operation, ready, env);
        }
        let complete = self.compute(operation, ready);
        self.rob.complete(slot, complete, &mut self.ready);
    }

    /// Executes what accesses no memory as soon as its sources are there, at `ready`; gives when its result is.
    #[inline(always)]
    fn compute(&mut self, operation: Operation, ready: u64) -> u64 {
        let Execution { unit, latency, busy } = self.executions[operation.kind()];
        let cycle = self.issue.issue(unit, ready, u64::from(busy));
        self.completions += 1;
        cycle + u64::from(latency)
    }

    /// The same for what accesses memory or orders accesses.
    #[inline(never)]
    fn execute_access(&mut self, slot: u32, operation: Operation, ready: u64, env: &mut Environment<'_>) {
        let unit = Unit::of(operation);
        match operation {
            Operation::Load => {
                let cycle = match self.config.loads_hold_issue_queue {
                    true => self.issue.issue_staying(unit, ready),
                    false => self.issue.issue(unit, ready, 1),
                };
                self.load(slot, cycle, env);
            }
            Operation::Prefetch => {
                let cycle = self.issue.issue(unit, ready, 1);
                self.prefetch(self.rob.entry(slot).address, cycle, env);
                self.complete(slot, cycle + 1);
            }
            Operation::Store | Operation::NonTemporalStore => self.execute_store(slot, unit, env),
            Operation::Flush(flush) if !self.is_full_fence(flush) => self.execute_store(slot, unit, env),
            Operation::Fence(fence)
                if fence.orders() == Ordered::Stores && self.config.sfence_order == SfenceOrder::StoreQueue =>
            {
                let cycle = self.issue.issue(unit, ready, 1);
                self.complete(slot, cycle + u64::from(self.config.latency.integer));
            }
            // These wait until they are the oldest; the store queue completes them.
            Operation::Atomic | Operation::Fence(_) | Operation::Flush(_) => {
                let cycle = self.issue.issue(unit, ready, 1);
                let translated = self.translate_store(slot, cycle, env);
                let entry = self.rob.entry_mut(slot);
                match translated {
                    Some(translated) => entry.ready = entry.ready.max(translated),
                    None => entry.outstanding += 1,
                }
            }
            operation => unreachable!("{operation:?} does not access memory"),
        }
    }

    #[inline]
    pub(super) fn complete(&mut self, slot: u32, cycle: u64) {
        let entry = self.rob.entry(slot);
        if entry.operation.uses_store_queue() {
            let index = entry.queue_index;
            self.stores.entry_mut(index).data_ready = cycle;
        } else if self.config.loads_hold_issue_queue && entry.operation == Operation::Load {
            self.issue.leave(cycle);
        }
        self.completions += 1;
        self.rob.complete(slot, cycle, &mut self.ready);
    }

    /// Draws all consequences of what has become known: executes what waited for it, commits, lets stores take effect.
    pub fn settle(&mut self, env: &mut Environment<'_>) {
        loop {
            let mut next = 0;
            while let Some(&slot) = self.ready.get(next) {
                next += 1;
                self.issue.stop_waiting();
                self.execute(slot, env);
            }
            self.ready.clear();
            self.commit();
            self.drain_stores(env);
            if self.ready.is_empty() && !self.can_commit() {
                return;
            }
        }
    }

    #[inline]
    fn can_commit(&self) -> bool {
        self.rob.head().is_some_and(|(_, entry)| entry.complete != UNKNOWN)
    }

    #[inline]
    fn commit(&mut self) {
        let width = self.config.commit_width;
        while let Some(entry) = self.rob.complete_head() {
            let (operation, queue_index) = (entry.operation, entry.queue_index);
            let mut cycle = entry.complete + 1;
            let mut committed = 0;
            if cycle <= self.commit_cycle {
                let is_full = self.committed == width;
                cycle = self.commit_cycle + u64::from(is_full);
                committed = if is_full { 0 } else { self.committed };
            }
            entry.commit = cycle;
            self.committed = committed + 1;
            self.commit_cycle = cycle;
            self.rob.pass_head();
            if operation == Operation::Load {
                self.loads.commit(queue_index, cycle);
            } else if operation.uses_store_queue() {
                self.stores.entry_mut(queue_index).committed = cycle;
            }
        }
    }
}

/// What dispatching has come to.
pub(super) enum Progress {
    /// There is more.
    Dispatched,
    /// Something unknown is in the way.
    Blocked,
    /// The host has to act.
    Paused(Pause),
}
