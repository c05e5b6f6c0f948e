//! A thread's channel to a device: measures what it used, and says for how long it may run.

use std::time::Duration;

use crate::{Average, Bandwidth, Claim, Debt, Grant};

/// The time constants of channels.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// The scheduling window, `T_W`.
    pub window: Duration,
    /// The owner's interval and the time constant of averages, `K`.
    pub interval: Duration,
    /// After so long without a new grant the owner counts as silent.
    pub grant_lifetime: Duration,
    /// After so long without a window a channel counts as dead, and its share has gone to others.
    pub silence_max: Duration,
}

impl Default for Timing {
    /// The published window of 100 µs. The study does not publish `K`: it is 1 ms here. An owner may be silent for 100
    /// ms, and a channel for 10 ms.
    fn default() -> Timing {
        Timing {
            window: Duration::from_micros(100),
            interval: Duration::from_millis(1),
            grant_lifetime: Duration::from_millis(100),
            silence_max: Duration::from_millis(10),
        }
    }
}

/// What a channel did in a window.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    /// Bytes that it moved.
    pub bytes: u64,
    /// For how long it ran.
    pub ran: Duration,
    /// How long the window was: timers fire late, and threads block.
    pub elapsed: Duration,
}

/// What a channel may do in a window: it is paused for the rest once either is used up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slice {
    /// Running time, `T_R`.
    pub time: Duration,
    /// Bytes; infinite without a grant.
    pub bytes: f64,
}

/// The state of one thread's channel to one device in one direction.
#[derive(Clone, Debug)]
pub struct Channel {
    timing: Timing,
    weight: f64,
    link: Bandwidth,
    rate: Average,
    demand: Average,
    demand_latest: Option<Bandwidth>,
    debt: Debt,
    grant: Option<Grant>,
    grant_age: Duration,
    /// The first grant that is sure to count this channel.
    counted_from: u64,
}

impl Channel {
    /// A channel of `weight` (above zero) over a link that carries `link` at most. `found` is the device's grant at the
    /// time: the next one may have been computed before the channel's row was there, the one after it was not.
    pub fn new(timing: Timing, weight: f64, link: Bandwidth, found: Option<Grant>) -> Channel {
        Channel {
            timing,
            weight,
            link,
            rate: Average::new(timing.interval),
            demand: Average::new(timing.interval),
            demand_latest: None,
            debt: Debt::default(),
            grant: found,
            grant_age: Duration::ZERO,
            counted_from: found.map_or(0, counting_after),
        }
    }

    /// Its claim, for the owners of the devices on its path.
    pub fn claim(&self) -> Claim {
        let bandwidth = |average: &Average| Bandwidth::new(average.value().unwrap_or(0.0));
        Claim { weight: self.weight, rate: bandwidth(&self.rate), demand: bandwidth(&self.demand) }
    }

    /// Ends a window: what the channel did in it, and the least grant on its path. Returns what it may do in the next.
    pub fn end_window(&mut self, used: Used, grant: Option<Grant>) -> Slice {
        self.rate.add(Bandwidth::of(used.bytes, used.elapsed).bytes_per_second(), used.elapsed);
        if !used.ran.is_zero() {
            let demand = Bandwidth::of(used.bytes, used.ran);
            self.demand.add(demand.bytes_per_second(), used.elapsed);
            self.demand_latest = Some(demand);
        }
        if let Some(allowed) = self.allowed() {
            self.debt.pass(allowed, used.elapsed, used.bytes);
        }
        self.receive(grant, used.elapsed);
        self.slice()
    }

    /// What the channel may do in the window that begins.
    ///
    /// Its time is `T_W min(w α, D) / D` (published). `D` is the larger one of the averaged and the latest demand, so
    /// that a rise is noticed at once; a channel that has not run yet counts as one that fills its link.
    pub fn slice(&self) -> Slice {
        let window = self.timing.window;
        let Some(allowed) = self.allowed() else { return Slice { time: window, bytes: f64::INFINITY } };
        let bytes = (allowed.bytes_in(window) - self.debt.bytes()).max(0.0);
        let measured = self.demand_latest.map(|latest| latest.max(self.claim().demand));
        let wanted = measured.unwrap_or(self.link).bytes_in(window);
        let time = if wanted <= bytes { window } else { window.mul_f64(bytes / wanted) };
        Slice { time, bytes }
    }

    /// The bandwidth that it may use; `None` without a grant.
    pub fn allowed(&self) -> Option<Bandwidth> {
        let grant = self.grant?;
        let share = if grant.number < self.counted_from {
            grant.share.min(grant.share_for_all(self.weight))
        } else if self.grant_age > self.timing.grant_lifetime {
            grant.share.min(grant.share_for_all(0.0))
        } else {
            grant.share
        };
        Some(share.times(self.weight))
    }

    fn receive(&mut self, grant: Option<Grant>, elapsed: Duration) {
        self.grant_age += elapsed;
        if let Some(new) = grant.filter(|new| self.grant.is_none_or(|old| new.is_newer_than(&old))) {
            self.grant = Some(new);
            self.grant_age = Duration::ZERO;
        }
        if elapsed > self.timing.silence_max {
            self.counted_from = self.grant.map_or(0, counting_after);
        }
    }
}

/// The first grant that is sure to count a channel whose row appears when `found` is the latest.
fn counting_after(found: Grant) -> u64 {
    found.number.saturating_add(2)
}
