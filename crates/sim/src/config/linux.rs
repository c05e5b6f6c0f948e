//! The `[linux]` table of a machine file: what the kernel's own paths take when pages are reclaimed and faulted in. No
//! record of a program has them, so published measurements of the kernel give them.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What paths of the kernel take that no record has: all but the work on a page's contents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct LinuxConfig {
    /// A page fault that finds its page in memory or is given one: exception, lookups, allocation, page table, return,
    /// in ns.
    #[garde(range(min = 0.0, max = 1e6))]
    #[schemars(range(min = 0.0, max = 1e6))]
    pub fault_ns: f64,
    /// Reclaiming a page: LRU lists, the search for what maps it, unmapping, swap cache and the tree of zswap, freeing,
    /// in ns.
    #[garde(range(min = 0.0, max = 1e6))]
    #[schemars(range(min = 0.0, max = 1e6))]
    pub reclaim_page_ns: f64,
    /// A core's switch from one task to another, in ns.
    #[garde(range(min = 0.0, max = 1e6))]
    #[schemars(range(min = 0.0, max = 1e6))]
    pub switch_ns: f64,
}
