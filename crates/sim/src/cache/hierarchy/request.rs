//! What cores ask of the caches behind their own, and what they are answered.

use fencepost_kernel::line::{LineAddress, Version};
use fencepost_kernel::message::{Cause, Message};

/// What a core wants to do with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Want {
    /// Read it.
    Read,
    /// Write it.
    Own,
}

/// Which first-level cache asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The data cache.
    Data,
    /// The instruction cache.
    Instruction,
    /// The page-table walker, which has no cache of lines of its own.
    Walker,
    /// No first level: the private level of this number behind the first ones fetches it ahead for itself.
    Level(u8),
}

/// A request of one core for one line.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The core that asks.
    pub core: usize,
    /// The line it asks for.
    pub line: LineAddress,
    /// To read or to write it.
    pub want: Want,
    /// For which first-level cache.
    pub side: Side,
    /// Why.
    pub cause: Cause,
    /// The cycle in which the core issued it: from there on its time is counted.
    pub issued: u64,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The line is in the first level, in that version, with its data there at that cycle.
    Ready(u64, Version),
    /// Memory has been asked; [`data_arrived`](super::Hierarchy::data_arrived) will tell.
    Pending,
}

/// A request that waited for memory and is served now.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    /// The request.
    pub request: Request,
    /// The cycle at which its data are in the first level.
    pub ready: u64,
    /// The version that they are.
    pub version: Version,
    /// What has sent them, for this request or for one that it was merged with.
    pub source: Source,
}

/// What has sent a line to a core that missed it, or the right to write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The caches of the core's own socket.
    Caches,
    /// Memory.
    Memory,
    /// Memory whose home agent is at another socket.
    OtherMemory,
    /// Caches of another socket, which had the newest version or gave up theirs.
    OtherCaches,
}

/// Names a flush or non-temporal store: the core that made it, and the core's own name for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requester {
    /// The core.
    pub core: usize,
    /// Its name for the operation.
    pub id: u32,
    /// The cycle in which the core issued it: from there on its time is counted.
    pub issued: u64,
}

/// A core's wait for its flush or non-temporal store has ended.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledged {
    /// Whose.
    pub by: Requester,
    /// The cycle at which the core knows.
    pub cycle: u64,
}

/// A message for the host bridge, and the cycle at which it leaves the last level.
#[derive(Clone, Debug)]
pub struct Departure {
    /// When it leaves.
    pub cycle: u64,
    /// What leaves.
    pub message: Message,
}
