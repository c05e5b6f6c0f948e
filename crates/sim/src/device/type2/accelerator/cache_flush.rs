//! Flushes of a whole cache of the device: set after set, one each cycle, every line that lies there is given up. A
//! flush is answered when all of these lines are where they belong. Lines that come into sets behind it stay.

use std::collections::VecDeque;

use super::{Accelerator, Asked, DeviceAccess, STEP, Step};
use crate::device::type2::wire::Trail;
use fencepost_kernel::Context;
use fencepost_kernel::message::Stage;
use fencepost_kernel::time::Duration;

/// The flushes of a device; one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Flushes {
    /// The first one is under way.
    asked: VecDeque<Asked>,
    /// What it waits for: the lines that are being given up, and the end of its way through the sets.
    left: usize,
}

impl Flushes {
    pub fn is_idle(&self) -> bool {
        self.asked.is_empty()
    }
}

impl Accelerator {
    /// A flush of a cache has come to the engine.
    pub(super) fn flush_cache(&mut self, asked: Asked, context: &mut Context<'_>) {
        self.flushes.asked.push_back(asked);
        if self.flushes.asked.len() == 1 {
            self.begin_flush(context);
        }
    }

    fn begin_flush(&mut self, context: &mut Context<'_>) {
        self.stats.cache_flushes += 1;
        self.flushes.left = 1;
        self.steps.at(context.now() + self.times.cycle, Step::Flushes(0), STEP, context);
    }

    /// The lines of a set are given up, and the next set has its turn.
    pub(super) fn flush_set(&mut self, set: usize, context: &mut Context<'_>) {
        let is_own = self.flushes.asked[0].access == DeviceAccess::FlushDeviceMemoryCache;
        let tags = if is_own { &self.own_tags } else { &self.tags };
        let is_last = set + 1 == tags.sets();
        let lines = tags.lines_of(set).to_vec();
        self.flushes.left += lines.len();
        self.stats.flushed_lines += lines.len() as u64;
        for line in lines {
            let trail = Trail::starting(context.now());
            let asked = Asked { access: DeviceAccess::FlushLine, line, trail, is_of_flush: true };
            match is_own {
                true => self.own_looked_up(asked, context),
                false => self.looked_up(asked, context),
            }
        }
        if is_last {
            self.line_flushed(context);
        } else {
            self.steps.at(context.now() + self.times.cycle, Step::Flushes(set + 1), STEP, context);
        }
    }

    /// One of the things that a flush waits for is done.
    pub(super) fn line_flushed(&mut self, context: &mut Context<'_>) {
        self.flushes.left -= 1;
        if self.flushes.left > 0 {
            return;
        }
        let mut asked = self.flushes.asked.pop_front().expect("a flush is under way");
        asked.trail.stack.charge(Stage::DeviceQueue, context.now());
        self.answer(asked, Duration::ZERO, context);
        if !self.flushes.asked.is_empty() {
            self.begin_flush(context);
        }
    }
}
