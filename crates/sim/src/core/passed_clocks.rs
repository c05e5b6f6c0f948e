//! Which places in the process clock have been passed.

use rustc_hash::FxHashMap;

use fencepost_record::Clock;

/// Places in the process clock, a bit each: a record has millions of them, close together. All before some place are in
/// it.
#[derive(Clone, Debug)]
pub(super) struct PassedClocks {
    words: FxHashMap<u64, u64>,
    /// The first word that may lack a place.
    first: u64,
    /// With how many words it is time to find out whether some are not needed any more.
    many: usize,
}

impl Default for PassedClocks {
    fn default() -> PassedClocks {
        PassedClocks { words: FxHashMap::default(), first: 0, many: CLOCK_WORDS }
    }
}

/// Words of [`PassedClocks`] that are few: 8192 places close together.
pub(super) const CLOCK_WORDS: usize = 128;

impl PassedClocks {
    pub fn insert(&mut self, clock: Clock) {
        let word = clock.0 / 64;
        if word >= self.first {
            *self.words.entry(word).or_default() |= 1 << (clock.0 % 64);
        }
    }

    pub fn contains(&self, clock: Clock) -> bool {
        let word = clock.0 / 64;
        word < self.first || self.words.get(&word).is_some_and(|bits| bits >> (clock.0 % 64) & 1 == 1)
    }

    /// All places before `clock` are in it from now on.
    pub fn fill_before(&mut self, clock: Clock) {
        self.first = self.first.max(clock.0 / 64);
        self.words.retain(|word, _| *word >= self.first);
        // Where a thread lags behind, looking again and again would not help.
        self.many = CLOCK_WORDS.max(2 * self.words.len());
    }

    /// Whether it is time for [`Self::fill_before`].
    pub fn has_many(&self) -> bool {
        self.words.len() >= self.many
    }

    /// Words of 64 places that are kept.
    #[cfg(test)]
    pub fn words(&self) -> usize {
        self.words.len()
    }
}
