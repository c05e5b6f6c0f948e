//! Memory of a device that its host caches too, line by line: CXL.mem with metadata, and how the device gets at a line
//! that the host may have.
//!
//! Two pure state machines, as for host memory: the [`device`]'s engine, which is the home of the line, with a cache of
//! its own and what it knows of the host (the bias); and the [`host`], all of its caches together. A device of CXL 1.1
//! and 2.0 asks the host by a request of CXL.cache, and gets a `MemRdFwd` that says what the host keeps: if nothing,
//! the line is in device bias, and the device may do with it as it likes. One of CXL 3 snoops the host (`BISnp`), and a
//! handshake (`BIConflict`) tells whether a request of the host's own came before or after. Any access of the host
//! takes the line into host bias.

pub mod device;
pub mod host;

#[cfg(test)]
mod tests;

/// What the host may have of a line: the `MetaValue` of CXL.mem.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Meta {
    /// Nothing: device bias.
    #[default]
    Invalid,
    /// A copy to read.
    Shared,
    /// A copy to write.
    Any,
}

impl Meta {
    /// All of them, in the order of their numbers.
    pub const ALL: [Meta; 3] = [Meta::Invalid, Meta::Shared, Meta::Any];
}

/// M2S requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemRequest {
    /// `MemRd` with `SnpData`: a copy to read.
    Read,
    /// `MemRd` with `SnpInv`: a copy to write.
    ReadOwn,
    /// `MemInv`: the right to write a whole line, without its data.
    Invalidate,
    /// `MemRdFwd`: the device's own request is done; this is what the host keeps.
    Forward(Meta),
}

/// S2M answers without data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// A write is done.
    Cmp,
    /// A copy to read is granted.
    CmpS,
    /// A copy to write is granted.
    CmpE,
    /// Whatever came before the device's snoop has been answered before this.
    BiConflictAck,
}

impl Completion {
    /// All of them, in the order of their numbers.
    pub const ALL: [Completion; 4] = [Completion::Cmp, Completion::CmpS, Completion::CmpE, Completion::BiConflictAck];
}

/// What a device wants of a line of its own that the host may have: by `RdShared` and `RdOwnNoData` of CXL.cache, or by
/// `BISnpData` and `BISnpInv`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// To read it: the host may keep a copy to read.
    Share,
    /// To write it: the host may keep nothing.
    Own,
}

impl Ask {
    /// All of them, in the order of their numbers.
    pub const ALL: [Ask; 2] = [Ask::Share, Ask::Own];
}

/// How a device asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// By CXL.cache: memory with bias (HDM-D).
    Bias,
    /// By back-invalidate snoops (HDM-DB).
    BackInvalidate,
}

/// What both ends keep to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRules {
    /// No later request of the host passes a `MemRdFwd`.
    pub forward_is_not_passed: bool,
    /// The host sends `MemRdFwd`, or answers a snoop, when what it wrote back is in memory.
    pub answer_waits_for_write: bool,
    /// The host gives its copy up when the device wants to write.
    pub host_gives_up: bool,
    /// The host says so when it keeps a copy to read.
    pub kept_copies_are_said: bool,
    /// A read of the host leaves the device's cache no copy to write.
    pub reads_share_device_copy: bool,
    /// The device's modified copy is in memory before the host gets the line.
    pub device_writes_back: bool,
    /// The host's right to write takes the device's copy away.
    pub ownership_takes_device_copy: bool,
    /// A write of the host past its caches takes the device's copy away.
    pub writes_take_device_copy: bool,
    /// The device remembers that a read of the host leaves a copy there.
    pub reads_end_device_bias: bool,
    /// The host asks the device whether a snoop came before or after its own request.
    pub conflicts_are_resolved: bool,
    /// The device holds requests of the host back while its snoop is under way.
    pub snooping_device_holds_back: bool,
    /// The device answers requests of the host while it waits for a `MemRdFwd`.
    pub asking_device_answers: bool,
}

impl MemoryRules {
    /// All are kept.
    pub const SOUND: MemoryRules = MemoryRules {
        forward_is_not_passed: true,
        answer_waits_for_write: true,
        host_gives_up: true,
        kept_copies_are_said: true,
        reads_share_device_copy: true,
        device_writes_back: true,
        ownership_takes_device_copy: true,
        writes_take_device_copy: true,
        reads_end_device_bias: true,
        conflicts_are_resolved: true,
        snooping_device_holds_back: true,
        asking_device_answers: true,
    };
}
