//! Bytes used beyond the share, to be repaid by pausing.

use std::time::Duration;

use crate::Bandwidth;

/// A cumulative debt in bytes. Time repays it at the granted bandwidth; unused grants are not saved up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Debt {
    bytes: f64,
}

impl Debt {
    /// Bytes that are owed.
    pub fn bytes(&self) -> f64 {
        self.bytes
    }

    /// `elapsed` has passed, in which `allowed` was granted and `used_bytes` were used.
    pub fn pass(&mut self, allowed: Bandwidth, elapsed: Duration, used_bytes: u64) {
        self.bytes = (self.bytes + used_bytes as f64 - allowed.bytes_in(elapsed)).max(0.0);
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
