//! What messages ask for or answer, of all protocols.

use super::class::MessageClass;
#[cfg(test)]
use super::exchange;
use super::list::described;
use super::mem;

/// What an opcode says of its messages.
#[derive(Clone, Copy, Debug)]
pub struct OpcodeDescription {
    /// The class that they travel in.
    pub class: MessageClass,
    /// Slots on a link that they need for byte enables, besides the data of their class.
    pub byte_enable_slots: u8,
}

described! {
    /// What a message asks for or answers.
    Opcode: OpcodeDescription {
        /// CXL.mem M2S Req: read a line.
        MemRd = mem::MEM_RD,
        /// CXL.mem M2S RwD: write a whole line.
        MemWr = mem::MEM_WR,
        /// CXL.mem M2S RwD: write the bytes of the mask.
        MemWrPtl = mem::MEM_WR_PTL,
        /// CXL.mem S2M NDR: the write is complete (at its persist point, for PM).
        Cmp = mem::CMP,
        /// CXL.mem S2M DRS: the line that was read.
        MemData = mem::MEM_DATA,
        /// Of a protocol for tests: read a line.
        #[cfg(test)]
        Fetch = exchange::FETCH,
        /// Of that protocol: write half a line and read what it was before.
        #[cfg(test)]
        Swap = exchange::SWAP,
        /// Of that protocol: the line that was fetched or swapped.
        #[cfg(test)]
        Fetched = exchange::FETCHED,
    }
}

impl Opcode {
    /// The credit class it travels in.
    #[inline]
    pub const fn class(self) -> MessageClass {
        self.description().class
    }

    /// Slots on a link that follow its header.
    #[inline]
    pub const fn data_slots(self) -> u64 {
        let description = self.description();
        (description.class.description().data_slots + description.byte_enable_slots) as u64
    }
}
