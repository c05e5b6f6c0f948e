//! A burst: requests that a load generator issues one after the other as fast as it can, and when each was answered.

use fencepost_kernel::line::LineAddress;
use fencepost_kernel::message::{LatencyStack, Stage};
use fencepost_kernel::time::{Duration, Time};

/// Requests of one kind.
#[derive(Clone, Debug)]
pub struct Burst<K> {
    /// What each asks for.
    pub kind: K,
    /// Of which lines, in the order of issue.
    pub lines: Vec<LineAddress>,
}

/// A burst under way, and what came of it so far.
#[derive(Clone, Debug)]
pub struct Running<K> {
    /// What it is.
    pub burst: Burst<K>,
    /// When the first request was issued.
    pub begun: Time,
    /// When the last answer came, of those that have come.
    pub last: Time,
    answered: usize,
    /// Whether the answer to a barrier behind the last request is still to come.
    waits_for_barrier: bool,
    latency: Duration,
    parts_ps: [u64; Stage::COUNT],
}

/// What tests look at: a line as it was read, or left written.
#[cfg(test)]
#[derive(Clone, Copy, Debug)]
pub struct Observed {
    /// Which core of the host it was, if it was one.
    pub core: usize,
    /// The line.
    pub line: LineAddress,
    /// What was read or written.
    pub version: fencepost_kernel::line::Version,
    /// When the access began, if it was a read.
    pub read_from: Option<Time>,
}

/// What came of a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// From the first request to the last answer.
    pub elapsed: Duration,
    /// Of all requests together, each from its issue to its answer.
    pub latency: Duration,
    /// Where that went.
    pub parts_ps: [u64; Stage::COUNT],
}

impl<K> Running<K> {
    /// A burst that begins.
    pub fn new(burst: Burst<K>, now: Time) -> Running<K> {
        Running {
            burst,
            begun: now,
            last: now,
            answered: 0,
            waits_for_barrier: false,
            latency: Duration::ZERO,
            parts_ps: [0; Stage::COUNT],
        }
    }

    /// The same, with a barrier behind its last request: it is over when that is answered.
    #[must_use]
    pub fn with_barrier(self) -> Running<K> {
        Running { waits_for_barrier: true, ..self }
    }

    /// The barrier is answered.
    pub fn barrier_answered(&mut self, now: Time) {
        self.waits_for_barrier = false;
        self.last = self.last.max(now);
    }

    /// A request is answered now, whose time went as `stack` says.
    pub fn answered(&mut self, stack: &LatencyStack) {
        self.answered += 1;
        self.last = self.last.max(stack.charged_until());
        self.latency = Duration::from_ps(self.latency.as_ps() + stack.total().as_ps());
        for (sum, part) in self.parts_ps.iter_mut().zip(stack.parts_ps()) {
            *sum += part;
        }
    }

    /// Whether all are.
    pub fn is_finished(&self) -> bool {
        self.answered == self.burst.lines.len() && !self.waits_for_barrier
    }

    /// What came of it.
    pub fn finished(&self) -> Finished {
        Finished { elapsed: self.last.since(self.begun), latency: self.latency, parts_ps: self.parts_ps }
    }
}
