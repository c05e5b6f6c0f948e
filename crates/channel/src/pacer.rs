//! Paces one thread: from what it used, and when, to how long it has to pause. Without clock, signals or allocation.

use std::time::Duration;

use fencepost_pacing::{Bandwidth, Channel, Claim, Debt, Grant, Timing, Used};

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
    pause_max: Duration,
    channel: Channel,
    debt: Debt,
    /// At the end of the last window.
    begun: Progress,
    /// Of this window, how long the thread was paused.
    paused: Duration,
    paused_ever: Duration,
    granted_bytes: f64,
}

impl Pacer {
    /// For a thread of `weight` whose path carries `link` and has the grant `found`.
    pub fn new(
        timing: Timing,
        pause_max: Duration,
        weight: f64,
        link: Bandwidth,
        found: Option<Grant>,
        now: Progress,
    ) -> Pacer {
        Pacer {
            timing,
            pause_max,
            channel: Channel::new(timing, weight, link, found),
            debt: Debt::default(),
            begun: now,
            paused: Duration::ZERO,
            paused_ever: Duration::ZERO,
            granted_bytes: 0.0,
        }
    }

    /// Whether the window is over: its time has passed, or the thread used so much that it has to pause.
    pub fn is_over(&self, progress: Progress) -> bool {
        let (elapsed, bytes) = self.since(progress);
        elapsed >= self.timing.window || self.pause_after(elapsed, bytes) >= PAUSE_MIN
    }

    /// Ends the window; `grant` is the least one on the path. Returns the pause that has to follow now.
    ///
    /// The debt is settled once a window: within one, what the thread did not use at first it may use later, or each
    /// late wake-up would be lost.
    pub fn end_window(&mut self, progress: Progress, grant: Option<Grant>) -> Duration {
        let (elapsed, bytes) = self.since(progress);
        if let Some(allowed) = self.channel.allowed() {
            self.debt.pass(allowed, elapsed, bytes);
            self.granted_bytes += allowed.bytes_in(elapsed);
        }
        self.channel.end_window(Used { bytes, ran: elapsed.saturating_sub(self.paused), elapsed }, grant);
        self.begun = progress;
        self.paused = Duration::ZERO;
        let pause = self.channel.allowed().map_or(Duration::ZERO, |now| self.debt.pause(now, self.pause_max));
        if pause < PAUSE_MIN { Duration::ZERO } else { pause }
    }

    /// The thread has been paused for so long, in the window that `end_window` began.
    pub fn was_paused(&mut self, pause: Duration) {
        self.paused += pause;
        self.paused_ever += pause;
    }

    /// What it claims of each device on its path.
    pub fn claim(&self) -> Claim {
        self.channel.claim()
    }

    /// What it may use; `None` without a grant.
    pub fn allowed(&self) -> Option<Bandwidth> {
        self.channel.allowed()
    }

    /// For how long it was paused in all.
    pub fn paused(&self) -> Duration {
        self.paused_ever
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
        let mut debt = self.debt;
        debt.pass(allowed, elapsed, bytes);
        debt.pause(allowed, self.pause_max)
    }
}
