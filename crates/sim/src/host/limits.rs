//! Limits at which all threads of a host stop where they are.

use super::Host;
use crate::core::Pause;
use fencepost_record::RecordError;

/// The limits that are not reached yet, and what was.
#[derive(Clone, Debug, Default)]
pub(super) struct Limits {
    /// Writes to PM.
    pub pm_writes: Option<u64>,
    /// Instructions of all threads together.
    pub instructions: Option<u64>,
    /// Whether threads stop before the end of their record.
    pub is_limited: bool,
    /// Whether the limit of PM writes was reached.
    pub has_reached_pm_writes: bool,
}

impl Host {
    /// Stops all threads where they are once this host has executed so many instructions.
    pub fn limit_instructions(&mut self, limit: u64) {
        self.limits.instructions = Some(limit);
    }

    /// Stops every thread where it is.
    pub fn stop_here(&mut self) {
        self.limits.is_limited = true;
        for thread in &mut self.process.threads {
            thread.limit = thread.limit.min(thread.instructions);
        }
    }

    /// Whether the limit of PM writes has been reached.
    pub fn has_reached_pm_writes_limit(&self) -> bool {
        self.limits.has_reached_pm_writes
    }

    /// Lets a core compute for its thread, up to the limit of instructions if there is one.
    pub(super) fn compute_to_limit(&mut self, core: usize, thread: usize, horizon: u64) -> Result<Pause, RecordError> {
        let Some(limit) = self.limits.instructions else { return self.compute_unlimited(core, thread, horizon) };
        // It may use up what all threads are still allowed together; the others then stop where they are.
        let allowed = limit.saturating_sub(self.instructions());
        let own = &mut self.process.threads[thread];
        let own_limit = own.limit;
        own.limit = own_limit.min(own.instructions + allowed);
        let pause = self.compute_unlimited(core, thread, horizon);
        self.process.threads[thread].limit = own_limit;
        if self.instructions() >= limit {
            self.limits.instructions = None;
            self.stop_here();
        }
        pause
    }

    /// Stops all threads if the caches have sent as many writes to PM as are allowed.
    #[inline]
    pub(super) fn stop_at_pm_writes_limit(&mut self) {
        if self.limits.pm_writes.is_some_and(|limit| self.socket.caches.pm_writes() >= limit) {
            self.limits.pm_writes = None;
            self.limits.has_reached_pm_writes = true;
            self.stop_here();
        }
    }
}
