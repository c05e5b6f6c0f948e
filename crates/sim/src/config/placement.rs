//! Where the memory of programs lies, as a machine file says it.

use std::collections::BTreeMap;

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parts of a program (`heap`, `stack`, `data`, `"file:PATTERN"`, `"range:LO-HI"`, `all`), each with its memory node:
/// `dram0` for the host's own DRAM, the name of a device or of an interleaved set, and behind a colon a policy if it is
/// not to be `bind`, as in `"dram0/pool:interleave=3/1"`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct PlacementConfig(pub BTreeMap<String, String>);

impl PlacementConfig {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Rules are checked where the nodes are known: `rules::check_placement`.
impl Validate for PlacementConfig {
    type Context = ();

    fn validate_into(&self, _: &(), _: &mut dyn FnMut() -> garde::Path, _: &mut garde::Report) {}
}
