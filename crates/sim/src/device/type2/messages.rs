//! What CXL.cache says: requests, snoops and responses, by the names of the CXL 3.1 specification (section 3.2.4).

/// A part of a line that a write can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// Some of its bytes.
    Some,
    /// All of it.
    Whole,
}

/// The data of a line.
pub trait Payload: Copy + PartialEq {
    /// These data, with a part of them written.
    #[must_use]
    fn overlaid(self, written: Self, part: Part) -> Self;
}

/// The state of a line in a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CacheState {
    /// Not there.
    #[default]
    Invalid,
    /// May be read; others may have it too.
    Shared,
    /// No other cache has it, and it is what the host has.
    Exclusive,
    /// No other cache has it, and it is newer than what the host has.
    Modified,
}

impl CacheState {
    /// All of them, in the order of their numbers.
    pub const ALL: [CacheState; 4] =
        [CacheState::Invalid, CacheState::Shared, CacheState::Exclusive, CacheState::Modified];

    /// Whether no other cache may have the line.
    pub fn is_owner(self) -> bool {
        matches!(self, CacheState::Exclusive | CacheState::Modified)
    }

    /// Its letter.
    pub fn letter(self) -> char {
        ['I', 'S', 'E', 'M'][self as usize]
    }
}

/// D2H requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// Reads the line as it is now, and keeps nothing.
    RdCurr,
    /// Reads to share.
    RdShared,
    /// Reads in whatever state the host likes.
    RdAny,
    /// Reads to write.
    RdOwn,
    /// Asks for a line that will be written whole.
    RdOwnNoData,
    /// Writes the line into the host's cache.
    ItoMWr,
    /// Writes the line where the host has it: in its cache on a hit, else in memory.
    WrCur,
    /// Has the line flushed to memory from all caches.
    CLFlush,
    /// Gives up a clean line; the host may pull its data.
    CleanEvict,
    /// Gives up a clean line.
    CleanEvictNoData,
    /// Gives up a modified line.
    DirtyEvict,
    /// Writes some bytes to memory, weakly ordered.
    WOWrInv,
    /// Writes a whole line to memory, weakly ordered.
    WOWrInvF,
    /// Writes some bytes to memory.
    WrInv,
    /// Says that the device's cache is empty.
    CacheFlushed,
}

impl Request {
    /// All of them, in the order of their numbers.
    pub const ALL: [Request; 15] = [
        Request::RdCurr,
        Request::RdShared,
        Request::RdAny,
        Request::RdOwn,
        Request::RdOwnNoData,
        Request::ItoMWr,
        Request::WrCur,
        Request::CLFlush,
        Request::CleanEvict,
        Request::CleanEvictNoData,
        Request::DirtyEvict,
        Request::WOWrInv,
        Request::WOWrInvF,
        Request::WrInv,
        Request::CacheFlushed,
    ];

    /// Whether the device gives up a line.
    pub fn is_eviction(self) -> bool {
        matches!(self, Request::CleanEvict | Request::CleanEvictNoData | Request::DirtyEvict)
    }

    /// The part of the line that is written past the device's cache, if any is.
    pub fn writes(self) -> Option<Part> {
        match self {
            Request::ItoMWr | Request::WrCur | Request::WOWrInvF => Some(Part::Whole),
            Request::WOWrInv | Request::WrInv => Some(Part::Some),
            _ => None,
        }
    }

    /// Whether the answer brings data.
    pub fn reads(self) -> bool {
        matches!(self, Request::RdCurr | Request::RdShared | Request::RdAny | Request::RdOwn)
    }
}

/// H2D requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Snoop {
    /// The line is to be shared or given up.
    SnpData,
    /// The line is to be given up.
    SnpInv,
    /// The line's present data are wanted; it stays.
    SnpCur,
}

impl Snoop {
    /// All of them, in the order of their numbers.
    pub const ALL: [Snoop; 3] = [Snoop::SnpData, Snoop::SnpInv, Snoop::SnpCur];
}

/// D2H responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SnoopResponse {
    /// There was nothing.
    RspIHitI,
    /// The line is still what it was, and clean.
    RspVHitV,
    /// The line was clean and is gone.
    RspIHitSE,
    /// The line was clean and is shared.
    RspSHitSE,
    /// The line was modified and is shared; its data come.
    RspSFwdM,
    /// The line was modified and is gone; its data come.
    RspIFwdM,
    /// The line stays modified; its data come.
    RspVFwdV,
}

impl SnoopResponse {
    /// All of them, in the order of their numbers.
    pub const ALL: [SnoopResponse; 7] = [
        SnoopResponse::RspIHitI,
        SnoopResponse::RspVHitV,
        SnoopResponse::RspIHitSE,
        SnoopResponse::RspSHitSE,
        SnoopResponse::RspSFwdM,
        SnoopResponse::RspIFwdM,
        SnoopResponse::RspVFwdV,
    ];

    /// Whether data come with it, in their own channel.
    pub fn brings_data(self) -> bool {
        matches!(self, SnoopResponse::RspSFwdM | SnoopResponse::RspIFwdM | SnoopResponse::RspVFwdV)
    }
}

/// H2D responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Response {
    /// The request is globally observed; this is the line's state now.
    Go(CacheState),
    /// The data are wanted.
    WritePull,
    /// Globally observed, and the data are wanted.
    GoWritePull,
    /// Globally observed, and the data are not wanted.
    GoWritePullDrop,
    /// The data are wanted; `ExtCmp` will say when the write is globally observed.
    FastGoWritePull,
    /// The write is globally observed.
    ExtCmp,
}

impl Response {
    /// All of them, in the order of [`Self::number`].
    pub const ALL: [Response; 9] = [
        Response::Go(CacheState::Invalid),
        Response::Go(CacheState::Shared),
        Response::Go(CacheState::Exclusive),
        Response::Go(CacheState::Modified),
        Response::WritePull,
        Response::GoWritePull,
        Response::GoWritePullDrop,
        Response::FastGoWritePull,
        Response::ExtCmp,
    ];

    /// Its number.
    pub fn number(self) -> usize {
        match self {
            Response::Go(state) => state as usize,
            Response::WritePull => 4,
            Response::GoWritePull => 5,
            Response::GoWritePullDrop => 6,
            Response::FastGoWritePull => 7,
            Response::ExtCmp => 8,
        }
    }
}

/// Data that a device sends because the host pulled them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pulled<D> {
    /// The data.
    pub data: D,
    /// They are of a line that was snooped away meanwhile: the host must drop them.
    pub is_bogus: bool,
}
