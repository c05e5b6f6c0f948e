//! Refreshes the ranks of a channel, each once in tREFI.
//!
//! For a rank whose refresh is due no further command of a request is chosen; its open rows are closed, then REF blocks
//! it for tRFC. The ranks take turns within tREFI. No event is spent on an idle channel: what was missed is made up
//! for, at the times at which it would have happened.

use super::channel::{Channel, Command};
use fencepost_kernel::time::{Duration, Time};

/// When each rank is due.
#[derive(Clone, Debug)]
pub struct Refresh {
    interval: Duration,
    due: Vec<Time>,
    /// The earliest of them.
    next_due: Time,
    /// When the last refresh of each rank ends.
    over: Vec<Time>,
}

impl Refresh {
    /// The refreshes of `channel`.
    pub fn new(channel: &Channel) -> Refresh {
        let interval = channel.timing().refi;
        let ranks = channel.ranks() as u64;
        let due: Vec<Time> =
            (1..=ranks).map(|turn| channel.timing().edge(Time::ZERO + interval * turn / ranks)).collect();
        Refresh { interval, next_due: earliest(&due), over: vec![Time::ZERO; due.len()], due }
    }

    /// Whether `rank` waits for its refresh at `now`.
    pub fn is_due(&self, rank: usize, now: Time) -> bool {
        self.due[rank] <= now
    }

    /// Whether `rank` waits for its refresh at `now` or is at it.
    pub fn is_taken(&self, rank: usize, now: Time) -> bool {
        self.is_due(rank, now) || now < self.over[rank]
    }

    /// When the next refresh that is under way at `now` ends.
    pub fn next_over(&self, now: Time) -> Time {
        self.over.iter().copied().filter(|over| now < *over).min().unwrap_or(Time::NEVER)
    }

    /// Power is gone: no refresh is under way when it is back.
    pub fn power_fail(&mut self) {
        self.over.fill(Time::ZERO);
    }

    /// When the next rank is due.
    #[inline]
    pub fn next_due(&self) -> Time {
        self.next_due
    }

    /// The next command of refreshing, and when it may be issued.
    pub fn next_command(&self, channel: &Channel) -> (Time, Command) {
        let candidates = self.due.iter().enumerate().map(|(rank, due)| {
            let command = match channel.has_open_row(rank) {
                true => Command::PrechargeAll { rank },
                false => Command::Refresh { rank },
            };
            (channel.earliest(command).max(*due), command)
        });
        candidates.min_by_key(|(at, _)| *at).expect("a channel has ranks")
    }

    /// `rank` is refreshed until `over`.
    pub fn refreshed(&mut self, rank: usize, over: Time) {
        self.over[rank] = over;
        self.due[rank] += self.interval;
        self.next_due = earliest(&self.due);
    }
}

fn earliest(due: &[Time]) -> Time {
    *due.iter().min().expect("a channel has ranks")
}
