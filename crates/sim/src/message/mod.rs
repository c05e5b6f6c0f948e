//! Every message that components exchange: the CXL.mem transactions and what they carry.
//!
//! Requests flow away from the host (M2S), answers towards it (S2M). A message is small. It carries the version of the line
//! instead of its bytes, and a latency stack that each component on its way charges, so that the parts of a latency always sum to the whole.

mod stack;

use crate::line::{ByteMask, LineAddress, Version};
use crate::time::Time;

pub use stack::{LatencyStack, Stage};

/// Names a request between two neighbours. Each sender chooses its own; a switch renames what passes through it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u32);

/// Names a traced request in all its messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestName(pub u32);

impl RequestName {
    /// Of a request that is not traced.
    pub const NONE: RequestName = RequestName(0);
}

/// The credit classes of CXL.mem; each has buffers and credits of its own, and no order holds between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessageClass {
    /// M2S Req: requests without data.
    Request,
    /// M2S RwD: requests with data.
    RequestWithData,
    /// S2M NDR: answers without data.
    NoDataResponse,
    /// S2M DRS: answers with data.
    DataResponse,
}

impl MessageClass {
    /// How many classes there are.
    pub const COUNT: usize = 4;
    /// All of them, in the order of their indices.
    pub const ALL: [MessageClass; Self::COUNT] =
        [Self::Request, Self::RequestWithData, Self::NoDataResponse, Self::DataResponse];

    /// As an index into an array of [`MessageClass::COUNT`].
    pub fn index(self) -> usize {
        self as usize
    }

    /// Whether a line comes with it.
    pub fn carries_data(self) -> bool {
        matches!(self, MessageClass::RequestWithData | MessageClass::DataResponse)
    }

    /// The name in statistics.
    pub fn name(self) -> &'static str {
        ["m2s_req", "m2s_rwd", "s2m_ndr", "s2m_drs"][self.index()]
    }
}

/// What a message asks for or answers (CXL 3.1 specification, chapter 3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// M2S Req: read a line.
    MemRd,
    /// M2S RwD: write a whole line.
    MemWr,
    /// M2S RwD: write the bytes of the mask.
    MemWrPtl,
    /// S2M NDR: the write is complete (at its persist point, for PM).
    Cmp,
    /// S2M DRS: the line that was read.
    MemData,
}

impl Opcode {
    /// The credit class it travels in.
    pub fn class(self) -> MessageClass {
        match self {
            Opcode::MemRd => MessageClass::Request,
            Opcode::MemWr | Opcode::MemWrPtl => MessageClass::RequestWithData,
            Opcode::Cmp => MessageClass::NoDataResponse,
            Opcode::MemData => MessageClass::DataResponse,
        }
    }
}

/// Why a request was made. CXL carries nothing of this; it exists for the statistics only and must not influence timing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// A load, or a store that fetches its line.
    DemandRead,
    /// An instruction fetch.
    InstructionFetch,
    /// A page walk.
    PageWalk,
    /// A prefetch of hardware or software.
    Prefetch,
    /// A flush instruction wrote the line back.
    Flush,
    /// A non-temporal store.
    NonTemporalStore,
    /// An eviction from the last-level cache.
    Writeback,
    /// A persist buffer drained the line.
    Drain,
}

impl Cause {
    /// Whether this is a persist as the study counts it: a flush or a non-temporal store.
    pub fn is_persist(self) -> bool {
        matches!(self, Cause::Flush | Cause::NonTemporalStore)
    }
}

/// One CXL.mem message.
#[derive(Clone, Debug)]
pub struct Message {
    /// What it asks for or answers.
    pub opcode: Opcode,
    /// Why the request was made; an answer repeats it.
    pub cause: Cause,
    /// The line. CXL's NDR carries no address: nothing may depend on this field in a `Cmp` (it is filled for traces).
    pub line: LineAddress,
    /// The sender's name for the request; an answer repeats it.
    pub tag: Tag,
    /// The name by which it is traced, if it is.
    pub request: RequestName,
    /// What a write writes, or what a `MemData` brings.
    pub version: Version,
    /// The bytes a write carries.
    pub mask: ByteMask,
    /// Where its time went.
    pub stack: LatencyStack,
}

impl Message {
    /// A read of `line`.
    pub fn read(line: LineAddress, tag: Tag, cause: Cause, now: Time) -> Message {
        Message {
            opcode: Opcode::MemRd,
            cause,
            line,
            tag,
            request: RequestName::NONE,
            version: Version(0),
            mask: ByteMask::FULL,
            stack: LatencyStack::starting(now),
        }
    }

    /// A write of `version` to the bytes `mask` of `line`.
    pub fn write(line: LineAddress, tag: Tag, cause: Cause, version: Version, mask: ByteMask, now: Time) -> Message {
        let opcode = if mask.is_full() { Opcode::MemWr } else { Opcode::MemWrPtl };
        Message {
            opcode,
            cause,
            line,
            tag,
            request: RequestName::NONE,
            version,
            mask,
            stack: LatencyStack::starting(now),
        }
    }

    /// The answer to this request: `Cmp` to a write, `MemData` with `version` to a read.
    pub fn answer(mut self, version: Version) -> Message {
        self.opcode = match self.opcode {
            Opcode::MemRd => Opcode::MemData,
            Opcode::MemWr | Opcode::MemWrPtl => Opcode::Cmp,
            Opcode::Cmp | Opcode::MemData => unreachable!("an answer has no answer"),
        };
        self.version = version;
        self
    }

    /// The completion of this write.
    pub fn completion(self) -> Message {
        let version = self.version;
        self.answer(version)
    }

    /// The credit class it travels in.
    pub fn class(&self) -> MessageClass {
        self.opcode.class()
    }

    /// Whether it is a write request.
    pub fn is_write(&self) -> bool {
        matches!(self.opcode, Opcode::MemWr | Opcode::MemWrPtl)
    }
}
