//! What caches count, and the distributions measured at the border of the last level.

use super::hierarchy::Request;
use fencepost_kernel::address_map::is_pm;
use fencepost_kernel::line::LineAddress;
use fencepost_kernel::message::{Cause, Message, Stage};
use fencepost_kernel::stats::{LatencySum, StatsNode};

/// Hits and misses of one level behind the first.
#[derive(Clone, Debug, Default)]
pub struct LevelStats {
    /// Requests that found their line.
    pub hits: u64,
    /// Requests that did not.
    pub misses: u64,
    /// Requests that found no MSHR (levels above the last; the last level's are counted at the border to memory).
    pub mshr_full: u64,
    /// Lines that the level has fetched ahead (private levels).
    pub prefetches: u64,
    /// Lines that it has not, because no MSHR was free.
    pub dropped_prefetches: u64,
}

impl LevelStats {
    /// Counts one lookup.
    pub fn count(&mut self, hit: bool) {
        *(if hit { &mut self.hits } else { &mut self.misses }) += 1;
    }

    /// As a tree.
    pub fn stats(&self, is_last: bool, prefetches: bool) -> StatsNode {
        let mut nodes = vec![("hits", StatsNode::Counter(self.hits)), ("misses", StatsNode::Counter(self.misses))];
        if !is_last {
            nodes.push(("mshr_full", StatsNode::Counter(self.mshr_full)));
        }
        if prefetches {
            nodes.push(("prefetches", StatsNode::Counter(self.prefetches)));
            nodes.push(("dropped_prefetches", StatsNode::Counter(self.dropped_prefetches)));
        }
        StatsNode::group(nodes)
    }
}

/// What is counted where requests leave the last level and answers return.
#[derive(Clone, Debug, Default)]
pub struct HierarchyStats {
    /// Demand reads of PM: the LLC reads of the study.
    pub pm_reads: LatencySum,
    /// Demand reads of DRAM.
    pub dram_reads: LatencySum,
    /// Prefetches, of PM and of DRAM.
    pub prefetch_reads: LatencySum,
    /// Page walks.
    pub page_walks: LatencySum,
    /// Instruction fetches.
    pub instruction_fetches: LatencySum,
    /// PM lines written by flushes and non-temporal stores: the persists.
    pub persists: LatencySum,
    /// Of these, the non-temporal stores.
    pub non_temporal: u64,
    /// PM lines evicted, or written back by flushes that were complete before.
    pub pm_writebacks: LatencySum,
    /// Writes to DRAM, for whatever reason.
    pub dram_writes: LatencySum,
    /// Writes to PM that left, complete or not.
    pub pm_writes: u64,
    /// Requests that missed the last level.
    pub llc_misses: u64,
    /// Requests for a line that was under way already.
    pub merged: u64,
    /// Requests that found no MSHR, or no write buffer for what they would evict.
    pub mshr_full: u64,
    /// Flushes and non-temporal stores that found no write buffer.
    pub write_buffer_full: u64,
    /// Flushes of PM lines that were complete without a promise that their line is durable.
    pub flushes_without_promise: u64,
    /// Flushes that found no dirty copy.
    pub clean_flushes: u64,
    /// Of these, flushes that had to wait for an earlier write of the line.
    pub flushes_behind_writes: u64,
    /// Requests for which other cores had to be asked.
    pub snoops: u64,
    /// Copies taken from cores because the last level evicted the line.
    pub back_invalidations: u64,
    /// Dirty lines that left a first level.
    pub first_level_write_backs: u64,
    /// What would have left, or have come, where nothing was timed.
    pub functional: FunctionalCounts,
    /// Reads of PM that did not bring the latest version; never, unless the memory system is broken.
    pub stale_reads: u64,
}

/// Requests that only warm caches, by the class that they would have in detail.
#[derive(Clone, Debug, Default)]
pub struct FunctionalCounts {
    /// Demand reads of PM.
    pub pm_reads: u64,
    /// Demand reads of DRAM.
    pub dram_reads: u64,
    /// Prefetches.
    pub prefetch_reads: u64,
    /// Page walks.
    pub page_walks: u64,
    /// Instruction fetches.
    pub instruction_fetches: u64,
    /// PM lines written by flushes and non-temporal stores.
    pub persists: u64,
    /// PM lines evicted, or written back by flushes without a promise.
    pub pm_writebacks: u64,
    /// Writes to DRAM.
    pub dram_writes: u64,
    /// Flushes of PM lines that promised nothing.
    pub flushes_without_promise: u64,
}

