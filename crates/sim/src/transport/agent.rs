//! The runtimes of all hosts and the owners of all resources: ends windows and intervals, and asks the law.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration as RealDuration;

use fencepost_pacing::{
    Bandwidth, Channel, Claim, Grant, Hierarchy, Law, Members, Owner, Probing, Row, Timing, Used, Weight,
};

use super::config::{CongestionSignal, Counting, Transport, TransportConfig};
use super::resource::{Place, Resource};
use fencepost_kernel::time::{Duration, Time};

/// A thread that takes part.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Its part relative to others'.
    pub weight: Weight,
    /// The ways of what it moves, a channel each.
    pub ways: Vec<Way>,
    /// The group that it belongs to; the device itself where there is none.
    pub group: Option<usize>,
    /// Of the bytes that it moves, the part that is counted.
    pub counted_part: f64,
    /// When its host dies: from then on its rows stand still.
    pub dies: Time,
}

impl Thread {
    /// One that belongs to no group, counts what it moves and lives.
    pub fn new(weight: Weight, ways: Vec<Way>) -> Thread {
        Thread { weight, ways, group: None, counted_part: 1.0, dies: Time::NEVER }
    }
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
    group: Option<usize>,
    counted_part: f64,
    dies: Time,
    /// Windows that have ended.
    heartbeat: u64,
    window_began: Time,
    /// For how long it may run in the present window.
    runs: Duration,
}

#[derive(Clone, Debug)]
struct Owned {
    resource: Resource,
    owner: Owner,
    /// By group, and last the resource's.
    grants: Vec<Option<Grant>>,
    /// Whose rows count.
    members: Members<(usize, usize)>,
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

/// A row expires once its heartbeat has stood still for more intervals than this: an interval may end just before a
/// window does.
const SILENT_INTERVALS_MAX: u32 = 3;

/// The golden ratio's fractional part: its multiples, modulo 1, lie as evenly as can be.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

impl Agent {
    /// The agent of `threads`, whose first windows begin at time zero and end at different times, so that they are not
    /// synchronised. Every resource is divided among the same `groups`.
    ///
    /// # Panics
    /// If `transport` has no agent.
    pub fn new(
        transport: Transport,
        config: &TransportConfig,
        resources: Vec<Resource>,
        groups: &Hierarchy,
        threads: &[Thread],
    ) -> Agent {
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
            group: thread.group,
            counted_part: thread.counted_part,
            dies: thread.dies,
            heartbeat: 0,
            window_began: Time::ZERO,
            runs: window,
        };
        let members: Vec<Member> = threads.iter().map(member).collect();
        let owned = resources.into_iter().map(|resource| {
            let capacity = Bandwidth::new(resource.capacity).times(config.utilisation);
            let probing = Probing {
                interval: real(interval),
                load_limit: config.load_limit,
                load_weight: config.load_weight,
                ..Probing::new(capacity)
            };
            let owner = Owner::of_groups(law, probing, 1, groups.clone(), &[]);
            let owner = owner.expect("a machine's capacities and intervals are above zero");
            let grants = vec![None; groups.count() + 1];
            Owned { resource, owner, grants, members: Members::new(SILENT_INTERVALS_MAX), history: Vec::new() }
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
        let member = &mut self.members[thread];
        if now >= member.dies {
            return Pace::Until(now);
        }
        self.windows.push(Reverse((now + self.window, thread)));
        member.heartbeat += 1;
        let elapsed = now.since(member.window_began);
        let ran = member.runs.min(elapsed);
        let mut runs = self.window;
        let mut rates = vec![[f64::INFINITY; 2]; moved.len()];
        for channel in &mut member.channels {
            let counted = if channel.way.writes && !self.counts_writes {
                0
            } else {
                (moved[channel.way.device][usize::from(channel.way.writes)] as f64 * member.counted_part) as u64
            };
            let bytes = counted - channel.moved;
            channel.moved = counted;
            let grant = |resource: &usize| {
                let grants = &self.owned[*resource].grants;
                grants[member.group.unwrap_or(grants.len() - 1)]
            };
            let grants: Vec<_> = channel.way.path.iter().map(grant).collect();
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
        type GroupClaim = (Option<usize>, Claim);
        let mut rows: Vec<Vec<Row<(usize, usize), GroupClaim>>> = vec![Vec::new(); self.owned.len()];
        for (thread, member) in self.members.iter().enumerate() {
            for (number, channel) in member.channels.iter().enumerate() {
                for (device, resource) in channel.way.path.iter().enumerate() {
                    let claim = (member.group, channel.state.claim(device));
                    rows[*resource].push(Row { id: (thread, number), heartbeat: member.heartbeat, claim });
                }
            }
        }
        for (owned, rows) in self.owned.iter_mut().zip(&rows) {
            let place = owned.resource.place;
            let has_signal = if matches!(place, Place::Device(_)) { by_device } else { by_link };
            let signal = if has_signal { congested(place) } else { 0.0 };
            let claims = owned.members.live(rows);
            let grants = owned.owner.interval_of_groups(&claims, signal, elapsed);
            let used: Bandwidth = claims.iter().map(|(_, claim)| claim.rate).sum();
            let [.., grant] = grants[..] else { unreachable!("the last grant is the resource's") };
            owned.history.push(Sample {
                at: now,
                share: grant.share.bytes_per_second(),
                capacity: grant.capacity.bytes_per_second(),
                used: used.bytes_per_second(),
            });
            self.control_bytes += CONTROL_BYTES * (grants.len() + rows.len()) as u64;
            owned.grants = grants.into_iter().map(Some).collect();
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
