//! The set-associative array of one cache: which lines it holds, in which state, in which version.

use std::num::NonZeroU64;

use super::lru::Lru;
use fencepost_kernel::line::{LineAddress, Version};

const EMPTY: u64 = u64::MAX;

/// MESI, without Invalid: a line that is not in the array is invalid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Others may have it too; it may be read.
    #[default]
    Shared,
    /// No other cache has it, and it equals what lies below.
    Exclusive,
    /// No other cache has it, and it is newer than what lies below.
    Modified,
}

/// What a cache knows of one of its lines.
#[derive(Clone, Copy, Debug, Default)]
pub struct Line {
    /// Its MESI state. In a shared level: Modified (dirty), Exclusive (clean), or Shared if other sockets may have it
    /// too.
    pub state: State,
    /// Whether one core may have it exclusively (shared levels only).
    pub is_owned: bool,
    /// Whether cores take it from each other: it came modified from another one, or that still has it.
    pub is_contended: bool,
    /// Which store was the last one performed on it, as far as this cache knows.
    pub version: Version,
    /// The cycle from which on its data are there; a line is entered when its fill is known, not when it arrives.
    pub ready: u64,
    /// The cycle in which the last store was performed on it (first-level data caches only); its core may know that
    /// before that cycle comes.
    pub stored: u64,
    /// The cores that may have a copy, one bit each (last level only).
    pub sharers: u64,
}

impl Line {
    /// What no core has yet; its data are there at `ready`.
    pub fn new(state: State, version: Version, ready: u64) -> Line {
        Line { state, version, ready, ..Line::default() }
    }

    /// The cycle from which on others may have this version: its data are there, and it has been stored.
    pub fn settled(&self) -> u64 {
        self.ready.max(self.stored)
    }

    /// Takes over a newer version, which is there at `settled`.
    pub fn update(&mut self, version: Version, settled: u64) {
        if version > self.version {
            self.version = version;
            self.ready = self.ready.max(settled);
        }
    }
}

/// A place in the set of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Where it is.
    pub index: usize,
    /// What has to leave first, if anything.
    pub victim: Option<LineAddress>,
}

/// A set-associative array with LRU replacement.
#[derive(Clone, Debug)]
pub struct CacheArray {
    set_mask: u64,
    /// How many sets there are, if they are no power of two: what real caches choose a slice for by a hash is then the
    /// remainder, which spreads lines as evenly.
    uneven_sets: Option<NonZeroU64>,
    ways: usize,
    tags: Box<[u64]>,
    /// The way of each set that was used last: most lookups find it there again.
    recent: Box<[u16]>,
    lines: Box<[Line]>,
    lru: Lru,
}

impl CacheArray {
    /// An empty array.
    ///
    /// # Panics
    /// If ways do not divide the lines into sets; the configuration is checked for that.
    pub fn new(size_bytes: u64, ways: usize) -> CacheArray {
        let lines = (size_bytes / fencepost_kernel::line::LINE_BYTES) as usize;
        let sets = lines / ways;
        assert!(sets > 0 && sets * ways == lines, "{lines} lines do not make sets of {ways}");
        CacheArray {
            set_mask: sets as u64 - 1,
            uneven_sets: NonZeroU64::new(sets as u64).filter(|sets| !sets.is_power_of_two()),
            ways,
            tags: vec![EMPTY; lines].into(),
            recent: vec![0; sets].into(),
            lines: vec![Line::default(); lines].into(),
            lru: Lru::new(lines),
        }
    }

    /// Where `line` lies, if it is here. Does not count as a use.
    #[inline]
    pub fn find(&self, line: LineAddress) -> Option<usize> {
        let set = self.set_of(line);
        let first = set * self.ways;
        let last = first + usize::from(self.recent[set]);
        if self.tags[last] == line.0 {
            return Some(last);
        }
        let set = &self.tags[first..first + self.ways];
        set.iter().position(|&tag| tag == line.0).map(|way| first + way)
    }

    /// `line`, which lies at `index`, becomes the most recently used.
    #[inline]
    pub fn touch(&mut self, line: LineAddress, index: usize) {
        let set = self.set_of(line);
        let way = (index - set * self.ways) as u16;
        // Where that was used last already, nothing changes.
        if self.recent[set] != way {
            self.recent[set] = way;
            self.lru.touch(index);
        }
    }

    /// Where `line` lies, if it is here; it becomes the most recently used.
    #[inline]
    pub fn find_and_touch(&mut self, line: LineAddress) -> Option<usize> {
        let set = self.set_of(line);
        let first = set * self.ways;
        // Where that is the line, it is the most recently used of its set already.
        let last = first + usize::from(self.recent[set]);
        if self.tags[last] == line.0 {
            return Some(last);
        }
        let way = self.tags[first..first + self.ways].iter().position(|&tag| tag == line.0)?;
        self.recent[set] = way as u16;
        self.lru.touch(first + way);
        Some(first + way)
    }

