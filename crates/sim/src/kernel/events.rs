//! The one queue of events: earliest first, and in the order sent where times are equal.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::component::{ComponentId, Event};
use super::time::Time;

/// Pending events of a simulation, ordered by (time, sequence of sending).
///
/// The heap holds small keys only; the events lie in a slab and do not move while the heap is reordered.
#[derive(Clone, Default)]
pub struct EventQueue {
    heap: BinaryHeap<Reverse<(Time, u64, u32)>>,
    slab: Vec<(ComponentId, Event)>,
    free: Vec<u32>,
    sequence: u64,
}

impl EventQueue {
    /// Adds an event for `target` at `time`.
    pub fn push(&mut self, time: Time, target: ComponentId, event: Event) {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slab[slot as usize] = (target, event);
                slot
            }
            None => {
                self.slab.push((target, event));
                (self.slab.len() - 1) as u32
            }
        };
        self.heap.push(Reverse((time, self.sequence, slot)));
        self.sequence += 1;
    }

    /// Takes the earliest event, with its time and receiver.
    pub fn pop(&mut self) -> Option<(Time, ComponentId, Event)> {
        let Reverse((time, _, slot)) = self.heap.pop()?;
        self.free.push(slot);
        let (target, event) = self.slab[slot as usize];
        Some((time, target, event))
    }

    /// When the next event is due.
    pub fn next_time(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((time, _, _))| *time)
    }

    /// How many events were ever sent; a measure of the work done.
    pub fn sent(&self) -> u64 {
        self.sequence
    }

    /// How many events are pending.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Drops everything that is under way: what a power cut does to the wires.
    pub fn clear(&mut self) {
        self.heap.clear();
        self.slab.clear();
        self.free.clear();
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
