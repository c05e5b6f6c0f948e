//! The device: it does one job after the other. A fault's is next when it comes, for a core waits for it; batches of
//! other tasks take turns, a job each.

use std::collections::VecDeque;

use crate::service::scheduler::{Nanoseconds, TaskId};

type Batch = (TaskId, VecDeque<Nanoseconds>);

/// What it has to do.
#[derive(Clone, Debug, Default)]
pub struct Device {
    free_at: Nanoseconds,
    /// Of which it does a job, or has just done one.
    current: Option<Batch>,
    batches: VecDeque<Batch>,
    /// Whether somebody comes to see what it does next.
    is_watched: bool,
}

/// What comes of a look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    /// Whose batch is done.
    pub done: Option<TaskId>,
    /// When to look again, if at all.
    pub look_at: Option<Nanoseconds>,
}

impl Device {
    /// A job of a fault, which waits for none but the one that is being done; when it is done.
    pub fn urgent(&mut self, now: Nanoseconds, time: Nanoseconds) -> Nanoseconds {
        self.free_at = self.free_at.max(now) + time;
        self.free_at
    }

    /// A batch of jobs, for which that task sleeps; when to look at the device, unless somebody does already.
    pub fn hand_over(&mut self, now: Nanoseconds, task: TaskId, jobs: VecDeque<Nanoseconds>) -> Option<Nanoseconds> {
        self.batches.push_back((task, jobs));
        (!std::mem::replace(&mut self.is_watched, true)).then_some(now)
    }

    /// It goes on, where it may.
    pub fn look(&mut self, now: Nanoseconds) -> Next {
        let mut done = None;
        if let Some((task, jobs)) = self.current.take() {
            if jobs.is_empty() {
                done = Some(task);
            } else {
                self.batches.push_back((task, jobs));
            }
        }
        self.is_watched = !self.batches.is_empty();
        if self.is_watched && now >= self.free_at {
            let (task, mut jobs) = self.batches.pop_front().expect("there is one");
            self.free_at = now + jobs.pop_front().expect("no batch is empty");
            self.current = Some((task, jobs));
        }
        Next { done, look_at: self.is_watched.then_some(self.free_at) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_waits_for_the_job_that_is_done_and_not_for_its_batch() {
        let mut device = Device::default();
        assert_eq!(device.hand_over(0, 2, [100, 100, 100].into()), Some(0));
        assert_eq!(device.look(0), Next { done: None, look_at: Some(100) });
        assert_eq!(device.urgent(50, 30), 130);
        // Looked at when the first job is done, it has the fault's to do.
        assert_eq!(device.look(100), Next { done: None, look_at: Some(130) });
        assert_eq!(device.look(130).look_at, Some(230));
        assert_eq!(device.look(230).look_at, Some(330));
        assert_eq!(device.look(330), Next { done: Some(2), look_at: None });
        assert_eq!(device.hand_over(400, 2, [10].into()), Some(400));
    }

    #[test]
    fn a_batch_is_done_with_its_last_job_whatever_comes_then() {
        let mut device = Device::default();
        device.hand_over(0, 2, [100].into());
        device.look(0);
        device.urgent(60, 500);
        assert_eq!(device.look(100), Next { done: Some(2), look_at: None });
    }

    #[test]
    fn batches_take_turns() {
        let mut device = Device::default();
        device.hand_over(0, 2, [100, 100].into());
        assert_eq!(device.hand_over(0, 1, [10].into()), None, "somebody comes already");
        let looks = [0, 100, 110, 210].map(|now| device.look(now));
        assert_eq!(looks.map(|next| next.done), [None, None, Some(1), Some(2)]);
    }
}
