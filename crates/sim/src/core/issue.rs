//! When micro-operations issue: the first cycle in which a unit of their kind is free, and the room in the issue queue.
//!
//! A ring of cycles around the present holds how many units of each kind are taken. Where operations become ready
//! farther apart than the ring is long, cycles that share a place in it take turns there: the others wait in a map,
//! until they are past.

use std::collections::BTreeMap;

use super::config::CoreConfig;
use super::departures::Departures;
use fencepost_isa::micro_op::Operation;

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
            O::Store | O::NonTemporalStore | O::Atomic(_) | O::Flush(_) => Unit::Store,
            _ => Unit::Integer,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Cycle {
    number: u64,
    taken: [u8; Unit::COUNT],
}

impl Cycle {
    fn free(number: u64) -> Cycle {
        Cycle { number, taken: [0; Unit::COUNT] }
    }
}

/// The execution units and the issue queue of one core.
#[derive(Clone, Debug)]
pub struct IssueCalendar {
    units: [u8; Unit::COUNT],
    ring: Box<[Cycle; CYCLES]>,
    /// Cycles for which there is no place in the ring at the moment, and which still count.
    elsewhere: BTreeMap<u64, Cycle>,
    /// Nothing issues before this cycle any more.
    present: u64,
    queue_entries: u32,
    /// In the queue, their issue not known yet.
    waiting: u32,
    /// In the queue, their issue known.
    scheduled: Departures,
}

impl IssueCalendar {
    /// All units free, the queue empty.
    pub fn new(config: &CoreConfig) -> IssueCalendar {
        IssueCalendar {
            units: [
                config.integer_ports,
                config.multiply_ports,
                config.vector_ports,
                config.load_ports,
                config.store_ports,
            ],
            ring: Box::new([Cycle::free(u64::MAX); CYCLES]),
            elsewhere: BTreeMap::new(),
            present: 0,
            queue_entries: u32::from(config.issue_queue_entries),
            waiting: 0,
            scheduled: Departures::new(),
        }
    }

    /// Everything that becomes known from now on happens in `cycle` or later.
    #[inline]
    pub fn advance(&mut self, cycle: u64) {
        self.present = cycle;
    }

    /// Takes a unit in the first cycle from `ready` on from which one is free for `busy` cycles.
    #[inline]
    pub fn issue(&mut self, unit: Unit, ready: u64, busy: u64) -> u64 {
        let cycle = self.take_unit(unit, ready, busy);
        self.scheduled.add(cycle);
        cycle
    }

    /// The same for one that stays in the queue until [`IssueCalendar::leave`].
    pub fn issue_staying(&mut self, unit: Unit, ready: u64) -> u64 {
        self.waiting += 1;
        self.take_unit(unit, ready, 1)
    }

    /// One that stayed leaves at `cycle`.
    pub fn leave(&mut self, cycle: u64) {
        self.waiting -= 1;
        self.scheduled.add(cycle);
    }

    #[inline]
    fn take_unit(&mut self, unit: Unit, ready: u64, busy: u64) -> u64 {
        if busy > 1 {
            return self.take_unit_for(unit, ready, busy);
        }
        let limit = self.units[unit as usize];
        let mut cycle = ready;
        loop {
            let taken = &mut self.cycle(cycle).taken[unit as usize];
            if *taken < limit {
                *taken += 1;
                return cycle;
            }
            cycle += 1;
        }
    }

    /// Takes a unit that is not pipelined, where it is free for all of `busy` cycles: what has issued for a later cycle
    /// already keeps its unit.
    #[inline(never)]
    fn take_unit_for(&mut self, unit: Unit, ready: u64, busy: u64) -> u64 {
        let limit = self.units[unit as usize];
        let (mut start, mut cycle) = (ready, ready);
        while cycle < start + busy {
            let is_free = self.cycle(cycle).taken[unit as usize] < limit;
            cycle += 1;
            if !is_free {
                start = cycle;
            }
        }
        for cycle in start..start + busy {
            self.cycle(cycle).taken[unit as usize] += 1;
        }
        start
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
        self.scheduled.leave_until(cycle);
        if self.waiting + self.scheduled.len() < self.queue_entries { Some(cycle) } else { self.later_room() }
    }

    /// The same when the queue is full.
    #[inline(never)]
    fn later_room(&mut self) -> Option<u64> {
        loop {
            let cycle = self.scheduled.first()?;
            self.scheduled.leave_until(cycle);
            if self.waiting + self.scheduled.len() < self.queue_entries {
                return Some(cycle);
            }
        }
    }

    /// Everything leaves: the thread is gone from this core.
    pub fn clear(&mut self) {
        self.waiting = 0;
    }

