//! Keys that several streams, or several hosts, read and write: who writes one now, and what has been promised of it.
//!
//! This is the client side of a key-value store, outside of the machine: whoever puts a key has it for itself until its persist is complete, then
//! hands it to whoever asked next. Handing over takes no time. And it is the oracle: a get that begins after a put was acknowledged must see that
//! put or a later one, whatever caches, buffers and switches lie between.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::kernel::ComponentId;
use crate::message::{LineAddress, Version};

/// Who waits for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// The generator.
    pub generator: ComponentId,
    /// The wake that it gets.
    pub token: u64,
}

/// All keys that were ever put, by the first line of their value.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    /// Iterated by tests only.
    keys: FxHashMap<LineAddress, Key>,
}

#[derive(Clone, Debug, Default)]
struct Key {
    /// The version of the latest put: each makes all lines of the value that version.
    put: Version,
    acknowledged: Version,
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

    /// The version that the put makes which may begin now.
    pub fn begin(&mut self, key: LineAddress) -> Version {
        let key = self.keys.get_mut(&key).expect("it was asked for");
        debug_assert!(key.is_being_put, "nobody puts a key without asking");
        key.put = Version(key.put.0 + 1);
        key.put
    }

    /// The put of `key` is acknowledged: who may put it next.
    pub fn acknowledge(&mut self, key: LineAddress) -> Option<Client> {
        let key = self.keys.get_mut(&key).expect("it was put");
        key.acknowledged = key.put;
        let next = key.waiting.pop_front();
        key.is_being_put = next.is_some();
        next
    }

    /// What a get of `key` that begins now has to see at least.
    pub fn acknowledged(&self, key: LineAddress) -> Version {
        self.keys.get(&key).map_or(Version(0), |key| key.acknowledged)
    }

    /// Every key with its acknowledged version, in no order.
    #[cfg(test)]
    pub fn promises(&self) -> impl Iterator<Item = (LineAddress, Version)> + '_ {
        self.keys.iter().map(|(line, key)| (*line, key.acknowledged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_goes_from_one_to_the_next_in_the_order_they_asked() {
        let client = |number: u32| Client { generator: ComponentId(number), token: 0 };
        let (key, mut keys) = (LineAddress(7), Keys::default());
        assert!(keys.ask(key, client(0)));
        assert_eq!((keys.begin(key), keys.acknowledged(key)), (Version(1), Version(0)));
        assert!(!keys.ask(key, client(1)) && !keys.ask(key, client(2)));
        assert!(keys.ask(LineAddress(8), client(1)), "another key is free");
        assert_eq!(keys.acknowledge(key), Some(client(1)));
        assert_eq!((keys.begin(key), keys.acknowledged(key)), (Version(2), Version(1)));
        assert_eq!(keys.acknowledge(key), Some(client(2)));
        keys.begin(key);
        assert_eq!(keys.acknowledge(key), None);
        assert!(keys.ask(key, client(0)));
    }
}
