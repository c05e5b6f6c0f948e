//! The `[core]`, `[tlb]` and `[branch_predictor]` tables of a machine file.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::store_sets::StoreSetsConfig;
use crate::cache::config::PointOfCoherence;

/// One out-of-order core; all cores of a host are alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct CoreConfig {
    /// Cores of each host.
    #[garde(range(min = 1, max = 64))]
    #[schemars(range(min = 1, max = 64))]
    pub count: u16,
    /// Clock frequency in GHz; also the clock of the caches.
    #[garde(range(min = 0.1, max = 10.0))]
    #[schemars(range(min = 0.1, max = 10.0))]
    pub clock_ghz: f64,
    /// Micro-operations fetched, decoded and renamed each cycle.
    #[garde(range(min = 1, max = 16))]
    #[schemars(range(min = 1, max = 16))]
    pub dispatch_width: u8,
    /// Micro-operations committed each cycle.
    #[garde(range(min = 1, max = 16))]
    #[schemars(range(min = 1, max = 16))]
    pub commit_width: u8,
    /// Cycles from fetch to dispatch: what a mispredicted branch costs on top of its resolution and of l1i's latency.
    #[garde(range(min = 1, max = 100))]
    #[schemars(range(min = 1, max = 100))]
    pub front_end_cycles: u16,
    /// Cycles from fetching a taken branch until its target can be fetched; 0: in the same cycle.
    #[garde(range(min = 0, max = 20))]
    #[schemars(range(min = 0, max = 20))]
    pub taken_branch_cycles: u16,
    /// Entries of the reorder buffer.
    #[garde(range(min = 16, max = 4096))]
    #[schemars(range(min = 16, max = 4096))]
    pub rob_entries: u16,
    /// Entries of the issue queue: micro-operations dispatched and not yet issued.
    #[garde(range(min = 8, max = 4096))]
    #[schemars(range(min = 8, max = 4096))]
    pub issue_queue_entries: u16,
    /// Whether a load keeps its entry of the issue queue until it has its data. False: until it issues, like all
    /// others.
    #[garde(skip)]
    pub loads_hold_issue_queue: bool,
    /// Entries of the load queue.
    #[garde(range(min = 4, max = 1024))]
    #[schemars(range(min = 4, max = 1024))]
    pub load_queue_entries: u16,
    /// Entries of the store queue: stores, flushes and fences until they have taken effect.
    #[garde(range(min = 4, max = 1024))]
    #[schemars(range(min = 4, max = 1024))]
    pub store_queue_entries: u16,
    /// Loads that may start each cycle.
    #[garde(range(min = 1, max = 8))]
    #[schemars(range(min = 1, max = 8))]
    pub load_ports: u8,
    /// Stores that may compute their address each cycle.
    #[garde(range(min = 1, max = 8))]
    #[schemars(range(min = 1, max = 8))]
    pub store_ports: u8,
    /// Integer units; branches use them too.
    #[garde(range(min = 1, max = 8))]
    #[schemars(range(min = 1, max = 8))]
    pub integer_ports: u8,
    /// Floating-point and vector units.
    #[garde(range(min = 1, max = 8))]
    #[schemars(range(min = 1, max = 8))]
    pub vector_ports: u8,
    /// Units that multiply and divide integers.
    #[garde(range(min = 1, max = 8))]
    #[schemars(range(min = 1, max = 8))]
    pub multiply_ports: u8,
    /// Bytes of the widest vector operation, load or store that executes whole; wider ones are split into
    /// micro-operations of that width.
    #[garde(custom(power_of_two_of_a_vector))]
    #[schemars(range(min = 8, max = 64))]
    #[serde(default = "whole_vectors")]
    pub widest_operation_bytes: u16,
    /// How operations get immediates and the instruction pointer.
    #[garde(skip)]
    #[serde(default)]
    pub operand_operations: OperandOperations,
    /// Latencies of execution, by class.
    #[garde(dive)]
    pub latency: LatencyConfig,
    /// For which stores loads wait.
    #[garde(dive)]
    pub store_sets: StoreSetsConfig,
    /// Cycles from a store's data to a load that is forwarded it.
    #[garde(range(min = 1, max = 20))]
    #[schemars(range(min = 1, max = 20))]
    pub forwarding_cycles: u8,
    /// Cycles from a load's issue until it looks into l1d or the store queue.
    #[garde(range(min = 0, max = 20))]
    #[schemars(range(min = 0, max = 20))]
    pub load_pipeline_cycles: u8,
    /// Whether the fill of l1d performs a store that waited for the line, so that the next store accesses l1d in the
    /// same cycle. False: the next one follows a cycle later.
    #[garde(skip)]
    pub fill_performs_store: bool,
    /// Fetch the lines of all stores in the store queue for ownership as soon as they have their address. False: only
    /// the oldest store does.
    #[garde(skip)]
    pub prefetch_for_ownership: bool,
    /// How many flushes and non-temporal stores of one core may be under way at a time.
    #[garde(range(min = 1, max = 1024))]
    #[schemars(range(min = 1, max = 1024))]
    pub flushes_in_flight: u16,
    /// Whether a `clflushopt` or `clwb` keeps later stores from taking effect until it is complete, as `clflush` always
    /// does.
    #[garde(skip)]
    pub flush_holds_stores: bool,
    /// Lines in which non-temporal stores of one core may combine at a time.
    #[garde(range(min = 1, max = 64))]
    #[schemars(range(min = 1, max = 64))]
    pub write_combining_buffers: u16,
    /// Where a flush is complete.
    #[garde(skip)]
    pub flush_acknowledged_by: FlushAcknowledgement,
    /// Whether a line that AArch64's `dc cvac` or `dc civac` has written back to the point of coherence is durable.
    #[garde(skip)]
    #[serde(default)]
    pub point_of_coherence: PointOfCoherence,
    /// What a core may do with a line that its `clwb` has written back.
    #[garde(skip)]
    pub clwb_leaves: CleanedLine,
    /// What `clflush` waits for.
    #[garde(skip)]
    pub clflush_order: ClflushOrder,
    /// When `sfence` takes effect.
    #[garde(skip)]
    pub sfence_order: SfenceOrder,
    /// Cycles of a fence that executes as the oldest instruction, once everything before it has taken effect.
    #[garde(range(min = 0, max = 100))]
    #[schemars(range(min = 0, max = 100))]
    pub fence_cycles: u8,
    /// How the code of the kernel's vDSO, which reads the clock, is replayed.
    #[garde(skip)]
    pub vdso: Vdso,
    /// What a system call costs, in ns.
    #[garde(range(min = 0.0, max = 1_000_000.0))]
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    pub system_call_ns: f64,
    /// How long a thread keeps its core while others wait for one, in microseconds.
    #[garde(range(min = 1.0, max = 1_000_000.0))]
    #[schemars(range(min = 1.0, max = 1_000_000.0))]
    pub time_slice_us: f64,
    /// What switching a core to another thread costs, in ns.
    #[garde(range(min = 0.0, max = 1_000_000.0))]
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    pub context_switch_ns: f64,
    /// With a seed other than 0, each thread starts later by a random time of at most this, in ns. Replays with several
    /// seeds show how far results depend on which thread comes first.
    #[garde(range(min = 0.0, max = 1_000_000.0))]
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    pub start_jitter_ns: f64,
}

