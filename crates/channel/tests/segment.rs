//! A segment in ordinary memory, with time that the tests make: who is the owner, and what is granted.

#![cfg(not(loom))]

use std::time::Duration;

use fencepost_channel_core::keeper::{Owners, State};
use fencepost_channel_core::pacer::{Pacer, Progress};
use fencepost_channel_core::segment::place::Phase;
use fencepost_channel_core::segment::{Coherence, Row, Segment, Settings, Word, Words};
use fencepost_channel_core::system;
use fencepost_pacing::{Bandwidth, Grant, Weight};

const CAPACITY: f64 = 1e9;
const SETTINGS: &str = "device\tpool\t1e9\nrule\tgold\t\t*\t3\t1\t-\t-\nrule\tothers\t*\t*\t1\t1\t-\t-\n";

fn segment() -> Segment<'static> {
    let settings: Settings = SETTINGS.parse().unwrap();
    let words: Vec<Word> = (0..Segment::words(1)).map(|_| Word::new(0)).collect();
    let words = Words::new(words.leak(), Coherence::Software);
    Segment::create(words, &settings);
    Segment::open(words, 0).unwrap()
}

/// A thread that demands all of the device.
fn join(segment: Segment<'_>, thread: u32, rule: u32) -> usize {
    let (index, _) = segment.take_row(thread, thread as usize).unwrap();
    beat(segment, index, rule, 1);
    index
}

fn beat(segment: Segment<'_>, index: usize, rule: u32, heartbeat: u64) {
    let mut row = Row { rule, heartbeat, devices: 1, ..Row::default() };
    row.claims[0] = (0.0, CAPACITY);
    row.publish(segment.row(index));
}

fn share(segment: Segment<'_>) -> f64 {
    segment.grant(0).unwrap().share.bytes_per_second()
}

#[test]
fn who_is_silent_leaves_its_share_to_others() {
    let segment = segment();
    let interval = segment.timing().interval;
    let mut owners = Owners::new(segment, 0);
    let (gold, other) = (join(segment, 7, 0), join(segment, 8, 1));
    owners.interval(interval);
    assert_eq!(share(segment), CAPACITY / 4.0);
    let silent = segment.timing().silence_max.as_nanos() / interval.as_nanos();
    for heartbeat in 2..silent as u64 + 4 {
        beat(segment, gold, 0, heartbeat);
        owners.interval(interval);
    }
    assert_eq!(share(segment), CAPACITY / 3.0);
    beat(segment, other, 1, 2);
    owners.interval(interval);
    assert_eq!(share(segment), CAPACITY / 4.0);
}

#[test]
fn a_silent_owner_is_followed_and_steps_down_when_it_wakes() {
    let segment = segment();
    let interval = segment.timing().interval;
    let (mut first, mut second) = (Owners::new(segment, 0), Owners::new(segment, 1));
    join(segment, 7, 1);
    first.interval(interval);
    second.interval(interval);
    assert!(first.is_owner() && !second.is_owner());
    let before = segment.grant(0).unwrap();
    let mut intervals = 0;
    while !second.is_owner() && intervals < 20 {
        second.interval(interval);
        intervals += 1;
    }
    assert!((5..8).contains(&intervals), "{intervals}");
    let after = segment.grant(0).unwrap();
    assert!(after.is_newer_than(&before) && after.epoch > before.epoch);
    // It was stopped amidst its interval: what it still writes counts for nothing.
    segment.candidate(0).publish(0, &Grant { number: before.number + 100, share: Bandwidth::ZERO, ..before });
    assert_eq!(segment.grant(0).unwrap().epoch, after.epoch);
    first.interval(interval);
    assert!(!first.is_owner() && second.is_owner());
}

#[test]
fn a_row_is_reused_by_another_thread_and_its_totals_are_kept() {
    let segment = segment();
    let (index, holder) = segment.take_row(7, 0).unwrap();
    Row { devices: 1, bytes: 5, ..Row::default() }.publish(segment.row(index));
    Row::place(segment.row(index)).close(holder);
    let closed = Row::place(segment.row(index)).holder();
    assert_eq!(closed.phase, Phase::Closed);
    segment.reap_row(index, closed, 8);
    // Another who found it closed comes too late.
    segment.reap_row(index, closed, 9);
    let (sums, threads) = segment.totals(0).sums();
    assert_eq!((sums.bytes, threads), (5, 1));
    let (again, holder_again) = segment.take_row(9, 0).unwrap();
    assert_eq!(again, index);
    assert_ne!(holder_again.generation, holder.generation);
    assert_eq!(Row::read(segment.row(again)), Some(Row::default()));
}

#[test]
fn words_that_are_no_segment_are_refused() {
    let words: Vec<Word> = (0..Segment::words(1)).map(|_| Word::new(0)).collect();
    let words = Words::new(words.leak(), Coherence::Hardware);
    assert_eq!(Segment::open(words, 0).err().unwrap().to_string(), "no segment of this version of Fencepost");
    Segment::create(words, &SETTINGS.parse().unwrap());
    assert!(Segment::open(words, 0).is_ok());
    assert_eq!(Segment::open(words, 1).err().unwrap().to_string(), "the segment has no such host");
    let short = words.part(0, Segment::words(1) - 1);
    assert!(Segment::open(short, 0).err().unwrap().to_string().contains("cut short"));
}

