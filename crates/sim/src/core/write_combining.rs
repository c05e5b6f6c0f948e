//! Non-temporal stores that are being combined, and what is on its way to memory of them and of flushes.

use super::config::CoreConfig;
use fencepost_kernel::line::{ByteMask, LineAddress};

/// Non-temporal stores to one line, being combined.
#[derive(Clone, Copy, Debug)]
pub(super) struct Combined {
    pub(super) line: LineAddress,
    /// The bytes they write.
    pub(super) mask: ByteMask,
    /// When the youngest of them took effect.
    pub(super) youngest: u64,
    /// The cycle in which a load of the line first asked for it.
    pub(super) awaited: Option<u64>,
}

/// Non-temporal stores that are being combined, and what has been sent of them and of flushes.
#[derive(Clone, Debug)]
pub struct WriteCombining {
    pub(super) buffers: usize,
    pub(super) limit: usize,
    pub(super) open: Vec<Combined>,
    /// Lines of those that have been sent and are not complete, with what was sent.
    pub(super) written: Vec<(LineAddress, u32)>,
    /// When one of these was complete, or another store has joined them, until loads that wait have looked again.
    pub(super) returned: Option<u64>,
    /// Flushes and non-temporal stores under way whose completion is not known.
    pub(super) under_way: usize,
    /// When those are complete of which it is known.
    pub(super) completions: Vec<u64>,
    /// When the last of them that came back was complete.
    pub(super) last_complete: u64,
    pub(super) next_id: u32,
    /// The flush that holds the store queue.
    pub(super) holding: Option<u32>,
    /// When that flush was complete.
    pub(super) holding_complete: Option<u64>,
    /// Lines of what was sent, with the cycle at which it reaches the next level, as long as that cycle is to come.
    pub(super) sent: Vec<(LineAddress, u64)>,
}

impl WriteCombining {
    /// Nothing under way.
    pub fn new(config: &CoreConfig) -> WriteCombining {
        WriteCombining {
            buffers: usize::from(config.write_combining_buffers),
            limit: usize::from(config.flushes_in_flight),
            open: Vec::new(),
            written: Vec::new(),
            returned: None,
            under_way: 0,
            completions: Vec::new(),
            last_complete: 0,
            next_id: 0,
            holding: None,
            holding_complete: None,
            sent: Vec::new(),
        }
    }

    /// Whether nothing is being combined or under way.
    pub fn is_idle(&self) -> bool {
        self.open.is_empty() && self.under_way == 0
    }

    /// When the last flush or non-temporal store that came back was complete.
    pub fn last_complete(&self) -> u64 {
        self.last_complete
    }

    /// Whether a load of `line` at `cycle` waits: what was stored to it is in a buffer, which leaves for that, or on
    /// its way to memory.
    pub(super) fn holds_up_load(&mut self, line: LineAddress, cycle: u64) -> bool {
        match self.open.iter_mut().find(|open| open.line == line) {
            Some(open) => {
                open.awaited.get_or_insert(cycle);
                true
            }
            None => self.written.iter().any(|(written, _)| *written == line),
        }
    }

    pub(super) fn send(&mut self, line: LineAddress, reaches: u64) -> u32 {
        self.sent.push((line, reaches));
        self.under_way += 1;
        self.next_id = self.next_id.wrapping_add(1);
        self.next_id
    }

    /// The last cycle in which something sent for `line` has still to reach the next level, if that is not before
    /// `now`.
    pub(super) fn reaches(&mut self, line: LineAddress, now: u64) -> Option<u64> {
        self.sent.retain(|&(_, reaches)| reaches >= now);
        self.sent.iter().filter(|(sent, _)| *sent == line).map(|(_, reaches)| *reaches).max()
    }

    /// The first cycle from `cycle` on in which one more may be under way; none if that is not known.
    pub(super) fn room_at(&mut self, cycle: u64) -> Option<u64> {
        self.completions.retain(|&completion| completion > cycle);
        let too_many = (self.under_way + self.completions.len() + 1).saturating_sub(self.limit);
        if too_many == 0 {
            return Some(cycle);
        }
        self.completions.sort_unstable();
        self.completions.get(too_many - 1).copied()
    }
}
