//! A memory that answers every request after a fixed time, and keeps a list of what it was sent.

use std::collections::HashMap;

use fencepost_kernel::line::{ByteMask, LineAddress, Version};
use fencepost_kernel::message::{Cause, Message, Opcode, Stage};
use fencepost_kernel::time::Duration;
use fencepost_kernel::{Context, Event, PortId};

/// A message that the host sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The cycle in which it left the last level.
    pub cycle: u64,
    /// What it asks for.
    pub opcode: Opcode,
    /// Why.
    pub cause: Cause,
    /// The line.
    pub line: LineAddress,
    /// What a write writes.
    pub version: Version,
    /// The bytes that a write carries.
    pub mask: ByteMask,
}

/// The memory.
#[derive(Clone)]
pub struct Memory {
    period: Duration,
    /// Cycles from a read to its data.
    pub read: u64,
    /// Cycles from a write to its completion.
    pub write: u64,
    /// Lines that take other times, in cycles.
    pub slow: HashMap<LineAddress, u64>,
    /// What the lines hold.
    pub versions: HashMap<LineAddress, Version>,
    /// Everything that came, in order.
    pub sent: Vec<Sent>,
}

impl Memory {
    /// An empty memory of a host with that clock.
    pub fn new(period: Duration) -> Memory {
        Memory {
            period,
            read: super::READ,
            write: super::WRITE,
            slow: HashMap::new(),
            versions: HashMap::new(),
            sent: Vec::new(),
        }
    }

    /// Takes a request in and sends its answer on the way.
    ///
    /// # Panics
    /// If a write brings an older version than the line holds: the host has sent its writes in the wrong order.
    pub fn handle(&mut self, event: Event, context: &mut Context<'_>) {
        let Event::Arrival { message, .. } = event else { panic!("memory is sent messages only, not {event:?}") };
        let Message { opcode, cause, line, version, mask, .. } = message;
        let cycle = context.now().as_ps() / self.period.as_ps();
        self.sent.push(Sent { cycle, opcode, cause, line, version, mask });
        let held = self.versions.entry(line).or_default();
        let usual = if message.is_write() {
            assert!(version >= *held, "version {version:?} of {line:?} comes after {held:?}");
            *held = version;
            self.write
        } else {
            self.read
        };
        let cycles = self.slow.get(&line).copied().unwrap_or(usual);
        let time = context.now() + self.period * cycles;
        let mut answer = message.answer(*held);
        answer.stack.charge(Stage::Media, time);
        context.send(PortId(0), answer, time);
    }
}
