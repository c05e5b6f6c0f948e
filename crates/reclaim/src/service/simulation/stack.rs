//! What the time of an operation goes into.

use crate::service::scheduler::Nanoseconds;

/// A part of an operation's latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Earlier operations, and waking the server for the first of them.
    Queue,
    /// Another task has the core.
    Core,
    /// The core switches back to the server in the middle of the operation.
    Switch,
    /// The kernel's own part of a fault.
    Fault,
    /// Making room for a page, and copying shared ones.
    Reclaim,
    /// Pages from the pool.
    Decompression,
    /// Pages from the swap device.
    Swap,
    /// The operation itself, with its misses.
    Memory,
}

/// All causes with their names, in order.
pub const CAUSES: [(Cause, &str); 8] = [
    (Cause::Queue, "queue"),
    (Cause::Core, "core"),
    (Cause::Switch, "switch"),
    (Cause::Fault, "fault"),
    (Cause::Reclaim, "reclaim"),
    (Cause::Decompression, "decompression"),
    (Cause::Swap, "swap"),
    (Cause::Memory, "memory"),
];

/// ns by cause.
pub type Stack = [Nanoseconds; CAUSES.len()];
