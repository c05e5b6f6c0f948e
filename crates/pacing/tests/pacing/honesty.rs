//! What a lying channel gains and what it costs the others, by source of bandwidth.

use std::time::Duration;

use fencepost_pacing::{Bandwidth, Claim, Law, Source};

use crate::pool::Pool;
use crate::world::{LINK, World, bandwidth, ideal};

const LAWS: [Law; 2] = [Law::Iterative, Law::WaterFilling];
const CAPACITY: f64 = 16e9;
/// Of the pool's device.
const REAL: f64 = 22e9;
const HONEST: usize = 31;
/// The part of a device that the closed loop uses.
const USED: f64 = 0.85;

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

/// Where the device carries whatever comes, nobody else loses.
#[test]
fn one_that_reports_a_part_gets_its_share_divided_by_that_part() {
    let fair = ideal(CAPACITY, &[(1.0, 30e9); 3])[0];
    assert!(with_liar(1.0).iter().all(|rate| (rate / fair - 1.0).abs() < 0.01));
    for reported in [0.9, 0.5, 2.0] {
        let [liar, one, other] = with_liar(reported);
        assert!((liar / (fair / reported) - 1.0).abs() < 0.02, "{liar} of {fair} at {reported}");
        assert!((one / fair - 1.0).abs() < 0.02 && (other / fair - 1.0).abs() < 0.02, "{one} {other}");
    }
}

/// One channel of demand `demand` beside 31 honest ones of the same weight, on a device that rations: what it gets, and
/// what the worst off of the others gets.
fn beside_honest(law: Law, demand: f64, counted: f64, forged: Option<fn(Claim) -> Claim>) -> (f64, f64) {
    let mut pool = Pool::new(law, 32e9, REAL);
    pool.start(1.0, demand);
    (0..HONEST).for_each(|_| {
        pool.start(1.0, 3e9);
    });
    (pool.threads[0].counted, pool.threads[0].forged) = (counted, forged);
    pool.pass(Duration::from_millis(80));
    let rates = pool.measure(Duration::from_millis(120));
    (rates[0], rates[1..].iter().copied().fold(f64::MAX, f64::min))
}

/// `C / (n + u)` for each of the others, and `u` times as much for the liar.
fn check_bound(law: Law, understated: f64, (liar, other): (f64, f64)) {
    let fair = REAL / (HONEST as f64 + understated);
    assert!(liar <= 1.05 * understated * fair, "{law:?}, {understated}: {liar} of {fair}");
    assert!(other >= USED * fair, "{law:?}, {understated}: {other} of {fair}");
}

#[test]
fn sources_with_a_bound_keep_it() {
    for law in LAWS {
        for source in [Source::HardwareCounter { counts_writes: true }, Source::Mbm { counts_writes: true }] {
            let most = source.understated_max(bandwidth(LINK)).unwrap();
            check_bound(law, most, beside_honest(law, 3e9, 1.0 / most, None));
        }
        // Charged for 1 GB/s while it runs; it moves four times that.
        let (charged, moves) = (1e9, 4e9);
        let most = Source::CpuTime { charged: bandwidth(charged) }.understated_max(bandwidth(moves)).unwrap();
        assert_eq!(most, 4.0);
        check_bound(law, most, beside_honest(law, moves, charged / moves, None));
    }
}

/// Counters of reads miss write-backs, so that a program that writes what it reads moves twice what is counted.
#[test]
fn write_backs_that_are_not_counted_double_a_share() {
    for law in LAWS {
        let (liar, other) = beside_honest(law, 3e9, 0.5, None);
        check_bound(law, 2.0, (liar, other));
        assert!(liar > 1.8 * other, "{law:?}: {liar} {other}");
    }
}

/// A program that counts nothing is paused only with the device's turns, whatever is done to the others: for such
/// sources there is no bound.
#[test]
fn what_is_not_counted_at_all_has_no_bound() {
    assert_eq!(Source::SelfReported.understated_max(bandwidth(LINK)), None);
    assert_eq!(Source::HardwareCounter { counts_writes: false }.understated_max(bandwidth(LINK)), None);
    for law in LAWS {
        let fair = REAL / (HONEST as f64 + 1.0);
        let (liar, other) = beside_honest(law, LINK, 0.0, None);
        assert!(liar > 0.8 * REAL && other < 0.2 * fair, "{law:?}: {liar} {other}");
        // As long as all that it can take is little, the others share the rest.
        let demand = 3e9;
        let (liar, other) = beside_honest(law, demand, 0.0, None);
        assert!(liar <= demand && other > USED * (REAL - demand) / HONEST as f64, "{law:?}: {liar} {other}");
    }
}

#[test]
fn one_that_reports_more_than_it_moves_loses_and_nobody_else_does() {
    for law in LAWS {
        let (liar, other) = beside_honest(law, 3e9, 2.0, None);
        let fair = REAL / (HONEST as f64 + 1.0);
        assert!(liar < 0.6 * fair && other > USED * fair, "{law:?}: {liar} {other} of {fair}");
    }
}

/// Or the device would stay congested at the estimate from before.
#[test]
fn a_forged_rate_does_not_keep_the_estimate_from_falling() {
    for law in LAWS {
        let mut pool = Pool::new(law, 32e9, REAL);
        (0..=HONEST).for_each(|_| {
            pool.start(1.0, 3e9);
        });
        pool.threads[0].forged = Some(|claim| Claim { rate: Bandwidth::new(f64::MAX), ..claim });
        pool.pass(Duration::from_millis(100));
        let loads: f64 = (0..10)
            .map(|_| {
                pool.pass(Duration::from_millis(5));
                pool.load()
            })
            .sum();
        assert!(loads / 10.0 < 0.85, "{law:?}: {}", loads / 10.0);
    }
}

/// A row is written by the process that it is about, but what it says of rate and demand moves nobody below `w C / W`.
#[test]
fn a_forged_row_takes_nothing_from_others() {
    let forgeries: [fn(Claim) -> Claim; 3] = [
        |claim| Claim { rate: Bandwidth::ZERO, demand: Bandwidth::ZERO, ..claim },
        |claim| Claim { rate: Bandwidth::ZERO, demand: Bandwidth::new(f64::MAX), ..claim },
        |claim| Claim { rate: Bandwidth::new(f64::MAX), ..claim },
    ];
    for law in LAWS {
        for (at, forged) in forgeries.into_iter().enumerate() {
            let (liar, other) = beside_honest(law, 3e9, 1.0, Some(forged));
            let fair = REAL / (HONEST as f64 + 1.0);
            assert!(liar < 1.1 * fair && other > USED * fair, "{law:?}, forgery {at}: {liar} {other} of {fair}");
        }
    }
}
