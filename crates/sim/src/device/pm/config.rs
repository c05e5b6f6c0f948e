//! The `[pm]` table of a machine file: a persistent medium and its controller.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::device::block_pm::BlockConfig;
use crate::device::dram::config::whole_lines;
use crate::device::write_drain::WriteTurns;

/// A persistent medium of independent banks and its controller: accessed line by line, or, with `[pm.block]`, in whole
/// rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct PmConfig {
    /// Size of the memory behind the controller, in MiB; CXL's address decoders want whole multiples of 256.
    #[garde(range(min = 256, max = 16_777_216))]
    #[schemars(range(min = 256, max = 16_777_216))]
    pub capacity_mib: u64,
    /// Time in the controller's pipeline, once on the way in and once on the way out, in ns.
    #[garde(range(min = 0.0, max = 10_000.0))]
    #[schemars(range(min = 0.0, max = 10_000.0))]
    pub controller_latency_ns: f64,
    /// Time in the controller's pipeline on the way out of answers that a queue gives: of a write that is complete
    /// there, of a read that finds its line there; in ns.
    #[garde(range(min = 0.0, max = 10_000.0))]
    #[schemars(range(min = 0.0, max = 10_000.0))]
    pub queue_answer_ns: f64,
    /// How long a bank takes to read a line (a row, with `[pm.block]`), in ns.
    #[garde(range(min = 0.001, max = 1_000_000.0))]
    #[schemars(range(min = 0.001, max = 1_000_000.0))]
    pub read_ns: f64,
    /// How long a bank takes to write a line (a row, with `[pm.block]`), in ns.
    #[garde(range(min = 0.001, max = 1_000_000.0))]
    #[schemars(range(min = 0.001, max = 1_000_000.0))]
    pub write_ns: f64,
    /// How long a line takes between a bank and the bus, in ns: after its read, before its write. With `[pm.block]`
    /// between a buffer and the bus.
    #[garde(range(min = 0.0, max = 10_000.0))]
    #[schemars(range(min = 0.0, max = 10_000.0))]
    pub send_ns: f64,
    /// Banks that work side by side; consecutive rows lie in consecutive banks.
    #[garde(range(min = 1, max = 1024))]
    #[schemars(range(min = 1, max = 1024))]
    pub banks: u16,
    /// Bytes of a row: consecutive lines that lie in one bank; a multiple of 64.
    #[garde(custom(whole_lines))]
    #[schemars(range(min = 64, max = 65_536))]
    pub row_bytes: u32,
    /// Whether a bank keeps the row that it read or wrote last in a buffer, from which it is read without waiting for
    /// the medium. Not with `[pm.block]`, whose buffers all banks share.
    #[garde(custom(not_with_blocks(self.block.is_some() && self.row_buffer)))]
    pub row_buffer: bool,
    /// How long a line occupies the bus that all banks share, in ns: after its read, before its write. 0, if left out:
    /// the bus is no limit.
    #[garde(range(min = 0.0, max = 10_000.0))]
    #[schemars(range(min = 0.0, max = 10_000.0))]
    #[serde(default)]
    pub burst_ns: f64,
    /// Reads that may wait for a bank.
    #[garde(range(min = 1, max = 4096))]
    #[schemars(range(min = 1, max = 4096))]
    pub read_queue_entries: u16,
    /// Lines that wait to be written or are being written. With `[pm.block]` this is the write-combining buffer, and
    /// this and the watermarks count its rows.
    #[garde(range(min = 1, max = 4096))]
    #[schemars(range(min = 1, max = 4096))]
    pub write_queue_entries: u16,
    /// With this many queued writes, writes go before waiting reads.
    #[garde(range(min = 1, max = self.write_queue_entries))]
    #[schemars(range(min = 1, max = 4096))]
    pub write_high_watermark: u16,
    /// A batch of writes ends when this many are left; less than the high watermark.
    #[garde(range(min = 0, max = self.write_high_watermark.saturating_sub(1)))]
    #[schemars(range(min = 0, max = 4095))]
    pub write_low_watermark: u16,
    /// Writes that stay in the queue while no read waits, so that later accesses find them there. More are written down
    /// to it, or to the low watermark if that is less. 0: each is written as soon as possible. Without effect with
    /// `ack_at = "media"`.
    #[garde(range(min = 0, max = self.write_high_watermark.saturating_sub(1)))]
    #[schemars(range(min = 0, max = 4095))]
    pub write_idle_watermark: u16,
    /// How reads and writes take turns.
    #[garde(skip)]
    pub write_turns: WriteTurns,
    /// Requests of a turn with `write_turns = "batches"`: after this many reads or writes, the other kind has its turn
    /// if it waits.
    #[garde(range(min = 1, max = 4096))]
    #[schemars(range(min = 1, max = 4096))]
    pub requests_per_turn: u16,
    /// How many reads may pass a waiting write of their bank, unless writes are handed over; then the write has its
    /// turn.
    #[garde(range(min = 1, max = 65_535))]
    #[schemars(range(min = 1, max = 65_535))]
    pub read_bypass_cap: u16,
    /// Writes that the controller hands over to the banks, where reads cannot pass them. 0: a write stays in its queue
    /// until its bank has written it, and reads may pass it. Not with `[pm.block]`.
    #[garde(range(min = 0, max = 4096), custom(not_with_blocks(self.block.is_some() && self.handed_over_writes > 0)))]
    #[schemars(range(min = 0, max = 4096))]
    pub handed_over_writes: u16,
    /// Whether a write to a line (a row, with `[pm.block]`) that is queued already, and whose writing has not begun,
    /// joins it in its place.
    #[garde(skip)]
    pub write_merging: bool,
    /// Where a write is complete.
    #[garde(skip)]
    pub ack_at: AckAt,
    /// What keeps the content.
    #[garde(skip)]
    #[serde(default, skip_serializing_if = "PmMedium::is_cells")]
    pub medium: PmMedium,
    /// With this table the medium is accessed in whole rows, with buffers between its banks and the bus; without it,
    /// line by line.
    #[garde(dive)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<BlockConfig>,
}

fn not_with_blocks<T>(is_with_blocks: bool) -> impl FnOnce(&T, &()) -> garde::Result {
    move |_, ()| match is_with_blocks {
        true => Err(garde::Error::new("this cannot be with [pm.block], whose buffers stand in its place")),
        false => Ok(()),
    }
}

/// What a PM device keeps its content in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PmMedium {
    /// Cells that need no power: all other keys of `[pm]` describe them.
    #[default]
    Cells,
    /// DRAM that a battery keeps, queues included, as `[expander]` describes it: the other keys of `[pm]` have no
    /// effect.
    BatteryBackedDram,
}

impl PmMedium {
    fn is_cells(&self) -> bool {
        *self == PmMedium::Cells
    }
}

/// Where a write to PM is complete: from there on it survives a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AckAt {
    /// In the write queue (the write-combining buffer of `[pm.block]`), which lies inside the persistent domain.
    Queue,
    /// On the medium; the write queue, or buffer, is volatile.
    Media,
}
