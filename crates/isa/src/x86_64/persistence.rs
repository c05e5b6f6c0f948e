//! The instructions by which programs make stores durable: the one list of them, for the core, for summaries of records
//! and for reports.

use iced_x86::{Decoder, DecoderOptions, Mnemonic};

use crate::micro_op::{Fence, Flush, Operation};

/// The name of a locked instruction in documents.
pub const ATOMIC: &str = "locked";

/// Each kind with its name in documents.
pub const KINDS: [(&str, Operation); 6] = [
    ("clflush", Operation::Flush(Flush::CLFLUSH)),
    ("clflushopt", Operation::Flush(Flush::CLFLUSHOPT)),
    ("clwb", Operation::Flush(Flush::CLWB)),
    ("non_temporal_store", Operation::NonTemporalStore),
    ("sfence", Operation::Fence(Fence::SFENCE)),
    ("mfence", Operation::Fence(Fence::MFENCE)),
];

/// The flush, fence or non-temporal store that `mnemonic` is, if any.
///
/// Non-temporal stores are those that Intel's manual (volume 1, 10.4.6.2 and 12.10: `movnt*`, `maskmov*`, direct
/// stores) and AMD's (volume 3: `movntss`, `movntsd`, `clzero`) say go through the write-combining buffers, weakly
/// ordered. `movntdqa` is a load.
pub(super) fn operation_of(mnemonic: Mnemonic) -> Option<Operation> {
    use Mnemonic as M;
    Some(match mnemonic {
        M::Clflush => Operation::Flush(Flush::CLFLUSH),
        M::Clflushopt => Operation::Flush(Flush::CLFLUSHOPT),
        M::Clwb => Operation::Flush(Flush::CLWB),
        M::Movnti | M::Movntq | M::Movntdq | M::Movntps | M::Movntpd | M::Movntss | M::Movntsd => {
            Operation::NonTemporalStore
        }
        M::Vmovntdq | M::Vmovntps | M::Vmovntpd => Operation::NonTemporalStore,
        M::Maskmovq | M::Maskmovdqu | M::Vmaskmovdqu => Operation::NonTemporalStore,
        M::Movdiri | M::Movdir64b | M::Clzero => Operation::NonTemporalStore,
        M::Sfence => Operation::Fence(Fence::SFENCE),
        M::Mfence => Operation::Fence(Fence::MFENCE),
        _ => return None,
    })
}

/// The same for the bytes of an instruction.
pub fn persist_operation(bytes: &[u8]) -> Option<Operation> {
    operation_of(Decoder::new(64, bytes, DecoderOptions::NONE).decode().mnemonic())
}

/// Whether it is a non-temporal store.
pub(super) fn is_non_temporal(mnemonic: Mnemonic) -> bool {
    operation_of(mnemonic) == Some(Operation::NonTemporalStore)
}

/// Whether it is a non-temporal store that a mask register decides about, byte by byte. Records do not hold the mask,
/// so all bytes count as written.
pub(super) fn is_masked(mnemonic: Mnemonic) -> bool {
    matches!(mnemonic, Mnemonic::Maskmovq | Mnemonic::Maskmovdqu | Mnemonic::Vmaskmovdqu)
}
