//! A device that really rations: it serves what is offered to it as far as it can, in turn, and marks its answers by
//! how much that was. Owner, probing and channels close the loop.

use std::time::Duration;

use fencepost_pacing::{Channel, Claim, DevLoadCounts, Grant, Law, Owner, Probing, Slice, Timing, Used};

use crate::world::{LINK, bandwidth, weight};

const TICKS_PER_WINDOW: usize = 20;
const LINE_BYTES: f64 = 64.0;

pub struct Thread {
    channel: Channel,
    slice: Slice,
    demand: f64,
    /// The part of its bytes that is counted.
    pub counted: f64,
    /// Replaces the channel's own claim, as a forged row does.
    pub forged: Option<fn(Claim) -> Claim>,
    /// When its window ends and when it began, in ticks: windows are not synchronised, and timers fire late.
    ends: usize,
    began: usize,
    /// Draws how late.
    random: u32,
    ran: Duration,
    bytes: f64,
    /// Since the last measurement.
    moved: f64,
}

pub struct Pool {
    timing: Timing,
    /// What the device can really carry.
    real: f64,
    owner: Owner,
    grant: Option<Grant>,
    counts: DevLoadCounts,
    pub threads: Vec<Thread>,
    ticks: usize,
    /// Of how late timers fire.
    pub seed: u32,
}

impl Pool {
    /// Of a device that is thought to carry `most`, and carries `real`.
    pub fn new(law: Law, most: f64, real: f64) -> Pool {
        Pool::probed(law, Probing::new(bandwidth(most)), real)
    }

    fn probed(law: Law, probing: Probing, real: f64) -> Pool {
        let timing = Timing::default();
        let owner = Owner::new(law, probing, 1, None).unwrap();
        let counts = DevLoadCounts::default();
        Pool { timing, real, owner, grant: None, counts, threads: Vec::new(), ticks: 0, seed: 0 }
    }

    pub fn start(&mut self, value: f64, demand: f64) -> usize {
        let channel = Channel::new(self.timing, weight(value), bandwidth(LINK), &[self.grant]);
        self.threads.push(Thread {
            slice: channel.slice(),
            channel,
            demand,
            counted: 1.0,
            forged: None,
            ends: self.ticks + 1 + self.threads.len() * 7 % TICKS_PER_WINDOW,
            began: self.ticks,
            random: self.threads.len() as u32 + 1 + 1000 * self.seed,
            ran: Duration::ZERO,
            bytes: 0.0,
            moved: 0.0,
        });
        self.threads.len() - 1
    }

    fn tick(&mut self) {
        let tick = self.timing.window / TICKS_PER_WINDOW as u32;
        let offers = |(at, thread): (usize, &Thread)| Some((at, thread.offers(tick)?));
        let offered: Vec<(usize, (Duration, f64))> = self.threads.iter().enumerate().filter_map(offers).collect();
        let all: f64 = offered.iter().map(|(_, (_, bytes))| bytes).sum();
        let can = self.real * tick.as_secs_f64();
        let level = turn_level(can, offered.iter().map(|(_, (_, bytes))| *bytes).collect());
        for (at, (ran, bytes)) in offered {
            let thread = &mut self.threads[at];
            let served = bytes.min(level);
            thread.ran += ran;
            thread.bytes += served;
            thread.moved += served;
        }
        let answers = (all.min(can) / LINE_BYTES) as u64;
        // Queues grow once more is offered than is served.
        let count = match all / can {
            part if part <= 0.5 => &mut self.counts.light,
            part if part <= 1.0 => &mut self.counts.optimal,
            part if part <= 2.0 => &mut self.counts.moderate,
            _ => &mut self.counts.severe,
        };
        *count += answers;
        self.ticks += 1;
        for thread in self.threads.iter_mut().filter(|thread| thread.ends == self.ticks) {
            thread.end_window(tick, self.grant);
        }
        let ticks_per_interval = (self.timing.interval.div_duration_f64(tick)).round() as usize;
        if self.ticks.is_multiple_of(ticks_per_interval) {
            let row = |thread: &Thread| {
                let claim = thread.channel.claim(0);
                thread.forged.map_or(claim, |forge| forge(claim))
            };
            let claims: Vec<Claim> = self.threads.iter().map(row).collect();
            let congested = std::mem::take(&mut self.counts).congested();
            self.grant = Some(self.owner.interval(&claims, congested, self.timing.interval));
        }
    }

