//! Where a program's memory lies: the memory nodes of a host, rules that place parts of a program on them, and the page
//! table of a process.

pub mod frames;
pub mod node;
pub mod page_table;
pub mod placement;

pub use node::{MemoryNode, NodeId, OWN_DRAM};
pub use page_table::{PAGE_SHIFT, PageTable};
pub use placement::{Part, Place, Placement, PlacementError, Policy, Rule, RuleOrigin};
