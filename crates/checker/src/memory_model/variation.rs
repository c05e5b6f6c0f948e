//! Variations of a litmus test's timing: where its lines lie, what caches have of them, how long each instruction
//! waits, what is forced out of the caches meanwhile, how slow what is. A seed gives the same variation for ever; seed
//! 0 is the test as it stands.

use fencepost_sim::traffic::Random;
use serde_json::{Value, json};

use super::litmus_test::LineNumber;

/// What happens to a line before the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preparation {
    /// Nothing: no cache has it.
    Untouched,
    /// A thread has read it.
    Read { thread: u32 },
    /// A thread has stored 0 to it: it is dirty there.
    Stored { thread: u32 },
    /// A thread has stored 0 to it and flushed it.
    Flushed { thread: u32 },
}

impl Preparation {
    /// How many versions of the line it makes.
    pub(super) fn stores(self) -> u32 {
        matches!(self, Preparation::Stored { .. } | Preparation::Flushed { .. }).into()
    }
}

/// A line is forced out of the caches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Eviction {
    /// Divisions before it.
    pub(super) delay: u32,
    /// The line.
    pub(super) line: LineNumber,
}

/// What of a test its variations depend on.
#[derive(Clone, Debug)]
pub(super) struct Outline<'a> {
    /// Its name: different tests with one seed vary in different ways.
    pub(super) id: &'a str,
    /// How many lines it uses.
    pub(super) lines: usize,
    /// For each statement of each thread, whether it reads.
    pub(super) threads: Vec<Vec<bool>>,
}

/// One way to time a test.
#[derive(Clone, Debug)]
pub(super) struct Variation {
    /// For each line of the test, the line of PM that it is.
    pub(super) places: Vec<u64>,
    /// For each line what happens to it before.
    pub(super) preparations: Vec<Preparation>,
    /// For each statement of each thread, divisions before it.
    pub(super) delays: Vec<Vec<u32>>,
    /// Whether a flush that does not wait is a `clflushopt` and not a `clwb`.
    pub(super) is_clflushopt: bool,
    /// What a thread beside those of the test forces out of the caches, one after the other.
    pub(super) evictions: Vec<Eviction>,
    /// Keys of the machine with other values.
    pub(super) machine: Vec<(&'static str, Value)>,
}

/// Lines so far apart lie in different devices of an interleaved set.
const INTERLEAVED_LINES: u64 = 4;
/// PM lines among which those of a test lie.
const PLACES: u64 = 32;
/// Divisions in a short and in a long delay: 30 ns and 3 us with the cores of `pcs-table1`, less and more than a write
/// to PM takes.
const DELAYS: [u64; 3] = [10, 100, 1000];

/// Divisions in 9 us: longer than what another thread does before its last store, as a rule.
const LONG: u32 = 3000;

/// Keys of machines that do not change what is guaranteed, with values that are worth trying.
fn alternatives() -> Vec<(&'static str, Vec<Value>)> {
    vec![
        ("core.clwb_leaves", vec![json!("exclusive"), json!("shared"), json!("invalid")]),
        ("core.flushes_in_flight", vec![json!(1), json!(2), json!(10)]),
        ("core.prefetch_for_ownership", vec![json!(true), json!(false)]),
        ("core.clflush_order", vec![json!("stores"), json!("full_fence")]),
        ("core.sfence_order", vec![json!("store_queue"), json!("oldest")]),
        ("tlb.enabled", vec![json!(false), json!(true)]),
        ("cache.l2.write_buffers", vec![json!(1), json!(64)]),
        ("host_bridge.latency_ns", vec![json!(5.0), json!(20.0), json!(200.0)]),
        ("link.latency_ns", vec![json!(5.0), json!(25.0), json!(500.0)]),
        ("fabric.link.switch1 -> pm0.latency_ns", vec![json!(500.0), json!(5000.0)]),
        ("link.request_with_data_credits", vec![json!(1), json!(16)]),
        ("switch.persist_buffer.entries", vec![json!(1), json!(2), json!(16)]),
        ("switch.persist_buffer.data_access_ns", vec![json!(0.785), json!(100.0)]),
        ("pm.ack_at", vec![json!("queue"), json!("media")]),
        ("pm.write_ns", vec![json!(50.0), json!(200.0), json!(2000.0)]),
        ("pm.read_ns", vec![json!(50.0), json!(100.0), json!(1000.0)]),
        ("pm.banks", vec![json!(1), json!(16)]),
        ("pm.write_merging", vec![json!(true), json!(false)]),
        ("simulation.run_ahead_ns", vec![json!(5.0), json!(100.0)]),
    ]
}

impl Variation {
    /// The variation of a test that belongs to `seed`.
    pub(super) fn of(test: &Outline<'_>, seed: u64) -> Variation {
        if seed == 0 { Variation::plain(test) } else { Variation::random(test, seed) }
    }

