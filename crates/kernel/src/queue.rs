//! The one queue of events: earliest first, and at equal times in an order that does not depend on who sent first.
//!
//! An event's place is one number, whose fields are, from the highest bits down:
//!
//! | bits | field | decides |
//! |--:|---|---|
//! | 54 | time in ps | up to five hours |
//! | 8 | step | what is sent for the present instant comes after all that were sent for it before it began, and so on: a chain of causes without time keeps its order (from the 255th link on, all are one step) |
//! | 1 | kind | messages and credits come before wakes, so that who wakes sees all that has arrived |
//! | 26 | turn | the receiving port, or who asked for the wake, shuffled anew for each instant: of equal ones that act in step each is first equally often |
//! | 19 | sequence | what comes to one port, or is asked for by one component, keeps the order in which it was sent |
//! | 20 | slot | where the event lies; decides nothing |

use super::credits::{Credits, Due};
use super::event::Event;
use super::heap::{Heap, Key};
use super::id::{ComponentId, PortId};
use crate::message::MessageClass;
use crate::time::Time;

const SLOT_BITS: u32 = 20;
const SEQUENCE_BITS: u32 = 19;
const TURN_BITS: u32 = 26;
const STEP_BITS: u32 = 8;
const TURN_SHIFT: u32 = SLOT_BITS + SEQUENCE_BITS;
const KIND_SHIFT: u32 = TURN_SHIFT + TURN_BITS;
const STEP_SHIFT: u32 = KIND_SHIFT + 1;
const TIME_SHIFT: u32 = STEP_SHIFT + STEP_BITS;
/// Ports of a component that have turns of their own.
const PORT_BITS: u32 = 10;

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

/// Pending events of a simulation, in the order of their places.
///
/// The heap holds places only; the events lie in a slab and do not move while the heap is reordered.
#[derive(Clone, Default)]
pub struct EventQueue {
    heap: Heap,
    events: Slab<Pending>,
    /// The place of the event that was taken last.
    last: Key,
    sequence: u32,
    taken: u64,
    /// Credits that no transmitter waits for, if those are no events.
    credits: Option<Credits>,
}

impl EventQueue {
    /// Adds an event for `target` at `time`: what reaches it there, or a wake that it asks for.
    #[inline(always)]
    pub fn push(&mut self, time: Time, target: ComponentId, event: Event) {
        match event {
            Event::Arrival { port, .. } | Event::Credit { port, .. } => {
                let key = self.place(time, Kind::Delivery, target, port);
                self.insert(key, target, event);
            }
            Event::Wake { token } => self.push_wake(time, target, target, token),
        }
    }

    /// Wakes `target` at `time`, which `asker` asked for.
    #[inline(always)]
    pub fn push_wake(&mut self, time: Time, asker: ComponentId, target: ComponentId, token: u64) {
        let key = self.place(time, Kind::Wake, asker, PortId(0));
        self.insert(key, target, Event::Wake { token });
    }

    #[inline(always)]
    fn insert(&mut self, key: Key, target: ComponentId, event: Event) {
        let slot = self.events.insert(Pending { target, event });
        self.heap.push(key | Key::from(slot));
    }

    /// The place of what comes next to that port, or is asked for next by that component.
    #[inline(always)]
    fn place(&mut self, time: Time, kind: Kind, component: ComponentId, port: PortId) -> Key {
        if self.sequence == 1 << SEQUENCE_BITS {
            self.renumber();
        }
        // In all builds: bits that are cut off would change the order without a word.
        assert!(time.as_ps() < 1 << (Key::BITS - TIME_SHIFT), "more than five hours are simulated");
        let step = if time == self.now() { (step_of(self.last) + 1).min((1 << STEP_BITS) - 1) } else { 0 };
        let sequence = self.sequence;
        self.sequence += 1;
        Key::from(time.as_ps()) << TIME_SHIFT
            | Key::from(step) << STEP_SHIFT
            | (kind as Key) << KIND_SHIFT
            | Key::from(turn(time, component, port)) << TURN_SHIFT
            | Key::from(sequence) << SLOT_BITS
    }

