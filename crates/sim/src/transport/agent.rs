//! The runtimes of all hosts and the owners of all resources: ends windows and intervals, and asks the law.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration as RealDuration;

use fencepost_pacing::{Bandwidth, Channel, Claim, Grant, Law, Owner, Probing, Timing, Used, Weight};

use super::config::{CongestionSignal, Counting, Transport, TransportConfig};
use super::resource::{Place, Resource};
use crate::time::{Duration, Time};

/// A thread that takes part.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Its part relative to others'.
    pub weight: Weight,
    /// The ways of what it moves, a channel each.
    pub ways: Vec<Way>,
}

/// The way of what a thread moves from or to one device, in one direction.
#[derive(Clone, Debug)]
pub struct Way {
    /// The device, by its place among those that the thread uses.
    pub device: usize,
    /// Whether it writes.
    pub writes: bool,
    /// The resources on it, by their numbers.
    pub path: Vec<usize>,
}

/// What is due at [`Agent::due`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// The window of that thread ends.
    Window(usize),
    /// The interval of all owners ends.
    Interval,
}

/// What a thread may do until its next window.
#[derive(Clone, Debug, PartialEq)]
pub enum Pace {
    /// It runs until then, and is paused after that.
    Until(Time),
    /// Each of its requests waits for credit, which its channels get at these bytes a second: by device, reads and
    /// writes.
    Credit(Vec<[f64; 2]>),
}

/// What an owner had at the end of an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// When it ended.
    pub at: Time,
    /// The share per unit of weight, in bytes a second.
    pub share: f64,
    /// The estimate of what the resource carries, in bytes a second.
    pub capacity: f64,
    /// What channels said that they got together, in bytes a second.
    pub used: f64,
}

/// A channel of a thread: one device, one direction.
#[derive(Clone, Debug)]
struct OpenChannel {
    way: Way,
    state: Channel,
    /// Bytes that it had moved at the end of its last window.
    moved: u64,
}

#[derive(Clone, Debug)]
struct Member {
    channels: Vec<OpenChannel>,
    window_began: Time,
    /// For how long it may run in the present window.
    runs: Duration,
}

#[derive(Clone, Debug)]
struct Owned {
    resource: Resource,
    owner: Owner,
    grant: Option<Grant>,
    history: Vec<Sample>,
}

/// The transport's runtimes and owners.
#[derive(Clone, Debug)]
pub struct Agent {
    transport: Transport,
    counts_writes: bool,
    congestion: CongestionSignal,
    window: Duration,
    interval: Duration,
    members: Vec<Member>,
    owned: Vec<Owned>,
    interval_began: Time,
    /// When windows end, and whose.
    windows: BinaryHeap<Reverse<(Time, usize)>>,
    control_bytes: u64,
}

/// A row of a channel, and a grant, are each a line of shared memory.
const CONTROL_BYTES: u64 = 64;

/// The golden ratio's fractional part: its multiples, modulo 1, lie as evenly as can be.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

impl Agent {
    /// The agent of `threads`, whose first windows begin at time zero and end at different times, so that they are not
    /// synchronised.
    ///
    /// # Panics
    /// If `transport` has no agent.
    pub fn new(transport: Transport, config: &TransportConfig, resources: Vec<Resource>, threads: &[Thread]) -> Agent {
        let law = match transport {
            Transport::Waterfill => Law::WaterFilling,
            Transport::Memchannel | Transport::Credits => Law::Iterative,
            Transport::None | Transport::SwitchWfq => unreachable!("hosts take no part in it"),
        };
        let (window, interval) = (config.window(), config.interval());
        let timing =
            Timing { window: real(window), interval: real(interval), debt_max: real(interval), ..Timing::default() };
        let counts_writes = config.counting == Counting::ReadsAndWrites;
        let channel = |thread: &Thread, way: &Way| {
            let link = Bandwidth::new(resources[way.path[0]].capacity);
            let state = Channel::new(timing, thread.weight, link, &vec![None; way.path.len()]);
            OpenChannel { way: way.clone(), state, moved: 0 }
        };
        let member = |thread: &Thread| Member {
            channels: thread.ways.iter().map(|way| channel(thread, way)).collect(),
            window_began: Time::ZERO,
            runs: window,
        };
        let members: Vec<Member> = threads.iter().map(member).collect();
        let owned = resources.into_iter().map(|resource| {
            let capacity = Bandwidth::new(resource.capacity).times(config.utilisation);
            let probing = Probing { interval: real(interval), load_limit: config.load_limit, ..Probing::new(capacity) };
            let owner = Owner::new(law, probing, 1, None).expect("a machine's capacities and intervals are above zero");
            Owned { resource, owner, grant: None, history: Vec::new() }
        });
        let offset = |number: usize| (((number + 1) as f64 * GOLDEN).fract() * window.as_ps() as f64) as u64;
        let first = |number| Reverse((Time::ZERO + Duration::from_ps(1 + offset(number)), number));
        Agent {
            transport,
            counts_writes,
            congestion: config.congestion,
            window,
            interval,
            owned: owned.collect(),
            interval_began: Time::ZERO,
            windows: (0..members.len()).map(first).collect(),
            members,
            control_bytes: 0,
        }
    }

