//! The owner of a device: once per interval, from claims and congestion to the grant.

use std::time::Duration;

use crate::{Bandwidth, Capacity, Claim, Grant, Hierarchy, Law, Probing, ProbingError};

/// The owner's state.
#[derive(Clone, Debug)]
pub struct Owner {
    law: Law,
    capacity: Capacity,
    groups: Hierarchy,
    /// By group, and last the device's.
    shares: Vec<Option<Bandwidth>>,
    epoch: u64,
    number: u64,
}

impl Owner {
    /// The owner of a device without groups: see [`Owner::of_groups`].
    ///
    /// # Errors
    /// The first value of `probing` with which no capacity can be probed.
    pub fn new(law: Law, probing: Probing, epoch: u64, found: Option<Grant>) -> Result<Owner, ProbingError> {
        Owner::of_groups(law, probing, epoch, Hierarchy::default(), &[found])
    }

    /// An owner in the term `epoch`, which its lease gave it and which is greater than any before. It goes on from the
    /// grants that its predecessor left: `found` has them by group, and last the device's. They are read before the
    /// rows of the first interval.
    ///
    /// # Errors
    /// The first value of `probing` with which no capacity can be probed.
    pub fn of_groups(
        law: Law,
        probing: Probing,
        epoch: u64,
        groups: Hierarchy,
        found: &[Option<Grant>],
    ) -> Result<Owner, ProbingError> {
        let mut capacity = Capacity::new(probing)?;
        let device = groups.count();
        let at = |group: usize| found.get(group).copied().flatten();
        let shares = (0..=device).map(|group| at(group).map(|grant| grant.share)).collect();
        if let Some(found) = at(device) {
            capacity.assume(found.capacity);
        }
        let number = found.iter().flatten().map(|grant| grant.number).max().unwrap_or(0);
        Ok(Owner { law, capacity, groups, shares, epoch, number })
    }

    /// Ends an interval of length `elapsed` in which the live channels claimed `claims`, and the part `congested`
    /// (0 to 1) of the device's answers reported congestion. No claim counts for more than the device can carry.
    pub fn interval(&mut self, claims: &[Claim], congested: f64, elapsed: Duration) -> Grant {
        let of_device: Vec<(Option<usize>, Claim)> = claims.iter().map(|claim| (None, *claim)).collect();
        self.interval_of_groups(&of_device, congested, elapsed).swap_remove(self.groups.count())
    }

    /// As [`Owner::interval`], with the group that each claim belongs to; none is the device itself, and claims of
    /// groups that there are not do not count. The grants are by group, and last the device's.
    pub fn interval_of_groups(
        &mut self,
        claims: &[(Option<usize>, Claim)],
        congested: f64,
        elapsed: Duration,
    ) -> Vec<Grant> {
        let most = self.capacity.max();
        let limited = |claim: &Claim| Claim { rate: claim.rate.min(most), demand: claim.demand.min(most), ..*claim };
        let groups = self.groups.count();
        let has_place = |(group, _): &&(Option<usize>, Claim)| group.is_none_or(|group| group < groups);
        let counted = || claims.iter().filter(has_place).map(|(group, claim)| (*group, limited(claim)));
        let used = counted().map(|(group, claim)| self.believed(group, &claim)).sum();
        self.capacity.interval(used, congested, elapsed);
        let divided = self.groups.divide(self.law, self.capacity.estimate(), counted(), &self.shares);
        self.number = self.number.saturating_add(1);
        for (share, division) in self.shares.iter_mut().zip(&divided) {
            // What nobody has claimed says nothing of the next who come.
            *share = (division.weight > 0.0).then_some(division.share);
        }
        let (epoch, number) = (self.epoch, self.number);
        let grant = |of: &crate::hierarchy::Division| Grant {
            epoch,
            number,
            share: of.share,
            capacity: of.sure,
            weight: of.weight,
        };
        divided.iter().map(grant).collect()
    }

    /// What the device is taken to have carried for a claim: no more than its share. A row that says more would keep
    /// the estimate of a congested device from falling.
    fn believed(&self, group: Option<usize>, claim: &Claim) -> Bandwidth {
        let share = self.shares.get(group.unwrap_or(self.groups.count())).copied().flatten();
        share.map_or(claim.rate, |share| claim.rate.min(share.times(claim.weight.get())))
    }

    /// Whether a later term has published `seen`: this owner has lost its lease, and publishes nothing any more.
    pub fn is_superseded_by(&self, seen: &Grant) -> bool {
        seen.epoch > self.epoch
    }

    /// What is known of the device's capacity.
    pub fn capacity(&self) -> &Capacity {
        &self.capacity
    }
}
