//! A thread's channel to a device: measures what it used, and says for how long it may run.

use std::time::Duration;

use crate::received::Received;
use crate::{Average, Bandwidth, Claim, Debt, Grant, Weight};

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
    /// A channel that was paused for so long gets a window's share whatever it owes: its thread may hold a lock.
    pub pause_max: Duration,
    /// A debt is never more than so much time repays. A runtime that stops threads late by `t` needs the time that
    /// repays what the link carries in `t`, or the channel gets more than its share.
    pub debt_max: Duration,
}

impl Default for Timing {
    /// The published window of 100 µs. The study does not publish `K`: it is 1 ms here. An owner may be silent for 100
    /// ms, and a channel for 10 ms; a pause is at most 10 ms, and a debt what `K` repays.
    fn default() -> Timing {
        Timing {
            window: Duration::from_micros(100),
            interval: Duration::from_millis(1),
            grant_lifetime: Duration::from_millis(100),
            silence_max: Duration::from_millis(10),
            pause_max: Duration::from_millis(10),
            debt_max: Duration::from_millis(1),
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
///
/// On its path lie one or more devices that divide their capacity: the adapter's port, links of the switch, the memory
/// device. Each has an owner; the channel keeps to the least of their shares.
#[derive(Clone, Debug)]
pub struct Channel {
    timing: Timing,
    weight: Weight,
    link: Bandwidth,
    demand: Average,
    demand_latest: Option<Bandwidth>,
    debt: Debt,
    paused: Duration,
    path: Vec<Received>,
}

impl Channel {
    /// A channel over a link that carries `link` at most. `found` has an entry for each device on the path: its grant
    /// as it was read after the channel's row was published there.
    pub fn new(timing: Timing, weight: Weight, link: Bandwidth, found: &[Option<Grant>]) -> Channel {
        Channel {
            timing,
            weight,
            link,
            demand: Average::new(timing.interval),
            demand_latest: None,
            debt: Debt::new(timing.debt_max),
            paused: Duration::ZERO,
            path: found.iter().map(|&found| Received::new(found, timing.interval)).collect(),
        }
    }

    /// Its claim for the owner of a device, by its place on the path.
    ///
    /// What another device holds the channel to is all that it demands of this one: the rest is for others.
    pub fn claim(&self, device: usize) -> Claim {
        let rate = self.path.get(device).map_or(Bandwidth::ZERO, Received::rate);
        Claim { weight: self.weight, rate, demand: self.without(device, self.demand()) }
    }

    /// What it would take if nothing paused it, averaged.
    pub fn demand(&self) -> Bandwidth {
        Bandwidth::new(self.demand.value().unwrap_or(0.0))
    }

    /// What it has of its path: the bandwidth that it may use, as far as it demands it. The shares of all channels that
    /// a device counts add up to its capacity, or to less where they demand less.
    pub fn share(&self) -> Bandwidth {
        self.allowed().map_or(Bandwidth::ZERO, |allowed| allowed.min(self.demand()))
    }

    /// Ends a window: what the channel did in it, and the grants of the devices on its path, in the order of the path.
    /// Returns what it may do in the next.
    ///
    /// A thread that has blocked ends the window that it blocked in, before it uses the device again, where the caller
    /// can see that it wakes. Where it cannot, what is left of that window's slice is used at the share from before.
    pub fn end_window(&mut self, used: Used, grants: &[Option<Grant>]) -> Slice {
        let was_paused = self.slice().time.is_zero();
        self.paused = if was_paused { self.paused.saturating_add(used.elapsed) } else { Duration::ZERO };
        if !used.ran.is_zero() {
            let demand = Bandwidth::of(used.bytes, used.ran);
            self.demand.add(demand.bytes_per_second(), used.elapsed);
            self.demand_latest = Some(demand);
        }
        let rate = Bandwidth::of(used.bytes, used.elapsed);
        for device in 0..self.path.len() {
            let unpaused = self.without(device, self.demand_latest.unwrap_or_default());
            self.path[device].measure(rate, unpaused, self.weight, self.timing.grant_lifetime, used.elapsed);
        }
        if let Some(allowed) = self.allowed() {
            self.debt.pass(allowed, used.elapsed, used.bytes);
        }
        let has_expired = used.elapsed > self.timing.silence_max;
        for (at, received) in self.path.iter_mut().enumerate() {
            received.receive(grants.get(at).copied().flatten(), used.elapsed, has_expired);
        }
        self.slice()
    }

    /// What the channel may do in the window that begins.
    ///
    /// Its time is `T_W min(w α, D) / D` (published). `D` is the larger one of the averaged and the latest demand, so
    /// that a rise is noticed at once; a channel that has not run yet counts as one that fills its link.
    pub fn slice(&self) -> Slice {
        let window = self.timing.window;
        let Some(allowed) = self.allowed() else { return Slice { time: window, bytes: f64::INFINITY } };
        let owed = if self.paused >= self.timing.pause_max { 0.0 } else { self.debt.bytes() };
        let bytes = (allowed.bytes_in(window) - owed).max(0.0);
        let average = self.demand.value().map(Bandwidth::new);
        let measured = self.demand_latest.map(|latest| latest.max(average.unwrap_or_default()));
        let wanted = measured.unwrap_or(self.link).bytes_in(window);
        let time = if wanted <= bytes { window } else { window.mul_f64(bytes / wanted) };
        Slice { time, bytes }
    }

    /// The bandwidth that it may use; `None` without a grant.
    pub fn allowed(&self) -> Option<Bandwidth> {
        self.least_share(|_| true).map(|share| share.times(self.weight.get()))
    }

    /// What it has used beyond that.
    pub fn debt(&self) -> &Debt {
        &self.debt
    }

    /// Of `demand`, what the other devices on the path let through.
    fn without(&self, device: usize, demand: Bandwidth) -> Bandwidth {
        let elsewhere = self.least_share(|other| other != device);
        elsewhere.map_or(demand, |share| demand.min(share.times(self.weight.get())))
    }

    fn least_share(&self, counts: impl Fn(usize) -> bool) -> Option<Bandwidth> {
        let of_those = self.path.iter().enumerate().filter(|(at, _)| counts(*at));
        of_those.filter_map(|(_, one)| one.share(self.weight, self.timing.grant_lifetime)).reduce(Bandwidth::min)
    }
}
