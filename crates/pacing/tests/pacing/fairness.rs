//! With the lag of averages: how near to weighted max-min the channels come, and how fast after a change.

use fencepost_pacing::Law;

use crate::world::{World, ideal};

const CAPACITY: f64 = 16e9;

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
    for law in [Law::Iterative, Law::WaterFilling] {
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

#[test]
fn a_newcomer_and_a_death_are_settled_within_a_tenth_of_a_second() {
    for law in [Law::Iterative, Law::WaterFilling] {
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

#[test]
fn a_channel_below_its_share_is_never_paused() {
    let world = settled(Law::Iterative, &[(1.0, 0.2e9), (1.0, 30e9), (1.0, 30e9)]);
    assert_eq!(world.threads[0].slice.time, world.timing.window);
    assert!((world.rate(0, 200) - 0.2e9).abs() < 1e6);
}
