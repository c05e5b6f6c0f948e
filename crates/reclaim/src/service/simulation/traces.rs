//! What work on pages leaves in caches: a core's work passes its own, a device's result lies in the last level.

use rustc_hash::FxHashMap;

use crate::linux::memory::Job;
use crate::page::LINES;
use crate::service::caches::{Caches, Found};
use crate::service::costs::Costs;

/// The caches, and the lines that are of no page of the service: those of the pool, and what compression works in.
#[derive(Clone, Debug)]
pub struct Traces {
    caches: Caches,
    /// Whether a core does the work, and whether that passes its caches.
    is_on_core: bool,
    pollutes: bool,
    first_scratch_line: u32,
    scratch_lines: u32,
    /// Where the pool has a page's entry.
    pool_lines: FxHashMap<u32, u32>,
    first_free_line: u32,
}

impl Traces {
    /// Of a service with so many pages.
    pub fn new(caches: Caches, pages: u32, costs: &Costs, pollutes: bool) -> Self {
        let first_scratch_line = (pages + 1) * LINES;
        Self {
            caches,
            is_on_core: costs.on_core,
            pollutes: pollutes && costs.on_core,
            first_scratch_line,
            scratch_lines: costs.scratch_lines,
            pool_lines: FxHashMap::default(),
            first_free_line: first_scratch_line + costs.scratch_lines.next_multiple_of(LINES),
        }
    }

    /// A core of the service reads or writes a line.
    pub fn access(&mut self, core: usize, line: u32) -> Found {
        self.caches.access(core, line)
    }

    /// A job is done for a task of that core.
    pub fn leave(&mut self, core: usize, job: Job) {
        match job {
            // The page that the program waits for: a core has written it, or a device has pushed it.
            Job::Decompress { page, bytes, .. } => {
                if self.pollutes {
                    self.pool_access(core, page, bytes);
                }
                if self.is_on_core {
                    self.page_access(core, page, LINES);
                } else {
                    self.push(page);
                }
            }
            Job::Compress { page, bytes, .. } if self.pollutes => {
                self.page_access(core, page, LINES);
                for line in self.first_scratch_line..self.first_scratch_line + self.scratch_lines {
                    self.caches.access(core, line);
                }
                self.pool_access(core, page, bytes);
            }
            Job::Hash { page } if self.pollutes => self.page_access(core, page, LINES),
            Job::Compare { page, with, lines } if self.pollutes => {
                self.page_access(core, page, lines);
                self.page_access(core, with, lines);
            }
            // The swap device's DMA goes to the last level, as all DMA does.
            Job::SwapRead { page } => self.push(page),
            Job::Copy { page } => self.page_access(core, page, LINES),
            _ => {}
        }
    }

    fn push(&mut self, page: u32) {
        (page * LINES..(page + 1) * LINES).for_each(|line| self.caches.push(line));
    }

    fn page_access(&mut self, core: usize, page: u32, lines: u32) {
        for line in page * LINES..page * LINES + lines {
            self.caches.access(core, line);
        }
    }

    fn pool_access(&mut self, core: usize, page: u32, bytes: u32) {
        let free = &mut self.first_free_line;
        let first = *self.pool_lines.entry(page).or_insert_with(|| {
            *free += 2 * LINES;
            *free - 2 * LINES
        });
        for line in first..first + bytes.div_ceil(64).min(2 * LINES) {
            self.caches.access(core, line);
        }
    }
}
