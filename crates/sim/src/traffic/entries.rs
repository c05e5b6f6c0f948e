//! The last level's table of requests, which all streams of a host share.

use std::collections::VecDeque;

use fencepost_kernel::line::LineAddress;

/// A line that waits for an entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    /// Whose line it is.
    pub stream: u32,
    /// Of which of its requests.
    pub request: u16,
    pub line: LineAddress,
}

/// Entries that requests hold from their arrival at the last level until they are answered, hits like misses: the table
/// of requests (TOR) in the caching and home agents of Intel's Xeons. What finds none waits in the order of its
/// arrival, wherever it goes.
#[derive(Clone, Debug)]
pub(super) struct Entries {
    free: u32,
    waiting: VecDeque<Waiting>,
}

impl Entries {
    /// So many entries.
    pub fn new(entries: u32) -> Entries {
        Entries { free: entries, waiting: VecDeque::new() }
    }

    /// Takes an entry for `line`; if there is none, it waits for its turn.
    pub fn take(&mut self, line: Waiting) -> bool {
        if self.free > 0 {
            self.free -= 1;
            return true;
        }
        self.waiting.push_back(line);
        false
    }

    /// A line has been answered: gives its entry to the one that waits longest, if one does.
    pub fn hand_on(&mut self) -> Option<Waiting> {
        let next = self.waiting.pop_front();
        self.free += u32::from(next.is_none());
        next
    }

    /// Power is gone: nothing waits any longer.
    pub fn clear(&mut self) {
        self.waiting.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_finds_no_entry_waits_in_the_order_of_arrival() {
        let line = |stream| Waiting { stream, request: 0, line: LineAddress(7) };
        let mut entries = Entries::new(2);
        assert!(entries.take(line(0)) && entries.take(line(1)));
        assert!(!entries.take(line(2)) && !entries.take(line(3)));
        assert_eq!([entries.hand_on(), entries.hand_on()].map(|next| next.map(|line| line.stream)), [Some(2), Some(3)]);
        assert!(entries.hand_on().is_none() && entries.take(line(4)), "an entry that nobody waits for is free");
    }
}