    /// When a window or an interval ends next.
    pub fn due(&self) -> Time {
        let interval_ends = self.interval_began + self.interval;
        self.windows.peek().map_or(interval_ends, |Reverse((time, _))| interval_ends.min(*time))
    }

    /// What is due then; windows before intervals, so that an owner sees what is newest.
    pub fn next(&self) -> Due {
        let due = self.due();
        match self.windows.peek() {
            Some(Reverse((time, thread))) if *time == due => Due::Window(*thread),
            _ => Due::Interval,
        }
    }

    /// Whether any thread is paused now: it goes on without any event.
    pub fn has_paused(&self, now: Time) -> bool {
        self.members.iter().any(|member| member.runs < self.window && member.window_began + member.runs <= now)
    }

    /// Ends the window of `thread`, which by `now` has moved so many bytes in all: by device, read and
    /// written. Says what it may do in the next.
    pub fn end_window(&mut self, thread: usize, now: Time, moved: &[[u64; 2]]) -> Pace {
        self.windows.pop();
        self.windows.push(Reverse((now + self.window, thread)));
        let member = &mut self.members[thread];
        let elapsed = now.since(member.window_began);
        let ran = member.runs.min(elapsed);
        let mut runs = self.window;
        let mut rates = vec![[f64::INFINITY; 2]; moved.len()];
        for channel in &mut member.channels {
            let counted = if channel.way.writes && !self.counts_writes {
                0
            } else {
                moved[channel.way.device][usize::from(channel.way.writes)]
            };
            let bytes = counted - channel.moved;
            channel.moved = counted;
            let grants: Vec<_> = channel.way.path.iter().map(|resource| self.owned[*resource].grant).collect();
            let used = Used { bytes, ran: real(ran), elapsed: real(elapsed) };
            let slice = channel.state.end_window(used, &grants);
            runs = runs.min(simulated(slice.time));
            if let Some(allowed) = channel.state.allowed() {
                rates[channel.way.device][usize::from(channel.way.writes)] = allowed.bytes_per_second();
            }
            self.control_bytes += CONTROL_BYTES;
        }
        member.window_began = now;
        if self.transport == Transport::Credits {
            // It is delayed, never paused: it runs all of the time.
            member.runs = self.window;
            return Pace::Credit(rates);
        }
        member.runs = runs;
        Pace::Until(if runs < self.window { now + runs } else { Time::NEVER })
    }

    /// Ends the interval of all owners. `congested` says for a place which part of its answers, or of its time,
    /// reported congestion; it is asked where the configured signal comes from.
    pub fn end_interval(&mut self, now: Time, mut congested: impl FnMut(Place) -> f64) {
        let (by_device, by_link) = match self.congestion {
            CongestionSignal::None => (false, false),
            CongestionSignal::DevLoad => (true, false),
            CongestionSignal::Backpressure => (false, true),
            CongestionSignal::Both => (true, true),
        };
        let elapsed = real(now.since(self.interval_began));
        let mut claims: Vec<Vec<Claim>> = vec![Vec::new(); self.owned.len()];
        for channel in self.members.iter().flat_map(|member| &member.channels) {
            for (device, resource) in channel.way.path.iter().enumerate() {
                claims[*resource].push(channel.state.claim(device));
            }
        }
        for (owned, claims) in self.owned.iter_mut().zip(&claims) {
            let place = owned.resource.place;
            let has_signal = if matches!(place, Place::Device(_)) { by_device } else { by_link };
            let signal = if has_signal { congested(place) } else { 0.0 };
            let grant = owned.owner.interval(claims, signal, elapsed);
            let used: Bandwidth = claims.iter().map(|claim| claim.rate).sum();
            owned.history.push(Sample {
                at: now,
                share: grant.share.bytes_per_second(),
                capacity: grant.capacity.bytes_per_second(),
                used: used.bytes_per_second(),
            });
            owned.grant = Some(grant);
            self.control_bytes += CONTROL_BYTES * (1 + claims.len() as u64);
        }
        self.interval_began = now;
    }

    /// The resources, each with what its owner had at the end of each interval.
    pub fn resources(&self) -> impl Iterator<Item = (&Resource, &[Sample])> {
        self.owned.iter().map(|owned| (&owned.resource, &owned.history[..]))
    }

    /// Bytes of shared memory that channels and owners wrote and read.
    pub fn control_bytes(&self) -> u64 {
        self.control_bytes
    }
}

fn real(duration: Duration) -> RealDuration {
    // Nanoseconds are the finest there; a window has at least a thousand.
    RealDuration::from_nanos(duration.as_ps().div_ceil(1000))
}

fn simulated(duration: RealDuration) -> Duration {
    Duration::from_ps(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX).saturating_mul(1000))
}
