//! FR-FCFS: first ready, first come first served, with a cap on how long an open row may be preferred. Commands are
//! chosen one by one; or a request is, with all of its commands ([`Scheduler::choose_request`]).
//!
//! Of all commands that the queued requests need next, the one that can be issued first goes first; among those of the
//! same time RD and WR go before ACT and PRE, older requests before younger ones (Rixner et al., ISCA 2000). A row is
//! not closed while queued requests hit it, unless so many of them have passed an older request for another row of the
//! bank (the cap of Mutlu and Moscibroda, MICRO 2007).
//!
//! A request whose row has been opened for it waits at its bank, which opens no other row until it is served, whichever
//! kind has its turn. Those at banks are served in the order of their kind: no write passes a read, and no more reads
//! pass a write than the cap says.

use super::channel::{BankId, Channel, Command};
use super::refresh::Refresh;
use super::request_queue::Pending;
use fencepost_kernel::time::Time;

/// Where a request waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the queue whose turn it is.
    Queue,
    /// At its bank, whose row was opened for it: it has left its queue.
    Bank,
}

/// What the scheduler has chosen.
#[derive(Clone, Copy, Debug)]
pub struct Decision {
    /// When the command can be issued.
    pub at: Time,
    /// Where the request that it serves waits.
    pub place: Place,
    /// Its index there.
    pub index: usize,
    /// The command; RD and WR without auto-precharge.
    pub command: Command,
}

/// The scheduler's own state.
#[derive(Clone, Debug)]
pub struct Scheduler {
    row_hit_cap: u16,
    row_accesses: u16,
    /// For each bank, how many hits of the open row passed an older request for another row.
    passed: Vec<u16>,
    /// How many reads that hit an open row passed a write at a bank since one at a bank was served.
    passed_at_banks: u16,
    /// For each bank, how often its row was accessed since it was opened.
    accesses: Vec<u16>,
}

impl Scheduler {
    /// A scheduler for a channel of `banks` banks, whose rows take `row_accesses` at a time; any number if that is 0.
    pub fn new(banks: usize, row_hit_cap: u16, row_accesses: u16) -> Scheduler {
        Scheduler { row_hit_cap, row_accesses, passed: vec![0; banks], passed_at_banks: 0, accesses: vec![0; banks] }
    }

    /// The open row of `bank` is accessed once more; whether it has to be closed after that.
    pub fn row_accessed(&mut self, bank: BankId) -> bool {
        let accesses = &mut self.accesses[usize::from(bank.0)];
        *accesses = accesses.saturating_add(1);
        *accesses == self.row_accesses
    }

    /// Chooses among the requests of `queue`, oldest first, all writes or all reads, and those `at_banks`, reads and
    /// writes, whose rows were opened in this order. None if all of them wait for a refresh.
    pub fn choose(
        &self,
        queue: &[Pending],
        at_banks: &[Pending],
        channel: &Channel,
        refresh: &Refresh,
        now: Time,
    ) -> Option<Decision> {
        if channel.banks() <= SmallBankSet::BANKS {
            self.choose_with::<SmallBankSet>(queue, at_banks, channel, refresh, now)
        } else {
            self.choose_with::<LargeBankSet>(queue, at_banks, channel, refresh, now)
        }
    }

