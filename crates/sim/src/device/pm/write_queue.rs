//! The lines that wait to be written to a persistent medium, and those that are being written.

use std::collections::VecDeque;

use crate::kernel::Time;
use crate::message::{ByteMask, LineAddress, Message, Stage, Version};

/// A line in the write queue.
#[derive(Clone, Debug)]
pub struct QueuedWrite {
    /// The line.
    pub line: LineAddress,
    /// Its number in the device.
    pub device_line: u64,
    /// What the medium will hold.
    pub version: Version,
    /// The bytes that are written.
    pub mask: ByteMask,
    /// The requests that wait for the medium; none if they are complete already.
    pub unacknowledged: Vec<Message>,
}

/// The write queue: in each bank oldest first, and with one line at most that is being written.
#[derive(Clone, Debug)]
pub struct WriteQueue {
    capacity: usize,
    merges: bool,
    occupied: usize,
    /// Of them, how many are being written.
    writing: usize,
    banks: Vec<BankWrites>,
}

#[derive(Clone, Debug, Default)]
struct BankWrites {
    waiting: VecDeque<QueuedWrite>,
    writing: Option<QueuedWrite>,
}

/// What the queue holds of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedLine {
    /// The youngest version.
    pub version: Version,
    /// Whether every byte of the line is in the queue.
    pub is_whole: bool,
}

impl WriteQueue {
    /// A queue of `capacity` lines for `banks` banks, in which writes to one line merge or not.
    pub fn new(capacity: usize, banks: usize, merges: bool) -> WriteQueue {
        WriteQueue { capacity, merges, occupied: 0, writing: 0, banks: vec![BankWrites::default(); banks] }
    }

    /// How many places are taken, by waiting lines and by those being written.
    pub fn occupied(&self) -> usize {
        self.occupied
    }

    /// How many lines wait to be written.
    pub fn waiting(&self) -> usize {
        self.occupied - self.writing
    }

    /// Whether nothing is being written.
    pub fn is_resting(&self) -> bool {
        self.writing == 0
    }

    /// Whether a write to `line` finds a place, its own or that of an earlier write to the line.
    pub fn has_room(&self, line: LineAddress, bank: usize) -> bool {
        self.occupied < self.capacity || self.mergeable(line, bank).is_some()
    }

    /// Puts `write` into its place. True if it joined an earlier one.
    pub fn push(&mut self, write: QueuedWrite, bank: usize) -> bool {
        if let Some(index) = self.mergeable(write.line, bank) {
            let earlier = &mut self.banks[bank].waiting[index];
            debug_assert!(write.version >= earlier.version, "a write overtook an earlier one to its line");
            earlier.version = write.version;
            earlier.mask = ByteMask(earlier.mask.0 | write.mask.0);
            earlier.unacknowledged.extend(write.unacknowledged);
            return true;
        }
        debug_assert!(self.occupied < self.capacity);
        self.banks[bank].waiting.push_back(write);
        self.occupied += 1;
        false
    }

    /// What the queue holds of `line`, if anything.
    pub fn find(&self, line: LineAddress, bank: usize) -> Option<QueuedLine> {
        let bank = &self.banks[bank];
        let mut entries = bank.writing.iter().chain(&bank.waiting).filter(|write| write.line == line);
        let oldest = entries.next()?;
        let (version, mask) =
            entries.fold((oldest.version, oldest.mask.0), |(_, mask), write| (write.version, mask | write.mask.0));
        Some(QueuedLine { version, is_whole: ByteMask(mask).is_full() })
    }

    /// Gives what the queue holds of `line` that version; whether it holds anything.
    pub fn overwrite(&mut self, line: LineAddress, bank: usize, version: Version) -> bool {
        let bank = &mut self.banks[bank];
        let entries = bank.writing.iter_mut().chain(&mut bank.waiting).filter(|write| write.line == line);
        entries.map(|write| write.version = version).count() > 0
    }

