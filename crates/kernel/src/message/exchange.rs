//! A protocol for tests: devices fetch lines of a host's memory, and swap halves of them.
//!
//! It is what CXL.mem is not: its requests flow from devices to the host, one of them carries half a line, its answers
//! flow down, and its headers share slots with those of CXL.mem.

use super::{
    Cause, ClassDescription, CreditPool, Direction, HeaderSlot, HeadersMax, Message, MessageClass, Opcode,
    OpcodeDescription, Route, SlotFormat, Tag,
};
use crate::line::{LineAddress, Version};
use crate::time::Time;
use HeaderSlot::{G68, G256, H68, H256, Hs256};
use MessageClass::{ExchangeDrs, ExchangeReq, ExchangeRwd, M2sReq, S2mNdr};

pub(super) const REQ: ClassDescription = ClassDescription {
    name: "exchange_req",
    direction: Direction::Upstream,
    route: Route::ByLine,
    data_slots: 0,
    headers_max: HeadersMax { in_flit_68: 4, in_group_256: 7 },
    credits: CreditPool {
        key: "exchange_request_credits",
        meaning: "Buffer places for fetches.",
        is_on_every_link: false,
    },
};

pub(super) const RWD: ClassDescription = ClassDescription {
    name: "exchange_rwd",
    direction: Direction::Upstream,
    route: Route::ByLine,
    data_slots: 2,
    headers_max: HeadersMax { in_flit_68: 2, in_group_256: 3 },
    credits: CreditPool {
        key: "exchange_request_with_data_credits",
        meaning: "Buffer places for swaps.",
        is_on_every_link: false,
    },
};

pub(super) const DRS: ClassDescription = ClassDescription {
    name: "exchange_drs",
    direction: Direction::Downstream,
    route: Route::ByTag,
    data_slots: 4,
    headers_max: HeadersMax { in_flit_68: 1, in_group_256: 2 },
    credits: CreditPool {
        key: "exchange_data_response_credits",
        meaning: "Buffer places for what was fetched.",
        is_on_every_link: false,
    },
};

pub(super) const SLOT_FORMATS: &[SlotFormat] = &[
    SlotFormat { slots: &[H68, H256, Hs256], headers: &[(ExchangeReq, 1), (S2mNdr, 1)] },
    SlotFormat { slots: &[G68, G256], headers: &[(ExchangeReq, 3)] },
    SlotFormat { slots: &[H68, G68, H256, G256], headers: &[(ExchangeRwd, 1)] },
    SlotFormat { slots: &[H68, H256], headers: &[(ExchangeDrs, 1)] },
    SlotFormat { slots: &[G68, G256], headers: &[(ExchangeDrs, 1), (M2sReq, 1)] },
];

pub(super) const FETCH: OpcodeDescription = OpcodeDescription { class: ExchangeReq, byte_enable_slots: 0 };
pub(super) const SWAP: OpcodeDescription = OpcodeDescription { class: ExchangeRwd, byte_enable_slots: 0 };
pub(super) const FETCHED: OpcodeDescription = OpcodeDescription { class: ExchangeDrs, byte_enable_slots: 0 };

/// A fetch of `line`.
pub fn fetch(line: LineAddress, tag: Tag, now: Time) -> Message {
    Message { opcode: Opcode::Fetch, ..Message::read(line, tag, Cause::DemandRead, now) }
}

/// A swap of a half of `line`, which makes it `version`.
pub fn swap(line: LineAddress, tag: Tag, version: Version, now: Time) -> Message {
    Message { opcode: Opcode::Swap, version, ..fetch(line, tag, now) }
}

/// The answer to `request`.
pub fn fetched(request: Message, version: Version) -> Message {
    assert!(matches!(request.opcode, Opcode::Fetch | Opcode::Swap), "{:?} has no answer", request.opcode);
    Message { opcode: Opcode::Fetched, version, ..request }
}
