//! When what was issued leaves the issue queue: how many micro-operations leave in each cycle to come.
//!
//! A ring of counts for the cycles right ahead, with a bit for each that is not zero, so that long times in which
//! nothing leaves cost nothing; a map for what leaves later than the ring reaches.

use std::collections::BTreeMap;

const CYCLES: u64 = 4096;
const WORD_BITS: u64 = 64;

/// Micro-operations whose cycle of leaving is known and has not come.
#[derive(Clone, Debug)]
pub struct Departures {
    counts: Box<[u8; CYCLES as usize]>,
    /// One bit for each count that is not zero.
    occupied: Box<[u64; (CYCLES / WORD_BITS) as usize]>,
    /// By cycle, what lay beyond the ring when it became known.
    far: BTreeMap<u64, u32>,
    /// What leaves up to this cycle has left.
    until: u64,
    len: u32,
}

impl Departures {
    /// Nothing is known to leave; it is cycle 0.
    pub fn new() -> Departures {
        Departures {
            counts: Box::new([0; CYCLES as usize]),
            occupied: Box::new([0; (CYCLES / WORD_BITS) as usize]),
            far: BTreeMap::new(),
            until: 0,
            len: 0,
        }
    }

    /// How many are still to leave.
    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// One leaves in `cycle`; it has left already if that is past.
    #[inline]
    pub fn add(&mut self, cycle: u64) {
        if cycle <= self.until {
            return;
        }
        self.len += 1;
        let place = (cycle % CYCLES) as usize;
        if cycle - self.until < CYCLES && self.counts[place] < u8::MAX {
            self.counts[place] += 1;
            self.occupied[place / WORD_BITS as usize] |= 1 << (cycle % WORD_BITS);
        } else {
            self.add_far(cycle);
        }
    }

    #[cold]
    #[inline(never)]
    fn add_far(&mut self, cycle: u64) {
        *self.far.entry(cycle).or_default() += 1;
    }

    /// It is `cycle`: what leaves until then has left.
    #[inline]
    pub fn leave_until(&mut self, cycle: u64) {
        if cycle <= self.until {
            return;
        }
        if self.len > 0 {
            self.clear_until(cycle);
        }
        self.until = cycle;
    }

    /// The first cycle in which something leaves.
    #[inline]
    pub fn first(&self) -> Option<u64> {
        let far = self.far.first_key_value().map(|(&cycle, _)| cycle);
        self.first_near().into_iter().chain(far).min()
    }

    fn first_near(&self) -> Option<u64> {
        let start = self.until + 1;
        let mut cycle = start;
        while cycle < start + CYCLES {
            let word = self.occupied[(cycle % CYCLES / WORD_BITS) as usize] >> (cycle % WORD_BITS);
            if word != 0 {
                return Some(cycle + u64::from(word.trailing_zeros()));
            }
            cycle += WORD_BITS - cycle % WORD_BITS;
        }
        None
    }

    #[inline(never)]
    fn clear_until(&mut self, last: u64) {
        let mut cycle = self.until + 1;
        let end = (last + 1).min(self.until + CYCLES);
        while cycle < end {
            let in_word = (WORD_BITS - cycle % WORD_BITS).min(end - cycle);
            let mask = (u64::MAX >> (WORD_BITS - in_word)) << (cycle % WORD_BITS);
            let index = (cycle % CYCLES / WORD_BITS) as usize;
            let mut leaving = self.occupied[index] & mask;
            self.occupied[index] &= !mask;
            while leaving != 0 {
                let place = index * WORD_BITS as usize + leaving.trailing_zeros() as usize;
                self.len -= u32::from(std::mem::take(&mut self.counts[place]));
                leaving &= leaving - 1;
            }
            cycle += in_word;
        }
        while let Some(first) = self.far.first_entry()
            && *first.key() <= last
        {
            self.len -= first.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_leaves_in_the_past_has_left() {
        let mut departures = Departures::new();
        departures.leave_until(10);
        departures.add(10);
        assert_eq!((departures.len(), departures.first()), (0, None));
        departures.add(11);
        assert_eq!((departures.len(), departures.first()), (1, Some(11)));
    }

    proptest! {
        /// Against a plain list of the cycles in which something leaves.
        #[test]
        fn departures_are_counted_like_a_list(steps in prop::collection::vec((any::<bool>(), 0..3 * CYCLES), 1..200)) {
            let (mut departures, mut list, mut now) = (Departures::new(), Vec::new(), 0);
            for (is_new, ahead) in steps {
                if is_new {
                    departures.add(now + ahead);
                    list.push(now + ahead);
                } else {
                    now += ahead / 16;
                    departures.leave_until(now);
                }
                list.retain(|&cycle| cycle > now);
                prop_assert_eq!(departures.len() as usize, list.len());
                prop_assert_eq!(departures.first(), list.iter().copied().min());
            }
        }
    }
}
