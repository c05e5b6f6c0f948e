//! Accesses of more than eight bytes: those that vector instructions make, and the C library's copies and comparisons.
//!
//! A wide store is one to each of its words, but shares none. A wide read is a look at each of its words, unless the
//! thread passes over memory: then it is one at those that threads are known to share. Nearly all wide accesses touch
//! lines of which no other thread knows.

use std::ops::Range;

use super::Rounds;
use crate::code::SlotKind;
use crate::order::history::{LOOK_INSTRUCTIONS_MAX, Place};
use crate::order::outlines::{Access, address_in};

/// Of a thread's wide reads, so many are known.
const KNOWN: usize = 64;
/// One that comes so soon behind another at the same place, and so near to it, passes over memory.
const STRIDE_BYTES_MAX: u64 = 256;

/// What a thread has read by wide accesses lately.
pub(in crate::order) struct WideReads {
    /// Where, and at which address.
    known: Box<[(Place, u64); KNOWN]>,
    /// Of each place, the last address, and the thread's instructions up to there.
    last: Box<[(Place, u64, u64); KNOWN]>,
}

impl Default for WideReads {
    fn default() -> Self {
        Self { known: Box::new([((0, 0), 0); KNOWN]), last: Box::new([((0, 0), 0, 0); KNOWN]) }
    }
}

impl WideReads {
    /// Whether a read is a look: the thread has made it before, and few others since, or does not pass over memory.
    #[inline]
    fn is_look(&mut self, place: Place, address: u64, instructions: u64) -> bool {
        let at = place.0 as usize ^ usize::from(place.1) << 2;
        let known = &mut self.known[(at ^ address as usize >> 4) % KNOWN];
        let (of, last, before) = std::mem::replace(&mut self.last[at % KNOWN], (place, address, instructions));
        let passes_over =
            of == place && address.abs_diff(last) <= STRIDE_BYTES_MAX && instructions - before <= LOOK_INSTRUCTIONS_MAX;
        std::mem::replace(known, (place, address)) == (place, address) || !passes_over
    }
}

impl Rounds<'_> {
    #[inline]
    pub(super) fn touch_wide(&mut self, thread: usize, step: u64, id: u32, access: Access, slots: &[u64]) {
        let address = slots[usize::from(access.slot)];
        let words = access.words(address);
        if access.kind != SlotKind::Load {
            if self.is_ordered {
                let left = self.words.store_over(thread, step, words);
                if !left.is_empty() {
                    self.store_shared(thread, step, id, access, address, left);
                }
            }
            return;
        }
        self.threads[thread].read_private(words.start);
        if !self.words.are_private(thread, words) {
            self.read_wide(thread, step, id, access, address);
        }
    }

    /// Stores to these words of a wide store, the first of which is shared.
    fn store_shared(&mut self, thread: usize, step: u64, id: u32, access: Access, address: u64, mut words: Range<u64>) {
        while let Some(word) = words.next() {
            self.touch(thread, step, id, access, address_in(word, address), &[]);
            words = self.words.store_over(thread, step, words);
        }
    }

    fn read_wide(&mut self, thread: usize, step: u64, id: u32, access: Access, address: u64) {
        let state = &mut self.threads[thread];
        let instructions = state.history.counts().instructions;
        if state.wide_reads.is_look((id, access.slot), address, instructions) || !self.is_ordered {
            self.share_wide(thread, access, address);
        }
        if !self.is_ordered {
            return;
        }
        let mut last = None;
        let mut words = access.words(address);
        while let Some((word, number)) = self.words.first_shared(words.clone()) {
            words.start = word + 1;
            let known = self.words.word(number);
            let seen = (known.version.thread, known.version.step);
            // Of one store it is enough to see one word.
            if last.replace(seen) == Some(seen) && !known.is_updated {
                self.words.meet(thread, number);
                self.words.is_news(thread, number);
            } else {
                self.touch(thread, step, id, access, address_in(word, address), &[]);
            }
        }
    }

    /// Shares the words of a wide read that other threads have stored to. What it knows to be behind it, it does not
    /// know by the read's own other words.
    fn share_wide(&mut self, thread: usize, access: Access, address: u64) {
        let mut seen = Vec::new();
        for word in access.words(address) {
            let state = self.words.state(word);
            if state.is_untouched() || state.is_own(thread) || state.shared().is_some() {
                continue;
            }
            let exact = self.is_ordered.then(|| self.exact_store(thread, word)).flatten();
            seen.extend(exact.map(|(other, (step, ..))| (other, step)));
            self.words.share(thread, word, exact.map(|(_, store)| store));
        }
        seen.into_iter().for_each(|(other, step)| self.threads[thread].see(other, step));
    }
}
