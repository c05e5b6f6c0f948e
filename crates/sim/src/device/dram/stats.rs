//! What a DRAM channel counts.

use super::channel::Command;
use super::request_queue::RowState;
use crate::device::occupancy::Occupancy;
use fencepost_kernel::stats::{Histogram, StatsNode};
use fencepost_kernel::time::Time;

/// What a DRAM channel counted.
#[derive(Clone, Debug, Default)]
pub struct DramStats {
    /// Reads served by the chips.
    pub reads: u64,
    /// Lines written to the chips.
    pub writes: u64,
    /// Reads answered from the write queue.
    pub reads_from_write_queue: u64,
    /// Writes that joined a queued write of their line.
    pub writes_merged: u64,
    /// Reads and writes that found their row open.
    pub row_hits: u64,
    /// … their bank closed.
    pub row_misses: u64,
    /// … another row open.
    pub row_conflicts: u64,
    /// ACT commands.
    pub activates: u64,
    /// PRE and PREA commands, and auto-precharges.
    pub precharges: u64,
    /// REF commands. Those of an idle time are counted when it ends.
    pub refreshes: u64,
    /// Time the data bus carried data, in ps.
    pub data_bus_busy_ps: u64,
    /// Changes between reading and writing.
    pub bus_turnarounds: u64,
    /// From entering the read queue to the last data of the burst.
    pub read_latency_ps: Histogram,
    /// Places taken in the read queue.
    pub read_queue: Occupancy,
    /// Places taken in the write queue.
    pub write_queue: Occupancy,
}

impl DramStats {
    /// Counts how a served request found its row.
    pub(super) fn count_row(&mut self, state: RowState) {
        match state {
            RowState::Hit => self.row_hits += 1,
            RowState::Miss => self.row_misses += 1,
            RowState::Conflict => self.row_conflicts += 1,
        }
    }

    /// Counts a command.
    pub(super) fn count_command(&mut self, command: Command) {
        match command {
            Command::Activate { .. } => self.activates += 1,
            Command::Precharge { .. } | Command::PrechargeAll { .. } => self.precharges += 1,
            Command::Refresh { .. } => self.refreshes += 1,
            Command::Read { auto_precharge, .. } | Command::Write { auto_precharge, .. } => {
                self.precharges += u64::from(auto_precharge);
            }
        }
    }

    /// What was counted up to `now`, as children of a node.
    pub(super) fn nodes(&self, now: Time) -> Vec<(String, StatsNode)> {
        let counters = [
            ("reads", self.reads),
            ("writes", self.writes),
            ("reads_from_write_queue", self.reads_from_write_queue),
            ("writes_merged", self.writes_merged),
            ("row_hits", self.row_hits),
            ("row_misses", self.row_misses),
            ("row_conflicts", self.row_conflicts),
            ("activates", self.activates),
            ("precharges", self.precharges),
            ("refreshes", self.refreshes),
            ("data_bus_busy_ps", self.data_bus_busy_ps),
            ("bus_turnarounds", self.bus_turnarounds),
        ];
        let mut nodes: Vec<_> =
            counters.into_iter().map(|(name, value)| (name.to_owned(), StatsNode::Counter(value))).collect();
        nodes.push(("read_latency_ps".to_owned(), StatsNode::histogram(&self.read_latency_ps)));
        nodes.push(("read_queue".to_owned(), self.read_queue.stats(now)));
        nodes.push(("write_queue".to_owned(), self.write_queue.stats(now)));
        nodes
    }
}
