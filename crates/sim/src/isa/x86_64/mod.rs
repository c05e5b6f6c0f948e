//! Cracks the recorded instruction bytes into micro-operations, once for each static block.
//!
//! Register dependencies come from the instruction bytes, memory operands from the record's slots.

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register as X86,
};

use super::micro_op::{Aside, DecodedBlock, Exit, MicroOp, Operation, Register, StringOperands, WarmBlock};
use crate::record::{Block, ISA_X86_64, Marker, Program, Slot, SlotKind};

/// The instruction sets that are decoded, by their names in records.
pub const INSTRUCTION_SETS: &[&str] = &[ISA_X86_64];

/// Decodes every block of a program, whose instruction set has to be one of [`INSTRUCTION_SETS`]; the result is indexed by block id.
pub fn decode_program(program: &Program) -> Vec<DecodedBlock> {
    let mut info = InstructionInfoFactory::new();
    program.blocks.iter().map(|block| decode_block(block, &mut info)).collect()
}

fn decode_block(block: &Block, info: &mut InstructionInfoFactory) -> DecodedBlock {
    let mut micro_ops = Vec::new();
    let mut asides = Vec::new();
    let mut address = block.address;
    let mut last_instruction = address;
    let mut exit = Exit::FallThrough;
    let mut slots = block.slots.iter().enumerate().peekable();
    let mut bytes = &block.bytes[..];
    for (index, &length) in block.instruction_lengths.iter().enumerate() {
        let (own, rest) = bytes.split_at(usize::from(length));
        bytes = rest;
        let mut own_slots = Vec::new();
        while let Some((number, slot)) = slots.next_if(|(_, slot)| usize::from(slot.instruction) == index) {
            own_slots.push((number as u16, *slot));
        }
        let instruction = Decoder::with_ip(64, own, address, DecoderOptions::NONE).decode();
        let cracker = Cracker::new(&instruction, own, own_slots, info);
        cracker.crack(&mut micro_ops);
        asides.push(Aside { operands: operands_aside(&instruction), cleared: cleared_beyond(&instruction) });
        exit = exit_of(&instruction);
        last_instruction = address;
        address = address.wrapping_add(length.into());
    }
    DecodedBlock {
        warm: WarmBlock::of(&micro_ops),
        micro_ops: micro_ops.into(),
        asides: asides.into(),
        slots: block.slots.len() as u32,
        instructions: block.instruction_lengths.len() as u32,
        address: block.address,
        end: address,
        last_instruction,
        exit,
    }
}

fn exit_of(instruction: &Instruction) -> Exit {
    match instruction.flow_control() {
        FlowControl::ConditionalBranch => Exit::Conditional,
        FlowControl::UnconditionalBranch => Exit::Jump,
        FlowControl::IndirectBranch => Exit::IndirectJump,
        FlowControl::Call if instruction.code() != Code::Syscall => Exit::Call,
        FlowControl::IndirectCall => Exit::IndirectCall,
        FlowControl::Return => Exit::Return,
        _ => Exit::FallThrough,
    }
}

/// How many immediates and instruction pointers an instruction brings to its operation (gem5: `limm` and `rdip`).
fn operands_aside(instruction: &Instruction) -> u8 {
    use Mnemonic::{Adc, Add, And, Cmp, Imul, Mov, Or, Push, Sbb, Sub, Test, Xor};
    let of_flow = match instruction.flow_control() {
        FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch => 2,
        FlowControl::Call if instruction.code() != Code::Syscall => 2,
        FlowControl::IndirectCall => 1,
        _ => 0,
    };
    let immediates = OpKind::Immediate8..=OpKind::Immediate32to64;
    let has_immediate = (0..instruction.op_count()).any(|operand| immediates.contains(&instruction.op_kind(operand)));
    let takes_immediate = match instruction.mnemonic() {
        Add | Sub | And | Or | Xor | Cmp | Test | Adc | Sbb | Imul | Push => has_immediate,
        // Into a register it is the operation itself.
        Mov => has_immediate && instruction.op0_kind() == OpKind::Memory,
        _ => false,
    };
    of_flow + u8::from(takes_immediate) + u8::from(instruction.is_ip_rel_memory_operand())
}

