//! What the owner of a device publishes.

use crate::Bandwidth;

/// The share that the owner of a device grants, and what a channel needs to fall back to when the owner is silent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grant {
    /// The owner's term: a new owner has a greater one, and what an older one still publishes does not count.
    pub epoch: u64,
    /// The interval in which it was made; each is one more than the last, also from owner to owner.
    pub number: u64,
    /// Per unit of weight.
    pub share: Bandwidth,
    /// The owner's estimate of what the device can carry.
    pub capacity: Bandwidth,
    /// Of all claims that were counted.
    pub weight: f64,
}

impl Grant {
    /// Whether it was made after `other`.
    pub fn is_newer_than(&self, other: &Grant) -> bool {
        (self.epoch, self.number) > (other.epoch, other.number)
    }

    /// The share per unit of weight at which all channels fit, whatever they demand, with `more` weight than counted.
    pub fn share_for_all(&self, more: f64) -> Bandwidth {
        let weight = self.weight + more;
        if weight > 0.0 { self.capacity.times(1.0 / weight) } else { self.capacity }
    }
}

/// The least share among those of the devices on a channel's path; nothing without any.
pub fn path_minimum(grants: impl IntoIterator<Item = Grant>) -> Option<Grant> {
    grants.into_iter().reduce(|one, other| if other.share < one.share { other } else { one })
}
