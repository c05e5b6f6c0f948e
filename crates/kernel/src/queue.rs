//! The one queue of events: earliest first, and in the order sent where times are equal.

use std::collections::VecDeque;

use super::credits::{Credits, Due};
use super::event::Event;
use super::heap::{Heap, Key};
use super::id::{ComponentId, PortId};
use crate::message::MessageClass;
use crate::time::Time;

/// Bits of a key that hold the slot.
const SLOT_BITS: u32 = 24;
/// Lower bits of a key: what is not the time.
const ORDER_BITS: u32 = 64;

/// An event with its receiver.
#[derive(Clone, Debug)]
struct Pending {
    target: ComponentId,
    event: Event,
}

/// Things that do not move until they are taken out. A place that is free is used again, the latest first.
#[derive(Clone)]
struct Slab<T> {
    places: Vec<Option<T>>,
    free: Vec<u32>,
}

/// Pending events of a simulation, ordered by (time, sequence of sending).
///
/// The heap holds small keys only; the events lie in a slab and do not move while the heap is reordered. What is sent
/// for the present time stands in a line of its own.
#[derive(Clone, Default)]
pub struct EventQueue {
    heap: Heap,
    events: Slab<Pending>,
    /// The lower bits of the keys of events of the present time, in the order sent.
    present: VecDeque<u64>,
    /// The key of the event that was taken last.
    last: Key,
    sequence: u64,
    taken: u64,
    /// Credits that no transmitter waits for, if those are no events.
    credits: Option<Credits>,
}

impl EventQueue {
    /// Adds an event for `target` at `time`.
    #[inline(always)]
    pub fn push(&mut self, time: Time, target: ComponentId, event: Event) {
        let slot = self.events.insert(Pending { target, event });
        let order = self.sequence << SLOT_BITS | u64::from(slot);
        if time == self.now() {
            self.present.push_back(order);
        } else {
            self.heap.push(key_at(time, order));
        }
        self.sequence += 1;
    }

    /// A queue in which credits that no transmitter waits for are no events.
    pub fn holding_credits() -> EventQueue {
        EventQueue { credits: Some(Credits::default()), ..EventQueue::default() }
    }

    /// From now on all credits are events.
    pub fn stop_holding_credits(&mut self) {
        self.release_credits();
        self.credits = None;
    }

    /// Port number `from` of all gives a credit of `class` back to `to`, which has it at `arrival`.
    #[inline]
    pub fn return_credit(&mut self, from: usize, to: (ComponentId, PortId), class: MessageClass, arrival: Time) {
        let Some(credits) = &mut self.credits else {
            return self.push(arrival, to.0, Event::Credit { port: to.1, class });
        };
        let key = key_at(arrival, self.sequence << SLOT_BITS);
        self.sequence += 1;
        if let Some(due) = credits.give_back(from, Due { key, to, class }, self.last) {
            self.push_credit(due);
        }
    }

    /// How many credits of `class` have reached `to` from port number `from` of all since the last call, besides those
    /// that were events. If there are none, the next one is an event.
    #[inline]
    pub fn take_credits(&mut self, from: usize, to: (ComponentId, PortId), class: MessageClass) -> u16 {
        let Some(credits) = &mut self.credits else { return 0 };
        let (arrived, next) = credits.take(from, to, class, self.last);
        if let Some(due) = next {
            self.push_credit(due);
        }
        arrived
    }

    /// A credit becomes an event, in the place that it has.
    fn push_credit(&mut self, Due { key, to: (target, port), class }: Due) {
        let slot = self.events.insert(Pending { target, event: Event::Credit { port, class } });
        self.heap.push(key | Key::from(slot));
    }

    /// All credits become events; whether there were any.
    fn release_credits(&mut self) -> bool {
        let Some(credits) = &mut self.credits else { return false };
        // Those that have arrived come before all that is pending.
        let all = credits.take_all(self.last >> SLOT_BITS << SLOT_BITS);
        all.iter().for_each(|due| self.push_credit(*due));
        !all.is_empty()
    }

