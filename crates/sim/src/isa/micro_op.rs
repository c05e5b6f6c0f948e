//! Micro-operations: what the core schedules. An instruction is cracked into loads, one operation and stores.

/// Names an architectural register, or a temporary that carries a value from one micro-operation of an instruction to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Register(pub u8);

impl Register {
    /// No register.
    pub const NONE: Register = Register(0);
    /// The flags, as one.
    pub const FLAGS: Register = Register(17);
    /// The x87 stack, as one.
    pub const X87: Register = Register(58);
    /// Written by fences and locked instructions, read by every load: what holds loads back behind them.
    pub const BARRIER: Register = Register(59);
    /// The result of an instruction that its own stores write.
    pub const RESULT: Register = Register(60);
    /// What an instruction's first load brings to its operation; further loads take the next numbers.
    pub const FIRST_LOADED: Register = Register(61);
    /// How many loads of one instruction have a temporary of their own; the others share the last.
    pub const LOADED: u8 = 3;
    /// `rax`, which a string instruction stores or compares with.
    pub const ACCUMULATOR: Register = Register(1);
    /// `rcx`, which counts the repetitions of a string instruction.
    pub const REPETITIONS: Register = Register(2);
    /// `rsi`, where a string instruction reads.
    pub const SOURCE_POINTER: Register = Register(7);
    /// `rdi`, where a string instruction reads or writes.
    pub const DESTINATION_POINTER: Register = Register(8);
    /// How many names there are: of a value that is split, all beyond its lowest part has a name of its own.
    pub const COUNT: usize = 128;

    /// General-purpose register `number` (0 to 15).
    pub fn general(number: u8) -> Register {
        Register(1 + number)
    }

    /// Vector register `number` (0 to 31).
    pub fn vector(number: u8) -> Register {
        Register(18 + number)
    }

    /// Mask register `number` (0 to 7).
    pub fn mask(number: u8) -> Register {
        Register(50 + number)
    }

    /// The temporary of the `number`th load of an instruction.
    pub fn loaded(number: usize) -> Register {
        Register(Self::FIRST_LOADED.0 + (number as u8).min(Self::LOADED - 1))
    }

    /// What is beyond the lowest part of a value that is split: of a vector register, or of a temporary. Anything else has no parts.
    pub fn upper(self) -> Register {
        match self.0 {
            18..50 => Register(self.0 + 64),
            _ if self.is_temporary() => Register(self.0 + 64),
            _ => self,
        }
    }

    /// Whether it carries a value within an instruction.
    pub fn is_temporary(self) -> bool {
        (Self::RESULT.0..Self::FIRST_LOADED.0 + Self::LOADED).contains(&self.0)
    }

    /// As an index into an array of [`Register::COUNT`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a micro-operation does, and so where and how long it executes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Integer addition, logic, move, address arithmetic.
    #[default]
    Integer,
    /// Integer multiplication.
    Multiply,
    /// Integer division.
    Divide,
    /// Floating-point addition, comparison, conversion.
    FloatAdd,
    /// Floating-point multiplication, fused or not.
    FloatMultiply,
    /// Floating-point division and square root.
    FloatDivide,
    /// Vector integer arithmetic, logic, shuffle.
    Vector,
    /// A jump, call or return.
    Branch,
    /// Reads memory.
    Load,
    /// Asks for a line, waits for nothing.
    Prefetch,
    /// Writes memory.
    Store,
    /// Writes memory around the caches.
    NonTemporalStore,
    /// Reads and writes memory as one (a locked instruction).
    Atomic,
    /// `clflush`.
    Clflush,
    /// `clflushopt`.
    Clflushopt,
    /// `clwb`.
    Clwb,
    /// `sfence`.
    Sfence,
    /// `mfence`.
    Mfence,
    /// `lfence`.
    Lfence,
    /// A `rep` string instruction; it becomes loads and stores when it is dispatched.
    String,
    /// A marker of the region of interest.
    RoiMarker,
}

// Counts by operation are looked up by its number.
const _: () = {
    let mut number = 0;
    while number < Operation::COUNT {
        assert!(Operation::ALL[number] as usize == number);
        number += 1;
    }
};

impl Operation {
    /// How many there are.
    pub const COUNT: usize = 21;
    /// All of them, in the order of their numbers.
    pub const ALL: [Operation; Self::COUNT] = [
        Self::Integer,
        Self::Multiply,
        Self::Divide,
        Self::FloatAdd,
        Self::FloatMultiply,
        Self::FloatDivide,
        Self::Vector,
        Self::Branch,
        Self::Load,
        Self::Prefetch,
        Self::Store,
        Self::NonTemporalStore,
        Self::Atomic,
        Self::Clflush,
        Self::Clflushopt,
        Self::Clwb,
        Self::Sfence,
        Self::Mfence,
        Self::Lfence,
        Self::String,
        Self::RoiMarker,
    ];

    /// Whether it accesses memory or orders accesses: when it is complete is not known from its issue alone.
    #[inline]
    pub fn accesses_memory(self) -> bool {
        use Operation::{Load, Prefetch};
        matches!(self, Load | Prefetch) || self.uses_store_queue()
    }

    /// Whether it occupies the store queue.
    #[inline]
    pub fn uses_store_queue(self) -> bool {
        use Operation::{Atomic, Clflush, Clflushopt, Clwb, Mfence, NonTemporalStore, Sfence, Store};
        matches!(self, Store | NonTemporalStore | Atomic | Clflush | Clflushopt | Clwb | Sfence | Mfence)
    }

    /// Whether it is one of the flush instructions.
    pub fn is_flush(self) -> bool {
        matches!(self, Operation::Clflush | Operation::Clflushopt | Operation::Clwb)
    }
}

