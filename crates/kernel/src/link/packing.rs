//! Which slots of which flits a message gets.

use super::flit::FlitFormat;
use super::packing_68::Packing68;
use super::packing_256::Packing256;
use super::schedule::{Flit, Schedule};
use crate::message::Opcode;
use crate::time::Time;

/// Where a message went.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placement {
    /// The flit that carries its header.
    pub header: Flit,
    /// When its last slot has arrived.
    pub arrival: Time,
    /// Slots that it took for itself; 0 for a header that shares a slot.
    pub slots: u64,
}

/// The packing of a link's format.
#[derive(Clone, Debug)]
pub(super) enum Packing {
    Bytes68(Packing68),
    Bytes256(Packing256),
}

impl Packing {
    pub fn new(format: FlitFormat, one_header_per_slot: bool) -> Packing {
        match format {
            FlitFormat::Bytes68 => Packing::Bytes68(Packing68::new(one_header_per_slot)),
            FlitFormat::Bytes256 => Packing::Bytes256(Packing256::new(false, one_header_per_slot)),
            FlitFormat::LatencyOptimised256 => Packing::Bytes256(Packing256::new(true, one_header_per_slot)),
        }
    }

    /// Places a message, in flits that have not gone at `now`.
    #[inline]
    pub fn place(&mut self, opcode: Opcode, now: Time, schedule: &mut Schedule) -> Placement {
        match self {
            Packing::Bytes68(packing) => packing.place(opcode, now, schedule),
            Packing::Bytes256(packing) => packing.place(opcode, now, schedule),
        }
    }

    /// From when on at most one flit is waiting to start: the time to offer the next message without queueing on the
    /// link.
    #[inline]
    pub fn ready_at(&self, now: Time) -> Time {
        let (tail, is_full) = match self {
            Packing::Bytes68(packing) => packing.tail(),
            Packing::Bytes256(packing) => packing.tail(),
        };
        if is_full && tail.start > now { tail.start } else { now }
    }

    /// Power is gone: no flit is open.
    pub fn power_fail(&mut self) {
        *self = match self {
            Packing::Bytes68(packing) => Packing::Bytes68(packing.emptied()),
            Packing::Bytes256(packing) => Packing::Bytes256(packing.emptied()),
        };
    }
}
