//! Devices, their owners and the channels to them, in steps of scheduling windows.

use std::time::Duration;

use fencepost_pacing::{
    Bandwidth, Channel, Claim, Grant, Hierarchy, Law, Members, Owner, Probing, Row, Slice, Timing, Used, Weight,
};

/// Bytes per second of all links.
pub const LINK: f64 = 32e9;

pub fn bandwidth(bytes_per_second: f64) -> Bandwidth {
    Bandwidth::new(bytes_per_second)
}

pub fn weight(value: f64) -> Weight {
    Weight::new(value).unwrap()
}

pub fn claim(value: f64, rate: f64, demand: f64) -> Claim {
    Claim { weight: weight(value), rate: bandwidth(rate), demand: bandwidth(demand) }
}

/// What the channels get at a share that satisfies the law exactly.
pub fn ideal(capacity: f64, channels: &[(f64, f64)]) -> Vec<f64> {
    let claims: Vec<Claim> = channels.iter().map(|&(weight, demand)| claim(weight, 0.0, demand)).collect();
    let share = Law::WaterFilling.share(None, bandwidth(capacity), &claims);
    claims.iter().map(|claim| claim.granted(share).bytes_per_second()).collect()
}

/// A place for a channel, and the program's thread in it: what it takes while it runs, and what it says of that.
#[derive(Clone)]
pub struct Thread {
    pub id: u64,
    pub weight: f64,
    pub channel: Channel,
    pub slice: Slice,
    pub demand: f64,
    /// The part of its bytes that it reports.
    pub reported: f64,
    pub heartbeat: u64,
    pub is_alive: bool,
    /// The devices on its path.
    pub path: Vec<usize>,
    /// Of its devices.
    pub group: Option<usize>,
    /// Bytes in each window so far.
    pub windows: Vec<f64>,
    /// When its last window ended, in windows.
    pub ended: usize,
    /// The first grant of its first device that is sure to count it.
    pub counted_from: u64,
}

/// An owner that is at work, or has lost its lease without noticing.
#[derive(Clone)]
pub struct Seat {
    pub owner: Owner,
    pub members: Members<u64>,
}

#[derive(Clone)]
pub struct Device {
    pub law: Law,
    pub capacity: f64,
    pub groups: Hierarchy,
    pub seat: Seat,
    /// The owner before.
    pub deposed: Option<Seat>,
    /// By group, and last the device's; empty before the first.
    pub grants: Vec<Grant>,
    epoch: u64,
}

impl Device {
    fn seat(law: Law, capacity: f64, timing: &Timing, groups: &Hierarchy, epoch: u64, found: &[Grant]) -> Seat {
        let found: Vec<Option<Grant>> = found.iter().copied().map(Some).collect();
        let probing = Probing { interval: timing.interval, ..Probing::new(bandwidth(capacity)) };
        let owner = Owner::of_groups(law, probing, epoch, groups.clone(), &found).unwrap();
        Seat { owner, members: Members::new(1) }
    }

    pub fn new(law: Law, capacity: f64, timing: &Timing, groups: Hierarchy) -> Device {
        let seat = Device::seat(law, capacity, timing, &groups, 1, &[]);
        Device { law, capacity, groups, seat, deposed: None, grants: Vec::new(), epoch: 1 }
    }

    pub fn grant(&self, group: Option<usize>) -> Option<Grant> {
        group.map_or(self.grants.last(), |group| self.grants.get(group)).copied()
    }

    /// A new owner takes the lease; the one before does not know.
    pub fn replace_owner(&mut self, timing: &Timing) {
        self.epoch += 1;
        let next = Device::seat(self.law, self.capacity, timing, &self.groups, self.epoch, &self.grants);
        self.deposed = Some(std::mem::replace(&mut self.seat, next));
    }
}

#[derive(Clone)]
pub struct World {
    pub timing: Timing,
    pub devices: Vec<Device>,
    pub threads: Vec<Thread>,
    ids: u64,
    pub windows: usize,
    /// When owners have last published, in windows.
    granted: usize,
}

impl World {
    pub fn new(law: Law, capacity: f64) -> World {
        World::of(law, &[capacity], Hierarchy::default(), Duration::from_micros(500))
    }

    pub fn of(law: Law, capacities: &[f64], groups: Hierarchy, interval: Duration) -> World {
        let timing = Timing {
            interval,
            grant_lifetime: 3 * interval,
            silence_max: interval,
            debt_max: interval,
            ..Timing::default()
        };
        let device = |&capacity: &f64| Device::new(law, capacity, &timing, groups.clone());
        let devices = capacities.iter().map(device).collect();
        World { timing, devices, threads: Vec::new(), ids: 0, windows: 0, granted: 0 }
    }

    /// The grants for a thread, in the order of its path.
    fn grants(devices: &[Device], path: &[usize], group: Option<usize>) -> Vec<Option<Grant>> {
        path.iter().map(|&at| devices[at].grant(group)).collect()
    }

