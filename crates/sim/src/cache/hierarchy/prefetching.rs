//! What the private levels behind the first fetch ahead for themselves.
//!
//! A line that a level fetches ahead takes one of its MSHRs, and is dropped if there is none, or if `prefetch_mshrs`
//! are taken. It comes into that level and those below, but no higher. It is dropped as well where it would take a core
//! a line that this core has been granted and has not got yet: the core would ask again, its prefetcher learn from
//! that, and so for ever.

use super::{Hierarchy, Request, Side, Want};
use crate::cache::mshr::Room;
use crate::cache::prefetcher::Prefetcher;
use fencepost_kernel::line::LineAddress;
use fencepost_kernel::message::Cause;

/// A line that is worth having.
#[derive(Clone, Copy, Debug)]
pub(super) struct Worthwhile {
    core: usize,
    level: usize,
    line: LineAddress,
    /// The cycle from which on it is.
    cycle: u64,
}

impl Worthwhile {
    fn request(self) -> Request {
        let Worthwhile { core, level, line, cycle } = self;
        let side = Side::Level(level as u8);
        Request { core, line, want: Want::Read, side, cause: Cause::Prefetch, issued: cycle }
    }
}

impl Hierarchy {
    /// `request` has looked into `level` at `cycle`: its prefetcher, if it has one, learns from it.
    #[inline]
    pub(super) fn train(&mut self, level: usize, request: &Request, cycle: u64) {
        if let Some(private) = self.private.get_mut(level)
            && let Some(prefetchers) = &mut private.prefetchers
        {
            observe(&mut prefetchers[request.core], level, request, cycle, &mut self.worthwhile);
        }
    }

    /// Fetches what has become worth having.
    #[inline]
    pub(super) fn prefetch(&mut self) {
        if !self.worthwhile.is_empty() {
            self.prefetch_all();
        }
    }

    fn prefetch_all(&mut self) {
        let mut worthwhile = std::mem::take(&mut self.worthwhile);
        for ahead in worthwhile.drain(..) {
            let Worthwhile { core, level, line, cycle } = ahead;
            if self.private[level].arrays[core].find(line).is_some() || self.between.is_missing(level, core, line) {
                continue;
            }
            let has_room = self.between.room(level, core, cycle) == Room::Now
                && self.between.taken(level, core, cycle) < self.private[level].prefetch_mshrs;
            if !has_room || self.displaces_awaited(line, cycle) {
                let private = &mut self.private[level];
                private.stats.dropped_prefetches += 1;
                continue;
            }
            self.private[level].stats.prefetches += 1;
            let request = ahead.request();
            self.between.claim(level, &request, cycle);
            // No request waits for the outcome: the line is entered here, or when memory has answered.
            self.descend(request, level + 1, true, cycle);
        }
        self.worthwhile = worthwhile;
    }

    /// Whether `line` would take the place of one that is still on its way to a core at `cycle`.
    fn displaces_awaited(&self, line: LineAddress, cycle: u64) -> bool {
        let directory = &self.shared[self.shared.len() - 1].array;
        if directory.find(line).is_some() {
            return false;
        }
        let place = directory.place_for(line);
        let Some(victim) = place.victim else { return false };
        let sharers = directory.line(place.index).sharers;
        let mut copies = (0..self.l1d.len()).filter(|core| sharers & (1 << core) != 0);
        copies.any(|core| self.l1d[core].get(victim).is_some_and(|copy| copy.ready > cycle))
    }

    /// Fetches at once and without time. Where there are several sockets nothing is: it would take asking their home
    /// agents, and what is warmed there is no sample, whose intervals begin with what was prefetched.
    pub(super) fn prefetch_functionally(&mut self) {
        let mut worthwhile = std::mem::take(&mut self.worthwhile);
        for ahead in worthwhile.drain(..) {
            let Worthwhile { core, level, line, .. } = ahead;
            if !self.is_one_of_several && self.private[level].arrays[core].find(line).is_none() {
                self.private[level].stats.prefetches += 1;
                self.fetch_functionally(&ahead.request(), level + 1);
            }
        }
        self.worthwhile = worthwhile;
    }
}

/// Only what the first-level data cache asks for is learnt from.
fn observe(prefetcher: &mut Prefetcher, level: usize, request: &Request, cycle: u64, worthwhile: &mut Vec<Worthwhile>) {
    if request.side == Side::Data {
        let core = request.core;
        let lines = prefetcher.observe_line(request.line);
        worthwhile.extend(lines.map(|line| Worthwhile { core, level, line, cycle }));
    }
}
