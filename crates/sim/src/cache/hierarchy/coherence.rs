//! What a request does to the caches: the directory, snoops, fills, and what has to leave.

use super::{Hierarchy, Request, Side, Want};
use crate::cache::array::{Line, State};
use fencepost_isa::micro_op::Flush;
use fencepost_kernel::line::{LineAddress, Version};

/// A modified line that had to leave all caches, and is to be written to memory.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub(super) struct Victim {
    pub(super) line: LineAddress,
    pub(super) version: Version,
    /// The cycle in which it was stored.
    pub(super) stored: u64,
}

impl Hierarchy {
    /// Where a line that another level has lies in the last one.
    pub(super) fn in_last(&self, line: LineAddress) -> usize {
        self.shared[self.shared.len() - 1].array.find(line).expect("the last level is inclusive")
    }

    /// Whether this socket may do with the line at `in_last` what `request` wants.
    #[inline]
    pub(super) fn suffices(&self, request: &Request, in_last: usize) -> bool {
        request.want == Want::Read || self.shared[self.shared.len() - 1].array.line(in_last).state != State::Shared
    }

    /// Where the line of `request` lies in the directory, if it is here and this socket may do with it what that wants.
    #[inline]
    pub(super) fn find_sufficient(&mut self, request: &Request) -> Option<usize> {
        if self.exclusive.is_some() && request.want == Want::Own && self.held(request.line)?.state == State::Shared {
            return None;
        }
        self.find_held_and_touch(request.line).filter(|&in_last| self.suffices(request, in_last))
    }

    /// Makes `request`, which is at `level` at `cycle`, legal in the directory, where its line lies at `in_last`, and
    /// brings the newest data into that shared level; gives the cycle at which both is done.
    pub(super) fn grant(&mut self, request: &Request, level: usize, in_last: usize, cycle: u64) -> u64 {
        let last = self.shared.len() - 1;
        let own = 1u64 << request.core;
        let entry = *self.shared[last].array.line(in_last);
        let others = entry.sharers & !own;
        let mut is_contended = entry.is_contended && (others != 0 || self.is_one_of_several);
        let mut snoop = if self.forwards(own, entry.sharers) { self.snoop } else { 0 };
        if others != 0 && (request.want == Want::Own || entry.is_owned) {
            snoop = self.snoop;
            self.stats.snoops += 1;
            let invalidate = request.want == Want::Own;
            for core in 0..self.l1d.len() {
                if others & (1 << core) != 0 {
                    is_contended |= self.snoop_core(core, request.line, invalidate);
                }
            }
        }
        let sharers = match request.want {
            Want::Own => own,
            Want::Read if self.keeps_no_copy(request.side) => entry.sharers,
            Want::Read => entry.sharers | own,
        };
        let is_owned = match request.side {
            // The data cache of the same core may own it.
            Side::Instruction | Side::Walker => entry.is_owned && others == 0,
            _ => request.want == Want::Own || sharers == own && entry.state != State::Shared,
        };
        let entry = self.shared[last].array.line_mut(in_last);
        entry.sharers = sharers;
        entry.is_owned = is_owned;
        entry.is_contended = is_contended;
        let mut there = entry.ready;
        if level < last {
            let newest = *entry;
            let upper = self.shared[level].array.get_mut(request.line).expect("it hit there");
            upper.update(newest.version, newest.ready);
            there = upper.ready;
        }
        cycle.max(there) + snoop
    }

    /// Whether what that side of a core reads goes into none of its caches.
    fn keeps_no_copy(&self, side: Side) -> bool {
        side == Side::Walker && self.private.is_empty()
    }

    /// Takes a core's copy away, or its right to write it; what it has that is newer goes to the last level. Says
    /// whether there was such.
    pub(super) fn snoop_core(&mut self, core: usize, line: LineAddress, invalidate: bool) -> bool {
        let newest = if invalidate { self.invalidate_core(core, line) } else { self.newest_modified(core, line) };
        if !invalidate {
            let private = self.private.iter_mut().map(|level| &mut level.arrays[core]);
            for copy in private.chain([&mut self.l1d[core]]).filter_map(|array| array.get_mut(line)) {
                copy.state = State::Shared;
                if let Some((version, stored)) = newest {
                    copy.update(version, stored);
                }
            }
        }
        if let Some((version, stored)) = newest {
            self.store_in_last(line, version, stored);
        }
        newest.is_some()
    }

    /// Takes all copies of a core away; gives what [`Hierarchy::newest_modified`] says of them.
    fn invalidate_core(&mut self, core: usize, line: LineAddress) -> Option<(Version, u64)> {
        let private = self.private.iter_mut().map(|level| &mut level.arrays[core]);
        let copies = private.chain([&mut self.l1d[core]]).filter_map(|array| array.remove(line));
        let newest =
            copies.filter(|copy| copy.state == State::Modified).map(|copy| (copy.version, copy.settled())).max();
        self.l1i[core].remove(line);
        newest
    }

