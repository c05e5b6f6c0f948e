//! The state of a DRAM channel: open rows, and for each command the earliest time at which every timing gate lets it
//! through.
//!
//! [`Channel::earliest`] says when a command may be issued, [`Channel::issue`] issues it and moves the gates of all
//! that may follow. Nothing here chooses; that is the [scheduler](super::scheduler)'s and the [refresh
//! timer](super::refresh)'s part.

use std::ops::Range;

use super::config::{DramConfig, Scheduling};
use super::timing::DramTiming;
use fencepost_kernel::time::{Duration, Time};

/// A rank takes at most this many ACT in a window of tFAW.
const ACTIVATES_IN_WINDOW: usize = 4;

/// A bank, counted over the whole channel: rank by rank, in each bank group by bank group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BankId(pub u16);

/// A command to a bank, or to all banks of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// ACT: open a row.
    Activate {
        /// The bank.
        bank: BankId,
        /// The row.
        row: u64,
    },
    /// PRE: close the open row.
    Precharge {
        /// The bank.
        bank: BankId,
    },
    /// RD: read a line of the open row.
    Read {
        /// The bank.
        bank: BankId,
        /// With auto-precharge: the bank closes the row itself, as soon as it may.
        auto_precharge: bool,
    },
    /// WR: write a line of the open row.
    Write {
        /// The bank.
        bank: BankId,
        /// With auto-precharge.
        auto_precharge: bool,
    },
    /// PREA: close all open rows of a rank.
    PrechargeAll {
        /// The rank.
        rank: usize,
    },
    /// REF: refresh a rank, all of whose banks are closed.
    Refresh {
        /// The rank.
        rank: usize,
    },
}

/// The state of a channel.
#[derive(Clone, Debug)]
pub struct Channel {
    timing: DramTiming,
    banks_per_rank: usize,
    banks: Vec<Bank>,
    groups: Vec<BankGroup>,
    ranks: Vec<Rank>,
    /// When the command bus is free; always, where commands are planned ahead.
    command_bus_free: Time,
    scheduling: Scheduling,
}

#[derive(Clone, Debug, Default)]
struct Bank {
    rank: usize,
    group: usize,
    open_row: Option<u64>,
    /// Earliest ACT, PRE, and RD or WR.
    activate: Time,
    precharge: Time,
    column: Time,
}

#[derive(Clone, Debug, Default)]
struct BankGroup {
    activate: Time,
    read: Time,
    write: Time,
}

#[derive(Clone, Debug, Default)]
struct Rank {
    activate: Time,
    read: Time,
    write: Time,
    /// The last activates, the oldest at `oldest_activate`.
    activates: [Option<Time>; ACTIVATES_IN_WINDOW],
    oldest_activate: usize,
    /// The end of the window of tFAW that began with the oldest of them.
    window: Time,
}

impl Channel {
    /// A channel like `config`, all banks closed.
    pub fn new(config: &DramConfig) -> Channel {
        let (ranks, groups) = (usize::from(config.ranks), usize::from(config.bank_groups));
        let banks_per_group = usize::from(config.banks_per_group);
        let bank =
            |bank| Bank { rank: bank / (groups * banks_per_group), group: bank / banks_per_group, ..Bank::default() };
        Channel {
            timing: DramTiming::new(config),
            banks_per_rank: groups * banks_per_group,
            banks: (0..ranks * groups * banks_per_group).map(bank).collect(),
            groups: vec![BankGroup::default(); ranks * groups],
            ranks: vec![Rank::default(); ranks],
            command_bus_free: Time::ZERO,
            scheduling: config.scheduling,
        }
    }

