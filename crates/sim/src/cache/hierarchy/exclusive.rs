//! A last level that is not inclusive, and its snoop filter.
//!
//! What the rest of the hierarchy takes for the last level is then the filter: a directory of the lines that cores
//! have, with the right of the socket to each and the version that is not in a core's dirty copy. The last level's own
//! array holds lines that no core has: a line enters it when the last core that had it gives it up, and leaves it when
//! a core asks for it. So each line is in one of the two, and a filter's entry means that some core has a copy, from
//! which another core is served.
//!
//! An entry that has to leave the filter takes its line out of the cores, and what they had goes where all goes that
//! leaves them: into the last level, from which, if it is dirty, the line that has to make room is written to memory.

use super::coherence::Victim;
use super::{Hierarchy, HierarchyConfig};
use crate::cache::array::{CacheArray, Line, State};
use crate::cache::config::CacheConfig;
use fencepost_kernel::line::{LINE_BYTES, LineAddress, Version};
use fencepost_kernel::message::Cause;
use fencepost_kernel::stats::StatsNode;

/// What a last level that is not inclusive has besides its filter.
#[derive(Clone, Debug)]
pub(super) struct Exclusive {
    /// The lines that no core has.
    pub array: CacheArray,
    /// Dirty lines that have left it and are not written yet.
    left: Vec<Victim>,
    stats: SnoopFilterStats,
}

/// What a snoop filter counts.
#[derive(Clone, Copy, Debug, Default)]
struct SnoopFilterStats {
    /// Requests that another core's cache has served, clean or dirty.
    forwards: u64,
    /// Entries that had to leave.
    evictions: u64,
}

impl Exclusive {
    /// The last level's lines and the array of its directory, if `config` says that it is not inclusive.
    pub fn of(config: &HierarchyConfig, array: impl Fn(&CacheConfig) -> CacheArray) -> Option<(Exclusive, CacheArray)> {
        let (_, last) = config.levels.last()?;
        let filter = last.snoop_filter?;
        let directory = CacheArray::new(u64::from(filter.entries) * LINE_BYTES, usize::from(filter.ways));
        let exclusive = Exclusive { array: array(last), left: Vec::new(), stats: SnoopFilterStats::default() };
        Some((exclusive, directory))
    }

    /// Everything counted.
    pub fn stats(&self) -> StatsNode {
        StatsNode::group([
            ("forwards", StatsNode::Counter(self.stats.forwards)),
            ("evictions", StatsNode::Counter(self.stats.evictions)),
        ])
    }

    /// Power is gone.
    pub fn clear(&mut self) {
        self.array.clear();
        self.left.clear();
    }

    /// Enters a line that no core has any more.
    fn enter(&mut self, line: LineAddress, content: Line) {
        let place = self.array.place_for(line);
        if let Some(victim) = place.victim {
            let old = self.array.remove_at(place.index);
            if old.state == State::Modified {
                self.left.push(Victim { line: victim, version: old.version, stored: old.ready });
            }
        }
        self.array.insert_at(place.index, line, Line { sharers: 0, is_owned: false, is_contended: false, ..content });
    }
}

impl Hierarchy {
    /// The line in the directory or, where that is a snoop filter, in the last level without a core that has it.
    pub(super) fn held(&self, line: LineAddress) -> Option<&Line> {
        let directory = &self.shared[self.shared.len() - 1].array;
        directory.get(line).or_else(|| self.exclusive.as_ref()?.array.get(line))
    }

    /// Where `line` lies in the directory. What only a last level has that is not inclusive enters the directory: a
    /// core is about to get it.
    pub(super) fn find_held(&mut self, line: LineAddress) -> Option<usize> {
        let last = self.shared.len() - 1;
        self.shared[last].array.find(line).or_else(|| self.take_from_last(line))
    }

    /// The same; it becomes the most recently used.
    #[inline]
    pub(super) fn find_held_and_touch(&mut self, line: LineAddress) -> Option<usize> {
        let last = self.shared.len() - 1;
        self.shared[last].array.find_and_touch(line).or_else(|| self.take_from_last(line))
    }

