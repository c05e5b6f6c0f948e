//! The words of a segment, on memory that is coherent between all that share it, or is not.

use std::sync::atomic::Ordering;

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU64 as Word, fence};
#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU64 as Word, fence};

/// Whether a processor's caches see what other hosts store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coherence {
    /// Hardware keeps caches coherent.
    Hardware,
    /// Nothing does: what is stored is flushed and fenced, and what is read is invalidated before.
    Software,
}

/// Some words of a segment. They begin with a cache line, so that no two writers share one.
#[derive(Clone, Copy)]
pub struct Words<'a> {
    words: &'a [Word],
    coherence: Coherence,
}

impl<'a> Words<'a> {
    /// These words.
    pub fn new(words: &'a [Word], coherence: Coherence) -> Words<'a> {
        Words { words, coherence }
    }

    /// Some of them.
    pub fn part(self, first: usize, count: usize) -> Words<'a> {
        Words { words: &self.words[first..first + count], ..self }
    }

    /// How many there are.
    pub fn len(self) -> usize {
        self.words.len()
    }

    /// All of them.
    pub fn all(self) -> &'a [Word] {
        self.words
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.words.is_empty()
    }

    /// The word itself.
    pub fn word(self, at: usize) -> &'a Word {
        &self.words[at]
    }

    /// Reads a word that stands alone.
    pub fn load(self, at: usize) -> u64 {
        self.refresh();
        self.words[at].load(Ordering::Acquire)
    }

    /// Writes a word that stands alone.
    pub fn store(self, at: usize, value: u64) {
        self.words[at].store(value, Ordering::Release);
        self.publish();
    }

    /// Makes what was stored here visible to hosts whose caches are not coherent with ours.
    pub fn publish(self) {
        if self.coherence == Coherence::Software {
            flush(self.words);
        }
    }

    /// Forgets what our caches have of these words, if other hosts may have written them.
    pub fn refresh(self) {
        if self.coherence == Coherence::Software {
            flush(self.words);
        }
    }
}

/// Writes these lines back and drops them, before anything that follows.
#[cfg(all(target_arch = "x86_64", not(loom)))]
fn flush(words: &[Word]) {
    const LINE_WORDS: usize = 8;
    for line in words.chunks(LINE_WORDS) {
        // SAFETY: the address is that of a word that we have a reference to; the instruction changes no value.
        unsafe { core::arch::x86_64::_mm_clflush(line.as_ptr().cast()) };
    }
    // SAFETY: a fence; every x86-64 processor has it.
    unsafe { core::arch::x86_64::_mm_mfence() };
}

/// Writes these lines back and drops them, before anything that follows.
#[cfg(all(target_arch = "aarch64", not(loom)))]
fn flush(words: &[Word]) {
    const LINE_WORDS: usize = 8;
    for line in words.chunks(LINE_WORDS) {
        // SAFETY: the address is that of a word that we have a reference to; Linux lets programs use this instruction.
        unsafe { core::arch::asm!("dc civac, {0}", in(reg) line.as_ptr(), options(nostack, preserves_flags)) };
    }
    // SAFETY: a barrier.
    unsafe { core::arch::asm!("dsb sy", options(nostack, preserves_flags)) };
}

#[cfg(loom)]
fn flush(_: &[Word]) {}
