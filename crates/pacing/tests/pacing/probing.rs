//! The estimate of a device's capacity follows what the device can carry.

use std::time::Duration;

use fencepost_pacing::{Capacity, Probing};

use crate::world::bandwidth;

const MOST: f64 = 32e9;
const INTERVAL: Duration = Duration::from_millis(1);

/// So many intervals of a device that carries `real`, and is used up to the estimate.
fn pass(capacity: &mut Capacity, real: f64, intervals: usize) -> (f64, f64) {
    let (mut low, mut high) = (f64::MAX, 0.0f64);
    for at in 0..intervals {
        let used = capacity.estimate().bytes_per_second().min(real);
        let congested = if capacity.estimate().bytes_per_second() > real { 1.0 } else { 0.0 };
        capacity.interval(bandwidth(used), congested, INTERVAL);
        if at >= intervals / 2 {
            low = low.min(capacity.estimate().bytes_per_second());
            high = high.max(capacity.estimate().bytes_per_second());
        }
    }
    (low, high)
}

#[test]
fn an_idle_device_is_thought_able_to_carry_all() {
    let mut capacity = Capacity::new(Probing::new(bandwidth(MOST))).unwrap();
    pass(&mut capacity, MOST, 100);
    assert_eq!((capacity.estimate(), capacity.load()), (bandwidth(MOST), 0.0));
}

#[test]
fn it_falls_where_the_device_carries_less_and_rises_again() {
    let mut capacity = Capacity::new(Probing::new(bandwidth(MOST))).unwrap();
    let real = 20e9;
    let (low, high) = pass(&mut capacity, real, 4000);
    assert!(low > 0.5 * real && high < 1.5 * real, "{low} to {high}");
    pass(&mut capacity, MOST, 400);
    assert_eq!(capacity.estimate(), bandwidth(MOST));
}

#[test]
fn it_never_falls_so_far_that_it_cannot_rise() {
    let mut capacity = Capacity::new(Probing::new(bandwidth(MOST))).unwrap();
    for _ in 0..10_000 {
        capacity.interval(bandwidth(0.0), 1.0, INTERVAL);
    }
    assert_eq!(capacity.estimate(), bandwidth(MOST / 64.0));
    for _ in 0..100 {
        capacity.interval(bandwidth(0.0), 0.0, INTERVAL);
    }
    assert_eq!(capacity.estimate(), bandwidth(MOST));
}

/// However the time is cut into intervals, the average, the rise and the fall come to the same.
#[test]
fn it_follows_the_time_that_has_passed_and_not_the_number_of_intervals() {
    let part = |load_weight, congested: &[f64], cuts: u32| {
        let probing = Probing { load_weight, load_limit: 0.5, ..Probing::new(bandwidth(MOST)) };
        let mut capacity = Capacity::new(probing).unwrap();
        capacity.assume(bandwidth(MOST / 2.0));
        for &congested in congested {
            for _ in 0..cuts {
                capacity.interval(bandwidth(0.0), congested, INTERVAL / cuts);
            }
        }
        (capacity.estimate().bytes_per_second() / MOST, capacity.load())
    };
    let near = |one: (f64, f64), other: (f64, f64)| (one.0 - other.0).abs() < 1e-9 && (one.1 - other.1).abs() < 1e-9;
    // It rises at 50 parts per second: by 0.05 in an interval of 1 ms without load.
    assert!(near(part(1.0, &[0.0], 1), (0.55, 0.0)) && near(part(1.0, &[0.0], 4), (0.55, 0.0)));
    // It falls by half of the excess, 0.2 of 0.5 to 1.
    assert!(near(part(1.0, &[0.6], 1), (0.45, 0.6)) && near(part(1.0, &[0.6], 4), (0.45, 0.6)));
    // The average of the load.
    assert!((part(0.5, &[1.0, 0.0], 1).1 - 0.25).abs() < 1e-9 && (part(0.5, &[1.0, 0.0], 8).1 - 0.25).abs() < 1e-9);
}

/// What goes through beyond the estimate falls once the shares follow; the estimate need not.
#[test]
fn it_does_not_fall_while_more_than_it_is_used() {
    let at_once = Probing { load_weight: 1.0, ..Probing::new(bandwidth(MOST)) };
    let mut capacity = Capacity::new(at_once).unwrap();
    capacity.assume(bandwidth(10e9));
    (0..20).for_each(|_| capacity.interval(bandwidth(12e9), 1.0, INTERVAL));
    assert_eq!(capacity.estimate(), bandwidth(10e9));
    capacity.interval(bandwidth(9e9), 1.0, INTERVAL);
    assert!(capacity.estimate() < bandwidth(10e9));
}

#[test]
fn an_owner_that_comes_late_takes_no_more_than_half() {
    let mut capacity = Capacity::new(Probing::new(bandwidth(MOST))).unwrap();
    capacity.interval(bandwidth(0.0), 1.0, 1000 * INTERVAL);
    assert_eq!(capacity.estimate(), bandwidth(MOST / 2.0));
}
