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
    /// After so many windows without a new grant the owner counts as silent.
    pub grant_windows_max: u32,
}

impl Default for Timing {
    /// The published window of 100 µs. The study does not publish `K`: it is 1 ms here, and an owner may be silent for
    /// 100 ms.
    fn default() -> Timing {
        Timing { window: Duration::from_micros(100), interval: Duration::from_millis(1), grant_windows_max: 1000 }
    }
}

/// What a channel did in a window.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    /// Bytes that it moved.
    pub bytes: u64,
    /// For how long it ran, at most the window.
    pub ran: Duration,
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
    windows_without_grant: u32,
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
            windows_without_grant: 0,
            counted_from: found.map_or(0, |grant| grant.number + 2),
        }
    }

    /// Its claim, for the owners of the devices on its path.
    pub fn claim(&self) -> Claim {
        let bandwidth = |average: &Average| Bandwidth::new(average.value().unwrap_or(0.0));
        Claim { weight: self.weight, rate: bandwidth(&self.rate), demand: bandwidth(&self.demand) }
    }

    /// Ends a window: what the channel did in it, and the least grant on its path. Returns what it may do in the next.
    pub fn end_window(&mut self, used: Used, grant: Option<Grant>) -> Slice {
        let window = self.timing.window;
        self.rate.add(Bandwidth::of(used.bytes, window).bytes_per_second(), window);
        if !used.ran.is_zero() {
            let demand = Bandwidth::of(used.bytes, used.ran);
            self.demand.add(demand.bytes_per_second(), window);
            self.demand_latest = Some(demand);
        }
        if let Some(allowed) = self.allowed() {
            self.debt.pass(allowed, window, used.bytes);
        }
        self.receive(grant);
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
        } else if self.windows_without_grant > self.timing.grant_windows_max {
            grant.share.min(grant.share_for_all(0.0))
        } else {
            grant.share
        };
        Some(share.times(self.weight))
    }

    fn receive(&mut self, grant: Option<Grant>) {
        let is_new = grant.is_some_and(|grant| self.grant.is_none_or(|old| old.number != grant.number));
        self.windows_without_grant = if is_new { 0 } else { self.windows_without_grant.saturating_add(1) };
        self.grant = grant.or(self.grant);
    }
}
