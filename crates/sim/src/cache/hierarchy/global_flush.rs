//! The caches' part in a Global Persistent Flush: every dirty line of PM is written back, as fast as the write buffers allow.
//!
//! Nothing else leaves the caches from then on. What waited for room is forgotten: no core is told of anything any more.

use super::{Hierarchy, SharedLevel, Way};
use crate::cache::array::State;
use crate::host_bridge::address_map::is_pm;
use crate::message::{ByteMask, Cause, LineAddress, Message};

/// How far the caches' part is.
#[derive(Clone, Debug, Default)]
pub(super) struct GlobalFlush {
    /// Lines that have not been looked at yet.
    waiting: Vec<LineAddress>,
}

impl Hierarchy {
    /// Dirty lines of PM in all caches, each counted once.
    pub fn dirty_pm_lines(&self) -> usize {
        let last = self.shared.len() - 1;
        let lines = self.shared[last].array.iter().filter(|(line, _)| is_pm(*line));
        let is_dirty = |line| {
            let is_dirty_above = (0..self.l1d.len()).any(|core| self.newest_modified(core, line).is_some());
            let is_modified =
                |level: &SharedLevel| level.array.get(line).is_some_and(|copy| copy.state == State::Modified);
            is_dirty_above || self.shared.iter().any(is_modified)
        };
        lines.filter(|(line, _)| is_dirty(*line)).count()
    }

    /// Begins to write back all that is dirty of PM.
    pub fn begin_global_flush(&mut self, now: u64) {
        self.blocked.clear();
        self.between.clear();
        self.blocked_writes.clear();
        self.writes_behind_reads.clear();
        let last = self.shared.len() - 1;
        let mut waiting: Vec<LineAddress> =
            self.shared[last].array.iter().map(|(line, _)| line).filter(|line| is_pm(*line)).collect();
        waiting.reverse();
        self.global_flush = Some(GlobalFlush { waiting });
        self.continue_global_flush(now);
    }

    /// Sends what there is room for.
    fn continue_global_flush(&mut self, now: u64) {
        while self.writes_under_way < self.write_buffers
            && let Some(flush) = &mut self.global_flush
            && let Some(line) = flush.waiting.pop()
        {
            if let (Some((version, stored)), _) = self.collect(line, None, false) {
                let way = Way { begun: now, looked_up: now };
                self.write(line, version, ByteMask::FULL, Cause::Writeback, way, stored.max(now));
            }
        }
    }

    /// A write is complete while the flush is under way: nobody is told, and the next one leaves.
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
        self.global_flush.as_ref().is_some_and(|flush| flush.waiting.is_empty()) && self.pm_writes_under_way() == 0
    }
}