    fn choose_with<Set: BankSet>(
        &self,
        queue: &[Pending],
        at_banks: &[Pending],
        channel: &Channel,
        refresh: &Refresh,
        now: Time,
    ) -> Option<Decision> {
        let soonest = channel.command_bus_free().max(now);
        let waits_for_refresh = refresh.next_due() <= now;
        let mut columns_seen = Set::default();
        let mut conflicts_seen = Set::default();
        // The banks whose open row a request hits; found out when it first matters.
        let mut hits: Option<Set> = None;
        let mut best = Best::default();
        // Whether the oldest of those `at_banks` that can go writes. It would never find the bus free if the other kind
        // kept passing it.
        let mut oldest_writes: Option<bool> = None;
        for (index, pending) in at_banks.iter().enumerate() {
            let Pending { bank, row, .. } = *pending;
            // Until it is served its bank opens no other row, whichever queue asks for one.
            conflicts_seen.insert(bank);
            if waits_for_refresh && refresh.is_due(channel.rank(bank), now) {
                continue;
            }
            // A refresh may have closed its row.
            let is_column = channel.open_row(bank).is_some();
            if is_column && *oldest_writes.get_or_insert(pending.is_write) != pending.is_write {
                continue;
            }
            let (command, earliest) = match is_column {
                true => column(pending, channel),
                false => (Command::Activate { bank, row }, channel.earliest_activate(bank)),
            };
            best.offer(Decision { at: earliest.max(soonest), place: Place::Bank, index, command }, is_column);
        }
        let hits_wait = queue.first().is_some_and(|hit| {
            let passes = oldest_writes.is_some_and(|is_write| is_write != hit.is_write);
            passes && (hit.is_write || self.passed_at_banks >= self.row_hit_cap)
        });
        for (index, pending) in queue.iter().enumerate() {
            let Pending { bank, row, .. } = *pending;
            if waits_for_refresh && refresh.is_due(channel.rank(bank), now) {
                continue;
            }
            let open_row = channel.open_row(bank);
            let is_column = open_row == Some(row);
            let (command, earliest) = if is_column {
                let gives_way = conflicts_seen.contains(bank) && self.is_capped(bank);
                if hits_wait || gives_way || !columns_seen.insert(bank) {
                    continue;
                }
                column(pending, channel)
            } else {
                if !conflicts_seen.insert(bank) || columns_seen.contains(bank) {
                    continue;
                }
                // A hit that is older would have been seen, or have given way to an older conflict.
                let mut is_hit = || hits.get_or_insert_with(|| banks_hit(&queue[index..], channel)).contains(bank);
                match open_row {
                    Some(_) if is_hit() && !self.is_capped(bank) => continue,
                    Some(_) => (Command::Precharge { bank }, channel.earliest_precharge(bank)),
                    None => (Command::Activate { bank, row }, channel.earliest_activate(bank)),
                }
            };
            let at = earliest.max(soonest);
            best.offer(Decision { at, place: Place::Queue, index, command }, is_column);
            if is_column && at == soonest {
                break; // Nothing can go before this one.
            }
        }
        best.decision
    }

    /// Chooses the request of `queue`, oldest first, all writes or all reads, whose RD or WR can come first; among
    /// those of the same time one that hits an open row goes before others, an older one before younger ones. None if
    /// the ranks of all are being refreshed.
    pub fn choose_request(&self, queue: &[Pending], channel: &Channel, refresh: &Refresh, now: Time) -> Option<usize> {
        let timing = channel.timing();
        let first_data = |pending: &Pending| {
            let Pending { bank, row, .. } = *pending;
            let (_, gate) = column(pending, channel);
            let activate = |closed: Time| channel.earliest_activate(bank).max(closed);
            let open_row = channel.open_row(bank);
            let opened = match open_row {
                Some(open) if open == row => now,
                Some(_) => activate(channel.earliest_precharge(bank).max(now) + timing.rp) + timing.rcd,
                None => activate(now) + timing.rcd,
            };
            (gate.max(opened), open_row != Some(row))
        };
        let is_free = |pending: &Pending| !refresh.is_taken(channel.rank(pending.bank), now);
        let candidates = queue.iter().enumerate().filter(|(_, pending)| is_free(pending));
        candidates.min_by_key(|(_, pending)| first_data(pending)).map(|(index, _)| index)
    }

    /// Whether no more hits of the open row of `bank` may pass an older request for another row.
    fn is_capped(&self, bank: BankId) -> bool {
        self.passed[usize::from(bank.0)] >= self.row_hit_cap
    }