    /// Enters a newer version of a line, stored in cycle `stored`, into every shared level that has it.
    fn store_in_last(&mut self, line: LineAddress, version: Version, stored: u64) {
        for level in &mut self.shared {
            if let Some(entry) = level.array.get_mut(line) {
                entry.update(version, stored);
                entry.state = State::Modified;
            }
        }
    }

    /// Puts a granted line, which lies at `in_last` in the last level, into the requester's private caches; gives its
    /// version.
    pub(super) fn fill_first_level(&mut self, request: &Request, in_last: usize, ready: u64) -> Version {
        let last = self.shared.len() - 1;
        let entry = self.shared[last].array.line(in_last);
        let state = if entry.is_owned { State::Exclusive } else { State::Shared };
        let content = Line { is_contended: entry.is_contended, ..Line::new(state, entry.version, ready) };
        self.fill_private(request, content, self.private.len());
        content.version
    }

    /// Puts a line into the private levels above `below` and the first level.
    pub(super) fn fill_private(&mut self, request: &Request, content: Line, below: usize) {
        let core = request.core;
        let above = match request.side {
            Side::Level(level) => usize::from(level),
            _ => 0,
        };
        for level in (above..below).rev() {
            self.insert_private(level, core, request.line, content);
        }
        match request.side {
            Side::Walker => self.given_up(core, request.line),
            Side::Level(_) => {}
            Side::Instruction => {
                let array = &mut self.l1i[core];
                if array.find(request.line).is_none() {
                    let place = array.place_for(request.line);
                    if place.victim.is_some() {
                        array.remove_at(place.index);
                    }
                    array.insert_at(place.index, request.line, content);
                    if let Some(victim) = place.victim {
                        self.given_up(core, victim);
                    }
                }
            }
            Side::Data => self.insert_first_level(core, request.line, content),
        }
    }

    fn insert_first_level(&mut self, core: usize, line: LineAddress, content: Line) {
        if let Some(present) = self.l1d[core].get_mut(line) {
            present.state = present.state.max(content.state);
            present.version = present.version.max(content.version);
            present.ready = present.ready.max(content.ready);
            present.is_contended = content.is_contended;
            return;
        }
        let place = self.l1d[core].place_for(line);
        if let Some(victim) = place.victim {
            let old = self.l1d[core].remove_at(place.index);
            if old.state == State::Modified {
                self.stats.first_level_write_backs += 1;
                self.store_below(0, core, victim, old.version, old.settled());
            }
            self.given_up(core, victim);
        }
        self.l1d[core].insert_at(place.index, line, content);
    }

    fn insert_private(&mut self, level: usize, core: usize, line: LineAddress, content: Line) {
        let array = &mut self.private[level].arrays[core];
        if let Some(present) = array.get_mut(line) {
            present.state = present.state.max(content.state);
            present.update(content.version, content.ready);
            present.is_contended = content.is_contended;
            return;
        }
        let place = array.place_for(line);
        if let Some(victim) = place.victim {
            let mut old = array.remove_at(place.index);
            if self.private[level].is_inclusive {
                let levels = self.private[..level].iter_mut().map(|level| &mut level.arrays[core]);
                for above in levels.chain([&mut self.l1d[core]]).filter_map(|array| array.remove(victim)) {
                    if above.state == State::Modified {
                        old.state = State::Modified;
                        old.update(above.version, above.settled());
                    }
                }
                self.l1i[core].remove(victim);
            }
            if old.state == State::Modified {
                self.store_below(level + 1, core, victim, old.version, old.settled());
            }
            self.given_up(core, victim);
        }
        self.private[level].arrays[core].insert_at(place.index, line, content);
    }

    /// Writes a victim, stored in cycle `stored`, back into the next level that has the line.
    fn store_below(&mut self, from: usize, core: usize, line: LineAddress, version: Version, stored: u64) {
        for level in &mut self.private[from..] {
            if let Some(copy) = level.arrays[core].get_mut(line) {
                copy.state = State::Modified;
                copy.update(version, stored);
                return;
            }
        }
        self.store_in_last(line, version, stored);
    }

    /// Collects the newest dirty version of a line from all caches, which are clean or empty of it afterwards, with the
    /// cycle from which on it can be had. Also says whether another core than `by` had to be asked.
    pub(super) fn collect(
        &mut self,
        line: LineAddress,
        by: Option<usize>,
        keep: bool,
    ) -> (Option<(Version, u64)>, bool) {
        let last = self.shared.len() - 1;
        match self.shared[last].array.find(line) {
            Some(index) => self.collect_at(index, line, by, keep),
            None => (self.collect_from_last(line, keep), false),
        }
    }

