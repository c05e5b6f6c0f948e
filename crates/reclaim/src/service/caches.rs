//! The caches that operations and reclaim share: a second level for each core, and the last level, which takes what
//! those evict (as Intel's servers do since Skylake-SP). Least recently used; lines of programs' pages and of the pool.

use serde::Deserialize;

/// Size of a level.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Size {
    /// In KiB.
    pub size_kib: u32,
    /// Ways.
    pub ways: u32,
}

/// Where a line was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// In the core's own second level.
    Own,
    /// In the last level.
    LastLevel,
    /// In neither.
    Memory,
}

#[derive(Clone, Debug)]
struct Cache {
    ways: usize,
    sets: usize,
    /// By set, the most recently used first; 0 is no line.
    lines: Vec<u32>,
}

impl Cache {
    fn new(size: Size) -> Self {
        let (ways, lines) = (size.ways as usize, size.size_kib as usize * 16);
        let sets = (lines / ways).max(1);
        Self { ways, sets, lines: vec![0; sets * ways] }
    }

    fn set(&mut self, line: u32) -> &mut [u32] {
        // Lines of a page lie in consecutive sets; pages begin anywhere, as physical ones do.
        let page = u64::from(line / 64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let set = (page as usize + line as usize % 64) % self.sets;
        &mut self.lines[set * self.ways..][..self.ways]
    }

    /// Whether it is there; it is the most recently used one then.
    fn find(&mut self, line: u32) -> bool {
        let set = self.set(line);
        let place = set.iter().position(|&known| known == line + 1);
        if let Some(place) = place {
            set[..=place].rotate_right(1);
        }
        place.is_some()
    }

    fn take(&mut self, line: u32) -> bool {
        let set = self.set(line);
        let place = set.iter().position(|&known| known == line + 1);
        if let Some(place) = place {
            set[place..].rotate_left(1);
            *set.last_mut().expect("a set has ways") = 0;
        }
        place.is_some()
    }

    /// Puts one in, that is not there; gives what it evicts.
    fn put(&mut self, line: u32) -> Option<u32> {
        let set = self.set(line);
        set.rotate_right(1);
        let evicted = std::mem::replace(&mut set[0], line + 1);
        evicted.checked_sub(1)
    }
}

/// All of them.
#[derive(Clone, Debug)]
pub struct Caches {
    own: Vec<Cache>,
    last: Cache,
}

impl Caches {
    /// Empty, for so many cores.
    #[must_use]
    pub fn new(cores: usize, own: Size, last: Size) -> Self {
        Self { own: vec![Cache::new(own); cores], last: Cache::new(last) }
    }

    /// A core reads or writes a line.
    pub fn access(&mut self, core: usize, line: u32) -> Found {
        if self.own[core].find(line) {
            return Found::Own;
        }
        let found = if self.last.take(line) { Found::LastLevel } else { Found::Memory };
        if let Some(evicted) = self.own[core].put(line)
            && !self.last.find(evicted)
        {
            self.last.put(evicted);
        }
        found
    }

    /// A device writes a line into the last level (NC-P; DMA likewise).
    pub fn push(&mut self, line: u32) {
        self.own.iter_mut().for_each(|own| {
            own.take(line);
        });
        if !self.last.find(line) {
            self.last.put(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caches() -> Caches {
        let size = |ways| Size { size_kib: 1, ways };
        Caches::new(2, size(16), size(16))
    }

    #[test]
    fn what_the_second_level_evicts_is_found_in_the_last() {
        let mut caches = caches();
        assert_eq!(caches.access(0, 0), Found::Memory);
        assert_eq!(caches.access(0, 0), Found::Own);
        (1..=16).for_each(|line| {
            caches.access(0, line * 64);
        });
        assert_eq!(caches.access(0, 0), Found::LastLevel);
    }

    #[test]
    fn what_a_device_pushes_is_found_in_the_last_level_by_any_core() {
        let mut caches = caches();
        caches.access(0, 5);
        caches.push(5);
        assert_eq!(caches.access(0, 5), Found::LastLevel);
        assert_eq!(caches.access(0, 5), Found::Own);
    }

    #[test]
    fn another_cores_work_takes_room_in_the_last_level_only() {
        let mut caches = caches();
        caches.access(0, 0);
        (1..=40).for_each(|line| {
            caches.access(1, line * 64);
        });
        assert_eq!(caches.access(0, 0), Found::Own);
    }
}
