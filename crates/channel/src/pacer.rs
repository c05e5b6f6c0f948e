//! Paces one thread: from what it used, and when, to how long it has to pause. Without clock and signals.

use std::time::Duration;

use fencepost_pacing::{Average, Bandwidth, Channel, Claim, Grant, Timing, Used, Weight};

/// A pause that is shorter is not worth its system call, and inexact on ordinary kernels: the debt waits.
const PAUSE_MIN: Duration = Duration::from_micros(100);

/// What a thread has done since it is paced.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// The time, from any beginning.
    pub now: Duration,
    /// All bytes that it used.
    pub bytes: u64,
}

/// The pacing of a thread.
#[derive(Clone, Debug)]
pub struct Pacer {
    timing: Timing,
    channel: Channel,
    rate: Average,
    /// At the end of the last window.
    begun: Progress,
    /// Of this window, how long the thread was paused.
    paused_in_window: Duration,
    paused: Duration,
    granted_bytes: f64,
}

impl Pacer {
    /// For a thread of `weight` whose path carries `link` and has the grants `found`. The only call that allocates.
    pub fn new(timing: Timing, weight: Weight, link: Bandwidth, found: &[Option<Grant>], now: Progress) -> Pacer {
        Pacer {
            timing,
            channel: Channel::new(timing, weight, link, found),
            rate: Average::new(timing.interval),
            begun: now,
            paused_in_window: Duration::ZERO,
            paused: Duration::ZERO,
            granted_bytes: 0.0,
        }
    }

    /// Whether the window is over: its time has passed, or the thread used so much that it has to pause.
    pub fn is_over(&self, progress: Progress) -> bool {
        let (elapsed, bytes) = self.since(progress);
        elapsed >= self.timing.window || self.pause_after(elapsed, bytes) >= PAUSE_MIN
    }

    /// Ends the window; `grants` are those of the path. Returns the pause that has to follow now.
    ///
    /// The debt is settled once a window: within one, what the thread did not use at first it may use later, or each
    /// late wake-up would be lost.
    pub fn end_window(&mut self, progress: Progress, grants: &[Option<Grant>]) -> Duration {
        let (elapsed, bytes) = self.since(progress);
        if let Some(allowed) = self.channel.allowed() {
            self.granted_bytes += allowed.bytes_in(elapsed);
        }
        self.rate.add(Bandwidth::of(bytes, elapsed).bytes_per_second(), elapsed);
        self.channel.end_window(Used { bytes, ran: elapsed.saturating_sub(self.paused_in_window), elapsed }, grants);
        self.begun = progress;
        self.paused_in_window = Duration::ZERO;
        let repay = |allowed| self.channel.debt().pause(allowed, self.timing.pause_max);
        let pause = self.channel.allowed().map_or(Duration::ZERO, repay);
        if pause < PAUSE_MIN { Duration::ZERO } else { pause }
    }

    /// The thread has been paused for so long, in the window that `end_window` began.
    pub fn was_paused(&mut self, pause: Duration) {
        self.paused_in_window += pause;
        self.paused += pause;
    }

    /// What it claims of a device, by its place on the path.
    pub fn claim(&self, place: usize) -> Claim {
        self.channel.claim(place)
    }

    /// What it got, averaged.
    pub fn rate(&self) -> Bandwidth {
        Bandwidth::new(self.rate.value().unwrap_or(0.0))
    }

    /// What it may use; `None` without a grant.
    pub fn allowed(&self) -> Option<Bandwidth> {
        self.channel.allowed()
    }

    /// For how long it was paused in all.
    pub fn paused(&self) -> Duration {
        self.paused
    }

    /// How many bytes it was allowed in all.
    pub fn granted_bytes(&self) -> u64 {
        self.granted_bytes as u64
    }

    fn since(&self, progress: Progress) -> (Duration, u64) {
        (progress.now.saturating_sub(self.begun.now), progress.bytes.saturating_sub(self.begun.bytes))
    }

    fn pause_after(&self, elapsed: Duration, bytes: u64) -> Duration {
        let Some(allowed) = self.channel.allowed() else { return Duration::ZERO };
        let mut debt = *self.channel.debt();
        debt.pass(allowed, elapsed, bytes);
        debt.pause(allowed, self.timing.pause_max)
    }
}
