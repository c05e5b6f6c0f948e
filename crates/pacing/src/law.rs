//! Computes the fair share from claims and capacity.

use crate::{Bandwidth, Weight};

/// What a channel tells the owner of a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim {
    /// Its part relative to others'.
    pub weight: Weight,
    /// What it got, over all of the time; while it kept to less than the published share, what it would have got at
    /// that.
    pub rate: Bandwidth,
    /// What it would take if this device never paused it.
    pub demand: Bandwidth,
}

impl Claim {
    /// What would satisfy it. A channel that gets more than it says it demands demands what it gets.
    pub fn wanted(&self) -> Bandwidth {
        self.demand.max(self.rate)
    }

    /// The share per unit of weight that would satisfy it.
    pub fn wanted_by_weight(&self) -> Bandwidth {
        self.wanted().times(1.0 / self.weight.get())
    }

    /// What it gets of `share` per unit of weight.
    pub fn granted(&self, share: Bandwidth) -> Bandwidth {
        share.times(self.weight.get()).min(self.wanted())
    }
}

/// What all of them get of `share` together.
pub fn granted(claims: &[Claim], share: Bandwidth) -> Bandwidth {
    claims.iter().map(|claim| claim.granted(share)).sum()
}

/// How the share per unit of weight is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Law {
    /// `α ← α C / F`, where `F` is what all channels got: the published law. It needs no exact demands, and converges
    /// over several intervals.
    #[default]
    Iterative,
    /// Weighted water-filling: the share at which the channels together get the capacity. Exact, if demands are.
    WaterFilling,
}

impl Law {
    /// The share per unit of weight for the next interval, `before` being that of the last one.
    ///
    /// It is at least the capacity over all weights, which always fits. At most it is what satisfies everybody, and an
    /// equal part of what is then left: channels that other devices on their paths hold back claim only what those let
    /// through, so a share that stopped at the greatest claim could not rise at two devices that wait for each other.
    /// Without claims it is the capacity.
    pub fn share(self, before: Option<Bandwidth>, capacity: Bandwidth, claims: &[Claim]) -> Bandwidth {
        let weight: f64 = claims.iter().map(|claim| claim.weight.get()).sum();
        let Some(satisfies_all) = claims.iter().map(Claim::wanted_by_weight).reduce(Bandwidth::max) else {
            return capacity;
        };
        let least = capacity.times(1.0 / weight);
        let left = capacity - claims.iter().map(Claim::wanted).sum();
        let most = satisfies_all + left.times(1.0 / weight);
        let share = match self {
            Law::Iterative => {
                let got = claims.iter().map(|claim| claim.rate).sum::<Bandwidth>();
                // An idle device holds nobody back.
                capacity.over(got).map_or(most, |factor| before.unwrap_or(least).times(factor))
            }
            Law::WaterFilling => water_level(capacity, claims).unwrap_or(most),
        };
        share.min(most).max(least)
    }
}

/// The level at which all that is below it is `capacity`; none if all are satisfied with less.
fn water_level(capacity: Bandwidth, claims: &[Claim]) -> Option<Bandwidth> {
    let mut by_demand: Vec<&Claim> = claims.iter().collect();
    by_demand.sort_by(|one, other| {
        one.wanted_by_weight().bytes_per_second().total_cmp(&other.wanted_by_weight().bytes_per_second())
    });
    // Of each claim and those behind it. Differences would lose a small weight that stands behind large ones.
    let mut weights: Vec<f64> = by_demand.iter().map(|claim| claim.weight.get()).collect();
    (0..weights.len().saturating_sub(1)).rev().for_each(|at| weights[at] += weights[at + 1]);
    let mut left = capacity;
    for (claim, weight) in by_demand.into_iter().zip(weights) {
        let level = left.times(1.0 / weight);
        if claim.wanted_by_weight() >= level {
            return Some(level);
        }
        left = left - claim.wanted();
    }
    None
}
