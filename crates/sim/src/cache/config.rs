//! The `[cache.<level>]` tables of a machine file, and what lies at the border of the caches.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::isa::micro_op::{Flush, Reach};

/// One level of cache. Levels are named `l1i`, `l1d`, `l2`, `l3`, …; a level is private to each core or shared by all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct CacheConfig {
    /// Size in KiB.
    #[garde(range(min = 1, max = 1_048_576))]
    #[schemars(range(min = 1, max = 1_048_576))]
    pub size_kib: u32,
    /// Ways of a set.
    #[garde(range(min = 1, max = 64))]
    #[schemars(range(min = 1, max = 64))]
    pub ways: u16,
    /// Cycles from a request to the data, if it hits. In l1i: what a redirected fetch takes on top of
    /// `core.front_end_cycles`, and how long a fetch looks before it misses; fetching on is pipelined.
    #[garde(range(min = 1, max = 1000))]
    #[schemars(range(min = 1, max = 1000))]
    pub latency_cycles: u16,
    /// Cycles that the way back of a fill adds: from this level's data to the level above, or from a first level to the
    /// core.
    #[garde(range(min = 0, max = 1000))]
    #[schemars(range(min = 0, max = 1000))]
    pub response_cycles: u16,
    /// Distinct lines that may be missing at a time; further misses wait. Misses to one line merge. In l1i without
    /// effect: fetch waits for a line that is missing, so there is never more than one.
    #[garde(range(min = 1, max = 1024))]
    #[schemars(range(min = 1, max = 1024))]
    pub mshrs: u16,
    /// Lines on their way out (evictions and flushes whose completion has not come back) that may be under way at a
    /// time before further misses wait; only the last level's counts.
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
    /// Whether everything in the levels above is here too. The coherence directory lies in the last level; one that is
    /// not inclusive needs a `snoop_filter` for that, and has the lines that no core has any more.
    #[garde(skip)]
    pub inclusive: bool,
    /// What a last level has that is not inclusive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub snoop_filter: Option<SnoopFilterConfig>,
    /// What is fetched before it is asked for; only l1d can prefetch, and levels between it and the last that are
    /// private to a core. l1d learns from the loads and stores of its core, and the others from what l1d misses or
    /// prefetches. All stay within a page.
    #[garde(skip)]
    pub prefetcher: PrefetcherKind,
    /// What a prefetcher keeps track of at a time: of `stride` load and store instructions (below l1d, which alone
    /// knows them, pages), of `stream` pages.
    #[serde(default = "default_prefetch_entries")]
    #[garde(range(min = 1, max = 4096))]
    #[schemars(range(min = 1, max = 4096))]
    pub prefetch_entries: u16,
    /// How many addresses a prefetcher fetches at an access, one behind the other, each a line (of `stride`: a stride
    /// of at least a line) further; of `stream` at most, until it is as far ahead as it may be.
    #[serde(default = "default_prefetch_degree")]
    #[garde(range(min = 1, max = 64))]
    #[schemars(range(min = 1, max = 64))]
    pub prefetch_degree: u8,
    /// How many lines (of `stride`: strides) ahead of the access the first of them is: 1 is the next one. Of `stream`
    /// how many lines it may be ahead.
    #[serde(default = "default_prefetch_distance")]
    #[garde(range(min = 1, max = 64))]
    #[schemars(range(min = 1, max = 64))]
    pub prefetch_distance: u8,
    /// MSHRs of a level below the first from which on, taken by whatever, it drops what it would fetch ahead: as far as
    /// it has so many.
    #[serde(default = "default_prefetch_mshrs")]
    #[garde(range(min = 1, max = 1024))]
    #[schemars(range(min = 1, max = 1024))]
    pub prefetch_mshrs: u16,
    /// Whether a first level's prefetcher goes on into the next page, if its translation is known or the walker has the
    /// entry in its cache. Without effect below.
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
    /// Lines; with a few of them no core could keep its code, data and page tables long enough to use them.
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
    /// It is the host's memory bus, and what is behind it may lose the line: such a flush is complete once the write
    /// is ordered there, and promises nothing. Only `dc cvap` persists.
    #[default]
    Volatile,
    /// It is the persistent domain: such a flush is complete, and a persist, as `dc cvap` is.
    Persistent,
}

impl PointOfCoherence {
    /// Whether the completion of `flush` is a promise that its line is durable.
    pub fn persists(self, flush: Flush) -> bool {
        flush.reaches() == Reach::Persistence || self == PointOfCoherence::Persistent
    }
}
