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

    /// Nothing is at `index` any more: it is replaced before any line that was used.
    #[inline]
    pub fn forget(&mut self, index: usize) {
        self.stamps[index] = 0;
    }

    /// No line has been used.
    pub fn forget_all(&mut self) {
        self.stamps.fill(0);
    }

    /// Which of the lines `first .. first + ways` is replaced next: the first one where nothing is, if there is one.
    #[inline]
    pub fn victim(&self, first: usize, ways: usize) -> usize {
        let (mut victim, mut earliest) = (first, u64::MAX);
        for (index, &stamp) in (first..).zip(&self.stamps[first..first + ways]) {
            if stamp < earliest {
                (victim, earliest) = (index, stamp);
            }
        }
        victim
    }
}
