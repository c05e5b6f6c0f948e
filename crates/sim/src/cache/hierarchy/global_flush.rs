//! The caches' part in a Global Persistent Flush: every dirty line of PM is written back, as fast as the write buffers
//! allow.
//!
//! So is every non-temporal store that has left its core and waits for room or for a read of its line. Nothing else
//! leaves the caches from then on: reads that waited are forgotten, the lines of flushes that waited are written back
//! with all others, and no core is told of anything any more.

use super::Hierarchy;
use super::writes::{BlockedWrite, LatencyOrigin, WriteAround};
use crate::cache::array::State;
use fencepost_kernel::address_map::is_pm;
use fencepost_kernel::line::{ByteMask, LineAddress, Version};
use fencepost_kernel::message::{Cause, Message};

/// How far the caches' part is.
#[derive(Clone, Debug, Default)]
pub(super) struct GlobalFlush {
    /// Lines that have not been looked at yet.
    waiting: Vec<LineAddress>,
    /// Non-temporal stores that have not been sent yet, the oldest last.
    waiting_around: Vec<WriteAround>,
}

impl Hierarchy {
    /// Dirty lines of PM in all caches, each once, with their newest versions.
    pub fn dirty_pm(&self) -> impl Iterator<Item = (LineAddress, Version)> {
        let newest = move |line| {
            let above = (0..self.l1d.len()).filter_map(move |core| self.newest_modified(core, line));
            let exclusive = self.exclusive.as_ref().map(|last| &last.array);
            let shared = self.shared.iter().map(|level| &level.array).chain(exclusive);
            let modified = shared.filter_map(|array| array.get(line)).filter(|copy| copy.state == State::Modified);
            let newest = above.map(|(version, _)| version).chain(modified.map(|copy| copy.version)).max();
            newest.map(|version| (line, version))
        };
        self.held_pm().filter_map(newest)
    }

    /// Lines of PM in all caches, each once.
    fn held_pm(&self) -> impl Iterator<Item = LineAddress> {
        let directory = &self.shared[self.shared.len() - 1].array;
        let exclusive = self.exclusive.iter().flat_map(|last| last.array.iter());
        directory.iter().chain(exclusive).map(|(line, _)| line).filter(|line| is_pm(*line))
    }

    /// How many they are.
    pub fn dirty_pm_lines(&self) -> usize {
        self.dirty_pm().count()
    }

    /// Begins to write back all that is dirty of PM.
    pub fn begin_global_flush(&mut self, now: u64) {
        self.blocked.clear();
        self.between.clear();
        let mut waiting_around: Vec<WriteAround> = self.waiting_around().collect();
        waiting_around.sort_by_key(|write| std::cmp::Reverse(write.arrived));
        self.blocked_writes.clear();
        self.writes_behind_reads.clear();
        let mut waiting: Vec<LineAddress> = self.held_pm().collect();
        waiting.reverse();
        self.global_flush = Some(GlobalFlush { waiting, waiting_around });
        self.continue_global_flush(now);
    }

    /// Non-temporal stores to PM that have left their cores and not yet the caches.
    fn waiting_around(&self) -> impl Iterator<Item = WriteAround> {
        let blocked = self.blocked_writes.iter().filter_map(|blocked| match blocked {
            BlockedWrite::NonTemporal(write) => Some(*write),
            BlockedWrite::Flush { .. } => None,
        });
        let flushed = self.global_flush.iter().flat_map(|flush| &flush.waiting_around).copied();
        self.writes_behind_reads.iter().copied().chain(blocked).chain(flushed).filter(|write| is_pm(write.line))
    }

    /// How many they are.
    pub fn pm_writes_waiting(&self) -> usize {
        self.waiting_around().count()
    }

    /// Sends what there is room for.
    fn continue_global_flush(&mut self, now: u64) {
        while self.writes_under_way < self.write_buffers
            && let Some(flush) = &mut self.global_flush
            && let Some(write) = flush.waiting_around.pop()
        {
            self.send_around(write, now);
        }
        while self.writes_under_way < self.write_buffers
            && let Some(flush) = &mut self.global_flush
            && let Some(line) = flush.waiting.pop()
        {
            if let (Some((version, stored)), _) = self.collect(line, None, false) {
                let origin = LatencyOrigin { begun: now, looked_up: now };
                self.write(line, version, ByteMask::FULL, Cause::Writeback, origin, stored.max(now));
            }
        }
    }

    /// Completes a write during the flush: no core is told, and the next write leaves.
    pub fn write_flushed(&mut self, message: &Message, now: u64) {
        let write = self.writes[message.tag.0 as usize].take().expect("a completion belongs to a write");
        self.writes_under_way -= 1;
        self.stats.write_completed(message, write.line);
        self.log_completed(&write, now);
        self.continue_global_flush(now);
    }

    /// Nothing more is written back: time is over.
    pub fn abandon_global_flush(&mut self) {
        self.global_flush = Some(GlobalFlush::default());
    }

    /// Writes of PM whose completion has not come back.
    pub fn pm_writes_under_way(&self) -> usize {
        self.writes.iter().flatten().filter(|write| is_pm(write.line)).count()
    }

    /// Whether the flush has written back everything, or was abandoned, and all completions have come back.
    pub fn is_globally_flushed(&self) -> bool {
        let has_sent = |flush: &GlobalFlush| flush.waiting.is_empty() && flush.waiting_around.is_empty();
        self.global_flush.as_ref().is_some_and(has_sent) && self.pm_writes_under_way() == 0
    }
}