    /// Takes the earliest event, with its time and receiver.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, ComponentId, Event)> {
        let now = self.now();
        let present = self.present.front().map(|order| key_at(now, *order));
        let key = match (self.heap.first(), present) {
            (Some(key), None) => {
                self.heap.pop();
                key
            }
            // It was sent before this time came, or is a credit that was given back before the other was sent and is
            // waited for only since.
            (Some(key), Some(present)) if key < present => {
                self.heap.pop();
                key
            }
            (_, Some(present)) => {
                self.present.pop_front();
                present
            }
            // What is left are credits that no transmitter waits for. Time goes on until all have arrived.
            (None, None) if self.release_credits() => return self.pop(),
            (None, None) => return None,
        };
        self.last = key;
        self.taken += 1;
        let Pending { target, event } = self.events.take(slot_of(key));
        Some((self.now(), target, event))
    }

    /// The time of the event that was taken last.
    #[inline]
    fn now(&self) -> Time {
        time_of(self.last)
    }

    /// When the next event is due.
    #[inline]
    pub fn next_time(&self) -> Option<Time> {
        if !self.present.is_empty() {
            return Some(self.now());
        }
        let of_credits = || self.credits.as_ref()?.next(self.last);
        self.heap.first().or_else(of_credits).map(time_of)
    }

    /// How many events were ever taken; a measure of the work done.
    #[inline]
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// How many events are pending.
    #[inline]
    pub fn len(&self) -> usize {
        self.heap.len() + self.present.len()
    }

    /// Whether nothing is pending but credits that no transmitter waits for.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops everything that is under way: what a power cut does to the wires.
    pub fn clear(&mut self) {
        self.credits = self.credits.take().map(|_| Credits::default());
        self.heap.clear();
        self.events = Slab::default();
        self.present.clear();
    }
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Puts `thing` somewhere and gives the place.
    #[inline]
    fn insert(&mut self, thing: T) -> u32 {
        if let Some(place) = self.free.pop() {
            self.places[place as usize] = Some(thing);
            return place;
        }
        self.grow(thing)
    }

    /// Takes out what is at `place`.
    #[inline]
    fn take(&mut self, place: u32) -> T {
        self.free.push(place);
        self.places[place as usize].take().expect("what is pending is there")
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, thing: T) -> u32 {
        let place = self.places.len() as u64;
        assert!(place < 1 << SLOT_BITS, "more than {} events are pending", 1 << SLOT_BITS);
        self.places.push(Some(thing));
        place as u32
    }
}

#[inline]
fn key_at(time: Time, order: u64) -> Key {
    Key::from(time.as_ps()) << ORDER_BITS | Key::from(order)
}

#[inline]
fn time_of(key: Key) -> Time {
    Time::from_ps((key >> ORDER_BITS) as u64)
}

