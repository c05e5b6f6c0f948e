//! The `[pm.block]` table of a machine file: what a medium that is accessed in whole rows has besides the keys of
//! `[pm]`.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A persistent medium whose unit of access is a row, here called a block, and its buffers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct BlockConfig {
    /// Blocks that the read buffer keeps, the most recently used ones: further reads of their lines do not ask a bank.
    #[garde(range(min = 1, max = 4096))]
    #[schemars(range(min = 1, max = 4096))]
    pub read_buffer_entries: u16,
    /// How long it takes to find where a block lies before a bank can be asked for it, in ns: the translation of
    /// addresses that levels wear. Any number of reads are in it at a time.
    #[garde(range(min = 0.0, max = 10_000.0))]
    #[schemars(range(min = 0.0, max = 10_000.0))]
    pub translation_ns: f64,
}
