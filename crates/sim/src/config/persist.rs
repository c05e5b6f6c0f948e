//! The `[persist]` table of a machine file.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The instructions that are inserted into programs that persist nothing themselves (`--persist sync` and `--persist
/// every:N`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct PersistConfig {
    /// The flush of each dirty line.
    #[garde(skip)]
    pub flush: InsertedFlush,
    /// The fence after the flushes.
    #[garde(skip)]
    pub fence: InsertedFence,
}

/// Which flush instruction is inserted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InsertedFlush {
    /// `clflush`: ordered with stores and with other `clflush`; invalidates.
    #[default]
    Clflush,
    /// `clflushopt`: ordered with fences only; invalidates.
    Clflushopt,
    /// `clwb`: ordered with fences only; the line may stay, clean.
    Clwb,
}

/// Which fence instruction is inserted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InsertedFence {
    /// `mfence`: later loads wait too.
    #[default]
    Mfence,
    /// `sfence`: later loads go on.
    Sfence,
}
