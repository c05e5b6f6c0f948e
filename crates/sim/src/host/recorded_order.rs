//! Synchronisation in the order in which it was recorded: a thread that comes to an event waits for those before it in
//! the process clock.
//!
//! Recorded values belong to the recorded order. Where locks were arbitrated again, a thread could store what it
//! computed from another's store before that other store has happened. What an operation waits for in any order (an
//! unlock, a wake-up, the others at a barrier) it still waits for; those that wait for what they name begin when their
//! thread comes there. Their place is that of going on, but for a barrier, whose place is the arrival.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::Host;
use super::scheduler::ThreadState;
use crate::core::events::{Meaning, meaning};
use crate::core::write_order::{AwaitedWrites, Released, Writes};
use fencepost_kernel::Context;
use fencepost_record::{Clock, Event, Record, RecordError, ThreadId};

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

    /// Lets `thread` pass what it waits for in any order, when no thread can go on.
    pub fn forced(&mut self, thread: usize) {
        if let Some(clock) = self.blocked.remove(&thread) {
            self.pass(clock);
        }
    }

    /// Skips the places that the first early thread waits for, when no thread can go on: they are missing in the
    /// record.
    fn skip_missing(&mut self) {
        if let Some((clock, _)) = self.early.first_key_value() {
            self.next = self.places.partition_point(|(place, _)| place < clock);
        }
    }
}

/// Whether an operation begins when its thread comes there, and not in its turn: it waits for what it names. A wake-up
/// may have a later place in the clock than the wait that it ended.
fn begins_at_once(event: &Event) -> bool {
    use Event as E;
    matches!(
        event,
        E::SemaphoreWait { .. }
            | E::FutexWait { .. }
            | E::ThreadJoin { .. }
            | E::BarrierWait { .. }
            | E::Consume { .. }
    )
}

/// The place of an event in the order: that of synchronisation in the process clock.
fn place_of(event: &Event) -> Option<Clock> {
    match meaning(event) {
        Meaning::Synchronisation { .. } => event.clock(),
        _ => None,
    }
}

impl Host {
    /// Synchronisation happens in the order in which it was recorded, instead of being arbitrated again, and threads
    /// wait for what `record`, which they replay, says that they saw of each other's writes. To be called before the
    /// start.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub fn keep_recorded_order(&mut self, record: &Record) -> Result<(), RecordError> {
        let mut places = Vec::new();
        record.visit_events(|_, event| places.extend(place_of(event)))?;
        self.process.recorded_order = Some(Box::new(RecordedOrder::new(places)));
        if record.info().options.values {
            self.process.write_order = Some(Box::default());
            let mut awaited = AwaitedWrites::of_record(record)?;
            for thread in &mut self.process.threads {
                thread.awaited_writes = awaited.remove(&thread.id).map(Box::new);
            }
        }
        Ok(())
    }

    /// Handles the synchronisation event that the thread has come to; says whether the thread goes on at once.
    pub(super) fn synchronise(&mut self, thread: usize, event: &Event, now: u64, context: &mut Context<'_>) -> bool {
        let lock_again;
        let event = match *event {
            // It is over where the thread has the mutex again, in its turn among all that lock it; what woke it comes
            // before that.
            Event::ConditionWait { clock, mutex, .. } if self.process.recorded_order.is_some() => {
                let released = self
                    .process
                    .synchronisation
                    .apply(ThreadId(thread as u32), &Event::MutexUnlock { clock, object: mutex });
                self.let_go_on(&released.woken, now, context);
                lock_again = Event::MutexLock { clock, object: mutex };
                &lock_again
            }
            _ => event,
        };
        if let (Some(order), Some(clock)) = (&mut self.process.recorded_order, place_of(event))
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

    /// Lets the first thread that is ahead of its turn go on, when no thread can; says whether there was one.
    pub(super) fn force_order(&mut self, cycle: u64, context: &mut Context<'_>) -> bool {
        let Some(order) = self.process.recorded_order.as_mut().filter(|order| !order.early.is_empty()) else {
            return false;
        };
        order.skip_missing();
        self.pass_early(cycle, context);
        true
    }

    /// Lets those go on whose turn has come.
    fn pass_early(&mut self, cycle: u64, context: &mut Context<'_>) {
        while let Some((thread, event)) = self.process.recorded_order.as_mut().and_then(|order| order.take_next()) {
            if self.arbitrate(thread, &event, cycle, context) {
                self.make_ready(thread, cycle, context);
            }
        }
    }

    fn arbitrate(&mut self, thread: usize, event: &Event, cycle: u64, context: &mut Context<'_>) -> bool {
        let decision = self.process.synchronisation.apply(ThreadId(thread as u32), event);
        self.let_go_on(&decision.woken, cycle, context);
        if let (Some(order), Some(clock)) = (&mut self.process.recorded_order, place_of(event)) {
            // The place of a barrier is that of its arrival; only the barrier's other threads hold its leaving.
            if decision.proceeds || matches!(event, Event::BarrierWait { .. }) {
                order.pass(clock);
            } else {
                order.blocked.insert(thread, clock);
            }
        }
        decision.proceeds
    }

    fn let_go_on(&mut self, woken: &[ThreadId], cycle: u64, context: &mut Context<'_>) {
        for thread in woken.iter().map(|thread| thread.0 as usize) {
            if let Some(order) = &mut self.process.recorded_order
                && let Some(clock) = order.blocked.remove(&thread)
            {
                order.pass(clock);
            }
            self.make_ready(thread, cycle, context);
        }
    }
}

