//! The `[persist]` table of a machine file.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The instructions that are inserted into programs that persist nothing themselves (`--persist sync` and `--persist
/// every:N`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct PersistConfig {
    /// The flush of each dirty line, in x86-64 programs.
    #[garde(skip)]
    pub flush: InsertedFlush,
    /// The fence after the flushes, in x86-64 programs.
    #[garde(skip)]
    pub fence: InsertedFence,
    /// The flush of each dirty line, in AArch64 programs. The fence after the flushes is `dsb`.
    #[garde(skip)]
    pub aarch64_flush: InsertedAarch64Flush,
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

/// Which flush instruction is inserted into AArch64 programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InsertedAarch64Flush {
    /// `dc cvap`: to the point of persistence; the line may stay, clean.
    #[default]
    DcCvap,
    /// `dc cvac`: to the point of coherence; the line may stay, clean.
    DcCvac,
    /// `dc civac`: to the point of coherence; invalidates.
    DcCivac,
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