    pub fn start(&mut self, weight: f64, demand: f64) -> usize {
        self.start_on(weight, demand, &[0], None)
    }

    pub fn start_on(&mut self, value: f64, demand: f64, path: &[usize], group: Option<usize>) -> usize {
        self.ids += 1;
        let found = World::grants(&self.devices, path, group);
        let channel = Channel::new(self.timing, weight(value), bandwidth(LINK), &found);
        self.threads.push(Thread {
            id: self.ids,
            weight: value,
            slice: channel.slice(),
            channel,
            demand,
            reported: 1.0,
            heartbeat: 0,
            is_alive: true,
            path: path.to_vec(),
            group,
            windows: vec![0.0; self.windows],
            ended: self.windows,
            counted_from: found[0].map_or(0, |grant| grant.number + 2),
        });
        self.threads.len() - 1
    }

    /// The thread's program dies, and starts anew in the same slot.
    pub fn restart(&mut self, at: usize) {
        let old = self.threads[at].clone();
        let new = self.start_on(old.weight, old.demand, &old.path, old.group);
        let mut new = self.threads.swap_remove(new);
        (new.windows, new.reported) = (old.windows, old.reported);
        self.threads[at] = new;
    }

    /// One window of every live thread that is not among `silent`. Each stops where the bytes that it reports
    /// are used up.
    pub fn window(&mut self, silent: &[usize]) {
        self.windows += 1;
        for (at, thread) in self.threads.iter_mut().enumerate() {
            if !thread.is_alive || silent.contains(&at) {
                thread.windows.push(0.0);
                continue;
            }
            let grants = World::grants(&self.devices, &thread.path, thread.group);
            let slept = self.timing.window * (self.windows - 1 - thread.ended) as u32;
            if !slept.is_zero() {
                // The window that it slept through ends when it wakes.
                let used = Used { bytes: 0, ran: Duration::ZERO, elapsed: slept };
                thread.slice = thread.channel.end_window(used, &grants);
                if slept > self.timing.silence_max {
                    thread.counted_from = grants[0].map_or(0, |grant| grant.number + 2);
                }
            }
            let wanted = thread.demand * thread.slice.time.as_secs_f64();
            let bytes = wanted.min(thread.slice.bytes / thread.reported).floor();
            let ran = if wanted > 0.0 { thread.slice.time.mul_f64(bytes / wanted) } else { thread.slice.time };
            thread.windows.push(bytes);
            thread.heartbeat += 1;
            let elapsed = self.timing.window;
            thread.ended = self.windows;
            let used = Used { bytes: (bytes * thread.reported) as u64, ran, elapsed };
            thread.slice = thread.channel.end_window(used, &grants);
        }
    }

    /// The rows of a device, as its owner reads them.
    fn rows(&self, device: usize) -> Vec<Row<u64, (Option<usize>, Claim)>> {
        let row = |thread: &Thread| {
            let place = thread.path.iter().position(|&at| at == device)?;
            let claim = (thread.group, thread.channel.claim(place));
            Some(Row { id: thread.id, heartbeat: thread.heartbeat, claim })
        };
        self.threads.iter().filter_map(row).collect()
    }

    /// The owners' intervals, after their windows.
    pub fn decide(&mut self, congested: f64) {
        self.granted = self.windows;
        for at in 0..self.devices.len() {
            let rows = self.rows(at);
            let Seat { owner, members } = &mut self.devices[at].seat;
            self.devices[at].grants = owner.interval_of_groups(&members.live(&rows), congested, self.timing.interval);
        }
    }

    /// The owner that lost its lease has its interval, and publishes over what its successor has published: it was
    /// paused after it had seen that it still held the lease.
    pub fn deposed_owner_publishes(&mut self) {
        let rows = self.rows(0);
        if let Some(Seat { owner, members }) = &mut self.devices[0].deposed {
            self.devices[0].grants = owner.interval_of_groups(&members.live(&rows), 0.0, self.timing.interval);
        }
    }

    /// How long no owner has published, in windows.
    pub fn windows_without_grant(&self) -> usize {
        self.windows - self.granted
    }

    pub fn grant_lifetime_windows(&self) -> usize {
        self.timing.grant_lifetime.div_duration_f64(self.timing.window).round() as usize
    }

    pub fn windows_per_interval(&self) -> usize {
        self.timing.interval.div_duration_f64(self.timing.window).round() as usize
    }

    pub fn interval(&mut self, silent: &[usize]) {
        for _ in 0..self.windows_per_interval() {
            self.window(silent);
        }
        self.decide(0.0);
    }

    /// Bytes per second of a thread over its last `windows`.
    pub fn rate(&self, thread: usize, windows: usize) -> f64 {
        let last: f64 = self.threads[thread].windows.iter().rev().take(windows).sum();
        last / (windows as f64 * self.timing.window.as_secs_f64())
    }
}
