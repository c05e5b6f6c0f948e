//! Single steps: the formulas, their corners, and input that another process may have broken.

use std::time::Duration;

use fencepost_pacing::{
    Average, Bandwidth, Channel, Claim, Debt, Grant, Hierarchy, HierarchyError, Law, Members, Node, Owner, Probing,
    Row, Timing, Used, path_minimum,
};
use proptest::prelude::*;

use crate::world::{LINK, bandwidth, claim};

const WINDOW: Duration = Duration::from_micros(100);

fn grant(number: u64, share: f64, capacity: f64, weight: f64) -> Grant {
    Grant { epoch: 1, number, share: bandwidth(share), capacity: bandwidth(capacity), weight }
}

/// A channel that the grant with this number counts, and that has demanded `demand` in each window since.
fn running(weight: f64, demand: f64) -> Channel {
    let mut channel = Channel::new(Timing::default(), weight, bandwidth(LINK), Some(grant(0, 1e12, 1e12, weight)));
    for number in 1..20 {
        let bytes = (demand * WINDOW.as_secs_f64()) as u64;
        channel.end_window(Used { bytes, ran: WINDOW, elapsed: WINDOW }, Some(grant(number, 1e12, 1e12, weight)));
    }
    channel
}

#[test]
fn an_average_forgets_with_its_time_constant() {
    let mut average = Average::new(Duration::from_millis(1));
    assert_eq!(average.value(), None);
    average.add(8.0, WINDOW);
    assert_eq!(average.value(), Some(8.0));
    average.add(0.0, Duration::from_millis(1));
    assert!((average.value().unwrap() - 8.0 / std::f64::consts::E).abs() < 1e-12);
}

#[test]
fn the_running_time_is_the_published_one() {
    let mut channel = running(2.0, 10e9);
    let bytes = (10e9 * WINDOW.as_secs_f64()) as u64;
    // A share of 2 GB/s for each unit of weight: 4 of 10 GB/s, so 40 % of the window.
    let slice = channel.end_window(Used { bytes, ran: WINDOW, elapsed: WINDOW }, Some(grant(20, 2e9, 16e9, 8.0)));
    assert!((slice.time.as_secs_f64() / WINDOW.as_secs_f64() - 0.4).abs() < 1e-3, "{slice:?}");
    assert!((slice.bytes - 4e9 * WINDOW.as_secs_f64()).abs() < 1.0, "{slice:?}");
    // More than it demands: all of it.
    let used = Used { bytes: slice.bytes as u64, ran: slice.time, elapsed: WINDOW };
    assert_eq!(channel.end_window(used, Some(grant(21, 6e9, 16e9, 8.0))).time, WINDOW);
}

#[test]
fn overuse_is_repaid_by_pausing() {
    let mut channel = running(1.0, 1e9);
    let granted = Some(grant(20, 1e9, 16e9, 8.0));
    let fair = (1e9 * WINDOW.as_secs_f64()) as u64;
    channel.end_window(Used { bytes: fair, ran: WINDOW, elapsed: WINDOW }, granted);
    // Ten windows' worth at once: nothing in the nine that follow.
    let mut slice = channel.end_window(Used { bytes: 10 * fair, ran: WINDOW, elapsed: WINDOW }, granted);
    for _ in 0..8 {
        assert_eq!((slice.time, slice.bytes), (Duration::ZERO, 0.0));
        slice = channel.end_window(Used { bytes: 0, ran: Duration::ZERO, elapsed: WINDOW }, granted);
    }
    slice = channel.end_window(Used { bytes: 0, ran: Duration::ZERO, elapsed: WINDOW }, granted);
    assert!(slice.bytes > 0.9 * fair as f64, "{slice:?}");
}

#[test]
fn without_a_grant_nothing_is_paused() {
    let channel = Channel::new(Timing::default(), 1.0, bandwidth(LINK), None);
    assert_eq!((channel.slice().time, channel.slice().bytes), (WINDOW, f64::INFINITY));
}

#[test]
fn a_newcomer_takes_no_more_than_fits_until_it_is_counted() {
    let mut channel = Channel::new(Timing::default(), 1.0, bandwidth(LINK), Some(grant(5, 8e9, 16e9, 3.0)));
    assert_eq!(channel.allowed(), Some(bandwidth(4e9)));
    // Its demand is unknown, so it may be all of the link.
    assert_eq!(channel.slice().time, WINDOW.mul_f64(4e9 / LINK));
    let idle = Used { bytes: 0, ran: Duration::ZERO, elapsed: WINDOW };
    channel.end_window(idle, Some(grant(6, 8e9, 16e9, 3.0)));
    assert_eq!(channel.allowed(), Some(bandwidth(4e9)));
    channel.end_window(idle, Some(grant(7, 8e9, 16e9, 4.0)));
    assert_eq!(channel.allowed(), Some(bandwidth(8e9)));
}

#[test]
fn a_silent_owner_leaves_the_share_that_fits_all() {
    let timing = Timing { grant_lifetime: 3 * WINDOW, ..Timing::default() };
    let mut channel = Channel::new(timing, 2.0, bandwidth(LINK), None);
    let last = Some(grant(9, 6e9, 16e9, 8.0));
    let idle = Used { bytes: 0, ran: Duration::ZERO, elapsed: WINDOW };
    for _ in 0..4 {
        channel.end_window(idle, last);
        assert_eq!(channel.allowed(), Some(bandwidth(12e9)));
    }
    channel.end_window(idle, last);
    assert_eq!(channel.allowed(), Some(bandwidth(4e9)));
    channel.end_window(idle, Some(grant(10, 6e9, 16e9, 8.0)));
    assert_eq!(channel.allowed(), Some(bandwidth(12e9)));
}

