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
