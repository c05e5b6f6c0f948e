//! FR-FCFS: first ready, first come first served, with a cap on how long an open row may be preferred.
//!
//! Of all commands that the queued requests need next, the one that can be issued first goes first; among those of the same time RD and WR
//! go before ACT and PRE, older requests before younger ones (Rixner et al., ISCA 2000). A row is not closed while queued requests hit it, unless
//! so many of them have passed an older request for another row of the bank (the cap of Mutlu and Moscibroda, MICRO 2007).

use super::channel::{BankId, Channel, Command};
use super::refresh::Refresh;
use crate::kernel::Time;
use crate::message::Message;

/// A request in a queue of the controller.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    /// The request.
    pub message: Message,
    /// Its line's number in the device.
    pub device_line: u64,
    /// Its bank.
    pub bank: BankId,
    /// Its row.
    pub row: u64,
    /// When it entered the queue.
    pub queued: Time,
    /// When the first command was issued on its behalf.
    pub first_command: Option<Time>,
    /// How its row was found so far.
    pub row_state: RowState,
}

/// How a request found the row of its bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowState {
    /// Its row was open.
    Hit,
    /// No row was open.
    Miss,
    /// Another row was open.
    Conflict,
}

/// What the scheduler has chosen.
#[derive(Clone, Copy, Debug)]
pub struct Decision {
    /// When the command can be issued.
    pub at: Time,
    /// Whose request it serves, as an index into the queue.
    pub index: usize,
    /// The command; RD and WR without auto-precharge.
    pub command: Command,
}

/// The scheduler's own state.
#[derive(Clone, Debug)]
pub struct Scheduler {
    row_hit_cap: u16,
    /// For each bank, how many hits of the open row passed an older request for another row.
    passed: Vec<u16>,
}

impl Scheduler {
    /// A scheduler for a channel of `banks` banks.
    pub fn new(banks: usize, row_hit_cap: u16) -> Scheduler {
        Scheduler { row_hit_cap, passed: vec![0; banks] }
    }

    /// Chooses among the requests of `queue`, oldest first, all reads or all writes. None if all of them wait for a refresh.
    pub fn choose(&self, queue: &[Pending], channel: &Channel, refresh: &Refresh, now: Time) -> Option<Decision> {
        let is_hit = |pending: &Pending| channel.open_row(pending.bank) == Some(pending.row);
        let mut wanted_rows = BankSet::default();
        for pending in queue.iter().filter(|pending| is_hit(pending)) {
            wanted_rows.insert(pending.bank);
        }
        let mut columns_seen = BankSet::default();
        let mut conflicts_seen = BankSet::default();
        let mut best: Option<(Time, bool, Decision)> = None;
        for (index, pending) in queue.iter().enumerate() {
            let bank = pending.bank;
            if refresh.is_due(channel.rank(bank), now) {
                continue;
            }
            let is_capped = self.passed[usize::from(bank.0)] >= self.row_hit_cap;
            let command = if is_hit(pending) {
                let gives_way = is_capped && conflicts_seen.contains(bank);
                if gives_way || !columns_seen.insert(bank) {
                    continue;
                }
                match pending.message.is_write() {
                    true => Command::Write { bank, auto_precharge: false },
                    false => Command::Read { bank, auto_precharge: false },
                }
            } else {
                if !conflicts_seen.insert(bank)
                    || (wanted_rows.contains(bank) && (!is_capped || columns_seen.contains(bank)))
                {
                    continue;
                }
                match channel.open_row(bank) {
                    Some(_) => Command::Precharge { bank },
                    None => Command::Activate { bank, row: pending.row },
                }
            };
            let at = channel.earliest(command).max(now);
            let opens_or_closes = matches!(command, Command::Activate { .. } | Command::Precharge { .. });
            if best.is_none_or(|(time, slow, _)| (at, opens_or_closes) < (time, slow)) {
                best = Some((at, opens_or_closes, Decision { at, index, command }));
            }
        }
        best.map(|(.., decision)| decision)
    }

    /// RD or WR was issued for `queue[index]`, which is still in the queue.
    pub fn column_issued(&mut self, queue: &[Pending], index: usize) {
        let Pending { bank, row, .. } = queue[index];
        if queue[..index].iter().any(|older| older.bank == bank && older.row != row) {
            let passed = &mut self.passed[usize::from(bank.0)];
            *passed = passed.saturating_add(1);
        }
    }

    /// The row of `bank` was closed.
    pub fn row_closed(&mut self, bank: BankId) {
        self.passed[usize::from(bank.0)] = 0;
    }

    /// The rows of `banks` were closed.
    pub fn rows_closed(&mut self, banks: std::ops::Range<usize>) {
        self.passed[banks].fill(0);
    }
}

/// A set of banks; a channel has at most 1024.
#[derive(Default)]
struct BankSet([u64; 16]);

impl BankSet {
    fn contains(&self, bank: BankId) -> bool {
        self.0[usize::from(bank.0) / 64] >> (bank.0 % 64) & 1 == 1
    }

    /// True if the bank was not in the set.
    fn insert(&mut self, bank: BankId) -> bool {
        let is_new = !self.contains(bank);
        self.0[usize::from(bank.0) / 64] |= 1 << (bank.0 % 64);
        is_new
    }
}
