//! Banks that are handed everything at once.
//!
//! The controller sends a read to its bank as it comes, and a write when the bus has its turn for it. A bank does both
//! in the order in which it got them, so when it will have a line is known from the start; the controller fetches lines
//! over the bus in the order in which they come to be there. What gem5's NVM interface does.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::{Completion, Pm, WaitingRead};
use fencepost_kernel::line::LINE_BYTES;
use fencepost_kernel::time::{Duration, Time};

/// What has been handed over to the banks.
#[derive(Clone, Debug)]
pub(super) struct HandedOver {
    /// Writes that may be.
    writes_max: usize,
    /// Reads in the order they came.
    reads: VecDeque<HandedRead>,
    /// When each write will be done, and by which bank.
    written: BinaryHeap<Reverse<(Time, usize)>>,
    /// When the bus takes the next line.
    bus_free: Time,
}

/// A read that its bank got.
#[derive(Clone, Debug)]
struct HandedRead {
    /// When the bank begins.
    from: Time,
    /// When it has the line.
    there: Time,
    read: WaitingRead,
}

impl HandedOver {
    /// Nothing yet; at most so many writes at a time.
    pub fn new(writes_max: usize) -> HandedOver {
        HandedOver { writes_max, reads: VecDeque::new(), written: BinaryHeap::new(), bus_free: Time::ZERO }
    }

    /// Power is gone.
    pub fn power_fail(&mut self) {
        *self = HandedOver::new(self.writes_max);
    }

    fn first_there(&self, now: Time) -> Option<usize> {
        self.reads.iter().position(|read| read.there <= now)
    }

    /// How long banks will be busy after `now` with what they got, summed over banks; a write takes them `write`.
    pub fn still_to_come(&self, now: Time, write: Duration) -> Duration {
        let reads = self.reads.iter().map(|read| read.there.since(read.from.max(now)));
        let writes = self.written.iter().map(|Reverse((done, _))| done.since(now).min(write));
        reads.chain(writes).sum()
    }
}

impl Pm {
    /// Sends a read to its bank.
    pub(super) fn hand_over_read(&mut self, bank: usize, read: WaitingRead, now: Time) {
        let from = self.banks[bank].free.max(now);
        let there = from + self.bring_row(bank, read.device_line);
        self.banks[bank].free = there;
        self.stats.reads += 1;
        self.stats.read_wait_ps += from.since(now).as_ps();
        self.stats.bank_busy_ps += there.since(from).as_ps();
        self.handed_over().reads.push_back(HandedRead { from, there, read });
    }

    /// As [`Pm::advance`].
    pub(super) fn advance_handed_over(&mut self, now: Time, completions: &mut Vec<Completion>) -> Time {
        while let Some(&Reverse((done, bank))) = self.handed_over().written.peek()
            && done <= now
        {
            self.handed_over().written.pop();
            self.finish_write(bank, done, completions);
        }
        while self.handed_over().bus_free <= now {
            if self.sends_write() {
                self.hand_over_write(now);
            } else if let Some(index) = self.handed_over().first_there(now) {
                self.fetch(index, now, completions);
            } else {
                break;
            }
        }
        let has_more = self.reads_waiting > 0 || self.drain.would_write_when_idle(self.writes.waiting());
        let handed_over = self.handed_over();
        let written = handed_over.written.peek().map(|Reverse((done, _))| *done);
        let there = handed_over.reads.iter().map(|read| read.there).min();
        let bus = if handed_over.bus_free > now { has_more.then_some(handed_over.bus_free) } else { there };
        [written, bus].into_iter().flatten().min().unwrap_or(Time::NEVER)
    }

    /// Whether it is a write's turn, and one can be handed over.
    fn sends_write(&mut self) -> bool {
        let (reads, writes) = (self.reads_waiting, self.writes.waiting());
        let is_turn = self.drain.writes_first(reads, writes) || (reads == 0 && self.drain.writes_when_idle(writes));
        is_turn && writes > 0 && self.writes.writing() < self.handed_over().writes_max
    }

    fn hand_over_write(&mut self, now: Time) {
        let bank = self.writes.oldest().expect("a write waits");
        let device_line = self.writes.start(bank, now);
        let end = now + self.burst;
        let from = (end + self.send).max(self.banks[bank].free);
        let done = from + self.write;
        self.banks[bank].free = done;
        self.buffer_row(bank, device_line);
        self.handed_over().bus_free = end;
        self.handed_over().written.push(Reverse((done, bank)));
        self.drain.write_served();
        self.stats.writes += 1;
        self.stats.media_write_bytes += LINE_BYTES;
        self.stats.bank_busy_ps += self.write.as_ps();
        self.stats.write_queue.set(self.writes.occupied(), now);
    }

    /// Fetches a line that its bank has.
    fn fetch(&mut self, index: usize, now: Time, completions: &mut Vec<Completion>) {
        let end = now + self.burst;
        let handed_over = self.handed_over();
        let HandedRead { read, .. } = handed_over.reads.remove(index).expect("there is such a read");
        handed_over.bus_free = end;
        let data_end = end + self.send;
        let begun = data_end.since(read.queued).as_ps().min((self.read + self.send + self.burst).as_ps());
        let begun = Time::from_ps(data_end.as_ps() - begun);
        self.reads_waiting -= 1;
        self.drain.read_served(self.reads_waiting, self.writes.waiting());
        self.stats.read_queue.set(self.reads_waiting, now);
        self.answer_read(read, begun, data_end, completions);
    }

    fn handed_over(&mut self) -> &mut HandedOver {
        self.handed_over.as_mut().expect("banks are handed everything at once")
    }
}
