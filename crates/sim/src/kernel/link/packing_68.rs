//! Packing into 68-byte flits: a header slot (H) that shares its 16 bytes with the flit's header, and three generic ones (G).
//!
//! The rules (CXL 3.1, 4.2.3 slot formats, 4.2.5 packing rules; recalled):
//! - An M2S Req or RwD header fills a slot (formats H5, G4 and H4, G5). S2M headers share: in H a DRS with an NDR, two NDR, or two DRS (H3 to H5); in G
//!   a DRS with two NDR, two NDR, or three DRS (G4 to G6).
//! - A flit has at most 2 Req, 1 RwD, 2 NDR and 3 DRS headers.
//! - A line's four 16-byte pieces follow its header, in order, in the next slots that are free; slot 0 of a flit with a header takes none.
//! - Data that do not fit roll over. Up to three pieces take slots 1 to 3 of the next flit, in whose slot 0 a header may go; of more than three,
//!   four fill a flit without headers (an all-data flit).
//!
//! Simplified: a header goes into the latest slot that can take it, not into the best; CXL.cache and CXL.io are not there to share a flit.

use super::packing::{Placement, SharedSlot, data_slots};
use super::schedule::{Flit, Schedule};
use crate::message::{MessageClass, Opcode};
use crate::time::Time;

const SLOTS: u8 = 4;
/// Headers that a flit takes at most, by class.
const HEADERS_MAX: [u8; MessageClass::COUNT] = [2, 1, 2, 3];

/// The flits that are still being packed.
#[derive(Clone, Debug, Default)]
pub(super) struct Packing68 {
    /// The last flit.
    tail: Flit,
    /// Slots of headers and of data in it.
    tail_headers: u8,
    tail_data: u8,
    /// The last slot with a header, which may lie in an earlier flit; all flits after that one hold data only.
    header_flit: Flit,
    is_header_slot: bool,
    shared: SharedSlot,
    /// Headers in that flit, by class.
    headers: [u8; MessageClass::COUNT],
}

impl Packing68 {
    /// The last flit, and whether it is full.
    pub fn tail(&self) -> (&Flit, bool) {
        (&self.tail, self.tail_headers + self.tail_data == SLOTS)
    }

    #[inline]
    pub fn place(&mut self, opcode: Opcode, now: Time, schedule: &mut Schedule) -> Placement {
        let takes_slot = self.place_header(opcode.class(), now, schedule);
        let header = self.header_flit;
        let data = data_slots(opcode);
        for _ in 0..data {
            self.place_data(now, schedule);
        }
        let last = if data == 0 { &header } else { &self.tail };
        Placement { header, arrival: schedule.arrival(last, 4), slots: data + u64::from(takes_slot) }
    }

    /// Whether the header took a slot of its own.
    fn place_header(&mut self, class: MessageClass, now: Time, schedule: &mut Schedule) -> bool {
        let is_open = |flit: &Flit| flit.number > 0 && now <= flit.start;
        if !self.shared.is_empty()
            && is_open(&self.header_flit)
            && self.headers[class.index()] < HEADERS_MAX[class.index()]
            && let Some(shared) = self.shared.and(class).filter(|&shared| self.is_format(shared))
        {
            self.shared = shared;
            self.headers[class.index()] += 1;
            return false;
        }
        let has_headers = self.header_flit.number == self.tail.number;
        let has_room = self.tail_headers + self.tail_data < SLOTS
            && !(has_headers && self.headers[class.index()] == HEADERS_MAX[class.index()]);
        if !(has_room && is_open(&self.tail)) {
            self.open(now, schedule);
        }
        if self.header_flit.number != self.tail.number {
            self.headers = [0; MessageClass::COUNT];
        }
        self.header_flit = self.tail;
        self.is_header_slot = self.tail_headers == 0;
        self.tail_headers += 1;
        self.headers[class.index()] += 1;
        self.shared = SharedSlot::default().and(class).unwrap_or_default();
        true
    }

    /// Whether there is a slot format for these headers.
    fn is_format(&self, slot: SharedSlot) -> bool {
        let of = (slot.with_data, slot.no_data);
        if self.is_header_slot {
            matches!(of, (1, 1) | (0, 2) | (2, 0))
        } else {
            matches!(of, (1, 1 | 2) | (0, 2) | (2 | 3, 0))
        }
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