    #[inline]
    fn cycle(&mut self, number: u64) -> &mut Cycle {
        let place = number as usize % CYCLES;
        let holder = self.ring[place].number;
        if holder != number {
            // A cycle that is past, or none at all, makes room without further ado.
            if self.elsewhere.is_empty() && holder.wrapping_add(1) <= self.present {
                self.ring[place] = Cycle::free(number);
            } else {
                self.bring_in(place, number);
            }
        }
        &mut self.ring[place]
    }

    /// Lets the cycle `number` have the place in the ring.
    #[inline(never)]
    fn bring_in(&mut self, place: usize, number: u64) {
        let next = if self.elsewhere.is_empty() { None } else { self.elsewhere.remove(&number) };
        let holder = std::mem::replace(&mut self.ring[place], next.unwrap_or(Cycle::free(number)));
        if holder.number != u64::MAX && holder.number >= self.present {
            self.elsewhere.insert(holder.number, holder);
            while let Some(first) = self.elsewhere.first_entry()
                && *first.key() < self.present
            {
                first.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::host::bench;

    const RING: u64 = CYCLES as u64;

    /// One multiplier, and an issue queue of eight entries.
    fn calendar() -> IssueCalendar {
        let sets = ["core.multiply_ports=1", "core.issue_queue_entries=8"].map(str::to_owned);
        IssueCalendar::new(&bench::machine(&sets).core)
    }

    fn multiply(calendar: &mut IssueCalendar, ready: u64) -> u64 {
        calendar.issue(Unit::Multiply, ready, 1)
    }

    #[test]
    fn a_unit_that_is_taken_is_not_given_again_however_far_apart_the_others_issue() {
        let mut calendar = calendar();
        let far = [100, 100 + RING, 100 + 3 * RING, 100 + 2 * RING];
        for ready in far {
            assert_eq!(multiply(&mut calendar, ready), ready);
        }
        for ready in far {
            assert_eq!(multiply(&mut calendar, ready), ready + 1, "the unit is taken at {ready}");
        }
    }

    #[test]
    fn what_issues_far_ahead_stays_in_the_queue_until_then() {
        let mut calendar = calendar();
        for ready in 0..8 {
            multiply(&mut calendar, 100 + ready * RING);
        }
        assert_eq!(calendar.room_at(50), Some(100));
        multiply(&mut calendar, 100 + 8 * RING);
        assert_eq!(calendar.room_at(101), Some(100 + RING));
        multiply(&mut calendar, 101 + RING);
        assert_eq!(calendar.room_at(100 + RING), Some(101 + RING));
    }

    #[test]
    fn a_division_waits_for_one_that_has_issued_for_a_later_cycle() {
        let mut calendar = calendar();
        assert_eq!(calendar.issue(Unit::Multiply, 100, 20), 100);
        assert_eq!(calendar.issue(Unit::Multiply, 95, 20), 120, "5 free cycles are not 20");
        assert_eq!(multiply(&mut calendar, 95), 95, "a multiplication fits in front of both");
        assert_eq!(calendar.issue(Unit::Multiply, 50, 45), 50, "what fits exactly");
        assert_eq!(calendar.issue(Unit::Multiply, 90, 4), 96, "between the multiplication and the first division");
    }

    proptest! {
        /// Against plain counts: nothing issues while all units are taken, and nothing later than it could.
        #[test]
        fn units_are_given_once_and_as_early_as_they_are_free(
            units in 1..4_u8,
            steps in prop::collection::vec((0..3 * RING, prop_oneof![Just(1), 1..30_u64], any::<bool>()), 1..120),
        ) {
            let sets = [format!("core.multiply_ports={units}")];
            let mut calendar = IssueCalendar::new(&bench::machine(&sets).core);
            let mut taken = BTreeMap::<u64, u8>::new();
            let mut present = 0;
            for (ahead, busy, is_near) in steps {
                let ready = present + if is_near { ahead % 64 } else { ahead };
                let start = calendar.issue(Unit::Multiply, ready, busy);
                let is_free = |start: u64| {
                    (start..start + busy).all(|cycle| taken.get(&cycle).is_none_or(|&count| count < units))
                };
                prop_assert_eq!(Some(start), (ready..).find(|&cycle| is_free(cycle)));
                (start..start + busy).for_each(|cycle| *taken.entry(cycle).or_default() += 1);
                if ahead % 5 == 0 {
                    present += ahead / 40;
                    calendar.advance(present);
                }
            }
        }
    }

    #[test]
    fn cycles_that_are_past_are_forgotten() {
        let mut calendar = calendar();
        for turn in 0..100 {
            for ready in [7, 7 + RING] {
                multiply(&mut calendar, turn * 2 * RING + ready);
            }
            calendar.room_at((turn + 1) * 2 * RING);
            calendar.advance((turn + 1) * 2 * RING);
        }
        assert!(calendar.elsewhere.len() <= 2, "{:?}", calendar.elsewhere);
    }
}
