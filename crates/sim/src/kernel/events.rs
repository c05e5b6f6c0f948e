//! The one queue of events: earliest first, and in the order sent where times are equal.

use std::collections::VecDeque;

use super::component::{ComponentId, Event, PortId};
use super::heap::{Heap, Key};
use super::time::Time;
use crate::message::{Message, MessageClass};

/// Bits of a key that hold the slot.
const SLOT_BITS: u32 = 24;
/// Lower bits of a key: what is not the time.
const ORDER_BITS: u32 = 64;

/// An event with its receiver. Messages, which are much larger than all else, lie apart: most events have none.
#[derive(Clone, Copy, Debug)]
struct Pending {
    target: ComponentId,
    kind: Kind,
}

/// As [`Event`], but with the place of the message.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Arrival { port: PortId, message: u32 },
    Credit { port: PortId, class: MessageClass },
    Wake { token: u64 },
}

/// Things that do not move until they are taken out. A place that is free is used again, the latest first.
#[derive(Clone)]
struct Slab<T> {
    places: Vec<T>,
    free: Vec<u32>,
}

/// Pending events of a simulation, ordered by (time, sequence of sending).
///
/// The heap holds small keys only; the events lie in a slab and do not move while the heap is reordered. What happens at the present time stands in a
/// line of its own: all else of that time was sent before and comes first.
#[derive(Clone, Default)]
pub struct EventQueue {
    heap: Heap,
    events: Slab<Pending>,
    messages: Slab<Message>,
    /// Where events of the time `now` lie, in the order sent.
    present: VecDeque<u32>,
    /// The time of the event that was taken last.
    now: Time,
    sequence: u64,
}

impl EventQueue {
    /// Adds an event for `target` at `time`.
    #[inline(always)]
    pub fn push(&mut self, time: Time, target: ComponentId, event: Event) {
        let kind = match event {
            Event::Arrival { port, message } => Kind::Arrival { port, message: self.messages.insert(message) },
            Event::Credit { port, class } => Kind::Credit { port, class },
            Event::Wake { token } => Kind::Wake { token },
        };
        let slot = self.events.insert(Pending { target, kind });
        self.schedule(time, slot);
    }

    fn schedule(&mut self, time: Time, slot: u32) {
        if time == self.now {
            self.present.push_back(slot);
        } else {
            let order = self.sequence << SLOT_BITS | u64::from(slot);
            self.heap.push(Key::from(time.as_ps()) << ORDER_BITS | Key::from(order));
        }
        self.sequence += 1;
    }

    /// Takes the earliest event, with its time and receiver.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, ComponentId, Event)> {
        let slot = match self.heap.first() {
            Some(key) if time_of(key) == self.now || self.present.is_empty() => {
                self.heap.pop();
                self.now = time_of(key);
                slot_of(key)
            }
            _ => self.present.pop_front()?,
        };
        let Pending { target, kind } = self.events.take(slot);
        let event = match kind {
            Kind::Arrival { port, message } => Event::Arrival { port, message: self.messages.take(message) },
            Kind::Credit { port, class } => Event::Credit { port, class },
            Kind::Wake { token } => Event::Wake { token },
        };
        Some((self.now, target, event))
    }

    /// When the next event is due.
    #[inline]
    pub fn next_time(&self) -> Option<Time> {
        if self.present.is_empty() { self.heap.first().map(time_of) } else { Some(self.now) }
    }

    /// How many events were ever sent; a measure of the work done.
    pub fn sent(&self) -> u64 {
        self.sequence
    }

    /// How many events are pending.
    pub fn len(&self) -> usize {
        self.heap.len() + self.present.len()
    }

    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops everything that is under way: what a power cut does to the wires.
    pub fn clear(&mut self) {
        self.heap.clear();
        self.events = Slab::default();
        self.messages = Slab::default();
        self.present.clear();
    }
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { places: Vec::new(), free: Vec::new() }
    }
}

impl<T: Copy> Slab<T> {
    /// Puts `thing` somewhere and gives the place.
    #[inline]
    fn insert(&mut self, thing: T) -> u32 {
        if let Some(place) = self.free.pop() {
            self.places[place as usize] = thing;
            return place;
        }
        self.grow(thing)
    }

    /// Takes out what is at `place`.
    #[inline]
    fn take(&mut self, place: u32) -> T {
        self.free.push(place);
        self.places[place as usize]
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, thing: T) -> u32 {
        let place = self.places.len() as u64;
        assert!(place < 1 << SLOT_BITS, "more than {} events are pending", 1 << SLOT_BITS);
        self.places.push(thing);
        place as u32
    }
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
}
