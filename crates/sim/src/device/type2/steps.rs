//! What a component of several pipelines does later, in the order of time, and of equal times in the order asked.

use std::collections::BTreeMap;

use fencepost_kernel::Context;
use fencepost_kernel::time::Time;

/// Steps to come. Each has asked for a wake of its own.
#[derive(Clone, Debug)]
pub struct Steps<T> {
    pending: BTreeMap<(Time, u64), T>,
    asked: u64,
}

impl<T> Default for Steps<T> {
    fn default() -> Self {
        Steps { pending: BTreeMap::new(), asked: 0 }
    }
}

impl<T> Steps<T> {
    /// `step` is due at `time`; the wake for it has that token.
    pub fn at(&mut self, time: Time, step: T, token: u64, context: &mut Context<'_>) {
        self.pending.insert((time, self.asked), step);
        self.asked += 1;
        context.wake_at(time, token);
    }

    /// The first step, which is due: there is one for each wake.
    pub fn take(&mut self, now: Time) -> T {
        let ((time, _), step) = self.pending.pop_first().expect("each wake has a step");
        debug_assert_eq!(time, now, "a step is taken when it is due");
        step
    }

    /// Whether nothing is to come.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// How much is to come.
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// Nothing is to come any longer, but wakes may.
    pub fn clear(&mut self) {
        self.pending.clear();
    }
}
