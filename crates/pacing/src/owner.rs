//! The owner of a device: once per interval, from claims and congestion to the grant.

use std::time::Duration;

use crate::{Bandwidth, Capacity, Claim, Grant, Law, Probing};

/// The owner's state.
#[derive(Clone, Debug)]
pub struct Owner {
    law: Law,
    capacity: Capacity,
    share: Option<Bandwidth>,
    epoch: u64,
    number: u64,
}

impl Owner {
    /// An owner that goes on from the grant that its predecessor left, if there is one.
    pub fn new(law: Law, probing: Probing, found: Option<Grant>) -> Owner {
        let mut capacity = Capacity::new(probing);
        let Some(found) = found else { return Owner { law, capacity, share: None, epoch: 1, number: 0 } };
        capacity.assume(found.capacity);
        let epoch = found.epoch.saturating_add(1);
        Owner { law, capacity, share: Some(found.share), epoch, number: found.number }
    }

    /// Ends an interval of length `elapsed` in which the live channels claimed `claims`, and the part `congested`
    /// (0 to 1) of the device's answers reported congestion. Claims without a weight above zero do not count, and none
    /// counts for more than the device can carry.
    pub fn interval(&mut self, claims: &[Claim], congested: f64, elapsed: Duration) -> Grant {
        let most = self.capacity.max();
        let limited = |claim: &Claim| Claim { rate: claim.rate.min(most), demand: claim.demand.min(most), ..*claim };
        let counted: Vec<Claim> =
            claims.iter().filter(|claim| claim.weight.is_finite() && claim.weight > 0.0).map(limited).collect();
        let used = counted.iter().map(|claim| claim.rate).sum();
        self.capacity.interval(used, congested, elapsed);
        let share = self.law.share(self.share, self.capacity.estimate(), &counted);
        // What nobody has claimed says nothing of the next who come.
        self.share = (!counted.is_empty()).then_some(share);
        self.number = self.number.saturating_add(1);
        let weight = counted.iter().map(|claim| claim.weight).sum();
        Grant { epoch: self.epoch, number: self.number, share, capacity: self.capacity.estimate(), weight }
    }

    /// What is known of the device's capacity.
    pub fn capacity(&self) -> &Capacity {
        &self.capacity
    }
}
