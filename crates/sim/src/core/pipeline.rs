//! The core as a whole: how far it computes, what takes effect, and commit.

use super::config::{BranchPredictorConfig, CoreConfig, TlbConfig};
use super::dispatch::Progress;
use super::environment::Environment;
use super::execution::{Timing, Wakeup};
use super::front_end::FrontEnd;
use super::issue::IssueCalendar;
use super::memory::{DataPrefetcher, LoadQueue, Waiter};
use super::reorder_buffer::{ReorderBuffer, UNKNOWN};
use super::stats::CoreStats;
use super::store_queue::StoreQueue;
use super::store_sets::StoreSets;
use super::stores::Effects;
use super::translation::Tlb;
use super::warm::Warming;
use super::watched::Watched;
use super::write_combining::WriteCombining;
use crate::cache::config::CacheConfig;
use crate::cache::mshr::MshrFile;
use fencepost_isa::micro_op::Operation;
use fencepost_kernel::stats::StatsNode;
use fencepost_kernel::time::Duration;
use fencepost_record::RecordError;

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

/// One core.
#[derive(Clone)]
pub struct Core {
    pub(super) config: CoreConfig,
    pub(super) timing: Timing,
    pub(super) front_end: FrontEnd,
    pub(super) rob: ReorderBuffer,
    pub(super) issue: IssueCalendar,
    pub(super) wakeup: Wakeup,
    pub(super) loads: LoadQueue,
    pub(super) stores: StoreQueue,
    pub(super) store_sets: Option<StoreSets>,
    pub(super) combining: WriteCombining,
    pub(super) effects: Effects,
    pub(super) mshrs: MshrFile<Waiter>,
    pub(super) prefetcher: Option<DataPrefetcher>,
    pub(super) tlb: Tlb,
    /// The next dispatch.
    pub(super) next_dispatch: Slot,
    /// The last commit.
    pub(super) last_commit: Slot,
    pub(super) window: Window,
    /// Stores that other threads wait for.
    pub watched: Watched,
    pub(super) warming: Warming,
    /// What the core counted.
    pub stats: CoreStats,
}

/// A place in a stage of limited width.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slot {
    pub cycle: u64,
    /// How many micro-operations share that cycle so far.
    pub taken: u8,
}