    /// The same for the line at `index` of the last level.
    fn collect_at(
        &mut self,
        index: usize,
        line: LineAddress,
        by: Option<usize>,
        keep: bool,
    ) -> (Option<(Version, u64)>, bool) {
        let last = self.shared.len() - 1;
        let entry = *self.shared[last].array.line(index);
        let own = by.map_or(0, |core| 1u64 << core);
        let snooped = entry.sharers & !own != 0 && (entry.is_owned || !keep);
        for core in 0..self.l1d.len() {
            if entry.sharers & (1 << core) == 0 {
                continue;
            }
            if keep {
                self.clean_core(core, line);
            } else {
                self.snoop_core(core, line, true);
            }
        }
        let entry = *self.shared[last].array.line(index);
        let newest = (entry.state == State::Modified).then_some((entry.version, entry.ready));
        let (last, above) = self.shared.split_last_mut().expect("there is a last level");
        if keep {
            let kept = std::iter::once(last.array.line_mut(index));
            let copies = kept.chain(above.iter_mut().filter_map(|level| level.array.get_mut(line)));
            copies.for_each(|copy| copy.state = copy.state.min(State::Exclusive));
        } else {
            last.array.remove_at(index);
            above.iter_mut().for_each(|level| _ = level.array.remove(line));
        }
        (newest, snooped)
    }

    /// Whether a line stays in the caches that `flush` writes back.
    pub(super) fn keeps_line(&self, flush: Flush) -> bool {
        !flush.invalidates() && self.cleaned.is_some()
    }

    /// Brings what a core has that is newer into the last level; the core keeps its copy, clean.
    fn clean_core(&mut self, core: usize, line: LineAddress) {
        let cleaned = self.cleaned.expect("a line that stays");
        let Some((version, stored)) = self.newest_modified(core, line) else { return };
        let private = self.private.iter_mut().map(|level| &mut level.arrays[core]);
        for array in private.chain([&mut self.l1d[core]]) {
            // Levels below the one that was Modified have been left behind; all are now what memory will hold.
            if let Some(copy) = array.get_mut(line) {
                copy.state = cleaned;
                copy.update(version, stored);
            }
        }
        let last = self.shared.len() - 1;
        if let Some(entry) = self.shared[last].array.get_mut(line) {
            entry.is_owned &= cleaned != State::Shared;
        }
        self.store_in_last(line, version, stored);
    }

    /// The newest version of a line that a core has and the last level does not, with the cycle from which on it can be
    /// had.
    pub(super) fn newest_modified(&self, core: usize, line: LineAddress) -> Option<(Version, u64)> {
        let private = self.private.iter().map(|level| &level.arrays[core]);
        let copies = private.chain([&self.l1d[core]]).filter_map(|array| array.get(line));
        copies.filter(|copy| copy.state == State::Modified).map(|copy| (copy.version, copy.settled())).max()
    }

    /// Enters a line that came from memory into all shared levels: gives where it lies in the last one, and the victim
    /// of that, which has left all caches, if it has to be written.
    pub(super) fn fill_shared(
        &mut self,
        line: LineAddress,
        state: State,
        version: Version,
        now: u64,
    ) -> (usize, Option<Victim>) {
        if self.exclusive.is_some() {
            return (self.enter_directory(line, Line::new(state, version, now)), None);
        }
        let last = self.shared.len() - 1;
        let place = self.shared[last].array.place_for(line);
        let victim = place.victim.and_then(|victim| self.evict(place.index, victim));
        self.shared[last].array.insert_at(place.index, line, Line::new(state, version, now));
        self.fill_upper(line, version, now);
        (place.index, victim)
    }

    /// Enters a line that the last level has into all shared levels above that.
    pub(super) fn fill_upper(&mut self, line: LineAddress, version: Version, now: u64) {
        for level in (0..self.shared.len() - 1).rev() {
            if self.shared[level].array.find(line).is_some() {
                continue;
            }
            let place = self.shared[level].array.place_for(line);
            if let Some(victim) = place.victim {
                self.evict_from_upper(level, place.index, victim);
            }
            self.shared[level].array.insert_at(place.index, line, Line::new(State::Exclusive, version, now));
        }
    }

    /// A line leaves a shared level above the last, which has it too.
    fn evict_from_upper(&mut self, level: usize, index: usize, victim: LineAddress) {
        if self.shared[level].is_inclusive {
            let sharers = self.shared[self.shared.len() - 1].array.get(victim).map_or(0, |entry| entry.sharers);
            for core in (0..self.l1d.len()).filter(|core| sharers & (1 << core) != 0) {
                self.snoop_core(core, victim, true);
            }
            (0..level).for_each(|above| _ = self.shared[above].array.remove(victim));
        }
        self.shared[level].array.remove_at(index);
    }

    /// The line at `index` of the last level leaves all caches.
    fn evict(&mut self, index: usize, line: LineAddress) -> Option<Victim> {
        let sharers = self.shared[self.shared.len() - 1].array.line(index).sharers;
        self.stats.back_invalidations += u64::from(sharers.count_ones());
        let (newest, _) = self.collect_at(index, line, None, false);
        newest.map(|(version, stored)| Victim { line, version, stored })
    }
}
