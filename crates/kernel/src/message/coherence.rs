//! Coherence between the sockets of a host: caching agents ask the home agent of a line, and it snoops others.
//!
//! The protocol is directory-based MESI as Intel's UPI and AMD's Infinity Fabric have it, without their forwarding
//! states. Every request is answered once, by data, a grant or a completion; a grant of a copy is acknowledged, and its
//! line stays blocked at the home agent until then. So a snoop never overtakes what it is about.

use super::{
    ClassDescription, CreditPool, Direction, HeaderSlot, HeadersMax, MessageClass, OpcodeDescription, Route, SlotFormat,
};
use HeaderSlot::{G68, G256, H68, H256};
use MessageClass::{AgentData, AgentReq, AgentRsp, AgentSnp, AgentWb};

/// The classes of the protocol. Requests wait for snoops, these for responses, and those for nothing: each has buffers
/// of its own, so that none waits behind what it has to wait for.
pub const CLASSES: [MessageClass; 5] = [AgentReq, AgentWb, AgentSnp, AgentRsp, AgentData];

/// Slots of a line.
const LINE_SLOTS: u8 = 4;

/// A class of the socket link; a header takes a slot of its own.
const fn class(name: &'static str, data_slots: u8) -> ClassDescription {
    ClassDescription {
        name,
        direction: Direction::Downstream,
        route: Route::ByLine,
        data_slots,
        headers_max: HeadersMax { in_flit_68: 4, in_group_256: 7 },
        credits: CreditPool { key: "", meaning: "", is_on_every_link: false },
    }
}

pub(super) const REQ: ClassDescription = class("agent_req", 0);
pub(super) const WB: ClassDescription = class("agent_wb", LINE_SLOTS);
pub(super) const SNP: ClassDescription = class("agent_snp", 0);
pub(super) const RSP: ClassDescription = class("agent_rsp", 0);
pub(super) const DATA: ClassDescription = class("agent_data", LINE_SLOTS);

/// One header a slot: what a socket link packs is not published in more detail.
pub(super) const SLOT_FORMATS: &[SlotFormat] = &[
    SlotFormat { slots: &[H68, G68, H256, G256], headers: &[(AgentReq, 1)] },
    SlotFormat { slots: &[H68, G68, H256, G256], headers: &[(AgentWb, 1)] },
    SlotFormat { slots: &[H68, G68, H256, G256], headers: &[(AgentSnp, 1)] },
    SlotFormat { slots: &[H68, G68, H256, G256], headers: &[(AgentRsp, 1)] },
    SlotFormat { slots: &[H68, G68, H256, G256], headers: &[(AgentData, 1)] },
];

pub(super) const REQUEST: OpcodeDescription = OpcodeDescription { class: AgentReq, byte_enable_slots: 0 };
pub(super) const WRITE: OpcodeDescription = OpcodeDescription { class: AgentWb, byte_enable_slots: 0 };
/// Byte enables follow the data.
pub(super) const WRITE_PARTIAL: OpcodeDescription = OpcodeDescription { class: AgentWb, byte_enable_slots: 1 };
pub(super) const SNOOP: OpcodeDescription = OpcodeDescription { class: AgentSnp, byte_enable_slots: 0 };
pub(super) const RESPONSE: OpcodeDescription = OpcodeDescription { class: AgentRsp, byte_enable_slots: 0 };
pub(super) const WITH_DATA: OpcodeDescription = OpcodeDescription { class: AgentData, byte_enable_slots: 0 };
