//! From one instruction to its micro-operations.
//!
//! A load, store or atomic is one micro-operation with the instruction's one slot, however many registers it moves:
//! cores that access less at once split it. The base register of a pre- or post-indexed access is advanced by a
//! micro-operation of its own, so that what uses the base does not wait for memory.

use yaxpeax_arm::armv8::a64::{Instruction, Opcode, Operand};

use super::operands::Operands;
use super::{access, arithmetic, persistence};
use crate::block::fill;
use crate::micro_op::{Awaited, Fence, MicroOp, Operation, Ordered, Register};
use fencepost_record::{Marker, Slot, SlotKind};

/// Registers that a micro-operation reads and writes at most.
const SOURCES: usize = 4;
const DESTINATIONS: usize = 2;

/// One instruction on its way to micro-operations.
pub(super) struct Cracker {
    /// `None`: not known.
    instruction: Option<Instruction>,
    marker: Option<Marker>,
    slots: Vec<(u16, Slot)>,
    operands: Operands,
}

impl Cracker {
    pub fn new(instruction: Option<Instruction>, marker: Option<Marker>, slots: Vec<(u16, Slot)>) -> Cracker {
        let operands = instruction.as_ref().map(Operands::of).unwrap_or_default();
        Cracker { instruction, marker, slots, operands }
    }

    pub fn crack(self, micro_ops: &mut Vec<MicroOp>) {
        let first = micro_ops.len();
        if let Some(Marker(code)) = self.marker {
            micro_ops.push(MicroOp { operation: Operation::RoiMarker, slot: code, ..MicroOp::default() });
        } else {
            self.crack_operation(micro_ops);
        }
        if let Some((base, step)) = self.operands.advanced {
            let sources = [base, step, Register::NONE, Register::NONE];
            micro_ops.push(MicroOp { sources, destinations: [base, Register::NONE], ..MicroOp::default() });
        }
        debug_assert!(micro_ops.len() > first, "every instruction has a micro-operation");
        if let Some(last) = micro_ops.last_mut() {
            last.ends_instruction = true;
        }
    }

    fn crack_operation(&self, micro_ops: &mut Vec<MicroOp>) {
        let opcode = self.instruction.map(|instruction| instruction.opcode);
        let persists = self
            .instruction
            .and_then(|instruction| persistence::operation_of(instruction.opcode, &instruction.operands));
        match persists {
            Some(Operation::Flush(flush)) => return self.push_flush(Operation::Flush(flush), micro_ops),
            Some(operation) => return push_fence(operation, micro_ops),
            None => {}
        }
        let first = micro_ops.len();
        // Instructions that are known have at most one slot.
        for &(number, slot) in &self.slots {
            match slot.kind {
                SlotKind::Load | SlotKind::Gather => self.push_load(number, slot, micro_ops),
                SlotKind::Store | SlotKind::Scatter => self.push_store(number, slot, micro_ops),
                SlotKind::Update => match opcode.and_then(access::atomic_order) {
                    Some(order) => self.push_atomic(number, slot, order, micro_ops),
                    None => {
                        self.push_load(number, slot, micro_ops);
                        self.push_store(number, slot, micro_ops);
                    }
                },
                SlotKind::Prefetch => {
                    let sources = self.operands.address.iter().copied().chain([Register::BARRIER]);
                    micro_ops.push(accessing(Operation::Prefetch, number, slot, sources));
                }
                // Cache maintenance that no simulated cache notices; and no instruction of this set repeats.
                SlotKind::Value | SlotKind::Flush | SlotKind::StringSource | SlotKind::StringDestination => {}
            }
        }
        if micro_ops.len() == first {
            self.push_computation(micro_ops);
        }
    }

    /// A load. Up to two registers come from it directly; more, and elements that are spread over registers or put
    /// into them, by operations that read what was loaded.
    fn push_load(&self, number: u16, slot: Slot, micro_ops: &mut Vec<MicroOp>) {
        let written = &self.operands.written;
        let acquired = self.instruction.filter(|instruction| access::acquires(instruction.opcode));
        let barrier = acquired.map(|_| Register::BARRIER);
        let sources = self.operands.address.iter().copied().chain([Register::BARRIER]);
        let mut load = accessing(Operation::Load, number, slot, sources);
        load.vector_bytes = self.vector_bytes_of(slot);
        let goes_on = self.permutes() || written.len() + usize::from(barrier.is_some()) > DESTINATIONS;
        if !goes_on {
            fill(&mut load.destinations, written.iter().copied().chain(barrier));
            micro_ops.push(load);
            return;
        }
        let loaded = Register::loaded(0);
        fill(&mut load.destinations, [loaded].into_iter().chain(barrier));
        micro_ops.push(load);
        for registers in written.chunks(DESTINATIONS) {
            let operation = if self.operands.has_vector { Operation::Vector } else { Operation::Integer };
            let mut part = MicroOp { operation, vector_bytes: self.operands.vector_bytes, ..MicroOp::default() };
            let kept = registers.iter().copied().filter(|register| self.operands.read.contains(register));
            fill(&mut part.sources, [loaded].into_iter().chain(kept));
            fill(&mut part.destinations, registers.iter().copied());
            micro_ops.push(part);
        }
    }

