//! What messages ask for or answer, of all protocols.

use super::class::MessageClass;
use super::coherence;
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
        /// Between sockets: read a line.
        ReadLine = coherence::REQUEST,
        /// Between sockets: read a line to write it.
        OwnLine = coherence::REQUEST,
        /// Between sockets: the right to write a line whose data are here.
        UpgradeLine = coherence::REQUEST,
        /// Between sockets: write a line back from wherever it is dirty; no copy stays there.
        FlushLine = coherence::REQUEST,
        /// Between sockets: the same, but copies stay, to be shared.
        CleanLine = coherence::REQUEST,
        /// Between sockets: an evicted line.
        WriteEvicted = coherence::WRITE,
        /// Between sockets: a line that a flush has thrown out of the sender's caches, to be written.
        WriteFlushed = coherence::WRITE,
        /// Between sockets: a line that a flush has cleaned in the sender's caches, to be written.
        WriteCleaned = coherence::WRITE,
        /// Between sockets: write a line of which no cache is to keep a copy.
        WriteAround = coherence::WRITE,
        /// Between sockets: the same for the bytes of the mask.
        WriteAroundPtl = coherence::WRITE_PARTIAL,
        /// Between sockets: share the line, and give what is dirty.
        SnoopShare = coherence::SNOOP,
        /// Between sockets: drop the line, and give what is dirty.
        SnoopInvalidate = coherence::SNOOP,
        /// Between sockets: nothing dirty here.
        SnoopedNothing = coherence::RESPONSE,
        /// Between sockets: a dirty line.
        SnoopedDirty = coherence::WITH_DATA,
        /// Between sockets: a line that the sender is writing back, in its newest version: it has to be written.
        SnoopedInWriteBack = coherence::WITH_DATA,
        /// Between sockets: a copy that others may have too.
        GrantShared = coherence::WITH_DATA,
        /// Between sockets: the only copy, equal to memory.
        GrantExclusive = coherence::WITH_DATA,
        /// Between sockets: the only copy, newer than memory.
        GrantModified = coherence::WITH_DATA,
        /// Between sockets: the right to write the copy that the receiver has.
        GrantUpgrade = coherence::RESPONSE,
        /// Between sockets: a copy has arrived, its line need not be blocked any longer.
        Acknowledge = coherence::RESPONSE,
        /// Between sockets: what was to be written is written.
        Complete = coherence::RESPONSE,
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
