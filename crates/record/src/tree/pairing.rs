//! Who woke whom at objects in memory that processes share: each process's recorder knows its own threads only.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::member::Member;
use crate::error::RecordError;
use crate::event::{Clock, Event, FutexOutcome};

/// What a wait was for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Woken {
    pub by: Option<Clock>,
    /// Of a barrier.
    pub participants: u64,
    pub generation: u64,
}

/// By the place of the wait in the process clock, which is one for all.
#[derive(Debug, Default)]
pub(super) struct Pairing {
    pub woken: FxHashMap<Clock, Woken>,
}

/// What is known of one object. Waits have the clock of when they are over, so that what woke them came before.
#[derive(Default)]
struct Object {
    /// Wakes, and how many threads they may still have woken.
    wakes: VecDeque<(Clock, u64)>,
    participants: u64,
    arrivals: u64,
}

impl Object {
    fn woken(&mut self) -> Woken {
        let by = self.wakes.front().map(|(clock, _)| *clock);
        if let Some((_, left)) = self.wakes.front_mut() {
            *left -= 1;
            if *left == 0 {
                self.wakes.pop_front();
            }
        }
        Woken { by, ..Woken::default() }
    }

    fn arrive(&mut self) -> Woken {
        let generation = self.arrivals.checked_div(self.participants).unwrap_or_default();
        self.arrivals += 1;
        Woken { by: None, participants: self.participants, generation }
    }
}

fn object_of(event: &Event) -> Option<u64> {
    use Event as E;
    match *event {
        E::ConditionWait { object, .. }
        | E::ConditionSignal { object, .. }
        | E::ConditionBroadcast { object, .. }
        | E::SemaphorePost { object, .. }
        | E::SemaphoreWait { object, .. }
        | E::FutexWait { object, .. }
        | E::FutexWake { object, .. }
        | E::BarrierWait { object, .. } => Some(object),
        _ => None,
    }
}

impl Pairing {
    pub(super) fn of(members: &[Member]) -> Result<Self, RecordError> {
        let mut events: Vec<(Clock, u64, Event)> = Vec::new();
        for member in members.iter().filter(|member| member.spaces.has_shared()) {
            member.record.visit_events(|_, event| {
                if let (Some(clock), Some(object)) = (event.clock(), object_of(event))
                    && member.spaces.is_shared(object, clock)
                {
                    events.push((clock, member.spaces.place(object, clock), event.clone()));
                }
            })?;
        }
        Ok(Self { woken: paired(events) })
    }
}

fn paired(mut events: Vec<(Clock, u64, Event)>) -> FxHashMap<Clock, Woken> {
    events.sort_by_key(|(clock, ..)| *clock);
    let mut objects: FxHashMap<u64, Object> = FxHashMap::default();
    // A barrier may be known by one process only.
    for (_, place, event) in &events {
        if let Event::BarrierWait { participants, .. } = *event {
            let object = objects.entry(*place).or_default();
            object.participants = object.participants.max(participants);
        }
    }
    let mut woken = FxHashMap::default();
    for (clock, place, event) in &events {
        let object = objects.entry(*place).or_default();
        match *event {
            Event::SemaphorePost { .. } | Event::ConditionSignal { .. } => object.wakes.push_back((*clock, 1)),
            Event::FutexWake { woken, .. } if woken > 0 => object.wakes.push_back((*clock, woken)),
            Event::ConditionBroadcast { .. } => object.wakes = [(*clock, u64::MAX)].into(),
            Event::ConditionWait { timed_out: false, .. }
            | Event::SemaphoreWait { .. }
            | Event::FutexWait { outcome: FutexOutcome::Woken, .. } => {
                woken.insert(*clock, object.woken());
            }
            Event::BarrierWait { .. } => {
                woken.insert(*clock, object.arrive());
            }
            _ => {}
        }
    }
    woken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn post(clock: u64) -> (Clock, u64, Event) {
        (Clock(clock), 64, Event::SemaphorePost { clock: Clock(clock), object: 64 })
    }

    fn wait(clock: u64) -> (Clock, u64, Event) {
        (Clock(clock), 64, Event::SemaphoreWait { clock: Clock(clock), object: 64, wake: None })
    }

    #[test]
    fn tokens_are_taken_in_the_order_in_which_they_were_posted() {
        let woken = paired(vec![wait(7), post(2), post(4), wait(5), wait(9)]);
        let by = |clock| woken[&Clock(clock)].by;
        assert_eq!([by(5), by(7), by(9)], [Some(Clock(2)), Some(Clock(4)), None]);
    }

    #[test]
    fn a_barrier_that_one_process_made_has_its_participants_in_all() {
        let arrive = |clock, participants| {
            let event = Event::BarrierWait { clock: Clock(clock), object: 64, participants, generation: 0 };
            (Clock(clock), 64, event)
        };
        let woken = paired(vec![arrive(1, 0), arrive(2, 2), arrive(3, 2), arrive(4, 0)]);
        let of = |clock| (woken[&Clock(clock)].participants, woken[&Clock(clock)].generation);
        assert_eq!([of(1), of(2), of(3), of(4)], [(2, 0), (2, 0), (2, 1), (2, 1)]);
    }
}
