//! Round-robin arbitration: who of those that ask for a destination has the next turn.

/// The arbiter of one destination. Its sources are numbered; each asks or does not ask.
#[derive(Clone, Debug)]
pub struct Arbiter {
    /// One bit for each source that asks.
    asking: Vec<u64>,
    sources: usize,
    /// The source that is looked at first.
    turn: usize,
}

impl Arbiter {
    /// An arbiter among `sources` sources; it begins with source 0.
    pub fn new(sources: usize) -> Arbiter {
        Arbiter { asking: vec![0; sources.div_ceil(64)], sources, turn: 0 }
    }

    /// `source` asks from now on.
    pub fn ask(&mut self, source: usize) {
        debug_assert!(source < self.sources);
        self.asking[source / 64] |= 1 << (source % 64);
    }

    /// `source` asks no longer, without having had its turn.
    pub fn withdraw(&mut self, source: usize) {
        self.asking[source / 64] &= !(1 << (source % 64));
    }

    /// `source` has had its turn; the ones after it come first now.
    pub fn grant(&mut self, source: usize) {
        self.withdraw(source);
        self.turn = (source + 1) % self.sources;
    }

    /// Whether nobody asks.
    pub fn is_empty(&self) -> bool {
        self.asking.iter().all(|word| *word == 0)
    }

    /// Nobody asks any longer.
    pub fn clear(&mut self) {
        self.asking.fill(0);
    }

    /// Those that ask, from the one whose turn it is on, each once.
    pub fn asking(&self) -> impl Iterator<Item = usize> + '_ {
        let (first_word, first_bit) = (self.turn / 64, self.turn % 64);
        let before = (1u64 << first_bit) - 1;
        let words = self.asking.len();
        // The word of the turn comes twice: its upper part first, its lower part last.
        (0..=words).flat_map(move |step| {
            let word = (first_word + step) % words;
            let mut bits = self.asking[word];
            if step == 0 {
                bits &= !before;
            } else if step == words {
                bits &= before;
            }
            Bits(bits).map(move |bit| word * 64 + bit)
        })
    }
}

/// The positions of the bits that are set, ascending.
struct Bits(u64);

impl Iterator for Bits {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let bit = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(bit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(sources: usize, asking: &[usize]) -> Arbiter {
        let mut arbiter = Arbiter::new(sources);
        asking.iter().for_each(|source| arbiter.ask(*source));
        arbiter
    }

    #[test]
    fn the_order_begins_after_the_last_grant_and_wraps_round() {
        let mut arbiter = asked(200, &[3, 64, 70, 130, 199]);
        arbiter.grant(70);
        arbiter.ask(70);
        assert_eq!(arbiter.asking().collect::<Vec<_>>(), [130, 199, 3, 64, 70]);
        arbiter.grant(199);
        assert_eq!(arbiter.asking().collect::<Vec<_>>(), [3, 64, 70, 130]);
    }

    #[test]
    fn everyone_who_keeps_asking_is_served_equally_often() {
        let mut arbiter = asked(7, &[0, 2, 3, 6]);
        let mut served = [0; 7];
        for _ in 0..400 {
            let source = arbiter.asking().next().unwrap();
            served[source] += 1;
            arbiter.grant(source);
            arbiter.ask(source);
        }
        assert_eq!(served, [100, 0, 100, 100, 0, 0, 100]);
    }

    #[test]
    fn who_withdraws_is_not_asked_for() {
        let mut arbiter = asked(64, &[63]);
        arbiter.withdraw(63);
        assert!(arbiter.is_empty());
        assert_eq!(arbiter.asking().count(), 0);
    }
}
