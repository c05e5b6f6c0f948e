//! Execution: when a micro-operation issues and when its result is there.

use super::config::{CoreConfig, SfenceOrder, TlbConfig};
use super::environment::Environment;
use super::issue::Unit;
use super::pipeline::Core;
use crate::cache::config::CacheConfig;
use fencepost_isa::micro_op::{Operation, Ordered};
use fencepost_kernel::time::Duration;

/// Latencies of a core and its first-level caches, in cycles of `period`.
#[derive(Clone)]
pub(super) struct Timing {
    pub period: Duration,
    /// First-level data cache.
    pub l1d: u64,
    /// First-level instruction cache.
    pub l1i: u64,
    pub load_pipeline: u64,
    /// A page walk without its reads of memory.
    pub walk: u64,
    /// Unit and latency of each operation that accesses no memory, by its kind.
    executions: [Execution; Operation::KINDS],
}

impl Timing {
    pub fn new(config: &CoreConfig, tlb: &TlbConfig, l1i: &CacheConfig, l1d: &CacheConfig, period: Duration) -> Timing {
        Timing {
            period,
            l1d: u64::from(l1d.latency_cycles),
            l1i: u64::from(l1i.latency_cycles),
            load_pipeline: u64::from(config.load_pipeline_cycles),
            walk: u64::from(tlb.walk_cycles),
            executions: Operation::OF_EACH_KIND.map(|operation| Execution::of(operation, config)),
        }
    }
}

/// Which entries of the reorder buffer can execute.
#[derive(Clone, Default)]
pub(super) struct Wakeup {
    /// Entries whose sources have become known, and that have not executed.
    pub ready: Vec<u32>,
    /// Micro-operations whose completion has become known so far.
    pub completions: u64,
}

/// Where and for how long something is executed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Execution {
    unit: Unit,
    /// Cycles until its result is there.
    latency: u8,
    /// Cycles for which it keeps its unit.
    busy: u8,
}

impl Execution {
    pub fn of(operation: Operation, config: &CoreConfig) -> Execution {
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

impl Core {
    /// Issues the entry at `slot`, whose sources are known; computes when it completes, if that can be known.
    #[inline(always)]
    pub(super) fn execute(&mut self, slot: u32, env: &mut Environment<'_>) {
        let entry = self.rob.entry(slot);
        let (operation, ready) = (entry.operation, entry.ready);
        if operation.accesses_memory() {
            return self.execute_access(slot, operation, ready, env);
        }
        let complete = self.compute(operation, ready);
        self.rob.complete(slot, complete, &mut self.wakeup.ready);
    }

    /// Executes an operation that accesses no memory, on sources that are there at `ready`; returns when its result is
    /// there.
    #[inline(always)]
    pub(super) fn compute(&mut self, operation: Operation, ready: u64) -> u64 {
        let Execution { unit, latency, busy } = self.timing.executions[operation.kind()];
        let cycle = self.issue.issue(unit, ready, u64::from(busy));
        self.wakeup.completions += 1;
        cycle + u64::from(latency)
    }

    /// Issues an operation that accesses memory or orders accesses.
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
            Operation::Atomic(_) | Operation::Fence(_) | Operation::Flush(_) => {
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

    /// The result of the entry at `slot` is there at `cycle`.
    #[inline]
    pub(super) fn complete(&mut self, slot: u32, cycle: u64) {
        let entry = self.rob.entry(slot);
        if entry.operation.uses_store_queue() {
            let index = entry.queue_index;
            self.stores.entry_mut(index).data_ready = cycle;
        } else if self.config.loads_hold_issue_queue && entry.operation == Operation::Load {
            self.issue.leave(cycle);
        }
        self.wakeup.completions += 1;
        self.rob.complete(slot, cycle, &mut self.wakeup.ready);
    }
}
