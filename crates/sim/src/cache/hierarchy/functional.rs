//! Accesses that take no time: to warm the caches up.

use super::coherence::Victim;
use super::{Hierarchy, Request, Side, Want};
use crate::cache::array::State;
use fencepost_isa::micro_op::Flush;
use fencepost_kernel::address_map::is_pm;
use fencepost_kernel::line::{LineAddress, Version};
use fencepost_kernel::message::Cause;

impl Hierarchy {
    /// Performs an access at once and without time: to warm the caches up.
    #[inline]
    pub fn access_functionally(&mut self, request: Request) {
        if !self.hits_functionally(&request) {
            self.miss_functionally(request);
        }
    }

    /// Performs an access if its first level can serve it.
    #[inline]
    pub fn hits_functionally(&mut self, request: &Request) -> bool {
        let first_level = match request.side {
            Side::Data => &mut self.l1d[request.core],
            Side::Instruction => &mut self.l1i[request.core],
            Side::Walker | Side::Level(_) => return false,
        };
        let Some(index) = first_level.find_and_touch(request.line) else { return false };
        if request.want == Want::Own {
            let line = first_level.line_mut(index);
            if line.state == State::Shared {
                return false;
            }
            line.state = State::Modified;
            line.version.0 += 1;
        }
        true
    }

    /// An access that its first level cannot serve.
    #[inline(never)]
    pub fn miss_functionally(&mut self, request: Request) {
        self.fetch_functionally(&request, 0);
        if request.want == Want::Own {
            let line = self.l1d[request.core].get_mut(request.line).expect("it was just filled");
            line.state = State::Modified;
            line.version.0 += 1;
        }
        if !self.worthwhile.is_empty() {
            self.prefetch_functionally();
        }
    }

    /// Brings a line from the level `from` or below.
    pub(super) fn fetch_functionally(&mut self, request: &Request, from: usize) {
        let mut is_private = false;
        for level in from..self.private.len() {
            is_private = self.look_into_private(level, request, 0).is_some();
            self.private[level].stats.count(is_private);
            self.train(level, request, 0);
            if is_private {
                break;
            }
        }
        if !is_private {
            let last = self.shared.len() - 1;
            let mut above = (0..last).zip(&mut self.shared);
            let hit = above.find_map(|(level, shared)| Some((level, shared.array.find_and_touch(request.line)?)));
            let hit = hit.or_else(|| Some((last, self.find_held_and_touch(request.line)?)));
            let (level, in_last) = match hit {
                Some((level, index)) if level == last => (last, index),
                Some((level, _)) => (level, self.in_last(request.line)),
                None => {
                    let version = self.written.get(request.line.0);
                    self.stats.llc_misses += 1;
                    self.stats.functional.count_read(request);
                    let (in_last, victim) = self.fill_shared(request.line, State::Exclusive, version, 0);
                    if let Some(Victim { line, version, stored }) = victim {
                        self.write_functionally(line, version, Cause::Writeback, stored);
                    }
                    (last, in_last)
                }
            };
            self.grant(request, level, in_last, 0);
            self.fill_first_level(request, in_last, 0);
        }
        self.write_left_functionally();
    }

    /// Flushes a line at once and without time.
    pub fn flush_functionally(&mut self, line: LineAddress, flush: Flush) {
        let persists = self.point_of_coherence.persists(flush);
        self.stats.functional.flushes_without_promise += u64::from(is_pm(line) && !persists);
        self.write_back_functionally(line, flush);
    }

    /// The same for what belongs to a flush that is counted elsewhere.
    pub fn write_back_functionally(&mut self, line: LineAddress, flush: Flush) {
        let persists = self.point_of_coherence.persists(flush);
        if let (Some((version, _)), _) = self.collect(line, None, self.keeps_line(flush)) {
            let cause = if persists { Cause::Flush } else { Cause::FlushWithoutPromise };
            self.write_functionally(line, version, cause, 0);
        }
    }

    /// Writes around the caches at once and without time.
    pub fn write_around_functionally(&mut self, line: LineAddress) {
        let (newest, _) = self.collect(line, None, false);
        let last = newest.map_or_else(|| self.written.get(line.0), |(version, _)| version);
        self.write_functionally(line, Version(last.0 + 1), Cause::NonTemporalStore, 0);
    }

    /// Whether this socket may do that with `line`; there are several.
    pub fn may(&self, want: Want, line: LineAddress) -> bool {
        self.held(line).is_some_and(|entry| want == Want::Read || entry.state != State::Shared)
    }

    /// Shares a line with another socket, or gives it up: gives the version that was dirty here, which is written.
    pub fn give_functionally(&mut self, line: LineAddress, to_write: bool) -> Version {
        let (newest, _) = if to_write { self.collect(line, None, false) } else { self.share(line) };
        let Some((version, stored)) = newest else { return Version(0) };
        self.write_functionally(line, version, Cause::Writeback, stored);
        version
    }

    /// Drops a line: gives the version that was dirty here.
    pub fn drop_functionally(&mut self, line: LineAddress) -> Version {
        self.collect(line, None, false).0.map_or(Version(0), |(version, _)| version)
    }

    /// Has a line in that state, and in that version if it was not here.
    pub fn take_functionally(&mut self, request: &Request, state: State, version: Version) {
        self.stats.llc_misses += 1;
        self.stats.functional.count_read(request);
        let last = self.shared.len() - 1;
        if let Some(in_last) = self.find_held(request.line) {
            self.shared[last].array.line_mut(in_last).state = state;
            return self.write_left_functionally();
        }
        let (_, victim) = self.fill_shared(request.line, state, version, 0);
        if let Some(Victim { line, version, stored }) = victim {
            self.write_functionally(line, version, Cause::Writeback, stored);
        }
        self.write_left_functionally();
    }

    /// Memory has what leaves in `cycle` while warming up at once; for PM it is told before timing starts.
    pub fn write_functionally(&mut self, line: LineAddress, version: Version, cause: Cause, cycle: u64) {
        self.stats.functional.count_write(line, cause);
        if is_pm(line) {
            self.leave_for_pm(line, version, cycle);
        }
        if self.is_one_of_several {
            self.functional_writes.push((line, version));
        } else if is_pm(line) {
            self.keep_warm_write(line, version);
        }
    }

    /// What has been written without time since the last call, where there are several sockets.
    pub fn take_functional_writes(&mut self) -> Vec<(LineAddress, Version)> {
        std::mem::take(&mut self.functional_writes)
    }

    /// Keeps what has been written to PM without time for [`Hierarchy::take_warm_writes`].
    pub fn keep_warm_write(&mut self, line: LineAddress, version: Version) {
        self.warm_writes_made += 1;
        self.warm_writes.insert(line, (version, self.warm_writes_made));
    }

    /// The PM lines that were written while warming up, the one written last behind all others; they are forgotten
    /// here.
    pub fn take_warm_writes(&mut self) -> Vec<(LineAddress, Version)> {
        let mut writes: Vec<_> = self.warm_writes.drain().collect();
        writes.sort_unstable_by_key(|(_, (_, order))| *order);
        writes.into_iter().map(|(line, (version, _))| (line, version)).collect()
    }
}
