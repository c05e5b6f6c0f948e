//! Memory nodes: what a page can lie in.

use std::ops::Range;

/// Names a node of one host; an index into the list of its nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// The name of a host's own DRAM.
pub const OWN_DRAM: &str = "dram0";

impl NodeId {
    /// The host's own DRAM.
    pub const DRAM: NodeId = NodeId(0);

    /// As an index into the list of nodes.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A host's own DRAM, a PM device, a memory expander, or an interleaved set of devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryNode {
    /// `dram0` for the host's own DRAM, else the name of the device or of the interleaved set.
    pub name: String,
    /// Whether it is persistent.
    pub is_pm: bool,
    /// The physical addresses that the host's processes get frames from, in bytes.
    pub frames: Range<u64>,
}
