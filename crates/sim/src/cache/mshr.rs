//! Miss-status holding registers: which lines are missing, and the requests that wait for them.

use fencepost_kernel::line::LineAddress;

/// A missing line, with the requests that wait for it.
#[derive(Clone, Debug)]
pub struct Mshr<W> {
    /// The line.
    pub line: LineAddress,
    waiters: Waiters<W>,
}

/// The requests that wait for a line, in the order of their arrival. Most lines have one, which is stored in place.
#[derive(Clone, Debug)]
pub struct Waiters<W> {
    first: Option<W>,
    others: Vec<W>,
}

impl<W> Default for Waiters<W> {
    fn default() -> Self {
        Waiters { first: None, others: Vec::new() }
    }
}

impl<W> Mshr<W> {
    /// One more waits.
    pub fn add(&mut self, waiter: W) {
        self.waiters.add(waiter);
    }

    /// The waiter that has waited longest.
    pub fn first(&self) -> Option<&W> {
        self.waiters.first()
    }

    /// Whether `waiter` waits already.
    pub fn has(&self, waiter: &W) -> bool
    where
        W: PartialEq,
    {
        self.waiters.first.as_ref() == Some(waiter) || self.waiters.others.contains(waiter)
    }
}

impl<W> Waiters<W> {
    /// One more waits.
    pub fn add(&mut self, waiter: W) {
        match self.first {
            None => self.first = Some(waiter),
            Some(_) => self.others.push(waiter),
        }
    }

    /// The waiter that has waited longest.
    pub fn first(&self) -> Option<&W> {
        self.first.as_ref()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &W> {
        self.first.iter().chain(&self.others)
    }
}

impl<W> IntoIterator for Waiters<W> {
    type Item = W;
    type IntoIter = std::iter::Chain<std::option::IntoIter<W>, std::vec::IntoIter<W>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.others)
    }
}

/// The registers of one cache. One that knows when its line will be there stays occupied until that cycle.
#[derive(Clone, Debug)]
pub struct MshrFile<W> {
    capacity: usize,
    pending: Vec<Mshr<W>>,
    /// The lines of `pending`, which are looked at more often than the rest of it.
    lines: Vec<LineAddress>,
    /// Cycles at which registers become free whose line is known to come.
    releases: Vec<u64>,
}

/// Whether a register can be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// Now.
    Now,
    /// At that cycle.
    At(u64),
    /// Not before some pending line comes.
    Unknown,
}

impl<W> MshrFile<W> {
    /// `capacity` free registers.
    pub fn new(capacity: usize) -> MshrFile<W> {
        MshrFile {
            capacity,
            pending: Vec::with_capacity(capacity),
            lines: Vec::with_capacity(capacity),
            releases: Vec::with_capacity(capacity),
        }
    }

    /// The register of `line`, if it is pending.
    #[inline]
    pub fn find(&mut self, line: LineAddress) -> Option<&mut Mshr<W>> {
        let index = self.lines.iter().position(|&pending| pending == line)?;
        Some(&mut self.pending[index])
    }

    /// Whether a register is free at `cycle`.
    pub fn room(&mut self, cycle: u64) -> Room {
        self.releases.retain(|&release| release > cycle);
        if self.pending.len() + self.releases.len() < self.capacity {
            return Room::Now;
        }
        self.releases.iter().min().map_or(Room::Unknown, |&release| Room::At(release))
    }

    /// The register that becomes free next is taken over by a request that starts then.
    pub fn release_earliest(&mut self) {
        if let Some(index) = (0..self.releases.len()).min_by_key(|&index| self.releases[index]) {
            self.releases.swap_remove(index);
        }
    }

    /// Takes a register for `line`; there must be room.
    pub fn allocate(&mut self, line: LineAddress, waiter: W) {
        debug_assert!(self.pending.len() < self.capacity, "a register is taken that is not there");
        self.lines.push(line);
        self.pending.push(Mshr { line, waiters: Waiters { first: Some(waiter), others: Vec::new() } });
    }

    /// The line of a pending register will be there at `release`: gives the waiters.
    pub fn resolve(&mut self, line: LineAddress, release: u64) -> Waiters<W> {
        match self.lines.iter().position(|&pending| pending == line) {
            Some(index) => {
                self.releases.push(release);
                self.lines.remove(index);
                self.pending.remove(index).waiters
            }
            None => Waiters::default(),
        }
    }

    /// How many registers are taken: by pending lines, and by lines that were not there yet at the cycle for which
    /// [`MshrFile::room`] was asked last.
    pub fn taken(&self) -> usize {
        self.pending.len() + self.releases.len()
    }

    /// How many lines are pending.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// The pending lines.
    pub fn lines(&self) -> impl Iterator<Item = LineAddress> {
        self.lines.iter().copied()
    }

    /// Forgets everything: power is gone.
    pub fn clear(&mut self) {
        self.pending.clear();
        self.lines.clear();
        self.releases.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misses_to_one_line_merge() {
        let mut file = MshrFile::new(2);
        file.allocate(LineAddress(1), 'a');
        file.find(LineAddress(1)).expect("it is pending").add('b');
        assert_eq!(file.resolve(LineAddress(1), 10).into_iter().collect::<String>(), "ab");
        assert_eq!(file.pending(), 0);
    }

    #[test]
    fn a_register_is_occupied_until_its_line_is_there() {
        let mut file = MshrFile::new(1);
        file.allocate(LineAddress(1), ());
        assert_eq!(file.room(0), Room::Unknown);
        file.resolve(LineAddress(1), 10);
        assert_eq!(file.room(9), Room::At(10));
        assert_eq!(file.room(10), Room::Now);
    }
}
