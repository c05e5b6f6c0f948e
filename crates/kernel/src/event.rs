//! What the queue delivers.

use crate::id::PortId;
use crate::message::{Message, MessageClass};

/// What can happen to a component.
#[derive(Clone, Debug)]
pub enum Event {
    /// A message has fully arrived at `port` and now occupies one buffer place of its class there.
    Arrival {
        /// The receiver's port.
        port: PortId,
        /// What arrived.
        message: Message,
    },
    /// The neighbour at `port` has emptied a buffer place: one more message of `class` may be sent there. A credit
    /// that no transmitter waits for may be counted without an event: see
    /// [`Context::take_credits`](crate::Context::take_credits). So it must change nothing but the number of credits.
    Credit {
        /// The port whose transmitter gains the credit.
        port: PortId,
        /// The message class of the freed place.
        class: MessageClass,
    },
    /// A time the component asked for with [`Context::wake_at`](crate::Context::wake_at).
    Wake {
        /// What the component gave when it asked; only it knows the meaning.
        token: u64,
    },
}
