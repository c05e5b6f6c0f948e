//! Memory nodes: what a page can lie in.

use std::ops::Range;

/// Names a node of one host; an index into the list of its nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// The name of a host's own DRAM; the first one's, if it has several.
pub const OWN_DRAM: &str = "dram0";

impl NodeId {
    /// The node that holds what no rule places: the host's own DRAM, if it has any.
    pub const FIRST: NodeId = NodeId(0);

    /// As an index into the list of nodes.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// DRAM of the host itself, a PM device, a memory expander, or an interleaved set of devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryNode {
    /// `dram0` and so on for the host's own DRAM, else the name of the device or of the interleaved set.
    pub name: String,
    /// Whether it is persistent.
    pub is_pm: bool,
    /// The physical addresses that the host's processes get frames from, in bytes.
    pub frames: Range<u64>,
}
