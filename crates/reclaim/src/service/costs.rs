//! What a backend's work takes: measured elsewhere, by replays of the code that does it or on the simulated device.

use rustc_hash::FxHashMap;
use serde::Deserialize;

use crate::linux::memory::Job;
use crate::page::Class;

/// What one piece of work takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Of the core that has it done, in ns: all of it, or the hand-over.
    pub core_ns: f64,
    /// Of the device, which does one after the other, in ns.
    pub device_ns: f64,
    /// Over the device's link, both ways.
    pub link_bytes: u64,
}

/// A backend.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// By how far a page compresses.
    pub compress: FxHashMap<Class, Step>,
    /// Likewise.
    pub decompress: FxHashMap<Class, Step>,
    /// ksm's checksum of a page.
    pub hash: Step,
    /// A comparison that ends in the first line.
    pub compare_line: Step,
    /// A comparison of whole pages.
    pub compare_page: Step,
    /// Of the core, in ns, for each job that is handed over to the device together with another.
    pub further_job_ns: f64,
    /// A copy of a page, by the core.
    pub copy: Step,
    /// A page fault in all but the work on pages, in ns.
    pub fault_ns: f64,
    /// Reclaiming a page in all but the work on its contents, in ns.
    pub reclaim_page_ns: f64,
    /// A switch of a core to another task, in ns.
    pub switch_ns: f64,
    /// A page from the swap device, in ns.
    pub swap_read_ns: f64,
    /// Submitting a page to it, in ns of the core: nobody waits for the write.
    pub swap_write_ns: f64,
    /// Lines that compression reads and writes besides the page and what becomes of it.
    pub scratch_lines: u32,
    /// Whether the work is a core's, and its lines pass that core's caches.
    pub on_core: bool,
}

impl Costs {
    /// What a job takes; none for those of the swap device.
    #[must_use]
    pub fn of(&self, job: Job) -> Option<Step> {
        match job {
            Job::Compress { class, .. } => self.compress.get(&class).copied(),
            Job::Decompress { class, .. } => self.decompress.get(&class).copied(),
            Job::Hash { .. } => Some(self.hash),
            Job::Copy { .. } => Some(self.copy),
            Job::Unmap { .. } => Some(Step { core_ns: self.reclaim_page_ns, ..Step::default() }),
            Job::Compare { lines, .. } => Some(between(self.compare_line, self.compare_page, lines)),
            Job::SwapRead { .. } | Job::SwapWrite { .. } => None,
        }
    }
}

/// A comparison of so many lines: between one of a line and one of 64.
fn between(line: Step, page: Step, lines: u32) -> Step {
    let part = f64::from(lines.saturating_sub(1)) / 63.0;
    let mix = |low: f64, high: f64| low + (high - low) * part;
    Step {
        core_ns: mix(line.core_ns, page.core_ns),
        device_ns: mix(line.device_ns, page.device_ns),
        link_bytes: mix(line.link_bytes as f64, page.link_bytes as f64) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_costs_by_the_lines_that_it_reads() {
        let line = Step { core_ns: 10.0, device_ns: 0.0, link_bytes: 64 };
        let page = Step { core_ns: 640.0, device_ns: 63.0, link_bytes: 4096 };
        assert_eq!([between(line, page, 1), between(line, page, 64)], [line, page]);
        assert_eq!(between(line, page, 22), Step { core_ns: 220.0, device_ns: 21.0, link_bytes: 1408 });
    }
}
