//! Computes the fair share from claims and capacity.

use crate::Bandwidth;

/// What a channel tells the owner of a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim {
    /// Its part relative to others', above zero.
    pub weight: f64,
    /// What it got, over all of the time.
    pub rate: Bandwidth,
    /// What it would take if it were never paused.
    pub demand: Bandwidth,
}

impl Claim {
    /// The share per unit of weight that satisfies it. A channel that gets more than it says it demands demands what it
    /// gets.
    pub fn demand_by_weight(&self) -> Bandwidth {
        self.demand.max(self.rate).times(1.0 / self.weight)
    }

    /// What it gets of `share` per unit of weight.
    pub fn granted(&self, share: Bandwidth) -> Bandwidth {
        share.times(self.weight).min(self.demand.max(self.rate))
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
    /// It is at least the capacity over all weights, which always fits, and otherwise at most what satisfies everybody.
    /// Without claims it is the capacity.
    pub fn share(self, before: Option<Bandwidth>, capacity: Bandwidth, claims: &[Claim]) -> Bandwidth {
        let weight: f64 = claims.iter().map(|claim| claim.weight).sum();
        let Some(most) = claims.iter().map(Claim::demand_by_weight).reduce(Bandwidth::max) else { return capacity };
        let least = capacity.times(1.0 / weight);
        let share = match self {
            Law::Iterative => {
                let got = claims.iter().map(|claim| claim.rate).sum::<Bandwidth>();
                // An idle device holds nobody back.
                capacity.over(got).map_or(most, |factor| before.unwrap_or(least).times(factor))
            }
            Law::WaterFilling => water_level(capacity, weight, claims),
        };
        share.min(most).max(least)
    }
}

/// The level at which all that is below it is `capacity`; what satisfies everybody if that is less.
fn water_level(capacity: Bandwidth, weight: f64, claims: &[Claim]) -> Bandwidth {
    let mut by_demand: Vec<&Claim> = claims.iter().collect();
    by_demand.sort_by(|one, other| {
        one.demand_by_weight().bytes_per_second().total_cmp(&other.demand_by_weight().bytes_per_second())
    });
    let (mut left, mut weight_left) = (capacity, weight);
    for claim in by_demand {
        let level = left.times(1.0 / weight_left);
        if claim.demand_by_weight() >= level {
            return level;
        }
        left = left - claim.demand_by_weight().times(claim.weight);
        weight_left -= claim.weight;
    }
    claims.iter().map(Claim::demand_by_weight).fold(Bandwidth::ZERO, Bandwidth::max)
}
