//! Every message that components exchange: the CXL.mem transactions and what they carry.
//!
//! Requests flow away from the host (M2S), answers towards it (S2M). A message is small. It carries the version of the line
//! instead of its bytes, and a latency stack that each component on its way charges, so that the parts of a latency always sum to the whole.

use crate::kernel::Time;
use crate::kernel::time::Duration;
use crate::kernel::trace::RequestName;

/// Bytes of a cache line; CXL.mem moves nothing smaller.
pub const LINE_BYTES: u64 = 64;

/// A physical line: the host physical address divided by 64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineAddress(pub u64);

impl LineAddress {
    /// The line that holds the byte at `address`.
    pub fn containing(address: u64) -> LineAddress {
        LineAddress(address / LINE_BYTES)
    }

    /// The physical address of the line's first byte.
    pub fn byte(self) -> u64 {
        self.0 * LINE_BYTES
    }
}

/// Which write of a line's history: the number of stores that have been performed on it. Version 0 is the initial content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u32);

/// Which bytes of a line a write carries; bit 0 is the first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteMask(pub u64);

impl ByteMask {
    /// All 64 bytes: an ordinary `MemWr`.
    pub const FULL: ByteMask = ByteMask(u64::MAX);

    /// Whether every byte is there.
    pub fn is_full(self) -> bool {
        self.0 == u64::MAX
    }
}

/// Names a request between two neighbours. Each sender chooses its own; a switch renames what passes through it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u32);

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

/// Where a request's time went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// In the core and on the way to the last-level cache: from a load's issue, or the turn of a store or flush, until the last level has been looked up.
    Core,
    /// In the last-level cache, from there until it leaves: waiting for an MSHR, for a write buffer, for a copy of another core, or for an earlier
    /// write of the line to leave.
    Cache,
    /// In the host bridge: decoding, ordering, its queues.
    HostBridge,
    /// Waiting for credits or for the link to become free.
    LinkWait,
    /// On the link: serialisation and flight.
    Link,
    /// In the stages of a switch's pipeline.
    SwitchPipeline,
    /// Waiting in a switch for its turn, blocked or not.
    Arbitration,
    /// Waiting for a persist buffer: for room in its input, for its controller, or parked until an entry is free.
    PersistBufferWait,
    /// Served by a persist buffer's controller.
    PersistBufferAccess,
    /// In the device, before its medium was asked.
    DeviceQueue,
    /// The medium itself.
    Media,
}

impl Stage {
    /// How many stages there are.
    pub const COUNT: usize = 11;
    /// All of them, in the order of the variants.
    pub const ALL: [Stage; Self::COUNT] = [
        Self::Core,
        Self::Cache,
        Self::HostBridge,
        Self::LinkWait,
        Self::Link,
        Self::SwitchPipeline,
        Self::Arbitration,
        Self::PersistBufferWait,
        Self::PersistBufferAccess,
        Self::DeviceQueue,
        Self::Media,
    ];
    /// The names in statistics, in the order of the variants.
    pub const NAMES: [&'static str; Self::COUNT] = [
        "core",
        "cache",
        "host_bridge",
        "link_wait",
        "link",
        "switch_pipeline",
        "arbitration",
        "pb_wait",
        "pb_access",
        "device_queue",
        "media",
    ];
}

/// A request's time so far, divided among stages. Whoever holds the request charges the time since the last charge to one stage, so
/// that the parts sum exactly to the whole.
///
/// A message holds it by a pointer: it is as large as all else of a message together, and moves from queue to queue with it.
#[derive(Clone, Debug)]
pub struct LatencyStack(Box<Charges>);

#[derive(Clone, Debug)]
struct Charges {
    parts_ps: [u64; Stage::COUNT],
    start: Time,
    until: Time,
}

impl LatencyStack {
    /// An empty stack of a request that starts at `start`.
    pub fn starting(start: Time) -> LatencyStack {
        LatencyStack(Box::new(Charges { parts_ps: [0; Stage::COUNT], start, until: start }))
    }

    /// Charges the time from the last charge until `until` to `stage`. `until` may lie in the future, if the holder knows already.
    pub fn charge(&mut self, stage: Stage, until: Time) {
        let charges = &mut *self.0;
        debug_assert!(until >= charges.until, "time is charged twice");
        charges.parts_ps[stage as usize] += until.since(charges.until).as_ps();
        charges.until = until;
    }

    /// When the request started.
    pub fn start(&self) -> Time {
        self.0.start
    }

    /// The time up to which everything is charged.
    pub fn charged_until(&self) -> Time {
        self.0.until
    }

    /// The whole, from the start to the last charge.
    pub fn total(&self) -> Duration {
        self.0.until.since(self.0.start)
    }

    /// The time charged to each stage, in picoseconds, in the order of [`Stage::NAMES`].
    pub fn parts_ps(&self) -> &[u64; Stage::COUNT] {
        &self.0.parts_ps
    }

    /// The whole without the time charged to `stages`.
    pub fn total_without(&self, stages: &[Stage]) -> Duration {
        let parts: u64 = stages.iter().map(|&stage| self.0.parts_ps[stage as usize]).sum();
        Duration::from_ps(self.total().as_ps() - parts)
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
