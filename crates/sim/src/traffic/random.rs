//! Numbers that look random and are the same on every machine, so that a seed gives the same traffic for ever.

/// `SplitMix64` (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence that belongs to `seed`.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// A sequence of its own for the member `index` of a group that shares `seed`.
    pub fn of_member(seed: u64, index: u64) -> Random {
        Random::new(Random::new(seed ^ index.wrapping_mul(0x9e37_79b9_7f4a_7c15)).next())
    }

    /// The next 64 bits.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to `bound`, which is not reached; 0 if `bound` is.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_published_sequence_for_ever() {
        // The first three numbers of SplitMix64 for seed 1234567, as its authors' implementation prints them.
        let mut random = Random::new(1_234_567);
        let first = [random.next(), random.next(), random.next()];
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn numbers_stay_below_their_bound_and_reach_every_value() {
        let mut random = Random::of_member(7, 3);
        let mut seen = [0; 5];
        for _ in 0..1000 {
            seen[random.below(5) as usize] += 1;
        }
        assert!(seen.iter().all(|count| (150..250).contains(count)), "{seen:?}");
        assert_eq!(random.below(0), 0);
    }
}
