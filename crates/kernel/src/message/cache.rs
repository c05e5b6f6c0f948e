//! CXL.cache: a device caches a host's memory (CXL 3.1 specification, chapter 3.2).
//!
//! Requests, responses and data have a channel each in both directions (D2H, H2D). No order holds between channels, but
//! for one rule: a snoop does not pass an earlier response for the same line. What the messages mean is in
//! `device::type2::messages` of the simulator; here they are what links carry. A message names its line; no switch
//! carries them.

use super::{
    ClassDescription, CreditPool, Direction, HeaderSlot, HeadersMax, MessageClass, OpcodeDescription, Route, SlotFormat,
};
use Direction::{Downstream, Upstream};
use HeaderSlot::{G68, G256, H68, H256, Hs256};
use MessageClass::{D2hData, D2hReq, D2hRsp, H2dData, H2dReq, H2dRsp};

/// The classes of CXL.cache.
pub const CLASSES: [MessageClass; 6] = [D2hReq, D2hRsp, D2hData, H2dReq, H2dRsp, H2dData];

/// Slots of a line.
const LINE_SLOTS: u8 = 4;

const fn class(
    name: &'static str,
    direction: Direction,
    data_slots: u8,
    [in_flit_68, in_group_256]: [u8; 2],
    [key, meaning]: [&'static str; 2],
) -> ClassDescription {
    ClassDescription {
        name,
        direction,
        route: Route::ByLine,
        data_slots,
        headers_max: HeadersMax { in_flit_68, in_group_256 },
        credits: CreditPool { key, meaning, is_on_every_link: false },
    }
}

pub(super) const D2H_REQ: ClassDescription = class(
    "d2h_req",
    Upstream,
    0,
    [4, 4],
    ["d2h_request_credits", "Buffer places for D2H requests of CXL.cache; a link without them carries no CXL.cache."],
);
pub(super) const D2H_RSP: ClassDescription = class(
    "d2h_rsp",
    Upstream,
    0,
    [2, 6],
    ["d2h_response_credits", "Buffer places for D2H responses: answers to snoops."],
);
pub(super) const D2H_DATA: ClassDescription = class(
    "d2h_data",
    Upstream,
    LINE_SLOTS,
    [4, 4],
    ["d2h_data_credits", "Buffer places for D2H data: lines that were snooped or pulled."],
);
pub(super) const H2D_REQ: ClassDescription =
    class("h2d_req", Downstream, 0, [2, 2], ["h2d_request_credits", "Buffer places for H2D requests: snoops."]);
pub(super) const H2D_RSP: ClassDescription = class(
    "h2d_rsp",
    Downstream,
    0,
    [4, 6],
    ["h2d_response_credits", "Buffer places for H2D responses: GO, and pulls of data."],
);
pub(super) const H2D_DATA: ClassDescription = class(
    "h2d_data",
    Downstream,
    LINE_SLOTS,
    [4, 4],
    ["h2d_data_credits", "Buffer places for H2D data: lines that were read."],
);

/// 68 bytes: formats H0 to H3 and G1 to G3 of both directions (CXL 3.1, 4.2.3), those of 256 bytes alike (4.3.3);
/// recalled.
pub(super) const SLOT_FORMATS: &[SlotFormat] = &[
    SlotFormat { slots: &[H68, H256], headers: &[(D2hData, 1), (D2hRsp, 2)] },
    SlotFormat { slots: &[H68, H256], headers: &[(D2hReq, 1), (D2hData, 1)] },
    SlotFormat { slots: &[H68, H256], headers: &[(D2hData, 4), (D2hRsp, 1)] },
    SlotFormat { slots: &[G68, G256], headers: &[(D2hReq, 1), (D2hRsp, 2)] },
    SlotFormat { slots: &[G68, G256], headers: &[(D2hReq, 1), (D2hData, 1), (D2hRsp, 1)] },
    SlotFormat { slots: &[G68, G256], headers: &[(D2hData, 4)] },
    SlotFormat { slots: &[Hs256], headers: &[(D2hRsp, 2)] },
    SlotFormat { slots: &[H68, H256], headers: &[(H2dReq, 1), (H2dRsp, 1)] },
    SlotFormat { slots: &[H68, H256], headers: &[(H2dData, 1), (H2dRsp, 2)] },
    SlotFormat { slots: &[H68, H256], headers: &[(H2dReq, 1), (H2dData, 1)] },
    SlotFormat { slots: &[H68, H256], headers: &[(H2dData, 4)] },
    SlotFormat { slots: &[G68, G256], headers: &[(H2dRsp, 4)] },
    SlotFormat { slots: &[G68, G256], headers: &[(H2dReq, 1), (H2dData, 1), (H2dRsp, 1)] },
    SlotFormat { slots: &[G68, G256], headers: &[(H2dData, 4), (H2dRsp, 1)] },
    SlotFormat { slots: &[Hs256], headers: &[(H2dRsp, 1)] },
];

const fn of(class: MessageClass) -> OpcodeDescription {
    OpcodeDescription { class, byte_enable_slots: 0 }
}

pub(super) const REQUEST: OpcodeDescription = of(D2hReq);
pub(super) const SNOOP_RESPONSE: OpcodeDescription = of(D2hRsp);
pub(super) const DATA_UP: OpcodeDescription = of(D2hData);
pub(super) const SNOOP: OpcodeDescription = of(H2dReq);
pub(super) const RESPONSE: OpcodeDescription = of(H2dRsp);
pub(super) const DATA_DOWN: OpcodeDescription = of(H2dData);