/// [`CoreConfig::widest_operation_bytes`] of a core that splits no vector operation.
pub const WHOLE_VECTORS: u16 = 64;

fn whole_vectors() -> u16 {
    WHOLE_VECTORS
}

fn power_of_two_of_a_vector(bytes: &u16, (): &()) -> garde::Result {
    match bytes {
        8 | 16 | 32 | 64 => Ok(()),
        _ => Err(garde::Error::new(format!("{bytes} bytes cannot be: 8, 16, 32 or 64 can"))),
    }
}

/// Cycles from issue to result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct LatencyConfig {
    /// Integer addition, logic, moves, address arithmetic, branches.
    #[garde(range(min = 1, max = 100))]
    #[schemars(range(min = 1, max = 100))]
    pub integer: u8,
    /// Integer multiplication.
    #[garde(range(min = 1, max = 100))]
    #[schemars(range(min = 1, max = 100))]
    pub multiply: u8,
    /// Integer division; the unit is busy throughout.
    #[garde(range(min = 1, max = 200))]
    #[schemars(range(min = 1, max = 200))]
    pub divide: u8,
    /// Floating-point addition and comparison.
    #[garde(range(min = 1, max = 100))]
    #[schemars(range(min = 1, max = 100))]
    pub float_add: u8,
    /// Floating-point multiplication and fused multiply-add.
    #[garde(range(min = 1, max = 100))]
    #[schemars(range(min = 1, max = 100))]
    pub float_multiply: u8,
    /// Floating-point division and square root; the unit is busy throughout.
    #[garde(range(min = 1, max = 200))]
    #[schemars(range(min = 1, max = 200))]
    pub float_divide: u8,
    /// Vector integer operations, logic and shuffles.
    #[garde(range(min = 1, max = 100))]
    #[schemars(range(min = 1, max = 100))]
    pub vector: u8,
}

