//! With the lag of averages: how near to weighted max-min the channels come, and how fast after a change.

use std::time::Duration;

use fencepost_pacing::{Hierarchy, Law};
use proptest::prelude::*;

use crate::world::{World, ideal};

const CAPACITY: f64 = 16e9;
const LAWS: [Law; 2] = [Law::Iterative, Law::WaterFilling];

fn worst_error(world: &World, expected: &[f64], threads: &[usize], windows: usize) -> f64 {
    let error = |(&thread, &expected): (&usize, &f64)| (world.rate(thread, windows) - expected).abs() / expected;
    threads.iter().zip(expected).map(error).fold(0.0, f64::max)
}

fn settled(law: Law, channels: &[(f64, f64)]) -> World {
    let mut world = World::new(law, CAPACITY);
    for &(weight, demand) in channels {
        world.start(weight, demand);
    }
    for _ in 0..400 {
        world.interval(&[]);
    }
    world
}

#[test]
fn channels_come_within_one_percent_of_weighted_max_min() {
    for law in LAWS {
        for count in [2, 3, 5, 16, 64] {
            let channels: Vec<(f64, f64)> =
                (0..count).map(|i| (f64::from(1 + i % 4), [20e9, 9e9, 0.5e9][i as usize % 3])).collect();
            let world = settled(law, &channels);
            let threads: Vec<usize> = (0..channels.len()).collect();
            let error = worst_error(&world, &ideal(CAPACITY, &channels), &threads, 200);
            assert!(error < 0.01, "{law:?}, {count} channels: off by {error}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Not on average but in each single interval.
    #[test]
    fn after_convergence_no_channel_is_off_by_more_than_two_percent_in_any_interval(
        channels in prop::collection::vec((1u32..9, 0.1e9..30e9f64), 2..17),
        interval_windows in 3u32..20,
        law in prop_oneof![Just(Law::Iterative), Just(Law::WaterFilling)],
    ) {
        let channels: Vec<(f64, f64)> = channels.iter().map(|&(weight, demand)| (f64::from(weight), demand)).collect();
        let interval = Duration::from_micros(100) * interval_windows;
        let mut world = World::of(law, &[CAPACITY], Hierarchy::default(), interval);
        for &(weight, demand) in &channels {
            world.start(weight, demand);
        }
        (0..300).for_each(|_| world.interval(&[]));
        let expected = ideal(CAPACITY, &channels);
        let threads: Vec<usize> = (0..channels.len()).collect();
        for _ in 0..50 {
            world.interval(&[]);
            let error = worst_error(&world, &expected, &threads, interval_windows as usize);
            prop_assert!(error < 0.02, "off by {}", error);
        }
        let used: f64 = threads.iter().map(|&thread| world.rate(thread, 50 * interval_windows as usize)).sum();
        let usable = channels.iter().map(|channel| channel.1).sum::<f64>().min(CAPACITY);
        prop_assert!((used / usable - 1.0).abs() < 0.005, "mean utilisation {}", used / usable);
    }
}

#[test]
fn a_newcomer_and_a_death_are_settled_within_a_tenth_of_a_second() {
    for law in LAWS {
        let channels = [(1.0, 20e9), (2.0, 20e9)];
        let mut world = settled(law, &channels);
        let newcomer = world.start(1.0, 20e9);
        let intervals = 200; // of 500 µs
        for _ in 0..intervals {
            world.interval(&[]);
        }
        let three = ideal(CAPACITY, &[(1.0, 20e9), (2.0, 20e9), (1.0, 20e9)]);
        assert!(worst_error(&world, &three, &[0, 1, newcomer], 50) < 0.01, "{law:?}");
        world.threads[0].is_alive = false;
        for _ in 0..intervals {
            world.interval(&[]);
        }
        let two = ideal(CAPACITY, &[(2.0, 20e9), (1.0, 20e9)]);
        assert!(worst_error(&world, &two, &[1, newcomer], 50) < 0.01, "{law:?}");
    }
}

/// Each of `n` newcomers has `w / (W + w)` of the capacity until it is counted, so that all together exceed it by `n`
/// times that at most; it takes them two intervals.
#[test]
fn newcomers_at_once_exceed_the_capacity_for_two_intervals_by_what_each_may_take() {
    for law in LAWS {
        for newcomers in [2, 8, 32] {
            let mut world = settled(law, &[(1.0, 20e9), (2.0, 20e9), (1.0, 20e9)]);
            let before = world.windows;
            (0..newcomers).for_each(|_| {
                world.start(1.0, 20e9);
            });
            let (mut most, mut last_over) = (0.0f64, 0);
            for _ in 0..200 {
                for _ in 0..world.windows_per_interval() {
                    world.window(&[]);
                    let all: f64 = world.threads.iter().filter_map(|thread| thread.windows.last()).sum();
                    let used = all / (CAPACITY * world.timing.window.as_secs_f64());
                    most = most.max(used);
                    if used > 1.05 {
                        last_over = world.windows - before;
                    }
                }
                world.decide(0.0);
            }
            let bound = 1.0 + newcomers as f64 / (4.0 + 1.0);
            assert!(most <= bound + 0.01, "{law:?}, {newcomers}: {most} of {bound}");
            // The window in which the second grant is made, and the one in which it is taken in, come on top.
            let intervals = 2 * world.windows_per_interval();
            assert!(last_over <= intervals + 2, "{law:?}, {newcomers}: beyond the capacity for {last_over} windows");
            let all: Vec<usize> = (0..world.threads.len()).collect();
            let channels: Vec<(f64, f64)> =
                all.iter().map(|&at| (world.threads[at].weight, world.threads[at].demand)).collect();
            let error = worst_error(&world, &ideal(CAPACITY, &channels), &all, 50);
            assert!(error < 0.01, "{law:?}, {newcomers}: off by {error}");
        }
    }
}

#[test]
fn a_channel_below_its_share_is_never_paused() {
    let world = settled(Law::Iterative, &[(1.0, 0.2e9), (1.0, 30e9), (1.0, 30e9)]);
    assert_eq!(world.threads[0].slice.time, world.timing.window);
    assert!((world.rate(0, 200) - 0.2e9).abs() < 1e6);
}
