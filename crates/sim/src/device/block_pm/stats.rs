//! What a medium that is accessed in blocks counts.

use crate::device::occupancy::Occupancy;
use fencepost_kernel::stats::{Histogram, StatsNode};
use fencepost_kernel::time::{Duration, Time};

/// What the medium counted.
#[derive(Clone, Debug, Default)]
pub struct BlockPmStats {
    /// Blocks read from the medium, those read before they are written in part included.
    pub reads: u64,
    /// Blocks written to the medium.
    pub writes: u64,
    /// Blocks of which a part was written, so that they were read first.
    pub read_modify_writes: u64,
    /// Bytes read from the medium: of whole blocks.
    pub media_read_bytes: u64,
    /// Bytes written to the medium: of whole blocks.
    pub media_write_bytes: u64,
    /// Reads answered from the read buffer.
    pub reads_from_read_buffer: u64,
    /// Reads answered from the write buffer.
    pub reads_from_write_queue: u64,
    /// Reads that waited for a block that another read had asked for.
    pub reads_merged: u64,
    /// Writes that joined a write of their block in the write buffer.
    pub writes_merged: u64,
    /// Time reads waited for their bank, summed over blocks that were read for them, in ps.
    pub read_wait_ps: u64,
    /// Reads that found their bank writing.
    pub reads_behind_write: u64,
    /// Time banks were busy, summed over banks, in ps; counted when a bank begins.
    pub bank_busy_ps: u64,
    /// From entering the read queue to the data.
    pub read_latency_ps: Histogram,
    /// Reads that wait for a bank or for their block.
    pub read_queue: Occupancy,
    /// Blocks in the write buffer, those being written included.
    pub write_queue: Occupancy,
}

impl BlockPmStats {
    /// As children of a node; of what banks have begun, so much time is `still_to_come` after `now`.
    pub(super) fn nodes(&self, now: Time, still_to_come: Duration) -> Vec<(String, StatsNode)> {
        let counters = [
            ("reads", self.reads),
            ("writes", self.writes),
            ("read_modify_writes", self.read_modify_writes),
            ("media_read_bytes", self.media_read_bytes),
            ("media_write_bytes", self.media_write_bytes),
            ("reads_from_read_buffer", self.reads_from_read_buffer),
            ("reads_from_write_queue", self.reads_from_write_queue),
            ("reads_merged", self.reads_merged),
            ("writes_merged", self.writes_merged),
            ("read_wait_ps", self.read_wait_ps),
            ("reads_behind_write", self.reads_behind_write),
            ("bank_busy_ps", self.bank_busy_ps.saturating_sub(still_to_come.as_ps())),
        ];
        let mut nodes: Vec<_> =
            counters.into_iter().map(|(name, value)| (name.to_owned(), StatsNode::Counter(value))).collect();
        nodes.push(("read_latency_ps".to_owned(), StatsNode::histogram(&self.read_latency_ps)));
        nodes.push(("read_queue".to_owned(), self.read_queue.stats(now)));
        nodes.push(("write_queue".to_owned(), self.write_queue.stats(now)));
        nodes
    }
}
