//! The one queue of events: earliest first, and in the order sent where times are equal.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::component::{ComponentId, Event};
use super::time::Time;

/// Bits of a key's second half that hold the slot; the others hold the sequence.
const SLOT_BITS: u32 = 24;

/// Pending events of a simulation, ordered by (time, sequence of sending).
///
/// The heap holds small keys only; the events lie in a slab and do not move while the heap is reordered. What happens at the present time stands in a
/// line of its own: all else of that time was sent before and comes first.
#[derive(Clone, Default)]
pub struct EventQueue {
    heap: BinaryHeap<Reverse<(Time, u64)>>,
    slab: Vec<(ComponentId, Event)>,
    free: Vec<u32>,
    /// Events of the time `now`, in the order sent.
    present: VecDeque<(ComponentId, Event)>,
    /// The time of the event that was taken last.
    now: Time,
    sequence: u64,
}

impl EventQueue {
    /// Adds an event for `target` at `time`.
    #[inline]
    pub fn push(&mut self, time: Time, target: ComponentId, event: Event) {
        if time == self.now {
            self.present.push_back((target, event));
        } else {
            let slot = self.place(target, event);
            self.heap.push(Reverse((time, self.sequence << SLOT_BITS | u64::from(slot))));
        }
        self.sequence += 1;
    }

    /// Takes the earliest event, with its time and receiver.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, ComponentId, Event)> {
        let earliest = self.heap.peek().map(|Reverse((time, _))| *time);
        if earliest != Some(self.now)
            && let Some((target, event)) = self.present.pop_front()
        {
            return Some((self.now, target, event));
        }
        let Reverse((time, key)) = self.heap.pop()?;
        let slot = (key & ((1 << SLOT_BITS) - 1)) as u32;
        self.free.push(slot);
        let (target, event) = self.slab[slot as usize];
        self.now = time;
        Some((time, target, event))
    }

    /// When the next event is due.
    pub fn next_time(&self) -> Option<Time> {
        if self.present.is_empty() { self.heap.peek().map(|Reverse((time, _))| *time) } else { Some(self.now) }
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
        self.slab.clear();
        self.free.clear();
        self.present.clear();
    }

    /// A place in the slab that holds the event.
    #[inline]
    fn place(&mut self, target: ComponentId, event: Event) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slab[slot as usize] = (target, event);
            return slot;
        }
        self.slab.push((target, event));
        let slot = self.slab.len() as u64 - 1;
        assert!(slot < 1 << SLOT_BITS, "more than {} events are pending", 1 << SLOT_BITS);
        slot as u32
    }
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
