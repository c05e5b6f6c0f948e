//! Channels that cross several devices: the adapter's port, links, the memory device.

use std::time::Duration;

use fencepost_pacing::{Hierarchy, Law};

use crate::world::World;

fn settled(law: Law, capacities: &[f64], channels: &[(f64, f64, &[usize])]) -> World {
    let mut world = World::of(law, capacities, Hierarchy::default(), Duration::from_micros(500));
    for &(weight, demand, path) in channels {
        world.start_on(weight, demand, path, None);
    }
    (0..400).for_each(|_| world.interval(&[]));
    world
}

fn check(world: &World, expected: &[f64], what: &str) {
    let got: Vec<f64> = (0..expected.len()).map(|thread| world.rate(thread, 200)).collect();
    let off = got.iter().zip(expected).map(|(got, expected)| (got / expected - 1.0).abs()).fold(0.0, f64::max);
    assert!(off < 0.01, "{what}: {got:?}, not {expected:?}");
}

#[test]
fn what_one_device_holds_back_another_gives_to_others() {
    for law in [Law::Iterative, Law::WaterFilling] {
        // The first channel gets 2 of its device, so the port that both cross has 14 for the second.
        let world = settled(law, &[16e9, 2e9], &[(1.0, 30e9, &[0, 1]), (1.0, 30e9, &[0])]);
        check(&world, &[2e9, 14e9], &format!("{law:?}"));
    }
}

/// Both devices are below their capacity and hold the first channel to the same share: each sees only what the other
/// one lets through.
#[test]
fn two_devices_that_wait_for_each_other_come_free() {
    for law in [Law::Iterative, Law::WaterFilling] {
        let both: &[usize] = &[0, 1];
        let mut world = settled(law, &[10e9, 10e9], &[(1.0, 30e9, both), (1.0, 30e9, both), (1.0, 30e9, both)]);
        check(&world, &[10e9 / 3.0; 3], &format!("{law:?}"));
        for thread in [1, 2] {
            world.threads[thread].demand = 1e9;
        }
        (0..400).for_each(|_| world.interval(&[]));
        check(&world, &[8e9, 1e9, 1e9], &format!("{law:?}, when two take less"));
    }
}

/// Max-min by its definition: raise all shares together; who meets a full device or its demand stops.
fn max_min(capacities: &[f64], channels: &[(f64, f64, &[usize])]) -> Vec<f64> {
    let mut rates = vec![0.0; channels.len()];
    let mut stopped = vec![false; channels.len()];
    while stopped.contains(&false) {
        let moving = |device: usize, stopped: &[bool]| -> f64 {
            let of = channels.iter().zip(stopped).filter(|((.., path), stopped)| path.contains(&device) && !**stopped);
            of.map(|((weight, ..), _)| weight).sum()
        };
        let used = |device: usize, rates: &[f64]| -> f64 {
            channels.iter().zip(rates).filter(|((.., path), _)| path.contains(&device)).map(|(_, rate)| rate).sum()
        };
        let by_device = (0..capacities.len())
            .filter(|&device| moving(device, &stopped) > 0.0)
            .map(|device| (capacities[device] - used(device, &rates)) / moving(device, &stopped));
        let by_demand =
            (0..channels.len()).filter(|&at| !stopped[at]).map(|at| (channels[at].1 - rates[at]) / channels[at].0);
        let step = by_device.chain(by_demand).fold(f64::MAX, f64::min);
        for at in (0..channels.len()).filter(|&at| !stopped[at]) {
            rates[at] += step * channels[at].0;
        }
        for at in 0..channels.len() {
            let is_full = |&device: &usize| used(device, &rates) >= capacities[device] * (1.0 - 1e-9);
            stopped[at] |= rates[at] >= channels[at].1 * (1.0 - 1e-9) || channels[at].2.iter().any(is_full);
        }
    }
    rates
}

#[test]
fn ports_and_devices_together_come_to_weighted_max_min() {
    // Two ports (0, 1) of a host, three devices behind the switch (2, 3, 4).
    let capacities = [22e9, 22e9, 12e9, 20e9, 9e9];
    let channels: [(f64, f64, &[usize]); 8] = [
        (1.0, 30e9, &[0, 2]),
        (2.0, 30e9, &[0, 3]),
        (1.0, 3e9, &[0, 3]),
        (1.0, 30e9, &[1, 3]),
        (4.0, 30e9, &[1, 4]),
        (1.0, 30e9, &[1, 4]),
        (1.0, 30e9, &[1, 2]),
        (1.0, 0.5e9, &[1, 2]),
    ];
    let expected = max_min(&capacities, &channels);
    for law in [Law::Iterative, Law::WaterFilling] {
        check(&settled(law, &capacities, &channels), &expected, &format!("{law:?}"));
    }
}
