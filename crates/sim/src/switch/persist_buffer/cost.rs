//! What a persist buffer costs in hardware, from its number of entries: bits, comparators, and bytes that the hold-up
//! energy has to drain.
//!
//! The bits are those of the state machine ([`state`](super::state)) as hardware would keep them; what the three
//! schemes share is counted for each.

use serde::Serialize;

use super::forecast::{DRAIN_TIME_RISES, MOST_PLACES, REFILLS};
use crate::switch::scheme::Scheme;
use fencepost_kernel::line::LINE_BYTES;

/// A physical address has 52 bits (CXL 3.1: host physical addresses), of which a line needs all but the lowest 6.
const LINE_ADDRESS_BITS: u64 = 52 - 6;
/// As in the state machine.
const GENERATION_BITS: u64 = 16;
/// Of one line there are at most a draining entry, a Dirty one, and one that takes its place.
const ORDER_BITS: u64 = 2;
/// Empty, Dirty, Drain.
const STATE_BITS: u64 = 2;
/// The forecast's times are counted in ns up to a millisecond: drains, and the time since a read.
const TIME_BITS: u64 = 20;

/// Reads under way are counted up to as many as a link has tags (16 bits in CXL.mem).
const READS_BITS: u64 = 17;

/// The cost of one persist buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// Slots: one more than the entries, for merging.
    pub slots: u64,
    /// Data and byte masks, in non-volatile cells: bits.
    pub data_bits: u64,
    /// Tag, generation, order and state, in non-volatile cells: bits.
    pub tag_bits: u64,
    /// What a power cut may clear, per slot: whether the entry was sent, its rank by last use, and under `pb_adaptive`
    /// whether it can be read and when it was sent: bits.
    pub volatile_bits: u64,
    /// What decides when to drain: threshold, preset, Dirty and Drain entries, and whether it drains (`pb_rf`); the
    /// forecast (`pb_adaptive`): bits. The bit by which the switch's table of tags knows again a read that
    /// `pb_adaptive` counts is not among them, as the table is not.
    pub policy_bits: u64,
    /// Comparators of a line address: each slot's tag, for a lookup.
    pub line_comparators: u64,
    /// Comparators of a rank: each slot's, when another is used.
    pub rank_comparators: u64,
    /// Comparators of a count or a time, for the policy.
    pub policy_comparators: u64,
    /// Bytes that are to be drained after a power cut at the worst time. A Clean entry is in the memory device already.
    pub drained_bytes: u64,
}

impl Cost {
    /// That of a buffer with `entries` entries under `scheme`; nothing if the scheme has none.
    pub fn of(scheme: Scheme, entries: u16) -> Option<Cost> {
        let slots = u64::from(entries) + 1;
        // Ranks and counts go from 0 to the number of slots.
        let count_bits = u64::from(64 - slots.leading_zeros());
        let slot_bits = if scheme == Scheme::PbAdaptive { 1 + TIME_BITS } else { 0 };
        let (policy_bits, policy_comparators) = match scheme {
            Scheme::Nopb => return None,
            Scheme::Pb => (0, 0),
            Scheme::PbRf => (4 * count_bits + 1, 2),
            Scheme::PbAdaptive => {
                // The clock of the send times, the drain time with the binary places that it rises by, what is left of
                // the one in which writes are counted, and the time since a read came, which stops at its largest and
                // starts there.
                let times = 4 * TIME_BITS + u64::from(DRAIN_TIME_RISES);
                // Besides the reads: Dirty and Drain entries, writes in this drain time, the most in one, new lines,
                // drains that may be under way, those in time.
                let counts = 7 * count_bits + u64::from(MOST_PLACES + REFILLS.ilog2());
                // Dirty against hold, count against most, a drain against the time and against twice the time, Drain
                // and what came in time against what may be under way, new lines against what is many, the time since a
                // read against twice the drain time.
                (times + counts + READS_BITS, 8)
            }
        };
        Some(Cost {
            slots,
            data_bits: slots * (LINE_BYTES * 8 + LINE_BYTES),
            tag_bits: slots * (LINE_ADDRESS_BITS + GENERATION_BITS + ORDER_BITS + STATE_BITS),
            volatile_bits: slots * (1 + count_bits + slot_bits),
            policy_bits,
            line_comparators: slots,
            rank_comparators: slots,
            policy_comparators,
            drained_bytes: u64::from(entries) * LINE_BYTES,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_entries_cost_what_their_fields_add_up_to() {
        let [pb, pb_rf, adaptive] =
            [Scheme::Pb, Scheme::PbRf, Scheme::PbAdaptive].map(|scheme| Cost::of(scheme, 16).unwrap());
        assert_eq!((pb.data_bits, pb.tag_bits, pb.volatile_bits, pb.policy_bits), (17 * 576, 17 * 66, 17 * 6, 0));
        assert_eq!(pb_rf, Cost { policy_bits: 21, policy_comparators: 2, ..pb });
        assert_eq!(adaptive, Cost { volatile_bits: 17 * 27, policy_bits: 154, policy_comparators: 8, ..pb });
        assert_eq!((pb.drained_bytes, Cost::of(Scheme::Nopb, 16)), (1024, None));
    }
}
