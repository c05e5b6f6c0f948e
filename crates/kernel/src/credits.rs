//! Credits on their way back, of which only those that a transmitter waits for are events.
//!
//! A credit that finds its transmitter with others in hand changes nothing but their number. So it is noted here when
//! it is given back, and the transmitter takes all that have arrived when it has used up its own. Only where none has
//! does it wait: the next one then comes as an event, in the place among all events that it had when it was given back.
//! What happens when is the same as if every credit were an event.

use std::collections::VecDeque;

use super::heap::Key;
use super::id::{ComponentId, PortId};
use crate::message::MessageClass;

/// One credit that is to become an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    /// Its place among all events.
    pub key: Key,
    /// The component that gets it, and its port.
    pub to: (ComponentId, PortId),
    /// Its class.
    pub class: MessageClass,
}

/// The credits of one class that went back through one port.
#[derive(Clone, Debug, Default)]
struct Returned {
    /// Those that have arrived.
    arrived: u16,
    /// One that arrives before that is waited for: the place of the next one that is an event already, or the end of
    /// time.
    awaited_until: Key,
    /// Those that have not arrived, the next one first.
    under_way: VecDeque<Key>,
}

impl Returned {
    /// Notes what has arrived by `present`, the place of what happens now.
    #[inline]
    fn settle(&mut self, present: Key) {
        while self.under_way.front().is_some_and(|key| *key < present) {
            self.under_way.pop_front();
            self.arrived += 1;
        }
    }

    /// Adds one that is under way.
    #[inline]
    fn add(&mut self, key: Key) {
        let is_last = self.under_way.back().is_none_or(|last| *last < key);
        self.under_way.push_back(key);
        if !is_last {
            self.under_way.make_contiguous().sort_unstable();
        }
    }
}

/// The credits that went back through one port.
#[derive(Clone, Debug)]
struct Port {
    to: (ComponentId, PortId),
    classes: [Returned; MessageClass::COUNT],
}

/// All credits that are no events, by the port that gave them back.
#[derive(Clone, Debug, Default)]
pub(super) struct Credits {
    ports: Vec<Port>,
}

impl Credits {
    /// Port number `from` gives a credit back, which arrives in its turn; gives it to the caller if it is waited for.
    /// `present` is the place of what happens now.
    #[inline]
    pub(super) fn give_back(&mut self, from: usize, credit: Due, present: Key) -> Option<Due> {
        let returned = self.returned(from, credit.to, credit.class);
        if credit.key < returned.awaited_until {
            returned.awaited_until = credit.key;
            return Some(credit);
        }
        returned.settle(present);
        returned.add(credit.key);
        None
    }

    /// Takes those of `class` that port number `from` has given back to `to` and that have arrived, and says how many
    /// they are. If there are none, the next one is to be an event: the second is that credit, if it is under way
    /// already.
    pub(super) fn take(
        &mut self,
        from: usize,
        to: (ComponentId, PortId),
        class: MessageClass,
        present: Key,
    ) -> (u16, Option<Due>) {
        let returned = self.returned(from, to, class);
        returned.settle(present);
        let arrived = std::mem::take(&mut returned.arrived);
        if arrived > 0 {
            returned.awaited_until = 0;
            return (arrived, None);
        }
        // An error on the wire delays credits, so that one which is given back later may come before it.
        let next = returned.under_way.pop_front();
        returned.awaited_until = next.unwrap_or(Key::MAX);
        (0, next.map(|key| Due { key, to, class }))
    }

    /// Takes all; `now` is the place of those that have arrived.
    pub(super) fn take_all(&mut self, now: Key) -> Vec<Due> {
        let mut all = Vec::new();
        for Port { to, classes } in &mut self.ports {
            for (class, returned) in MessageClass::ALL.into_iter().zip(classes) {
                let arrived = std::iter::repeat_n(now, usize::from(std::mem::take(&mut returned.arrived)));
                let keys = arrived.chain(returned.under_way.drain(..).map(|key| key.max(now)));
                all.extend(keys.map(|key| Due { key, to: *to, class }));
            }
        }
        all
    }

    /// The place of the one that arrives next, or `now` if one has arrived; none if there are none.
    pub(super) fn next(&self, now: Key) -> Option<Key> {
        let classes = self.ports.iter().flat_map(|port| &port.classes);
        let keys = classes.filter_map(|returned| match returned.arrived {
            0 => returned.under_way.front().map(|key| now.max(*key)),
            _ => Some(now),
        });
        keys.min()
    }

