//! A segment under real threads: paced ones come and go, two keepers compute, a reader looks on. Loom explores small
//! pieces of this in full; here everything runs at once, also under ThreadSanitizer (`make tsan`).

#![cfg(not(loom))]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use fencepost_channel_core::keeper::{Owners, State};
use fencepost_channel_core::segment::place::Phase;
use fencepost_channel_core::segment::{Coherence, Row, Segment, Settings, Word, Words};

const CAPACITY: f64 = 1e9;
const SETTINGS: &str = "device\tpool\t1e9\nrule\tothers\t*\t*\t1\t1\t-\t-\n";
const PACED: u32 = 3;
const LIVES: u64 = 40;
const WINDOWS: u64 = 100;

fn segment(coherence: Coherence) -> Segment<'static> {
    let settings: Settings = SETTINGS.parse().unwrap();
    let words: Vec<Word> = (0..Segment::words(1)).map(|_| Word::new(0)).collect();
    let words = Words::new(words.leak(), coherence);
    Segment::create(words, &settings);
    Segment::open(words, 0).unwrap()
}

/// Takes rows and gives them back; all that it writes in a window fits together. Lives at least until it was `seen`.
fn live(segment: Segment<'_>, thread: u32, seen: &AtomicU64) {
    for _ in 0..LIVES {
        let (index, holder) = segment.take_row(thread, 0).expect("there are more rows than threads");
        for heartbeat in 1..=WINDOWS {
            let mut row = Row { heartbeat, bytes: heartbeat * 64, devices: 1, ..Row::default() };
            row.claims[0] = (CAPACITY, CAPACITY);
            row.publish(segment.row(index));
            let _ = segment.path_grants(1);
            while seen.load(Ordering::Relaxed) == 0 {
                std::thread::yield_now();
            }
        }
        Row::place(segment.row(index)).close(holder);
        segment.reap_row(index, Row::place(segment.row(index)).holder(), thread);
    }
}

fn keep(segment: Segment<'_>, candidate: usize, is_over: &AtomicBool) {
    let mut owners = Owners::new(segment, candidate);
    while !is_over.load(Ordering::Relaxed) {
        owners.interval(Duration::from_millis(20));
    }
}

/// Never sees half of a window, nor a share that the device does not have.
fn look_on(segment: Segment<'_>, seen: &AtomicU64, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        for row in segment.rows().take(8).filter_map(Row::read) {
            seen.fetch_add(1, Ordering::Relaxed);
            assert_eq!(row.bytes, row.heartbeat * 64);
        }
        if let Some(grant) = segment.grant(0) {
            assert!(grant.share.bytes_per_second() <= CAPACITY);
        }
        let _ = State::read(segment).json();
    }
}

fn run(coherence: Coherence) {
    let segment = segment(coherence);
    let (seen, is_over) = (&AtomicU64::new(0), &AtomicBool::new(false));
    std::thread::scope(|scope| {
        let paced: Vec<_> = (1..=PACED).map(|thread| scope.spawn(move || live(segment, thread, seen))).collect();
        for candidate in 0..2 {
            scope.spawn(move || keep(segment, candidate, is_over));
        }
        let looker = scope.spawn(|| look_on(segment, seen, is_over));
        let ended: Vec<_> = paced.into_iter().map(|thread| thread.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        looker.join().unwrap();
        ended.into_iter().for_each(|end| end.unwrap());
    });
    assert!(segment.rows().all(|words| Row::place(words).holder().phase == Phase::Free));
    let (sums, threads) = segment.totals(0).sums();
    assert_eq!((sums.bytes, threads), (u64::from(PACED) * LIVES * WINDOWS * 64, u64::from(PACED) * LIVES));
}

#[test]
fn nothing_is_torn_or_lost_where_hardware_keeps_memory_coherent() {
    run(Coherence::Hardware);
}

#[test]
fn nothing_is_torn_or_lost_where_software_does() {
    run(Coherence::Software);
}
