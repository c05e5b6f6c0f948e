//! The instructions by which programs make stores durable: the one list of them, for the core, for summaries of records
//! and for reports.

use iced_x86::{Decoder, DecoderOptions, Mnemonic};

use crate::isa::micro_op::{Fence, Flush, Operation};

/// Each kind with its name in documents, its operation and its instructions.
///
/// Non-temporal stores are those that Intel's manual (volume 1, 10.4.6.2 and 12.10: `movnt*`, `maskmov*`, direct
/// stores) and AMD's (volume 3: `movntss`, `movntsd`, `clzero`) say go through the write-combining buffers, weakly
/// ordered. `movntdqa` is a load.
const KINDS: [(&str, Operation, &[Mnemonic]); 6] = {
    use Mnemonic as M;
    [
        ("clflush", Operation::Flush(Flush::CLFLUSH), &[M::Clflush]),
        ("clflushopt", Operation::Flush(Flush::CLFLUSHOPT), &[M::Clflushopt]),
        ("clwb", Operation::Flush(Flush::CLWB), &[M::Clwb]),
        (
            "non_temporal_store",
            Operation::NonTemporalStore,
            &[
                M::Movnti,
                M::Movntq,
                M::Movntdq,
                M::Movntps,
                M::Movntpd,
                M::Movntss,
                M::Movntsd,
                M::Vmovntdq,
                M::Vmovntps,
                M::Vmovntpd,
                M::Maskmovq,
                M::Maskmovdqu,
                M::Vmaskmovdqu,
                M::Movdiri,
                M::Movdir64b,
                M::Clzero,
            ],
        ),
        ("sfence", Operation::Fence(Fence::SFENCE), &[M::Sfence]),
        ("mfence", Operation::Fence(Fence::MFENCE), &[M::Mfence]),
    ]
};

/// The flush, fence or non-temporal store that `mnemonic` is, if any.
pub(super) fn operation_of(mnemonic: Mnemonic) -> Option<Operation> {
    KINDS.iter().find(|(.., mnemonics)| mnemonics.contains(&mnemonic)).map(|&(_, operation, _)| operation)
}

/// The same for the bytes of an instruction.
pub fn persist_operation(bytes: &[u8]) -> Option<Operation> {
    operation_of(Decoder::new(64, bytes, DecoderOptions::NONE).decode().mnemonic())
}

/// The name of a flush, fence, non-temporal store or atomic.
pub fn name_of(operation: Operation) -> Option<&'static str> {
    if matches!(operation, Operation::Atomic(_)) {
        return Some("locked");
    }
    KINDS.iter().find(|(_, own, _)| *own == operation).map(|&(name, ..)| name)
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
