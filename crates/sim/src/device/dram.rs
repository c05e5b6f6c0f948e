//! A channel of DRAM and the queues before it.
//!
//! Requests wait in a read queue and a write queue, from which the [scheduler] takes commands one by one, or all of a
//! request, each for the exact time at which the [channel] lets it through. DRAM is volatile: a write is complete when
//! it is queued, and a read of a queued line is answered from the queue. Time passes from one possible command to the
//! next; cycles without one cost nothing.

pub mod address;
pub mod channel;
mod channels;
pub mod config;
pub mod refresh;
mod request_queue;
pub mod scheduler;
mod stats;
pub mod timing;

#[cfg(test)]
pub(crate) mod tests;

pub use channel::{BankId, Command};
pub use channels::DramChannels;
pub use config::{AddressMapping, DramConfig, PagePolicy, Scheduling};
pub use stats::DramStats;

use super::line_versions::LineVersions;
use super::medium::Completion;
use super::write_drain::{WriteDrain, WriteDrainConfig};
use crate::host_bridge::Interleave;
use address::AddressMap;
use channel::{Channel, before};
use fencepost_kernel::line::{ByteMask, LineAddress, Version};
use fencepost_kernel::message::{Message, MessageClass, Stage};
use fencepost_kernel::stats::StatsNode;
use fencepost_kernel::time::Time;
use refresh::Refresh;
use request_queue::{Pending, Request, RequestQueue, RowState};
use scheduler::{Decision, Place, Scheduler};

/// A channel of DRAM with its queues.
#[derive(Clone, Debug)]
pub struct Dram {
    interleave: Interleave,
    /// How the lines of the device are dealt out to its channels.
    channel_interleave: Interleave,
    address_map: AddressMap,
    page_policy: PagePolicy,
    read_queue_entries: usize,
    write_queue_entries: usize,
    channel: Channel,
    refresh: Refresh,
    scheduler: Scheduler,
    drain: WriteDrain,
    reads: RequestQueue,
    writes: RequestQueue,
    /// Requests whose row was opened for them, command by command: they have left their queues and wait at their banks,
    /// one at each at most.
    at_banks: RequestQueue,
    scheduling: Scheduling,
    /// What was chosen for a later time, and whether it is a write; holds as long as nothing else happens.
    planned: Option<(Decision, bool)>,
    /// When the next request is chosen, where each is chosen with all of its commands.
    next_choice: Time,
    /// What a read sees: queued writes included.
    contents: LineVersions,
    /// Whether a battery keeps the content, that of the queue included.
    is_backed: bool,
    /// The commands issued so far; allocated only when they are logged.
    commands: Option<Vec<(Time, Command)>>,
    last_column_was_write: bool,
    stats: DramStats,
}

impl Dram {
    /// The only channel of a device like `config`, whose lines are those of one way of `interleave`.
    pub fn new(config: &DramConfig, interleave: Interleave, is_backed: bool) -> Dram {
        Dram::one_of_several(config, interleave, Interleave::WHOLE, is_backed)
    }

    /// A channel of a device like `config`, whose lines are those of one way of `interleave`; this channel's are one
    /// way of `channel_interleave` of those.
    pub fn one_of_several(
        config: &DramConfig,
        interleave: Interleave,
        channel_interleave: Interleave,
        is_backed: bool,
    ) -> Dram {
        let channel = Channel::new(config);
        Dram {
            interleave,
            channel_interleave,
            address_map: AddressMap::new(config),
            page_policy: config.page_policy,
            read_queue_entries: config.read_queue_entries.into(),
            write_queue_entries: config.write_queue_entries.into(),
            refresh: Refresh::new(&channel),
            scheduler: Scheduler::new(channel.banks(), config.row_hit_cap, config.row_accesses),
            drain: WriteDrain::new(&WriteDrainConfig {
                turns: config.write_turns,
                high: config.write_high_watermark,
                low: config.write_low_watermark,
                idle: config.write_idle_watermark,
                per_turn: config.requests_per_turn,
            }),
            channel,
            reads: RequestQueue::default(),
            writes: RequestQueue::default(),
            at_banks: RequestQueue::default(),
            scheduling: config.scheduling,
            planned: None,
            next_choice: Time::ZERO,
            contents: LineVersions::default(),
            is_backed,
            commands: None,
            last_column_was_write: false,
            stats: DramStats::default(),
        }
    }

