//! Static blocks of micro-operations, for detailed execution and for warming.

use super::{MicroOp, Operation, Register};

/// How a block is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Exit {
    /// The next instruction follows.
    #[default]
    FallThrough,
    /// A conditional branch to a fixed target.
    Conditional,
    /// A jump to a fixed target.
    Jump,
    /// A jump to a computed target.
    IndirectJump,
    /// A call of a fixed target.
    Call,
    /// A call of a computed target.
    IndirectCall,
    /// A return.
    Return,
}

/// Extra micro-operations of an instruction on cores that execute less at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aside {
    /// Its immediates and uses of the instruction pointer.
    pub operands: u8,
    /// The vector register whose lowest element it loads and whose rest it clears.
    pub cleared: Register,
}

/// A static block, ready for the core.
#[derive(Clone, Debug, Default)]
pub struct DecodedBlock {
    /// Its micro-operations in program order.
    pub micro_ops: Box<[MicroOp]>,
    /// The extra micro-operations of each instruction.
    pub asides: Box<[Aside]>,
    /// Slots that each execution fills.
    pub slots: u32,
    /// Instructions in it.
    pub instructions: u32,
    /// Virtual address of its first byte.
    pub address: u64,
    /// Virtual address after its last byte.
    pub end: u64,
    /// Virtual address of its last instruction, which may be a branch.
    pub last_instruction: u64,
    /// How it is left.
    pub exit: Exit,
    /// What warming executes of it.
    pub warm: WarmBlock,
}

impl DecodedBlock {
    /// The number of micro-operation `micro_op` before splitting: parts of one micro-operation share a number.
    pub fn unsplit_number(&self, micro_op: u32) -> u32 {
        let up_to = self.micro_ops.iter().take(micro_op as usize + 1);
        (up_to.filter(|micro_op| micro_op.offset == 0).count() as u32).saturating_sub(1)
    }

    /// Whether micro-operation `micro_op` is a further part of the one before it.
    #[inline]
    pub fn continues(&self, micro_op: u32) -> bool {
        self.micro_ops.get(micro_op as usize).is_some_and(|micro_op| (1..MicroOp::ASIDE).contains(&micro_op.offset))
    }
}

/// A static block as functional warming sees it.
#[derive(Clone, Debug, Default)]
pub struct WarmBlock {
    /// Whether accesses, counts and the number of instructions describe it completely: it has no string instruction and
    /// no marker.
    pub is_plain: bool,
    /// Its memory accesses in program order, without a load whose word the next access stores to.
    pub accesses: Box<[WarmAccess]>,
    /// What a plain execution adds to the core's counters.
    pub counts: BlockCounts,
}

/// A micro-operation that accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarmAccess {
    /// What it does.
    pub operation: Operation,
    /// The slot of the block that holds its address.
    pub slot: u16,
    /// Bytes accessed.
    pub size: u16,
    /// Its number in the block.
    pub micro_op: u16,
}

/// Micro-operations of a block, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockCounts {
    /// Stores.
    pub stores: u16,
    /// Non-temporal stores.
    pub non_temporal_stores: u16,
    /// Flushes.
    pub flushes: u16,
    /// Fences.
    pub fences: u16,
    /// Atomic read-modify-writes.
    pub atomics: u16,
}

impl WarmBlock {
    /// What warming executes of these micro-operations.
    pub fn of(micro_ops: &[MicroOp]) -> WarmBlock {
        let mut counts = BlockCounts::default();
        let mut accesses: Vec<WarmAccess> = Vec::new();
        for (index, micro_op) in micro_ops.iter().enumerate() {
            match micro_op.operation {
                Operation::Store => counts.stores += 1,
                Operation::NonTemporalStore => counts.non_temporal_stores += 1,
                Operation::Atomic(_) => counts.atomics += 1,
                Operation::Fence(_) => counts.fences += 1,
                Operation::Flush(_) => counts.flushes += 1,
                Operation::Load | Operation::Prefetch => {}
                _ => continue,
            }
            let (operation, slot, size) = (micro_op.operation, micro_op.slot, micro_op.size);
            if micro_op.offset > 0 {
                // Caches and TLBs are accessed once for all parts.
                let whole = accesses.last_mut().expect("a part follows the lowest one");
                whole.size = micro_op.size_so_far();
                continue;
            }
            if size != 0 || matches!(operation, Operation::Fence(_)) {
                let is_updated = |last: &mut WarmAccess| {
                    operation == Operation::Store && last.operation == Operation::Load && last.slot == slot
                };
                accesses.pop_if(is_updated);
                accesses.push(WarmAccess { operation, slot, size, micro_op: index as u16 });
            }
        }
        let is_plain = |micro_op: &MicroOp| !matches!(micro_op.operation, Operation::String | Operation::RoiMarker);
        WarmBlock { is_plain: micro_ops.iter().all(is_plain), accesses: accesses.into(), counts }
    }
}
