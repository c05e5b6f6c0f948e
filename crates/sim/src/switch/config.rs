//! The `[switch]` table of a machine file, with `[switch.persist_buffer]`.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use fencepost_kernel::time::Duration;

/// A CXL switch: a four-stage pipelined router with a buffer for each port and message class. The depth of those
/// buffers is the number of credits of the link that feeds them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct SwitchConfig {
    /// One stage of the pipeline (buffer write and decoding; routing and persist buffer lookup; switch allocation;
    /// switch traversal), in ns.
    #[garde(range(min = 0.0, max = 1000.0))]
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub pipeline_stage_ns: f64,
    /// How long a flit's four slots occupy an input and an output of the crossbar, in ns. A message without data has
    /// one slot, one with data has five. The flit time of a link makes the crossbar as fast as that link; 0 makes it no
    /// bottleneck.
    #[garde(range(min = 0.0, max = 1000.0))]
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub crossbar_flit_ns: f64,
    /// The persist buffer of a switch that is a persist point; nothing if no switch of this kind has one.
    #[garde(dive)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persist_buffer: Option<PersistBufferConfig>,
}

impl SwitchConfig {
    /// One stage of the pipeline.
    pub fn pipeline_stage(&self) -> Duration {
        Duration::from_ns(self.pipeline_stage_ns)
    }
}

/// A persist buffer: its entries, its controller (PBC) and the controller's input (PI) and output (PO).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct PersistBufferConfig {
    /// Entries (PBEs), each a line. One more slot is there besides, so that a write merged into an entry never
    /// overwrites it in place.
    #[garde(range(min = 1, max = 256))]
    #[schemars(range(min = 1, max = 256))]
    pub entries: u16,
    /// One access to the tags: a lookup, or a write of a tag with its state; in ns.
    #[garde(range(min = 0.0, max = 1000.0))]
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub tag_access_ns: f64,
    /// One access to the data of an entry, in ns.
    #[garde(range(min = 0.0, max = 1000.0))]
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub data_access_ns: f64,
    /// Time that the controller needs for each write, read, acknowledgement or drain besides its accesses, in ns.
    #[garde(range(min = 0.0, max = 1000.0))]
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub service_ns: f64,
    /// Whether a read bypasses the controller if its line is in no entry and no write on its way. False: the controller
    /// serves every read of a line that persists here, in turn with all other work.
    #[garde(skip)]
    pub reads_bypass: bool,
    /// Places for reads and writes in the controller's input.
    #[garde(range(min = 1, max = 64))]
    #[schemars(range(min = 1, max = 64))]
    pub input_entries: u16,
    /// Places that only acknowledgements of the memory device can take, in the controller's input.
    #[garde(range(min = 1, max = 64))]
    #[schemars(range(min = 1, max = 64))]
    pub input_acknowledgement_entries: u16,
    /// Places for each message class in the controller's output.
    #[garde(range(min = 1, max = 64))]
    #[schemars(range(min = 1, max = 64))]
    pub output_entries: u16,
    /// `pb_rf` starts to drain when more than this part of the entries are occupied. Of 16 entries 80 % are 12.8: it
    /// starts at the 13th.
    #[garde(range(min = 0.0, max = 1.0))]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub drain_threshold: f64,
    /// `pb_rf` drains until at most this part of the entries hold lines whose drain has not begun. Of 16 entries 60 %
    /// are 9.6: it stops at 9. At most the threshold.
    #[garde(range(min = 0.0, max = 1.0), custom(at_most(&self.drain_threshold)))]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub drain_preset: f64,
}

fn at_most(threshold: &f64) -> impl FnOnce(&f64, &()) -> garde::Result + '_ {
    move |preset, ()| {
        if preset <= threshold {
            Ok(())
        } else {
            Err(garde::Error::new(format!("{preset} is more than drain_threshold ({threshold})")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table_one() -> SwitchConfig {
        serde_json::from_value(serde_json::json!({
            "pipeline_stage_ns": 5.0,
            "crossbar_flit_ns": 0.5,
            "persist_buffer": {
                "entries": 16, "tag_access_ns": 0.388, "data_access_ns": 0.785, "service_ns": 0.0,
                "reads_bypass": true, "input_entries": 16,
                "input_acknowledgement_entries": 4, "output_entries": 8, "drain_threshold": 0.8, "drain_preset": 0.6,
            },
        }))
        .unwrap()
    }

    #[test]
    fn a_preset_above_the_threshold_is_refused() {
        let mut config = table_one();
        assert!(config.validate().is_ok());
        config.persist_buffer.as_mut().unwrap().drain_preset = 0.81;
        let error = config.validate().unwrap_err().to_string();
        assert_eq!(error.trim(), "persist_buffer.drain_preset: 0.81 is more than drain_threshold (0.8)");
    }

    #[test]
    fn a_switch_without_a_persist_buffer_says_nothing_of_it() {
        let config = SwitchConfig { persist_buffer: None, ..table_one() };
        let text = serde_json::to_string(&config).unwrap();
        assert_eq!(text, r#"{"pipeline_stage_ns":5.0,"crossbar_flit_ns":0.5}"#);
        assert_eq!(serde_json::from_str::<SwitchConfig>(&text).unwrap(), config);
    }
}