    pub fn pass(&mut self, time: Duration) {
        let tick = self.timing.window / TICKS_PER_WINDOW as u32;
        (0..time.div_duration_f64(tick).round() as usize).for_each(|_| self.tick());
    }

    /// Bytes per second of each thread during `time`.
    pub fn measure(&mut self, time: Duration) -> Vec<f64> {
        self.threads.iter_mut().for_each(|thread| thread.moved = 0.0);
        self.pass(time);
        self.threads.iter().map(|thread| thread.moved / time.as_secs_f64()).collect()
    }
}

impl Pool {
    pub fn load(&self) -> f64 {
        self.owner.capacity().load()
    }
}

impl Thread {
    /// For how long it runs in the next tick, and what it would move meanwhile.
    fn offers(&self, tick: Duration) -> Option<(Duration, f64)> {
        let ran = self.slice.time.saturating_sub(self.ran).min(tick);
        let left = self.slice.bytes / self.counted - self.bytes;
        (!ran.is_zero() && left > 0.0).then(|| (ran, (self.demand * ran.as_secs_f64()).min(left)))
    }

    fn end_window(&mut self, tick: Duration, grant: Option<Grant>) {
        let elapsed = tick * (self.ends - self.began) as u32;
        // The multiplier and the increment of Numerical Recipes' quick generator.
        self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.began = self.ends;
        self.ends += TICKS_PER_WINDOW + (self.random >> 16) as usize % (TICKS_PER_WINDOW / 5);
        let bytes = (self.bytes * self.counted) as u64;
        self.slice = self.channel.end_window(Used { bytes, ran: self.ran, elapsed }, &[grant]);
        (self.ran, self.bytes) = (Duration::ZERO, 0.0);
    }
}

/// What each gets at most if all are served in turn, one line at a time.
fn turn_level(can: f64, mut offered: Vec<f64>) -> f64 {
    offered.sort_by(f64::total_cmp);
    let mut left = can;
    for (at, bytes) in offered.iter().enumerate() {
        let level = left / (offered.len() - at) as f64;
        if *bytes >= level {
            return level;
        }
        left -= bytes;
    }
    f64::INFINITY
}

const LAWS: [Law; 2] = [Law::Iterative, Law::WaterFilling];
const REAL: f64 = 22e9;

/// `count` threads of weights 1 and 2 in turn on a device of 22 GB/s that is thought to carry 32, once they have
/// settled.
fn busy(law: Law, count: u32, demand: f64, seed: u32) -> Pool {
    let mut pool = Pool::new(law, 32e9, REAL);
    pool.seed = seed;
    fill(&mut pool, count, demand);
    pool
}

fn fill(pool: &mut Pool, count: u32, demand: f64) {
    (0..count).for_each(|i| {
        pool.start(1.0 + f64::from(i % 2), demand);
    });
    pool.pass(Duration::from_millis(100));
}

fn sum(rates: &[f64]) -> f64 {
    rates.iter().sum()
}

