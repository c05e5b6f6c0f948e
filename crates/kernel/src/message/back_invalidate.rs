//! Back-invalidation: a device that keeps a snoop filter of its own memory snoops its host (CXL 3.1 specification,
//! chapter 3.3; HDM-DB).
//!
//! Snoops (`BISnp`) and their answers (`BIRsp`) have a channel each. A grant (`Cmp-S`, `Cmp-E`) comes apart from the
//! data that belong to it, in the channel of completions, and the end of a conflict comes behind it there: so a host
//! knows which of its requests a snoop came after. What the messages mean is in
//! `device::type2::device_memory` of the simulator; a message names its line, and no switch carries them.

use super::{
    ClassDescription, CreditPool, Direction, HeaderSlot, HeadersMax, Message, MessageClass, Opcode, OpcodeDescription,
    Route, SlotFormat,
};
use HeaderSlot::{G68, G256, H68, H256};
use MessageClass::{M2sBiRsp, M2sRwd, S2mBiSnp, S2mNdr};

/// The classes that no other memory needs.
pub const CLASSES: [MessageClass; 2] = [S2mBiSnp, M2sBiRsp];

/// Headers of either class; recalled.
const HEADERS_MAX: HeadersMax = HeadersMax { in_flit_68: 2, in_group_256: 2 };

pub(super) const S2M_BI_SNP: ClassDescription = ClassDescription {
    name: "s2m_bi_snp",
    direction: Direction::Upstream,
    route: Route::ByLine,
    data_slots: 0,
    headers_max: HEADERS_MAX,
    credits: CreditPool {
        key: "back_invalidate_snoop_credits",
        meaning: "Buffer places for S2M BISnp: snoops of devices; a link without them carries none.",
        is_on_every_link: false,
    },
};

pub(super) const M2S_BI_RSP: ClassDescription = ClassDescription {
    name: "m2s_bi_rsp",
    direction: Direction::Downstream,
    route: Route::ByLine,
    data_slots: 0,
    headers_max: HEADERS_MAX,
    credits: CreditPool {
        key: "back_invalidate_response_credits",
        meaning: "Buffer places for M2S BIRsp: answers to snoops of devices.",
        is_on_every_link: false,
    },
};

/// One header a slot: with which others they share one is not modelled.
pub(super) const SLOT_FORMATS: &[SlotFormat] = &[
    SlotFormat { slots: &[H68, G68, H256, G256], headers: &[(S2mBiSnp, 1)] },
    SlotFormat { slots: &[H68, G68, H256, G256], headers: &[(M2sBiRsp, 1)] },
];

const fn of(class: MessageClass) -> OpcodeDescription {
    OpcodeDescription { class, byte_enable_slots: 0 }
}

pub(super) const SNOOP: OpcodeDescription = of(S2mBiSnp);
pub(super) const RESPONSE: OpcodeDescription = of(M2sBiRsp);
/// With a line of data, which means nothing.
pub(super) const CONFLICT: OpcodeDescription = of(M2sRwd);
pub(super) const COMPLETION: OpcodeDescription = of(S2mNdr);

impl Message {
    /// Whether it is between a host and a coherent device that its flow names at the host's bridge: of CXL.cache, or of
    /// back-invalidation. All else there is a request, or the answer to one.
    #[inline]
    pub fn names_its_device(&self) -> bool {
        (Opcode::BiSnpData..=Opcode::ReadData).contains(&self.opcode)
    }
}