/// The vector register whose lowest element an instruction loads, and which it clears beyond that; none of any other instruction.
fn cleared_beyond(instruction: &Instruction) -> Register {
    use Mnemonic::{Movd, Movq, Movsd, Movss, Vmovd, Vmovq, Vmovsd, Vmovss};
    let to = instruction.op0_register();
    let loads = match instruction.mnemonic() {
        Movd | Movq | Vmovd | Vmovq => instruction.op0_kind() == OpKind::Register,
        // Between registers they leave the rest as it is.
        Movsd | Movss | Vmovsd | Vmovss => instruction.op1_kind() == OpKind::Memory,
        _ => false,
    };
    if loads && to.is_vector_register() { Register::vector(to.number() as u8) } else { Register::NONE }
}

/// One instruction on its way to micro-operations.
struct Cracker<'a> {
    instruction: &'a Instruction,
    bytes: &'a [u8],
    slots: Vec<(u16, Slot)>,
    /// Registers that only form addresses.
    address: Vec<Register>,
    read: Vec<Register>,
    written: Vec<Register>,
    /// Bytes of its widest vector operand; 0 without one.
    vector_bytes: u8,
}

impl<'a> Cracker<'a> {
    fn new(
        instruction: &'a Instruction,
        bytes: &'a [u8],
        slots: Vec<(u16, Slot)>,
        info: &mut InstructionInfoFactory,
    ) -> Self {
        let mut address = Vec::new();
        for register in [instruction.memory_base(), instruction.memory_index()] {
            push_register(&mut address, register);
        }
        if instruction.is_string_instruction() {
            // Their pointers are no operands that name a base.
            address.extend([Register::SOURCE_POINTER, Register::DESTINATION_POINTER]);
        }
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
        if is_zero_idiom(instruction) {
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
        Cracker { instruction, bytes, slots, address, read, written, vector_bytes: vector_bytes(instruction) }
    }

    fn crack(self, micro_ops: &mut Vec<MicroOp>) {
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

    /// The operation of an instruction that is one micro-operation of its own kind.
    fn special(&self) -> Option<Operation> {
        if let Some(_marker) = Marker::of_instruction(self.bytes) {
            return Some(Operation::RoiMarker);
        }
        if self.slots.iter().any(|(_, slot)| matches!(slot.kind, SlotKind::StringSource | SlotKind::StringDestination))
        {
            return Some(Operation::String);
        }
        Some(match self.instruction.mnemonic() {
            Mnemonic::Clflush => Operation::Clflush,
            Mnemonic::Clflushopt => Operation::Clflushopt,
            Mnemonic::Clwb => Operation::Clwb,
            Mnemonic::Sfence => Operation::Sfence,
            Mnemonic::Mfence => Operation::Mfence,
            Mnemonic::Lfence => Operation::Lfence,
            _ if self.slots.iter().any(|(_, slot)| slot.kind == SlotKind::Prefetch) => Operation::Prefetch,
            _ if self.is_atomic() => Operation::Atomic,
            _ => return None,
        })
    }

    fn is_atomic(&self) -> bool {
        let exchanges_memory = self.instruction.mnemonic() == Mnemonic::Xchg
            && self.slots.iter().any(|(_, slot)| slot.kind == SlotKind::Update);
        !self.slots.is_empty() && (self.instruction.has_lock_prefix() || exchanges_memory)
    }

    fn crack_special(&self, operation: Operation, micro_ops: &mut Vec<MicroOp>) {
        let mut micro_op = MicroOp { operation, ..MicroOp::default() };
        if let Some(marker) = Marker::of_instruction(self.bytes) {
            micro_op.slot = marker.0;
        } else if let Some((number, slot)) = self.slots.first() {
            micro_op.slot = *number;
            micro_op.size = slot.size.max(1);
        }
        let sources = self.address.iter().chain(&self.read).copied();
        fill(&mut micro_op.sources, sources.chain(self.is_held_back(operation)));
        match operation {
            Operation::Atomic => {
                fill(&mut micro_op.destinations, [Register::BARRIER].into_iter().chain(self.written.iter().copied()));
            }
            // A `clflush` holds loads back only where it is taken as a full fence: the core knows whether it is.
            Operation::Mfence | Operation::Clflush => micro_op.destinations[0] = Register::BARRIER,
            Operation::String => {
                micro_op.string = self.string_operands();
                fill(&mut micro_op.destinations, self.written.iter().copied());
                self.push_string(micro_op, micro_ops);
                return;
            }
            _ => {}
        }
        micro_ops.push(micro_op);
        let left_over = self.written.iter().skip(1).copied().filter(|_| operation == Operation::Atomic);
        for register in left_over {
            let mut copy = MicroOp::default();
            copy.sources[0] = Register::BARRIER;
            copy.destinations[0] = register;
            micro_ops.push(copy);
        }
    }

    /// A string instruction: the operation itself, then the update of the registers it does not name itself.
    fn push_string(&self, micro_op: MicroOp, micro_ops: &mut Vec<MicroOp>) {
        micro_ops.push(micro_op);
        for &register in self.written.iter().skip(2) {
            let mut update = MicroOp::default();
            update.sources[0] = self.written[0];
            update.destinations[0] = register;
            micro_ops.push(update);
        }
    }

    fn string_operands(&self) -> StringOperands {
        use Mnemonic::{Cmpsb, Cmpsd, Cmpsq, Cmpsw, Scasb, Scasd, Scasq, Scasw};
        let has = |kind| self.slots.iter().any(|(_, slot)| slot.kind == kind);
        let compares =
            matches!(self.instruction.mnemonic(), Cmpsb | Cmpsw | Cmpsd | Cmpsq | Scasb | Scasw | Scasd | Scasq);
        StringOperands {
            source: has(SlotKind::StringSource),
            destination: has(SlotKind::StringDestination),
            writes: has(SlotKind::StringDestination) && !compares,
        }
    }

    fn is_held_back(&self, operation: Operation) -> Option<Register> {
        matches!(operation, Operation::Prefetch).then_some(Register::BARRIER)
    }

    fn crack_ordinary(&self, micro_ops: &mut Vec<MicroOp>) {
        let is_load = |kind| matches!(kind, SlotKind::Load | SlotKind::Update | SlotKind::Gather);
        let is_store = |kind| matches!(kind, SlotKind::Store | SlotKind::Update | SlotKind::Scatter);
        let loads: Vec<_> = self.slots.iter().filter(|(_, slot)| is_load(slot.kind)).collect();
        let stores: Vec<_> = self.slots.iter().filter(|(_, slot)| is_store(slot.kind)).collect();
        let moves = is_move(self.instruction.mnemonic());
        let stack = self.instruction.is_stack_instruction();
        let mut written = self.written.clone();
        if stack {
            written.retain(|&register| register != Register::general(4));
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
            let operation = if is_non_temporal(self.instruction.mnemonic()) {
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
        if stack && self.written.contains(&Register::general(4)) {
            let mut update = MicroOp::default();
            update.sources[0] = Register::general(4);
            update.destinations[0] = Register::general(4);
            micro_ops.push(update);
        }
    }

    /// Bytes of a vector that lies in memory; 0 for anything else.
    fn vector_bytes_of(&self, slot: &Slot) -> u8 {
        u8::try_from(slot.size).map_or(0, |size| size.min(self.vector_bytes))
    }

    /// The operation between the loads and the stores.
    fn push_operation(&self, loads: usize, stores: bool, written: &[Register], micro_ops: &mut Vec<MicroOp>) {
        let mut operation = MicroOp { operation: operation_of(self.instruction), ..MicroOp::default() };
        if !is_scalar(self.instruction) {
            operation.vector_bytes = self.vector_bytes;
        }
        let loaded = (0..loads.min(usize::from(Register::LOADED))).map(Register::loaded);
        let stack_pointer = Register::general(4);
        let is_stack = self.instruction.is_stack_instruction();
        let read = self.read.iter().copied().filter(|&register| !(is_stack && register == stack_pointer));
        // An address that nothing is loaded from or stored to is itself an operand (`lea`).
        let address = self.address.iter().copied().filter(|_| loads == 0 && !stores);
        fill(&mut operation.sources, loaded.chain(address).chain(read));
        let result = stores.then_some(Register::RESULT);
        fill(&mut operation.destinations, result.into_iter().chain(written.iter().copied()));
        let left_over = written.len() + usize::from(stores);
        micro_ops.push(operation);
        // A result in more than two registers (`div`, `cpuid`) takes further micro-operations.
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

fn fill<const N: usize>(places: &mut [Register; N], registers: impl Iterator<Item = Register>) {
    for (place, register) in places.iter_mut().zip(registers) {
        *place = register;
    }
}

fn push_register(list: &mut Vec<Register>, register: X86) {
    if let Some(register) = register_of(register)
        && !list.contains(&register)
    {
        list.push(register);
    }
}

fn register_of(register: X86) -> Option<Register> {
    let full = register.full_register();
    if full.is_gpr64() {
        Some(Register::general(full.number() as u8))
    } else if full.is_vector_register() {
        Some(Register::vector(full.number() as u8))
    } else if full.is_k() {
        Some(Register::mask(full.number() as u8))
    } else if full.is_st() || full.is_mm() {
        Some(Register::X87)
    } else {
        None
    }
}

/// `xor r, r` and its kin: the result depends on nothing.
fn is_zero_idiom(instruction: &Instruction) -> bool {
    use Mnemonic::{Pxor, Sub, Vpxor, Vpxord, Vpxorq, Vxorpd, Vxorps, Xor, Xorpd, Xorps};
    let clears =
        matches!(instruction.mnemonic(), Xor | Sub | Pxor | Xorps | Xorpd | Vpxor | Vpxord | Vpxorq | Vxorps | Vxorpd);
    let last = instruction.op_count().wrapping_sub(1);
    clears
        && last >= 1
        && instruction.op_kind(last) == OpKind::Register
        && instruction.op_kind(last - 1) == OpKind::Register
        && instruction.op_register(last) == instruction.op_register(last - 1)
}

/// Bytes of the widest vector register among the operands.
fn vector_bytes(instruction: &Instruction) -> u8 {
    let registers = (0..instruction.op_count())
        .filter(|&operand| instruction.op_kind(operand) == OpKind::Register)
        .map(|operand| instruction.op_register(operand));
    registers.filter(|register| register.is_vector_register()).map(|register| register.size() as u8).max().unwrap_or(0)
}

/// Whether the instruction computes with the lowest element of vector registers alone.
fn is_scalar(instruction: &Instruction) -> bool {
    let name = format!("{:?}", instruction.mnemonic()).to_ascii_lowercase();
    let stem = name.trim_start_matches('v');
    let of_one_element = ["movd", "movq", "pextr", "pinsr", "extractps"]
        .iter()
        .any(|start| stem.strip_prefix(start).is_some_and(|rest| rest.len() <= 1));
    let converts_one = stem.starts_with("cvt") && ["sd2", "ss2", "si2"].iter().any(|from| stem.contains(from));
    // `pmaxsd` and its kin are of packed integers.
    let ends_as_one = !stem.starts_with('p') && (stem.ends_with("ss") || stem.ends_with("sd"));
    of_one_element || converts_one || ends_as_one
}

/// Whether the instruction only moves a value between a register and memory, so that it needs no operation of its own.
fn is_move(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        mnemonic,
        M::Mov
            | M::Movzx
            | M::Movsx
            | M::Movsxd
            | M::Movbe
            | M::Movaps
            | M::Movapd
            | M::Movups
            | M::Movupd
            | M::Movdqa
            | M::Movdqu
            | M::Movss
            | M::Movsd
            | M::Movd
            | M::Movq
            | M::Lddqu
            | M::Movddup
            | M::Vmovaps
            | M::Vmovapd
            | M::Vmovups
            | M::Vmovupd
            | M::Vmovdqa
            | M::Vmovdqu
            | M::Vmovdqa32
            | M::Vmovdqa64
            | M::Vmovdqu8
            | M::Vmovdqu16
            | M::Vmovdqu32
            | M::Vmovdqu64
            | M::Vmovss
            | M::Vmovsd
            | M::Vmovd
            | M::Vmovq
            | M::Vlddqu
            | M::Vbroadcastss
            | M::Vbroadcastsd
            | M::Push
            | M::Pop
    ) || is_non_temporal(mnemonic)
}

fn is_non_temporal(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        mnemonic,
        M::Movnti
            | M::Movntdq
            | M::Movntps
            | M::Movntpd
            | M::Movntq
            | M::Movntss
            | M::Movntsd
            | M::Vmovntdq
            | M::Vmovntps
            | M::Vmovntpd
    )
}

fn operation_of(instruction: &Instruction) -> Operation {
    if !matches!(
        instruction.flow_control(),
        FlowControl::Next | FlowControl::Interrupt | FlowControl::Exception | FlowControl::XbeginXabortXend
    ) {
        return Operation::Branch;
    }
    match instruction.mnemonic() {
        Mnemonic::Imul | Mnemonic::Mul | Mnemonic::Mulx => return Operation::Multiply,
        Mnemonic::Div | Mnemonic::Idiv => return Operation::Divide,
        _ => {}
    }
    let uses_vectors = (0..instruction.op_count()).any(|operand| {
        instruction.op_kind(operand) == OpKind::Register && {
            let full = instruction.op_register(operand).full_register();
            full.is_vector_register() || full.is_st() || full.is_mm()
        }
    });
    let name = format!("{:?}", instruction.mnemonic()).to_ascii_lowercase();
    let is_x87 = instruction.encoding() == iced_x86::EncodingKind::Legacy && name.starts_with('f');
    if !uses_vectors && !is_x87 {
        return Operation::Integer;
    }
    let stem = name.trim_start_matches('v');
    if is_x87 { float_operation(&name[1..]) } else { vector_operation(stem) }
}

/// Floating-point arithmetic is known by its stem and its `ss`, `sd`, `ps` or `pd`.
fn vector_operation(stem: &str) -> Operation {
    let is_float = ["ss", "sd", "ps", "pd"].iter().any(|kind| stem.ends_with(kind));
    let starts = |stems: &[&str]| stems.iter().any(|start| stem.starts_with(start));
    if is_float && starts(&["div", "sqrt"]) {
        Operation::FloatDivide
    } else if is_float && starts(&["mul", "fm", "fnm", "dpp"]) {
        Operation::FloatMultiply
    } else if (is_float && starts(&["add", "sub", "cmp", "max", "min", "hadd", "hsub", "round", "rndscale"]))
        || starts(&["cvt", "comis", "ucomis"])
    {
        Operation::FloatAdd
    } else {
        Operation::Vector
    }
}

fn float_operation(stem: &str) -> Operation {
    let starts = |stems: &[&str]| stems.iter().any(|start| stem.starts_with(start));
    if starts(&["div", "idiv", "sqrt", "sin", "cos", "ptan", "patan", "yl2x", "prem", "2xm1", "scale"]) {
        Operation::FloatDivide
    } else if starts(&["mul", "imul"]) {
        Operation::FloatMultiply
    } else if starts(&["add", "sub", "iadd", "isub", "com", "ucom", "icom", "rndint"]) {
        Operation::FloatAdd
    } else {
        Operation::Vector
    }
}