    /// From now on the commands are kept for [`Self::take_commands`].
    pub fn record_commands(&mut self) {
        self.commands.get_or_insert_default();
    }

    /// The commands issued since the last call, in the order in which they were chosen, each with its time.
    pub fn take_commands(&mut self) -> Vec<(Time, Command)> {
        self.commands.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// When a request can enter the queues: at an edge of the clock.
    pub fn entry_time(&self, time: Time) -> Time {
        self.channel.timing().edge(time)
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
            true => self.writes.len() < self.write_queue_entries || self.has_queued_write(request.line),
            false => self.reads.len() < self.read_queue_entries,
        }
    }

    /// Takes `request`, for which there is room.
    pub fn accept(&mut self, mut request: Message, now: Time, completions: &mut Vec<Completion>) {
        debug_assert!(self.has_room(&request));
        self.planned = None;
        // There is one queued write to a line at most, because later ones merge with it.
        let (line, mask) = (request.line, request.mask);
        let queued_write = self.queued_write_mut(line);
        if !request.is_write() {
            if queued_write.is_some_and(|write| write.mask.is_full()) {
                self.stats.reads_from_write_queue += 1;
                completions.push(self.answer_from_queue(request, now));
            } else {
                // A line of which only some bytes are queued is read, and those bytes are laid over it.
                self.enqueue(line, mask, Some(request), now);
            }
            return;
        }
        if let Some(write) = queued_write {
            write.mask = ByteMask(write.mask.0 | mask.0);
            self.stats.writes_merged += 1;
        } else {
            self.enqueue(line, mask, None, now);
        }
        self.take_version(line, request.version);
        request.stack.charge(Stage::DeviceQueue, now);
        completions.push(Completion { answer: request.completion(), at: now, is_from_queue: true });
    }

    /// Issues the commands that are due at `now`; gives the time of the next one.
    pub fn advance(&mut self, now: Time, completions: &mut Vec<Completion>) -> Time {
        if self.is_idle() {
            return Time::NEVER;
        }
        let edge = self.entry_time(now);
        if edge > now {
            return edge;
        }
        if let Some((decision, is_write)) = self.planned.take()
            && decision.at == now
            && self.refresh.next_due() > now
        {
            self.execute(decision, is_write, now, completions);
        }
        loop {
            let refresh_at = self.refresh_until(now);
            if self.is_idle() {
                return Time::NEVER;
            }
            if self.next_choice > now {
                return self.next_choice.min(refresh_at);
            }
            let writes = self.writes.len();
            let writes_first = self.drain.writes_first(self.waiting_reads(), writes)
                || (self.reads.is_empty() && self.drain.writes_when_idle(writes));
            if self.scheduling == Scheduling::EachRequest {
                match self.serve_request(writes_first, now, completions) {
                    true => continue,
                    false => return refresh_at.min(self.refresh.next_over(now)),
                }
            }
            let queue = if writes_first { &self.writes } else { &self.reads };
            let (queue, at_banks) = (queue.pending(), self.at_banks.pending());
            let decision = self.scheduler.choose(queue, at_banks, &self.channel, &self.refresh, now);
            match decision {
                Some(decision) if decision.at <= now => self.execute(decision, writes_first, now, completions),
                Some(decision) => {
                    self.planned = Some((decision, writes_first));
                    return decision.at.min(refresh_at);
                }
                None => return refresh_at,
            }
        }
    }

    /// Writes `version` of `line` before time starts.
    pub fn preload(&mut self, line: LineAddress, version: Version) {
        self.take_version(line, version);
    }

