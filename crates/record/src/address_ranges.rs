//! Sets of addresses, as sorted ranges that do not touch each other.

use serde::Serialize;

/// The addresses from `start` up to, and without, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct AddressRange {
    /// First address.
    pub start: u64,
    /// The address behind the last.
    pub end: u64,
}

impl AddressRange {
    /// Number of bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.end - self.start
    }
}

/// A set of addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct AddressRanges {
    ranges: Vec<AddressRange>,
}

impl AddressRanges {
    /// The union of these ranges, in any order; empty ones add nothing.
    #[must_use]
    pub fn union(ranges: impl IntoIterator<Item = AddressRange>) -> Self {
        let mut sorted: Vec<_> = ranges.into_iter().filter(|range| range.start < range.end).collect();
        sorted.sort_unstable();
        let mut ranges: Vec<AddressRange> = Vec::new();
        for range in sorted {
            match ranges.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => ranges.push(range),
            }
        }
        Self { ranges }
    }

    /// What is in this set and not in `other`.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let mut ranges = Vec::new();
        let mut holes = other.ranges.iter().peekable();
        for &AddressRange { mut start, end } in &self.ranges {
            while let Some(hole) = holes.next_if(|hole| hole.end <= start) {
                debug_assert!(hole.start < hole.end, "ranges are not empty");
            }
            while let Some(hole) = holes.peek().filter(|hole| hole.start < end) {
                ranges.push(AddressRange { start, end: hole.start.max(start) });
                start = hole.end.min(end);
                if hole.end > end {
                    break;
                }
                holes.next();
            }
            ranges.push(AddressRange { start, end });
        }
        Self::union(ranges)
    }

    /// Whether the address is in the set.
    #[must_use]
    #[inline]
    pub fn contains(&self, address: u64) -> bool {
        let after = self.ranges.partition_point(|range| range.start <= address);
        after > 0 && address < self.ranges[after - 1].end
    }

    /// The ranges, ascending; between two of them there is at least one address that is in none.
    #[must_use]
    #[inline]
    pub fn as_slice(&self) -> &[AddressRange] {
        &self.ranges
    }

    /// Whether there is no address in the set.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Number of addresses in the set.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.ranges.iter().map(AddressRange::bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn ranges() -> impl Strategy<Value = Vec<AddressRange>> {
        let range = (0..40u64, 0..9u64).prop_map(|(start, bytes)| AddressRange { start, end: start + bytes });
        prop::collection::vec(range, 0..12)
    }

    fn addresses(ranges: &[AddressRange]) -> BTreeSet<u64> {
        ranges.iter().flat_map(|range| range.start..range.end).collect()
    }

    proptest! {
        #[test]
        fn union_and_difference_are_those_of_the_addresses(one in ranges(), other in ranges()) {
            let (set_one, set_other) = (addresses(&one), addresses(&other));
            let (one, other) = (AddressRanges::union(one), AddressRanges::union(other));
            let difference = one.without(&other);
            prop_assert_eq!(addresses(one.as_slice()), set_one.clone());
            prop_assert_eq!(addresses(difference.as_slice()), &set_one - &set_other);
            for set in [&one, &difference] {
                prop_assert!(set.as_slice().windows(2).all(|pair| pair[0].end < pair[1].start));
            }
            for address in 0..50 {
                prop_assert_eq!(one.contains(address), set_one.contains(&address));
            }
            prop_assert_eq!(one.bytes(), set_one.len() as u64);
        }
    }
}