    /// A store. One that is exclusive reports its success by a micro-operation of its own.
    fn push_store(&self, number: u16, slot: Slot, micro_ops: &mut Vec<MicroOp>) {
        let data = self.gathered(self.operands.address.len(), micro_ops);
        let sources = self.operands.address.iter().copied().chain(data);
        let mut store = accessing(Operation::Store, number, slot, sources);
        store.vector_bytes = self.vector_bytes_of(slot);
        micro_ops.push(store);
        if !self.operands.written.is_empty() {
            let mut status = MicroOp { sources: store.sources, ..MicroOp::default() };
            fill(&mut status.destinations, self.operands.written.iter().copied());
            micro_ops.push(status);
        }
    }

    /// An atomic read-modify-write. It orders what its suffixes say, and completes no flush.
    fn push_atomic(&self, number: u16, slot: Slot, order: u8, micro_ops: &mut Vec<MicroOp>) {
        const ACQUIRE: u8 = 2;
        let orders = if order & ACQUIRE != 0 { Ordered::LoadsAndStores } else { Ordered::Stores };
        let operation = Operation::Atomic(Fence::new(orders, Awaited::Nothing));
        let data = self.gathered(self.operands.address.len(), micro_ops);
        let sources = self.operands.address.iter().copied().chain(data);
        let mut atomic = accessing(operation, number, slot, sources);
        let barrier = operation.holds_back_loads().then_some(Register::BARRIER);
        let results = || barrier.into_iter().chain(self.operands.written.iter().copied());
        fill(&mut atomic.destinations, results());
        micro_ops.push(atomic);
        for register in results().skip(DESTINATIONS) {
            let sources = [atomic.destinations[0], Register::NONE, Register::NONE, Register::NONE];
            micro_ops.push(MicroOp { sources, destinations: [register, Register::NONE], ..MicroOp::default() });
        }
    }

    fn push_flush(&self, operation: Operation, micro_ops: &mut Vec<MicroOp>) {
        let Some(&(number, slot)) = self.slots.first() else { return self.push_computation(micro_ops) };
        micro_ops.push(accessing(operation, number, slot, self.operands.read.iter().copied()));
    }

    /// What accesses no memory. No such instruction has more results than a micro-operation; a load may come here whose
    /// slot the record lacks.
    fn push_computation(&self, micro_ops: &mut Vec<MicroOp>) {
        let mut micro_op = self.operation();
        let data = self.gathered(self.operands.address.len(), micro_ops);
        fill(&mut micro_op.sources, self.operands.address.iter().copied().chain(data));
        fill(&mut micro_op.destinations, self.operands.written.iter().copied());
        micro_ops.push(micro_op);
    }

    /// The operation between registers.
    fn operation(&self) -> MicroOp {
        let has_vector = self.operands.has_vector;
        let operation = self
            .instruction
            .map_or(Operation::Integer, |instruction| arithmetic::operation_of(&instruction, has_vector));
        MicroOp { operation, vector_bytes: self.operands.vector_bytes, ..MicroOp::default() }
    }

    /// What is read besides the address, for a micro-operation with `taken` sources: the registers themselves, or, if
    /// they are too many or have to be interleaved first, the result of operations that read them.
    fn gathered(&self, taken: usize, micro_ops: &mut Vec<MicroOp>) -> Vec<Register> {
        let mut left = self.operands.read.clone();
        let interleaves = self.permutes() && self.slots.first().is_some_and(|(_, slot)| slot.kind == SlotKind::Store);
        let is_access = !self.slots.is_empty();
        let mut part = self.operation();
        if is_access && !self.operands.has_vector {
            part.operation = Operation::Integer;
        }
        while taken + left.len() > SOURCES || interleaves && left != [Register::RESULT] {
            fill(&mut part.sources, left.drain(..left.len().min(SOURCES)));
            part.destinations = [Register::RESULT, Register::NONE];
            micro_ops.push(part);
            part.sources = [Register::NONE; SOURCES];
            left.insert(0, Register::RESULT);
        }
        left
    }

    /// Whether elements change places between memory and registers.
    fn permutes(&self) -> bool {
        use Opcode as O;
        self.instruction.is_some_and(|instruction| {
            let is_lane = matches!(instruction.operands[0], Operand::SIMDRegisterGroupLane(..));
            match instruction.opcode {
                O::LD1R | O::LD2R | O::LD3R | O::LD4R | O::LD2 | O::LD3 | O::LD4 | O::ST2 | O::ST3 | O::ST4 => true,
                O::LD1 => is_lane,
                _ => false,
            }
        })
    }

    /// Bytes of a vector in memory; 0 for anything else.
    fn vector_bytes_of(&self, slot: Slot) -> u8 {
        if self.operands.has_vector { u8::try_from(slot.size).unwrap_or(0) } else { 0 }
    }
}

/// A micro-operation that accesses memory.
fn accessing(operation: Operation, number: u16, slot: Slot, sources: impl Iterator<Item = Register>) -> MicroOp {
    let mut micro_op = MicroOp { operation, slot: number, size: slot.size.max(1), ..MicroOp::default() };
    fill(&mut micro_op.sources, sources);
    micro_op
}

fn push_fence(operation: Operation, micro_ops: &mut Vec<MicroOp>) {
    let barrier = if operation.holds_back_loads() { Register::BARRIER } else { Register::NONE };
    micro_ops.push(MicroOp { operation, destinations: [barrier, Register::NONE], ..MicroOp::default() });
}
