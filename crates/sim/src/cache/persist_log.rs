//! What a host was promised about PM: for tests that cut the power and look whether the promises are kept.
//!
//! It is kept only where it is asked for. It notes which version of a line leaves the last level, which writes memory
//! has completed, and, for every flush and non-temporal store, which version its core may believe durable once it is
//! acknowledged.

use super::hierarchy::Requester;
use fencepost_kernel::line::{LineAddress, Version};
use fencepost_kernel::time::Time;

/// A version of a line at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedVersion {
    /// When.
    pub time: Time,
    /// The line.
    pub line: LineAddress,
    /// Its version.
    pub version: Version,
}

/// A flush or non-temporal store that the caches have dealt with: what it will stand for once it is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// When they dealt with it.
    pub time: Time,
    /// Whose it is, under the number by which the core knows it.
    pub by: Requester,
    /// Its line.
    pub line: LineAddress,
    /// The version that is durable then.
    pub version: Version,
    /// Whether it was a flush of a line that no cache had in a newer version than memory was given.
    pub is_clean: bool,
    /// When it was acknowledged, if it has been.
    pub kept: Option<Time>,
}

/// All that was said about PM lines so far.
#[derive(Clone, Debug, Default)]
pub struct PersistLog {
    issued: Vec<LoggedVersion>,
    acknowledged: Vec<LoggedVersion>,
    /// Those under way, by their places in `promises`.
    promised: Vec<(Requester, usize)>,
    promises: Vec<Promise>,
}

impl PersistLog {
    /// Every version that left the last level, in order.
    pub fn issued(&self) -> &[LoggedVersion] {
        &self.issued
    }

    /// Every version that a completed write, or an acknowledged flush or non-temporal store, has made the host believe
    /// durable, in order.
    pub fn acknowledged(&self) -> &[LoggedVersion] {
        &self.acknowledged
    }

    /// Every flush and non-temporal store that was to be acknowledged, in order.
    pub fn promises(&self) -> &[Promise] {
        &self.promises
    }

    /// A write leaves the last level.
    pub(super) fn issue(&mut self, time: Time, line: LineAddress, version: Version) {
        self.issued.push(LoggedVersion { time, line, version });
    }

    /// Memory has completed a write.
    pub(super) fn complete(&mut self, time: Time, line: LineAddress, version: Version) {
        self.acknowledged.push(LoggedVersion { time, line, version });
    }

    /// A flush or non-temporal store will be acknowledged once its version is durable.
    pub(super) fn promise(&mut self, promise: Promise) {
        self.promised.push((promise.by, self.promises.len()));
        self.promises.push(promise);
    }

    /// It is acknowledged.
    pub(super) fn keep(&mut self, time: Time, by: Requester) {
        if let Some(index) = self.promised.iter().position(|(promised, ..)| *promised == by) {
            let (_, place) = self.promised.swap_remove(index);
            let promise = &mut self.promises[place];
            promise.kept = Some(time);
            self.acknowledged.push(LoggedVersion { time, line: promise.line, version: promise.version });
        }
    }

    /// Power is gone: pending promises are dropped.
    pub(super) fn power_fail(&mut self) {
        self.promised.clear();
    }
}
