//! Without lag the iterative law converges monotonically to the exact share, from either side: all small cases.

use fencepost_pacing::{Claim, Law, granted};

use crate::world::{bandwidth, claim};

const WEIGHTS: [f64; 3] = [1.0, 2.0, 5.0];
const DEMANDS: [f64; 5] = [0.0, 1.0, 3.0, 10.0, 40.0];
const CAPACITIES: [f64; 4] = [0.5, 4.0, 12.0, 60.0];
const STARTS: [f64; 6] = [1e-6, 0.1, 1.0, 3.0, 20.0, 1e6];

fn all_claims() -> Vec<Vec<(f64, f64)>> {
    let one: Vec<(f64, f64)> =
        WEIGHTS.iter().flat_map(|&weight| DEMANDS.iter().map(move |&demand| (weight, demand))).collect();
    let mut all: Vec<Vec<(f64, f64)>> = one.iter().map(|&first| vec![first]).collect();
    for &first in &one {
        for &second in &one {
            all.push(vec![first, second]);
            all.extend(one.iter().map(|&third| vec![first, second, third]));
        }
    }
    all
}

fn at(share: f64, channels: &[(f64, f64)]) -> Vec<Claim> {
    channels.iter().map(|&(weight, demand)| claim(weight, (share * weight).min(demand), demand)).collect()
}

#[test]
fn the_iterative_law_goes_to_the_exact_share_without_overshoot() {
    for channels in all_claims() {
        for capacity in CAPACITIES {
            let exact = Law::WaterFilling.share(None, bandwidth(capacity), &at(0.0, &channels)).bytes_per_second();
            for start in STARTS {
                let mut share = start;
                for step in 0..3000 {
                    let next = Law::Iterative
                        .share(Some(bandwidth(share)), bandwidth(capacity), &at(share, &channels))
                        .bytes_per_second();
                    let slack = 1e-9 * (1.0 + share);
                    let (low, high) = (share.min(exact) - slack, share.max(exact) + slack);
                    assert!(
                        (low..=high).contains(&next),
                        "{channels:?} of {capacity}: from {share} to {next} in step {step}, not towards {exact}"
                    );
                    let stands_still = (next - share).abs() <= 1e-9 * exact;
                    share = next;
                    if stands_still {
                        break;
                    }
                }
                assert!((share - exact).abs() <= 1e-6 * exact, "{channels:?} of {capacity}: {share}, not {exact}");
            }
        }
    }
}

#[test]
fn the_exact_share_uses_the_capacity_or_satisfies_all() {
    for channels in all_claims() {
        for capacity in CAPACITIES {
            let claims = at(0.0, &channels);
            let share = Law::WaterFilling.share(None, bandwidth(capacity), &claims);
            let wanted: f64 = channels.iter().map(|channel| channel.1).sum();
            let got = granted(&claims, share).bytes_per_second();
            assert!((got - wanted.min(capacity)).abs() < 1e-9 * (1.0 + got), "{channels:?} of {capacity}: {got}");
        }
    }
}
