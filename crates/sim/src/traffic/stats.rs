//! What a stream counted.

use fencepost_kernel::line::LINE_BYTES;
use fencepost_kernel::message::{LatencyStack, Stage};
use fencepost_kernel::stats::{Histogram, StatsNode};

/// What a stream counted, reads and writes apart.
#[derive(Clone, Debug, Default)]
pub struct StreamStats {
    reads: DirectionStats,
    writes: DirectionStats,
    /// Gets that saw less than had been acknowledged before they began.
    pub(super) stale_reads: u64,
}

/// What a stream counted of its reads, or of its writes.
#[derive(Clone, Debug, Default)]
struct DirectionStats {
    /// Requests that are complete.
    requests: u64,
    /// Bytes of the lines that are complete; also of requests that are not.
    bytes: u64,
    /// From a request's start to the answer of its last line.
    latency: Histogram,
    /// The parts of that time, summed over all requests: where the last line of each was.
    parts_ps: [u64; Stage::COUNT],
}

impl StreamStats {
    pub(super) fn line_answered(&mut self, is_write: bool) {
        self.direction(is_write).bytes += LINE_BYTES;
    }

    pub(super) fn request_answered(&mut self, is_write: bool, stack: &LatencyStack) {
        let direction = self.direction(is_write);
        direction.requests += 1;
        direction.latency.record(stack.total());
        for (sum, part) in direction.parts_ps.iter_mut().zip(stack.parts_ps()) {
            *sum += part;
        }
    }

    /// Lines that were answered.
    pub(super) fn lines(&self) -> u64 {
        (self.reads.bytes + self.writes.bytes) / LINE_BYTES
    }

    fn direction(&mut self, is_write: bool) -> &mut DirectionStats {
        if is_write { &mut self.writes } else { &mut self.reads }
    }

    pub(super) fn to_node(&self) -> StatsNode {
        StatsNode::group([
            ("reads", self.reads.to_node()),
            ("writes", self.writes.to_node()),
            ("stale_reads", StatsNode::Counter(self.stale_reads)),
        ])
    }
}

impl DirectionStats {
    fn to_node(&self) -> StatsNode {
        let parts = Stage::NAMES.iter().zip(self.parts_ps).map(|(stage, ps)| (*stage, StatsNode::Counter(ps)));
        StatsNode::group([
            ("requests", StatsNode::Counter(self.requests)),
            ("bytes", StatsNode::Counter(self.bytes)),
            ("latency", StatsNode::histogram(&self.latency)),
            ("parts_ps", StatsNode::group(parts)),
        ])
    }
}