/// How long it takes until what all move in 10 ms comes within 15 % of what they settle to and the device is no more
/// loaded than it is meant to be, in steps of 10 ms; what they settle to, and the least of any 10 ms from then on.
fn settles(pool: &mut Pool) -> (Duration, f64, f64) {
    let step = Duration::from_millis(10);
    let measured: Vec<(f64, f64)> = (0..25).map(|_| (sum(&pool.measure(step)), pool.load())).collect();
    let last = measured[10..].iter().map(|one| one.0).sum::<f64>() / 15.0;
    let load_limit = Probing::new(bandwidth(REAL)).load_limit;
    let has_settled = |(moved, load): &(f64, f64)| (moved / last - 1.0).abs() <= 0.15 && *load <= load_limit + 0.05;
    let settled = measured.iter().position(has_settled).unwrap();
    (step * (settled as u32 + 1), last, measured[settled..].iter().map(|one| one.0).fold(f64::MAX, f64::min))
}

/// Threads that are paused independently sometimes run together. The fewer they are and the larger a part of the device
/// each can take, the more of it is idle at other times.
#[test]
fn the_closed_loop_uses_most_of_a_device_and_keeps_weights() {
    for law in LAWS {
        for (count, demand, utilisation) in [(32, 3e9, 0.9), (16, 4e9, 0.88), (8, 8e9, 0.82)] {
            let mut pool = busy(law, count, demand, 0);
            let rates = pool.measure(Duration::from_millis(400));
            let used = sum(&rates) / REAL;
            assert!(used > utilisation && used <= 1.0, "{law:?}, {count} threads: {used}");
            let every_second = |first| rates.iter().skip(first).step_by(2).sum::<f64>();
            let ratio = every_second(1) / every_second(0);
            assert!((ratio / 2.0 - 1.0).abs() < 0.03, "{law:?}, {count} threads: {ratio}");
        }
    }
}

#[test]
fn a_low_load_limit_leaves_a_third_of_a_device_idle() {
    for law in LAWS {
        let probing = Probing { load_limit: 0.1, ..Probing::new(bandwidth(32e9)) };
        let mut pool = Pool::probed(law, probing, REAL);
        fill(&mut pool, 32, 3e9);
        let used = sum(&pool.measure(Duration::from_millis(200))) / REAL;
        assert!(used < 0.65, "{law:?}: {used}");
    }
}

#[test]
fn a_step_of_the_capacity_is_followed_within_a_tenth_of_a_second_or_sooner() {
    for (law, longest_ms) in [(Law::Iterative, 100), (Law::WaterFilling, 40)] {
        for seed in 0..3 {
            let mut pool = busy(law, 32, 3e9, seed);
            for real in [REAL / 2.0, REAL] {
                pool.real = real;
                let (time, rate, least) = settles(&mut pool);
                assert!(time <= Duration::from_millis(longest_ms), "{law:?}, seed {seed}, to {real}: {time:?}");
                assert!(rate > 0.82 * real, "{law:?}, seed {seed}, to {real}: {rate}");
                assert!(least > 0.5 * rate, "{law:?}, seed {seed}, to {real}: {least}");
            }
        }
    }
}

#[test]
fn as_many_newcomers_at_once_as_there_are_threads_are_settled_within_a_twentieth_of_a_second() {
    for law in LAWS {
        for seed in 0..3 {
            let mut pool = busy(law, 16, 3e9, seed);
            (0..16).for_each(|i| {
                pool.start(1.0 + f64::from(i % 2), 3e9);
            });
            pool.pass(Duration::from_millis(50));
            let rates = pool.measure(Duration::from_millis(100));
            let ratio = sum(&rates[16..]) / sum(&rates[..16]);
            assert!((ratio - 1.0).abs() < 0.05, "{law:?}, seed {seed}: {ratio}");
        }
    }
}

/// What the law cannot do: a thread that alone offers more than the device carries congests it whenever it runs, so
/// that probing takes the device for slower than it is.
#[test]
fn a_device_that_one_thread_overloads_alone_is_thought_slower_than_it_is() {
    for law in LAWS {
        let mut pool = busy(law, 4, 2.0 * REAL, 0);
        let used = sum(&pool.measure(Duration::from_millis(200))) / REAL;
        assert!(used < 0.5, "{law:?}: {used}");
    }
}