    fn plain(test: &Outline<'_>) -> Variation {
        // What looks for another thread's store finds it if it comes late.
        let delay = |(index, reads): (usize, &bool)| if index == 0 && *reads { LONG } else { 0 };
        Variation {
            places: (0..test.lines as u64).map(|line| line * INTERLEAVED_LINES).collect(),
            preparations: vec![Preparation::Untouched; test.lines],
            delays: test.threads.iter().map(|thread| thread.iter().enumerate().map(delay).collect()).collect(),
            is_clflushopt: false,
            evictions: Vec::new(),
            machine: Vec::new(),
        }
    }

    fn random(test: &Outline<'_>, seed: u64) -> Variation {
        let of_test = test.id.bytes().fold(0u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)));
        let mut random = Random::of_member(of_test, seed);
        let mut variation = Variation::plain(test);
        variation.places = different(&mut random, test.lines);
        let threads = test.threads.len() as u64;
        variation.preparations = (0..test.lines).map(|_| preparation(&mut random, threads)).collect();
        variation.is_clflushopt = random.below(2) == 1;
        for thread in &mut variation.delays {
            for (index, delay) in thread.iter_mut().enumerate() {
                if *delay > 0 {
                    let is_long = random.below(2) == 0;
                    *delay = if is_long { random.below(u64::from(LONG)) as u32 } else { random_delay(&mut random) };
                } else if random.below(if index == 0 { 2 } else { 4 }) == 0 {
                    // Before a thread's first statement it shifts the whole thread against the others.
                    *delay = random_delay(&mut random);
                }
            }
        }
        variation.evictions = evictions(&mut random, test.lines);
        for (key, values) in alternatives() {
            if random.below(4) == 0 {
                variation.machine.push((key, values[random.below(values.len() as u64) as usize].clone()));
            }
        }
        variation
    }
}

fn random_delay(random: &mut Random) -> u32 {
    let up_to = DELAYS[random.below(DELAYS.len() as u64) as usize];
    random.below(up_to) as u32
}

fn preparation(random: &mut Random, threads: u64) -> Preparation {
    let thread = random.below(threads) as u32;
    match random.below(4) {
        0 => Preparation::Untouched,
        1 => Preparation::Read { thread },
        2 => Preparation::Stored { thread },
        _ => Preparation::Flushed { thread },
    }
}

/// Lines that are forced out: a few at any time, and half the time at last all of them.
fn evictions(random: &mut Random, lines: usize) -> Vec<Eviction> {
    let any = |random: &mut Random| random.below(lines as u64) as usize;
    let during: Vec<LineNumber> = (0..random.below(7)).map(|_| any(random)).collect();
    let first = any(random);
    let at_last = (0..lines).map(|line| (first + line) % lines).filter(|_| during.len().is_multiple_of(2));
    let all: Vec<LineNumber> = during.iter().copied().chain(at_last).collect();
    all.into_iter().map(|line| Eviction { delay: random_delay(random), line }).collect()
}

/// So many different places.
fn different(random: &mut Random, count: usize) -> Vec<u64> {
    let mut places: Vec<u64> = Vec::new();
    while places.len() < count {
        let place = random.below(PLACES);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}
