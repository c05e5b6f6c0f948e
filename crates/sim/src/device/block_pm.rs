//! A persistent medium that is accessed in blocks of several lines, as 3D XPoint modules are, with buffers between its
//! banks and the controller.
//!
//! Writes meet in a write-combining buffer, in which those to one block merge. A block that is whole is written as soon
//! as its bank has no read to serve; one of which only a part has come stays, to be merged with, until the watermarks
//! or a power cut send it out, and is then read before it is written. A read of a block brings all of it into a read
//! buffer, from which its other lines are served. The buffer of writes is the write queue of [`PmConfig`]: where a
//! write is complete, and so what a power cut leaves, is `ack_at`, as for the medium that is accessed line by line.

pub mod config;
mod read_buffer;
mod stats;
mod write_buffer;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

pub use config::BlockConfig;
pub use stats::BlockPmStats;

use super::line_versions::LineVersions;
use super::medium::Completion;
use super::pm::bus::Bus;
use super::pm::{AckAt, PmConfig};
use super::write_drain::{WriteDrain, WriteDrainConfig};
use crate::host_bridge::Interleave;
use fencepost_kernel::line::{LINE_BYTES, LineAddress, Version};
use fencepost_kernel::message::{Message, MessageClass, Stage};
use fencepost_kernel::stats::StatsNode;
use fencepost_kernel::time::{Duration, Time};
use fencepost_kernel::trace::MediaWrite;
use read_buffer::ReadBuffer;
use write_buffer::{BufferedBlock, BufferedLine, WriteBuffer};

/// A persistent medium of blocks with its buffers and queues.
#[derive(Clone, Debug)]
pub struct BlockPm {
    interleave: Interleave,
    lines_per_block: u64,
    read: Duration,
    write: Duration,
    send: Duration,
    translation: Duration,
    ack_at: AckAt,
    read_queue_entries: usize,
    write_queue_entries: usize,
    read_bypass_cap: u16,
    banks: Vec<Bank>,
    bus: Bus,
    /// Reads that wait, over all banks.
    reads_waiting: usize,
    read_buffer: ReadBuffer,
    writes: WriteBuffer,
    drain: WriteDrain,
    /// What is on the medium.
    contents: LineVersions,
    stats: BlockPmStats,
    /// Lines that have been written; allocated only when requests are traced.
    written: Option<Vec<MediaWrite>>,
}

#[derive(Clone, Debug, Default)]
struct Bank {
    /// When it has done what it is doing.
    free: Time,
    doing: Option<Access>,
    /// Oldest first.
    reads: VecDeque<WaitingRead>,
    /// Blocks that were read although a write waited.
    passed: u16,
}

/// What a bank is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Read { block: u64, started: Time },
    Write,
}

#[derive(Clone, Debug)]
struct WaitingRead {
    message: Message,
    place: Place,
    queued: Time,
}

/// Where a line lies.
#[derive(Clone, Copy, Debug)]
struct Place {
    device_line: u64,
    block: u64,
    bank: usize,
}

impl BlockPm {
    /// A medium like `config` and `block`, whose lines are those of one way of `interleave`.
    pub fn new(config: &PmConfig, block: &BlockConfig, interleave: Interleave) -> BlockPm {
        let banks = usize::from(config.banks);
        let lines_per_block = u64::from(config.row_bytes) / LINE_BYTES;
        let write_queue_entries = usize::from(config.write_queue_entries);
        BlockPm {
            interleave,
            lines_per_block,
            read: Duration::from_ns(config.read_ns),
            write: Duration::from_ns(config.write_ns),
            send: Duration::from_ns(config.send_ns),
            translation: Duration::from_ns(block.translation_ns),
            ack_at: config.ack_at,
            read_queue_entries: config.read_queue_entries.into(),
            write_queue_entries,
            read_bypass_cap: config.read_bypass_cap,
            banks: vec![Bank::default(); banks],
            bus: Bus::new(Duration::from_ns(config.burst_ns)),
            reads_waiting: 0,
            read_buffer: ReadBuffer::new(block.read_buffer_entries.into()),
            writes: WriteBuffer::new(write_queue_entries, lines_per_block as usize, banks, config.write_merging),
            drain: WriteDrain::new(&WriteDrainConfig {
                turns: config.write_turns,
                high: config.write_high_watermark,
                low: config.write_low_watermark,
                idle: if config.ack_at == AckAt::Queue { config.write_idle_watermark } else { 0 },
                per_turn: config.requests_per_turn,
            }),
            contents: LineVersions::default(),
            stats: BlockPmStats::default(),
            written: None,
        }
    }

