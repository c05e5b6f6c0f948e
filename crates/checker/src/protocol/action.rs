//! What can happen next: the actions of hosts, channels, persist buffers, PM and the power supply.

use std::ops::{Deref, DerefMut};

use fencepost_sim::switch::persist_buffer::State;
use fencepost_sim::switch::persist_buffer::packet::{Action as Done, Output};
use fencepost_sim::switch::persist_buffer::state::{Operation, SlotIndex};

use super::model::Model;
use super::world::World;

/// One action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A host issues a write.
    IssueWrite {
        /// The host.
        host: usize,
        /// The line.
        line: u8,
        /// What of the line it carries.
        halves: u8,
    },
    /// A host issues a read.
    IssueRead {
        /// The host.
        host: usize,
        /// The line.
        line: u8,
    },
    /// A host's write gets one hop further.
    WriteHops {
        /// The host.
        host: usize,
        /// The line.
        line: u8,
    },
    /// A host's read gets one hop further.
    ReadHops {
        /// The host.
        host: usize,
    },
    /// A host's read reaches what lies below a persist buffer.
    ReadGoesDown {
        /// The host.
        host: usize,
    },
    /// PM acknowledges a host's write (without persist buffers).
    Acknowledge {
        /// The host.
        host: usize,
        /// The line.
        line: u8,
    },
    /// The controller of a persist buffer steps.
    Step {
        /// The buffer.
        buffer: usize,
        /// Whether its output has room for answers to hosts.
        has_room: bool,
        /// Whether the forecast of `pb_adaptive` makes it drain what nobody waits for. Whatever it forecasts, either
        /// this is done or nothing.
        drains_ahead: bool,
        /// The slots that change places first: how slots are numbered is not known.
        exchange: Option<(u8, u8)>,
    },
    /// A drain arrives below a persist buffer.
    TakeDrain {
        /// The buffer that sent it.
        buffer: usize,
        /// Which of those on the link.
        index: usize,
    },
    /// PM acknowledges a drain that it does not hold durably.
    AcknowledgeEarly {
        /// Which of those on the link.
        index: usize,
    },
    /// An acknowledgement arrives at a persist buffer.
    DeliverAcknowledgement {
        /// The buffer.
        buffer: usize,
        /// Which of those on the link.
        index: usize,
    },
    /// PM repeats an acknowledgement.
    Repeat {
        /// Which of those on the link.
        index: usize,
    },
    /// PM declares its failure: from now on it takes nothing, answers nothing and acknowledges nothing.
    DeclareFailure {
        /// Which drains on their way to PM it kept before, without an acknowledgement, as bits.
        kept: u8,
    },
    /// PM, which has failed, drops a drain.
    Drop {
        /// Which of those on the link.
        index: usize,
    },
    /// Power is cut, and comes back.
    PowerCut {
        /// Which drains on their way to PM arrive all the same, as bits.
        arrived: u8,
    },
}

impl Action {
    /// Whether this may never be done, so that the protocol must not need it to go on: a fault, or a drain that nobody
    /// waits for.
    pub fn is_optional(self) -> bool {
        matches!(
            self,
            Action::PowerCut { .. } | Action::DeclareFailure { .. } | Action::Step { drains_ahead: true, .. }
        )
    }
}

/// What a piece of a [`Action::Step`] did, for the story.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SubStep {
    /// What the controller was at.
    pub operation: Operation,
    /// What it did.
    pub done: Done,
    /// What it sent.
    pub output: Option<Output>,
}

/// What one action leads to.
#[derive(Clone, Debug)]
pub struct Way<const B: usize, const S: usize, const I: usize> {
    /// The action.
    pub action: Action,
    /// The next state.
    pub next: World<B, S, I>,
    /// A predicate that the action breaks.
    pub breaks: Option<&'static str>,
}

/// Next states, each made where it stays. Their room is used again when they are forgotten.
#[derive(Clone, Debug, Default)]
pub struct Ways<const B: usize, const S: usize, const I: usize> {
    /// The ways, then the draft, then what was forgotten.
    room: Vec<Way<B, S, I>>,
    length: usize,
}

impl<const B: usize, const S: usize, const I: usize> Ways<B, S, I> {
    /// A copy of `world`, to be changed into a next state and then kept. If it is not, the next one takes its place.
    pub fn draft(&mut self, world: &World<B, S, I>) -> &mut World<B, S, I> {
        if self.length == self.room.len() {
            // [`Self::keep`] says which action it is.
            self.room.push(Way { action: Action::Repeat { index: 0 }, next: *world, breaks: None });
        } else {
            self.room[self.length].next = *world;
        }
        &mut self.room[self.length].next
    }

    /// `action` leads to the draft, and breaks a predicate or none.
    pub fn keep(&mut self, action: Action, breaks: Option<&'static str>) {
        let way = &mut self.room[self.length];
        (way.action, way.breaks) = (action, breaks);
        self.length += 1;
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.length = 0;
    }
}

impl<const B: usize, const S: usize, const I: usize> Deref for Ways<B, S, I> {
    type Target = [Way<B, S, I>];

    fn deref(&self) -> &Self::Target {
        &self.room[..self.length]
    }
}

impl<const B: usize, const S: usize, const I: usize> DerefMut for Ways<B, S, I> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.room[..self.length]
    }
}

impl<const S: usize, const I: usize> Model<S, I> {
    /// Adds every state that one action leads to from `world`.
    pub fn each_next<const B: usize>(&self, world: &World<B, S, I>, ways: &mut Ways<B, S, I>) {
        for buffer in 0..B {
            self.each_step(world, buffer, ways);
        }
        self.each_of_links(world, ways);
        self.each_of_hosts(world, ways);
        self.each_failure(world, ways);
        self.each_power_cut(world, ways);
    }
}

/// The state of a buffer before its step and the slot that is freed in it, if one is about to be.
pub fn freed_by<const S: usize, const I: usize>(state: &State<S, I>) -> Option<SlotIndex> {
    match state.operation {
        Operation::Free { slot } => Some(slot),
        _ => None,
    }
}
