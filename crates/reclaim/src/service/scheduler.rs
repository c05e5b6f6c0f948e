//! Who has a core: Linux's completely fair scheduler (kernel/sched/fair.c, 6.2) for a handful of tasks.
//!
//! Runtime is weighted by niceness; the task that has had the least runs. One that wakes preempts if the running one is
//! ahead of it by more than the wakeup granularity, and gets half a latency of credit for its sleep; a tick ends a
//! slice. Both presets have it: 6.8's successor is not modelled.

/// In ns.
pub type Nanoseconds = u64;

const NICE_0: u64 = 1024;
/// Tunables scale by 1 + log2 of the cores, of which at most 8 count (`get_update_sysctl_factor`).
const SCALE: u64 = 4;
const LATENCY: Nanoseconds = 6_000_000 * SCALE;
const GRANULARITY: Nanoseconds = 750_000 * SCALE;
const WAKEUP_GRANULARITY: Nanoseconds = 1_000_000 * SCALE;
/// Debian and Ubuntu: `CONFIG_HZ` 250.
pub const TICK: Nanoseconds = 4_000_000;

/// A task, by number.
pub type TaskId = usize;

#[derive(Clone, Copy, Debug, Default)]
struct Task {
    weight: u64,
    /// Runtime, weighted.
    virtual_ns: u64,
    is_runnable: bool,
}

/// One core.
#[derive(Clone, Debug, Default)]
pub struct Core {
    tasks: Vec<Task>,
    current: Option<TaskId>,
    /// How long it has run since it was chosen.
    slice: Nanoseconds,
    virtual_min: u64,
}

impl Core {
    /// With tasks of these weights, which all sleep; those of other cores have weight 0.
    #[must_use]
    pub fn new(weights: &[u64]) -> Self {
        let tasks = weights.iter().map(|&weight| Task { weight, ..Task::default() }).collect();
        Self { tasks, ..Self::default() }
    }

    /// Who runs.
    #[must_use]
    pub fn current(&self) -> Option<TaskId> {
        self.current
    }

    /// The running task has run for so long.
    pub fn ran(&mut self, time: Nanoseconds) {
        if let Some(current) = self.current {
            let task = &mut self.tasks[current];
            task.virtual_ns += time * NICE_0 / task.weight;
            self.slice += time;
            self.update_min();
        }
    }

    fn update_min(&mut self) {
        let runnable = self.tasks.iter().filter(|task| task.is_runnable);
        if let Some(least) = runnable.map(|task| task.virtual_ns).min() {
            self.virtual_min = self.virtual_min.max(least);
        }
    }

    /// A task becomes runnable; whether another one runs now.
    pub fn wake(&mut self, id: TaskId) -> bool {
        let from = self.virtual_min.saturating_sub(LATENCY / 2);
        let task = &mut self.tasks[id];
        task.virtual_ns = task.virtual_ns.max(from);
        task.is_runnable = true;
        let (waking, weight) = (task.virtual_ns, task.weight);
        match self.current {
            None => self.choose(),
            Some(current) => {
                let ahead = self.tasks[current].virtual_ns.saturating_sub(waking);
                if ahead > WAKEUP_GRANULARITY * NICE_0 / weight {
                    self.choose();
                }
                return self.current != Some(current);
            }
        }
        true
    }

    /// The running task sleeps.
    pub fn sleep(&mut self) {
        if let Some(current) = self.current {
            self.tasks[current].is_runnable = false;
            self.choose();
        }
    }

    /// A tick; whether another one runs now.
    pub fn tick(&mut self) -> bool {
        let Some(current) = self.current else { return false };
        let runnable = || self.tasks.iter().filter(|task| task.is_runnable);
        let count = runnable().count() as u64;
        if count < 2 {
            return false;
        }
        let weight: u64 = runnable().map(|task| task.weight).sum();
        let period = LATENCY.max(count * GRANULARITY);
        let ideal = period * self.tasks[current].weight / weight;
        let least = runnable().map(|task| task.virtual_ns).min().unwrap_or(0);
        let ahead = self.tasks[current].virtual_ns.saturating_sub(least);
        if self.slice > ideal || (self.slice >= GRANULARITY && ahead > ideal) {
            self.choose();
        }
        self.current != Some(current)
    }

    fn choose(&mut self) {
        let runnable = self.tasks.iter().enumerate().filter(|(_, task)| task.is_runnable);
        self.current = runnable.min_by_key(|(id, task)| (task.virtual_ns, *id)).map(|(id, _)| id);
        self.slice = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_that_never_sleep_share_by_weight() {
        let mut core = Core::new(&[1024, 335]);
        core.wake(0);
        core.wake(1);
        let mut ran = [0; 2];
        for _ in 0..10_000 {
            ran[core.current().unwrap()] += TICK;
            core.ran(TICK);
            core.tick();
        }
        let share = ran[1] as f64 / (ran[0] + ran[1]) as f64;
        assert!((share - 335.0 / 1359.0).abs() < 0.01, "{share}");
    }

    #[test]
    fn one_that_slept_preempts_and_one_that_just_ran_does_not() {
        let mut core = Core::new(&[1024, 1024]);
        core.wake(0);
        core.ran(20_000_000);
        assert!(core.wake(1), "20 ms behind, of which 12 are credit");
        core.sleep();
        assert_eq!(core.current(), Some(0));
        core.ran(1_000_000);
        assert!(core.wake(1), "it has used none of its credit");
        core.ran(11_500_000);
        core.sleep();
        assert!(!core.wake(1), "it is behind by no more than 4 ms");
    }

    #[test]
    fn the_other_runs_where_one_sleeps() {
        let mut core = Core::new(&[1024, 335]);
        core.wake(0);
        assert!(!core.wake(1));
        core.sleep();
        assert_eq!(core.current(), Some(1));
        core.sleep();
        assert_eq!(core.current(), None);
    }
}