#[inline]
fn slot_of(key: Key) -> u32 {
    key as u32 & ((1 << SLOT_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn order(queue: &mut EventQueue) -> Vec<u64> {
        std::iter::from_fn(|| queue.pop())
            .map(|(_, _, event)| match event {
                Event::Wake { token } => token,
                other => panic!("only wakes were sent, not {other:?}"),
            })
            .collect()
    }

    #[test]
    fn earlier_events_come_first_and_equal_times_in_the_order_sent() {
        let mut queue = EventQueue::default();
        for (time, token) in [(20, 0), (10, 1), (20, 2), (10, 3), (5, 4)] {
            queue.push(Time::from_ps(time), ComponentId(0), Event::Wake { token });
        }
        assert_eq!(order(&mut queue), [4, 1, 3, 0, 2]);
    }

    #[test]
    fn what_is_sent_for_the_present_comes_after_what_was_sent_before_for_that_time() {
        let mut queue = EventQueue::default();
        let wake = |token| Event::Wake { token };
        for (time, token) in [(5, 0), (5, 1), (6, 2)] {
            queue.push(Time::from_ps(time), ComponentId(0), wake(token));
        }
        let first = queue.pop();
        assert!(matches!(first, Some((_, _, Event::Wake { token: 0 }))));
        queue.push(Time::from_ps(5), ComponentId(0), wake(3));
        queue.push(Time::from_ps(5), ComponentId(0), wake(4));
        assert_eq!((queue.len(), queue.next_time()), (4, Some(Time::from_ps(5))));
        assert_eq!(order(&mut queue), [1, 3, 4, 2]);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_clone_replays_the_same_order() {
        let mut queue = EventQueue::default();
        for token in 0..100 {
            queue.push(Time::from_ps(token * 7 % 13), ComponentId(0), Event::Wake { token });
        }
        for _ in 0..40 {
            queue.pop();
        }
        let mut copy = queue.clone();
        assert_eq!(order(&mut queue), order(&mut copy));
    }

    const TAKER: ComponentId = ComponentId(1);
    const PORT: PortId = PortId(0);
    const CLASS: MessageClass = MessageClass::M2sReq;

    #[test]
    fn credits_that_have_arrived_when_all_become_events_come_before_what_is_pending() {
        let mut queue = EventQueue::holding_credits();
        queue.return_credit(5, (TAKER, PORT), CLASS, Time::from_ps(10));
        queue.push(Time::from_ps(10), TAKER, Event::Wake { token: 1 });
        queue.push(Time::from_ps(10), TAKER, Event::Wake { token: 2 });
        assert_eq!(queue.pop().map(|(time, _, _)| time), Some(Time::from_ps(10)));
        queue.push(Time::from_ps(10), TAKER, Event::Wake { token: 3 });
        queue.stop_holding_credits();
        let next = std::iter::from_fn(|| queue.pop().map(|(_, _, event)| event));
        let tokens: Vec<Option<u64>> =
            next.map(|event| if let Event::Wake { token } = event { Some(token) } else { None }).collect();
        assert_eq!(tokens, [None, Some(2), Some(3)]);
    }

    const CREDITS: u16 = 3;

    /// What needs a credit comes at some times and waits for its turn; at others its receiver gives a credit back, if
    /// it has one, which takes so long: when each has had one, and how many credits are left.
    fn served(wants: &[u64], returns: &[(u64, u64)], mut queue: EventQueue) -> (Vec<(Time, u64)>, u16) {
        let times = wants.iter().chain(returns.iter().map(|(time, _)| time));
        for (token, time) in (0..).zip(times) {
            queue.push(Time::from_ps(*time), TAKER, Event::Wake { token });
        }
        let (mut waiting, mut served, mut credits, mut taken) = (VecDeque::new(), Vec::new(), CREDITS, 0);
        while let Some((now, _, event)) = queue.pop() {
            match event {
                Event::Wake { token } if (token as usize) < wants.len() => waiting.push_back(token),
                Event::Wake { token } => {
                    if taken > 0 {
                        taken -= 1;
                        let back = Time::from_ps(now.as_ps() + returns[token as usize - wants.len()].1);
                        queue.return_credit(5, (TAKER, PORT), CLASS, back);
                    }
                }
                Event::Credit { .. } => credits += 1,
                Event::Arrival { .. } => unreachable!("nobody sends anything"),
            }
            while let Some(token) = waiting.front().copied() {
                if credits == 0 {
                    credits = queue.take_credits(5, (TAKER, PORT), CLASS);
                }
                if credits == 0 {
                    break;
                }
                credits -= 1;
                taken += 1;
                waiting.pop_front();
                served.push((now, token));
            }
        }
        assert_eq!((credits + taken, queue.next_time()), (CREDITS, None), "none is lost");
        (served, credits)
    }

    proptest! {
        #[test]
        fn credits_that_are_no_events_come_when_they_would_have(
            wants in prop::collection::vec(0..60u64, 0..50),
            returns in prop::collection::vec((0..60u64, 0..20u64), 0..50),
        ) {
            let held = served(&wants, &returns, EventQueue::holding_credits());
            prop_assert_eq!(held, served(&wants, &returns, EventQueue::default()));
        }
    }
}
