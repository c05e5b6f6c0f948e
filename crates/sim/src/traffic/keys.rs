//! Keys that several streams, or several hosts, read and write: who writes one now, and what has been promised of it.
//!
//! This is the client side of a key-value store, outside of the machine: whoever puts a key has it for itself until its
//! persist is complete, then hands it to whoever asked next. Handing over takes no time. And it is the oracle: a get
//! that begins after a put was acknowledged must see that put or a later one, whatever caches, buffers and switches lie
//! between. The first get that does not is kept, to be told.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use fencepost_kernel::ComponentId;
use fencepost_kernel::line::{LineAddress, Version};
use fencepost_kernel::time::Time;

/// Who waits for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// The generator.
    pub generator: ComponentId,
    /// The wake that it gets.
    pub token: u64,
}

/// A stream of a generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// The generator.
    pub generator: ComponentId,
    /// The number of the stream there.
    pub stream: u32,
}

impl Default for Member {
    fn default() -> Member {
        Member { generator: ComponentId(0), stream: 0 }
    }
}

/// An acknowledged put of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Put {
    /// The version that it made of all lines of the value; 0 if there was no put.
    pub version: Version,
    /// Who put it.
    pub by: Member,
    /// When it had the key for itself.
    pub begun: Time,
    /// When its persist was complete.
    pub acknowledged: Time,
}

/// A get that saw less than had been acknowledged before it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaleRead {
    /// The first line of the value.
    pub key: LineAddress,
    /// The put that it had to see.
    pub put: Put,
    /// Who read.
    pub by: Member,
    /// When the get began.
    pub begun: Time,
    /// When it was answered.
    pub answered: Time,
    /// The version that the answer had.
    pub seen: Version,
}

/// All keys that were ever put, by the first line of their value.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    /// Iterated by tests only.
    keys: FxHashMap<LineAddress, Key>,
    /// Of each store, by its first line: the place of the key that was put last where keys are put in turn.
    newest: FxHashMap<LineAddress, u64>,
    first_stale: Option<StaleRead>,
}

#[derive(Clone, Debug, Default)]
struct Key {
    /// The version of the latest put: each makes all lines of the value that version.
    put: Version,
    /// When that put began.
    begun: Time,
    acknowledged: Put,
    is_being_put: bool,
    /// Those that ask for it, the first one first.
    waiting: VecDeque<Client>,
}

impl Keys {
    /// `client` wants to put `key`: whether it may now. If not, it is woken when it may.
    pub fn ask(&mut self, key: LineAddress, client: Client) -> bool {
        let key = self.keys.entry(key).or_default();
        if key.is_being_put {
            key.waiting.push_back(client);
            return false;
        }
        key.is_being_put = true;
        true
    }

    /// The version that the put makes which may begin `now`.
    pub fn begin(&mut self, key: LineAddress, now: Time) -> Version {
        let key = self.keys.get_mut(&key).expect("it was asked for");
        debug_assert!(key.is_being_put, "nobody puts a key without asking");
        key.put = Version(key.put.0 + 1);
        key.begun = now;
        key.put
    }

    /// The put of `key` that was `by` somebody is acknowledged `now`: who may put it next.
    pub fn acknowledge(&mut self, key: LineAddress, by: Member, now: Time) -> Option<Client> {
        let key = self.keys.get_mut(&key).expect("it was put");
        key.acknowledged = Put { version: key.put, by, begun: key.begun, acknowledged: now };
        let next = key.waiting.pop_front();
        key.is_being_put = next.is_some();
        next
    }

    /// The put that a get of `key` which begins now has to see at least.
    pub fn acknowledged(&self, key: LineAddress) -> Put {
        self.keys.get(&key).map_or(Put::default(), |key| key.acknowledged)
    }

    /// Where the next key goes in a store of `places` that begins at `store`, if keys are put in turn.
    pub fn next_place(&mut self, store: LineAddress, places: u64) -> u64 {
        let newest = self.newest.entry(store).or_default();
        *newest = (*newest + 1) % places;
        *newest
    }

    /// Where the key is that was put so many keys before the last one, in turn.
    pub fn place_of_age(&self, store: LineAddress, places: u64, age: u64) -> u64 {
        (self.newest.get(&store).copied().unwrap_or(0) + places - age) % places
    }

    /// A get was stale; the first one is kept.
    pub fn note_stale(&mut self, read: StaleRead) {
        self.first_stale.get_or_insert(read);
    }

    /// The first get that was stale.
    pub fn first_stale(&self) -> Option<&StaleRead> {
        self.first_stale.as_ref()
    }

    /// Every key with its acknowledged version, in no order.
    #[cfg(test)]
    pub fn promises(&self) -> impl Iterator<Item = (LineAddress, Version)> + '_ {
        self.keys.iter().map(|(line, key)| (*line, key.acknowledged.version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_goes_from_one_to_the_next_in_the_order_they_asked() {
        let client = |number: u32| Client { generator: ComponentId(number), token: 0 };
        let by = |number: u32| Member { generator: ComponentId(number), stream: 0 };
        let (at, version) = (Time::from_ps, |keys: &Keys, key| keys.acknowledged(key).version);
        let (key, mut keys) = (LineAddress(7), Keys::default());
        assert!(keys.ask(key, client(0)));
        assert_eq!((keys.begin(key, at(5)), version(&keys, key)), (Version(1), Version(0)));
        assert!(!keys.ask(key, client(1)) && !keys.ask(key, client(2)));
        assert!(keys.ask(LineAddress(8), client(1)), "another key is free");
        assert_eq!(keys.acknowledge(key, by(0), at(9)), Some(client(1)));
        let put = Put { version: Version(1), by: by(0), begun: at(5), acknowledged: at(9) };
        assert_eq!((keys.begin(key, at(9)), keys.acknowledged(key)), (Version(2), put));
        assert_eq!(keys.acknowledge(key, by(1), at(10)), Some(client(2)));
        keys.begin(key, at(10));
        assert_eq!(keys.acknowledge(key, by(2), at(11)), None);
        assert!(keys.ask(key, client(0)));
    }

    #[test]
    fn keys_that_are_put_in_turn_come_round() {
        let (store, mut keys) = (LineAddress(64), Keys::default());
        assert_eq!([0, 1, 2].map(|age| keys.place_of_age(store, 3, age)), [0, 2, 1], "before the first put");
        assert_eq!([(); 4].map(|()| keys.next_place(store, 3)), [1, 2, 0, 1]);
        assert_eq!([0, 1, 2].map(|age| keys.place_of_age(store, 3, age)), [1, 0, 2]);
        assert_eq!(keys.next_place(LineAddress(0), 3), 1, "each store has its own");
    }
}
