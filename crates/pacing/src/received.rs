//! What a channel knows of one device on its path.

use std::time::Duration;

use crate::{Average, Bandwidth, Grant, Weight};

/// The latest grant of a device, how old it is, whether it counts the channel, and what the channel got there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    grant: Option<Grant>,
    age: Duration,
    /// The first grant that is sure to count the channel; unknown before the first grant.
    counted_from: Option<u64>,
    rate: Average,
}

impl Received {
    /// The channel's row is published, and after that `found` is the device's grant: the next one may have been
    /// computed from rows that were read before, the one after it was not.
    pub(crate) fn new(found: Option<Grant>, interval: Duration) -> Received {
        let counted_from = found.map(counting_after);
        Received { grant: found, age: Duration::ZERO, counted_from, rate: Average::new(interval) }
    }

    /// The channel got `rate` during `elapsed`; without this device it would have got `unpaused`.
    ///
    /// A channel that keeps to less than the published share counts with what it would have got at that: otherwise the
    /// owner would give what it holds back to others, and it would come on top once the channel is counted.
    pub(crate) fn measure(
        &mut self,
        rate: Bandwidth,
        unpaused: Bandwidth,
        weight: Weight,
        lifetime: Duration,
        elapsed: Duration,
    ) {
        let published = self.grant.map(|grant| grant.share);
        let holds_back = self.share(weight, lifetime) < published;
        let at_published = published.filter(|_| holds_back).map(|share| share.times(weight.get()).min(unpaused));
        self.rate.add(at_published.unwrap_or_default().max(rate).bytes_per_second(), elapsed);
    }

    /// The average of what was measured.
    pub(crate) fn rate(&self) -> Bandwidth {
        Bandwidth::new(self.rate.value().unwrap_or(0.0))
    }

    /// `elapsed` has passed, and `latest` is what the device's owner publishes. A channel that `has_expired` has not
    /// been counted meanwhile.
    pub(crate) fn receive(&mut self, latest: Option<Grant>, elapsed: Duration, has_expired: bool) {
        self.age = self.age.saturating_add(elapsed);
        if let Some(new) = latest.filter(|new| self.grant.is_none_or(|old| new.is_newer_than(&old))) {
            self.grant = Some(new);
            self.age = Duration::ZERO;
        }
        let Some(grant) = self.grant else { return };
        if has_expired {
            self.counted_from = Some(counting_after(grant));
        }
        // The first grant that there is may have been computed before the row was there.
        self.counted_from.get_or_insert(grant.number.saturating_add(1));
    }

    /// The share per unit of weight that the channel may use; `None` without a grant.
    ///
    /// A grant that does not count the channel, or an old one, holds only as far as it fits whatever the others do.
    pub(crate) fn share(&self, weight: Weight, lifetime: Duration) -> Option<Bandwidth> {
        let grant = self.grant?;
        Some(if self.counted_from.is_none_or(|from| grant.number < from) {
            grant.share.min(grant.share_for_all(weight.get()))
        } else if self.age > lifetime {
            grant.share.min(grant.share_for_all(0.0))
        } else {
            grant.share
        })
    }
}

/// The first grant that is sure to count a channel whose row appears when `found` is the latest.
fn counting_after(found: Grant) -> u64 {
    found.number.saturating_add(2)
}