    /// Writes of older versions replace newer ones from now on, and are counted; volatile DRAM takes them anyway.
    pub fn take_older_writes(&mut self) {
        self.contents.take_older_writes();
    }

    /// The version of `line` that a power cut now would leave; none without a battery.
    pub fn durable_version(&self, line: LineAddress) -> Option<Version> {
        self.is_backed.then(|| self.contents.get(self.channel_line(line)))
    }

    /// Power is gone: everything is lost, but for what a battery keeps.
    pub fn power_fail(&mut self) {
        self.reads.clear();
        self.writes.clear();
        self.at_banks.clear();
        self.planned = None;
        self.next_choice = Time::ZERO;
        self.refresh.power_fail();
        if !self.is_backed {
            self.contents.clear();
        }
        self.drain.power_fail();
        self.channel.power_fail();
        self.scheduler.rows_closed(0..self.channel.banks());
    }

    /// Whether nothing is queued.
    pub fn is_idle(&self) -> bool {
        self.reads.is_empty() && self.at_banks.is_empty() && !self.drain.would_write_when_idle(self.writes.len())
    }

    /// What is queued, for the deadlock report.
    pub fn waiting(&self) -> Vec<String> {
        let line = |(pending, request): (&Pending, &Request)| {
            let kind = if request.read.is_some() { "MemRd" } else { "MemWr" };
            let (line, bank, row) = (pending.line.byte(), pending.bank.0, pending.row);
            format!("{kind} of line {line:#x} (bank {bank}, row {row}) since {}", request.queued)
        };
        self.reads.iter().chain(self.writes.iter()).chain(self.at_banks.iter()).map(line).collect()
    }

    /// The bank of `line`.
    pub fn bank_of(&self, line: LineAddress) -> u32 {
        u32::from(self.address_map.locate(self.channel_line(line)).0.0)
    }

    /// How many banks there are.
    pub fn banks(&self) -> u32 {
        self.channel.banks() as u32
    }

    /// What can be watched: places in use in the queues.
    pub fn gauges(&self) -> [u64; 2] {
        [self.reads.len() as u64, self.writes.len() as u64]
    }

    /// Everything counted so far.
    pub fn counters(&self) -> &DramStats {
        &self.stats
    }

    /// Everything counted up to `now`, as a tree.
    pub fn stats(&self, now: Time) -> StatsNode {
        let mut nodes = self.stats.nodes(now);
        nodes.push(("write_batches".to_owned(), StatsNode::Counter(self.drain.batches())));
        if self.is_backed {
            nodes.push(("battery_backed".to_owned(), StatsNode::Level(1)));
            nodes.extend(
                self.contents.older_writes().map(|count| ("older_writes".to_owned(), StatsNode::Counter(count))),
            );
        }
        StatsNode::group(nodes)
    }

    /// Takes what a write brings. Of what a battery keeps hosts keep account, so there an older version is a bug.
    fn take_version(&mut self, line: LineAddress, version: Version) {
        let channel_line = self.channel_line(line);
        if !self.is_backed {
            self.contents.overwrite(channel_line, version);
            return;
        }
        if self.contents.checks_writes() {
            self.contents.check_write(version, self.contents.get(channel_line));
        }
        self.contents.set(channel_line, version);
    }

    /// The number of `line` within this channel.
    fn channel_line(&self, line: LineAddress) -> u64 {
        self.channel_interleave.device_line(LineAddress(self.interleave.device_line(line)))
    }

    /// How many reads wait, in their queue or at banks.
    fn waiting_reads(&self) -> usize {
        self.reads.len() + self.at_banks.pending().iter().filter(|pending| !pending.is_write).count()
    }

    /// Whether a write to `line` has not gone to the chips yet.
    fn has_queued_write(&self, line: LineAddress) -> bool {
        let is_at_bank = |waiting: usize| self.at_banks.pending()[waiting].is_write;
        self.writes.find(line).is_some() || self.at_banks.find(line).is_some_and(is_at_bank)
    }

