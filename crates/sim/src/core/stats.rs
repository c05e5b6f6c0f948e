//! What a core counts.

use fencepost_kernel::stats::{Histogram, StatsNode};

/// Counters of one core.
#[derive(Clone, Debug, Default)]
pub struct CoreStats {
    /// Instructions of the record, dispatched in detail.
    pub instructions: u64,
    /// Micro-operations dispatched, inserted ones included.
    pub micro_ops: u64,
    /// Loads that accessed the first-level data cache, parts of split ones counted apart.
    pub loads: u64,
    /// Stores performed.
    pub stores: u64,
    /// Loads that got their data from the store queue.
    pub forwarded_loads: u64,
    /// Loads that went ahead of an older store to one of their granules that had not been executed (with store sets
    /// only).
    pub overtaken_stores: u64,
    /// Accesses that found their line in the first-level data cache.
    pub l1d_hits: u64,
    /// Accesses that did not, those to a line already on its way included.
    pub l1d_misses: u64,
    /// Misses that found no MSHR.
    pub l1d_mshr_full: u64,
    /// Lines that the prefetcher found worth having, in the cache already or not.
    pub prefetches: u64,
    /// Software prefetches that were dropped because the TLB had no translation for them, or still waited for it.
    pub dropped_prefetches: u64,
    /// Lines of instructions that were in the first level when they were fetched.
    pub l1i_hits: u64,
    /// Lines of instructions that were not.
    pub l1i_misses: u64,
    /// Branches, calls and returns predicted.
    pub branches: u64,
    /// Wrong predictions.
    pub mispredictions: u64,
    /// `clflush`, `clflushopt` and `clwb`, inserted ones included.
    pub flushes: u64,
    /// Of these, inserted ones.
    pub inserted_flushes: u64,
    /// `sfence` and `mfence`, inserted ones included.
    pub fences: u64,
    /// Locked instructions, and accesses to synchronisation objects.
    pub atomics: u64,
    /// Non-temporal stores.
    pub non_temporal_stores: u64,
    /// Fences, atomics and flushes that completed only as the oldest micro-operation of the reorder buffer;
    /// in detail alone, not while warming.
    pub non_speculative: u64,
    /// From a fence or locked instruction being the oldest of its core to every store and flush before it having taken
    /// effect; one sample for each that waited at all.
    pub fence_stall: Histogram,
    /// From a `clflush` being the oldest in the store queue to it having taken effect.
    pub clflush_stall: Histogram,
    /// System calls.
    pub system_calls: u64,
    /// Synchronisation events.
    pub synchronisations: u64,
    /// Times another thread took the core.
    pub context_switches: u64,
    /// Times dispatch stopped for something unknown: the reorder buffer.
    pub blocked_by_reorder_buffer: u64,
    /// … the issue queue.
    pub blocked_by_issue_queue: u64,
    /// … the load queue.
    pub blocked_by_load_queue: u64,
    /// … the store queue.
    pub blocked_by_store_queue: u64,
    /// … an instruction fetch.
    pub blocked_by_fetch: u64,
    /// … a mispredicted branch.
    pub blocked_by_branch: u64,
}

impl CoreStats {
    /// As a tree.
    pub fn stats(&self) -> Vec<(&'static str, StatsNode)> {
        let counter = StatsNode::Counter;
        vec![
            ("instructions", counter(self.instructions)),
            ("micro_ops", counter(self.micro_ops)),
            ("loads", counter(self.loads)),
            ("stores", counter(self.stores)),
            ("forwarded_loads", counter(self.forwarded_loads)),
            ("overtaken_stores", counter(self.overtaken_stores)),
            (
                "l1d",
                StatsNode::group([
                    ("hits", counter(self.l1d_hits)),
                    ("misses", counter(self.l1d_misses)),
                    ("mshr_full", counter(self.l1d_mshr_full)),
                    ("prefetches", counter(self.prefetches)),
                    ("dropped_prefetches", counter(self.dropped_prefetches)),
                ]),
            ),
            ("l1i", StatsNode::group([("hits", counter(self.l1i_hits)), ("misses", counter(self.l1i_misses))])),
            ("branches", counter(self.branches)),
            ("mispredictions", counter(self.mispredictions)),
            ("flushes", counter(self.flushes)),
            ("inserted_flushes", counter(self.inserted_flushes)),
            ("fences", counter(self.fences)),
            ("atomics", counter(self.atomics)),
            ("non_temporal_stores", counter(self.non_temporal_stores)),
            ("non_speculative", counter(self.non_speculative)),
            ("fence_stall", StatsNode::histogram(&self.fence_stall)),
            ("clflush_stall", StatsNode::histogram(&self.clflush_stall)),
            ("system_calls", counter(self.system_calls)),
            ("synchronisations", counter(self.synchronisations)),
            ("context_switches", counter(self.context_switches)),
            (
                "blocked_by",
                StatsNode::group([
                    ("reorder_buffer", counter(self.blocked_by_reorder_buffer)),
                    ("issue_queue", counter(self.blocked_by_issue_queue)),
                    ("load_queue", counter(self.blocked_by_load_queue)),
                    ("store_queue", counter(self.blocked_by_store_queue)),
                    ("fetch", counter(self.blocked_by_fetch)),
                    ("branch", counter(self.blocked_by_branch)),
                ]),
            ),
        ]
    }
}
