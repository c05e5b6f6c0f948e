//! What can happen next: the actions of hosts, channels, persist buffers, PM and the power supply.

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
        /// Whether the forecast of `pb_adaptive` makes it drain what nobody waits for. Whatever it forecasts, either this is done or nothing.
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
    /// Whether this may never be done, so that the protocol must not need it to go on: a fault, or a drain that nobody waits for.
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

/// Whoever wants to know every next state.
pub trait Sink<const B: usize, const S: usize, const I: usize> {
    /// `action` leads to `next`, which is the sink's to change; a predicate that it breaks is `broken`.
    fn next(&mut self, action: Action, next: &mut World<B, S, I>, broken: Option<&'static str>);
}

impl<const B: usize, const S: usize, const I: usize, F> Sink<B, S, I> for F
where
    F: FnMut(Action, &mut World<B, S, I>, Option<&'static str>),
{
    fn next(&mut self, action: Action, next: &mut World<B, S, I>, broken: Option<&'static str>) {
        self(action, next, broken);
    }
}

impl<const S: usize, const I: usize> Model<S, I> {
    /// Gives every state that one action leads to from `world`.
    pub fn each_next<const B: usize>(&self, world: &World<B, S, I>, sink: &mut impl Sink<B, S, I>) {
        for buffer in 0..B {
            self.each_step(world, buffer, sink);
        }
        self.each_of_links(world, sink);
        self.each_of_hosts(world, sink);
        self.each_failure(world, sink);
        self.each_power_cut(world, sink);
    }
}

/// The state of a buffer before its step and the slot that is freed in it, if one is about to be.
pub fn freed_by<const S: usize, const I: usize>(state: &State<S, I>) -> Option<SlotIndex> {
    match state.operation {
        Operation::Free { slot } => Some(slot),
        _ => None,
    }
}
