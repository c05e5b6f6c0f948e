//! Little programs, written into records by hand: real x86-64 instructions and the addresses that they access.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use fencepost_kernel::line::LINE_BYTES;
use fencepost_record::{
    AddressRange, AddressRanges, BlockBuilder, Bytes, Clock, CutPolicy, Event, Info, Record, SlotKind, ThreadId,
    Writer, WriterOptions,
};
use fencepost_sim::address_space::Placement;
use fencepost_sim::core::persist::PersistMode;
use fencepost_sim::host::ThreadPlacement;
use fencepost_sim::replay::simulation::{HostProgram, Options, Program};

/// Where the programs have their code.
const CODE: u64 = 0x40_0000;
/// Where they have volatile memory.
pub const VOLATILE: u64 = 0x1000_0000;
/// Where they have persistent memory, and how much of it.
pub const PERSISTENT: u64 = 0x7000_0000_0000;
const PERSISTENT_BYTES: u64 = 1 << 30;

/// An instruction; memory operands are addressed by `rbx`, those of vector gathers and scatters by `rax + 8 * zmm2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Instruction {
    Load,
    LoadByte,
    LoadLine,
    /// Loads the address that it loads from next: a step of a pointer chase.
    Chase,
    Store,
    StoreByte,
    StoreLine,
    Update,
    Exchange,
    LockedAdd,
    NonTemporal,
    NonTemporal16,
    NonTemporalLine,
    Clflush,
    Clflushopt,
    Clwb,
    Sfence,
    Mfence,
    Lfence,
    Prefetch,
    Push,
    Add,
    Multiply,
    Divide,
    FloatMultiply,
    FloatDivide,
    Branch,
    /// `rep movsb`: source before and after, destination before and after.
    CopyString,
    /// `rep stosb`: destination before and after.
    FillString,
    /// `repe cmpsb`: as [`Instruction::CopyString`], but it only reads.
    CompareStrings,
    /// Two elements; the others are masked off.
    Gather,
    /// Two elements; the others are masked off.
    Scatter,
    RoiBegin,
    RoiEnd,
}

type Encoding = (&'static [u8], &'static [(SlotKind, u16)]);