    /// The places of all, to be replaced by others in the same order.
    pub(super) fn keys_mut(&mut self) -> impl Iterator<Item = &mut Key> {
        let classes = self.ports.iter_mut().flat_map(|port| &mut port.classes);
        classes.flat_map(|returned| {
            let awaited = Some(&mut returned.awaited_until).filter(|key| ![0, Key::MAX].contains(*key));
            awaited.into_iter().chain(&mut returned.under_way)
        })
    }

    #[inline]
    fn returned(&mut self, from: usize, to: (ComponentId, PortId), class: MessageClass) -> &mut Returned {
        if self.ports.get(from).is_none_or(|port| port.to != to) {
            self.make_place(from, to);
        }
        &mut self.ports[from].classes[class.index()]
    }

    #[cold]
    #[inline(never)]
    fn make_place(&mut self, from: usize, to: (ComponentId, PortId)) {
        if from >= self.ports.len() {
            let unused = Port { to: Default::default(), classes: Default::default() };
            self.ports.resize(from + 1, unused);
        }
        self.ports[from].to = to;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLASS: MessageClass = MessageClass::M2sReq;
    const TO: (ComponentId, PortId) = (ComponentId(3), PortId(1));

    fn give_back(credits: &mut Credits, from: usize, key: Key, present: Key) -> Option<Key> {
        credits.give_back(from, Due { key, to: TO, class: CLASS }, present).map(|due| due.key)
    }

    fn take(credits: &mut Credits, from: usize, present: Key) -> (u16, Option<Key>) {
        let (arrived, next) = credits.take(from, TO, CLASS, present);
        (arrived, next.map(|due| due.key))
    }

    #[test]
    fn what_has_arrived_is_taken_at_once_and_the_next_one_is_an_event() {
        let mut credits = Credits::default();
        for key in [10, 20, 30, 40] {
            assert_eq!(give_back(&mut credits, 7, key, 5), None);
        }
        assert_eq!(take(&mut credits, 7, 25), (2, None));
        assert_eq!(take(&mut credits, 7, 26), (0, Some(30)), "on its way");
        assert_eq!(take(&mut credits, 7, 35), (0, Some(40)));
        assert_eq!(take(&mut credits, 7, 45), (0, None), "none is on its way");
        assert_eq!(give_back(&mut credits, 7, 60, 50), Some(60), "it is waited for");
        assert_eq!(give_back(&mut credits, 7, 70, 55), None, "one is enough");
    }

    #[test]
    fn one_that_overtakes_the_awaited_one_is_awaited_too() {
        let mut credits = Credits::default();
        give_back(&mut credits, 0, 50, 5);
        assert_eq!(take(&mut credits, 0, 10), (0, Some(50)));
        assert_eq!(give_back(&mut credits, 0, 60, 11), None);
        assert_eq!(give_back(&mut credits, 0, 40, 12), Some(40), "before the one that is an event already");
        assert_eq!(give_back(&mut credits, 0, 45, 13), None, "nobody waits behind 40");
        assert_eq!(take(&mut credits, 0, 48), (1, None));
        assert_eq!(take(&mut credits, 0, 55), (0, Some(60)));
    }

    #[test]
    fn who_has_never_had_one_back_waits_for_the_first() {
        let mut credits = Credits::default();
        assert_eq!(take(&mut credits, 2, 5), (0, None));
        assert_eq!(give_back(&mut credits, 1, 10, 5), None, "of another port");
        assert_eq!(give_back(&mut credits, 2, 10, 5), Some(10));
    }

    #[test]
    fn one_that_arrives_earlier_than_those_before_it_is_next() {
        let mut credits = Credits::default();
        for key in [20, 30, 10] {
            give_back(&mut credits, 0, key, 5);
        }
        assert_eq!(take(&mut credits, 0, 15), (1, None));
        assert_eq!(take(&mut credits, 0, 15), (0, Some(20)));
    }

    #[test]
    fn all_are_taken_with_those_that_have_arrived_now() {
        let mut credits = Credits::default();
        give_back(&mut credits, 0, 10, 5);
        give_back(&mut credits, 0, 20, 15);
        give_back(&mut credits, 4, 12, 11);
        assert_eq!(credits.next(16), Some(16));
        let keys: Vec<Key> = credits.take_all(16).iter().map(|due| due.key).collect();
        assert_eq!(keys, [16, 20, 16]);
        assert_eq!((credits.next(16), credits.take_all(16)), (None, vec![]));
    }
}