/// The order of writes that threads saw of each other; [`crate::core::write_order`] keeps the books.
impl Host {
    /// Handles a thread without a core that has come to where it saw these writes; says whether it goes on at once.
    pub(super) fn wait_for_writes(&mut self, thread: usize, writes: Writes) -> bool {
        let order = self.process.write_order.as_mut().expect("it is kept where threads wait for it");
        let is_performed = order.performed(writes).is_some();
        if !is_performed {
            order.block(thread, writes);
        }
        is_performed
    }

    /// Takes notice of writes of a core that others wait for.
    pub(super) fn notice_awaited_writes(&mut self, core: usize, context: &mut Context<'_>) {
        if self.process.write_order.is_some() {
            while let Some((writes, cycle)) = self.socket.cores[core].take_performed() {
                self.perform(writes, cycle, context);
            }
        }
    }

    fn perform(&mut self, writes: Writes, cycle: u64, context: &mut Context<'_>) {
        let Some(order) = &mut self.process.write_order else { return };
        let Released { cores, threads } = order.perform(writes, cycle);
        let cycle = (cycle + 1).max(self.cycle(context.now()));
        for core in cores {
            self.schedule_run(core, cycle, context);
        }
        for thread in threads {
            self.make_ready(thread, cycle, context);
        }
    }

    /// A thread wants a core: those whose threads wait for writes leave them.
    pub(super) fn free_stalled_cores(&mut self, cycle: u64, context: &mut Context<'_>) {
        let stalled = self.process.write_order.as_mut().map(|order| order.take_stalled());
        for core in stalled.into_iter().flatten() {
            self.schedule_run(core, cycle, context);
        }
    }

    /// Counts writes that a thread waits for as made, when no thread can go on, those missing in the record first; says
    /// whether there were any.
    pub(super) fn force_write_order(&mut self, cycle: u64, context: &mut Context<'_>) -> bool {
        let states = &self.process.states;
        let is_missing =
            |thread: ThreadId| states.get(thread.0 as usize).is_none_or(|state| *state == ThreadState::Ended);
        let Some(writes) = self.process.write_order.as_ref().and_then(|order| order.awaited(is_missing)) else {
            return false;
        };
        self.perform(writes, cycle, context);
        true
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
