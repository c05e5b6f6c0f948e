//! Packing into 68-byte flits: a header slot (H) that shares its 16 bytes with the flit's header, and three generic
//! ones (G).
//!
//! The rules (CXL 3.1, 4.2.3 slot formats, 4.2.5 packing rules; recalled):
//! - A header fills a slot or shares it with others, as the slot formats of the protocols say, and a flit has so many
//!   headers of a class at most (`message/mem.rs` has those of CXL.mem).
//! - A message's 16-byte pieces of data follow its header, in order, in the next slots that are free; slot 0 of a flit
//!   with a header takes none.
//! - Data that do not fit roll over. Up to three pieces take slots 1 to 3 of the next flit, in whose slot 0 a header
//!   may go; of more than three, four fill a flit without headers (an all-data flit).
//!
//! Simplified: a header goes into the latest slot that can take it, not into the best; CXL.io is not there to share a
//! flit.

use super::headers::{Headers, MAX_IN_FLIT_68, may_share};
use super::packing::Placement;
use super::schedule::{Flit, Schedule};
use crate::message::{HeaderSlot, MessageClass, Opcode};
use crate::time::Time;

const SLOTS: u8 = 4;

/// The flits that are still being packed.
#[derive(Clone, Debug, Default)]
pub(super) struct Packing68 {
    one_header_per_slot: bool,
    /// The last flit.
    tail: Flit,
    /// Slots of headers and of data in it.
    tail_headers: u8,
    tail_data: u8,
    /// The last slot with a header, which may lie in an earlier flit; all flits after that one hold data only.
    header_flit: Flit,
    is_header_slot: bool,
    /// The headers in that slot; none if they share it with no others.
    shared: Headers,
    /// The headers in that flit.
    headers: Headers,
}

impl Packing68 {
    pub fn new(one_header_per_slot: bool) -> Packing68 {
        Packing68 { one_header_per_slot, ..Packing68::default() }
    }

    /// The same with no flit open.
    pub fn emptied(&self) -> Packing68 {
        Packing68::new(self.one_header_per_slot)
    }

    /// The last flit, and whether it is full.
    pub fn tail(&self) -> (&Flit, bool) {
        (&self.tail, self.tail_headers + self.tail_data == SLOTS)
    }

    #[inline]
    pub fn place(&mut self, opcode: Opcode, now: Time, schedule: &mut Schedule) -> Placement {
        let takes_slot = self.place_header(opcode.class(), now, schedule);
        let header = self.header_flit;
        let data = opcode.data_slots();
        for _ in 0..data {
            self.place_data(now, schedule);
        }
        let last = if data == 0 { &header } else { &self.tail };
        Placement { header, arrival: schedule.arrival(last, 4), slots: data + u64::from(takes_slot) }
    }

    /// Whether the header took a slot of its own.
    fn place_header(&mut self, class: MessageClass, now: Time, schedule: &mut Schedule) -> bool {
        let is_open = |flit: &Flit| flit.number > 0 && now <= flit.start;
        let headers = self.headers.and(class);
        let shared = self.shared.and(class);
        let slot = if self.is_header_slot { HeaderSlot::H68 } else { HeaderSlot::G68 };
        if self.shared != Headers::NONE
            && is_open(&self.header_flit)
            && headers.are_within(MAX_IN_FLIT_68)
            && shared.fit(slot, class)
        {
            self.shared = shared;
            self.headers = headers;
            return false;
        }
        let is_first_header = self.header_flit.number != self.tail.number;
        let has_room =
            self.tail_headers + self.tail_data < SLOTS && (is_first_header || headers.are_within(MAX_IN_FLIT_68));
        if !(has_room && is_open(&self.tail)) {
            self.open(now, schedule);
        }
        if self.header_flit.number != self.tail.number {
            self.headers = Headers::NONE;
        }
        self.header_flit = self.tail;
        self.is_header_slot = self.tail_headers == 0;
        self.tail_headers += 1;
        self.headers = self.headers.and(class);
        self.shared =
            if may_share(class) && !self.one_header_per_slot { Headers::NONE.and(class) } else { Headers::NONE };
        true
    }

    fn place_data(&mut self, now: Time, schedule: &mut Schedule) {
        // Slot 0 takes data only in a flit without headers, and then four pieces fill it.
        if self.tail_headers + self.tail_data == SLOTS {
            self.open(now, schedule);
        }
        self.tail_data += 1;
    }

    fn open(&mut self, now: Time, schedule: &mut Schedule) {
        self.tail = schedule.next(now);
        self.tail_headers = 0;
        self.tail_data = 0;
    }
}
