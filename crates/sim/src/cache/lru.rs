//! Least recently used: the line whose last use lies furthest back is replaced.

/// When each line of an array was last used.
#[derive(Clone, Debug)]
pub struct Lru {
    stamps: Box<[u64]>,
    clock: u64,
}

impl Lru {
    /// For an array of `lines` lines, none used yet.
    pub fn new(lines: usize) -> Lru {
        Lru { stamps: vec![0; lines].into(), clock: 0 }
    }

    /// The line at `index` is used now.
    #[inline]
    pub fn touch(&mut self, index: usize) {
        self.clock += 1;
        self.stamps[index] = self.clock;
    }

    /// Which of the lines `first .. first + ways` is replaced next.
    pub fn victim(&self, first: usize, ways: usize) -> usize {
        (first..first + ways).min_by_key(|&index| self.stamps[index]).expect("a set has at least one way")
    }
}
