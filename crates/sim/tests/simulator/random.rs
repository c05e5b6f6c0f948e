//! Numbers that look random and are the same everywhere and for ever, so that a seed in a report can be run again.

/// `SplitMix64` (Steele, Lea and Flood 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to `bound`, which is not reached.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// From `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True once in `turns` times.
    pub fn once_in(&mut self, turns: u64) -> bool {
        self.below(turns) == 0
    }

    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// From 0 to 1.
    pub fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Between the two, each order of magnitude as likely as another. `low` may be 0.
    pub fn magnitude(&mut self, low: f64, high: f64) -> f64 {
        let shift = if low < 1e-3 { 1e-3 } else { 0.0 };
        let (from, to) = ((low + shift).ln(), (high + shift).ln());
        ((from + (to - from) * self.fraction()).exp() - shift).clamp(low, high)
    }
}
