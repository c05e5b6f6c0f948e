//! The snoop filter of a device's own memory: which lines its host may have, in as many places as it has.
//!
//! It is inclusive: a line that gets a place takes another one's, and the host has to give that one up.

use super::tags::CacheTags;
use crate::device::type2::DeviceCacheConfig;
use crate::device::type2::device_memory::Meta;
use fencepost_kernel::line::LineAddress;
use fencepost_kernel::stats::StatsNode;

/// The filter.
#[derive(Clone, Debug)]
pub(super) struct SnoopFilter {
    tags: CacheTags,
    /// Snoops for accesses of the device.
    pub snoops: u64,
    /// Snoops for lines that had to leave the filter.
    pub evictions: u64,
    /// Snoops that crossed a request of the host.
    pub conflicts: u64,
}

impl SnoopFilter {
    /// An empty one with as many places as a cache like `config`.
    pub fn new(config: &DeviceCacheConfig) -> SnoopFilter {
        SnoopFilter { tags: CacheTags::new(config), snoops: 0, evictions: 0, conflicts: 0 }
    }

    /// The host may have `host` of a line from now on. The line that has to leave the filter for it, if one has to.
    pub fn follow(&mut self, line: LineAddress, host: Meta) -> Option<LineAddress> {
        if host != Meta::Invalid {
            return self.tags.touch(line);
        }
        self.tags.remove(line);
        None
    }

    /// Forgets all lines.
    pub fn clear(&mut self) {
        self.tags.drain();
    }

    pub fn to_node(&self) -> StatsNode {
        let counters = [("snoops", self.snoops), ("evictions", self.evictions), ("conflicts", self.conflicts)];
        StatsNode::group(counters.map(|(name, count)| (name.to_owned(), StatsNode::Counter(count))))
    }
}
