//! The MSHRs of the levels between the first and the last: how many distinct lines may be missing in each at a time.
//!
//! A request that misses such a level goes on when it has a register there; one whose line is missing already goes on
//! at once and is merged below. The last level, whose registers hold the requests that wait for memory, keeps its own.

use super::hierarchy::Request;
use super::mshr::{MshrFile, Room};
use fencepost_kernel::line::LineAddress;

/// A request that found no register.
#[derive(Clone, Copy, Debug)]
pub struct Blocked {
    /// The request.
    pub request: Request,
    /// The level that has none for it.
    pub level: usize,
    /// The cycle in which it missed there.
    pub missed: u64,
}

/// The registers of these levels, nearest first.
#[derive(Clone, Debug)]
pub struct MshrsBetween {
    /// A file for each core where a level is private, else one.
    levels: Vec<Vec<MshrFile<()>>>,
    blocked: Vec<Blocked>,
}

impl MshrsBetween {
    /// For each level how many files it has, and how many registers are in each.
    pub fn new(levels: impl Iterator<Item = (usize, u16)>) -> MshrsBetween {
        let files = |(files, mshrs)| (0..files).map(|_| MshrFile::new(usize::from(mshrs))).collect();
        MshrsBetween { levels: levels.map(files).collect(), blocked: Vec::new() }
    }

    /// `request` has missed `level` at `cycle`: gives when it goes on; none if that is not known, and it has to wait in
    /// [`MshrsBetween::take_blocked`].
    #[inline]
    pub fn claim(&mut self, level: usize, request: &Request, cycle: u64) -> Option<u64> {
        let Some(files) = self.levels.get_mut(level) else { return Some(cycle) };
        let core = request.core.min(files.len() - 1);
        let file = &mut files[core];
        if file.find(request.line).is_some() {
            return Some(cycle);
        }
        let start = match file.room(cycle) {
            Room::Now => cycle,
            Room::At(later) => later,
            Room::Unknown => {
                self.blocked.push(Blocked { request: *request, level, missed: cycle });
                return None;
            }
        };
        file.allocate(request.line, (), start);
        Some(start)
    }

    /// Whether `line` is missing in that level of a core already.
    pub fn is_missing(&mut self, level: usize, core: usize, line: LineAddress) -> bool {
        self.levels.get_mut(level).is_some_and(|files| files[core].find(line).is_some())
    }

    /// Whether a private level has a register for a core at `cycle`; where it is the last one, others are kept there.
    pub fn room(&self, level: usize, core: usize, cycle: u64) -> Room {
        self.levels.get(level).map_or(Room::Now, |files| files[core].room(cycle))
    }

    /// How many registers of a private level a core has taken at `cycle`; none where it is the last level.
    pub fn taken(&self, level: usize, core: usize, cycle: u64) -> usize {
        self.levels.get(level).map_or(0, |files| files[core].taken(cycle))
    }

    /// The line of `request` is on its way up, and there at `ready`: its registers are free from then on.
    #[inline]
    pub fn release(&mut self, request: &Request, ready: u64) {
        for files in &mut self.levels {
            let core = request.core.min(files.len() - 1);
            files[core].resolve(request.line, ready);
        }
    }

    /// Requests that found no register, in the order they came; they are to look again.
    pub fn take_blocked(&mut self) -> Vec<Blocked> {
        std::mem::take(&mut self.blocked)
    }

    /// Requests that found no register.
    pub fn blocked(&self) -> impl Iterator<Item = &Request> {
        self.blocked.iter().map(|blocked| &blocked.request)
    }

    /// Whether no request waits for a register.
    pub fn is_idle(&self) -> bool {
        self.blocked.is_empty()
    }

    /// Forgets everything: power is gone.
    pub fn clear(&mut self) {
        self.levels.iter_mut().flatten().for_each(MshrFile::clear);
        self.blocked.clear();
    }
}
