//! The `[hold_up]` table of a machine file.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The source that feeds a platform for a while when power fails. No machine needs one to be simulated: it says which
/// shutdowns are dirty.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct HoldUpConfig {
    /// Energy that is there to bring what has to be saved to its media, in uJ.
    #[garde(range(min = 0.0, max = 1e15))]
    #[schemars(range(min = 0.0, max = 1e15))]
    pub energy_uj: f64,
}