    /// The write to `line` that has not gone to the chips yet.
    fn queued_write_mut(&mut self, line: LineAddress) -> Option<&mut Request> {
        if let Some(queued) = self.writes.find(line) {
            return Some(self.writes.request_mut(queued));
        }
        let at_bank = self.at_banks.find(line)?;
        self.at_banks.pending()[at_bank].is_write.then(|| self.at_banks.request_mut(at_bank))
    }

    /// Queues a read, or a write of the bytes `mask`.
    fn enqueue(&mut self, line: LineAddress, mask: ByteMask, read: Option<Message>, now: Time) {
        let device_line = self.channel_line(line);
        let (bank, row) = self.address_map.locate(device_line);
        let (queue, occupancy) = match read.is_none() {
            true => (&mut self.writes, &mut self.stats.write_queue),
            false => (&mut self.reads, &mut self.stats.read_queue),
        };
        let request = Request { read, mask, device_line, queued: now, first_command: None, row_state: RowState::Hit };
        queue.push(request, line, bank, row);
        occupancy.set(queue.len(), now);
    }

    fn answer_from_queue(&self, mut request: Message, now: Time) -> Completion {
        request.stack.charge(Stage::DeviceQueue, now);
        let version = self.contents.get(self.channel_line(request.line));
        Completion { answer: request.answer(version), at: now, is_from_queue: true }
    }

    /// Issues the commands of refreshing that are possible up to `now`; gives the time at which to ask again.
    fn refresh_until(&mut self, now: Time) -> Time {
        while self.refresh.next_due() <= now {
            if self.commands.is_none() {
                self.stats.refreshes += self.refresh.skip_rounds(&self.channel, now);
            }
            let (at, command) = self.refresh.next_command(&self.channel);
            if at > now {
                return at;
            }
            self.issue(command, at);
            if let Command::Refresh { rank } = command {
                self.refresh.refreshed(rank, at + self.channel.timing().rfc);
            }
        }
        self.refresh.next_due()
    }

    /// Chooses a write, or a read, and plans all of its commands; none if the ranks of all are being refreshed.
    fn serve_request(&mut self, is_write: bool, now: Time, completions: &mut Vec<Completion>) -> bool {
        let queue = if is_write { &self.writes } else { &self.reads };
        let chosen = self.scheduler.choose_request(queue.pending(), &self.channel, &self.refresh, now);
        let Some(index) = chosen else { return false };
        let Pending { bank, row, .. } = queue.pending()[index];
        let mut is_served = false;
        while !is_served {
            let command = match self.channel.open_row(bank) {
                Some(open) if open == row && is_write => Command::Write { bank, auto_precharge: false },
                Some(open) if open == row => Command::Read { bank, auto_precharge: false },
                Some(_) => Command::Precharge { bank },
                None => Command::Activate { bank, row },
            };
            is_served = matches!(command, Command::Read { .. } | Command::Write { .. });
            let at = self.channel.earliest(command).max(now);
            if is_served {
                let timing = self.channel.timing();
                self.next_choice = before(at + timing.burst, timing.rp + timing.rcd).max(now);
            }
            self.execute(Decision { at, place: Place::Queue, index, command }, is_write, now, completions);
        }
        true
    }

    /// Issues a command that was chosen `now`, for a write if it `is_write` and waits in a queue.
    fn execute(&mut self, decision: Decision, is_write: bool, now: Time, completions: &mut Vec<Completion>) {
        let Decision { at, place, index, command } = decision;
        let queue = match place {
            Place::Bank => &mut self.at_banks,
            Place::Queue if is_write => &mut self.writes,
            Place::Queue => &mut self.reads,
        };
        let request = queue.request_mut(index);
        request.first_command.get_or_insert(at);
        match command {
            Command::Precharge { .. } => request.row_state = RowState::Conflict,
            Command::Activate { .. } => {
                request.row_state = request.row_state.max(RowState::Miss);
                if place == Place::Queue && self.scheduling == Scheduling::EachCommand {
                    let (Pending { line, bank, row, .. }, request) = self.leave_queue(is_write, index, now);
                    self.at_banks.push(request, line, bank, row);
                }
            }
            _ => {
                let (pending, request) = match place {
                    Place::Bank => {
                        self.scheduler.served_at_bank();
                        self.at_banks.remove(index)
                    }
                    Place::Queue => {
                        let queue = if is_write { &self.writes } else { &self.reads };
                        self.scheduler.column_issued(queue.pending(), index, self.at_banks.pending());
                        self.leave_queue(is_write, index, now)
                    }
                };
                return self.transfer(pending, request, at, completions);
            }
        }
        self.issue(command, at);
    }