impl Instruction {
    /// The bytes, and the slots that an execution fills.
    fn encoding(self) -> Encoding {
        use Instruction as I;
        use SlotKind::{Flush, Gather, Load, Prefetch, Scatter, Store, StringDestination, StringSource, Update};
        match self {
            I::Load => (&[0x48, 0x8b, 0x03], &[(Load, 8)]),
            I::LoadByte => (&[0x8a, 0x03], &[(Load, 1)]),
            I::LoadLine => (&[0x62, 0xf1, 0xfe, 0x48, 0x6f, 0x0b], &[(Load, 64)]),
            I::Chase => (&[0x48, 0x8b, 0x1b], &[(Load, 8)]),
            I::Store => (&[0x48, 0x89, 0x03], &[(Store, 8)]),
            I::StoreByte => (&[0x88, 0x03], &[(Store, 1)]),
            I::StoreLine => (&[0x62, 0xf1, 0xfe, 0x48, 0x7f, 0x0b], &[(Store, 64)]),
            I::Update => (&[0x48, 0x01, 0x03], &[(Update, 8)]),
            I::Exchange => (&[0x48, 0x87, 0x03], &[(Update, 8)]),
            I::LockedAdd => (&[0xf0, 0x48, 0x01, 0x03], &[(Update, 8)]),
            I::NonTemporal => (&[0x48, 0x0f, 0xc3, 0x03], &[(Store, 8)]),
            I::NonTemporal16 => (&[0x66, 0x0f, 0xe7, 0x03], &[(Store, 16)]),
            I::NonTemporalLine => (&[0x62, 0xf1, 0x7d, 0x48, 0xe7, 0x03], &[(Store, 64)]),
            I::Clflush => (&[0x0f, 0xae, 0x3b], &[(Flush, 64)]),
            I::Clflushopt => (&[0x66, 0x0f, 0xae, 0x3b], &[(Flush, 64)]),
            I::Clwb => (&[0x66, 0x0f, 0xae, 0x33], &[(Flush, 64)]),
            I::Sfence => (&[0x0f, 0xae, 0xf8], &[]),
            I::Mfence => (&[0x0f, 0xae, 0xf0], &[]),
            I::Lfence => (&[0x0f, 0xae, 0xe8], &[]),
            I::Prefetch => (&[0x0f, 0x18, 0x0b], &[(Prefetch, 64)]),
            I::Push => (&[0x50], &[(Store, 8)]),
            I::Add => (&[0x48, 0x01, 0xc8], &[]),
            I::Multiply => (&[0x48, 0x0f, 0xaf, 0xc1], &[]),
            I::Divide => (&[0x48, 0xf7, 0xf1], &[]),
            I::FloatMultiply => (&[0xf2, 0x0f, 0x59, 0xc1], &[]),
            I::FloatDivide => (&[0xf2, 0x0f, 0x5e, 0xc1], &[]),
            I::Branch => (&[0x75, 0x00], &[]),
            I::CopyString => {
                (&[0xf3, 0xa4], &[(StringSource, 1), (StringSource, 1), (StringDestination, 1), (StringDestination, 1)])
            }
            I::FillString => (&[0xf3, 0xaa], &[(StringDestination, 1), (StringDestination, 1)]),
            I::CompareStrings => {
                (&[0xf3, 0xa6], &[(StringSource, 1), (StringSource, 1), (StringDestination, 1), (StringDestination, 1)])
            }
            I::Gather => (&[0x62, 0xf2, 0xfd, 0x49, 0x91, 0x0c, 0xd0], &[(Gather, 8); 8]),
            I::Scatter => (&[0x62, 0xf2, 0xfd, 0x49, 0xa1, 0x0c, 0xd0], &[(Scatter, 8); 8]),
            I::RoiBegin => (&[0x0f, 0x1f, 0x84, 0x00, 0x01, 0x00, 0x43, 0x50], &[]),
            I::RoiEnd => (&[0x0f, 0x1f, 0x84, 0x00, 0x02, 0x00, 0x43, 0x50], &[]),
        }
    }

    /// How many addresses an execution needs.
    pub fn slots(self) -> usize {
        self.encoding().1.len()
    }

    /// Bytes of an access by its first slot; 0 if there is none.
    pub fn size(self) -> u64 {
        self.encoding().1.first().map_or(0, |(_, size)| u64::from(*size))
    }

    fn is_non_temporal(self) -> bool {
        matches!(self, Instruction::NonTemporal | Instruction::NonTemporal16 | Instruction::NonTemporalLine)
    }
}

/// How often a line is written in the whole program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Writes {
    /// Times that an ordinary store or a locked instruction writes it: each makes a version, or one for each part that
    /// the core splits it into.
    pub stores: u32,
    /// How many of them are vectors of [`LINE_BYTES`].
    pub vectors: u32,
    /// Times that a non-temporal store writes it; several may combine into one version.
    pub non_temporal: u32,
}

/// One execution of one instruction.
pub type Execution = (Instruction, Vec<u64>);

/// Writes a program.
pub struct ProgramBuilder {
    writer: Writer<Vec<u8>>,
    blocks: HashMap<Vec<Instruction>, u32>,
    next_code: u64,
    writes: BTreeMap<u64, Writes>,
}

impl ProgramBuilder {
    pub fn new() -> ProgramBuilder {
        // Small frames, so that even little programs have several.
        let options = WriterOptions { frame_instructions: 100, ..WriterOptions::default() };
        let writer = Writer::new(Vec::new(), &Info::default(), options).expect("memory takes everything");
        ProgramBuilder { writer, blocks: HashMap::new(), next_code: CODE, writes: BTreeMap::new() }
    }

    /// `thread` executes these instructions as one block.
    pub fn execute(&mut self, thread: u32, block: &[Execution]) {
        self.execute_until(thread, block, block.len());
    }

