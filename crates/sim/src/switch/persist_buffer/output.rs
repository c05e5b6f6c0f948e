//! The controller's output (PO): one queue for each message class, from which switch allocation takes as from an
//! ingress buffer.

use std::collections::VecDeque;

use super::packet::OutputRoom;
use crate::switch::tags::Requester;
use fencepost_kernel::PortId;
use fencepost_kernel::message::{Message, MessageClass};

/// A message on its way out of the persist buffer.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// The message.
    pub message: Message,
    /// If it is an answer, the port to answer by.
    pub answers: Option<PortId>,
    /// If it is a request, the requester that gets its answer.
    pub requester: Option<Requester>,
}

/// What the controller has sent and the allocator not taken yet.
#[derive(Clone, Debug)]
pub struct OutputQueues {
    queues: [VecDeque<Outgoing>; MessageClass::COUNT],
    places: usize,
}

impl OutputQueues {
    /// Empty queues of `places` places each.
    pub fn new(places: u16) -> OutputQueues {
        OutputQueues { queues: Default::default(), places: usize::from(places) }
    }

    /// Which queues have room.
    pub fn room(&self) -> OutputRoom {
        OutputRoom(self.queues.each_ref().map(|queue| queue.len() < self.places))
    }

    /// Puts a message at the end of its class's queue. Tells whether it is the head.
    pub fn push(&mut self, outgoing: Outgoing) -> bool {
        let queue = &mut self.queues[outgoing.message.class().index()];
        debug_assert!(queue.len() < self.places, "the controller waits for room before it starts");
        queue.push_back(outgoing);
        queue.len() == 1
    }

    /// The next message of `class`.
    pub fn head(&self, class: MessageClass) -> Option<&Outgoing> {
        self.queues[class.index()].front()
    }

    /// Takes the next message of `class`.
    pub fn pop(&mut self, class: MessageClass) -> Outgoing {
        self.queues[class.index()].pop_front().expect("only a head that is there is taken")
    }

    /// How many messages of `class` wait.
    pub fn len(&self, class: MessageClass) -> usize {
        self.queues[class.index()].len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.queues.iter().all(VecDeque::is_empty)
    }

    /// Drops everything: what a power cut does.
    pub fn clear(&mut self) {
        self.queues.iter_mut().for_each(VecDeque::clear);
    }
}
