//! Devices that are divided among tenants, and tenants that are divided among hosts.

use std::time::Duration;

use fencepost_pacing::{Hierarchy, HierarchyError, Law, Node, Owner, Probing};

use crate::world::{World, bandwidth, claim, weight};

const CAPACITY: f64 = 16e9;

fn node(parent: Option<usize>, value: f64) -> Node {
    Node { parent, weight: weight(value) }
}

/// Two tenants of weights 1 and 3; the second one has two hosts of weights 1 and 2.
fn tenants() -> Hierarchy {
    Hierarchy::new(vec![node(None, 1.0), node(None, 3.0), node(Some(1), 1.0), node(Some(1), 2.0)]).unwrap()
}

fn owner(law: Law) -> Owner {
    Owner::of_groups(law, Probing::new(bandwidth(CAPACITY)), 1, tenants(), &[]).unwrap()
}

#[test]
fn nodes_that_are_no_hierarchy_are_refused() {
    assert_eq!(Hierarchy::new(vec![node(Some(0), 1.0)]).unwrap_err(), HierarchyError::ParentNotBefore(0));
    assert_eq!(
        Hierarchy::new(vec![node(None, 1.0), node(Some(2), 1.0)]).unwrap_err().to_string(),
        "group 1: its parent must stand before it"
    );
}

#[test]
fn a_group_shares_what_the_group_gets() {
    let claims = [(Some(0), claim(1.0, 0.0, 16e9)), (Some(0), claim(3.0, 0.0, 16e9)), (Some(2), claim(1.0, 0.0, 6e9))];
    let grants = owner(Law::WaterFilling).interval_of_groups(&claims, 0.0, Duration::from_millis(1));
    // The second tenant takes 6 of its 12 GB/s; the first gets the other 10.
    let granted = claims.map(|(group, claim)| claim.granted(grants[group.unwrap()].share).bytes_per_second());
    for (got, wanted) in granted.iter().zip([2.5e9, 7.5e9, 6e9]) {
        assert!((got - wanted).abs() < 1.0, "{granted:?}");
    }
}

#[test]
fn each_group_has_a_part_that_it_gets_whatever_the_others_do() {
    let claims = [(Some(0), claim(4.0, 0.0, 16e9)), (Some(2), claim(1.0, 0.0, 1e9)), (Some(9), claim(1.0, 0.0, 1e9))];
    let grants = owner(Law::WaterFilling).interval_of_groups(&claims, 0.0, Duration::from_millis(1));
    // A quarter and three quarters of 16 GB/s; of the second tenant's 12, host 2 has all, as host 3 claims nothing. The
    // first channel of host 3 would get two thirds of it.
    let sure = [4e9, 12e9, 12e9, 8e9, 16e9];
    let weights = [4.0, 1.0, 1.0, 0.0, 4.0];
    for (grant, (sure, weight)) in grants.iter().zip(sure.into_iter().zip(weights)) {
        assert!((grant.capacity.bytes_per_second() - sure).abs() < 1.0 && grant.weight == weight, "{grants:?}");
    }
    assert!((grants[0].share_for_all(4.0).bytes_per_second() - 0.5e9).abs() < 1.0);
}

/// Shares of the device by thread, after `intervals`.
fn rates(world: &mut World, intervals: usize) -> Vec<f64> {
    (0..intervals).for_each(|_| world.interval(&[]));
    (0..world.threads.len()).map(|thread| world.rate(thread, 100) / CAPACITY).collect()
}

fn check(got: &[f64], expected: &[f64]) {
    let off = got.iter().zip(expected).map(|(got, expected)| (got - expected).abs()).fold(0.0, f64::max);
    assert!(off < 0.01, "{got:?}, not {expected:?}");
}

#[test]
fn tenants_and_hosts_get_their_parts_and_what_others_leave() {
    for law in [Law::Iterative, Law::WaterFilling] {
        let mut world = World::of(law, &[CAPACITY], tenants(), Duration::from_micros(500));
        for group in [0, 0, 2, 3, 3] {
            world.start_on(1.0, 30e9, &[0], Some(group));
        }
        check(&rates(&mut world, 300), &[0.125, 0.125, 0.25, 0.25, 0.25]);
        // One of a group falls back to little, then all of the tenant.
        world.threads[3].demand = 0.05 * CAPACITY;
        check(&rates(&mut world, 300), &[0.125, 0.125, 0.25, 0.05, 0.45]);
        (2..5).for_each(|thread| world.threads[thread].demand = 0.05 * CAPACITY);
        check(&rates(&mut world, 300), &[0.425, 0.425, 0.05, 0.05, 0.05]);
    }
}

/// Bytes of all threads in each of 60 intervals, in parts of the device.
fn totals(world: &mut World) -> Vec<f64> {
    let windows = world.windows_per_interval();
    let mut total = |_| {
        world.interval(&[]);
        (0..world.threads.len()).map(|thread| world.rate(thread, windows)).sum::<f64>() / CAPACITY
    };
    (0..60).map(&mut total).collect()
}

/// With `α ← α C / F` on each level, shares of groups four levels deep never come to rest.
#[test]
fn groups_in_groups_do_not_oscillate() {
    // On each level a group beside the one that the next level is in.
    let pair = |level: usize| [node(level.checked_sub(1).map(|above| 2 * above), 1.0); 2];
    let groups = Hierarchy::new((0..4).flat_map(pair).collect()).unwrap();
    for law in [Law::Iterative, Law::WaterFilling] {
        let mut world = World::of(law, &[CAPACITY], groups.clone(), Duration::from_micros(500));
        for group in [6, 6, 7, 7, 1, 1] {
            world.start_on(1.0, 30e9, &[0], Some(group));
        }
        (0..100).for_each(|_| world.interval(&[]));
        (0..2).for_each(|thread| world.threads[thread].demand = 0.02 * CAPACITY);
        let totals = totals(&mut world);
        let most = totals.iter().copied().fold(0.0, f64::max);
        let last_off = totals.iter().rposition(|total| (total - 1.0).abs() > 0.01).unwrap();
        assert!(most < 1.1 && last_off < 10, "{law:?}: {totals:.3?}");
    }
}

/// Without its owner each group keeps to the part that it always gets.
#[test]
fn groups_without_their_owner_fit_together() {
    let mut world = World::of(Law::Iterative, &[CAPACITY], tenants(), Duration::from_micros(500));
    for group in [0, 0, 2, 3] {
        world.start_on(1.0, 30e9, &[0], Some(group));
    }
    (0..3).for_each(|thread| world.threads[thread].demand = 0.02 * CAPACITY);
    check(&rates(&mut world, 300), &[0.02, 0.02, 0.02, 0.94]);
    (0..3).for_each(|thread| world.threads[thread].demand = 30e9);
    for _ in 0..400 {
        world.window(&[]);
    }
    check(&rates(&mut world, 0), &[0.125, 0.125, 0.25, 0.5]);
}
