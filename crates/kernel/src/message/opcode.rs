//! What messages ask for or answer, of all protocols.

use super::back_invalidate;
use super::cache;
use super::class::MessageClass;
use super::coherence;
#[cfg(any(test, feature = "test-protocol"))]
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
        /// CXL.mem M2S Req: read a line to write it (`MemRd` with `SnpInv`).
        MemRdOwn = mem::MEM_RD,
        /// CXL.mem M2S Req: the right to write a whole line, without its data.
        MemInv = mem::MEM_RD,
        /// CXL.mem M2S Req: a device's own request for its memory is done; the host keeps nothing.
        MemRdFwdI = mem::MEM_RD,
        /// CXL.mem M2S Req: a device's own request for its memory is done; the host keeps a copy to read.
        MemRdFwdS = mem::MEM_RD,
        /// CXL.mem M2S RwD: write a whole line.
        MemWr = mem::MEM_WR,
        /// CXL.mem M2S RwD: write the bytes of the mask.
        MemWrPtl = mem::MEM_WR_PTL,
        /// CXL.mem S2M NDR: the write is complete (at its persist point, for PM).
        Cmp = mem::CMP,
        /// CXL.mem S2M DRS: the line that was read.
        MemData = mem::MEM_DATA,
        /// CXL.mem S2M DRS: the line that was read, with `Cmp-S`: the device keeps a copy to read.
        MemDataS = mem::MEM_DATA,
        /// CXL.mem S2M NDR: the right to write a line.
        CmpE = mem::CMP,
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
        /// Between sockets: the same, out of another socket's caches and not out of memory.
        GrantForwarded = coherence::WITH_DATA,
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
        /// CXL.mem S2M BISnp: share the line or give it up.
        BiSnpData = back_invalidate::SNOOP,
        /// CXL.mem S2M BISnp: give the line up.
        BiSnpInv = back_invalidate::SNOOP,
        /// CXL.mem M2S BIRsp: the host has nothing of the line.
        BiRspI = back_invalidate::RESPONSE,
        /// CXL.mem M2S BIRsp: the host keeps a copy to read.
        BiRspS = back_invalidate::RESPONSE,
        /// CXL.mem M2S RwD: did the snoop come before the host's own request, or after it?
        BiConflict = back_invalidate::CONFLICT,
        /// CXL.mem S2M NDR: what the host was granted before the snoop has come before this.
        BiConflictAck = back_invalidate::COMPLETION,
        /// CXL.mem S2M NDR, `Cmp-S`: a copy to read is granted, whose data come apart.
        GrantedS = back_invalidate::COMPLETION,
        /// CXL.mem S2M NDR, `Cmp-E`: a copy to write is granted, whose data come apart.
        GrantedE = back_invalidate::COMPLETION,
        /// CXL.cache D2H request: read a line as it is now, and keep nothing.
        RdCurr = cache::REQUEST,
        /// CXL.cache D2H request: read a line to share it.
        RdShared = cache::REQUEST,
        /// CXL.cache D2H request: read a line in whatever state the host likes.
        RdAny = cache::REQUEST,
        /// CXL.cache D2H request: read a line to write it.
        RdOwn = cache::REQUEST,
        /// CXL.cache D2H request: the right to write a whole line.
        RdOwnNoData = cache::REQUEST,
        /// CXL.cache D2H request: write a line into the host's cache.
        ItoMWr = cache::REQUEST,
        /// CXL.cache D2H request: write a line where the host has it.
        WrCur = cache::REQUEST,
        /// CXL.cache D2H request: have a line flushed from all caches.
        CLFlush = cache::REQUEST,
        /// CXL.cache D2H request: give up a clean line, whose data the host may pull.
        CleanEvict = cache::REQUEST,
        /// CXL.cache D2H request: give up a clean line.
        CleanEvictNoData = cache::REQUEST,
        /// CXL.cache D2H request: give up a modified line.
        DirtyEvict = cache::REQUEST,
        /// CXL.cache D2H request: write some bytes of a line to memory, weakly ordered.
        WOWrInv = cache::REQUEST,
        /// CXL.cache D2H request: write a line to memory, weakly ordered.
        WOWrInvF = cache::REQUEST,
        /// CXL.cache D2H request: write some bytes of a line to memory.
        WrInv = cache::REQUEST,
        /// CXL.cache D2H request: the device's cache is empty.
        CacheFlushed = cache::REQUEST,
        /// CXL.cache D2H response: there was nothing.
        RspIHitI = cache::SNOOP_RESPONSE,
        /// CXL.cache D2H response: the line stays what it was, and clean.
        RspVHitV = cache::SNOOP_RESPONSE,
        /// CXL.cache D2H response: the line was clean and is gone.
        RspIHitSE = cache::SNOOP_RESPONSE,
        /// CXL.cache D2H response: the line was clean and is shared.
        RspSHitSE = cache::SNOOP_RESPONSE,
        /// CXL.cache D2H response: the line was modified and is shared.
        RspSFwdM = cache::SNOOP_RESPONSE,
        /// CXL.cache D2H response: the line was modified and is gone.
        RspIFwdM = cache::SNOOP_RESPONSE,
        /// CXL.cache D2H response: the line stays modified.
        RspVFwdV = cache::SNOOP_RESPONSE,
        /// CXL.cache D2H data: a line that was snooped.
        SnoopedData = cache::DATA_UP,
        /// CXL.cache D2H data: a line that was pulled.
        PulledData = cache::DATA_UP,
        /// CXL.cache D2H data: a pulled line that was snooped away meanwhile.
        BogusData = cache::DATA_UP,
        /// CXL.cache H2D request: share the line or give it up.
        SnpData = cache::SNOOP,
        /// CXL.cache H2D request: give the line up.
        SnpInv = cache::SNOOP,
        /// CXL.cache H2D request: the line's present data.
        SnpCur = cache::SNOOP,
        /// CXL.cache H2D response: globally observed; no copy.
        GoI = cache::RESPONSE,
        /// CXL.cache H2D response: globally observed; a copy to share.
        GoS = cache::RESPONSE,
        /// CXL.cache H2D response: globally observed; the only copy.
        GoE = cache::RESPONSE,
        /// CXL.cache H2D response: globally observed; the only copy, newer than memory.
        GoM = cache::RESPONSE,
        /// CXL.cache H2D response: the data are wanted.
        WritePull = cache::RESPONSE,
        /// CXL.cache H2D response: globally observed, and the data are wanted.
        GoWritePull = cache::RESPONSE,
        /// CXL.cache H2D response: globally observed, and the data are not wanted.
        GoWritePullDrop = cache::RESPONSE,
        /// CXL.cache H2D response: the data are wanted; `ExtCmp` follows.
        FastGoWritePull = cache::RESPONSE,
        /// CXL.cache H2D response: the write is globally observed.
        ExtCmp = cache::RESPONSE,
        /// CXL.cache H2D data: a line that was read.
        ReadData = cache::DATA_DOWN,
        /// Of a protocol for tests: read a line.
        #[cfg(any(test, feature = "test-protocol"))]
        Fetch = exchange::FETCH,
        /// Of that protocol: write half a line and read what it was before.
        #[cfg(any(test, feature = "test-protocol"))]
        Swap = exchange::SWAP,
        /// Of that protocol: the line that was fetched or swapped.
        #[cfg(any(test, feature = "test-protocol"))]
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