    /// The line at `index`.
    #[inline]
    pub fn line(&self, index: usize) -> &Line {
        &self.lines[index]
    }

    /// The line at `index`.
    #[inline]
    pub fn line_mut(&mut self, index: usize) -> &mut Line {
        &mut self.lines[index]
    }

    /// The state of `line`, if it is here.
    pub fn get(&self, line: LineAddress) -> Option<&Line> {
        self.find(line).map(|index| &self.lines[index])
    }

    /// The state of `line`, if it is here.
    pub fn get_mut(&mut self, line: LineAddress) -> Option<&mut Line> {
        self.find(line).map(|index| &mut self.lines[index])
    }

    /// Where `line` can enter.
    #[inline]
    pub fn place_for(&self, line: LineAddress) -> Place {
        let index = self.lru.victim(self.first_of_set(line), self.ways);
        let holder = self.tags[index];
        Place { index, victim: (holder != EMPTY).then_some(LineAddress(holder)) }
    }

    /// Enters `line` as the most recently used and gives where it lies; what had to leave has left.
    ///
    /// # Panics
    /// If it has not.
    pub fn insert(&mut self, line: LineAddress, content: Line) -> usize {
        let Place { index, .. } = self.place_for(line);
        self.insert_at(index, line, content);
        index
    }

    /// The same at `index`, which [`CacheArray::place_for`] has given.
    #[inline]
    pub fn insert_at(&mut self, index: usize, line: LineAddress, content: Line) {
        debug_assert!(self.find(line).is_none(), "a line is entered twice");
        assert_eq!(self.tags[index], EMPTY, "the victim has left before");
        let set = self.set_of(line);
        self.tags[index] = line.0;
        self.lines[index] = content;
        self.recent[set] = (index - set * self.ways) as u16;
        self.lru.touch(index);
    }

    /// Takes `line` out.
    pub fn remove(&mut self, line: LineAddress) -> Option<Line> {
        self.find(line).map(|index| self.remove_at(index))
    }

    /// Takes the line at `index` out.
    #[inline]
    pub fn remove_at(&mut self, index: usize) -> Line {
        self.tags[index] = EMPTY;
        self.lru.forget(index);
        self.lines[index]
    }

    /// Forgets everything: power is gone.
    pub fn clear(&mut self) {
        self.tags.fill(EMPTY);
        self.lru.forget_all();
    }

    /// Every line that is here, in the order of the array.
    pub fn iter(&self) -> impl Iterator<Item = (LineAddress, &Line)> {
        self.tags.iter().zip(&self.lines).filter(|(tag, _)| **tag != EMPTY).map(|(tag, line)| (LineAddress(*tag), line))
    }

    #[inline]
    fn set_of(&self, line: LineAddress) -> usize {
        match self.uneven_sets {
            None => (line.0 & self.set_mask) as usize,
            Some(sets) => (line.0 % sets) as usize,
        }
    }

    #[inline]
    fn first_of_set(&self, line: LineAddress) -> usize {
        self.set_of(line) * self.ways
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_line_leaves() {
        let mut array = CacheArray::new(2 * 2 * 64, 2);
        let line = |number: u64| LineAddress(number * 2);
        array.insert(line(1), Line::default());
        array.insert(line(2), Line::default());
        assert!(array.find_and_touch(line(1)).is_some());
        assert_eq!(array.place_for(line(3)).victim, Some(line(2)));
        assert_eq!(array.place_for(LineAddress(1)).victim, None, "the other set is empty");
    }

    #[test]
    fn every_way_of_a_wide_set_has_its_own_last_use() {
        const WAYS: u64 = 512;
        let mut array = CacheArray::new(WAYS * 64, WAYS as usize);
        (0..WAYS).for_each(|number| _ = array.insert(LineAddress(number), Line::default()));
        for used in [0, 257, 1] {
            assert!(array.find_and_touch(LineAddress(used)).is_some());
        }
        assert_eq!(array.place_for(LineAddress(WAYS)).victim, Some(LineAddress(2)));
    }

    #[test]
    fn sets_need_not_be_a_power_of_two() {
        let mut array = CacheArray::new(3 * 2 * 64, 2);
        (0..6).for_each(|number| _ = array.insert(LineAddress(number), Line::default()));
        assert!((0..6).all(|number| array.find(LineAddress(number)).is_some()), "three sets of two");
        assert_eq!(array.place_for(LineAddress(7)).victim, Some(LineAddress(1)));
    }

    #[test]
    fn a_removed_line_makes_room() {
        let mut array = CacheArray::new(64, 1);
        array.insert(LineAddress(7), Line::default());
        assert!(array.remove(LineAddress(7)).is_some());
        assert_eq!(array.place_for(LineAddress(9)).victim, None);
        assert!(array.find(LineAddress(7)).is_none());
    }
}