    /// Sequences begin again at 0, and all that is pending keeps its order.
    #[cold]
    #[inline(never)]
    fn renumber(&mut self) {
        let mut keys: Vec<&mut Key> = self.heap.keys_mut().chain(std::iter::once(&mut self.last)).collect();
        keys.extend(self.credits.iter_mut().flat_map(Credits::keys_mut));
        assert!(keys.len() < 1 << SEQUENCE_BITS, "more than {} events are pending", 1 << SEQUENCE_BITS);
        keys.sort_unstable();
        self.sequence = 0;
        for key in keys {
            let sequence = Key::from(self.sequence) << SLOT_BITS;
            *key = *key >> TURN_SHIFT << TURN_SHIFT | sequence | Key::from(slot_of(*key));
            self.sequence += 1;
        }
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
        let due = Due { key: self.place(arrival, Kind::Delivery, to.0, to.1), to, class };
        let as_event = match &mut self.credits {
            Some(credits) => credits.give_back(from, due, self.last),
            None => Some(due),
        };
        if let Some(due) = as_event {
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
        self.insert(key, target, Event::Credit { port, class });
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
        let Some(key) = self.heap.first() else {
            // What is left are credits that no transmitter waits for. Time goes on until all have arrived.
            return if self.release_credits() { self.pop() } else { None };
        };
        self.heap.pop();
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
        self.heap.len()
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

/// What decides between events of one step.
#[derive(Clone, Copy)]
enum Kind {
    Delivery,
    Wake,
}

/// The turn of that port, or of that component, at that time: numbers of [`TURN_BITS`] are mapped to each other one to
/// one, otherwise at each instant.
#[inline]
fn turn(time: Time, component: ComponentId, port: PortId) -> u32 {
    const MASK: u32 = (1 << TURN_BITS) - 1;
    let random = time.as_ps().wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let random = (random ^ random >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mut turn = (component.0 << PORT_BITS ^ u32::from(port.0) ^ random as u32) & MASK;
    turn = turn.wrapping_mul((random >> 32) as u32 | 1) & MASK;
    turn ^= turn >> (TURN_BITS / 2);
    turn = turn.wrapping_mul(0x2C1B_3C6D) & MASK;
    turn ^ turn >> (TURN_BITS / 2)
}

#[inline]
fn time_of(key: Key) -> Time {
    Time::from_ps((key >> TIME_SHIFT) as u64)
}

#[inline]
fn step_of(key: Key) -> u32 {
    (key >> STEP_SHIFT) as u32 & ((1 << STEP_BITS) - 1)
}

#[inline]
fn slot_of(key: Key) -> u32 {
    key as u32 & ((1 << SLOT_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

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

    fn credit(port: u16) -> Event {
        Event::Credit { port: PortId(port), class: CLASS }
    }

    /// The ports of credits in the order in which they come; of wakes, the token and 100.
    fn ports(queue: &mut EventQueue) -> Vec<u64> {
        std::iter::from_fn(|| queue.pop())
            .map(|(_, _, event)| match event {
                Event::Wake { token } => 100 + token,
                Event::Arrival { port, .. } | Event::Credit { port, .. } => u64::from(port.0),
            })
            .collect()
    }

    #[test]
    fn wakes_come_after_what_arrives_at_the_same_time() {
        for time in 0..100 {
            let mut queue = EventQueue::default();
            queue.push(Time::from_ps(time), ComponentId(0), Event::Wake { token: 0 });
            queue.push(Time::from_ps(time), ComponentId(3), credit(1));
            assert_eq!(ports(&mut queue), [1, 100]);
        }
    }

    #[test]
    fn of_ports_in_step_each_is_at_each_place_equally_often() {
        const PORTS: usize = 16;
        const INSTANTS: u64 = 16_000;
        // Ports of one component and ports of several, at all instants and at multiples of a cycle.
        for (components, cycle) in [(1, 1), (16, 1), (4, 500), (16, 1024)] {
            let mut often = [[0_u64; PORTS]; PORTS];
            for instant in 1..=INSTANTS {
                let mut queue = EventQueue::default();
                for port in 0..PORTS as u16 {
                    let component = ComponentId(u32::from(port) % components);
                    queue.push(Time::from_ps(instant * cycle), component, credit(port));
                }
                ports(&mut queue).into_iter().enumerate().for_each(|(place, port)| often[port as usize][place] += 1);
            }
            // Six standard deviations of drawing each place by chance.
            let mean = INSTANTS as f64 / PORTS as f64;
            let bound = 6.0 * (mean * (1.0 - 1.0 / PORTS as f64)).sqrt();
            for count in often.as_flattened() {
                assert!((*count as f64 - mean).abs() < bound, "{components} components, {cycle} ps: {often:?}");
            }
        }
    }

    #[test]
    fn a_circle_without_time_keeps_its_order_however_long() {
        let mut queue = EventQueue::default();
        let now = Time::from_ps(7);
        queue.push(now, ComponentId(0), Event::Wake { token: 0 });
        for expected in 0..1000 {
            let (time, component, event) = queue.pop().expect("one is pending");
            assert!(time == now && matches!(event, Event::Wake { token } if token == expected));
            queue.push(now, ComponentId((component.0 + 1) % 3), Event::Wake { token: expected + 1 });
        }
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
        fn who_sent_first_decides_nothing_between_ports(
            sent in prop::collection::btree_set((0..4u64, 0..5u32, 0..5u16), 0..40).prop_map(Vec::from_iter),
            other in any::<prop::sample::Index>(),
            seed in any::<u64>(),
        ) {
            let in_order = |sent: &[(u64, u32, u16)]| {
                let mut queue = EventQueue::default();
                for (time, component, port) in sent {
                    queue.push(Time::from_ps(1 + time + seed % 1000), ComponentId(*component), credit(*port));
                }
                let next = std::iter::from_fn(|| queue.pop());
                next.map(|(time, component, event)| (time, component, format!("{event:?}"))).collect::<Vec<_>>()
            };
            let mut otherwise = sent.clone();
            otherwise.reverse();
            otherwise.rotate_left(if sent.is_empty() { 0 } else { other.index(sent.len()) });
            prop_assert_eq!(in_order(&sent), in_order(&otherwise));
        }

        #[test]
        fn sequences_that_begin_again_change_no_order(
            steps in prop::collection::vec((0..4u64, 0..3u32, any::<bool>(), any::<bool>()), 1..200),
            again in 1..40u32,
        ) {
            let in_order = |first: u32| {
                let mut queue = EventQueue { sequence: first, ..EventQueue::holding_credits() };
                let mut order = Vec::new();
                for (token, (later, component, is_credit, takes)) in (0..).zip(&steps) {
                    let time = Time::from_ps(queue.now().as_ps() + later);
                    let component = ComponentId(*component);
                    if *is_credit {
                        queue.return_credit(component.0 as usize, (component, PORT), CLASS, time);
                    } else {
                        queue.push(time, component, Event::Wake { token });
                    }
                    if *takes {
                        order.push(format!("{:?}", queue.pop()));
                        order.push(format!("{:?}", queue.take_credits(component.0 as usize, (component, PORT), CLASS)));
                    }
                }
                order.extend(std::iter::from_fn(|| queue.pop()).map(|event| format!("{event:?}")));
                order
            };
            prop_assert_eq!(in_order(0), in_order((1 << SEQUENCE_BITS) - again));
        }

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
