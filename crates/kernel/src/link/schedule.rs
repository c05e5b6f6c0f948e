//! When flits go: the time line of one direction of a link.
//!
//! Flits follow each other; a new one starts when it is wanted and the link is free. (Real 256-byte flits follow each
//! other without a gap, so that a message would find an idle one under way and could leave up to a flit earlier.)

use super::config::LinkConfig;
use super::flit::FlitFormat;
use super::retry::Retry;
use crate::message::MessageClass;
use crate::time::{Duration, Time};

/// A flit that carries messages.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flit {
    /// 1 for the first one; 0 stands for none.
    pub number: u64,
    /// When it is sent for the first time: what it carries is settled then.
    pub start: Time,
    /// When that transmission of it starts which gets through; `start`, unless there was an error.
    pub delivered: Time,
}

/// The time line.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    format: FlitFormat,
    flit_time: Duration,
    latency: Duration,
    /// The last flit that was started or reserved.
    last: Flit,
    /// Since when, up to that flit's end, flits follow each other without a gap.
    busy_since: Time,
    /// Time the link was or is already reserved to be occupied, in ps.
    pub busy_ps: u64,
    /// The last control flits that carry nothing but credits or ask for a retry: from when to when.
    control: (Time, Time),
    control_flits: u64,
    /// The flit that takes credits along now, and how many it has of each class.
    credit_flit: Option<Time>,
    credits: [u16; MessageClass::COUNT],
    /// What errors need; nothing on a link that has none and whose retry buffer never fills.
    pub retry: Option<Box<Retry>>,
}

impl Schedule {
    pub fn new(config: &LinkConfig) -> Schedule {
        Schedule {
            format: config.flit_format,
            flit_time: config.flit_time(),
            latency: Duration::from_ns(config.latency_ns),
            last: Flit::default(),
            busy_since: Time::ZERO,
            busy_ps: 0,
            control: (Time::ZERO, Time::ZERO),
            control_flits: 0,
            credit_flit: None,
            credits: [0; MessageClass::COUNT],
            retry: Retry::new(config).map(Box::new),
        }
    }

    /// How many flits carried messages.
    pub fn flits(&self) -> u64 {
        self.last.number
    }

    /// Whether a flit takes no time: a connection that is no link.
    pub fn is_instant(&self) -> bool {
        self.flit_time == Duration::ZERO
    }

    /// When what is sent at `now` on such a connection arrives.
    pub fn instant_arrival(&self, now: Time) -> Time {
        now + self.latency
    }

    /// When the first `quarters` of `flit` have arrived.
    #[inline]
    pub fn arrival(&self, flit: &Flit, quarters: u64) -> Time {
        flit.delivered + self.flit_time * quarters / 4 + self.latency
    }

    /// From which quarter of `flit` on something can still be put into it at `now`; 4 when it is gone.
    #[inline]
    pub fn open_quarter(&self, flit: &Flit, now: Time) -> u64 {
        if now <= flit.start {
            return if flit.number == 0 { 4 } else { 0 };
        }
        let passed = now.since(flit.start).as_ps() * 4;
        passed.div_ceil(self.flit_time.as_ps().max(1)).min(4)
    }

    /// Reserves the next flit, not before `now`.
    #[inline]
    pub fn next(&mut self, now: Time) -> Flit {
        let free = if self.last.number == 0 { now } else { self.last.start + self.flit_time };
        let mut start = free.max(now);
        if start < self.control.1 {
            start = self.start_beside_control(start);
        }
        let mut delivered = start;
        if let Some(retry) = &mut self.retry {
            let lost = retry.lost_ps();
            (start, delivered) = retry.carry(start, self.last.delivered);
            self.busy_ps += retry.lost_ps() - lost;
        }
        if start > free || self.last.number == 0 {
            self.busy_since = start;
        }
        self.busy_ps += self.flit_time.as_ps();
        self.last = Flit { number: self.last.number + 1, start, delivered };
        self.last
    }

    /// A message that could start at `start` meets control flits. One that starts with them takes their credits along;
    /// those that were arranged for a later instant let it go first. The credit field of a 256-byte flit costs it
    /// nothing: the slots of that flit stay free.
    fn start_beside_control(&mut self, start: Time) -> Time {
        if start == self.control.0 {
            self.control = (Time::ZERO, Time::ZERO);
            self.control_flits -= 1;
            start
        } else if start > self.control.0 && self.format == FlitFormat::Bytes68 {
            self.control.1
        } else {
            start
        }
    }

    /// How many control flits had started before `now`: a later one may still give its credits to a message.
    pub fn control_flits(&self, now: Time) -> u64 {
        let (begin, end) = self.control;
        self.control_flits - u64::from(begin < end && begin >= now)
    }

    /// A credit of `class` is to go back at `now`: when it arrives. It takes the next flit that starts, or a control
    /// flit if none is arranged.
    pub fn return_credit(&mut self, class: MessageClass, now: Time) -> Time {
        if self.is_instant() {
            return now + self.latency;
        }
        let credit_flit = match self.credit_flit.filter(|&start| start >= now) {
            Some(start) => start,
            None => {
                self.credits = [0; MessageClass::COUNT];
                let start = self.next_start(now);
                *self.credit_flit.insert(start)
            }
        };
        let credits = &mut self.credits[class.index()];
        *credits += 1;
        let following = self.format.flits_to_return(*credits) - 1;
        let delay = self.last.delivered.since(self.last.start);
        credit_flit + delay + self.flit_time * (following + 1) + self.latency
    }

    /// When the first flit at or after `now` starts that can take credits along.
    fn next_start(&mut self, now: Time) -> Time {
        if now <= self.last.start && self.last.number > 0 {
            let flits_ahead = self.last.start.since(now.max(self.busy_since)).as_ps() / self.flit_time.as_ps();
            let start = self.last.start - self.flit_time * flits_ahead;
            if now + self.flit_time > self.busy_since {
                return start;
            }
        } else if now <= self.control.0 && self.control.0 < self.control.1 {
            return self.control.0;
        }
        let is_before_last = self.last.number == 0 || self.last.start > now;
        let free = if is_before_last { now } else { self.last.start + self.flit_time };
        let start = now.max(free).max(self.control.1);
        self.control_flits += 1;
        self.control = (start, start + self.flit_time);
        start
    }

    /// Power is gone: what was reserved is not sent.
    pub fn power_fail(&mut self) {
        self.credit_flit = None;
        self.control = (Time::ZERO, Time::ZERO);
        if let Some(retry) = &mut self.retry {
            retry.power_fail();
        }
    }

    /// The part of `busy_ps` that lies after `now`.
    pub fn reserved_ps(&self, now: Time) -> u64 {
        (self.last.delivered + self.flit_time).since(now.max(self.busy_since)).as_ps()
    }
}