/// The way of an immediate, or of the instruction pointer, to an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OperandOperations {
    /// With the operation. What x86 processors do.
    #[default]
    Fused,
    /// By a micro-operation for each: one for an addition of an immediate or an access relative to the instruction
    /// pointer, two for a direct branch. What gem5 does.
    Separate,
}

/// Where the completion of a flush comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FlushAcknowledgement {
    /// The persistent domain: the write's completion is back at the last-level cache. What hardware guarantees.
    PersistentDomain,
    /// The host's memory bus, where the write is ordered; the time of the write itself is not included. What gem5's
    /// classic caches do.
    MemoryBus,
}

/// The right to a line that stays in the caches when it has been written back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CleanedLine {
    /// Write it again without another request.
    Exclusive,
    /// Read it; the next store to it requests ownership again. What gem5's classic caches do.
    Shared,
    /// None: the line leaves the caches, as with `clflushopt`. What Intel's Cascade Lake seems to do: a line that is
    /// persisted twice in a row takes 615 ns there with `clwb` and 632 ns with `clflushopt` on PM, 495 and 499 ns on
    /// DRAM (perma-bench, experiments/published/persist_costs_measured.csv).
    Invalid,
}

/// The ordering of `clflush`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClflushOrder {
    /// Earlier stores and other `clflush`, in the store queue; later loads continue. The architecture's rule.
    Stores,
    /// Everything, as `clflushopt` followed by a full fence. What gem5 does.
    FullFence,
}

/// When `sfence` takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SfenceOrder {
    /// In its turn in the store queue: it commits at once, and delays only stores and flushes.
    StoreQueue,
    /// As the oldest instruction, like `mfence`: nothing after it commits before it. What gem5 does.
    Oldest,
}

/// The code that the kernel maps into every process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Vdso {
    /// As it was recorded.
    Executed,
    /// Without time and memory accesses, as in gem5's system-call emulation.
    Emulated,
}

/// Translation look-aside buffers of each core.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct TlbConfig {
    /// Whether translation costs anything at all.
    #[garde(skip)]
    pub enabled: bool,
    /// Entries of the first-level data TLB (4 KiB pages). A software prefetch of a page that is not among them is
    /// dropped.
    #[garde(range(min = 1, max = 4096))]
    #[schemars(range(min = 1, max = 4096))]
    pub entries: u16,
    /// Its ways.
    #[garde(range(min = 1, max = 64))]
    #[schemars(range(min = 1, max = 64))]
    pub ways: u16,
    /// Size of the cache for page-table entries that the walker asks first, in KiB.
    #[garde(range(min = 1, max = 1024))]
    #[schemars(range(min = 1, max = 1024))]
    pub walk_cache_kib: u16,
    /// Its ways.
    #[garde(range(min = 1, max = 64))]
    #[schemars(range(min = 1, max = 64))]
    pub walk_cache_ways: u16,
    /// Cycles of a walk besides its memory reads.
    #[garde(range(min = 0, max = 1000))]
    #[schemars(range(min = 0, max = 1000))]
    pub walk_cycles: u16,
    /// Walks that can be under way at a time.
    #[garde(range(min = 1, max = 16))]
    #[schemars(range(min = 1, max = 16))]
    pub walkers: u8,
}

/// The tournament branch predictor (McFarling 1993), branch target buffer and return stack of each core.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct BranchPredictorConfig {
    /// log2 of the entries of the local history table and of the local counters.
    #[garde(range(min = 4, max = 20))]
    #[schemars(range(min = 4, max = 20))]
    pub local_bits: u8,
    /// log2 of the entries of the global counters and of the choice counters; also the length of the global history.
    #[garde(range(min = 4, max = 20))]
    #[schemars(range(min = 4, max = 20))]
    pub global_bits: u8,
    /// log2 of the entries of the branch target buffer.
    #[garde(range(min = 4, max = 20))]
    #[schemars(range(min = 4, max = 20))]
    pub target_bits: u8,
    /// Entries of the return address stack.
    #[garde(range(min = 1, max = 256))]
    #[schemars(range(min = 1, max = 256))]
    pub return_stack_entries: u16,
}

/// How the simulation itself is run; these keys trade accuracy of interleaving for speed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct SimulationConfig {
    /// How far a core may compute ahead of the others while all its accesses hit its own first-level caches, in ns.
    #[garde(range(min = 1.0, max = 100_000.0))]
    #[schemars(range(min = 1.0, max = 100_000.0))]
    pub run_ahead_ns: f64,
}