/// How far a core may compute ahead.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    /// The present.
    pub now: u64,
    /// Nothing dispatches, and no store takes effect, in a later cycle.
    pub horizon: u64,
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
            timing: Timing::new(config, tlb, l1i, l1d, period),
            front_end: FrontEnd::new(predictor),
            rob: ReorderBuffer::new(usize::from(config.rob_entries)),
            issue: IssueCalendar::new(config),
            wakeup: Wakeup::default(),
            loads: LoadQueue::new(usize::from(config.load_queue_entries), tlb.walkers),
            stores: StoreQueue::new(usize::from(config.store_queue_entries)),
            store_sets: StoreSets::of(&config.store_sets),
            combining: WriteCombining::new(config),
            effects: Effects::default(),
            mshrs: MshrFile::new(usize::from(l1d.mshrs)),
            prefetcher: DataPrefetcher::of(l1d),
            tlb: Tlb::new(tlb),
            next_dispatch: Slot::default(),
            last_commit: Slot::default(),
            window: Window::default(),
            watched: Watched::default(),
            warming: Warming::default(),
            stats: CoreStats::default(),
        }
    }

    /// Tells the core that it is `now`, and that it may compute up to `horizon`.
    pub fn look_ahead(&mut self, now: u64, horizon: u64) {
        self.window.now = now;
        self.issue.advance(now);
        self.stores.forget(now);
        self.window.horizon = horizon;
    }

    /// The cycle at which it has to compute again, because a store beyond the present horizon takes effect then.
    pub fn held_store(&self) -> Option<u64> {
        self.effects.held
    }

    /// Computes until the thread comes to an event, something unknown stops dispatch, or dispatch reaches the horizon.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub fn run(&mut self, env: &mut Environment<'_>) -> Result<Pause, RecordError> {
        self.settle(env);
        loop {
            if self.next_dispatch.cycle >= self.window.horizon {
                return Ok(Pause::Horizon);
            }
            let before = self.known();
            let step = self.dispatch_some(env)?;
            self.settle(env);
            match step {
                Progress::Dispatched => {}
                Progress::Blocked if self.known() == before => return Ok(Pause::Waiting),
                // What was dispatched, or settled, may resolve what dispatch waits for.
                Progress::Blocked => {}
                Progress::Paused(pause) => return Ok(pause),
            }
        }
    }

    /// How much is known of what is in flight: grows with each time that becomes known.
    #[inline]
    fn known(&self) -> (u64, u64, u64) {
        (self.rob.known(), self.wakeup.completions, self.stores.known())
    }

    /// Lets everything in flight take effect without dispatching more; says whether nothing is left.
    pub fn drain(&mut self, env: &mut Environment<'_>) -> bool {
        self.settle(env);
        self.send_combined(env);
        if !self.is_drained() || self.front_end.awaited.is_some() {
            return false;
        }
        let effective = self.last_commit.cycle.max(self.effects.cycle).max(self.combining.last_complete());
        self.dispatch_from(effective);
        true
    }

    /// What this core waits for, for the deadlock report.
    pub fn waiting_for(&self) -> String {
        if let Some(line) = self.front_end.awaited {
            return format!("instructions of line {:#x}", line.byte());
        }
        match self.rob.head() {
            Some((_, entry)) => {
                format!("{:?} of address {:#x} is the oldest and not complete", entry.operation, entry.address)
            }
            None if !self.stores.is_empty() => "stores that have not taken effect".into(),
            None if !self.combining.is_idle() => "flushes or non-temporal stores under way".into(),
            None => format!("nothing in flight, at cycle {}", self.next_dispatch.cycle),
        }
    }

    /// Whether nothing is in flight: reorder buffer, store queue, flushes.
    pub fn is_drained(&self) -> bool {
        self.rob.is_drained() && self.stores.is_empty() && self.combining.is_idle()
    }

    /// The cycle up to which the core has dispatched.
    pub fn cycle(&self) -> u64 {
        self.next_dispatch.cycle
    }

    /// Power is gone.
    pub fn power_fail(&mut self) {
        self.rob.clear();
        self.issue.clear();
        self.loads.clear();
        self.stores.clear();
        self.watched.power_fail();
        self.store_sets = StoreSets::of(&self.config.store_sets);
        self.combining = WriteCombining::new(&self.config);
        self.mshrs.clear();
        self.tlb.clear();
        self.wakeup.ready.clear();
        self.front_end.awaited = None;
        self.effects.held = None;
        self.effects.unowned.clear();
    }

    /// How many entries its load queue has.
    pub fn load_queue_entries(&self) -> usize {
        usize::from(self.config.load_queue_entries)
    }

    /// How many places the entries of its store queue take turns in.
    pub fn store_queue_places(&self) -> usize {
        self.stores.places()
    }

    /// How many entries its store queue has.
    pub fn store_queue_entries(&self) -> usize {
        usize::from(self.config.store_queue_entries)
    }

    /// What its TLB and its prefetcher have learnt.
    #[cfg(test)]
    pub fn learnt(&self) -> [String; 2] {
        [self.tlb.held(), format!("{:?}", self.prefetcher)]
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

    /// Draws all consequences of what has become known: executes what depended on it, commits, lets stores take effect.
    pub fn settle(&mut self, env: &mut Environment<'_>) {
        loop {
            let mut next = 0;
            while let Some(&slot) = self.wakeup.ready.get(next) {
                next += 1;
                self.issue.stop_waiting();
                self.execute(slot, env);
            }
            self.wakeup.ready.clear();
            self.commit(env);
            self.drain_stores(env);
            if self.wakeup.ready.is_empty() && !self.can_commit() {
                return;
            }
        }
    }

    #[inline]
    fn can_commit(&self) -> bool {
        self.rob.head().is_some_and(|(_, entry)| entry.complete != UNKNOWN)
    }

    #[inline]
    fn commit(&mut self, env: &mut Environment<'_>) {
        let width = self.config.commit_width;
        while let Some(entry) = self.rob.complete_head() {
            let (operation, queue_index) = (entry.operation, entry.queue_index);
            let mut cycle = entry.complete + 1;
            let mut committed = 0;
            if cycle <= self.last_commit.cycle {
                let is_full = self.last_commit.taken == width;
                cycle = self.last_commit.cycle + u64::from(is_full);
                committed = if is_full { 0 } else { self.last_commit.taken };
            }
            entry.commit = cycle;
            self.last_commit.taken = committed + 1;
            let previous = std::mem::replace(&mut self.last_commit.cycle, cycle);
            self.rob.pass_head();
            if operation == Operation::Load {
                self.loads.commit(queue_index, cycle);
                if let Some(sites) = &mut env.accesses {
                    sites.load_committed(env.core, queue_index, previous, cycle);
                }
            } else if operation.uses_store_queue() {
                self.stores.entry_mut(queue_index).committed = cycle;
            }
        }
    }
}