    /// How many requests of `class` can be queued.
    pub fn queue_entries(&self, class: MessageClass) -> usize {
        match class {
            MessageClass::M2sRwd => self.write_queue_entries,
            _ => self.read_queue_entries,
        }
    }

    /// Whether there is room for `request`.
    pub fn has_room(&self, request: &Message) -> bool {
        if !request.is_write() {
            return self.reads_waiting < self.read_queue_entries;
        }
        let Place { block, bank, .. } = self.locate(request.line);
        self.writes.has_room(block, bank)
    }

    /// Takes `request`, for which there is room.
    pub fn accept(&mut self, request: Message, now: Time, completions: &mut Vec<Completion>) {
        debug_assert!(self.has_room(&request));
        match request.is_write() {
            true => self.accept_write(request, now, completions),
            false => self.accept_read(request, now, completions),
        }
    }

    /// Ends and begins what is due at `now`; gives the time of the next such change, [`Time::NEVER`] if nothing waits.
    pub fn advance(&mut self, now: Time, completions: &mut Vec<Completion>) -> Time {
        let mut next = Time::NEVER;
        for bank in 0..self.banks.len() {
            if self.banks[bank].free <= now {
                match self.banks[bank].doing.take() {
                    Some(Access::Read { block, started }) => self.finish_read(bank, block, started, now, completions),
                    Some(Access::Write) => self.finish_write(bank, now, completions),
                    None => {}
                }
                self.start(bank, now);
            }
            let Bank { free, doing, reads, .. } = &self.banks[bank];
            next = match (doing, reads.front()) {
                (Some(_), _) => next.min(*free),
                (None, Some(read)) => next.min(self.asks_bank(read)),
                (None, None) => next,
            };
        }
        next
    }

    /// Writes of older versions replace newer ones from now on, and are counted.
    pub fn take_older_writes(&mut self) {
        self.contents.take_older_writes();
    }

    /// Writes `version` of `line` while time stands still.
    pub fn preload(&mut self, line: LineAddress, version: Version) {
        let Place { device_line, bank, .. } = self.locate(line);
        if !self.writes.overwrite(line, bank, version) {
            self.contents.set(device_line, version);
        }
    }

    /// The version of `line` that a power cut now would leave.
    pub fn durable_version(&self, line: LineAddress) -> Version {
        let Place { device_line, bank, .. } = self.locate(line);
        let buffered = match self.ack_at {
            AckAt::Queue => self.writes.find(line, bank),
            AckAt::Media => None,
        };
        buffered.map_or_else(|| self.contents.get(device_line), |buffered| buffered.version)
    }

    /// Power is gone: reads are lost; buffered writes too, unless the buffer is in the persistent domain. A block under
    /// way is not torn: it is written again from the buffer, or it was never written.
    pub fn power_fail(&mut self) {
        self.banks.fill(Bank::default());
        self.bus.power_fail();
        self.reads_waiting = 0;
        self.read_buffer.clear();
        self.drain.power_fail();
        match self.ack_at {
            AckAt::Queue => self.writes.interrupt(),
            AckAt::Media => self.writes.clear(),
        }
    }

    /// Whether nothing is queued that is to leave the queue.
    pub fn is_idle(&self) -> bool {
        self.reads_waiting == 0 && !self.has_to_write()
    }

    fn has_to_write(&self) -> bool {
        !self.writes.is_resting() || self.drain.would_write_when_idle(self.writes.waiting())
    }

    /// Lines in the write queue and those being written, as long as there are some that may not stay in the queue.
    pub fn unwritten_lines(&self) -> usize {
        if self.has_to_write() { self.writes.iter().map(|block| block.lines.len()).sum() } else { 0 }
    }

