//! From one instruction to its micro-operations.

use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register as X86};

use super::operands::{self, STACK_POINTER, push_register, register_of};
use super::{arithmetic, marker_of, persistence};
use crate::block::fill;
use crate::micro_op::{Fence, MicroOp, Operation, Register};
use fencepost_record::{Slot, SlotKind};

/// One instruction on its way to micro-operations.
pub(super) struct Cracker<'a> {
    pub(super) instruction: &'a Instruction,
    bytes: &'a [u8],
    pub(super) slots: Vec<(u16, Slot)>,
    /// Registers that only form its addresses.
    address: Vec<Register>,
    read: Vec<Register>,
    pub(super) written: Vec<Register>,
    /// Bytes of its widest vector operand; 0 without one.
    vector_bytes: u8,
}

impl<'a> Cracker<'a> {
    pub(super) fn new(
        instruction: &'a Instruction,
        bytes: &'a [u8],
        slots: Vec<(u16, Slot)>,
        info: &mut InstructionInfoFactory,
    ) -> Self {
        let mut address = Vec::new();
        for register in [instruction.memory_base(), instruction.memory_index()] {
            push_register(&mut address, register);
        }
        address.extend_from_slice(operands::implied_pointers(instruction));
        let used = info.info(instruction);
        let mut read = Vec::new();
        let mut written = Vec::new();
        for register in used.used_registers() {
            let reads = matches!(
                register.access(),
                OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite
            );
            let writes = matches!(
                register.access(),
                OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
            );
            if reads {
                push_register(&mut read, register.register());
            }
            if writes {
                push_register(&mut written, register.register());
            }
        }
        if instruction.rflags_read() != 0 {
            read.push(Register::FLAGS);
        }
        if instruction.rflags_modified() != 0 {
            written.push(Register::FLAGS);
        }
        if operands::is_zero_idiom(instruction) {
            read.clear();
        }
        if instruction.is_stack_instruction() && address.is_empty() {
            push_register(&mut address, X86::RSP);
        }
        let explicit: Vec<Register> = (0..instruction.op_count())
            .filter(|&operand| instruction.op_kind(operand) == OpKind::Register)
            .filter_map(|operand| register_of(instruction.op_register(operand)))
            .collect();
        read.retain(|register| !address.contains(register) || explicit.contains(register));
        Cracker { instruction, bytes, slots, address, read, written, vector_bytes: operands::vector_bytes(instruction) }
    }

    pub(super) fn crack(self, micro_ops: &mut Vec<MicroOp>) {
        let first = micro_ops.len();
        match self.special() {
            Some(operation) => self.crack_special(operation, micro_ops),
            None => self.crack_ordinary(micro_ops),
        }
        debug_assert!(micro_ops.len() > first, "every instruction has a micro-operation");
        if let Some(last) = micro_ops.last_mut() {
            last.ends_instruction = true;
        }
    }

    /// The operation of an instruction that is a single micro-operation of its own kind.
    fn special(&self) -> Option<Operation> {
        if marker_of(self.bytes).is_some() {
            return Some(Operation::RoiMarker);
        }
        if self.is_string() {
            return Some(Operation::String);
        }
        let mnemonic = self.instruction.mnemonic();
        match persistence::operation_of(mnemonic) {
            // It has the operands of any store.
            Some(Operation::NonTemporalStore) => None,
            None if mnemonic == Mnemonic::Lfence => Some(Operation::Drain),
            None if self.slots.iter().any(|(_, slot)| slot.kind == SlotKind::Prefetch) => Some(Operation::Prefetch),
            None if self.is_atomic() => Some(Operation::Atomic(Fence::MFENCE)),
            operation => operation,
        }
    }

    fn is_atomic(&self) -> bool {
        let exchanges_memory = self.instruction.mnemonic() == Mnemonic::Xchg
            && self.slots.iter().any(|(_, slot)| slot.kind == SlotKind::Update);
        !self.slots.is_empty() && (self.instruction.has_lock_prefix() || exchanges_memory)
    }

    fn crack_special(&self, operation: Operation, micro_ops: &mut Vec<MicroOp>) {
        let mut micro_op = MicroOp { operation, ..MicroOp::default() };
        if let Some(marker) = marker_of(self.bytes) {
            micro_op.slot = marker.0;
        } else if let Some((number, slot)) = self.slots.first() {
            micro_op.slot = *number;
            micro_op.size = slot.size.max(1);
        }
        let barrier = (operation == Operation::Prefetch).then_some(Register::BARRIER);
        fill(&mut micro_op.sources, self.address.iter().chain(&self.read).copied().chain(barrier));
        if operation == Operation::String {
            fill(&mut micro_op.destinations, self.written.iter().copied());
            return self.push_string(micro_op, micro_ops);
        }
        let barrier = operation.holds_back_loads().then_some(Register::BARRIER);
        let is_atomic = matches!(operation, Operation::Atomic(_));
        let written = self.written.iter().copied().filter(|_| is_atomic);
        fill(&mut micro_op.destinations, barrier.into_iter().chain(written.clone()));
        micro_ops.push(micro_op);
        for register in written.skip(1) {
            let mut copy = MicroOp::default();
            copy.sources[0] = Register::BARRIER;
            copy.destinations[0] = register;
            micro_ops.push(copy);
        }
    }

