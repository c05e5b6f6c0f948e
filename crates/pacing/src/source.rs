//! Where a channel's count of bytes comes from, and how far it can be off.

use crate::Bandwidth;

/// Who counts a channel's bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Source {
    /// An event counter of the core. The events for CXL count reads, reads for ownership and prefetches;
    /// non-temporal stores and write-backs only where `counts_writes`.
    HardwareCounter {
        /// Whether stores that do not read first, and write-backs, are counted too.
        counts_writes: bool,
    },
    /// Memory bandwidth monitoring of the last-level cache (resctrl), by group of threads. It counts all memory, so
    /// traffic to other memory is charged to the channel as well.
    Mbm {
        /// Whether non-temporal stores and evicted dirty lines are counted too. AMD lets one choose
        /// (`mbm_total_bytes_config`); of other processors it is not known.
        counts_writes: bool,
    },
    /// The program says what it has moved.
    SelfReported,
    /// So many bytes per second of CPU time, whatever the program does in it. No program can run without being charged.
    CpuTime {
        /// Bytes charged per second of CPU time.
        charged: Bandwidth,
    },
}

impl Source {
    /// The most bytes that a channel can move for each byte that is counted, over a link that carries `link`: a channel
    /// that does so gets so many times its share. `None` where there is no such bound.
    pub fn understated_max(self, link: Bandwidth) -> Option<f64> {
        match self {
            Source::HardwareCounter { counts_writes: true } | Source::Mbm { counts_writes: true } => Some(1.0),
            // Non-temporal stores move bytes of which none is counted.
            Source::HardwareCounter { counts_writes: false } | Source::Mbm { counts_writes: false } => None,
            Source::SelfReported => None,
            Source::CpuTime { charged } => link.over(charged).map(|factor| factor.max(1.0)),
        }
    }
}