    fn take_from_last(&mut self, line: LineAddress) -> Option<usize> {
        let content = self.exclusive.as_mut()?.array.remove(line)?;
        Some(self.enter_directory(line, content))
    }

    /// Enters a line into a snoop filter, from which another one may have to leave.
    pub(super) fn enter_directory(&mut self, line: LineAddress, content: Line) -> usize {
        let last = self.shared.len() - 1;
        let place = self.shared[last].array.place_for(line);
        if let Some(victim) = place.victim {
            self.recall(place.index, victim);
        }
        self.shared[last].array.insert_at(place.index, line, content);
        place.index
    }

    /// The entry at `index` of a snoop filter leaves, and its line the cores.
    fn recall(&mut self, index: usize, line: LineAddress) {
        let last = self.shared.len() - 1;
        let sharers = self.shared[last].array.line(index).sharers;
        self.stats.back_invalidations += u64::from(sharers.count_ones());
        for core in (0..self.l1d.len()).filter(|core| sharers & (1 << core) != 0) {
            self.snoop_core(core, line, true);
        }
        let content = self.shared[last].array.remove_at(index);
        let exclusive = self.exclusive.as_mut().expect("there is a filter");
        exclusive.stats.evictions += 1;
        exclusive.enter(line, content);
    }

    /// A core has given up one of its copies of `line`: if it was the last one of all cores, what is known of the line
    /// goes into the last level.
    #[inline]
    pub(super) fn given_up(&mut self, core: usize, line: LineAddress) {
        if self.exclusive.is_some() {
            self.give_up(core, line);
        }
    }

    fn give_up(&mut self, core: usize, line: LineAddress) {
        let mut private = self.private.iter().map(|level| &level.arrays[core]);
        let has_copy = private.any(|array| array.find(line).is_some())
            || self.l1d[core].find(line).is_some()
            || self.l1i[core].find(line).is_some();
        if has_copy {
            return;
        }
        let last = self.shared.len() - 1;
        let directory = &mut self.shared[last].array;
        let index = directory.find(line).expect("the filter has what a core has");
        let entry = directory.line_mut(index);
        entry.sharers &= !(1 << core);
        if entry.sharers == 0 {
            let content = directory.remove_at(index);
            self.exclusive.as_mut().expect("there is a filter").enter(line, content);
        }
    }

    /// The version of a line that no core has, if it is dirty; the line is clean or gone afterwards.
    pub(super) fn collect_from_last(&mut self, line: LineAddress, keep: bool) -> Option<(Version, u64)> {
        let array = &mut self.exclusive.as_mut()?.array;
        let index = array.find(line)?;
        let content = *array.line(index);
        if keep {
            array.line_mut(index).state = content.state.min(State::Exclusive);
        } else {
            array.remove_at(index);
        }
        (content.state == State::Modified).then_some((content.version, content.ready))
    }

    /// The same for a line that this socket shares from now on.
    pub(super) fn share_from_last(&mut self, line: LineAddress) -> Option<(Version, u64)> {
        let copy = self.exclusive.as_mut()?.array.get_mut(line)?;
        let is_dirty = std::mem::replace(&mut copy.state, State::Shared) == State::Modified;
        is_dirty.then_some((copy.version, copy.ready))
    }

    /// Whether a core is to be served from another core's copy: nothing else has the line.
    #[inline]
    pub(super) fn forwards(&mut self, own: u64, sharers: u64) -> bool {
        let Some(exclusive) = &mut self.exclusive else { return false };
        let forwards = sharers != 0 && sharers & own == 0;
        exclusive.stats.forwards += u64::from(forwards);
        forwards
    }

    /// Writes what had to leave the last level to memory.
    #[inline]
    pub(super) fn write_left(&mut self, now: u64) {
        while let Some(victim) = self.take_left() {
            self.write_back(victim, now);
        }
    }

    /// The same without time.
    pub(super) fn write_left_functionally(&mut self) {
        while let Some(Victim { line, version, stored }) = self.take_left() {
            self.write_functionally(line, version, Cause::Writeback, stored);
        }
    }

    #[inline]
    fn take_left(&mut self) -> Option<Victim> {
        self.exclusive.as_mut()?.left.pop()
    }
}
