//! The three tasks: what each has to do, one segment after the other.

use std::collections::VecDeque;

use super::stack::Cause;
use crate::service::scheduler::{Nanoseconds, TaskId};

/// Redis, which does one operation after the other.
pub const SERVER: TaskId = 0;
/// Frees pages.
pub const KSWAPD: TaskId = 1;
/// Looks for pages that hold the same.
pub const KSMD: TaskId = 2;
/// How many there are.
pub const TASKS: usize = 3;

/// Who works on a segment, and who waits.
#[derive(Clone, Debug)]
pub enum Kind {
    /// The core works.
    Core(Nanoseconds),
    /// The core waits for the device.
    Wait(Nanoseconds),
    /// The task sleeps until the device has done all of these.
    Offload(VecDeque<Nanoseconds>),
    /// The task sleeps until the swap device is done.
    Disk(Nanoseconds),
}

/// A piece of work.
#[derive(Clone, Debug)]
pub struct Segment {
    pub kind: Kind,
    pub cause: Cause,
    /// Under the lock that compression and decompression on a core take.
    pub is_locked: bool,
}

/// A task.
#[derive(Clone, Debug, Default)]
pub struct Task {
    pub core: usize,
    pub segments: VecDeque<Segment>,
    /// Whether the first segment has begun.
    pub has_begun: bool,
    /// Of the first segment, where the core has it to do.
    pub remaining: Nanoseconds,
    pub is_awake: bool,
    pub busy: Nanoseconds,
}

impl Task {
    /// A core that did something else takes the task up again: that takes `time`, before what is left to do.
    pub fn switch_in(&mut self, time: Nanoseconds) {
        if std::mem::take(&mut self.has_begun) {
            let first = self.segments.front_mut().expect("it has begun");
            first.kind = Kind::Core(std::mem::take(&mut self.remaining));
        }
        self.segments.push_front(Segment { kind: Kind::Core(time), cause: Cause::Switch, is_locked: false });
    }
}
