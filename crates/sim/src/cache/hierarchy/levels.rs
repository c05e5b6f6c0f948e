//! The levels behind the first, and how long ways through them take.

use super::{Hierarchy, Request, Side, Want};
use crate::cache::array::{CacheArray, Line, State};
use crate::cache::prefetcher::Prefetcher;
use crate::cache::stats::LevelStats;
use fencepost_kernel::line::Version;

/// A level of which each core has one.
#[derive(Clone, Debug)]
pub(super) struct PrivateLevel {
    /// Cycles of a lookup.
    pub latency: u64,
    /// Cycles from data here to the level above.
    pub response: u64,
    pub is_inclusive: bool,
    /// By core.
    pub arrays: Vec<CacheArray>,
    /// By core, if it has one.
    pub prefetchers: Option<Vec<Prefetcher>>,
    /// With so many MSHRs taken it fetches nothing ahead.
    pub prefetch_mshrs: usize,
    pub stats: LevelStats,
}

/// A level that all cores share.
#[derive(Clone, Debug)]
pub(super) struct SharedLevel {
    /// Cycles of a lookup.
    pub latency: u64,
    /// Cycles from data here to the level above.
    pub response: u64,
    pub is_inclusive: bool,
    pub array: CacheArray,
    pub stats: LevelStats,
}

impl Hierarchy {
    /// Looks for the line of `request`, which is at `level` at `cycle`: gives when the core has it, and in which
    /// version, if it is there.
    pub(super) fn look_into(&mut self, level: usize, request: &Request, cycle: u64) -> Option<(u64, Version)> {
        match level.checked_sub(self.private.len()) {
            None => self.look_into_private(level, request, cycle),
            Some(shared) => self.look_into_shared(shared, request, cycle),
        }
    }

    pub(super) fn look_into_private(&mut self, level: usize, request: &Request, cycle: u64) -> Option<(u64, Version)> {
        let array = &mut self.private[level].arrays[request.core];
        let index = array
            .find_and_touch(request.line)
            .filter(|&index| request.want == Want::Read || array.line(index).state != State::Shared)?;
        let line = *array.line(index);
        let response: u64 = self.private[..=level].iter().map(|level| level.response).sum();
        let ready = cycle.max(line.ready) + response + self.to_core(request.side);
        let content = Line { is_contended: line.is_contended, ..Line::new(line.state, line.version, ready) };
        self.fill_private(request, content, level);
        Some((ready, line.version))
    }

    fn look_into_shared(&mut self, level: usize, request: &Request, cycle: u64) -> Option<(u64, Version)> {
        let (index, in_last) = if level == self.shared.len() - 1 {
            let index = self.find_sufficient(request)?;
            (index, index)
        } else {
            let index = self.shared[level].array.find_and_touch(request.line)?;
            let in_last = self.in_last(request.line);
            if !self.suffices(request, in_last) {
                return None;
            }
            (index, in_last)
        };
        let there = self.grant(request, level, in_last, cycle);
        let ready = there + self.way_back(level) + self.to_core(request.side);
        if level > 0 {
            // The shared levels that it missed get it too.
            let version = self.shared[level].array.line(index).version;
            self.fill_upper(request.line, version, there);
        }
        Some((ready, self.fill_first_level(request, in_last, ready)))
    }

    pub(super) fn latency(&self, level: usize) -> u64 {
        let private = self.private.len();
        if level < private { self.private[level].latency } else { self.shared[level - private].latency }
    }

    pub(super) fn level_stats(&mut self, level: usize) -> &mut LevelStats {
        let private = self.private.len();
        if level < private { &mut self.private[level].stats } else { &mut self.shared[level - private].stats }
    }

    /// Cycles from the last level's knowledge that a write is complete to the core's.
    pub(super) fn acknowledge_latency(&self) -> u64 {
        self.way_back(self.shared.len() - 1) + self.data_response
    }

    /// Cycles from a fill of a first level to the core.
    pub(super) fn to_core(&self, side: Side) -> u64 {
        match side {
            Side::Data => self.data_response,
            Side::Instruction => self.code_response,
            Side::Walker | Side::Level(_) => 0,
        }
    }

    /// Cycles from data in the shared level `level` to the first level.
    pub(super) fn way_back(&self, level: usize) -> u64 {
        let private: u64 = self.private.iter().map(|level| level.response).sum();
        private + self.shared[..=level].iter().map(|level| level.response).sum::<u64>()
    }
}
