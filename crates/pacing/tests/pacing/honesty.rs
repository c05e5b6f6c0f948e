//! What a lying channel gains, by source of bandwidth.

use fencepost_pacing::Law;

use crate::world::{World, ideal};

const CAPACITY: f64 = 16e9;

/// Three equal channels, of which the first reports `reported` of its bytes: the bandwidth of each.
fn with_liar(reported: f64) -> [f64; 3] {
    let mut world = World::new(Law::Iterative, CAPACITY);
    (0..3).for_each(|_| {
        world.start(1.0, 30e9);
    });
    world.threads[0].reported = reported;
    for _ in 0..400 {
        world.interval(&[]);
    }
    [0, 1, 2].map(|thread| world.rate(thread, 200))
}

/// A hardware counter cannot lie. A program that accounts for itself and reports the
/// part f of its bytes gets 1/f of its share, and no more.
#[test]
fn one_that_reports_a_part_gets_its_share_divided_by_that_part() {
    let fair = ideal(CAPACITY, &[(1.0, 30e9); 3])[0];
    assert!(with_liar(1.0).iter().all(|rate| (rate / fair - 1.0).abs() < 0.01));
    for reported in [0.9, 0.5] {
        let [liar, one, other] = with_liar(reported);
        assert!((liar / (fair / reported) - 1.0).abs() < 0.02, "{liar} of {fair} at {reported}");
        assert!((one / fair - 1.0).abs() < 0.02 && (other / fair - 1.0).abs() < 0.02, "{one} {other}");
    }
}

/// The device then carries more than the owner believes and reports congestion, so all shares fall.
#[test]
fn congestion_limits_what_a_liar_does_to_the_device() {
    let mut world = World::new(Law::Iterative, CAPACITY);
    (0..3).for_each(|_| {
        world.start(1.0, 30e9);
    });
    world.threads[0].reported = 0.5;
    let windows = world.windows_per_interval();
    for _ in 0..2000 {
        (0..windows).for_each(|_| world.window(&[]));
        let total: f64 = (0..3).map(|thread| world.rate(thread, windows)).sum();
        world.decide(if total > CAPACITY { 1.0 } else { 0.0 });
    }
    let total: f64 = (0..3).map(|thread| world.rate(thread, 1000 * windows)).sum();
    // Without congestion it would be 4/3.
    assert!(total > 0.9 * CAPACITY && total < 1.05 * CAPACITY, "{total}");
}
