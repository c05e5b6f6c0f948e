//! Packing into 256-byte flits: slot 0 (H, 14 bytes) for a header, 14 generic ones (G, 16 bytes); in the
//! latency-optimised variant slot 8 is a short one (HS, 10 bytes) for a header.
//!
//! The rules (CXL 3.1, 4.3.2 to 4.3.4, with the tables of slot formats and of messages per 128-byte group; recalled):
//! - A header fills a slot or shares it with others, as the slot formats of the protocols say, and the slots 0 to 7,
//!   and those from 8 on, take so many headers of a class at most (`message/mem.rs` has those of CXL.mem).
//! - Data take G slots only, in the order of their headers and without gaps. H and HS are packed whether data roll over
//!   or not.
//! - Of the latency-optimised variant, slots 0 to 6 arrive with the first half. (Slot 7 lies across its CRC.)
//!
//! A flit is packed 64 bytes at a time, like a 68-byte flit: a message may go into a later quarter of one that has
//! started.
//!
//! Simplified: a header goes into the first slot that can take it, not into the best; the variant's first half never
//! waits for the FEC.

use super::headers::{Headers, MAX_IN_GROUP_256, may_share, takes};
use super::packing::Placement;
use super::schedule::{Flit, Schedule};
use crate::message::{HeaderSlot, MessageClass, Opcode};
use crate::time::Time;

const SLOTS: u8 = 15;
const SLOTS_PER_QUARTER: u8 = 4;
/// The first slot of the second 128-byte group; HS in the latency-optimised variant.
const SECOND_GROUP: u8 = 8;

/// The flits that are still being packed.
#[derive(Clone, Debug)]
pub(super) struct Packing256 {
    one_header_per_slot: bool,
    is_latency_optimised: bool,
    /// The last flit.
    tail: Flit,
    /// Its next G slot.
    next: u8,
    has_h: bool,
    has_hs: bool,
    /// The last slot with a header, which may lie in an earlier flit; all flits after that one hold data only.
    header_flit: Flit,
    header_slot: u8,
    /// The headers in that slot; none if they share it with no others.
    shared: Headers,
    /// The headers in the two groups of that flit.
    headers: [Headers; 2],
}

impl Packing256 {
    pub fn new(is_latency_optimised: bool, one_header_per_slot: bool) -> Packing256 {
        Packing256 {
            one_header_per_slot,
            is_latency_optimised,
            tail: Flit::default(),
            next: SLOTS,
            has_h: true,
            has_hs: true,
            header_flit: Flit::default(),
            header_slot: 0,
            shared: Headers::NONE,
            headers: Default::default(),
        }
    }

    /// The same with no flit open.
    pub fn emptied(&self) -> Packing256 {
        Packing256::new(self.is_latency_optimised, self.one_header_per_slot)
    }

    /// The last flit, and whether it is full.
    pub fn tail(&self) -> (&Flit, bool) {
        (&self.tail, self.next >= SLOTS)
    }

    #[inline]
    pub fn place(&mut self, opcode: Opcode, now: Time, schedule: &mut Schedule) -> Placement {
        let takes_slot = self.place_header(opcode.class(), now, schedule);
        let header = self.header_flit;
        let data = opcode.data_slots();
        let (mut last, mut slot) = (header, self.header_slot);
        for _ in 0..data {
            slot = self.place_data(now, schedule);
            last = self.tail;
        }
        let is_early = self.is_latency_optimised && slot < SECOND_GROUP - 1;
        let arrival = schedule.arrival(&last, if is_early { 2 } else { 4 });
        Placement { header, arrival, slots: data + u64::from(takes_slot) }
    }

    /// Whether the header took a slot of its own.
    fn place_header(&mut self, class: MessageClass, now: Time, schedule: &mut Schedule) -> bool {
        let shared = self.shared.and(class);
        if self.shared != Headers::NONE
            && is_open(&self.header_flit, self.header_slot, now, schedule)
            && self.has_room(group(self.header_slot), class)
            && shared.fit(self.kind(self.header_slot), class)
        {
            self.shared = shared;
            self.add_header(group(self.header_slot), class);
            return false;
        }
        let slot = self.free_slot(class, now, schedule).unwrap_or_else(|| {
            self.open(now, schedule);
            0
        });
        match slot {
            0 => self.has_h = true,
            SECOND_GROUP if self.is_latency_optimised => self.has_hs = true,
            _ => self.next = slot + 1,
        }
        if self.header_flit.number != self.tail.number {
            self.headers = Default::default();
        }
        self.header_flit = self.tail;
        self.header_slot = slot;
        self.add_header(group(slot), class);
        self.shared =
            if may_share(class) && !self.one_header_per_slot { Headers::NONE.and(class) } else { Headers::NONE };
        true
    }

    /// A slot of the last flit that can take a header of `class`.
    fn free_slot(&self, class: MessageClass, now: Time, schedule: &Schedule) -> Option<u8> {
        let has_room = |slot| self.header_flit.number != self.tail.number || self.has_room(group(slot), class);
        let quarter = schedule.open_quarter(&self.tail, now) as u8;
        if quarter == 0 && !self.has_h && has_room(0) {
            return Some(0);
        }
        // Headers and data stay in order: what comes next goes behind it.
        let may_take_hs = takes(HeaderSlot::Hs256, class) && self.next > SECOND_GROUP;
        if !self.has_hs && may_take_hs && quarter * SLOTS_PER_QUARTER <= SECOND_GROUP && has_room(SECOND_GROUP) {
            return Some(SECOND_GROUP);
        }
        let first = self.next.max(quarter * SLOTS_PER_QUARTER);
        let in_group = |slot| self.skip_hs(slot);
        [in_group(first), in_group(first.max(SECOND_GROUP))].into_iter().find(|&slot| slot < SLOTS && has_room(slot))
    }

    fn has_room(&self, group: usize, class: MessageClass) -> bool {
        self.headers[group].and(class).are_within(MAX_IN_GROUP_256)
    }

    fn add_header(&mut self, group: usize, class: MessageClass) {
        self.headers[group] = self.headers[group].and(class);
    }

    fn skip_hs(&self, slot: u8) -> u8 {
        if self.is_latency_optimised && slot == SECOND_GROUP { slot + 1 } else { slot }
    }

    fn kind(&self, slot: u8) -> HeaderSlot {
        match slot {
            0 => HeaderSlot::H256,
            SECOND_GROUP if self.is_latency_optimised => HeaderSlot::Hs256,
            _ => HeaderSlot::G256,
        }
    }

    /// The slot that takes the next piece of data.
    fn place_data(&mut self, now: Time, schedule: &mut Schedule) -> u8 {
        let mut slot = self.skip_hs(self.next);
        if slot >= SLOTS {
            self.open(now, schedule);
            slot = self.next;
        }
        self.next = slot + 1;
        slot
    }

    fn open(&mut self, now: Time, schedule: &mut Schedule) {
        self.tail = schedule.next(now);
        self.next = 1;
        self.has_h = false;
        self.has_hs = !self.is_latency_optimised;
    }
}

fn group(slot: u8) -> usize {
    usize::from(slot >= SECOND_GROUP)
}

/// Whether `slot` of `flit` has not gone at `now`.
fn is_open(flit: &Flit, slot: u8, now: Time, schedule: &Schedule) -> bool {
    schedule.open_quarter(flit, now) as u8 * SLOTS_PER_QUARTER <= slot
}
