//! Which device of the pool a line belongs to.

use std::ops::Range;

use super::Interleave;
use fencepost_kernel::line::LineAddress;

/// The devices of the pool by lines.
#[derive(Clone, Debug, Default)]
pub struct DeviceMap {
    /// The devices of each range of lines, by their numbers.
    pub ranges: Vec<(Range<LineAddress>, Interleave, Vec<usize>)>,
    /// How many devices there are.
    pub devices: usize,
}

impl DeviceMap {
    /// The number of the device that `line` lies in; none of a line of the host's own memory.
    #[inline]
    pub fn device(&self, line: LineAddress) -> Option<usize> {
        let (_, interleave, devices) = self.ranges.iter().find(|(range, ..)| range.contains(&line))?;
        Some(devices[interleave.way(line)])
    }
}
