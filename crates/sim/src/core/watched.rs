//! Stores that other threads wait for: to words at which they wait, and in replays that keep the order of writes.

use std::collections::VecDeque;

use super::pipeline::Core;
use super::write_order::Writes;
use fencepost_kernel::line::LINE_BYTES;

/// The stores of a core that other threads wait for.
#[derive(Clone, Default)]
pub struct Watched {
    /// Lines with words at which threads wait, one bit each, by [`watch_bit`].
    filter: u64,
    /// Stores to such lines that the host has not dealt with.
    pub stores: Vec<WatchedStore>,
    /// Writes that others wait for, each with the number of entries that the store queue had been given by then.
    marks: VecDeque<(u64, Writes)>,
}

impl Watched {
    /// Power is gone.
    pub(super) fn power_fail(&mut self) {
        self.marks.clear();
    }
}

/// A store to a line with a word at which threads wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchedStore {
    /// Physical address.
    pub address: u64,
    /// Bytes.
    pub size: u16,
    /// The cycle in which it took effect.
    pub cycle: u64,
}

/// The bit of a line in the filters of watched words: by the low six bits of its number.
fn watch_bit(word: u64) -> u64 {
    1 << ((word / 64) & 63)
}

impl Core {
    /// Starts noting stores to the line of this word.
    pub fn watch_word(&mut self, word: u64) {
        self.watched.filter |= watch_bit(word);
    }

    /// Notes a store that may be to a word at which threads wait.
    #[inline]
    pub(super) fn watch(&mut self, address: u64, size: u16, cycle: u64) {
        if self.watched.filter == 0 {
            return;
        }
        let last = address + u64::from(size.max(1)) - 1;
        if (address / LINE_BYTES..=last / LINE_BYTES).any(|line| self.watched.filter & (1 << (line & 63)) != 0) {
            self.watched.stores.push(WatchedStore { address, size, cycle });
        }
    }

    /// Marks the writes that the thread has made so far: other threads wait for them.
    pub(super) fn mark_writes(&mut self, writes: Writes) {
        self.watched.marks.push_back((self.stores.entered(), writes));
    }

    /// The next marked writes that have taken effect since the last call, with the cycle.
    pub fn take_performed(&mut self) -> Option<(Writes, u64)> {
        let (entered, _) = self.watched.marks.front()?;
        let is_performed = *entered <= self.stores.known();
        is_performed.then(|| self.watched.marks.pop_front().map(|(_, writes)| (writes, self.effects.cycle))).flatten()
    }
}