    fn crack_ordinary(&self, micro_ops: &mut Vec<MicroOp>) {
        let is_load = |kind| matches!(kind, SlotKind::Load | SlotKind::Update | SlotKind::Gather);
        let is_store = |kind| matches!(kind, SlotKind::Store | SlotKind::Update | SlotKind::Scatter);
        let loads: Vec<_> = self.slots.iter().filter(|(_, slot)| is_load(slot.kind)).collect();
        let stores: Vec<_> = self.slots.iter().filter(|(_, slot)| is_store(slot.kind)).collect();
        let moves = arithmetic::is_move(self.instruction.mnemonic());
        let stack = self.instruction.is_stack_instruction();
        let mut written = self.written.clone();
        if stack {
            written.retain(|&register| register != STACK_POINTER);
        }
        let loads_directly = moves && loads.len() == 1 && stores.is_empty() && written.len() <= 2;
        for (order, (number, slot)) in loads.iter().enumerate() {
            let vector_bytes = self.vector_bytes_of(slot);
            let mut load = MicroOp { operation: Operation::Load, slot: *number, size: slot.size, ..MicroOp::default() };
            load.vector_bytes = vector_bytes;
            fill(&mut load.sources, self.address.iter().copied().chain([Register::BARRIER]));
            if loads_directly {
                fill(&mut load.destinations, written.iter().copied());
            } else {
                load.destinations[0] = Register::loaded(order);
            }
            micro_ops.push(load);
        }
        let stores_directly = moves && loads.is_empty() && !stores.is_empty();
        if !loads_directly && !stores_directly {
            self.push_operation(loads.len(), !stores.is_empty(), &written, micro_ops);
        }
        for (number, slot) in &stores {
            let operation = if persistence::is_non_temporal(self.instruction.mnemonic()) {
                Operation::NonTemporalStore
            } else {
                Operation::Store
            };
            let vector_bytes = self.vector_bytes_of(slot);
            let mut store = MicroOp { operation, slot: *number, size: slot.size, vector_bytes, ..MicroOp::default() };
            let data = if stores_directly { self.read.first().copied() } else { Some(Register::RESULT) };
            fill(&mut store.sources, self.address.iter().copied().chain(data));
            micro_ops.push(store);
        }
        if stack && self.written.contains(&STACK_POINTER) {
            let mut update = MicroOp::default();
            update.sources[0] = STACK_POINTER;
            update.destinations[0] = STACK_POINTER;
            micro_ops.push(update);
        }
    }

    /// Bytes of a vector in memory; 0 for anything else.
    fn vector_bytes_of(&self, slot: &Slot) -> u8 {
        u8::try_from(slot.size).map_or(0, |size| size.min(self.vector_bytes))
    }

    /// The operation between the loads and the stores.
    fn push_operation(&self, loads: usize, stores: bool, written: &[Register], micro_ops: &mut Vec<MicroOp>) {
        let mut operation = MicroOp { operation: arithmetic::operation_of(self.instruction), ..MicroOp::default() };
        if !operands::is_scalar(self.instruction) {
            operation.vector_bytes = self.vector_bytes;
        }
        let loaded = (0..loads.min(usize::from(Register::LOADED))).map(Register::loaded);
        let is_stack = self.instruction.is_stack_instruction();
        let read = self.read.iter().copied().filter(|&register| !(is_stack && register == STACK_POINTER));
        // Without a load or store, the address is itself an operand (`lea`).
        let address = self.address.iter().copied().filter(|_| loads == 0 && !stores);
        fill(&mut operation.sources, loaded.chain(address).chain(read));
        let result = stores.then_some(Register::RESULT);
        fill(&mut operation.destinations, result.into_iter().chain(written.iter().copied()));
        let left_over = written.len() + usize::from(stores);
        micro_ops.push(operation);
        // Results beyond the second register (`div`, `cpuid`) take further micro-operations.
        for &register in written.iter().skip(2 - usize::from(stores)).take(left_over.saturating_sub(2)) {
            let mut copy = operation;
            copy.operation = Operation::Integer;
            copy.vector_bytes = 0;
            copy.sources = [operation.destinations[0], Register::NONE, Register::NONE, Register::NONE];
            copy.destinations = [register, Register::NONE];
            micro_ops.push(copy);
        }
    }
}