    /// `thread` executes the first `executed` of these instructions, and is then interrupted if there are more.
    pub fn execute_until(&mut self, thread: u32, block: &[Execution], executed: usize) {
        let id = self.block(block.iter().map(|(instruction, _)| *instruction).collect());
        let slots: Vec<u64> = block.iter().flat_map(|(_, addresses)| addresses.iter().copied()).collect();
        self.writer.execute(ThreadId(thread), id, &slots).expect("memory takes everything");
        block[..executed].iter().for_each(|(instruction, addresses)| self.count_writes(*instruction, addresses));
        if executed < block.len() {
            self.event(thread, &Event::Interrupted { instructions: executed as u64 });
        }
    }

    /// `thread` executes one instruction with one memory operand, or none if `address` is 0.
    pub fn one(&mut self, thread: u32, instruction: Instruction, address: u64) {
        let addresses = if instruction.slots() == 0 { Vec::new() } else { vec![address] };
        self.execute(thread, &[(instruction, addresses)]);
    }

    pub fn event(&mut self, thread: u32, event: &Event) {
        self.writer.event(ThreadId(thread), event).expect("memory takes everything");
    }

    pub fn tick(&mut self) -> Clock {
        self.writer.tick()
    }

    pub fn finish(self) -> LittleProgram {
        let bytes = self.writer.seal("exit 0").expect("memory takes everything");
        let record = Record::open(Arc::new(Bytes::new("little.fencepost", bytes)), CutPolicy::Refuse);
        LittleProgram { program: record.and_then(Program::new).expect("it was just written"), writes: self.writes }
    }

    fn block(&mut self, instructions: Vec<Instruction>) -> u32 {
        if let Some(&id) = self.blocks.get(&instructions) {
            return id;
        }
        let mut block = BlockBuilder::at(self.next_code);
        for instruction in &instructions {
            let (bytes, slots) = instruction.encoding();
            block = block.instruction(bytes, slots);
            self.next_code += bytes.len() as u64;
        }
        // Every eighth block begins a page of its own, so that code misses too.
        if self.blocks.len() % 8 == 7 {
            self.next_code = (self.next_code | 0xfff) + 1;
        }
        let id = self.writer.add_block(block.build()).expect("it is a block");
        self.blocks.insert(instructions, id);
        id
    }

    fn count_writes(&mut self, instruction: Instruction, addresses: &[u64]) {
        let ranges: Vec<(u64, u64)> = match instruction {
            Instruction::CopyString => vec![(addresses[2], addresses[3])],
            Instruction::FillString => vec![(addresses[0], addresses[1])],
            Instruction::CompareStrings => Vec::new(),
            _ => {
                let written = instruction.encoding().1.iter().zip(addresses).filter(|((kind, _), _)| kind.writes());
                written.map(|((_, size), address)| (*address, *address + u64::from(*size))).collect()
            }
        };
        for (start, end) in ranges.into_iter().filter(|(start, end)| *start != 0 && start < end) {
            for line in start / LINE_BYTES..=(end - 1) / LINE_BYTES {
                let writes = self.writes.entry(line * LINE_BYTES).or_default();
                *(if instruction.is_non_temporal() { &mut writes.non_temporal } else { &mut writes.stores }) += 1;
                writes.vectors += u32::from(instruction == Instruction::StoreLine);
            }
        }
    }
}

/// A program, and how often it writes each of its lines (by their first virtual address).
pub struct LittleProgram {
    pub program: Program,
    pub writes: BTreeMap<u64, Writes>,
}

impl LittleProgram {
    /// The program on a host on which [`PERSISTENT`] memory is PM.
    pub fn on_host(&self) -> HostProgram {
        let range = AddressRange { start: PERSISTENT, end: PERSISTENT + PERSISTENT_BYTES };
        let persistent = AddressRanges::union([range]);
        HostProgram {
            program: self.program.clone(),
            placement: Placement::in_dram_and_pm(&persistent),
            thread_limits: Vec::new(),
        }
    }
}

/// The options under which the program's own flushes are all that is persisted.
pub fn options() -> Options {
    Options {
        persist: PersistMode::Program,
        pm_writes_limit: None,
        seed: 0,
        threads: ThreadPlacement::default(),
        instructions_limit: None,
        sample: None,
        transport: fencepost_sim::transport::Transport::None,
    }
}

/// Line `number` of persistent memory, by its virtual address.
pub const fn persistent_line(number: u64) -> u64 {
    PERSISTENT + number * LINE_BYTES
}