impl FunctionalCounts {
    /// Counts a read that missed everywhere.
    pub fn count_read(&mut self, request: &Request) {
        *match (request.cause, is_pm(request.line)) {
            (Cause::DemandRead, true) => &mut self.pm_reads,
            (Cause::DemandRead, false) => &mut self.dram_reads,
            (Cause::Prefetch, _) => &mut self.prefetch_reads,
            (Cause::PageWalk, _) => &mut self.page_walks,
            (Cause::InstructionFetch, _) => &mut self.instruction_fetches,
            (
                Cause::Flush | Cause::FlushWithoutPromise | Cause::NonTemporalStore | Cause::Writeback | Cause::Drain,
                _,
            ) => {
                unreachable!("{:?} causes no read", request.cause)
            }
        } += 1;
    }

    /// Counts a write of `line` that left because of `cause`.
    pub fn count_write(&mut self, line: LineAddress, cause: Cause) {
        *match (is_pm(line), cause.is_persist()) {
            (true, true) => &mut self.persists,
            (true, false) => &mut self.pm_writebacks,
            (false, _) => &mut self.dram_writes,
        } += 1;
    }
}

impl HierarchyStats {
    /// Requests that memory has answered.
    pub fn completed(&self) -> u64 {
        let reads =
            [&self.pm_reads, &self.dram_reads, &self.prefetch_reads, &self.page_walks, &self.instruction_fetches];
        let writes = [&self.persists, &self.pm_writebacks, &self.dram_writes];
        reads.into_iter().chain(writes).map(LatencySum::count).sum()
    }

    /// Counts an answered read.
    pub fn read_completed(&mut self, message: &Message, line: LineAddress) {
        let class = match (message.cause, is_pm(line)) {
            (Cause::DemandRead, true) => &mut self.pm_reads,
            (Cause::DemandRead, false) => &mut self.dram_reads,
            (Cause::Prefetch, _) => &mut self.prefetch_reads,
            (Cause::PageWalk, _) => &mut self.page_walks,
            (Cause::InstructionFetch, _) => &mut self.instruction_fetches,
            (
                Cause::Flush | Cause::FlushWithoutPromise | Cause::NonTemporalStore | Cause::Writeback | Cause::Drain,
                _,
            ) => {
                unreachable!("{:?} causes no read", message.cause)
            }
        };
        // From the miss in the last level on.
        class.add(&message.stack, &[Stage::Core]);
    }

    /// Counts a completed write.
    pub fn write_completed(&mut self, message: &Message, line: LineAddress) {
        let class = match (is_pm(line), message.cause.is_persist()) {
            (true, true) => &mut self.persists,
            (true, false) => &mut self.pm_writebacks,
            (false, _) => &mut self.dram_writes,
        };
        // From leaving the last level on.
        class.add(&message.stack, &[Stage::Core, Stage::Cache]);
        self.non_temporal += u64::from(is_pm(line) && message.cause == Cause::NonTemporalStore);
    }

    /// As a tree.
    pub fn stats(&self) -> StatsNode {
        let counter = StatsNode::Counter;
        StatsNode::group([
            ("pm_reads", self.pm_reads.stats()),
            ("dram_reads", self.dram_reads.stats()),
            ("prefetch_reads", self.prefetch_reads.stats()),
            ("page_walks", self.page_walks.stats()),
            ("instruction_fetches", self.instruction_fetches.stats()),
            ("persists", self.persists.stats()),
            ("non_temporal_persists", counter(self.non_temporal)),
            ("pm_writebacks", self.pm_writebacks.stats()),
            ("dram_writes", self.dram_writes.stats()),
            ("pm_writes", counter(self.pm_writes)),
            ("llc_misses", counter(self.llc_misses)),
            ("merged", counter(self.merged)),
            ("mshr_full", counter(self.mshr_full)),
            ("write_buffer_full", counter(self.write_buffer_full)),
            ("flushes_without_promise", counter(self.flushes_without_promise)),
            ("clean_flushes", counter(self.clean_flushes)),
            ("flushes_behind_writes", counter(self.flushes_behind_writes)),
            ("snoops", counter(self.snoops)),
            ("back_invalidations", counter(self.back_invalidations)),
            ("first_level_write_backs", counter(self.first_level_write_backs)),
            ("stale_reads", counter(self.stale_reads)),
            (
                "functional",
                StatsNode::group([
                    ("pm_reads", counter(self.functional.pm_reads)),
                    ("dram_reads", counter(self.functional.dram_reads)),
                    ("prefetch_reads", counter(self.functional.prefetch_reads)),
                    ("page_walks", counter(self.functional.page_walks)),
                    ("instruction_fetches", counter(self.functional.instruction_fetches)),
                    ("persists", counter(self.functional.persists)),
                    ("pm_writebacks", counter(self.functional.pm_writebacks)),
                    ("dram_writes", counter(self.functional.dram_writes)),
                    ("flushes_without_promise", counter(self.functional.flushes_without_promise)),
                ]),
            ),
        ])
    }
}
