//! Records of several words that one thread writes and others read, without a lock.

use std::sync::atomic::Ordering;

use super::words::{Words, fence};

/// After so many attempts a reader gives up: whoever writes may have been killed, or stopped, amidst it.
const ATTEMPTS_MAX: usize = if cfg!(loom) { 2 } else { 64 };

/// A record: its first word is odd while the others are being written.
#[derive(Clone, Copy)]
pub struct Sequenced<'a>(Words<'a>);

impl<'a> Sequenced<'a> {
    /// The record that these words are.
    pub fn new(words: Words<'a>) -> Sequenced<'a> {
        Sequenced(words)
    }

    /// Writes it. Only one thread may do so at a time; a predecessor may have been killed amidst it.
    pub fn write<const N: usize>(self, values: &[u64; N]) {
        let words = self.0;
        let begun = words.word(0).load(Ordering::Relaxed) | 1;
        words.word(0).store(begun, Ordering::Relaxed);
        // Seen before any of the values.
        fence(Ordering::Release);
        words.part(0, 1).publish();
        for (at, value) in values.iter().enumerate() {
            words.word(1 + at).store(*value, Ordering::Relaxed);
        }
        words.publish();
        words.word(0).store(begun.wrapping_add(1), Ordering::Release);
        words.part(0, 1).publish();
    }

    /// Reads it; `None` where it is being written all the time, or for ever.
    pub fn read<const N: usize>(self) -> Option<[u64; N]> {
        (0..ATTEMPTS_MAX).find_map(|_| self.attempt())
    }

    /// Reads it, if it is not being written.
    pub fn attempt<const N: usize>(self) -> Option<[u64; N]> {
        let words = self.0;
        words.refresh();
        let before = words.word(0).load(Ordering::Acquire);
        if before & 1 == 1 {
            return None;
        }
        let values = std::array::from_fn(|at| words.word(1 + at).load(Ordering::Relaxed));
        // Not read later than the number behind it.
        fence(Ordering::Acquire);
        words.part(0, 1).refresh();
        (words.word(0).load(Ordering::Relaxed) == before).then_some(values)
    }
}
