//! The INFO frame: what was recorded, and by what.

use serde::{Deserialize, Serialize};

use super::error::Problem;
use super::text::escaped;

/// What a record says about its recording. Members that this version does not know are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Info {
    /// Version of the format.
    pub format_version: u32,
    /// Instruction set of the recorded bytes.
    pub isa: String,
    /// Name and version of the recording client.
    pub recorder: String,
    /// Name and version of the instrumentation engine under it.
    pub engine: String,
    /// Path of the program; bytes that are not UTF-8 as `\xNN`, here as in all texts.
    pub program: String,
    /// Its arguments, as it received them.
    pub arguments: Vec<String>,
    /// Size of a page, in bytes.
    pub page_size: u64,
    /// Size of a cache line, in bytes.
    pub line_size: u64,
    /// What was asked of the recorder.
    pub options: RecordingOptions,
    /// Its number in its tree, from 1, of a process that another one began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u64>,
    /// The number of the one that began it, of which that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u64>,
}

/// What was asked of the recorder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordingOptions {
    /// Whether the bytes that PM holds and receives are in the record.
    pub values: bool,
    /// The selector of the PM whose bytes are.
    pub pm: Option<String>,
    /// Where the region of interest begins and ends, as given.
    pub roi: Option<String>,
    /// If nothing else was recorded: how many instructions before it were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm: Option<u64>,
    /// Of windows: so many instructions from the begin of one to that of the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<u64>,
}

impl Default for Info {
    fn default() -> Self {
        Self {
            format_version: super::frame::VERSION.into(),
            isa: ISA_X86_64.to_string(),
            recorder: String::new(),
            engine: String::new(),
            program: String::new(),
            arguments: Vec::new(),
            page_size: 4096,
            line_size: 64,
            options: RecordingOptions::default(),
            process: None,
            parent: None,
        }
    }
}

/// [`Info::isa`] of a record whose bytes are 64-bit x86.
pub const ISA_X86_64: &str = "x86-64";
/// [`Info::isa`] of a record whose bytes are 64-bit Arm.
pub const ISA_AARCH64: &str = "aarch64";

impl Info {
    pub(super) fn decode(payload: &[u8], version: u16) -> Result<Self, Problem> {
        let mut info: Self = serde_json::from_slice(payload).map_err(|error| Problem::Json(error.to_string()))?;
        if info.format_version != u32::from(version) {
            return Err(Problem::Malformed("its format version is not that of its frame"));
        }
        if !info.page_size.is_power_of_two() || info.line_size != 64 {
            return Err(Problem::Malformed("its page size is no power of two, or its line size is not 64"));
        }
        info.escape();
        Ok(info)
    }

    /// Terminals get none of the control characters that a record may hold.
    fn escape(&mut self) {
        let RecordingOptions { pm, roi, .. } = &mut self.options;
        let own = [&mut self.isa, &mut self.recorder, &mut self.engine, &mut self.program];
        for text in own.into_iter().chain(&mut self.arguments).chain(pm).chain(roi) {
            *text = escaped(text.as_bytes());
        }
    }

    pub(super) fn encode(&self) -> Result<Vec<u8>, Problem> {
        serde_json::to_vec(self).map_err(|error| Problem::Json(error.to_string()))
    }
}
