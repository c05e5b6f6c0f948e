//! What threads that have no core keep of their records in memory: it stays bounded, however many threads there are and
//! however much a few bytes of a record stand for.

use super::Host;

/// So many bytes of frames are kept for threads without a core, whatever they are.
const KEPT_BYTES: u64 = 512 << 20;

/// Beyond that, a frame is kept if it is at most so many times as long as in the record. To read a frame again takes
/// milliseconds, which is too long for each wait of a program with many locks; the frames of such programs are some
/// hundred times as long as in their records.
const EXPANSION_MAX: u64 = 4000;

/// The frames of threads without a core.
#[derive(Clone, Debug)]
pub(super) struct WaitingFrames {
    kept_bytes: u64,
    expansion_max: u64,
    /// What they take in all, in bytes.
    total: u64,
    /// By thread.
    of_threads: Vec<u64>,
}

impl WaitingFrames {
    pub(super) fn new(threads: usize) -> WaitingFrames {
        WaitingFrames { kept_bytes: KEPT_BYTES, expansion_max: EXPANSION_MAX, total: 0, of_threads: vec![0; threads] }
    }

    /// From now on every thread that leaves its core has its frame read again.
    #[cfg(test)]
    pub(super) fn keep_none(&mut self) {
        (self.kept_bytes, self.expansion_max) = (0, 0);
    }

    /// Whether the frame of `thread`, which leaves its core, is kept.
    fn keep(&mut self, thread: usize, bytes: u64, stored: u64) -> bool {
        let is_kept = self.total + bytes <= self.kept_bytes || bytes <= self.expansion_max * stored;
        self.of_threads[thread] = if is_kept { bytes } else { 0 };
        self.total += self.of_threads[thread];
        is_kept
    }

    /// `thread` has a core again, or needs none any more.
    pub(super) fn release(&mut self, thread: usize) {
        self.total -= std::mem::take(&mut self.of_threads[thread]);
    }
}

impl Host {
    /// `thread` has left its core: its frame stays in memory, or is read again when it goes on.
    pub(super) fn keep_frame(&mut self, thread: usize) {
        let (bytes, stored) = self.process.threads[thread].frame_bytes();
        if !self.process.waiting_frames.keep(thread, bytes, stored) {
            self.process.threads[thread].put_frame_away();
        }
    }

    /// `thread` has got a core.
    pub(super) fn take_up_frame(&mut self, thread: usize) {
        self.process.waiting_frames.release(thread);
        if let Err(error) = self.process.threads[thread].take_up_frame() {
            self.error.get_or_insert(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn frames_of_few_stored_bytes_are_kept_up_to_the_limit() {
        let mut frames = WaitingFrames::new(100);
        let kept: Vec<bool> = (0..40).map(|thread| frames.keep(thread, 20 * MIB, 500)).collect();
        assert_eq!(kept.iter().filter(|kept| **kept).count(), 25);
        assert!(frames.keep(40, 20 * MIB, MIB / 100), "one that is long in the record too is always kept");
        frames.release(0);
        frames.release(40);
        assert!(frames.keep(41, 20 * MIB, 500), "there is room again");
        assert!(!frames.keep(42, 20 * MIB, 500));
        frames.release(42);
        (1..25).chain([41]).for_each(|thread| frames.release(thread));
        assert_eq!(frames.total, 0);
    }
}
