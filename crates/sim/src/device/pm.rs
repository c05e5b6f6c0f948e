//! A persistent medium that is accessed line by line: banks that read and write whole lines, each at its own pace, and
//! the queues before them.
//!
//! A bank that is free takes its oldest read, and a queued write when no read waits for it, when the write queue drains
//! down from its high watermark, or when the write has been passed often enough. Where a write is complete is a
//! parameter: in the write queue, which then lies inside the persistent domain and keeps its lines through a power cut,
//! or on the medium. Lines are written whole or not at all. A bank may keep the row it used last in a buffer. Or the
//! controller knows less of its banks, and hands everything over (`handed_over`) at once.

mod bank_set;
pub(super) mod bus;
pub mod config;
mod handed_over;
mod stats;
mod write_queue;

#[cfg(test)]
pub(crate) mod tests;

use std::collections::VecDeque;

pub use config::{AckAt, PmConfig, PmMedium};
pub use stats::PmStats;

use super::line_versions::LineVersions;
use super::medium::Completion;
use super::write_drain::{WriteDrain, WriteDrainConfig};
use crate::host_bridge::Interleave;
use bank_set::BankSet;
use bus::Bus;
use fencepost_kernel::Divisor;
use fencepost_kernel::line::{LINE_BYTES, LineAddress, Version};
use fencepost_kernel::message::{Message, MessageClass, Stage};
use fencepost_kernel::stats::StatsNode;
use fencepost_kernel::time::{Duration, Time};
use fencepost_kernel::trace::MediaWrite;
use handed_over::HandedOver;
use write_queue::{QueuedWrite, WriteQueue};

/// A persistent medium with its queues.
#[derive(Clone, Debug)]
pub struct Pm {
    interleave: Interleave,
    read: Duration,
    write: Duration,
    send: Duration,
    burst: Duration,
    ack_at: AckAt,
    lines_of_row: Divisor,
    /// How many banks there are, to divide by.
    bank_count: Divisor,
    has_row_buffer: bool,
    read_queue_entries: usize,
    write_queue_entries: usize,
    read_bypass_cap: u16,
    banks: Vec<Bank>,
    /// Banks that have reads or writes, unless they are handed over.
    busy: BankSet,
    bus: Bus,
    /// Reads that wait, over all banks.
    reads_waiting: usize,
    writes: WriteQueue,
    /// None if banks get a request when they are free.
    handed_over: Option<HandedOver>,
    drain: WriteDrain,
    /// What is on the medium.
    contents: LineVersions,
    stats: PmStats,
    /// Lines that have been written; allocated only when requests are traced.
    written: Option<Vec<MediaWrite>>,
}

#[derive(Clone, Debug, Default)]
struct Bank {
    /// When it has done what it is doing.
    free: Time,
    reads: VecDeque<WaitingRead>,
    /// Reads that have passed the oldest waiting write.
    passed: u16,
    /// The row in its buffer.
    buffered_row: Option<u64>,
}

#[derive(Clone, Debug)]
struct WaitingRead {
    message: Message,
    device_line: u64,
    queued: Time,
}

