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
///
/// A core computes ahead, and asks for later cycles before earlier ones: a register that is free at one cycle may still
/// be occupied at the next one asked about.
#[derive(Clone, Debug)]
pub struct MshrFile<W> {
    capacity: usize,
    pending: Vec<Mshr<W>>,
    /// The lines of `pending`, which are looked at more often than the rest of it.
    lines: Vec<LineAddress>,
    /// When each of the other registers is free that had a line; those that are in neither had none yet.
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
    pub fn room(&self, cycle: u64) -> Room {
        if self.taken(cycle) < self.capacity {
            return Room::Now;
        }
        self.releases.iter().min().map_or(Room::Unknown, |&release| Room::At(release))
    }

    /// Takes a register for `line` from `cycle` on; there must be room. It is the one that is free last: those that are
    /// free before serve what asks for an earlier cycle.
    pub fn allocate(&mut self, line: LineAddress, waiter: W, cycle: u64) {
        self.take(cycle);
        self.lines.push(line);
        self.pending.push(Mshr { line, waiters: Waiters { first: Some(waiter), others: Vec::new() } });
    }

    /// Takes a register from `cycle` on that is free again at `release`; there must be room.
    pub fn occupy(&mut self, cycle: u64, release: u64) {
        self.take(cycle);
        self.releases.push(release);
    }

    fn take(&mut self, cycle: u64) {
        debug_assert_eq!(self.room(cycle), Room::Now, "a register is taken that is not there");
        let free = (0..self.releases.len()).filter(|&index| self.releases[index] <= cycle);
        if let Some(last) = free.max_by_key(|&index| self.releases[index]) {
            self.releases.swap_remove(last);
        }
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

    /// How many registers are taken at `cycle`: by pending lines, and by lines that are not there yet.
    pub fn taken(&self, cycle: u64) -> usize {
        self.pending.len() + self.releases.iter().filter(|&&release| release > cycle).count()
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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn misses_to_one_line_merge() {
        let mut file = MshrFile::new(2);
        file.allocate(LineAddress(1), 'a', 0);
        file.find(LineAddress(1)).expect("it is pending").add('b');
        assert_eq!(file.resolve(LineAddress(1), 10).into_iter().collect::<String>(), "ab");
        assert_eq!(file.pending(), 0);
    }

    #[test]
    fn a_register_is_occupied_until_its_line_is_there() {
        let mut file = MshrFile::new(1);
        file.allocate(LineAddress(1), (), 0);
        assert_eq!(file.room(0), Room::Unknown);
        file.resolve(LineAddress(1), 10);
        assert_eq!(file.room(9), Room::At(10));
        assert_eq!(file.room(10), Room::Now);
    }

    #[test]
    fn what_was_asked_about_a_later_cycle_frees_no_register_at_an_earlier_one() {
        let mut file = MshrFile::new(2);
        for line in 1..3 {
            file.allocate(LineAddress(line), (), 0);
            file.resolve(LineAddress(line), 300);
        }
        assert_eq!(file.room(500), Room::Now);
        assert_eq!((file.room(260), file.taken(260), file.taken(300)), (Room::At(300), 2, 0));
        file.allocate(LineAddress(3), (), 500);
        assert_eq!(file.room(260), Room::At(300), "the other register");
        file.allocate(LineAddress(4), (), 300);
        assert_eq!(file.room(400), Room::Unknown);
    }

    /// A request: when it asks, for how long it has its register, and how many cycles pass before the next one.
    type Step = (u64, u64, u64);

    /// Lets a request have a register when it may, resolving pending lines, oldest first, as long as it may not. Gives
    /// when each had its register.
    fn occupied(capacity: usize, steps: &[Step]) -> Result<Vec<(u64, u64)>, TestCaseError> {
        let mut file = MshrFile::new(capacity);
        let (mut now, mut known, mut pending) = (0, Vec::new(), Vec::new());
        for (number, &(ahead, latency, passes)) in steps.iter().enumerate() {
            let cycle = now + ahead;
            let start = loop {
                let busy = known.iter().filter(|&&(_, release)| release > cycle).count() + pending.len();
                match file.room(cycle) {
                    Room::Now => break cycle,
                    Room::At(later) => {
                        prop_assert!(later > cycle && busy >= capacity, "it waits for nothing");
                        break later;
                    }
                    Room::Unknown => prop_assert_eq!(pending.len(), capacity),
                }
                let (line, start, release): (LineAddress, u64, u64) = pending.remove(0);
                file.resolve(line, release);
                known.push((start, release));
            };
            let line = LineAddress(number as u64);
            file.allocate(line, (), start);
            pending.push((line, start, start + latency));
            now += passes;
        }
        known.extend(pending.into_iter().map(|(_, start, release)| (start, release)));
        Ok(known)
    }

    proptest! {
        #[test]
        fn no_more_lines_are_missing_in_any_cycle_than_there_are_registers(
            capacity in 1..6_usize,
            steps in prop::collection::vec((0..400_u64, 1..200_u64, 0..40_u64), 1..80),
        ) {
            let occupied = occupied(capacity, &steps)?;
            for &(cycle, _) in &occupied {
                let taken = occupied.iter().filter(|&&(start, release)| start <= cycle && cycle < release).count();
                prop_assert!(taken <= capacity, "{taken} of {capacity} in cycle {cycle}");
            }
        }
    }
}