    /// Whether a line waits for `bank`.
    pub fn has_waiting(&self, bank: usize) -> bool {
        !self.banks[bank].waiting.is_empty()
    }

    /// Whether `bank` is writing.
    pub fn is_writing(&self, bank: usize) -> bool {
        self.banks[bank].writing.is_some()
    }

    /// `bank` begins to write its oldest line.
    pub fn start(&mut self, bank: usize, now: Time) {
        let bank = &mut self.banks[bank];
        debug_assert!(bank.writing.is_none());
        let mut write = bank.waiting.pop_front().expect("a line waits for the bank");
        for request in &mut write.unacknowledged {
            request.stack.charge(Stage::DeviceQueue, now);
        }
        bank.writing = Some(write);
        self.writing += 1;
    }

    /// `bank` has written its line, whose place is free again.
    pub fn finish(&mut self, bank: usize) -> QueuedWrite {
        self.occupied -= 1;
        self.writing -= 1;
        self.banks[bank].writing.take().expect("the bank was writing")
    }

    /// What was being written has to be written again.
    pub fn interrupt(&mut self) {
        self.writing = 0;
        for bank in &mut self.banks {
            if let Some(write) = bank.writing.take() {
                bank.waiting.push_front(write);
            }
        }
    }

    /// Everything in the queue is lost.
    pub fn clear(&mut self) {
        self.banks.fill(BankWrites::default());
        self.occupied = 0;
        self.writing = 0;
    }

    /// The queued lines, bank by bank, each bank's oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &QueuedWrite> {
        self.banks.iter().flat_map(|bank| bank.writing.iter().chain(&bank.waiting))
    }

    fn mergeable(&self, line: LineAddress, bank: usize) -> Option<usize> {
        if !self.merges {
            return None;
        }
        self.banks[bank].waiting.iter().rposition(|write| write.line == line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(line: u64, version: u32, mask: u64) -> QueuedWrite {
        QueuedWrite {
            line: LineAddress(line),
            device_line: line,
            version: Version(version),
            mask: ByteMask(mask),
            unacknowledged: Vec::new(),
        }
    }

    #[test]
    fn a_write_joins_a_waiting_one_but_not_one_under_way() {
        let mut queue = WriteQueue::new(2, 1, true);
        assert!(!queue.push(write(1, 1, u64::MAX), 0));
        queue.start(0, Time::ZERO);
        assert!(!queue.push(write(1, 2, u64::MAX), 0));
        assert!(queue.has_room(LineAddress(1), 0), "it may join, although the queue is full");
        assert!(!queue.has_room(LineAddress(2), 0));
        assert!(queue.push(write(1, 3, u64::MAX), 0));
        assert_eq!(queue.occupied(), 2);
        assert_eq!(queue.finish(0).version, Version(1));
        assert_eq!(queue.occupied(), 1);
    }

    #[test]
    fn the_youngest_version_is_found_and_whether_it_is_whole() {
        let mut queue = WriteQueue::new(4, 1, false);
        assert_eq!(queue.find(LineAddress(1), 0), None);
        queue.push(write(1, 1, 0xff), 0);
        assert_eq!(queue.find(LineAddress(1), 0), Some(QueuedLine { version: Version(1), is_whole: false }));
        queue.push(write(1, 2, !0xff), 0);
        assert_eq!(queue.find(LineAddress(1), 0), Some(QueuedLine { version: Version(2), is_whole: true }));
        queue.start(0, Time::ZERO);
        assert_eq!(queue.find(LineAddress(1), 0), Some(QueuedLine { version: Version(2), is_whole: true }));
    }

    #[test]
    fn an_interrupted_write_is_again_the_oldest() {
        let mut queue = WriteQueue::new(4, 1, false);
        queue.push(write(1, 1, u64::MAX), 0);
        queue.push(write(2, 1, u64::MAX), 0);
        queue.start(0, Time::ZERO);
        queue.interrupt();
        assert_eq!(queue.iter().map(|write| write.line.0).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(queue.occupied(), 2);
    }
}
