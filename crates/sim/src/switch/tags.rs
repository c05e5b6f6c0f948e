//! Renaming: the tags of the requests that left by a downstream port and have no answer yet.
//!
//! Every request is renamed, pass-through too. An NDR carries no address, the tags of two hosts may be equal, and a
//! host may use a tag again once its request is acknowledged, which under a persist buffer is before the line is
//! drained: only a tag of the switch's own leads an answer back without doubt.

use super::persist_buffer::DrainId;
use fencepost_kernel::PortId;
use fencepost_kernel::message::Tag;

/// Where an answer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requester {
    /// The component connected to an upstream port.
    Neighbour {
        /// The port the request came in by.
        port: PortId,
        /// The tag it came with.
        tag: Tag,
        /// Whether it is a read that the persist buffer of this switch counts as under way.
        is_counted: bool,
    },
    /// The persist buffer of this switch, which drains an entry.
    PersistBuffer(DrainId),
}

/// The requests without an answer, by the tag this switch gave them.
#[derive(Clone, Debug, Default)]
pub struct OutstandingRequests {
    requesters: Vec<Option<Requester>>,
    free: Vec<u32>,
}

impl OutstandingRequests {
    /// Gives a request of `requester` a tag that no other request of this switch has.
    pub fn insert(&mut self, requester: Requester) -> Tag {
        match self.free.pop() {
            Some(tag) => {
                self.requesters[tag as usize] = Some(requester);
                Tag(tag)
            }
            None => {
                self.requesters.push(Some(requester));
                Tag((self.requesters.len() - 1) as u32)
            }
        }
    }

    /// The requester that waits for the answer to `tag`.
    ///
    /// # Panics
    /// If there is no such request.
    pub fn requester(&self, tag: Tag) -> Requester {
        let requester = self.requesters.get(tag.0 as usize).copied().flatten();
        requester.unwrap_or_else(|| panic!("an answer came with {tag:?}, which names no request of this switch"))
    }

    /// The answer to `tag` has come and goes on: gives its requester. The tag is free again.
    ///
    /// # Panics
    /// If there is no such request: a device answered a request that was not made.
    pub fn remove(&mut self, tag: Tag) -> Requester {
        let requester = self.requester(tag);
        self.requesters[tag.0 as usize] = None;
        self.free.push(tag.0);
        requester
    }

    /// How many requests have no answer yet.
    pub fn len(&self) -> usize {
        self.requesters.len() - self.free.len()
    }

    /// Whether every request has been answered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Power is gone: no request is outstanding any longer.
    pub fn clear(&mut self) {
        *self = OutstandingRequests::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn neighbour(port: u16, tag: u32) -> Requester {
        Requester::Neighbour { port: PortId(port), tag: Tag(tag), is_counted: false }
    }

    #[test]
    fn equal_tags_of_two_hosts_get_different_ones_and_are_given_back() {
        let mut requests = OutstandingRequests::default();
        let tags = [requests.insert(neighbour(0, 7)), requests.insert(neighbour(1, 7))];
        assert_ne!(tags[0], tags[1]);
        assert_eq!(requests.remove(tags[1]), neighbour(1, 7));
        assert_eq!(requests.remove(tags[0]), neighbour(0, 7));
        assert!(requests.is_empty());
    }

    #[test]
    fn tags_are_used_again_only_after_their_answer() {
        let mut requests = OutstandingRequests::default();
        let first = requests.insert(neighbour(0, 1));
        let second = requests.insert(neighbour(0, 2));
        requests.remove(first);
        assert_eq!(requests.insert(neighbour(0, 3)), first);
        assert_eq!(requests.len(), 2);
        assert_eq!(requests.remove(second), neighbour(0, 2));
    }

    #[test]
    #[should_panic(expected = "names no request")]
    fn a_second_answer_to_one_request_is_a_bug() {
        let mut requests = OutstandingRequests::default();
        let tag = requests.insert(neighbour(0, 1));
        requests.remove(tag);
        requests.remove(tag);
    }
}
