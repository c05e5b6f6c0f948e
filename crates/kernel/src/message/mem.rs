//! CXL.mem: a host reads and writes the memory of devices (CXL 3.1 specification, chapter 3.3).
//!
//! Requests flow from the host to memory (M2S), answers back (S2M). Each request has one answer: data to a read, a
//! completion to a write.

use super::{
    Cause, ClassDescription, CreditPool, Credits, DevLoad, Direction, Flow, HeaderSlot, HeadersMax, LatencyStack,
    Message, MessageClass, Opcode, OpcodeDescription, RequestName, Route, SlotFormat, Tag,
};
use crate::line::{ByteMask, LineAddress, Version};
use crate::time::Time;
use HeaderSlot::{G68, G256, H68, H256, Hs256};
use MessageClass::{M2sReq, M2sRwd, S2mDrs, S2mNdr};

/// The classes of CXL.mem.
pub const CLASSES: [MessageClass; 4] = [M2sReq, M2sRwd, S2mNdr, S2mDrs];

/// The classes of its requests, each with the class of their answers.
pub const REQUEST_CLASSES: [(MessageClass, MessageClass); 2] = [(M2sReq, S2mDrs), (M2sRwd, S2mNdr)];

/// Slots of a line.
const LINE_SLOTS: u8 = 4;

pub(super) const M2S_REQ: ClassDescription = ClassDescription {
    name: "m2s_req",
    direction: Direction::Downstream,
    route: Route::ByLine,
    data_slots: 0,
    headers_max: HeadersMax { in_flit_68: 2, in_group_256: 4 },
    credits: CreditPool {
        key: "request_credits",
        meaning: "Buffer places at the receiver for M2S Req, and so the credits the transmitter starts with.",
        is_on_every_link: true,
    },
};

pub(super) const M2S_RWD: ClassDescription = ClassDescription {
    name: "m2s_rwd",
    direction: Direction::Downstream,
    route: Route::ByLine,
    data_slots: LINE_SLOTS,
    headers_max: HeadersMax { in_flit_68: 1, in_group_256: 2 },
    credits: CreditPool {
        key: "request_with_data_credits",
        meaning: "Buffer places for M2S RwD.",
        is_on_every_link: true,
    },
};

pub(super) const S2M_NDR: ClassDescription = ClassDescription {
    name: "s2m_ndr",
    direction: Direction::Upstream,
    route: Route::ByTag,
    data_slots: 0,
    headers_max: HeadersMax { in_flit_68: 2, in_group_256: 6 },
    credits: CreditPool {
        key: "no_data_response_credits",
        meaning: "Buffer places for S2M NDR.",
        is_on_every_link: true,
    },
};

pub(super) const S2M_DRS: ClassDescription = ClassDescription {
    name: "s2m_drs",
    direction: Direction::Upstream,
    route: Route::ByTag,
    data_slots: LINE_SLOTS,
    headers_max: HeadersMax { in_flit_68: 3, in_group_256: 3 },
    credits: CreditPool { key: "data_response_credits", meaning: "Buffer places for S2M DRS.", is_on_every_link: true },
};

/// 68 bytes: formats H3 to H5 and G4 to G6 (CXL 3.1, 4.2.3); 256 bytes: 4.3.3; recalled.
pub(super) const SLOT_FORMATS: &[SlotFormat] = &[
    SlotFormat { slots: &[H68, G68, H256, G256], headers: &[(M2sReq, 1)] },
    SlotFormat { slots: &[H68, G68, H256, G256], headers: &[(M2sRwd, 1)] },
    SlotFormat { slots: &[H68, H256], headers: &[(S2mDrs, 1), (S2mNdr, 1)] },
    SlotFormat { slots: &[H68, G68, H256], headers: &[(S2mNdr, 2)] },
    SlotFormat { slots: &[H68, H256], headers: &[(S2mDrs, 2)] },
    SlotFormat { slots: &[G68, G256], headers: &[(S2mDrs, 1), (S2mNdr, 2)] },
    SlotFormat { slots: &[G256], headers: &[(S2mNdr, 3)] },
    SlotFormat { slots: &[G68, G256], headers: &[(S2mDrs, 3)] },
    SlotFormat { slots: &[Hs256], headers: &[(S2mNdr, 1)] },
    SlotFormat { slots: &[Hs256], headers: &[(S2mDrs, 1)] },
];

pub(super) const MEM_RD: OpcodeDescription = OpcodeDescription { class: M2sReq, byte_enable_slots: 0 };
pub(super) const MEM_WR: OpcodeDescription = OpcodeDescription { class: M2sRwd, byte_enable_slots: 0 };
/// Byte enables come after the data in 68-byte flits, and as a trailer in those of 256 bytes.
pub(super) const MEM_WR_PTL: OpcodeDescription = OpcodeDescription { class: M2sRwd, byte_enable_slots: 1 };
pub(super) const CMP: OpcodeDescription = OpcodeDescription { class: S2mNdr, byte_enable_slots: 0 };
pub(super) const MEM_DATA: OpcodeDescription = OpcodeDescription { class: S2mDrs, byte_enable_slots: 0 };

/// Buffer places for CXL.mem alone: so many for reads and their data, so many for writes and their completions.
pub fn credits(reads: u16, writes: u16) -> Credits {
    let of_requests = Credits::NONE.with(M2sReq, reads).with(M2sRwd, writes);
    of_requests.with(S2mNdr, writes).with(S2mDrs, reads)
}

impl Message {
    /// A read of `line`.
    #[inline]
    pub fn read(line: LineAddress, tag: Tag, cause: Cause, now: Time) -> Message {
        Message {
            opcode: Opcode::MemRd,
            cause,
            line,
            tag,
            request: RequestName::NONE,
            version: Version(0),
            mask: ByteMask::FULL,
            flow: Flow::default(),
            dev_load: DevLoad::Light,
            stack: LatencyStack::starting(now),
        }
    }

    /// A write of `version` to the bytes `mask` of `line`.
    #[inline]
    pub fn write(line: LineAddress, tag: Tag, cause: Cause, version: Version, mask: ByteMask, now: Time) -> Message {
        let opcode = if mask.is_full() { Opcode::MemWr } else { Opcode::MemWrPtl };
        Message {
            opcode,
            cause,
            line,
            tag,
            request: RequestName::NONE,
            version,
            mask,
            flow: Flow::default(),
            dev_load: DevLoad::Light,
            stack: LatencyStack::starting(now),
        }
    }

    /// The answer to this request: `Cmp` to a write, `MemData` with `version` to a read.
    pub fn answer(mut self, version: Version) -> Message {
        self.opcode = match self.opcode {
            Opcode::MemRd => Opcode::MemData,
            Opcode::MemWr | Opcode::MemWrPtl => Opcode::Cmp,
            other => unreachable!("{other:?} is no request of CXL.mem"),
        };
        self.version = version;
        self
    }

    /// The completion of this write.
    pub fn completion(self) -> Message {
        let version = self.version;
        self.answer(version)
    }

    /// Whether it writes memory, be it by way of a home agent.
    #[inline]
    pub fn is_write(&self) -> bool {
        matches!(
            self.opcode,
            Opcode::MemWr
                | Opcode::MemWrPtl
                | Opcode::WriteEvicted
                | Opcode::WriteFlushed
                | Opcode::WriteCleaned
                | Opcode::WriteAround
                | Opcode::WriteAroundPtl
        )
    }
}
