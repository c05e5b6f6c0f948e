//! Single steps: the formulas, their corners, and input that another process may have broken.

use std::time::Duration;

use fencepost_pacing::{
    Average, Bandwidth, Channel, Claim, Debt, DevLoad, DevLoadCounts, Grant, Hierarchy, Law, Members, Node, Owner,
    Probing, ProbingError, Row, Source, Timing, Used, Weight, backpressure,
};
use proptest::num::f64::ANY;
use proptest::prelude::*;

use crate::world::{LINK, bandwidth, claim, weight};

const WINDOW: Duration = Duration::from_micros(100);
const IDLE: Used = Used { bytes: 0, ran: Duration::ZERO, elapsed: WINDOW };

fn grant(number: u64, share: f64, capacity: f64, weight: f64) -> Grant {
    Grant { epoch: 1, number, share: bandwidth(share), capacity: bandwidth(capacity), weight }
}

/// A channel that the grant with this number counts, and that has demanded `demand` in each window since.
fn running(value: f64, demand: f64) -> Channel {
    let found = [Some(grant(0, 1e12, 1e12, value))];
    let timing = Timing { debt_max: Duration::from_secs(1), ..Timing::default() };
    let mut channel = Channel::new(timing, weight(value), bandwidth(LINK), &found);
    for number in 1..20 {
        let bytes = (demand * WINDOW.as_secs_f64()) as u64;
        channel.end_window(Used { bytes, ran: WINDOW, elapsed: WINDOW }, &[Some(grant(number, 1e12, 1e12, value))]);
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
    let slice = channel.end_window(Used { bytes, ran: WINDOW, elapsed: WINDOW }, &[Some(grant(20, 2e9, 16e9, 8.0))]);
    assert!((slice.time.as_secs_f64() / WINDOW.as_secs_f64() - 0.4).abs() < 1e-3, "{slice:?}");
    assert!((slice.bytes - 4e9 * WINDOW.as_secs_f64()).abs() < 1.0, "{slice:?}");
    // More than it demands: all of it.
    let used = Used { bytes: slice.bytes as u64, ran: slice.time, elapsed: WINDOW };
    assert_eq!(channel.end_window(used, &[Some(grant(21, 6e9, 16e9, 8.0))]).time, WINDOW);
}

#[test]
fn shares_add_up_to_the_capacity_and_are_within_demands() {
    // The last one demands less than its part.
    let threads = [(3.0, 16e9), (1.0, 16e9), (2.0, 1e9)];
    let claims = threads.map(|(weight, demand)| claim(weight, 0.0, demand));
    let share = Law::WaterFilling.share(None, bandwidth(8e9), &claims).bytes_per_second();
    let shares = threads.map(|(weight, demand)| {
        let mut channel = running(weight, demand);
        let bytes = (demand * WINDOW.as_secs_f64()) as u64;
        channel.end_window(Used { bytes, ran: WINDOW, elapsed: WINDOW }, &[Some(grant(20, share, 8e9, 6.0))]);
        channel.share().bytes_per_second()
    });
    for (share, expected) in shares.into_iter().zip([5.25e9, 1.75e9, 1e9]) {
        assert!((share / expected - 1.0).abs() < 1e-9, "{shares:?}");
    }
    let ungranted = Channel::new(Timing::default(), Weight::ONE, bandwidth(LINK), &[None]);
    assert_eq!(ungranted.share(), Bandwidth::ZERO);
}

#[test]
fn overuse_is_repaid_by_pausing() {
    let mut channel = running(1.0, 1e9);
    let granted = &[Some(grant(20, 1e9, 16e9, 8.0))];
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
    let channel = Channel::new(Timing::default(), Weight::ONE, bandwidth(LINK), &[None]);
    assert_eq!((channel.slice().time, channel.slice().bytes), (WINDOW, f64::INFINITY));
}

#[test]
fn a_newcomer_takes_no_more_than_fits_until_it_is_counted() {
    let found = [Some(grant(5, 8e9, 16e9, 3.0))];
    let mut channel = Channel::new(Timing::default(), Weight::ONE, bandwidth(LINK), &found);
    assert_eq!(channel.allowed(), Some(bandwidth(4e9)));
    // Its demand is unknown, so it may be all of the link.
    assert_eq!(channel.slice().time, WINDOW.mul_f64(4e9 / LINK));
    channel.end_window(IDLE, &[Some(grant(6, 8e9, 16e9, 3.0))]);
    assert_eq!(channel.allowed(), Some(bandwidth(4e9)));
    channel.end_window(IDLE, &[Some(grant(7, 8e9, 16e9, 4.0))]);
    assert_eq!(channel.allowed(), Some(bandwidth(8e9)));
}

#[test]
fn a_silent_owner_leaves_the_share_that_fits_all() {
    let timing = Timing { grant_lifetime: 3 * WINDOW, ..Timing::default() };
    let mut channel = Channel::new(timing, weight(2.0), bandwidth(LINK), &[Some(grant(7, 6e9, 16e9, 8.0))]);
    let last = &[Some(grant(9, 6e9, 16e9, 8.0))];
    for _ in 0..4 {
        channel.end_window(IDLE, last);
        assert_eq!(channel.allowed(), Some(bandwidth(12e9)));
    }
    channel.end_window(IDLE, last);
    assert_eq!(channel.allowed(), Some(bandwidth(4e9)));
    channel.end_window(IDLE, &[Some(grant(10, 6e9, 16e9, 8.0))]);
    assert_eq!(channel.allowed(), Some(bandwidth(12e9)));
}

#[test]
fn the_first_grant_that_there_is_may_not_count_the_channel_yet() {
    let mut channel = Channel::new(Timing::default(), Weight::ONE, bandwidth(LINK), &[None]);
    channel.end_window(IDLE, &[Some(grant(1, 16e9, 16e9, 3.0))]);
    assert_eq!(channel.allowed(), Some(bandwidth(4e9)));
    channel.end_window(IDLE, &[Some(grant(2, 5e9, 16e9, 4.0))]);
    assert_eq!(channel.allowed(), Some(bandwidth(5e9)));
}

#[test]
fn a_channel_that_has_expired_is_a_newcomer_when_it_wakes() {
    let mut channel = running(1.0, 10e9);
    let expired = Used { elapsed: Timing::default().silence_max + WINDOW, ..IDLE };
    channel.end_window(expired, &[Some(grant(40, 16e9, 16e9, 3.0))]);
    assert_eq!(channel.allowed(), Some(bandwidth(4e9)));
    channel.end_window(IDLE, &[Some(grant(41, 16e9, 16e9, 3.0))]);
    assert_eq!(channel.allowed(), Some(bandwidth(4e9)));
    channel.end_window(IDLE, &[Some(grant(42, 5e9, 16e9, 4.0))]);
    assert_eq!(channel.allowed(), Some(bandwidth(5e9)));
}

#[test]
fn what_an_owner_of_an_older_term_publishes_does_not_count() {
    let mut channel = running(1.0, 10e9);
    let in_term = |epoch, number, share| [Some(Grant { epoch, ..grant(number, share, 16e9, 2.0) })];
    channel.end_window(IDLE, &in_term(3, 20, 6e9));
    channel.end_window(IDLE, &in_term(2, 90, 16e9));
    assert_eq!(channel.allowed(), Some(bandwidth(6e9)));
    channel.end_window(IDLE, &in_term(3, 20, 16e9));
    assert_eq!(channel.allowed(), Some(bandwidth(6e9)));
    channel.end_window(IDLE, &in_term(4, 21, 7e9));
    assert_eq!(channel.allowed(), Some(bandwidth(7e9)));
}

#[test]
fn an_owner_goes_on_from_what_it_finds_in_its_own_term() {
    let found = Grant { epoch: 4, ..grant(70, 3e9, 8e9, 2.0) };
    let probing = Probing::new(bandwidth(16e9));
    let mut owner = Owner::new(Law::Iterative, probing, 5, Some(found)).unwrap();
    assert_eq!(owner.capacity().estimate(), bandwidth(8e9));
    // 4 of 8 GB/s are used at a share of 3: it goes on to 6, not from the share that fits all. The device is
    // congested enough for the capacity to stay.
    let claims = [claim(1.0, 2e9, 16e9), claim(1.0, 2e9, 16e9)];
    let grant = owner.interval(&claims, 0.0, Duration::ZERO);
    assert_eq!((grant.epoch, grant.number), (5, 71));
    assert_eq!(grant.share, bandwidth(6e9));
    let (old, own, new) = (found, grant, Grant { epoch: 6, ..grant });
    assert_eq!([old, own, new].map(|seen| owner.is_superseded_by(&seen)), [false, false, true]);
}

#[test]
fn after_nobody_has_claimed_anything_a_share_begins_anew() {
    let mut owner = Owner::new(Law::Iterative, Probing::new(bandwidth(16e9)), 1, None).unwrap();
    let elapsed = Duration::from_millis(1);
    assert_eq!(owner.interval(&[], 0.0, elapsed).share, bandwidth(16e9));
    // At that share both together would get twice the capacity; they have 8 GB/s each.
    assert_eq!(owner.interval(&[claim(1.0, 8e9, 16e9); 2], 0.0, elapsed).share, bandwidth(8e9));
}

#[test]
fn a_small_weight_beside_a_large_one_is_not_lost() {
    let claims = [claim(1e6, 0.0, 1e9), claim(1e-6, 0.0, 16e9)];
    let share = Law::WaterFilling.share(None, bandwidth(10e9), &claims);
    let got = claims[1].granted(share).bytes_per_second();
    assert!((got - 9e9).abs() < 1.0, "{got}");
}

#[test]
fn a_channel_keeps_to_the_least_effective_share_on_its_path() {
    let newcomer = |one, other| {
        let channel = Channel::new(Timing::default(), Weight::ONE, bandwidth(LINK), &[one, other]);
        channel.allowed()
    };
    // The second device's share is the least as published, but the first one's does not count the newcomer yet.
    let (one, other) = (Some(grant(5, 8e9, 16e9, 7.0)), Some(grant(9, 6e9, 32e9, 1.0)));
    assert_eq!(newcomer(one, other), Some(bandwidth(2e9)));
    assert_eq!(newcomer(None, other), Some(bandwidth(6e9)));
    assert_eq!(newcomer(None, None), None);
}

#[test]
fn each_device_on_a_path_is_told_what_the_others_let_through() {
    let found = [Some(grant(0, 1e12, 1e12, 1.0)); 3];
    let mut channel = Channel::new(Timing::default(), weight(2.0), bandwidth(LINK), &found);
    let grants = [grant(7, 1e9, 16e9, 4.0), grant(8, 2e9, 16e9, 4.0), grant(9, 8e9, 16e9, 4.0)].map(Some);
    channel.end_window(Used { bytes: 1_000_000, ran: WINDOW, elapsed: WINDOW }, &grants);
    // It demands 10 GB/s, and the first device lets 2 through, the second 4.
    let demands = [0, 1, 2].map(|device| channel.claim(device).demand);
    assert_eq!(demands, [bandwidth(4e9), bandwidth(2e9), bandwidth(2e9)]);
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
    let mut debt = Debt::new(Duration::from_secs(1));
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
fn a_debt_is_limited_and_what_is_forgiven_is_known() {
    let mut debt = Debt::new(10 * WINDOW);
    debt.pass(bandwidth(1e9), WINDOW, 5_100_000);
    assert_eq!((debt.bytes(), debt.forgiven_bytes()), (1_000_000.0, 4_000_000.0));
    // A share that shrinks does not make the pause longer.
    debt.pass(bandwidth(1e8), WINDOW, 0);
    assert_eq!(debt.bytes(), 100_000.0);
    assert_eq!(debt.pause(bandwidth(1e8), Duration::from_secs(1)), 10 * WINDOW);
}

#[test]
fn a_pause_ends_although_more_is_owed() {
    let timing = Timing { pause_max: 4 * WINDOW, debt_max: 100 * WINDOW, ..Timing::default() };
    let found = [Some(grant(9, 1e9, 16e9, 8.0))];
    let mut channel = Channel::new(timing, Weight::ONE, bandwidth(LINK), &found);
    let granted = [Some(grant(20, 1e9, 16e9, 8.0))];
    let fair = (1e9 * WINDOW.as_secs_f64()) as u64;
    channel.end_window(IDLE, &granted);
    let mut slice = channel.end_window(Used { bytes: 50 * fair, ran: WINDOW, elapsed: WINDOW }, &granted);
    let mut ran = Vec::new();
    for _ in 0..20 {
        let bytes = slice.bytes as u64;
        ran.push(bytes > 0);
        slice = channel.end_window(Used { bytes, ran: slice.time, elapsed: WINDOW }, &granted);
    }
    // Four windows paused, then one with a window's share, which is owed as well.
    let runs_at: Vec<usize> = (0..20).filter(|&at| ran[at]).collect();
    assert_eq!(runs_at, [4, 9, 14, 19]);
    assert!((channel.debt().bytes() - (49 - 20 + 4) as f64 * fair as f64).abs() < 10.0, "{channel:?}");
}

#[test]
fn weights_that_sums_and_quotients_cannot_bear_are_refused() {
    for value in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-7, 1e7] {
        let error = Weight::new(value).unwrap_err();
        assert!(error.to_string().contains("must be from 0.000001 to 1000000"), "{error}");
    }
    assert_eq!([1e-6, 1.0, 1e6].map(|value| weight(value).get()), [1e-6, 1.0, 1e6]);
}

#[test]
fn values_that_no_capacity_can_be_probed_with_are_refused() {
    let good = Probing::new(bandwidth(16e9));
    let cases = [
        (Probing { capacity_max: Bandwidth::ZERO, ..good }, ProbingError::CapacityMax),
        (Probing { capacity_min_share: 0.0, ..good }, ProbingError::CapacityMinShare),
        (Probing { interval: Duration::ZERO, ..good }, ProbingError::Interval),
        (Probing { load_weight: f64::NAN, ..good }, ProbingError::LoadWeight),
        (Probing { load_limit: 1.0, ..good }, ProbingError::LoadLimit),
        (Probing { rise_per_second: f64::INFINITY, ..good }, ProbingError::RisePerSecond),
    ];
    for (probing, error) in cases {
        assert_eq!(Owner::new(Law::Iterative, probing, 1, None).unwrap_err(), error);
    }
}

#[test]
fn the_load_is_the_part_of_answers_beyond_the_optimum() {
    let mut counts = DevLoadCounts::default();
    assert_eq!(counts.congested(), 0.0);
    for load in [DevLoad::Light, DevLoad::Optimal, DevLoad::Optimal, DevLoad::Moderate, DevLoad::Severe] {
        counts.count(load);
    }
    assert_eq!(counts, DevLoadCounts { light: 1, optimal: 2, moderate: 1, severe: 1 });
    assert_eq!(counts.congested(), 0.4);
    assert_eq!([-1.0, 0.0, 25.0, 100.0, 300.0, f64::NAN].map(backpressure), [0.0, 0.0, 0.25, 1.0, 1.0, 0.0]);
}

#[test]
fn a_source_says_how_much_it_may_miss() {
    let most = |source: Source| source.understated_max(bandwidth(LINK));
    assert_eq!(most(Source::HardwareCounter { counts_writes: true }), Some(1.0));
    assert_eq!(most(Source::HardwareCounter { counts_writes: false }), None);
    assert_eq!(most(Source::Mbm { counts_writes: true }), Some(1.0));
    assert_eq!(most(Source::Mbm { counts_writes: false }), None);
    assert_eq!(most(Source::SelfReported), None);
    assert_eq!(most(Source::CpuTime { charged: bandwidth(LINK / 4.0) }), Some(4.0));
    assert_eq!(most(Source::CpuTime { charged: bandwidth(2.0 * LINK) }), Some(1.0));
    assert_eq!(most(Source::CpuTime { charged: Bandwidth::ZERO }), None);
}

prop_compose! {
    /// Whatever bits another process has left in its row; the weight is the configuration's.
    fn any_claim()(value in 1e-6..1e6f64, rate in ANY, demand in ANY) -> Claim {
        claim(value, rate, demand)
    }
}

prop_compose! {
    fn any_grant()(
        epoch in any::<u64>(), number in any::<u64>(), share in ANY, capacity in ANY, weight in ANY,
    ) -> Grant {
        Grant { epoch, weight, ..grant(number, share, capacity, 1.0) }
    }
}

prop_compose! {
    fn any_used()(bytes in any::<u64>(), ran in any::<u64>(), elapsed in any::<u64>()) -> Used {
        Used { bytes, ran: Duration::from_nanos(ran), elapsed: Duration::from_nanos(elapsed) }
    }
}

fn law() -> impl Strategy<Value = Law> {
    prop_oneof![Just(Law::Iterative), Just(Law::WaterFilling)]
}

proptest! {
    #[test]
    fn no_input_breaks_an_owner(
        claims in prop::collection::vec((prop::option::of(0usize..4), any_claim()), 0..5), congested in ANY,
        law in law(), found in prop::option::of(any_grant()), elapsed in any::<u64>(),
    ) {
        let node = |parent| Node { parent, weight: Weight::ONE };
        let groups = Hierarchy::new(vec![node(None), node(Some(0)), node(Some(0))]).unwrap();
        let probing = Probing::new(bandwidth(16e9));
        let mut owner = Owner::of_groups(law, probing, 1, groups, &[found; 4]).unwrap();
        for _ in 0..3 {
            let grants = owner.interval_of_groups(&claims, congested, Duration::from_nanos(elapsed));
            prop_assert_eq!(grants.len(), 4);
            for grant in grants {
                prop_assert!(grant.share.bytes_per_second().is_finite() && grant.weight.is_finite());
                prop_assert!(grant.capacity.bytes_per_second() > 0.0);
                // Everybody who is counted gets at least what fits all.
                prop_assert!(grant.share >= grant.share_for_all(0.0).times(1.0 - 1e-9), "{:?}", grant);
            }
        }
    }

    #[test]
    fn no_input_breaks_a_channel(
        windows in prop::collection::vec((any_used(), prop::option::of(any_grant())), 1..8),
        found in prop::option::of(any_grant()), value in 1e-6..1e6f64,
    ) {
        let mut channel = Channel::new(Timing::default(), weight(value), bandwidth(LINK), &[found, None]);
        for (used, grant) in windows {
            let slice = channel.end_window(used, &[grant]);
            prop_assert!(slice.time <= WINDOW && slice.bytes >= 0.0, "{:?}", slice);
            prop_assert!(channel.debt().pause(channel.allowed().unwrap_or_default(), WINDOW) <= WINDOW);
            for device in 0..3 {
                let claim = channel.claim(device);
                prop_assert!(claim.demand.bytes_per_second().is_finite() && claim.rate.bytes_per_second().is_finite());
            }
        }
    }

    #[test]
    fn both_laws_come_to_the_same(
        channels in prop::collection::vec((1u32..20, 0.0f64..100.0), 1..12), capacity in 1.0f64..200.0,
    ) {
        let at = |share: f64| -> Vec<Claim> {
            channels.iter().map(|&(value, demand)| {
                let value = f64::from(value);
                claim(value, (value * share).min(demand), demand)
            }).collect()
        };
        let exact = Law::WaterFilling.share(None, bandwidth(capacity), &at(0.0)).bytes_per_second();
        let mut share = exact * 7.0;
        for _ in 0..5_000 {
            share = Law::Iterative.share(Some(bandwidth(share)), bandwidth(capacity), &at(share)).bytes_per_second();
        }
        prop_assert!((share - exact).abs() <= 1e-3 * exact.max(1e-9), "{share}, not {exact}");
    }
}