/// One micro-operation of a static instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MicroOp {
    /// What it does.
    pub operation: Operation,
    /// Whether it is its instruction's last.
    pub ends_instruction: bool,
    /// Registers it waits for.
    pub sources: [Register; 4],
    /// Registers it gives a value.
    pub destinations: [Register; 2],
    /// Which slot of its block has its address; for [`Operation::RoiMarker`] the marker's code.
    pub slot: u16,
    /// Bytes accessed; of one element for [`Operation::String`].
    pub size: u16,
    /// Bytes of the vector that it computes or accesses; 0 if that is none.
    pub vector_bytes: u8,
    /// Of a part of a wider vector, how many bytes lie below it; [`MicroOp::ASIDE`] of what [`split`](super::split) puts before an instruction.
    pub offset: u8,
    /// Which operands [`Operation::String`] has.
    pub string: StringOperands,
}

impl MicroOp {
    /// The `offset` of a micro-operation that only some cores need: it brings an operand, or clears what is beyond the lowest part of a register.
    pub const ASIDE: u8 = u8::MAX;

    /// The address that it accesses, of an access at `address`; 0 (nothing is accessed) stays 0.
    #[inline]
    pub fn address_of_part(&self, address: u64) -> u64 {
        if address == 0 { 0 } else { address.wrapping_add(u64::from(self.offset)) }
    }

    /// Bytes of the whole access up to the end of this part.
    #[inline]
    pub fn size_so_far(&self) -> u16 {
        u16::from(self.offset) + self.size
    }
}

/// The memory operands of a `rep` string instruction. Each that is there has two slots: its pointer before and after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StringOperands {
    /// Reads at `rsi`; its slots come first.
    pub source: bool,
    /// Reads or writes at `rdi`.
    pub destination: bool,
    /// Writes at `rdi`.
    pub writes: bool,
}

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

/// What an instruction takes besides on cores that execute less at once ([`split`](super::split)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aside {
    /// Immediates and instruction pointers among its operands.
    pub operands: u8,
    /// A vector register whose lowest element it loads, and which is cleared beyond that.
    pub cleared: Register,
}

/// A static block, ready for the core.
#[derive(Clone, Debug, Default)]
pub struct DecodedBlock {
    /// Its micro-operations in program order.
    pub micro_ops: Box<[MicroOp]>,
    /// For each instruction, what it takes besides.
    pub asides: Box<[Aside]>,
    /// Slots that each execution supplies.
    pub slots: u32,
    /// Instructions in it.
    pub instructions: u32,
    /// Virtual address of its first byte.
    pub address: u64,
    /// Virtual address behind its last byte.
    pub end: u64,
    /// Virtual address of its last instruction: where a branch is.
    pub last_instruction: u64,
    /// How it is left.
    pub exit: Exit,
    /// What is looked at where it only warms.
    pub warm: WarmBlock,
}

impl DecodedBlock {
    /// The number that micro-operation `micro_op` would have if nothing were split: parts of one have one number.
    pub fn unsplit_number(&self, micro_op: u32) -> u32 {
        let up_to = self.micro_ops.iter().take(micro_op as usize + 1);
        (up_to.filter(|micro_op| micro_op.offset == 0).count() as u32).saturating_sub(1)
    }

    /// Whether micro-operation `micro_op` is the rest of the one before it.
    #[inline]
    pub fn continues(&self, micro_op: u32) -> bool {
        self.micro_ops.get(micro_op as usize).is_some_and(|micro_op| (1..MicroOp::ASIDE).contains(&micro_op.offset))
    }
}

/// A static block as functional warming sees it.
#[derive(Clone, Debug, Default)]
pub struct WarmBlock {
    /// Whether accesses, counts and the number of instructions are all there is: no string instruction, no marker.
    pub is_plain: bool,
    /// What accesses memory, in program order; a load whose word the next access stores to is not there.
    pub accesses: Box<[WarmAccess]>,
    /// What a plain execution adds to the core's counters.
    pub counts: BlockCounts,
}

/// A micro-operation that accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarmAccess {
    /// What it does.
    pub operation: Operation,
    /// Which slot of the block has its address.
    pub slot: u16,
    /// Bytes accessed.
    pub size: u16,
    /// Its number in the block.
    pub micro_op: u16,
}

/// How many micro-operations of some kinds a block has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockCounts {
    /// Stores.
    pub stores: u16,
    /// Non-temporal stores.
    pub non_temporal_stores: u16,
    /// Flushes.
    pub flushes: u16,
    /// `sfence` and `mfence`.
    pub fences: u16,
    /// Locked instructions.
    pub atomics: u16,
}

impl WarmBlock {
    /// What warming looks at of these micro-operations.
    pub fn of(micro_ops: &[MicroOp]) -> WarmBlock {
        let mut counts = BlockCounts::default();
        let mut accesses: Vec<WarmAccess> = Vec::new();
        for (index, micro_op) in micro_ops.iter().enumerate() {
            match micro_op.operation {
                Operation::Store => counts.stores += 1,
                Operation::NonTemporalStore => counts.non_temporal_stores += 1,
                Operation::Atomic => counts.atomics += 1,
                Operation::Sfence | Operation::Mfence => counts.fences += 1,
                operation if operation.is_flush() => counts.flushes += 1,
                Operation::Load | Operation::Prefetch => {}
                _ => continue,
            }
            let (operation, slot, size) = (micro_op.operation, micro_op.slot, micro_op.size);
            if micro_op.offset > 0 {
                // Caches and TLBs are looked up for the whole access.
                let whole = accesses.last_mut().expect("a part comes behind the lowest one");
                whole.size = micro_op.size_so_far();
                continue;
            }
            if size != 0 || matches!(operation, Operation::Sfence | Operation::Mfence) {
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
