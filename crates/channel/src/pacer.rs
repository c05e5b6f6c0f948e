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
    /// Its processor time.
    pub processor: Duration,
}

/// What a thread had while it ran.
///
/// It runs in all of its windows, pauses included. Of a window in which it fell silent for so long that its share went
/// to others, only the pause and the processor time count.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Had {
    /// For how long it ran.
    pub running: Duration,
    /// Of that, paused.
    pub paused: Duration,
    /// What it would have used unpaced.
    pub demanded_bytes: f64,
    /// The sum of its shares.
    pub granted_bytes: f64,
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
    running_since: Duration,
    had: Had,
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
            running_since: now.now,
            had: Had::default(),
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
        let used = Used { bytes, ran: elapsed.saturating_sub(self.paused_in_window), elapsed };
        self.rate.add(Bandwidth::of(bytes, elapsed).bytes_per_second(), elapsed);
        let allowed = self.channel.allowed();
        self.channel.end_window(used, grants);
        self.count(used, progress, allowed);
        self.begun = progress;
        self.paused_in_window = Duration::ZERO;
        let repay = |allowed| self.channel.debt().pause(allowed, self.timing.pause_max);
        let pause = self.channel.allowed().map_or(Duration::ZERO, repay);
        if pause < PAUSE_MIN { Duration::ZERO } else { pause }
    }

    /// The thread has been paused for so long, in the window that `end_window` began.
    pub fn was_paused(&mut self, pause: Duration) {
        self.paused_in_window += pause;
    }

    /// What it claims of a device, by its place on the path.
    pub fn claim(&self, place: usize) -> Claim {
        self.channel.claim(place)
    }

    /// What it got, averaged.
    pub fn rate(&self) -> Bandwidth {
        Bandwidth::new(self.rate.value().unwrap_or(0.0))
    }

    /// What it has: its grant, as far as it demands it.
    pub fn share(&self) -> Bandwidth {
        self.channel.share()
    }

    /// What it had up to the end of the last window.
    pub fn had(&self) -> &Had {
        &self.had
    }

    /// Since when it had run at the end of the last window: since the pause before, or since it woke.
    pub fn running_since(&self) -> Duration {
        self.running_since
    }

    /// Adds the window that ends, in which it was `allowed` that much, to what the thread had.
    fn count(&mut self, used: Used, progress: Progress, allowed: Option<Bandwidth>) {
        let was_silent = used.ran > self.timing.silence_max;
        let ran = if was_silent { progress.processor.saturating_sub(self.begun.processor) } else { used.ran };
        let running = self.paused_in_window + ran;
        let demand = Bandwidth::of(used.bytes, ran);
        let wanted = if was_silent { demand } else { self.channel.demand() };
        let share = allowed.map_or(Bandwidth::ZERO, |allowed| allowed.min(wanted));
        self.running_since = progress.now.saturating_sub(ran);
        self.had.running += running;
        self.had.paused += self.paused_in_window;
        self.had.demanded_bytes += demand.bytes_in(running).max(used.bytes as f64);
        self.had.granted_bytes += share.bytes_in(running);
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
