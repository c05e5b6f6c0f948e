//! The SEAL frame: how the program ended, and the index of all frames before.

use super::error::Problem;
use super::frame::FrameHeader;
use super::varint::{Fields, encode, encode_bytes};

/// What the launcher adds when the program has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seal {
    /// How the program ended, such as `exit 0`.
    pub(super) ended: String,
    /// Threads whose last buffer was lost because the process was killed.
    pub(super) lost: u64,
    /// All frames before the seal.
    pub(super) frames: Vec<IndexEntry>,
    /// How many processes the tree has of which this is the first one; 0 where it is none.
    pub(super) processes: u64,
    /// Who was not recorded and may have stored to memory that a recorded process shared.
    pub(super) sharers: Vec<String>,
    /// Of the program, of which the record has windows.
    pub(super) program_instructions: Option<u64>,
}

/// A frame as the index names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IndexEntry {
    pub(super) kind: u8,
    pub(super) thread: u32,
    pub(super) offset: u64,
    pub(super) instructions: u64,
}

impl IndexEntry {
    pub(super) fn new(header: &FrameHeader, offset: u64) -> Self {
        Self { kind: header.kind as u8, thread: header.thread, offset, instructions: header.instructions }
    }
}

impl Seal {
    /// The seal behind the frames that `index` names.
    pub(super) fn decode(payload: &[u8], index: &[IndexEntry]) -> Result<Self, Problem> {
        const OTHER_FRAMES: Problem = Problem::Malformed("its index is not that of the frames before it");
        let mut fields = Fields::new(payload);
        let ended = super::text::escaped(fields.bytes()?);
        let lost = fields.varint()?;
        if fields.varint()? != index.len() as u64 {
            return Err(OTHER_FRAMES);
        }
        let mut frames = Vec::with_capacity(index.len());
        let mut offset = 0u64;
        for _ in index {
            let kind = fields.u8()?;
            let thread = fields.varint_up_to(u32::MAX.into(), "the thread of a frame")? as u32;
            offset = offset
                .checked_add(fields.varint()?)
                .ok_or(Problem::Malformed("the offset of a frame is beyond 64 bits"))?;
            let instructions = fields.varint()?;
            frames.push(IndexEntry { kind, thread, offset, instructions });
        }
        if frames != index {
            return Err(OTHER_FRAMES);
        }
        let (mut processes, mut sharers, mut program_instructions) = (0, Vec::new(), None);
        if !fields.is_at_end() {
            processes = fields.varint()?;
            for _ in 0..fields.varint()? {
                sharers.push(super::text::escaped(fields.bytes()?));
            }
            if !fields.is_at_end() {
                program_instructions = Some(fields.varint()?);
            }
        }
        if !fields.is_at_end() {
            return Err(Problem::Malformed("something follows its last entry"));
        }
        Ok(Self { ended, lost, frames, processes, sharers, program_instructions })
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut payload = Vec::new();
        encode_bytes(&mut payload, self.ended.as_bytes());
        encode(&mut payload, self.lost);
        encode(&mut payload, self.frames.len() as u64);
        let mut previous = 0;
        for frame in &self.frames {
            payload.push(frame.kind);
            encode(&mut payload, frame.thread.into());
            encode(&mut payload, frame.offset - previous);
            encode(&mut payload, frame.instructions);
            previous = frame.offset;
        }
        if self.processes > 0 || !self.sharers.is_empty() || self.program_instructions.is_some() {
            encode(&mut payload, self.processes);
            encode(&mut payload, self.sharers.len() as u64);
            self.sharers.iter().for_each(|name| encode_bytes(&mut payload, name.as_bytes()));
            self.program_instructions.iter().for_each(|count| encode(&mut payload, *count));
        }
        payload
    }
}
