//! A device, its owner and the channels to it, in steps of scheduling windows.

use std::time::Duration;

use fencepost_pacing::{Bandwidth, Channel, Claim, Grant, Law, Members, Owner, Probing, Row, Slice, Timing, Used};

/// Bytes per second of all links.
pub const LINK: f64 = 32e9;

pub fn bandwidth(bytes_per_second: f64) -> Bandwidth {
    Bandwidth::new(bytes_per_second)
}

pub fn claim(weight: f64, rate: f64, demand: f64) -> Claim {
    Claim { weight, rate: bandwidth(rate), demand: bandwidth(demand) }
}

/// What the channels get at a share that satisfies the law exactly.
pub fn ideal(capacity: f64, channels: &[(f64, f64)]) -> Vec<f64> {
    let claims: Vec<Claim> = channels.iter().map(|&(weight, demand)| claim(weight, 0.0, demand)).collect();
    let share = Law::WaterFilling.share(None, bandwidth(capacity), &claims);
    claims.iter().map(|claim| claim.granted(share).bytes_per_second()).collect()
}

/// A program's thread: what it takes while it runs, and what it says of that.
#[derive(Clone)]
pub struct Thread {
    pub id: u64,
    pub channel: Channel,
    pub slice: Slice,
    pub demand: f64,
    /// The part of its bytes that it reports.
    pub reported: f64,
    pub heartbeat: u64,
    pub is_alive: bool,
    /// Bytes in each window so far.
    pub windows: Vec<f64>,
    /// When its last window ended, in windows.
    pub ended: usize,
}

#[derive(Clone)]
pub struct World {
    pub timing: Timing,
    pub capacity: f64,
    pub law: Law,
    pub owner: Option<Owner>,
    pub grant: Option<Grant>,
    pub members: Members<u64>,
    pub threads: Vec<Thread>,
    ids: u64,
    windows: usize,
}

impl World {
    pub fn new(law: Law, capacity: f64) -> World {
        let interval = Duration::from_micros(500);
        let timing = Timing { interval, grant_lifetime: 3 * interval, silence_max: interval, ..Timing::default() };
        let owner = Some(Owner::new(law, Probing::new(bandwidth(capacity)), None));
        let members = Members::new(1);
        World { timing, capacity, law, owner, grant: None, members, threads: Vec::new(), ids: 0, windows: 0 }
    }

    pub fn start(&mut self, weight: f64, demand: f64) -> usize {
        self.ids += 1;
        let channel = Channel::new(self.timing, weight, bandwidth(LINK), self.grant);
        let slice = channel.slice();
        let (id, reported, heartbeat, is_alive, ended) = (self.ids, 1.0, 0, true, self.windows);
        let windows = Vec::new();
        self.threads.push(Thread { id, channel, slice, demand, reported, heartbeat, is_alive, windows, ended });
        self.threads.len() - 1
    }

    pub fn replace_owner(&mut self) {
        self.owner = Some(Owner::new(self.law, Probing::new(bandwidth(self.capacity)), self.grant));
        self.members = Members::new(1);
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
            let slept = self.timing.window * (self.windows - 1 - thread.ended) as u32;
            if !slept.is_zero() {
                // The window that it slept through ends when it wakes.
                let used = Used { bytes: 0, ran: Duration::ZERO, elapsed: slept };
                thread.slice = thread.channel.end_window(used, self.grant);
            }
            let wanted = thread.demand * thread.slice.time.as_secs_f64();
            let bytes = wanted.min(thread.slice.bytes / thread.reported).floor();
            let ran = if wanted > 0.0 { thread.slice.time.mul_f64(bytes / wanted) } else { thread.slice.time };
            thread.windows.push(bytes);
            thread.heartbeat += 1;
            let elapsed = self.timing.window;
            thread.ended = self.windows;
            let used = Used { bytes: (bytes * thread.reported) as u64, ran, elapsed };
            thread.slice = thread.channel.end_window(used, self.grant);
        }
    }

    /// The owner's interval, after its windows.
    pub fn decide(&mut self, congested: f64) {
        let rows: Vec<Row<u64>> = self
            .threads
            .iter()
            .map(|thread| Row { id: thread.id, heartbeat: thread.heartbeat, claim: thread.channel.claim() })
            .collect();
        let claims = self.members.live(&rows);
        if let Some(owner) = &mut self.owner {
            self.grant = Some(owner.interval(&claims, congested, self.timing.interval));
        }
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