    /// What is queued, for the deadlock report.
    pub fn waiting(&self) -> Vec<String> {
        let read = |read: &WaitingRead| format!("MemRd of line {:#x} since {}", read.message.line.byte(), read.queued);
        let write = |block: &BufferedBlock| {
            let first = block.lines.first().map_or(0, |line| line.line.byte());
            format!("a write of {} lines of the block of line {first:#x}", block.lines.len())
        };
        let reads = self.banks.iter().flat_map(|bank| &bank.reads).map(read);
        reads.chain(self.writes.iter().map(write)).collect()
    }

    /// The lines that have been written since this was last asked.
    pub fn take_written(&mut self) -> Vec<MediaWrite> {
        self.written.replace(Vec::new()).unwrap_or_default()
    }

    /// The bank of `line`.
    pub fn bank_of(&self, line: LineAddress) -> u32 {
        self.locate(line).bank as u32
    }

    /// What can be watched: reads that wait, and blocks in the write buffer.
    pub fn gauges(&self) -> [u64; 2] {
        [self.reads_waiting as u64, self.writes.occupied() as u64]
    }

    /// Everything counted so far.
    pub fn counters(&self) -> &BlockPmStats {
        &self.stats
    }

    /// Everything counted up to `now`, as a tree.
    pub fn stats(&self, now: Time) -> StatsNode {
        let still_to_come = self.banks.iter().map(|bank| bank.free.since(now)).sum();
        let mut nodes = self.stats.nodes(now, still_to_come);
        nodes.push(("write_batches".to_owned(), StatsNode::Counter(self.drain.batches())));
        nodes.push(("banks".to_owned(), StatsNode::Level(self.banks.len() as u64)));
        nodes.extend(self.contents.older_writes().map(|count| ("older_writes".to_owned(), StatsNode::Counter(count))));
        StatsNode::group(nodes)
    }

    fn locate(&self, line: LineAddress) -> Place {
        let device_line = self.interleave.device_line(line);
        let block = device_line / self.lines_per_block;
        Place { device_line, block, bank: (block % self.banks.len() as u64) as usize }
    }

    /// When `read` can ask its bank: its block has been found by then.
    fn asks_bank(&self, read: &WaitingRead) -> Time {
        read.queued + self.translation
    }

    /// The version that a read of the line at `place` sees now: buffered bytes are laid over those of the medium.
    fn version(&self, line: LineAddress, place: Place) -> Version {
        let buffered = self.writes.find(line, place.bank);
        buffered.map_or_else(|| self.contents.get(place.device_line), |buffered| buffered.version)
    }

    fn accept_read(&mut self, message: Message, now: Time, completions: &mut Vec<Completion>) {
        let (line, place) = (message.line, self.locate(message.line));
        let read = WaitingRead { message, place, queued: now };
        if self.writes.find(line, place.bank).is_some_and(|buffered| buffered.is_whole) {
            self.stats.reads_from_write_queue += 1;
            self.answer_read(read, now, now, completions);
        } else if self.read_buffer.touch(place.block) {
            self.stats.reads_from_read_buffer += 1;
            self.answer_read(read, now, now, completions);
        } else {
            let bank = &mut self.banks[place.bank];
            self.stats.reads_behind_write += u64::from(bank.doing == Some(Access::Write));
            self.stats.reads_merged += u64::from(bank.reads.iter().any(|other| other.place.block == place.block));
            bank.reads.push_back(read);
            self.reads_waiting += 1;
            self.stats.read_queue.set(self.reads_waiting, now);
        }
    }

    /// A buffer gives the line of `read`, for which the medium worked from `started` on.
    fn answer_read(&mut self, read: WaitingRead, started: Time, now: Time, completions: &mut Vec<Completion>) {
        let WaitingRead { mut message, place, queued } = read;
        let data_end = self.bus.reserve(now + self.send, now);
        self.stats.read_latency_ps.record(data_end.since(queued));
        message.stack.charge(Stage::DeviceQueue, started.max(queued));
        message.stack.charge(Stage::Media, data_end);
        let version = self.version(message.line, place);
        completions.push(Completion { answer: message.answer(version), at: data_end, is_from_queue: false });
    }

