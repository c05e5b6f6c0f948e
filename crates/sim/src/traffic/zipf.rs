//! Keys of which a few are asked for much more often than most, as the Yahoo! Cloud Serving Benchmark (YCSB) asks for
//! them.

use super::random::Random;

/// The exponent of YCSB's core workloads (Cooper et al., "Benchmarking cloud serving systems with YCSB", SoCC 2010;
/// `ZipfianGenerator`).
const THETA: f64 = 0.99;

/// A prime above every number of keys: multiplying by it deals the ranks out over all keys, so that popular keys are no
/// neighbours.
const SPREAD: u64 = 2_654_435_761;

/// Zipf's distribution over the keys 0 to `keys` - 1, by the method of Gray et al., "Quickly generating billion-record
/// synthetic databases" (SIGMOD 1994), which YCSB takes too: the first two ranks have exactly their probability, the
/// others nearly.
#[derive(Clone, Debug)]
pub struct Zipf {
    keys: u64,
    /// Where the most popular key lies.
    first: u64,
    zeta: f64,
    eta: f64,
}

impl Zipf {
    /// Over so many keys, 1 at least. Which are popular depends on `store`, so that those of several stores do not all
    /// lie at the same place.
    pub fn new(keys: u64, store: u64) -> Zipf {
        let zeta_of = |count: u64| (1..=count).map(|rank| (rank as f64).powf(-THETA)).sum::<f64>();
        let zeta = zeta_of(keys);
        let eta = (1.0 - (2.0 / keys as f64).powf(1.0 - THETA)) / (1.0 - zeta_of(2) / zeta);
        Zipf { keys, first: Random::new(store).below(keys), zeta, eta }
    }

    /// The next key.
    pub fn next(&self, random: &mut Random) -> u64 {
        self.key(self.rank(random))
    }

    fn key(&self, rank: u64) -> u64 {
        ((u128::from(rank) * u128::from(SPREAD) + u128::from(self.first)) % u128::from(self.keys)) as u64
    }

    /// How many keys are more popular than the next one: the most popular one has rank 0.
    pub fn rank(&self, random: &mut Random) -> u64 {
        let uniform = random.below(1 << 53) as f64 / (1u64 << 53) as f64;
        let scaled = uniform * self.zeta;
        if scaled < 1.0 || self.keys == 1 {
            0
        } else if scaled < 1.0 + 0.5f64.powf(THETA) || self.keys == 2 {
            1
        } else {
            let rank = self.keys as f64 * (self.eta * uniform - self.eta + 1.0).powf(1.0 / (1.0 - THETA));
            (rank as u64).min(self.keys - 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn popular_keys_come_as_often_as_zipf_says_and_all_stay_in_range() {
        let zipf = Zipf::new(1000, 7);
        let mut random = Random::new(3);
        let mut counts = vec![0u32; 1000];
        let draws = 200_000;
        for _ in 0..draws {
            counts[zipf.next(&mut random) as usize] += 1;
        }
        let expected = |rank: f64| f64::from(draws) * rank.powf(-THETA) / zipf.zeta;
        let found = |rank: u64| f64::from(counts[zipf.key(rank) as usize]);
        for (rank, tolerance) in [(0, 0.03), (1, 0.03), (9, 0.25), (99, 0.35)] {
            let expected = expected(rank as f64 + 1.0);
            assert!((found(rank) / expected - 1.0).abs() < tolerance, "{rank}: {} for {expected}", found(rank));
        }
        assert!(counts.iter().filter(|count| **count > 0).count() > 990, "every key has its rank");
    }

    #[test]
    fn few_keys_are_keys_too() {
        let mut random = Random::new(1);
        for keys in 1..5 {
            let zipf = Zipf::new(keys, 7);
            assert!((0..1000).all(|_| zipf.next(&mut random) < keys));
        }
    }
}
