//! How many bytes a channel can move within an interval K, whatever its program does.

use std::time::Duration;

use fencepost_pacing::{Channel, Grant, Timing, Used};
use proptest::prelude::*;

use crate::world::{LINK, bandwidth};

/// The demand in each window, in parts of the link.
fn demands() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(prop_oneof![Just(0.0), Just(1.0), 0.0..1.0f64], 50..200)
}

/// Bytes by window of a channel of weight `weight` at the share `share`. With a byte counter it stops at its limit,
/// otherwise only when its time is up.
fn moved(demands: &[f64], weight: f64, share: f64, counts_bytes: bool) -> Vec<f64> {
    let timing = Timing::default();
    let grant = Some(Grant { epoch: 1, number: 9, share: bandwidth(share), capacity: bandwidth(LINK), weight });
    let mut channel = Channel::new(timing, weight, bandwidth(LINK), None);
    let mut slice = channel.end_window(Used { bytes: 0, ran: Duration::ZERO, elapsed: timing.window }, grant);
    let mut windows = Vec::new();
    for part in demands {
        let wanted = part * LINK * slice.time.as_secs_f64();
        let bytes = if counts_bytes { wanted.min(slice.bytes) } else { wanted }.floor();
        let ran = if wanted > 0.0 { slice.time.mul_f64(bytes / wanted) } else { slice.time };
        windows.push(bytes);
        slice = channel.end_window(Used { bytes: bytes as u64, ran, elapsed: timing.window }, grant);
    }
    windows
}

/// The most within any K: its windows begin anywhere, so it meets two more than it holds.
fn most_in_an_interval(windows: &[f64]) -> f64 {
    let timing = Timing::default();
    let met = timing.interval.div_duration_f64(timing.window).ceil() as usize + 2;
    windows.windows(met.min(windows.len())).map(|some| some.iter().sum()).fold(0.0, f64::max)
}

/// `w α K (1 + 2 T_W / K)`.
fn bound(weight: f64, share: f64) -> f64 {
    let timing = Timing::default();
    let (window, interval) = (timing.window.as_secs_f64(), timing.interval.as_secs_f64());
    weight * share * interval * (1.0 + 2.0 * window / interval)
}

proptest! {
    #[test]
    fn with_a_byte_counter_the_published_bound_holds(
        demands in demands(), weight in 1u32..8, share in 1e7f64..8e9,
    ) {
        let weight = f64::from(weight);
        let windows = moved(&demands, weight, share, true);
        prop_assert!(most_in_an_interval(&windows) <= bound(weight, share) + 1.0);
    }

    /// A clock alone notices a demand that jumps only when the window is over; the debt then pauses the channel.
    #[test]
    fn with_a_clock_alone_one_window_at_full_speed_comes_on_top(
        demands in demands(), weight in 1u32..8, share in 1e7f64..8e9,
    ) {
        let weight = f64::from(weight);
        let windows = moved(&demands, weight, share, false);
        let jump = LINK * Timing::default().window.as_secs_f64();
        prop_assert!(most_in_an_interval(&windows) <= bound(weight, share) + jump + 1.0);
    }
}

#[test]
fn a_jump_of_the_demand_exceeds_the_published_bound_without_a_byte_counter() {
    let demands: Vec<f64> = (0..60).map(|at| if at == 30 { 1.0 } else { 0.001 }).collect();
    let (weight, share) = (1.0, 1e8);
    assert!(most_in_an_interval(&moved(&demands, weight, share, false)) > bound(weight, share));
    assert!(most_in_an_interval(&moved(&demands, weight, share, true)) <= bound(weight, share) + 1.0);
}
