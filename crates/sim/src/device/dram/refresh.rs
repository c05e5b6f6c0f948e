//! Refreshes the ranks of a channel, each once in tREFI.
//!
//! For a rank whose refresh is due no further command of a request is chosen; its open rows are closed, then REF blocks
//! it for tRFC. The ranks take turns within tREFI. No event is spent on an idle channel: what was missed is made up
//! for, at the times at which it would have happened, and all whole rounds but the last at once.

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

    /// Lets whole rounds pass in which nothing but refreshing happened, up to the last one that begins by `now`,
    /// and gives how many refreshes they were. Each was done when it was due, so what it leaves is what the last one
    /// leaves.
    pub fn skip_rounds(&mut self, channel: &Channel, now: Time) -> u64 {
        let rounds = now.since(self.latest_due()).as_ps() / self.interval.as_ps();
        if rounds < 2 || !self.is_punctual(channel) {
            return 0;
        }
        self.due.iter_mut().for_each(|due| *due += self.interval * (rounds - 1));
        self.next_due = earliest(&self.due);
        (rounds - 1) * self.due.len() as u64
    }

    /// When the last of the ranks is due.
    fn latest_due(&self) -> Time {
        *self.due.iter().max().expect("a channel has ranks")
    }

    /// Whether each rank can be refreshed as soon as it is due, and has been so before.
    fn is_punctual(&self, channel: &Channel) -> bool {
        self.due.iter().zip(&self.over).enumerate().all(|(rank, (due, over))| {
            let is_closed = *over > Time::ZERO && !channel.has_open_row(rank);
            is_closed && channel.earliest(Command::Refresh { rank }) <= *due
        })
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
