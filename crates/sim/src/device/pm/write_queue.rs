//! The lines that wait to be written to a persistent medium, and those that are being written.
//!
//! Those being written keep their places in the queue, or have been handed over to their banks and left it.

use std::collections::VecDeque;

use fencepost_kernel::line::{ByteMask, LineAddress, Version};
use fencepost_kernel::message::{Message, Stage};
use fencepost_kernel::time::Time;

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
    /// Its place among all that came; the queue sets it.
    pub sequence: u64,
}

/// The write queue: in each bank oldest first.
#[derive(Clone, Debug)]
pub struct WriteQueue {
    capacity: usize,
    merges: bool,
    /// Whether a line that is being written has left the queue.
    hands_over: bool,
    waiting: usize,
    writing: usize,
    pushed: u64,
    banks: Vec<BankWrites>,
}

#[derive(Clone, Debug, Default)]
struct BankWrites {
    waiting: VecDeque<QueuedWrite>,
    /// What the bank is writing, or has been handed over.
    writing: VecDeque<QueuedWrite>,
}

/// What the queue holds of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedLine {
    /// The youngest version.
    pub version: Version,
    /// Whether every byte of the line has its place in the queue.
    pub is_whole: bool,
}

impl WriteQueue {
    /// A queue of `capacity` lines for `banks` banks, in which writes to one line merge or not; lines leave it when
    /// they are handed over to their banks, or when they are written.
    pub fn new(capacity: usize, banks: usize, merges: bool, hands_over: bool) -> WriteQueue {
        let banks = vec![BankWrites::default(); banks];
        WriteQueue { capacity, merges, hands_over, waiting: 0, writing: 0, pushed: 0, banks }
    }

    /// How many places are taken, by waiting lines and by those being written that have not left.
    pub fn occupied(&self) -> usize {
        self.waiting + if self.hands_over { 0 } else { self.writing }
    }

    /// How many lines wait to be written.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// How many lines are being written, or handed over and not yet written.
    pub fn writing(&self) -> usize {
        self.writing
    }

    /// The bank for which the oldest line waits.
    pub fn oldest(&self) -> Option<usize> {
        let fronts = self.banks.iter().enumerate().filter_map(|(bank, writes)| Some((writes.waiting.front()?, bank)));
        fronts.min_by_key(|(write, _)| write.sequence).map(|(_, bank)| bank)
    }

    /// Whether nothing is being written.
    pub fn is_resting(&self) -> bool {
        self.writing == 0
    }

    /// Whether a write to `line` finds a place, its own or that of an earlier write to the line.
    pub fn has_room(&self, line: LineAddress, bank: usize) -> bool {
        self.occupied() < self.capacity || self.mergeable(line, bank).is_some()
    }

    /// Puts `write` into its place. True if it joined an earlier one.
    pub fn push(&mut self, mut write: QueuedWrite, bank: usize) -> bool {
        if let Some(index) = self.mergeable(write.line, bank) {
            let earlier = &mut self.banks[bank].waiting[index];
            earlier.version = write.version;
            earlier.mask = ByteMask(earlier.mask.0 | write.mask.0);
            earlier.unacknowledged.extend(write.unacknowledged);
            return true;
        }
        debug_assert!(self.occupied() < self.capacity);
        write.sequence = self.pushed;
        self.pushed += 1;
        self.banks[bank].waiting.push_back(write);
        self.waiting += 1;
        false
    }

    /// What the queue holds of `line`, if anything.
    pub fn find(&self, line: LineAddress, bank: usize) -> Option<QueuedLine> {
        let bank = &self.banks[bank];
        let is_line = |write: &&QueuedWrite| write.line == line;
        let version = bank.writing.iter().chain(&bank.waiting).rfind(is_line)?.version;
        let written = if self.hands_over { None } else { Some(&bank.writing) };
        let in_place = written.into_iter().flatten().chain(&bank.waiting).filter(is_line);
        let mask = in_place.fold(0, |mask, write| mask | write.mask.0);
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
        !self.banks[bank].writing.is_empty()
    }

    /// `bank` begins to write its oldest line, or is handed it: gives the line's number in the device.
    pub fn start(&mut self, bank: usize, now: Time) -> u64 {
        let bank = &mut self.banks[bank];
        debug_assert!(self.hands_over || bank.writing.is_empty());
        let mut write = bank.waiting.pop_front().expect("a line waits for the bank");
        for request in &mut write.unacknowledged {
            request.stack.charge(Stage::DeviceQueue, now);
        }
        let device_line = write.device_line;
        bank.writing.push_back(write);
        self.waiting -= 1;
        self.writing += 1;
        device_line
    }

    /// `bank` has written the first of its lines.
    pub fn finish(&mut self, bank: usize) -> QueuedWrite {
        self.writing -= 1;
        self.banks[bank].writing.pop_front().expect("the bank was writing")
    }

    /// What was being written has to be written again.
    pub fn interrupt(&mut self) {
        self.waiting += std::mem::take(&mut self.writing);
        for bank in &mut self.banks {
            while let Some(write) = bank.writing.pop_back() {
                bank.waiting.push_front(write);
            }
        }
    }

    /// Everything in the queue is lost.
    pub fn clear(&mut self) {
        self.banks.fill(BankWrites::default());
        self.waiting = 0;
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

    fn write(line: u64, version: u64, mask: u64) -> QueuedWrite {
        QueuedWrite {
            line: LineAddress(line),
            device_line: line,
            version: Version(version),
            mask: ByteMask(mask),
            unacknowledged: Vec::new(),
            sequence: 0,
        }
    }

    #[test]
    fn lines_that_were_handed_over_leave_their_places_and_go_back_if_they_are_interrupted() {
        let mut queue = WriteQueue::new(2, 2, true, true);
        queue.push(write(1, 1, u64::MAX), 1);
        queue.push(write(3, 1, u64::MAX), 1);
        assert_eq!(queue.oldest(), Some(1));
        queue.start(1, Time::ZERO);
        queue.push(write(2, 1, u64::MAX), 0);
        assert_eq!(queue.oldest(), Some(1), "line 3 came before line 2");
        queue.start(1, Time::ZERO);
        assert_eq!((queue.occupied(), queue.writing()), (1, 2));
        let handed_over = queue.find(LineAddress(3), 1);
        assert_eq!(handed_over, Some(QueuedLine { version: Version(1), is_whole: false }), "it is not in the queue");
        queue.interrupt();
        assert_eq!(queue.iter().map(|write| write.line.0).collect::<Vec<_>>(), [2, 1, 3]);
    }

    #[test]
    fn a_write_joins_a_waiting_one_but_not_one_under_way() {
        let mut queue = WriteQueue::new(2, 1, true, false);
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
        let mut queue = WriteQueue::new(4, 1, false, false);
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
        let mut queue = WriteQueue::new(4, 1, false, false);
        queue.push(write(1, 1, u64::MAX), 0);
        queue.push(write(2, 1, u64::MAX), 0);
        queue.start(0, Time::ZERO);
        queue.interrupt();
        assert_eq!(queue.iter().map(|write| write.line.0).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(queue.occupied(), 2);
    }
}
