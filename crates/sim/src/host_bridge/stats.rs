//! What a host bridge counts.

use crate::message::{Cause, Message, Opcode};
use crate::stats::StatsNode;

/// The requests, in the order of their indices, with their names in statistics.
const REQUESTS: [(Opcode, &str); 3] =
    [(Opcode::MemRd, "mem_rd"), (Opcode::MemWr, "mem_wr"), (Opcode::MemWrPtl, "mem_wr_ptl")];

/// The causes, in the order of their indices, with their names in statistics.
const CAUSES: [(Cause, &str); 8] = [
    (Cause::DemandRead, "demand_read"),
    (Cause::InstructionFetch, "instruction_fetch"),
    (Cause::PageWalk, "page_walk"),
    (Cause::Prefetch, "prefetch"),
    (Cause::Flush, "flush"),
    (Cause::NonTemporalStore, "non_temporal_store"),
    (Cause::Writeback, "writeback"),
    (Cause::Drain, "drain"),
];

/// What a host bridge counted.
#[derive(Clone, Debug, Default)]
pub struct HostBridgeStats {
    /// Requests from the last-level cache, by opcode and cause.
    pub requests: [[u64; CAUSES.len()]; REQUESTS.len()],
    /// Answers given back to it.
    pub answers: u64,
    /// Requests that waited behind a write to their line.
    pub held: u64,
    /// Time they waited, summed over requests, in ps.
    pub held_ps: u64,
    /// The most that waited at a time.
    pub held_max: u64,
}

impl HostBridgeStats {
    /// Counts a request from the last-level cache.
    pub fn count_request(&mut self, message: &Message) {
        let request = REQUESTS.iter().position(|(opcode, _)| *opcode == message.opcode);
        let cause = CAUSES.iter().position(|(cause, _)| *cause == message.cause);
        let request = request.unwrap_or_else(|| panic!("{:?} is no request", message.opcode));
        self.requests[request][cause.expect("every cause has a name")] += 1;
    }

    /// As children of a node.
    pub fn nodes(&self) -> Vec<(String, StatsNode)> {
        let by_cause = |counts: &[u64; CAUSES.len()]| {
            StatsNode::group(CAUSES.iter().zip(counts).map(|((_, name), count)| (*name, StatsNode::Counter(*count))))
        };
        let requests =
            StatsNode::group(REQUESTS.iter().zip(&self.requests).map(|((_, name), counts)| (*name, by_cause(counts))));
        vec![
            ("requests".to_owned(), requests),
            ("answers".to_owned(), StatsNode::Counter(self.answers)),
            ("held".to_owned(), StatsNode::Counter(self.held)),
            ("held_ps".to_owned(), StatsNode::Counter(self.held_ps)),
            ("held_max".to_owned(), StatsNode::Level(self.held_max)),
        ]
    }
}
