//! How many states, transitions and how much depth there are within small bounds, exactly.

use super::*;

#[test]
fn all_requests_of_one_or_two_devices() {
    assert_eq!(proved(of_sizes(1, 0, 1)), [735, 1685, 18]);
    assert_eq!(proved(of_sizes(1, 1, 1)), [10_600, 35_772, 28]);
    assert_eq!(proved(of_sizes(2, 0, 1)), [58129, 191_710, 37]);
}

/// Two devices that block under the first published rules: `[Read] ‖ [Write, Evict]`, and two that share a line and
/// both want to own it.
#[test]
fn the_published_deadlocks_are_none() {
    assert_eq!(proved(with_requests(2, 0, &["RdShared", "RdOwn", "DirtyEvict"])), [1028, 2812, 37]);
    assert_eq!(proved(with_requests(2, 0, &["RdShared", "RdOwn"])), [356, 902, 18]);
}

#[test]
fn device_memory_with_bias_and_with_back_invalidate_snoops() {
    let of_kind = |kind| Bounds { device_memory: Some(kind), ..Bounds::default() };
    assert_eq!(proved(of_kind(DeviceMemoryKind::Bias)), [196, 479, 11]);
    assert_eq!(proved(of_kind(DeviceMemoryKind::BackInvalidate)), [316, 679, 12]);
}