    fn accept_write(&mut self, mut request: Message, now: Time, completions: &mut Vec<Completion>) {
        let place = self.locate(request.line);
        if self.contents.checks_writes() {
            let newest = self.version(request.line, place);
            self.contents.check_write(request.version, newest);
        }
        let Place { device_line, block, bank } = place;
        let written = BufferedLine { line: request.line, device_line, version: request.version, mask: request.mask };
        let waits = match self.ack_at {
            AckAt::Queue => {
                request.stack.charge(Stage::DeviceQueue, now);
                completions.push(Completion { answer: request.completion(), at: now, is_from_queue: true });
                None
            }
            AckAt::Media => Some(request),
        };
        self.bus.reserve(now, now);
        self.stats.writes_merged += u64::from(self.writes.push(block, bank, written, waits));
        self.stats.write_queue.set(self.writes.occupied(), now);
    }

    /// Gives `bank`, which is free, something to do if there is anything.
    fn start(&mut self, bank: usize, now: Time) {
        let has_read = self.banks[bank].reads.front().is_some_and(|read| self.asks_bank(read) <= now);
        let has_write = self.writes.has_waiting(bank);
        let writes_first = self.drain.writes_first(self.reads_waiting, self.writes.occupied())
            || self.banks[bank].passed >= self.read_bypass_cap;
        let writes_when_idle = self.drain.writes_when_idle(self.writes.waiting()) || self.writes.has_whole(bank);
        if has_write && (writes_first || (!has_read && writes_when_idle)) {
            self.start_write(bank, now);
        } else if has_read {
            self.banks[bank].passed += u16::from(has_write);
            self.start_read(bank, now);
        }
    }

    fn start_read(&mut self, bank: usize, now: Time) {
        let read = self.banks[bank].reads.front().expect("a read waits for the bank");
        let (block, queued) = (read.place.block, read.queued);
        self.stats.read_wait_ps += now.since(queued + self.translation).as_ps();
        self.stats.reads += 1;
        self.stats.media_read_bytes += self.block_bytes();
        self.occupy(bank, Access::Read { block, started: now }, now, self.read);
    }

    /// The block is in the read buffer: every read that waits for it has its answer.
    fn finish_read(&mut self, bank: usize, block: u64, started: Time, now: Time, completions: &mut Vec<Completion>) {
        self.read_buffer.insert(block);
        let mut index = 0;
        while let Some(waiting) = self.banks[bank].reads.get(index) {
            if waiting.place.block == block {
                let read = self.banks[bank].reads.remove(index).expect("it was looked at");
                self.reads_waiting -= 1;
                self.drain.read_served(self.reads_waiting, self.writes.occupied());
                self.answer_read(read, started, now, completions);
            } else {
                index += 1;
            }
        }
        self.stats.read_queue.set(self.reads_waiting, now);
    }

    fn start_write(&mut self, bank: usize, now: Time) {
        let entry = self.writes.start(bank, now);
        let (block, is_whole) = (entry.block, entry.is_whole(self.lines_per_block as usize));
        self.banks[bank].passed = 0;
        self.drain.write_served();
        self.stats.writes += 1;
        self.stats.media_write_bytes += self.block_bytes();
        let mut busy = self.write;
        if !is_whole && !self.read_buffer.touch(block) {
            self.stats.read_modify_writes += 1;
            self.stats.reads += 1;
            self.stats.media_read_bytes += self.block_bytes();
            busy = self.read + self.write;
        }
        self.occupy(bank, Access::Write, now, busy);
    }

    fn finish_write(&mut self, bank: usize, now: Time, completions: &mut Vec<Completion>) {
        let block = self.writes.finish(bank);
        for written in &block.lines {
            self.contents.set(written.device_line, written.version);
            if let Some(log) = &mut self.written {
                let (line, version, from) = (written.line, written.version, now - self.write);
                let is_complete = block.unacknowledged.iter().all(|request| request.line != line);
                log.push(MediaWrite { line, version, bank: bank as u32, from, until: now, is_complete });
            }
        }
        self.stats.write_queue.set(self.writes.occupied(), now);
        for mut request in block.unacknowledged {
            request.stack.charge(Stage::Media, now);
            completions.push(Completion { answer: request.completion(), at: now, is_from_queue: false });
        }
    }

    fn occupy(&mut self, bank: usize, access: Access, now: Time, busy: Duration) {
        self.stats.bank_busy_ps += busy.as_ps();
        self.banks[bank].doing = Some(access);
        self.banks[bank].free = now + busy;
    }

    fn block_bytes(&self) -> u64 {
        self.lines_per_block * LINE_BYTES
    }
}
