//! Which lines a cache of the device has room for: sets of ways, the least recently used goes first.

use crate::device::type2::DeviceCacheConfig;
use fencepost_kernel::line::LineAddress;

/// The tags of a cache. What is in a line, and in what state, is not here.
#[derive(Clone, Debug)]
pub struct CacheTags {
    sets: Vec<Vec<LineAddress>>,
    ways: usize,
}

impl CacheTags {
    /// Those of a cache like `config`, empty.
    pub fn new(config: &DeviceCacheConfig) -> CacheTags {
        CacheTags { sets: vec![Vec::new(); config.sets() as usize], ways: usize::from(config.ways) }
    }

    /// `line` is used; if it is not there, it takes a place. The line that has to leave for it, if one has to.
    pub fn touch(&mut self, line: LineAddress) -> Option<LineAddress> {
        let ways = self.ways;
        let set = self.set(line);
        set.retain(|own| *own != line);
        let victim = (set.len() == ways).then(|| set.remove(0));
        set.push(line);
        victim
    }

    /// `line` is gone.
    pub fn remove(&mut self, line: LineAddress) {
        self.set(line).retain(|own| *own != line);
    }

    /// How many sets there are.
    pub fn sets(&self) -> usize {
        self.sets.len()
    }

    /// The lines of a set.
    pub fn lines_of(&self, set: usize) -> &[LineAddress] {
        &self.sets[set]
    }

    /// All lines are gone; they are given in the order of sets.
    pub fn drain(&mut self) -> Vec<LineAddress> {
        self.sets.iter_mut().flat_map(std::mem::take).collect()
    }

    fn set(&mut self, line: LineAddress) -> &mut Vec<LineAddress> {
        let sets = self.sets.len() as u64;
        &mut self.sets[(line.0 % sets) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_line_of_a_full_set_leaves() {
        let mut tags = CacheTags::new(&DeviceCacheConfig { size_kib: 1, ways: 2 });
        let line = |number: u64| LineAddress(8 * number);
        assert_eq!([tags.touch(line(1)), tags.touch(line(2)), tags.touch(line(1))], [None, None, None]);
        assert_eq!(tags.touch(line(3)), Some(line(2)));
        assert_eq!(tags.touch(LineAddress(1)), None, "another set");
        tags.remove(line(1));
        assert_eq!(tags.touch(line(4)), None);
        assert_eq!(tags.drain(), [line(3), line(4), LineAddress(1)]);
    }
}
