//! The write-combining buffer: blocks of which some lines, or parts of lines, wait to be written, and those that are
//! being written.

use std::collections::VecDeque;

use fencepost_kernel::line::{ByteMask, LineAddress, Version};
use fencepost_kernel::message::{Message, Stage};
use fencepost_kernel::time::Time;

/// What waits of a line.
#[derive(Clone, Debug)]
pub struct BufferedLine {
    /// The line.
    pub line: LineAddress,
    /// Its number in the device.
    pub device_line: u64,
    /// What the medium will hold.
    pub version: Version,
    /// The bytes that are written.
    pub mask: ByteMask,
}

/// What the buffer holds of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundLine {
    /// The youngest version.
    pub version: Version,
    /// Whether every byte of the line is in the buffer.
    pub is_whole: bool,
}

/// A block in the buffer.
#[derive(Clone, Debug)]
pub struct BufferedBlock {
    /// The block's number in the device.
    pub block: u64,
    /// Its lines that are written, each once.
    pub lines: Vec<BufferedLine>,
    /// The requests that wait for the medium; none if they are complete already.
    pub unacknowledged: Vec<Message>,
}

/// The buffer. The waiting blocks of each bank are in the order in which they were last written to.
#[derive(Clone, Debug)]
pub struct WriteBuffer {
    capacity: usize,
    lines_per_block: usize,
    merges: bool,
    occupied: usize,
    /// Of them, how many are being written.
    writing: usize,
    banks: Vec<BankBlocks>,
}

#[derive(Clone, Debug, Default)]
struct BankBlocks {
    waiting: VecDeque<BufferedBlock>,
    writing: Option<BufferedBlock>,
}

impl BufferedBlock {
    /// Whether all of the block is there, so that it can be written without being read before.
    pub fn is_whole(&self, lines_per_block: usize) -> bool {
        self.lines.len() == lines_per_block && self.lines.iter().all(|line| line.mask.is_full())
    }

    fn add(&mut self, written: BufferedLine) {
        let Some(earlier) = self.lines.iter_mut().find(|line| line.line == written.line) else {
            return self.lines.push(written);
        };
        earlier.version = written.version;
        earlier.mask = ByteMask(earlier.mask.0 | written.mask.0);
    }
}

impl WriteBuffer {
    /// A buffer of `capacity` blocks of so many lines for `banks` banks, in which writes to one block merge or not.
    pub fn new(capacity: usize, lines_per_block: usize, banks: usize, merges: bool) -> WriteBuffer {
        let banks = vec![BankBlocks::default(); banks];
        WriteBuffer { capacity, lines_per_block, merges, occupied: 0, writing: 0, banks }
    }

    /// How many blocks there are, those being written included.
    pub fn occupied(&self) -> usize {
        self.occupied
    }

    /// How many blocks wait to be written.
    pub fn waiting(&self) -> usize {
        self.occupied - self.writing
    }

    /// Whether nothing is being written, and no block is whole.
    pub fn is_resting(&self) -> bool {
        self.writing == 0 && (0..self.banks.len()).all(|bank| self.first_whole(bank).is_none())
    }

    /// Whether a write to `block` finds a place, its own or in the block.
    pub fn has_room(&self, block: u64, bank: usize) -> bool {
        self.occupied < self.capacity || self.mergeable(block, bank).is_some()
    }

    /// Puts `written`, a part of `block`, into its place; `request` is answered when it is on the medium. True if it
    /// joined an earlier write.
    pub fn push(&mut self, block: u64, bank: usize, written: BufferedLine, request: Option<Message>) -> bool {
        let place = self.mergeable(block, bank);
        let mut entry = match place.and_then(|index| self.banks[bank].waiting.remove(index)) {
            Some(earlier) => earlier,
            None => {
                debug_assert!(self.occupied < self.capacity);
                self.occupied += 1;
                BufferedBlock { block, lines: Vec::with_capacity(self.lines_per_block), unacknowledged: Vec::new() }
            }
        };
        entry.add(written);
        entry.unacknowledged.extend(request);
        self.banks[bank].waiting.push_back(entry);
        place.is_some()
    }

    /// What the buffer holds of `line`, if anything.
    pub fn find(&self, line: LineAddress, bank: usize) -> Option<FoundLine> {
        let bank = &self.banks[bank];
        let blocks = bank.writing.iter().chain(&bank.waiting);
        let mut lines = blocks.flat_map(|block| &block.lines).filter(|written| written.line == line);
        let oldest = lines.next()?;
        let (version, mask) =
            lines.fold((oldest.version, oldest.mask.0), |(_, mask), line| (line.version, mask | line.mask.0));
        Some(FoundLine { version, is_whole: ByteMask(mask).is_full() })
    }

    /// Gives what the buffer holds of `line` that version; whether it holds anything.
    pub fn overwrite(&mut self, line: LineAddress, bank: usize, version: Version) -> bool {
        let bank = &mut self.banks[bank];
        let blocks = bank.writing.iter_mut().chain(&mut bank.waiting);
        let lines = blocks.flat_map(|block| &mut block.lines).filter(|written| written.line == line);
        lines.map(|written| written.version = version).count() > 0
    }

    /// Whether a block waits for `bank`.
    pub fn has_waiting(&self, bank: usize) -> bool {
        !self.banks[bank].waiting.is_empty()
    }

    /// Whether a block that waits for `bank` is whole: waiting longer would gain nothing.
    pub fn has_whole(&self, bank: usize) -> bool {
        self.first_whole(bank).is_some()
    }