    /// The request at `index` leaves the queue of writes, or of reads, `now`.
    fn leave_queue(&mut self, is_write: bool, index: usize, now: Time) -> (Pending, Request) {
        if is_write {
            let left = self.writes.remove(index);
            self.drain.write_served();
            self.stats.write_queue.set(self.writes.len(), now);
            left
        } else {
            let left = self.reads.remove(index);
            self.drain.read_served(self.waiting_reads(), self.writes.len());
            self.stats.read_queue.set(self.reads.len(), now);
            left
        }
    }

    /// Issues RD or WR `at` for a request that waits nowhere any more.
    fn transfer(&mut self, pending: Pending, request: Request, at: Time, completions: &mut Vec<Completion>) {
        let Request { read, device_line, queued, first_command, row_state, .. } = request;
        let bank = pending.bank;
        let is_write = read.is_none();
        let is_worn_out = self.scheduler.row_accessed(bank);
        let auto_precharge = is_worn_out || self.closes_row(&pending, is_write);
        let command = match is_write {
            true => Command::Write { bank, auto_precharge },
            false => Command::Read { bank, auto_precharge },
        };
        self.issue(command, at);
        self.stats.bus_turnarounds += u64::from(is_write != self.last_column_was_write);
        self.last_column_was_write = is_write;
        let timing = self.channel.timing();
        let data_end = at + timing.cl + timing.burst;
        self.stats.data_bus_busy_ps += timing.burst.as_ps();
        self.stats.count_row(row_state);
        let Some(mut message) = read else {
            self.stats.writes += 1;
            return;
        };
        self.stats.reads += 1;
        self.stats.read_latency_ps.record(data_end.since(queued));
        message.stack.charge(Stage::DeviceQueue, first_command.unwrap_or(at));
        message.stack.charge(Stage::Media, data_end);
        completions.push(Completion {
            answer: message.answer(self.contents.get(device_line)),
            at: data_end,
            is_from_queue: false,
        });
    }

    fn issue(&mut self, command: Command, at: Time) {
        self.channel.issue(command, at);
        self.stats.count_command(command);
        match command {
            Command::Precharge { bank }
            | Command::Read { bank, auto_precharge: true }
            | Command::Write { bank, auto_precharge: true } => self.scheduler.row_closed(bank),
            Command::PrechargeAll { rank } => self.scheduler.rows_closed(self.channel.banks_of_rank(rank)),
            _ => {}
        }
        if let Some(commands) = &mut self.commands {
            commands.push((at, command));
        }
    }

    /// Whether the policy closes the row behind the access `pending`, which has left its queue.
    fn closes_row(&self, pending: &Pending, is_write: bool) -> bool {
        let same_bank = |other: &&Pending| other.bank == pending.bank;
        let is_hit = |other: &Pending| other.row == pending.row;
        if self.at_banks.pending().iter().any(|other| same_bank(&other)) {
            return false; // It was opened for that one.
        }
        match self.page_policy {
            PagePolicy::Open => false,
            PagePolicy::OpenAdaptive => {
                let queue = if is_write { &self.writes } else { &self.reads };
                let mut others = queue.pending().iter().filter(same_bank).peekable();
                others.peek().is_some() && !others.any(is_hit)
            }
            PagePolicy::Closed => {
                let mut others = self.reads.pending().iter().chain(self.writes.pending()).filter(same_bank);
                !others.any(is_hit)
            }
        }
    }
}
