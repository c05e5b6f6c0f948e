//! The owner of a device: once per interval, from claims and congestion to the grant.

use std::time::Duration;

use crate::{Bandwidth, Capacity, Claim, Grant, Law, Probing};

/// The owner's state. A new owner begins with the number of the grant that it found, so that numbers never repeat.
#[derive(Clone, Debug)]
pub struct Owner {
    law: Law,
    capacity: Capacity,
    share: Option<Bandwidth>,
    number: u64,
}

impl Owner {
    /// The owner that follows on grant `last_number`, 0 for the first.
    pub fn new(law: Law, probing: Probing, last_number: u64) -> Owner {
        Owner { law, capacity: Capacity::new(probing), share: None, number: last_number }
    }

    /// Ends an interval of length `elapsed` in which the live channels claimed `claims`, and the part `congested`
    /// (0 to 1) of the device's answers reported congestion. Claims without a weight above zero do not count.
    pub fn interval(&mut self, claims: &[Claim], congested: f64, elapsed: Duration) -> Grant {
        let counted: Vec<Claim> =
            claims.iter().copied().filter(|claim| claim.weight.is_finite() && claim.weight > 0.0).collect();
        let used = counted.iter().map(|claim| claim.rate).sum();
        self.capacity.interval(used, congested, elapsed);
        let share = self.law.share(self.share, self.capacity.estimate(), &counted);
        self.share = Some(share);
        self.number += 1;
        let weight = counted.iter().map(|claim| claim.weight).sum();
        Grant { number: self.number, share, capacity: self.capacity.estimate(), weight }
    }

    /// What is known of the device's capacity.
    pub fn capacity(&self) -> &Capacity {
        &self.capacity
    }
}