impl Pm {
    /// A medium like `config`, whose lines are those of one way of `interleave`.
    pub fn new(config: &PmConfig, interleave: Interleave) -> Pm {
        let banks = usize::from(config.banks);
        let hands_over = config.handed_over_writes > 0;
        Pm {
            interleave,
            read: Duration::from_ns(config.read_ns),
            write: Duration::from_ns(config.write_ns),
            send: Duration::from_ns(config.send_ns),
            burst: Duration::from_ns(config.burst_ns),
            ack_at: config.ack_at,
            lines_of_row: Divisor::new(u64::from(config.row_bytes) / LINE_BYTES),
            bank_count: Divisor::new(banks as u64),
            has_row_buffer: config.row_buffer,
            read_queue_entries: config.read_queue_entries.into(),
            write_queue_entries: config.write_queue_entries.into(),
            read_bypass_cap: config.read_bypass_cap,
            banks: vec![Bank::default(); banks],
            busy: BankSet::none_of(banks),
            bus: Bus::new(Duration::from_ns(config.burst_ns)),
            reads_waiting: 0,
            writes: WriteQueue::new(config.write_queue_entries.into(), banks, config.write_merging, hands_over),
            handed_over: hands_over.then(|| HandedOver::new(config.handed_over_writes.into())),
            drain: WriteDrain::new(&WriteDrainConfig {
                turns: config.write_turns,
                high: config.write_high_watermark,
                low: config.write_low_watermark,
                idle: if config.ack_at == AckAt::Queue { config.write_idle_watermark } else { 0 },
                per_turn: config.requests_per_turn,
            }),
            contents: LineVersions::default(),
            stats: PmStats::default(),
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
        match request.is_write() {
            true => self.writes.has_room(request.line, self.locate(request.line).0),
            false => self.reads_waiting < self.read_queue_entries,
        }
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
        if self.handed_over.is_some() {
            return self.advance_handed_over(now, completions);
        }
        let mut next = Time::NEVER;
        let mut from = 0;
        while let Some(bank) = self.busy.next_from(from) {
            from = bank + 1;
            // A buffered row may take no time at all.
            while self.banks[bank].free <= now {
                if self.writes.is_writing(bank) {
                    self.finish_write(bank, now, completions);
                }
                if !self.start(bank, now, completions) {
                    break;
                }
            }
            let has_read = !self.banks[bank].reads.is_empty();
            let (has_write, is_writing) = (self.writes.has_waiting(bank), self.writes.is_writing(bank));
            if has_read || is_writing || (has_write && self.drain.writes_when_idle(self.writes.waiting())) {
                next = next.min(self.banks[bank].free);
            } else if !has_write {
                self.busy.remove(bank);
            }
        }
        next
    }

    /// Writes of older versions replace newer ones from now on, and are counted.
    pub fn take_older_writes(&mut self) {
        self.contents.take_older_writes();
    }

    /// Writes `version` of `line` while time stands still.
    pub fn preload(&mut self, line: LineAddress, version: Version) {
        let (bank, device_line) = self.locate(line);
        if !self.writes.overwrite(line, bank, version) {
            self.contents.set(device_line, version);
        }
    }

    /// The version of `line` that a power cut now would leave.
    pub fn durable_version(&self, line: LineAddress) -> Version {
        let (bank, device_line) = self.locate(line);
        let queued = match self.ack_at {
            AckAt::Queue => self.writes.find(line, bank),
            AckAt::Media => None,
        };
        queued.map_or_else(|| self.contents.get(device_line), |queued| queued.version)
    }

    /// Power is gone: reads are lost; queued writes too, unless the queue is in the persistent domain. A line under way
    /// is not torn: it is written again from the queue, or it was never written.
    pub fn power_fail(&mut self) {
        self.banks.fill(Bank::default());
        self.bus.power_fail();
        self.handed_over.iter_mut().for_each(HandedOver::power_fail);
        self.reads_waiting = 0;
        self.drain.power_fail();
        match self.ack_at {
            AckAt::Queue => self.writes.interrupt(),
            AckAt::Media => self.writes.clear(),
        }
        self.busy = BankSet::none_of(self.banks.len());
        (0..self.banks.len()).filter(|&bank| self.writes.has_waiting(bank)).for_each(|bank| self.busy.insert(bank));
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
        if self.has_to_write() { self.writes.waiting() + self.writes.writing() } else { 0 }
    }

    /// What is queued, for the deadlock report.
    pub fn waiting(&self) -> Vec<String> {
        let read = |read: &WaitingRead| format!("MemRd of line {:#x} since {}", read.message.line.byte(), read.queued);
        let write = |write: &QueuedWrite| format!("a write to line {:#x}", write.line.byte());
        let reads = self.banks.iter().flat_map(|bank| &bank.reads).map(read);
        reads.chain(self.writes.iter().map(write)).collect()
    }

    /// The lines that have been written since this was last asked.
    pub fn take_written(&mut self) -> Vec<MediaWrite> {
        self.written.replace(Vec::new()).unwrap_or_default()
    }

    /// The bank of `line`.
    pub fn bank_of(&self, line: LineAddress) -> u32 {
        self.locate(line).0 as u32
    }

    /// What can be watched: places in use in the queues.
    pub fn gauges(&self) -> [u64; 2] {
        [self.reads_waiting as u64, self.writes.occupied() as u64]
    }

    /// Everything counted so far.
    pub fn counters(&self) -> &PmStats {
        &self.stats
    }

    /// Everything counted up to `now`, as a tree.
    pub fn stats(&self, now: Time) -> StatsNode {
        let still_to_come = match &self.handed_over {
            Some(handed_over) => handed_over.still_to_come(now, self.write),
            None => self.banks.iter().map(|bank| bank.free.since(now)).sum(),
        };
        let mut nodes = self.stats.nodes(now, still_to_come);
        nodes.push(("write_batches".to_owned(), StatsNode::Counter(self.drain.batches())));
        nodes.push(("banks".to_owned(), StatsNode::Level(self.banks.len() as u64)));
        nodes.extend(self.contents.older_writes().map(|count| ("older_writes".to_owned(), StatsNode::Counter(count))));
        StatsNode::group(nodes)
    }

    /// The bank of `line`, and its number in the device.
    fn locate(&self, line: LineAddress) -> (usize, u64) {
        let device_line = self.interleave.device_line(line);
        let (_, bank) = self.bank_count.divide(self.row(device_line));
        (bank as usize, device_line)
    }

    /// The row of a line, counted over all banks.
    fn row(&self, device_line: u64) -> u64 {
        self.lines_of_row.divide(device_line).0
    }

    /// `bank` will have the row of `device_line` in its buffer, if it has one: gives how long the medium takes for
    /// that.
    fn bring_row(&mut self, bank: usize, device_line: u64) -> Duration {
        let is_buffered = self.has_row_buffer && self.banks[bank].buffered_row == Some(self.row(device_line));
        self.buffer_row(bank, device_line);
        if is_buffered { Duration::ZERO } else { self.read }
    }

    /// `bank` has the row of `device_line` in its buffer.
    fn buffer_row(&mut self, bank: usize, device_line: u64) {
        self.banks[bank].buffered_row = Some(self.row(device_line));
    }

    fn accept_read(&mut self, mut request: Message, now: Time, completions: &mut Vec<Completion>) {
        let (bank, device_line) = self.locate(request.line);
        if let Some(queued) = self.writes.find(request.line, bank).filter(|queued| queued.is_whole) {
            self.stats.reads_from_write_queue += 1;
            request.stack.charge(Stage::DeviceQueue, now);
            completions.push(Completion { answer: request.answer(queued.version), at: now, is_from_queue: true });
            return;
        }
        self.stats.reads_behind_write += u64::from(self.writes.is_writing(bank));
        let read = WaitingRead { message: request, device_line, queued: now };
        self.reads_waiting += 1;
        match self.handed_over {
            Some(_) => self.hand_over_read(bank, read, now),
            None => {
                self.banks[bank].reads.push_back(read);
                self.busy.insert(bank);
            }
        }
        self.stats.read_queue.set(self.reads_waiting, now);
    }

    fn accept_write(&mut self, mut request: Message, now: Time, completions: &mut Vec<Completion>) {
        let (bank, device_line) = self.locate(request.line);
        if self.contents.checks_writes() {
            let queued = self.writes.find(request.line, bank).map(|queued| queued.version);
            let newest = queued.unwrap_or_else(|| self.contents.get(device_line));
            self.contents.check_write(request.version, newest);
        }
        let mut write = QueuedWrite {
            line: request.line,
            device_line,
            version: request.version,
            mask: request.mask,
            unacknowledged: Vec::new(),
            sequence: 0,
        };
        match self.ack_at {
            AckAt::Queue => {
                request.stack.charge(Stage::DeviceQueue, now);
                completions.push(Completion { answer: request.completion(), at: now, is_from_queue: true });
            }
            AckAt::Media => write.unacknowledged.push(request),
        }
        self.stats.writes_merged += u64::from(self.writes.push(write, bank));
        self.busy.insert(bank);
        self.stats.write_queue.set(self.writes.occupied(), now);
    }

    /// Gives `bank`, which is free, its next request; whether there is one.
    fn start(&mut self, bank: usize, now: Time, completions: &mut Vec<Completion>) -> bool {
        let has_read = !self.banks[bank].reads.is_empty();
        let has_write = self.writes.has_waiting(bank);
        let writes_first = self.drain.writes_first(self.reads_waiting, self.writes.occupied())
            || self.banks[bank].passed >= self.read_bypass_cap;
        if has_write && (writes_first || (!has_read && self.drain.writes_when_idle(self.writes.waiting()))) {
            self.start_write(bank, now);
        } else if has_read {
            self.banks[bank].passed += u16::from(has_write);
            self.start_read(bank, now, completions);
        } else {
            return false;
        }
        true
    }

    fn start_read(&mut self, bank: usize, now: Time, completions: &mut Vec<Completion>) {
        let read = self.banks[bank].reads.pop_front().expect("a read waits for the bank");
        let there = now + self.bring_row(bank, read.device_line) + self.send;
        let data_end = self.bus.reserve(there, now);
        self.banks[bank].free = data_end;
        self.reads_waiting -= 1;
        self.drain.read_served(self.reads_waiting, self.writes.occupied());
        self.stats.reads += 1;
        self.stats.read_wait_ps += now.since(read.queued).as_ps();
        self.stats.bank_busy_ps += data_end.since(now).as_ps();
        self.stats.read_queue.set(self.reads_waiting, now);
        self.answer_read(read, now, data_end, completions);
    }

    /// The data of a read, which its bank began at `begun`, are there at `data_end`.
    fn answer_read(&mut self, mut read: WaitingRead, begun: Time, data_end: Time, completions: &mut Vec<Completion>) {
        self.stats.read_latency_ps.record(data_end.since(read.queued));
        read.message.stack.charge(Stage::DeviceQueue, begun);
        read.message.stack.charge(Stage::Media, data_end);
        // Of a line that is queued in part, the queued bytes are laid over those of the medium.
        let bank = self.locate(read.message.line).0;
        let queued = self.writes.find(read.message.line, bank).map(|queued| queued.version);
        let version = queued.unwrap_or_else(|| self.contents.get(read.device_line));
        completions.push(Completion { answer: read.message.answer(version), at: data_end, is_from_queue: false });
    }

    fn start_write(&mut self, bank: usize, now: Time) {
        let device_line = self.writes.start(bank, now);
        self.buffer_row(bank, device_line);
        let end = self.bus.reserve(now, now) + self.send + self.write;
        self.banks[bank].free = end;
        self.banks[bank].passed = 0;
        self.drain.write_served();
        self.stats.writes += 1;
        self.stats.media_write_bytes += LINE_BYTES;
        self.stats.bank_busy_ps += end.since(now).as_ps();
    }

    fn finish_write(&mut self, bank: usize, now: Time, completions: &mut Vec<Completion>) {
        let write = self.writes.finish(bank);
        if let Some(log) = &mut self.written {
            let is_complete = write.unacknowledged.is_empty();
            let (line, version, from) = (write.line, write.version, now - self.write);
            log.push(MediaWrite { line, version, bank: bank as u32, from, until: now, is_complete });
        }
        self.contents.set(write.device_line, write.version);
        self.stats.write_queue.set(self.writes.occupied(), now);
        for mut request in write.unacknowledged {
            request.stack.charge(Stage::Media, now);
            completions.push(Completion { answer: request.completion(), at: now, is_from_queue: false });
        }
    }
}
