//! All interleavings of the segment's code, and all that the memory model lets threads see, by loom:
//! `make loom`.
#![cfg(loom)]

use fencepost_channel_core::segment::place::{Phase, Place};
use fencepost_channel_core::segment::sequence::Sequenced;
use fencepost_channel_core::segment::{Candidate, Coherence, Word, Words};
use fencepost_pacing::{Bandwidth, Grant};
use loom::sync::Arc;
use loom::thread;

fn words(count: usize) -> Arc<Vec<Word>> {
    Arc::new((0..count).map(|_| Word::new(0)).collect())
}

fn all(words: &[Word]) -> Words<'_> {
    Words::new(words, Coherence::Hardware)
}

#[test]
fn a_record_is_read_whole_or_not_at_all() {
    loom::model(|| {
        let words = words(3);
        let writer = {
            let words = words.clone();
            thread::spawn(move || {
                for value in 1..=2 {
                    Sequenced::new(all(&words)).write(&[value, value]);
                }
            })
        };
        let mut last = 0;
        for _ in 0..2 {
            if let Some([one, other]) = Sequenced::new(all(&words)).attempt::<2>() {
                assert_eq!(one, other);
                assert!(one >= last, "a reader never goes back");
                last = one;
            }
        }
        writer.join().unwrap();
        assert_eq!(Sequenced::new(all(&words)).attempt(), Some([2, 2]));
    });
}

/// What is left by one that was killed between any two of its stores: the first of them, in order.
#[test]
fn a_killed_writer_leaves_nothing_that_is_half_read() {
    use std::sync::atomic::Ordering::{Relaxed, Release};
    for stores in 0..=4 {
        loom::model(move || {
            let words = words(3);
            Sequenced::new(all(&words)).write(&[7, 7]);
            let killed = {
                let words = words.clone();
                thread::spawn(move || {
                    // `Sequenced::write`, up to there.
                    let plan: [(usize, u64); 4] = [(0, 3), (1, 8), (2, 8), (0, 4)];
                    for (step, (at, value)) in plan.into_iter().take(stores).enumerate() {
                        words[at].store(value, if step == 3 { Release } else { Relaxed });
                        if step == 0 {
                            loom::sync::atomic::fence(Release);
                        }
                    }
                })
            };
            if let Some(read) = Sequenced::new(all(&words)).attempt::<2>() {
                assert!(read == [7, 7] || read == [8, 8], "{read:?}");
            }
            killed.join().unwrap();
            // Whoever has the place next.
            Sequenced::new(all(&words)).write(&[9, 9]);
            assert_eq!(Sequenced::new(all(&words)).attempt(), Some([9, 9]));
        });
    }
}

#[test]
fn one_of_two_threads_gets_a_place() {
    loom::model(|| {
        let words = words(1);
        let other = {
            let words = words.clone();
            thread::spawn(move || Place::new(all(&words)).take(2).is_some())
        };
        let is_mine = Place::new(all(&words)).take(1).is_some();
        assert!(is_mine ^ other.join().unwrap());
        let holder = Place::new(all(&words)).holder();
        assert_eq!((holder.phase, holder.thread), (Phase::Live, if is_mine { 1 } else { 2 }));
    });
}

/// The thread closes its place, two others find it closed, and a third wants it.
#[test]
fn the_totals_of_a_closed_row_are_kept_once_and_its_place_is_not_lost() {
    loom::model(|| {
        let words = words(2);
        let mine = Place::new(all(&words)).take(1).unwrap();
        let reaper = |words: Arc<Vec<Word>>, thread: u32| {
            move || {
                let place = Place::new(all(&words));
                let holder = place.holder();
                if holder.phase != Phase::Closed {
                    return;
                }
                if let Some(reaped) = place.reap(holder, thread) {
                    words[1].fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    place.free(reaped);
                }
            }
        };
        let others = [2, 3].map(|thread| thread::spawn(reaper(words.clone(), thread)));
        Place::new(all(&words)).close(mine);
        let taken = Place::new(all(&words)).take(4);
        others.into_iter().for_each(|other| other.join().unwrap());
        reaper(words.clone(), 5)();
        assert_eq!(words[1].load(std::sync::atomic::Ordering::Relaxed), 1);
        let holder = Place::new(all(&words)).holder();
        match taken {
            Some(taken) => assert_eq!(holder, taken),
            None => assert_eq!(holder.phase, Phase::Free),
        }
    });
}

/// An owner that was stopped wakes up amidst its write, while its successor has written. The grants have so many words
/// that only interleavings with two switches between the threads are tried.
#[test]
fn an_old_owner_does_not_hide_the_new_one() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let words = words(2 * Candidate::WORDS);
        let candidate = |at: usize| Candidate::new(all(&words).part(at * Candidate::WORDS, Candidate::WORDS));
        let grant = |epoch, share: f64| Grant {
            epoch,
            number: epoch,
            share: Bandwidth::new(share),
            capacity: Bandwidth::new(share),
            weight: 1.0,
        };
        candidate(1).publish(0, &grant(Candidate::next_epoch(0, 1, 2), 2.0));
        let old = {
            let words = words.clone();
            thread::spawn(move || {
                let own = Candidate::new(all(&words).part(0, Candidate::WORDS));
                own.publish(0, &grant(1, 1.0));
            })
        };
        let newest = Candidate::newest([candidate(0), candidate(1)].into_iter(), 0).unwrap();
        assert_eq!((newest.by, newest.grant.share), (1, Bandwidth::new(2.0)));
        old.join().unwrap();
    });
}
