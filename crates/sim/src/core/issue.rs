//! When micro-operations issue: the first cycle in which a unit of their kind is free, and the room in the issue queue.
//!
//! A ring of cycles around the present holds how many units of each kind are taken. Entries are cleared when their cycle first comes up.

use super::config::CoreConfig;
use super::micro_op::Operation;

const CYCLES: usize = 4096;

/// The kinds of execution units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Integer arithmetic and branches.
    Integer,
    /// Integer multiplication and division.
    Multiply,
    /// Floating point and vectors.
    Vector,
    /// Loads.
    Load,
    /// Addresses of stores and flushes.
    Store,
}

impl Unit {
    const COUNT: usize = 5;

    /// The unit that executes `operation`.
    #[inline]
    pub fn of(operation: Operation) -> Unit {
        use Operation as O;
        match operation {
            O::Multiply | O::Divide => Unit::Multiply,
            O::FloatAdd | O::FloatMultiply | O::FloatDivide | O::Vector => Unit::Vector,
            O::Load | O::Prefetch => Unit::Load,
            O::Store | O::NonTemporalStore | O::Atomic | O::Clflush | O::Clflushopt | O::Clwb => Unit::Store,
            _ => Unit::Integer,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Cycle {
    number: u64,
    taken: [u8; Unit::COUNT],
    issued: u8,
}

/// The execution units and the issue queue of one core.
#[derive(Clone, Debug)]
pub struct IssueCalendar {
    units: [u8; Unit::COUNT],
    ring: Box<[Cycle]>,
    queue_entries: u32,
    /// In the queue, their issue not known yet.
    waiting: u32,
    /// In the queue, their issue known and behind `left_until`.
    scheduled: u32,
    left_until: u64,
}

impl IssueCalendar {
    /// All units free, the queue empty.
    pub fn new(config: &CoreConfig) -> IssueCalendar {
        let empty = Cycle { number: u64::MAX, taken: [0; Unit::COUNT], issued: 0 };
        IssueCalendar {
            units: [
                config.integer_ports,
                config.multiply_ports,
                config.vector_ports,
                config.load_ports,
                config.store_ports,
            ],
            ring: vec![empty; CYCLES].into(),
            queue_entries: u32::from(config.issue_queue_entries),
            waiting: 0,
            scheduled: 0,
            left_until: 0,
        }
    }

    /// Takes a unit in the first cycle from `ready` on that has one free; the unit stays busy for `busy` cycles.
    #[inline]
    pub fn issue(&mut self, unit: Unit, ready: u64, busy: u64) -> u64 {
        let limit = self.units[unit as usize];
        let mut cycle = ready;
        while self.cycle(cycle).taken[unit as usize] >= limit {
            cycle += 1;
        }
        for later in 0..busy {
            let taken = &mut self.cycle(cycle + later).taken[unit as usize];
            *taken = taken.saturating_add(1);
        }
        if cycle > self.left_until {
            self.cycle(cycle).issued += 1;
            self.scheduled += 1;
        }
        cycle
    }

    /// A micro-operation enters the queue without knowing when it will issue.
    #[inline]
    pub fn wait(&mut self) {
        self.waiting += 1;
    }

    /// One of those that waited is about to be issued, or leaves the queue otherwise.
    #[inline]
    pub fn stop_waiting(&mut self) {
        self.waiting -= 1;
    }

    /// The first cycle from `cycle` on in which the queue has room; none if that depends on something unknown.
    #[inline]
    pub fn room_at(&mut self, cycle: u64) -> Option<u64> {
        self.leave_until(cycle);
        let mut cycle = cycle;
        while self.waiting + self.scheduled >= self.queue_entries {
            if self.scheduled == 0 {
                return None;
            }
            cycle += 1;
            self.leave_until(cycle);
        }
        Some(cycle)
    }

    /// Everything leaves: the thread is gone from this core.
    pub fn clear(&mut self) {
        self.waiting = 0;
    }

    /// What issued up to `cycle` has left the queue.
    #[inline]
    fn leave_until(&mut self, cycle: u64) {
        while self.left_until < cycle {
            if self.scheduled == 0 {
                self.left_until = cycle;
                return;
            }
            self.left_until += 1;
            let slot = &mut self.ring[self.left_until as usize % CYCLES];
            if slot.number == self.left_until {
                self.scheduled -= u32::from(slot.issued);
                slot.issued = 0;
            }
        }
    }

    #[inline]
    fn cycle(&mut self, number: u64) -> &mut Cycle {
        let slot = &mut self.ring[number as usize % CYCLES];
        if slot.number != number {
            // An older cycle's issues that were not counted out yet are out by now: the ring is longer than any queue takes to drain.
            self.scheduled -= u32::from(slot.issued);
            *slot = Cycle { number, taken: [0; Unit::COUNT], issued: 0 };
        }
        slot
    }
}