    /// `bank` begins to write: a whole block if there is one, else the one that was left alone longest. Gives it.
    pub fn start(&mut self, bank: usize, now: Time) -> &BufferedBlock {
        let index = self.first_whole(bank).unwrap_or(0);
        let bank = &mut self.banks[bank];
        debug_assert!(bank.writing.is_none());
        let mut block = bank.waiting.remove(index).expect("a block waits for the bank");
        for request in &mut block.unacknowledged {
            request.stack.charge(Stage::DeviceQueue, now);
        }
        self.writing += 1;
        bank.writing.insert(block)
    }

    /// `bank` has written its block, whose place is free again.
    pub fn finish(&mut self, bank: usize) -> BufferedBlock {
        self.occupied -= 1;
        self.writing -= 1;
        self.banks[bank].writing.take().expect("the bank was writing")
    }

    /// What was being written has to be written again.
    pub fn interrupt(&mut self) {
        self.writing = 0;
        for bank in &mut self.banks {
            if let Some(block) = bank.writing.take() {
                bank.waiting.push_front(block);
            }
        }
    }

    /// Everything in the buffer is lost.
    pub fn clear(&mut self) {
        self.banks.fill(BankBlocks::default());
        self.occupied = 0;
        self.writing = 0;
    }

    /// The blocks, bank by bank, the one being written first.
    pub fn iter(&self) -> impl Iterator<Item = &BufferedBlock> {
        self.banks.iter().flat_map(|bank| bank.writing.iter().chain(&bank.waiting))
    }

    /// The first whole block of `bank` that no earlier write to the same block has to precede.
    fn first_whole(&self, bank: usize) -> Option<usize> {
        let waiting = &self.banks[bank].waiting;
        let is_first = |index: usize| waiting.iter().take(index).all(|earlier| earlier.block != waiting[index].block);
        (0..waiting.len()).find(|&index| waiting[index].is_whole(self.lines_per_block) && is_first(index))
    }

    fn mergeable(&self, block: u64, bank: usize) -> Option<usize> {
        if !self.merges {
            return None;
        }
        // Two of one block wait only after an interruption, which puts the older one first.
        self.banks[bank].waiting.iter().rposition(|waiting| waiting.block == block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(line: u64, version: u64, mask: u64) -> BufferedLine {
        BufferedLine { line: LineAddress(line), device_line: line, version: Version(version), mask: ByteMask(mask) }
    }

    fn push(buffer: &mut WriteBuffer, line: u64, version: u64) -> bool {
        buffer.push(line / 4, 0, written(line, version, u64::MAX), None)
    }

    #[test]
    fn writes_to_one_block_merge_until_it_is_being_written() {
        let mut buffer = WriteBuffer::new(2, 4, 1, true);
        assert_eq!([0, 1, 2, 3].map(|line| push(&mut buffer, line, 1)), [false, true, true, true]);
        assert!(buffer.has_whole(0) && !buffer.is_resting());
        assert_eq!(buffer.start(0, Time::ZERO).lines.len(), 4);
        assert!(!push(&mut buffer, 0, 2), "the earlier one is under way");
        assert!(buffer.has_room(0, 0) && !buffer.has_room(1, 0), "full, but it may join");
        assert_eq!(buffer.find(LineAddress(0), 0), Some(FoundLine { version: Version(2), is_whole: true }));
        assert_eq!(buffer.finish(0).lines[0].version, Version(1));
        assert_eq!((buffer.occupied(), buffer.waiting()), (1, 1));
    }

    #[test]
    fn a_whole_block_goes_first_then_the_one_left_alone_longest() {
        let mut buffer = WriteBuffer::new(8, 4, 1, true);
        for line in [0, 4, 8, 9, 10, 11, 1] {
            push(&mut buffer, line, 1);
        }
        let mut order = Vec::new();
        while buffer.has_waiting(0) {
            order.push(buffer.start(0, Time::ZERO).block);
            buffer.finish(0);
        }
        assert_eq!(order, [2, 1, 0]);
    }

    #[test]
    fn parts_of_a_line_make_a_whole_one() {
        let mut buffer = WriteBuffer::new(8, 2, 1, true);
        buffer.push(0, 0, written(0, 1, 0xff), None);
        push(&mut buffer, 1, 1);
        assert_eq!(buffer.find(LineAddress(0), 0), Some(FoundLine { version: Version(1), is_whole: false }));
        assert!(!buffer.has_whole(0));
        buffer.push(0, 0, written(0, 2, !0xff), None);
        assert!(buffer.has_whole(0));
    }

    #[test]
    fn an_interrupted_block_is_written_before_what_came_later() {
        let mut buffer = WriteBuffer::new(8, 2, 1, true);
        push(&mut buffer, 0, 1);
        buffer.start(0, Time::ZERO);
        for (line, version) in [(0, 2), (1, 1)] {
            push2(&mut buffer, line, version);
        }
        buffer.interrupt();
        assert!(!buffer.has_whole(0), "the older one has to go first");
        assert_eq!(buffer.start(0, Time::ZERO).lines[0].version, Version(1));
        buffer.finish(0);
        assert_eq!(buffer.start(0, Time::ZERO).lines[0].version, Version(2));
    }

    fn push2(buffer: &mut WriteBuffer, line: u64, version: u64) {
        buffer.push(line / 2, 0, written(line, version, u64::MAX), None);
    }
}
