//! What the owner of a device publishes.

use crate::Bandwidth;

/// The share that the owner of a device grants, and what a channel needs to fall back to when the owner is silent.
///
/// A device that is divided among groups has a grant for each: a channel obeys its group's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grant {
    /// The owner's term, from its lease: what an owner with a lesser one still publishes does not count.
    pub epoch: u64,
    /// The interval in which it was made; each is one more than the last, also from owner to owner.
    pub number: u64,
    /// Per unit of weight.
    pub share: Bandwidth,
    /// The owner's estimate of what the device can carry; of a group, the part of it that the group always gets.
    pub capacity: Bandwidth,
    /// Of all claims that were counted; of a group, those inside.
    pub weight: f64,
}

impl Grant {
    /// Whether it was made after `other`. The term comes first: an owner that was paused and has lost its lease may go
    /// on counting intervals.
    pub fn is_newer_than(&self, other: &Grant) -> bool {
        (self.epoch, self.number) > (other.epoch, other.number)
    }

    /// The share per unit of weight at which all channels fit, whatever they demand, with `more` weight than counted.
    pub fn share_for_all(&self, more: f64) -> Bandwidth {
        let weight = self.weight + more;
        if weight > 0.0 { self.capacity.times(1.0 / weight) } else { self.capacity }
    }
}
