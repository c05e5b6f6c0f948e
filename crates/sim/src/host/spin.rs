//! Spin loops whose record does not name the store that ended them: those of record versions 1 and 2, and waits with a
//! `wake` of 0. The others wait for their very store (`core/synchronisation.rs`).
//!
//! A store that came after the thread's previous wait at the same word counts; the first wait at a word passes, since
//! no store to it was watched before.

use rustc_hash::FxHashMap;

use crate::core::watched::watch_bit;

/// The words at which threads spin.
#[derive(Clone, Debug, Default)]
pub struct SpinWatch {
    words: FxHashMap<u64, Word>,
    filter: u64,
}

#[derive(Clone, Debug, Default)]
struct Word {
    /// Stores seen, with the thread that made the last one and the number of the last by anyone else.
    stores: u64,
    last_by: Option<usize>,
    last_by_others: u64,
    /// Stores seen when each thread passed last.
    passed: FxHashMap<usize, u64>,
    waiting: Vec<usize>,
}

impl SpinWatch {
    /// One bit for each line (by the low six bits of its number) that has a watched word.
    pub fn filter(&self) -> u64 {
        self.filter
    }

    /// Handles a thread that comes to the end of a spin loop at the physical address `word`; says whether it goes on at
    /// once.
    pub fn arrive(&mut self, thread: usize, word: u64) -> bool {
        self.filter |= watch_bit(word);
        let word = self.words.entry(word).or_default();
        let passed = word.passed.get(&thread).copied();
        let by_others = if word.last_by == Some(thread) { word.last_by_others } else { word.stores };
        if passed.is_none_or(|passed| by_others > passed) {
            word.passed.insert(thread, word.stores);
            return true;
        }
        word.waiting.push(thread);
        false
    }

    /// Handles a store of `size` bytes by `thread` at the physical `address`; returns the threads that waited for a
    /// word that begins there.
    pub fn stored(&mut self, thread: usize, address: u64, size: u16) -> Vec<usize> {
        let words = address..address + u64::from(size.max(1));
        words.flat_map(|word| self.word_stored(thread, word)).collect()
    }

    fn word_stored(&mut self, thread: usize, word: u64) -> Vec<usize> {
        let Some(word) = self.words.get_mut(&word) else { return Vec::new() };
        if word.last_by != Some(thread) {
            word.last_by_others = word.stores;
        }
        word.stores += 1;
        word.last_by = Some(thread);
        let woken = std::mem::take(&mut word.waiting);
        for &thread in &woken {
            word.passed.insert(thread, word.stores);
        }
        woken
    }

    /// `thread` does not wait any longer.
    pub fn give_up(&mut self, thread: usize) {
        for word in self.words.values_mut() {
            word.waiting.retain(|&waiting| waiting != thread);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_wait_needs_a_new_store_of_another_thread() {
        let mut watch = SpinWatch::default();
        assert!(watch.arrive(0, 64));
        assert!(!watch.arrive(0, 64));
        assert_eq!(watch.stored(1, 64, 4), [0]);
        assert!(!watch.arrive(0, 64));
        watch.give_up(0);
        assert!(watch.stored(0, 64, 4).is_empty());
        assert!(!watch.arrive(0, 64), "its own store ends no wait");
    }

    #[test]
    fn a_store_that_came_before_the_wait_is_remembered() {
        let mut watch = SpinWatch::default();
        assert!(watch.arrive(0, 64));
        watch.stored(1, 64, 4);
        assert!(watch.arrive(0, 64));
    }
}