#[test]
fn the_least_grant_on_a_path_holds() {
    let (one, other) = (grant(1, 5e9, 16e9, 1.0), grant(7, 3e9, 32e9, 4.0));
    assert_eq!(path_minimum([one, other]), Some(other));
    assert_eq!(path_minimum([]), None);
}

#[test]
fn a_row_expires_when_its_heartbeat_stands_still() {
    let mut members = Members::new(2);
    let row = |id: u64, heartbeat| Row { id, heartbeat, claim: claim(id as f64, 0.0, 1.0) };
    assert_eq!(members.live(&[row(1, 0), row(2, 0)]).len(), 2);
    for beat in 1..=2 {
        assert_eq!(members.live(&[row(1, beat), row(2, 0)]).len(), 2);
    }
    assert_eq!(members.live(&[row(1, 3), row(2, 0)]), [claim(1.0, 0.0, 1.0)]);
    assert!(members.has_expired(2));
    // It comes back to life, or its row is used again.
    assert_eq!(members.live(&[row(1, 4), row(2, 1)]).len(), 2);
    assert_eq!(members.live(&[row(3, 0)]).len(), 1);
    assert!(!members.has_expired(1));
}

#[test]
fn a_debt_is_paid_by_time_at_the_granted_bandwidth() {
    let mut debt = Debt::default();
    debt.pass(bandwidth(1e9), WINDOW, 300_000);
    assert_eq!(debt.bytes(), 200_000.0);
    assert_eq!(debt.pause(bandwidth(1e9), Duration::from_secs(1)), Duration::from_micros(200));
    assert_eq!(debt.pause(bandwidth(1e9), WINDOW), WINDOW);
    assert_eq!(debt.pause(Bandwidth::ZERO, WINDOW), WINDOW);
    debt.pass(bandwidth(1e9), Duration::from_secs(1), 0);
    // Unused grants are not saved up.
    assert_eq!((debt.bytes(), debt.pause(Bandwidth::ZERO, WINDOW)), (0.0, Duration::ZERO));
}

#[test]
fn a_group_shares_what_the_group_gets() {
    // Two tenants of weights 1 and 3; the first has three threads, the second one of which has a host of its own.
    let node = |parent, weight| Node { parent, weight };
    let mut tree = Hierarchy::new(vec![node(None, 1.0), node(None, 3.0), node(Some(1), 1.0)]).unwrap();
    let claims = [(Some(0), claim(1.0, 0.0, 16e9)), (Some(0), claim(3.0, 0.0, 16e9)), (Some(2), claim(1.0, 0.0, 6e9))];
    let shares = tree.interval(Law::WaterFilling, bandwidth(16e9), &claims);
    // The second tenant takes 6 of its 12 GB/s; the first gets the other 10.
    let granted: Vec<f64> =
        claims.iter().zip(&shares).map(|((_, claim), &share)| claim.granted(share).bytes_per_second()).collect();
    for (got, wanted) in granted.iter().zip([2.5e9, 7.5e9, 6e9]) {
        assert!((got - wanted).abs() < 1.0, "{granted:?}");
    }
}

#[test]
fn nodes_that_are_no_hierarchy_are_refused() {
    let node = |parent, weight| Node { parent, weight };
    assert_eq!(Hierarchy::new(vec![node(Some(0), 1.0)]).unwrap_err(), HierarchyError::ParentNotBefore(0));
    assert_eq!(Hierarchy::new(vec![node(None, 1.0), node(Some(0), 0.0)]).unwrap_err(), HierarchyError::Weight(1));
}

prop_compose! {
    fn any_claim()(weight in any::<f64>(), rate in any::<f64>(), demand in any::<f64>()) -> Claim {
        claim(weight, rate, demand)
    }
}

proptest! {
    /// Whatever bits another process has left in its row.
    #[test]
    fn no_input_breaks_an_owner(
        claims in prop::collection::vec(any_claim(), 0..5), congested in any::<f64>(), law in prop::bool::ANY,
    ) {
        let law = if law { Law::Iterative } else { Law::WaterFilling };
        let mut owner = Owner::new(law, Probing::new(bandwidth(16e9)), None);
        for _ in 0..3 {
            let grant = owner.interval(&claims, congested, Duration::from_millis(1));
            prop_assert!(grant.share.bytes_per_second().is_finite() && grant.capacity.bytes_per_second() > 0.0);
            let mut channel = Channel::new(Timing::default(), 1.0, bandwidth(LINK), Some(grant));
            let slice = channel.end_window(Used { bytes: 1 << 40, ran: Duration::ZERO, elapsed: WINDOW }, Some(grant));
            prop_assert!(slice.time <= WINDOW && slice.bytes >= 0.0);
        }
    }

    #[test]
    fn both_laws_come_to_the_same(
        channels in prop::collection::vec((1u32..20, 0.0f64..100.0), 1..12), capacity in 1.0f64..200.0,
    ) {
        let at = |share: f64| -> Vec<Claim> {
            channels.iter().map(|&(weight, demand)| {
                let weight = f64::from(weight);
                claim(weight, (weight * share).min(demand), demand)
            }).collect()
        };
        let exact = Law::WaterFilling.share(None, bandwidth(capacity), &at(0.0)).bytes_per_second();
        let mut share = exact * 7.0;
        for _ in 0..20_000 {
            share = Law::Iterative.share(Some(bandwidth(share)), bandwidth(capacity), &at(share)).bytes_per_second();
        }
        prop_assert!((share - exact).abs() <= 1e-3 * exact.max(1e-9), "{share}, not {exact}");
    }
}
