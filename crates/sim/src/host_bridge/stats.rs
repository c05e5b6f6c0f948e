//! What a host bridge counts.

use fencepost_kernel::line::LineAddress;
use fencepost_kernel::message::{Cause, Message, Opcode, Stage};
use fencepost_kernel::stats::{Histogram, StatsNode};

/// The requests, in the order of their indices, with their names in statistics.
const REQUESTS: [(Opcode, &str); 3] =
    [(Opcode::MemRd, "mem_rd"), (Opcode::MemWr, "mem_wr"), (Opcode::MemWrPtl, "mem_wr_ptl")];

/// The causes, in the order of their indices, with their names in statistics.
const CAUSES: [(Cause, &str); 9] = [
    (Cause::DemandRead, "demand_read"),
    (Cause::InstructionFetch, "instruction_fetch"),
    (Cause::PageWalk, "page_walk"),
    (Cause::Prefetch, "prefetch"),
    (Cause::Flush, "flush"),
    (Cause::FlushWithoutPromise, "flush_without_promise"),
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
    /// By memory node, in the order of their addresses.
    pub nodes: Vec<NodeCounts>,
}

/// What went to one memory node.
#[derive(Clone, Debug)]
pub struct NodeCounts {
    /// Its name.
    pub name: String,
    /// The first line above it; it begins where the node before it ends.
    pub end: LineAddress,
    /// Reads of the last-level cache.
    pub reads: u64,
    /// Writes of it.
    pub writes: u64,
    /// Time reads took from the last level on until their answer was back there, summed over those that were answered,
    /// in ps.
    pub read_ps: u64,
    /// By core, where that is counted.
    pub cores: Vec<CoreReads>,
}

/// What a core read of one memory node.
#[derive(Clone, Debug, Default)]
pub struct CoreReads {
    /// Lines that came, those that were fetched ahead too: what the counters of processors have.
    pub lines: u64,
    /// Of the lines that it waited for, from the last level on.
    pub latency: Histogram,
}

impl HostBridgeStats {
    /// Counts a request from the last-level cache.
    pub fn count_request(&mut self, message: &Message) {
        // Requests with metadata are counted with the reads.
        let opcode = if message.is_write() { message.opcode } else { Opcode::MemRd };
        let request = REQUESTS.iter().position(|(known, _)| *known == opcode);
        let cause = CAUSES.iter().position(|(cause, _)| *cause == message.cause);
        let request = request.unwrap_or_else(|| panic!("{:?} is no request", message.opcode));
        self.requests[request][cause.expect("every cause has a name")] += 1;
        if let Some(node) = self.node_of(message.line) {
            *(if message.is_write() { &mut node.writes } else { &mut node.reads }) += 1;
        }
    }

    /// Counts an answer, which is back at the last-level cache when its stack ends.
    pub fn count_answer(&mut self, answer: &Message) {
        self.answers += 1;
        if answer.opcode == Opcode::MemData
            && let Some(node) = self.node_of(answer.line)
        {
            let latency = answer.stack.total_without(&[Stage::Core]);
            node.read_ps += latency.as_ps();
            if let Some(core) = node.cores.get_mut(answer.flow.number() as usize) {
                core.lines += 1;
                if answer.cause == Cause::DemandRead {
                    core.latency.record(latency);
                }
            }
        }
    }

    fn node_of(&mut self, line: LineAddress) -> Option<&mut NodeCounts> {
        self.nodes.iter_mut().find(|node| line < node.end)
    }

    /// As children of a node.
    pub fn to_nodes(&self) -> Vec<(String, StatsNode)> {
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
            ("nodes".to_owned(), StatsNode::group(self.nodes.iter().map(NodeCounts::to_node))),
        ]
    }
}

impl NodeCounts {
    /// Nothing yet, of the node `name` that ends below the line `end`.
    pub fn new(name: &str, end: LineAddress) -> NodeCounts {
        NodeCounts { name: name.to_owned(), end, reads: 0, writes: 0, read_ps: 0, cores: Vec::new() }
    }

    /// The same, which counts by core besides.
    pub fn by_core(mut self, cores: usize) -> NodeCounts {
        self.cores = vec![CoreReads::default(); cores];
        self
    }

    fn to_node(&self) -> (String, StatsNode) {
        let counts = [("reads", self.reads), ("writes", self.writes), ("read_ps", self.read_ps)];
        let mut nodes: Vec<_> =
            counts.into_iter().map(|(name, count)| (name.to_owned(), StatsNode::Counter(count))).collect();
        let of_core = |(number, core): (usize, &CoreReads)| {
            let reads = [("lines", StatsNode::Counter(core.lines)), ("latency", StatsNode::histogram(&core.latency))];
            (format!("core{number}"), StatsNode::group(reads))
        };
        nodes.extend(self.cores.iter().enumerate().map(of_core));
        (self.name.clone(), StatsNode::group(nodes))
    }
}
