//! Synchronisation in the order in which it was recorded: a thread that comes to an event waits for those before it in the process clock.
//!
//! Recorded values belong to the recorded order. Where locks were arbitrated again, a thread could store what it computed from another's store before
//! that other store has happened. What an operation waits for in any order (an unlock, a wake-up, the others at a barrier) it still waits for; those
//! that wait for what they name begin when their thread comes there, and have a place only in the order of going on.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::Host;
use crate::kernel::Context;
use crate::record::{Clock, Event, ThreadId};

/// Whose turn it is.
#[derive(Clone, Debug)]
pub struct RecordedOrder {
    /// All places in the process clock that are waited for, ascending, and whether each has been passed.
    places: Vec<(Clock, bool)>,
    /// All before this one have been passed.
    next: usize,
    /// Threads that are there before their turn.
    early: BTreeMap<Clock, (usize, Event)>,
    /// Threads that wait for what their operation waits for in any order, and where.
    blocked: FxHashMap<usize, Clock>,
}

impl RecordedOrder {
    /// The order of events with these clocks.
    pub fn new(mut clocks: Vec<Clock>) -> RecordedOrder {
        clocks.sort_unstable();
        let places = clocks.into_iter().map(|clock| (clock, false)).collect();
        RecordedOrder { places, next: 0, early: BTreeMap::new(), blocked: FxHashMap::default() }
    }

    /// Whether everything before `clock` has been passed.
    fn is_turn(&self, clock: Clock) -> bool {
        self.places.get(self.next).is_none_or(|(next, _)| clock <= *next)
    }

    /// A thread goes on from its event at `clock`.
    fn pass(&mut self, clock: Clock) {
        if let Ok(index) = self.places.binary_search_by_key(&clock, |(place, _)| *place) {
            self.places[index].1 = true;
        }
        while self.places.get(self.next).is_some_and(|(_, is_passed)| *is_passed) {
            self.next += 1;
        }
    }

    /// The thread whose turn has come, with its event, if it is there.
    fn take_next(&mut self) -> Option<(usize, Event)> {
        let first = self.early.first_entry()?;
        if self.places.get(self.next).is_some_and(|(next, _)| first.key() > next) {
            return None;
        }
        Some(first.remove())
    }

    /// Nobody can go on: `thread` goes on from what it waits for in any order.
    pub fn forced(&mut self, thread: usize) {
        if let Some(clock) = self.blocked.remove(&thread) {
            self.pass(clock);
        }
    }

    /// Nobody can go on: what the first of those that are early waits for is missing in the record, and counts as passed.
    fn skip_missing(&mut self) {
        if let Some((clock, _)) = self.early.first_key_value() {
            self.next = self.places.partition_point(|(place, _)| place < clock);
        }
    }
}

/// Whether an operation begins when its thread comes there, and not in its turn: it waits for what it names. A wake-up may have a later place in the
/// clock than the wait that it ended.
fn begins_at_once(event: &Event) -> bool {
    use Event as E;
    let waits_for_named = matches!(event, E::SemaphoreWait { .. } | E::FutexWait { .. } | E::ThreadJoin { .. });
    waits_for_named || matches!(event, E::ConditionWait { .. } | E::BarrierWait { .. })
}

impl Host {
    /// The thread has come to a synchronisation event; whether it goes on at once.
    pub(super) fn synchronise(&mut self, thread: usize, event: &Event, now: u64, context: &mut Context<'_>) -> bool {
        if let (Some(order), Some(clock)) = (&mut self.recorded_order, event.clock())
            && !begins_at_once(event)
            && !order.is_turn(clock)
        {
            order.early.insert(clock, (thread, event.clone()));
            return false;
        }
        let goes_on = self.arbitrate(thread, event, now, context);
        self.pass_early(now, context);
        goes_on
    }

    /// Nobody can go on: lets the first of those go on that are before their turn; whether there was one.
    pub(super) fn force_order(&mut self, cycle: u64, context: &mut Context<'_>) -> bool {
        let Some(order) = self.recorded_order.as_mut().filter(|order| !order.early.is_empty()) else { return false };
        order.skip_missing();
        self.pass_early(cycle, context);
        true
    }

    /// Lets those go on whose turn has come.
    fn pass_early(&mut self, cycle: u64, context: &mut Context<'_>) {
        while let Some((thread, event)) = self.recorded_order.as_mut().and_then(|order| order.take_next()) {
            if self.arbitrate(thread, &event, cycle, context) {
                self.make_ready(thread, cycle, context);
            }
        }
    }

    fn arbitrate(&mut self, thread: usize, event: &Event, cycle: u64, context: &mut Context<'_>) -> bool {
        let decision = self.synchronisation.apply(ThreadId(thread as u32), event);
        if let (Some(order), Some(clock)) = (&mut self.recorded_order, event.clock()) {
            for woken in &decision.woken {
                if let Some(clock) = order.blocked.remove(&(woken.0 as usize)) {
                    order.pass(clock);
                }
            }
            if decision.proceeds {
                order.pass(clock);
            } else {
                order.blocked.insert(thread, clock);
            }
        }
        for woken in &decision.woken {
            self.make_ready(woken.0 as usize, cycle, context);
        }
        decision.proceeds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit(clock: u64) -> Event {
        Event::ThreadExit { clock: Clock(clock) }
    }

    fn early(order: &mut RecordedOrder, clock: u64, thread: usize) {
        assert!(!order.is_turn(Clock(clock)));
        order.early.insert(Clock(clock), (thread, exit(clock)));
    }

    #[test]
    fn whoever_comes_early_waits_for_all_before_him() {
        let mut order = RecordedOrder::new([9, 3, 5].map(Clock).to_vec());
        early(&mut order, 9, 2);
        early(&mut order, 5, 1);
        assert!(order.is_turn(Clock(3)) && order.take_next().is_none());
        order.pass(Clock(3));
        assert_eq!(order.take_next(), Some((1, exit(5))));
        assert_eq!(order.take_next(), None, "the one at 5 may have to wait for something else");
        order.pass(Clock(5));
        assert_eq!(order.take_next(), Some((2, exit(9))));
    }

    #[test]
    fn one_that_went_on_before_its_turn_is_not_waited_for() {
        let mut order = RecordedOrder::new([1, 2, 3].map(Clock).to_vec());
        order.pass(Clock(2));
        early(&mut order, 3, 7);
        assert_eq!(order.take_next(), None);
        order.pass(Clock(1));
        assert_eq!(order.take_next(), Some((7, exit(3))));
    }

    #[test]
    fn what_is_missing_in_the_record_is_waited_for_until_nobody_can_go_on() {
        let mut order = RecordedOrder::new([1, 2, 3].map(Clock).to_vec());
        early(&mut order, 3, 7);
        order.skip_missing();
        assert_eq!(order.take_next(), Some((7, exit(3))));
        assert!(order.is_turn(Clock(2)), "it was passed over");
    }
}
