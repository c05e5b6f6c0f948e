//! What goes into the persist buffer's logic and what comes out of it.

use super::state::{LineData, SlotIndex};
use fencepost_kernel::line::{ByteMask, LineAddress, Version};
use fencepost_kernel::message::MessageClass;

/// Names a read or write that waits for its answer; its sender chooses the name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u32);

/// An M2S RwD for a line that persists here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Write {
    /// Whom to acknowledge it to.
    pub request: RequestId,
    /// The line.
    pub line: LineAddress,
    /// The version that it makes of the line.
    pub version: Version,
    /// The bytes it carries.
    pub mask: ByteMask,
}

/// An M2S Req for a line that persists here, which the selector sends to the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Read {
    /// Whom to answer.
    pub request: RequestId,
    /// The line.
    pub line: LineAddress,
    /// Where the selector saw it. Always nothing under sound rules, by which the controller looks up again.
    pub seen: Option<SlotIndex>,
}

/// An S2M NDR for a drain: which entry of which generation the memory device has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Acknowledgement {
    /// The entry that was drained.
    pub entry: SlotIndex,
    /// Its generation then.
    pub generation: u16,
    /// Its line then. An NDR carries no address: no sound rule reads this.
    pub line: LineAddress,
}

/// What the selector (PBCS) looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Packet {
    /// A write.
    Write(Write),
    /// A read.
    Read(Read),
    /// The acknowledgement of a drain.
    Acknowledgement(Acknowledgement),
}

impl Default for Packet {
    fn default() -> Packet {
        Packet::Acknowledgement(Acknowledgement { entry: SlotIndex(0), generation: 0, line: LineAddress(0) })
    }
}

impl Packet {
    /// Whether it is the acknowledgement of a drain.
    pub fn is_acknowledgement(&self) -> bool {
        matches!(self, Packet::Acknowledgement(_))
    }

    /// Whether it is a write of `line`.
    pub fn writes(&self, line: LineAddress) -> bool {
        matches!(self, Packet::Write(write) if write.line == line)
    }

    /// The request that waits for an answer to it.
    pub fn request(&self) -> Option<RequestId> {
        match self {
            Packet::Write(write) => Some(write.request),
            Packet::Read(read) => Some(read.request),
            Packet::Acknowledgement(_) => None,
        }
    }
}

/// For which message classes the controller's output (PO) has room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OutputRoom(pub [bool; MessageClass::COUNT]);

impl OutputRoom {
    /// Room for every class.
    pub const ALL: OutputRoom = OutputRoom([true; MessageClass::COUNT]);

    /// The same without room for `class`.
    #[cfg(test)]
    #[must_use]
    pub fn without(mut self, class: MessageClass) -> OutputRoom {
        self.0[class.index()] = false;
        self
    }

    /// Whether a message of `class` finds room.
    pub fn has(self, class: MessageClass) -> bool {
        self.0[class.index()]
    }
}

/// What can happen to a persist buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// A packet reaches the selector.
    Arrive(Packet),
    /// The controller does its next step, if there is one. The output has this room.
    Step(OutputRoom),
    /// Power is gone.
    PowerFail,
    /// Power is back, and whatever was on its way to the memory device is known to have arrived or to be lost.
    PowerOn,
}

/// What a persist buffer sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Output {
    /// S2M NDR: the write is durable.
    Completed(RequestId),
    /// S2M DRS: the answer to a read, from an entry.
    Answered(RequestId, LineData),
    /// M2S Req: the read goes on to the memory device.
    Forwarded(RequestId),
    /// M2S RwD: an entry goes to the memory device, which answers with the acknowledgement.
    Drain(Acknowledgement, LineData),
}

impl Output {
    /// The class it travels in.
    pub fn class(&self) -> MessageClass {
        match self {
            Output::Completed(_) => MessageClass::S2mNdr,
            Output::Answered(..) => MessageClass::S2mDrs,
            Output::Forwarded(_) => MessageClass::M2sReq,
            Output::Drain(..) => MessageClass::M2sRwd,
        }
    }
}

/// What the persist buffer did with an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// There was nothing to do.
    Nothing,
    /// The packet is in the input (PI).
    Admitted,
    /// The packet found no room in the input.
    Refused,
    /// The read is none of the buffer's business and goes on to the memory device.
    Passed,
    /// The controller took a write, which gets an entry of its own.
    Allocating,
    /// The controller took a write, which gets an entry of its own, though there is one of its line: that cannot be
    /// merged with any more.
    Renewing,
    /// The controller took a write, which is merged into an entry.
    Coalescing,
    /// The controller took a read that an entry answers.
    Hit,
    /// The controller took a read that no entry answers.
    Missed,
    /// The controller took a write that finds no entry, or a read that has to wait for a drain, and parked it.
    Parked,
    /// The controller took an acknowledgement, which frees an entry.
    Freeing,
    /// The controller took an acknowledgement of something that is long over.
    Ignored,
    /// The controller chose an entry to drain.
    Draining,
    /// The controller did one more step of what it was doing.
    Continued,
    /// Power went or came.
    Power,
}

/// How often a step accesses the arrays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accesses {
    /// Accesses to the tags (with state and order, which lie in the same word).
    pub tag: u8,
    /// Accesses to the data.
    pub data: u8,
}

impl Accesses {
    /// One access to the tags.
    pub const TAG: Accesses = Accesses { tag: 1, data: 0 };
    /// None.
    pub const NONE: Accesses = Accesses { tag: 0, data: 0 };

    /// `count` accesses to the data.
    pub const fn data(count: u8) -> Accesses {
        Accesses { tag: 0, data: count }
    }
}

impl std::ops::Add for Accesses {
    type Output = Accesses;
    fn add(self, other: Accesses) -> Accesses {
        Accesses { tag: self.tag + other.tag, data: self.data + other.data }
    }
}

/// The reaction to one input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reaction {
    /// What was done.
    pub action: Action,
    /// What it took.
    pub accesses: Accesses,
    /// What is sent; one message at most, as the controller handles one packet at a time.
    pub output: Option<Output>,
}

impl Reaction {
    /// A reaction that sends nothing.
    pub(super) fn silent(action: Action, accesses: Accesses) -> Reaction {
        Reaction { action, accesses, output: None }
    }
}
