//! What work on pages leaves in caches: a core's work passes its own, a device's result lies in the last level.

use super::Simulation;
use crate::linux::memory::Job;
use crate::page::LINES;
use crate::service::scheduler::TaskId;

impl Simulation<'_> {
    /// What a job leaves in caches.
    pub(super) fn leave_traces(&mut self, task: TaskId, job: Job) {
        let core = self.tasks[task].core;
        let (on_core, pollutes) = (self.setting.costs.on_core, self.setting.pollutes && self.setting.costs.on_core);
        match job {
            // The page that the program waits for: a core has written it, or a device has pushed it.
            Job::Decompress { page, bytes, .. } => {
                if pollutes {
                    self.pool_access(core, page, bytes);
                }
                for line in page * LINES..(page + 1) * LINES {
                    if on_core {
                        self.caches.access(core, line);
                    } else {
                        self.caches.push(line);
                    }
                }
            }
            Job::Compress { page, bytes, .. } if pollutes => {
                self.page_access(core, page, LINES);
                let scratch = (self.setting.is_anonymous.len() as u32 + 1) * LINES;
                for line in scratch..scratch + self.setting.costs.scratch_lines {
                    self.caches.access(core, line);
                }
                self.pool_access(core, page, bytes);
            }
            Job::Hash { page } if pollutes => self.page_access(core, page, LINES),
            Job::Compare { page, with, lines } if pollutes => {
                self.page_access(core, page, lines);
                self.page_access(core, with, lines);
            }
            // The swap device's DMA goes to the last level, as all DMA does.
            Job::SwapRead { page } => (page * LINES..(page + 1) * LINES).for_each(|line| self.caches.push(line)),
            Job::Copy { page } => self.page_access(core, page, LINES),
            _ => {}
        }
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
