//! Bytes used beyond the share, to be repaid by pausing.

use std::time::Duration;

use crate::Bandwidth;

/// A cumulative debt in bytes. Time repays it at the granted bandwidth; unused grants are not saved up.
///
/// It is limited: a thread that owes more than `debt_max` repays is not paused for longer, and the rest is forgiven.
/// Otherwise one very late timer, or a share that has shrunk since, would stop a thread for seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Debt {
    debt_max: Duration,
    bytes: f64,
    forgiven_bytes: f64,
}

impl Debt {
    /// No debt yet, and never more than `debt_max` repays at the bandwidth granted at the time.
    pub fn new(debt_max: Duration) -> Debt {
        Debt { debt_max, bytes: 0.0, forgiven_bytes: 0.0 }
    }

    /// Bytes that are owed.
    pub fn bytes(&self) -> f64 {
        self.bytes
    }

    /// Bytes that the limit has cut off so far. Where it grows, the channel gets more than its share: it is stopped too
    /// late for this limit.
    pub fn forgiven_bytes(&self) -> f64 {
        self.forgiven_bytes
    }

    /// `elapsed` has passed, in which `allowed` was granted and `used_bytes` were used.
    pub fn pass(&mut self, allowed: Bandwidth, elapsed: Duration, used_bytes: u64) {
        let owed = (self.bytes + used_bytes as f64 - allowed.bytes_in(elapsed)).max(0.0);
        self.bytes = owed.min(allowed.bytes_in(self.debt_max));
        self.forgiven_bytes += owed - self.bytes;
    }

    /// The pause that repays the debt, but at most `longest`: a paused thread may hold a lock.
    pub fn pause(&self, allowed: Bandwidth, longest: Duration) -> Duration {
        let seconds = self.bytes / allowed.bytes_per_second();
        if self.bytes == 0.0 {
            Duration::ZERO
        } else if seconds >= longest.as_secs_f64() {
            longest
        } else {
            Duration::from_secs_f64(seconds)
        }
    }
}
