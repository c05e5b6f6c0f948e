//! Finds out that a replay only seems to go on: events are handled, and nothing comes of them.
//!
//! Progress is a micro-operation that dispatches, an instruction that is warmed, or a request that is answered at its host. Between two such there can
//! only be events of what is under way, and that is little: in a component some hundreds of messages at most (its queues, credits, MSHRs and entries),
//! each of which takes some tens of events there. Waiting itself takes none: a long system call, a sleep, a refresh are one event each, however long.
//! So the bound counts events, not time, and grows with the number of components.

/// Events without progress that any system may have.
const EVENTS: u64 = 4_000_000;
/// … and for each of its components: hundreds of messages, tens of events each, ten times over.
const EVENTS_PER_COMPONENT: u64 = 100_000;

/// Watches one replay.
#[derive(Clone, Debug)]
pub struct LivelockWatch {
    events_max: u64,
    progress: u64,
    /// The number of events at which there was progress last.
    since: u64,
}

impl LivelockWatch {
    /// Of a system with so many components.
    pub fn new(components: usize) -> LivelockWatch {
        let events_max = EVENTS + components as u64 * EVENTS_PER_COMPONENT;
        LivelockWatch { events_max, progress: 0, since: 0 }
    }

    /// After `events` events in all there has been so much `progress` in all: whether it has stood still for too long.
    pub fn is_stuck(&mut self, events: u64, progress: u64) -> bool {
        if progress != self.progress {
            (self.progress, self.since) = (progress, events);
        }
        events - self.since > self.events_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_many_events_in_a_row_without_progress_are_a_livelock() {
        let mut watch = LivelockWatch::new(10);
        assert!(!watch.is_stuck(5_000_000, 0));
        assert!(!watch.is_stuck(5_000_001, 1));
        assert!(!watch.is_stuck(10_000_001, 1));
        assert!(watch.is_stuck(10_000_002, 1));
        assert!(!watch.is_stuck(10_000_003, 2));
    }
}