    /// The timing parameters.
    pub fn timing(&self) -> &DramTiming {
        &self.timing
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> usize {
        self.ranks.len()
    }

    /// How many banks there are, over all ranks.
    pub fn banks(&self) -> usize {
        self.banks.len()
    }

    /// The rank of `bank`.
    pub fn rank(&self, bank: BankId) -> usize {
        self.bank(bank).rank
    }

    /// The banks of `rank`, as indices.
    pub fn banks_of_rank(&self, rank: usize) -> Range<usize> {
        rank * self.banks_per_rank..(rank + 1) * self.banks_per_rank
    }

    /// The row that is open in `bank`.
    pub fn open_row(&self, bank: BankId) -> Option<u64> {
        self.banks[usize::from(bank.0)].open_row
    }

    /// Whether a row is open in `rank`.
    pub fn has_open_row(&self, rank: usize) -> bool {
        self.banks_of(rank).iter().any(|bank| bank.open_row.is_some())
    }

    /// When the command bus is free: no command can be issued before.
    pub fn command_bus_free(&self) -> Time {
        self.command_bus_free
    }

    /// The earliest time at which no gate holds `command` back. Whether the bank is in a state for it is not asked.
    pub fn earliest(&self, command: Command) -> Time {
        let gate = match command {
            Command::Activate { bank, .. } => self.earliest_activate(bank),
            Command::Precharge { bank } => self.earliest_precharge(bank),
            Command::Read { bank, .. } => self.earliest_read(bank),
            Command::Write { bank, .. } => self.earliest_write(bank),
            Command::PrechargeAll { rank } => {
                // A bank that closes itself must have begun to; from then on it takes PREA as idle.
                let begins = |bank: &Bank| match bank.open_row {
                    Some(_) => bank.precharge,
                    None => before(bank.activate, self.timing.rp),
                };
                self.banks_of(rank).iter().map(begins).max().expect("a rank has banks")
            }
            Command::Refresh { rank } => {
                self.banks_of(rank).iter().map(|bank| bank.activate).max().expect("a rank has banks")
            }
        };
        gate.max(self.command_bus_free)
    }

    /// The same for ACT, but for the command bus.
    #[inline]
    pub fn earliest_activate(&self, bank: BankId) -> Time {
        let bank = self.bank(bank);
        let rank = &self.ranks[bank.rank];
        bank.activate.max(self.groups[bank.group].activate).max(rank.activate).max(rank.window)
    }

    /// For PRE.
    #[inline]
    pub fn earliest_precharge(&self, bank: BankId) -> Time {
        self.bank(bank).precharge
    }

    /// For RD.
    #[inline]
    pub fn earliest_read(&self, bank: BankId) -> Time {
        let bank = self.bank(bank);
        bank.column.max(self.groups[bank.group].read).max(self.ranks[bank.rank].read)
    }

    /// For WR.
    #[inline]
    pub fn earliest_write(&self, bank: BankId) -> Time {
        let bank = self.bank(bank);
        bank.column.max(self.groups[bank.group].write).max(self.ranks[bank.rank].write)
    }

    /// Issues `command` at `at`, which is not before [`Self::earliest`].
    pub fn issue(&mut self, command: Command, at: Time) {
        debug_assert!(at >= self.earliest(command), "{command:?} breaks a timing gate");
        debug_assert_eq!(at, self.timing.edge(at), "{command:?} is not on an edge of the clock");
        if self.scheduling == Scheduling::EachCommand {
            self.command_bus_free = at + self.timing.ck;
        }
        match command {
            Command::Activate { bank, row } => self.activate(bank, row, at),
            Command::Precharge { bank } => self.close(usize::from(bank.0), at),
            Command::Read { bank, auto_precharge } => {
                debug_assert!(self.open_row(bank).is_some());
                self.read(bank, at);
                self.close_if(auto_precharge, bank);
            }
            Command::Write { bank, auto_precharge } => {
                debug_assert!(self.open_row(bank).is_some());
                self.write(bank, at);
                self.close_if(auto_precharge, bank);
            }
            Command::PrechargeAll { rank } => {
                for bank in self.banks_of_rank(rank) {
                    if self.banks[bank].open_row.is_some() {
                        self.close(bank, at);
                    }
                }
            }
            Command::Refresh { rank } => {
                debug_assert!(!self.has_open_row(rank));
                let end = at + self.timing.rfc;
                let banks = self.banks_of_rank(rank);
                for bank in &mut self.banks[banks] {
                    bank.activate = end;
                }
            }
        }
    }

    /// Power is gone: when it is back all banks are closed.
    pub fn power_fail(&mut self) {
        for bank in &mut self.banks {
            *bank = Bank { rank: bank.rank, group: bank.group, ..Bank::default() };
        }
        self.groups.fill(BankGroup::default());
        self.ranks.fill(Rank::default());
        self.command_bus_free = Time::ZERO;
    }

    fn activate(&mut self, bank: BankId, row: u64, at: Time) {
        debug_assert!(self.open_row(bank).is_none(), "ACT to a bank with an open row");
        let Channel { timing, .. } = self;
        let (column, precharge) = (at + timing.rcd, at + timing.ras);
        let (same_group, same_rank, window) = (at + timing.rrd_l, at + timing.rrd_s, timing.faw);
        let state = &mut self.banks[usize::from(bank.0)];
        state.open_row = Some(row);
        state.column = column;
        state.precharge = precharge;
        raise(&mut self.group_mut(bank).activate, same_group);
        let rank = self.rank(bank);
        let rank = &mut self.ranks[rank];
        raise(&mut rank.activate, same_rank);
        rank.activates[rank.oldest_activate] = Some(at);
        rank.oldest_activate = (rank.oldest_activate + 1) % ACTIVATES_IN_WINDOW;
        rank.window = rank.activates[rank.oldest_activate].map_or(Time::ZERO, |oldest| oldest + window);
    }

    fn read(&mut self, bank: BankId, at: Time) {
        let Channel { timing, banks, groups, ranks, .. } = self;
        let bank = &mut banks[usize::from(bank.0)];
        raise(&mut bank.precharge, at + timing.rtp);
        raise(&mut groups[bank.group].read, at + timing.ccd_l);
        let data_end = at + timing.cl + timing.burst;
        for (index, rank) in ranks.iter_mut().enumerate() {
            if index == bank.rank {
                raise(&mut rank.read, at + timing.ccd_s.max(timing.burst));
                raise(&mut rank.write, before(data_end + timing.rtw, timing.cwl));
            } else {
                raise(&mut rank.read, at + timing.burst + timing.cs);
                raise(&mut rank.write, before(data_end + timing.rtw.max(timing.cs), timing.cwl));
            }
        }
    }

    fn write(&mut self, bank: BankId, at: Time) {
        let Channel { timing, banks, groups, ranks, .. } = self;
        let bank = &mut banks[usize::from(bank.0)];
        let data_end = at + timing.cwl + timing.burst;
        raise(&mut bank.precharge, data_end + timing.wr);
        let group = &mut groups[bank.group];
        raise(&mut group.write, at + timing.ccd_l_wr);
        raise(&mut group.read, data_end + timing.wtr_l);
        for (index, rank) in ranks.iter_mut().enumerate() {
            if index == bank.rank {
                raise(&mut rank.write, at + timing.ccd_s.max(timing.burst));
                raise(&mut rank.read, data_end + timing.wtr_s);
            } else {
                raise(&mut rank.write, at + timing.burst + timing.cs);
                raise(&mut rank.read, before(data_end + timing.cs, timing.cl));
            }
        }
    }

    fn close_if(&mut self, auto_precharge: bool, bank: BankId) {
        if auto_precharge {
            let at = self.bank(bank).precharge;
            self.close(usize::from(bank.0), at);
        }
    }

    fn close(&mut self, bank: usize, at: Time) {
        let activate = at + self.timing.rp;
        let bank = &mut self.banks[bank];
        bank.open_row = None;
        raise(&mut bank.activate, activate);
    }

    fn bank(&self, bank: BankId) -> &Bank {
        &self.banks[usize::from(bank.0)]
    }

    fn banks_of(&self, rank: usize) -> &[Bank] {
        &self.banks[self.banks_of_rank(rank)]
    }

    fn group_mut(&mut self, bank: BankId) -> &mut BankGroup {
        let group = self.bank(bank).group;
        &mut self.groups[group]
    }
}

fn raise(gate: &mut Time, earliest: Time) {
    *gate = (*gate).max(earliest);
}

/// The time so that something `lead` later does not happen before `time`.
pub(super) fn before(time: Time, lead: Duration) -> Time {
    Time::from_ps(time.as_ps().saturating_sub(lead.as_ps()))
}