    /// RD or WR was issued for a request at a bank.
    pub fn served_at_bank(&mut self) {
        self.passed_at_banks = 0;
    }

    /// RD or WR was issued for `queue[index]`, which is still in the queue, while those `at_banks` waited.
    pub fn column_issued(&mut self, queue: &[Pending], index: usize, at_banks: &[Pending]) {
        let Pending { bank, row, is_write, .. } = queue[index];
        if at_banks.iter().any(|waiting| waiting.is_write != is_write) {
            self.passed_at_banks = self.passed_at_banks.saturating_add(1);
        }
        if queue[..index].iter().any(|older| older.bank == bank && older.row != row) {
            let passed = &mut self.passed[usize::from(bank.0)];
            *passed = passed.saturating_add(1);
        }
    }

    /// The row of `bank` was closed.
    pub fn row_closed(&mut self, bank: BankId) {
        self.passed[usize::from(bank.0)] = 0;
        self.accesses[usize::from(bank.0)] = 0;
    }

    /// The rows of `banks` were closed.
    pub fn rows_closed(&mut self, banks: std::ops::Range<usize>) {
        self.passed[banks.clone()].fill(0);
        self.accesses[banks].fill(0);
    }
}

/// The best command so far: the one that can be issued first, RD and WR before others, of equal ones that which was
/// offered first.
#[derive(Default)]
struct Best {
    decision: Option<Decision>,
    is_column: bool,
}

impl Best {
    #[inline]
    fn offer(&mut self, decision: Decision, is_column: bool) {
        let is_better =
            |best: Decision| decision.at < best.at || (decision.at == best.at && is_column && !self.is_column);
        if self.decision.is_none_or(is_better) {
            *self = Best { decision: Some(decision), is_column };
        }
    }
}

/// The RD or WR of `pending`, whose row is open, and the earliest time that its gates allow.
#[inline]
fn column(pending: &Pending, channel: &Channel) -> (Command, Time) {
    let bank = pending.bank;
    match pending.is_write {
        true => (Command::Write { bank, auto_precharge: false }, channel.earliest_write(bank)),
        false => (Command::Read { bank, auto_precharge: false }, channel.earliest_read(bank)),
    }
}

/// The banks whose open row one of the requests `queue` hits.
fn banks_hit<Set: BankSet>(queue: &[Pending], channel: &Channel) -> Set {
    let mut hits = Set::default();
    for pending in queue {
        if channel.open_row(pending.bank) == Some(pending.row) {
            hits.insert(pending.bank);
        }
    }
    hits
}

/// A set of banks of a channel.
trait BankSet: Default {
    fn contains(&self, bank: BankId) -> bool;

    /// True if the bank was not in the set.
    fn insert(&mut self, bank: BankId) -> bool;
}

/// Of a channel with few banks: a number that stays in a register.
#[derive(Default)]
struct SmallBankSet(u64);

impl SmallBankSet {
    const BANKS: usize = 64;
}

impl BankSet for SmallBankSet {
    #[inline]
    fn contains(&self, bank: BankId) -> bool {
        self.0 >> bank.0 & 1 == 1
    }

    #[inline]
    fn insert(&mut self, bank: BankId) -> bool {
        let is_new = !self.contains(bank);
        self.0 |= 1 << bank.0;
        is_new
    }
}

/// Of any channel: it has at most 1024.
#[derive(Default)]
struct LargeBankSet([u64; 16]);

impl BankSet for LargeBankSet {
    fn contains(&self, bank: BankId) -> bool {
        self.0[usize::from(bank.0) / 64] >> (bank.0 % 64) & 1 == 1
    }

    fn insert(&mut self, bank: BankId) -> bool {
        let is_new = !self.contains(bank);
        self.0[usize::from(bank.0) / 64] |= 1 << (bank.0 % 64);
        is_new
    }
}
