//! What a transport at the host does to a stream: pauses it, or gives it credit for its requests.

use fencepost_kernel::line::LINE_BYTES;
use fencepost_kernel::time::{Duration, Time};

/// Bytes that a channel moved: read, and written.
pub type Moved = [u64; 2];

/// Credit that comes at a rate, up to a limit.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    bytes_per_second: f64,
    bytes: f64,
    bytes_max: f64,
    since: Time,
}

impl Bucket {
    /// Unlimited until it is told a rate.
    const FREE: Bucket = Bucket { bytes_per_second: f64::INFINITY, bytes: 0.0, bytes_max: 0.0, since: Time::ZERO };

    fn refill(&mut self, now: Time) {
        let seconds = now.since(self.since).as_ps() as f64 * 1e-12;
        self.since = now;
        self.bytes = (self.bytes + self.bytes_per_second * seconds).min(self.bytes_max);
    }

    /// Takes a line's credit; if there is not enough, says when there is.
    fn take(&mut self, now: Time) -> Result<(), Time> {
        if self.bytes_per_second.is_infinite() {
            return Ok(());
        }
        self.refill(now);
        let missing = LINE_BYTES as f64 - self.bytes;
        if missing <= 0.0 {
            self.bytes -= LINE_BYTES as f64;
            return Ok(());
        }
        // Up to the next picosecond, so that it is there then; a rate of nothing is looked at again at the next window.
        let ps = (missing / self.bytes_per_second * 1e12).min(1e15) as u64;
        Err(now + Duration::from_ps(ps + 1))
    }
}

/// The paced part of a stream.
#[derive(Clone, Debug)]
pub struct Pacing {
    /// Bytes answered, by device.
    pub moved: Vec<Moved>,
    /// From then on it is paused.
    pub runs_until: Time,
    /// By device: reads and writes.
    credit: Vec<[Bucket; 2]>,
}

impl Pacing {
    /// Of a stream that runs freely, over so many devices.
    pub fn new(devices: usize) -> Pacing {
        Pacing { moved: vec![[0; 2]; devices], runs_until: Time::NEVER, credit: vec![[Bucket::FREE; 2]; devices] }
    }

    /// From `now` on credit for lines of `device` comes at so many bytes a second, and is kept for `window` at most.
    pub fn set_credit(&mut self, device: usize, bytes_per_second: [f64; 2], window: Duration, now: Time) {
        for (bucket, rate) in self.credit[device].iter_mut().zip(bytes_per_second) {
            bucket.refill(now);
            bucket.bytes_per_second = rate;
            bucket.bytes_max = (rate * window.as_ps() as f64 * 1e-12).max(LINE_BYTES as f64);
            bucket.bytes = bucket.bytes.clamp(0.0, bucket.bytes_max);
        }
    }

    /// Takes credit for a line of `device`; if there is not enough, says when to ask again.
    pub fn take_credit(&mut self, device: usize, is_write: bool, now: Time) -> Result<(), Time> {
        self.credit[device][usize::from(is_write)].take(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Time {
        Time::from_ps(ns * 1000)
    }

    #[test]
    fn credit_comes_at_its_rate_and_is_kept_for_a_window() {
        let mut pacing = Pacing::new(1);
        assert_eq!(pacing.take_credit(0, false, at(0)), Ok(()), "no rate, no limit");
        // A line in 64 ns; a window keeps two.
        pacing.set_credit(0, [1e9, 5e8], Duration::from_ns(128.0), at(100));
        assert_eq!(pacing.take_credit(0, false, at(100)), Err(Time::from_ps(164_001)));
        assert_eq!(pacing.take_credit(0, false, at(164)), Ok(()));
        assert_eq!(pacing.take_credit(0, true, at(164)), Err(Time::from_ps(228_001)), "writes have their own");
        assert_eq!([1000, 1000, 1000].map(|ns| pacing.take_credit(0, false, at(ns)).is_ok()), [true, true, false]);
    }
}