/// A thread that runs for `quantum`, wakes `late` after each pause, demands `demand`, and is `silent` once in between.
fn paced(weight: f64, demand: f64, late: Duration, silent: Duration) -> (Pacer, Progress) {
    let segment = segment();
    let quantum = segment.quantum();
    let grant = Grant {
        epoch: 1,
        number: 1,
        share: Bandwidth::new(CAPACITY / 4.0),
        capacity: Bandwidth::new(CAPACITY),
        weight: 4.0,
    };
    let weight = Weight::new(weight).unwrap();
    let link = Bandwidth::new(CAPACITY);
    let mut pacer = Pacer::new(segment.timing(), weight, link, &[Some(grant)], Progress::default());
    let mut progress = Progress::default();
    let mut is_awake = true;
    while progress.now < Duration::from_secs(2) + silent {
        if is_awake && progress.now > Duration::from_secs(1) {
            progress.now += silent;
            is_awake = false;
        }
        progress.now += quantum;
        progress.processor += quantum;
        progress.bytes += (demand * quantum.as_secs_f64()) as u64;
        if pacer.is_over(progress) {
            let number = progress.now.as_millis() as u64 / 20;
            let pause = pacer.end_window(progress, &[Some(Grant { number, ..grant })]);
            if !pause.is_zero() {
                progress.now += pause + late;
                pacer.was_paused(pause + late);
            }
        }
    }
    (pacer, progress)
}

fn paced_rate(weight: f64, demand: f64, late: Duration) -> f64 {
    let (_, progress) = paced(weight, demand, late, Duration::ZERO);
    progress.bytes as f64 / progress.now.as_secs_f64()
}

#[test]
fn a_silent_thread_neither_runs_nor_has_a_share() {
    for silent in [Duration::ZERO, Duration::from_secs(7)] {
        let (pacer, _) = paced(1.0, CAPACITY, Duration::ZERO, silent);
        let had = pacer.had();
        let running = had.running.as_secs_f64();
        assert!((running - 2.0).abs() < 0.02, "{had:?}");
        // A little less before a grant counts it.
        assert!((had.granted_bytes / running / (CAPACITY / 4.0) - 1.0).abs() < 0.02, "{had:?}");
        assert!((had.demanded_bytes / running / CAPACITY - 1.0).abs() < 0.01, "{had:?}");
        assert!((had.paused.as_secs_f64() / running - 0.75).abs() < 0.01, "{had:?}");
    }
}

#[test]
fn a_thread_that_demands_less_than_its_grant_has_what_it_demands() {
    let (pacer, progress) = paced(1.0, 0.1 * CAPACITY, Duration::ZERO, Duration::ZERO);
    let had = pacer.had();
    assert!((had.granted_bytes / progress.bytes as f64 - 1.0).abs() < 0.01, "{had:?}");
    assert!((had.demanded_bytes / progress.bytes as f64 - 1.0).abs() < 0.01, "{had:?}");
    assert_eq!(had.paused, Duration::ZERO);
}

#[test]
fn only_threads_that_run_have_a_share_in_what_a_segment_says() {
    let segment = segment();
    let now = system::now();
    // All are this thread, which exists: the last one is closed.
    let until = [now + Duration::from_secs(3600), Duration::ZERO, now + Duration::from_secs(3600)];
    let holders = until.map(|until| {
        let (index, holder) = segment.take_row(system::thread(), 0).unwrap();
        let until_ns = system::nanoseconds(until);
        let row = Row { rule: 1, devices: 1, until_ns, rate: 1.0, demand: 4.0, share: 2.0, bytes: 8, ..Row::default() };
        row.publish(segment.row(index));
        (index, holder)
    });
    let (last, holder) = holders[2];
    Row::place(segment.row(last)).close(holder);
    let state = State::read(segment);
    let others = &state.channels[1];
    assert_eq!((others.sums.rate, others.sums.demand, others.sums.share), (1.0, 4.0, 2.0));
    assert_eq!((others.sums.bytes, others.threads), (24, (2, 1)));
    assert_eq!(state.threads.iter().map(|thread| thread.row.share).collect::<Vec<_>>(), [2.0, 0.0]);
}

#[test]
fn a_thread_gets_its_share_however_late_it_is_woken() {
    for demand in [1.1, 1.5, 2.0, 10.0] {
        for late_us in [0, 60, 500] {
            for weight in [1.0, 3.0] {
                let share = weight * CAPACITY / 4.0;
                let rate = paced_rate(weight, demand * share, Duration::from_micros(late_us));
                assert!((rate / share - 1.0).abs() < 0.03, "{demand} {late_us} {weight}: {}", rate / share);
            }
        }
    }
    // Who demands less is not paused at all.
    let rate = paced_rate(1.0, 0.2 * CAPACITY, Duration::ZERO);
    assert!((rate / (0.2 * CAPACITY) - 1.0).abs() < 1e-6);
}
