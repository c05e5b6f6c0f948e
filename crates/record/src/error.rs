//! Why a record is refused: one line that names the record, the frame and its offset.

use std::{fmt, io};

use super::frame::VERSION;

/// A record that cannot be read, or not wholly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordError {
    /// The name of the record's source.
    pub record: String,
    /// The frame at fault, if it is one frame's fault.
    pub frame: Option<FramePlace>,
    /// What is wrong.
    pub problem: Problem,
}

/// Which frame of a record, and where it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FramePlace {
    /// Number of the frame in the file, from 0.
    pub number: u64,
    /// Offset of its header in the file, in bytes.
    pub offset: u64,
}

/// What can be wrong with a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The file is something else.
    #[error("this is not a record: {0}")]
    NotARecord(&'static str),
    /// Written by an earlier recorder.
    #[error(
        "the record's format version is {found}, and this program reads version {VERSION}: record the program again \
         (fencepost record)"
    )]
    OldVersion {
        /// The version in the frame header.
        found: u16,
    },
    /// Written by a later recorder.
    #[error("the record's format version is {found}, and this program reads version {VERSION}")]
    LaterVersion {
        /// The version in the frame header.
        found: u16,
    },
    /// There is no footer: the recording was cut off.
    #[error(
        "the record is not sealed, because its recording was cut off after {whole_frames} whole frames{}; \
         --allow-cut reads it up to there",
        if *.incomplete { " and an incomplete one" } else { "" }
    )]
    Unsealed {
        /// Frames that can be read.
        whole_frames: u64,
        /// Whether a part of a further frame follows them.
        incomplete: bool,
    },
    /// It cannot be read with the records of other processes.
    #[error("{0}")]
    Tree(&'static str),
    /// There is nothing to replay.
    #[error("no instruction of the program is in the record{0}")]
    Empty(&'static str),
    /// Cut off so early that there is nothing to read.
    #[error("the record was cut off before its first frame was whole")]
    NothingWhole,
    /// Bytes are not what was written.
    #[error("the frame is damaged: {0}")]
    Damaged(&'static str),
    /// The footer, or what stands around it, is not what was written.
    #[error("the end of the record is damaged: {0}")]
    DamagedEnd(&'static str),
    /// The checksum is right, but the contents break the format.
    #[error("the frame breaks the format: {0}")]
    Malformed(&'static str),
    /// A count or length beyond the limit of the format.
    #[error("the frame breaks the format: {what} is {found}, and the limit is {limit}")]
    TooLarge {
        /// What was counted.
        what: &'static str,
        /// How many there are.
        found: u64,
        /// How many there may be.
        limit: u64,
    },
    /// A trace names a block that no code frame defines.
    #[error("the frame breaks the format: block {block} is executed, and the record defines {blocks}")]
    UnknownBlock {
        /// The block id in the trace.
        block: u64,
        /// Number of blocks that the record defines.
        blocks: u64,
    },
    /// An event of a type that this version does not have.
    #[error("the frame breaks the format: event type {0} does not exist")]
    UnknownEvent(u8),
    /// The information about the recording does not parse.
    #[error("the frame breaks the format: its JSON does not parse: {0}")]
    Json(String),
    /// Its instructions are of a processor that the simulator does not know. The record itself may be sound.
    #[error("its instruction set is `{found}`, and this version replays {}", .replayable.join(", "))]
    OtherInstructionSet {
        /// That of the record.
        found: String,
        /// Those that can be replayed.
        replayable: &'static [&'static str],
    },
    /// The source failed.
    #[error("reading failed: {0}")]
    Io(String),
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::Io(error.to_string())
    }
}

impl Problem {
    /// Whether it is one of the whole record, in whichever frame it was found.
    pub(super) fn is_of_all_frames(&self) -> bool {
        matches!(self, Self::OldVersion { .. } | Self::LaterVersion { .. })
    }

    /// Refuses `found` above `limit`.
    pub(super) fn check_limit(what: &'static str, found: u64, limit: u64) -> Result<(), Self> {
        if found > limit { Err(Self::TooLarge { what, found, limit }) } else { Ok(()) }
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: ", self.record)?;
        if let Some(FramePlace { number, offset }) = self.frame {
            write!(formatter, "frame {number} at offset {offset}: ")?;
        }
        write!(formatter, "{}", self.problem)
    }
}

impl std::error::Error for RecordError {}
