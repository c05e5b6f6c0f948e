//! The `[cache.<level>]` tables of a machine file, and what lies at the border of the caches.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use fencepost_isa::micro_op::{Flush, Reach};

/// One level of cache. Levels are named `l1i`, `l1d`, `l2`, `l3`, …; a level is private to each core or shared by all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct CacheConfig {
    /// Size in KiB: at most 2048 of a first level, 65,536 of another that is not shared.
    #[garde(range(min = 1, max = 1_048_576))]
    #[schemars(range(min = 1, max = 1_048_576))]
    pub size_kib: u32,
    /// Ways of a set.
    #[garde(range(min = 1, max = 64))]
    #[schemars(range(min = 1, max = 64))]
    pub ways: u16,
    /// Cycles from a request to the data, if it hits. In l1i: the cost of a redirected fetch beyond
    /// `core.front_end_cycles`, and of the look-up before a miss; sequential fetches are pipelined.
    #[garde(range(min = 1, max = 1000))]
    #[schemars(range(min = 1, max = 1000))]
    pub latency_cycles: u16,
    /// Cycles that a fill adds on its way back: from this level's data to the level above, or from a first level to the
    /// core.
    #[garde(range(min = 0, max = 1000))]
    #[schemars(range(min = 0, max = 1000))]
    pub response_cycles: u16,
    /// Distinct missing lines at a time; further misses wait, and misses to one line merge. Without effect in l1i,
    /// where fetch waits for each missing line.
    #[garde(range(min = 1, max = 1024))]
    #[schemars(range(min = 1, max = 1024))]
    pub mshrs: u16,
    /// Evictions and flushes of lines that may be under way, until their completion is back, before further misses
    /// wait; only the last level's counts.
    #[garde(range(min = 1, max = 1024))]
    #[schemars(range(min = 1, max = 1024))]
    pub write_buffers: u16,
    /// Cycles to ask or invalidate the copies in other cores and hear back; only the last level's counts.
    #[garde(range(min = 0, max = 1000))]
    #[schemars(range(min = 0, max = 1000))]
    pub snoop_cycles: u16,
    /// One for all cores of a host; false: one for each core. First levels are always private.
    #[garde(skip)]
    pub shared: bool,
    /// Whether it holds everything that the levels above hold. The coherence directory lies in the last level; one that
    /// is not inclusive needs a `snoop_filter`, and holds the lines that no core has.
    #[garde(skip)]
    pub inclusive: bool,
    /// What a last level has that is not inclusive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub snoop_filter: Option<SnoopFilterConfig>,
    /// Which prefetcher it has. Only l1d and private levels between it and the last can have one. l1d learns from the
    /// loads and stores of its core, the others from what l1d misses or prefetches. All stay within a page.
    #[garde(skip)]
    pub prefetcher: PrefetcherKind,
    /// What a prefetcher tracks at a time: `stride` load and store instructions (below l1d, where these are unknown,
    /// pages), `stream` pages.
    #[serde(default = "default_prefetch_entries")]
    #[garde(range(min = 1, max = 4096))]
    #[schemars(range(min = 1, max = 4096))]
    pub prefetch_entries: u16,
    /// How many addresses a prefetcher fetches at an access, a line apart (`stride`: a stride of at least a line).
    /// `stream` fetches up to this many, until it is `prefetch_distance` ahead.
    #[serde(default = "default_prefetch_degree")]
    #[garde(range(min = 1, max = 64))]
    #[schemars(range(min = 1, max = 64))]
    pub prefetch_degree: u8,
    /// How many lines (`stride`: strides) ahead of the access the first one is; 1 is the next. For `stream`, how many
    /// lines ahead it may be.
    #[serde(default = "default_prefetch_distance")]
    #[garde(range(min = 1, max = 64))]
    #[schemars(range(min = 1, max = 64))]
    pub prefetch_distance: u8,
    /// In levels below the first, prefetches are dropped while at least this many MSHRs are taken.
    #[serde(default = "default_prefetch_mshrs")]
    #[garde(range(min = 1, max = 1024))]
    #[schemars(range(min = 1, max = 1024))]
    pub prefetch_mshrs: u16,
    /// Whether a first level's prefetcher continues into the next page if its translation is known, or its page-table
    /// entry is in the walker's cache. Without effect below.
    #[serde(default)]
    #[garde(skip)]
    pub prefetch_next_page: bool,
}

fn default_prefetch_entries() -> u16 {
    64
}

fn default_prefetch_degree() -> u8 {
    4
}

fn default_prefetch_mshrs() -> u16 {
    1024
}

fn default_prefetch_distance() -> u8 {
    1
}

/// The directory of a last level that is not inclusive: the lines that cores have. One that has to leave it leaves the
/// cores too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct SnoopFilterConfig {
    /// Lines. Too few of them evict a core's code, data and page tables before it can use them.
    #[garde(range(min = 16, max = 16_777_216))]
    #[schemars(range(min = 16, max = 16_777_216))]
    pub entries: u32,
    /// Ways of a set.
    #[garde(range(min = 1, max = 64))]
    #[schemars(range(min = 1, max = 64))]
    pub ways: u16,
}

/// Which prefetcher a cache has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PrefetcherKind {
    /// None.
    None,
    /// By instruction address and stride.
    Stride,
    /// The lines behind each access.
    NextLine,
    /// By page: runs ahead in the direction in which its lines are accessed.
    Stream,
}

/// The point of coherence, as far as power failures are concerned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PointOfCoherence {
    /// No: it is the host's memory bus, and memory behind it is volatile. Such a flush completes once the write is
    /// ordered there; only `dc cvap` persists.
    #[default]
    Volatile,
    /// Yes: it is the persistent domain, and such a flush persists as `dc cvap` does.
    Persistent,
}

impl PointOfCoherence {
    /// Whether the completion of `flush` is a promise that its line is durable.
    pub fn persists(self, flush: Flush) -> bool {
        flush.reaches() == Reach::Persistence || self == PointOfCoherence::Persistent
    }
}
