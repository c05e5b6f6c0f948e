//! Litmus tests as records: real instructions and the addresses that they access, as a recorder would have written
//! them.
//!
//! Each thread of the test is a thread of the program, on a core of its own. They prepare the lines as the variation
//! says, meet at a barrier, and run. A guard is recorded as taken: whether its load observed what it takes is looked at
//! when the run is judged.

use std::sync::Arc;

use fencepost_kernel::line::LINE_BYTES;
use fencepost_record::{
    AddressRange, AddressRanges, BlockBuilder, Bytes, CutPolicy, Event, ISA_AARCH64, ISA_X86_64, Info, Record,
    SlotKind, ThreadId, Writer, WriterOptions,
};
use fencepost_sim::address_space::Placement;
use fencepost_sim::replay::simulation::{HostProgram, Program};

use super::litmus_test::{Fence, Flush, Isa, LineNumber, LitmusTest, Location, Statement};
use super::variation::{Preparation, Variation};

/// Where the programs have their code.
const CODE: u64 = 0x40_0000;
/// Where they have volatile memory.
const VOLATILE: u64 = 0x1000_0000;
/// Where they meet.
const BARRIER: u64 = VOLATILE;
/// Lines from here on are loaded to force others out of the caches.
const CONFLICTING: u64 = VOLATILE + 0x10_0000;
/// Lines of one set of a cache are multiples of this apart: larger than any way of the [caches](super::fabrics) that
/// are simulated.
const SET_STRIDE_BYTES: u64 = 4096;
/// How many lines of a set are loaded to force out a line: more than the last level has ways.
const CONFLICTING_LINES: u64 = 6;
/// Where they have persistent memory, and how much of it.
const PERSISTENT: u64 = 0x7000_0000_0000;
const PERSISTENT_BYTES: u64 = 1 << 20;
/// Bytes of a location.
const WORD_BYTES: u64 = 8;

type Encoding = (&'static [u8], &'static [(SlotKind, u16)]);

/// What tests are written in; memory operands are addressed by one register.
struct Assembly {
    isa: &'static str,
    store: Encoding,
    load: Encoding,
    /// Stores the line back to the persistent domain, ordered by fences alone.
    write_back: Encoding,
    /// Another one that is ordered alike.
    write_back_and_drop: Encoding,
    /// Makes a line durable that its thread has just stored to, and drops it.
    persist: &'static [Encoding],
    /// Begins nothing behind it before everything before it is complete.
    serialise: Encoding,
    /// Leaves the thread if what was loaded last is 0; taken to be not taken.
    guard: &'static [Encoding],
    /// Divides; each waits for the one before it.
    divide: Encoding,
}

const X86_64: Assembly = Assembly {
    isa: ISA_X86_64,
    // mov [rbx], rax
    store: (&[0x48, 0x89, 0x03], &[(SlotKind::Store, 8)]),
    // mov rax, [rbx]
    load: (&[0x48, 0x8b, 0x03], &[(SlotKind::Load, 8)]),
    // clwb [rbx]
    write_back: (&[0x66, 0x0f, 0xae, 0x33], &[(SlotKind::Flush, 64)]),
    // clflushopt [rbx]
    write_back_and_drop: (&[0x66, 0x0f, 0xae, 0x3b], &[(SlotKind::Flush, 64)]),
    persist: &[CLFLUSH],
    // lfence
    serialise: (&[0x0f, 0xae, 0xe8], &[]),
    // test rax, rax; jnz over nothing
    guard: &[(&[0x48, 0x85, 0xc0], &[]), (&[0x75, 0x00], &[])],
    // divsd xmm1, xmm1
    divide: (&[0xf2, 0x0f, 0x5e, 0xc9], &[]),
};

const AARCH64: Assembly = Assembly {
    isa: ISA_AARCH64,
    // str x0, [x1]
    store: (&0xf900_0020_u32.to_le_bytes(), &[(SlotKind::Store, 8)]),
    // ldr x0, [x1]
    load: (&0xf940_0020_u32.to_le_bytes(), &[(SlotKind::Load, 8)]),
    // dc cvap, x1; there is none that invalidates
    write_back: DC_CVAP,
    write_back_and_drop: DC_CVAP,
    persist: &[DC_CVAP, DSB, DC_CIVAC, DSB],
    // isb
    serialise: (&0xd503_3fdf_u32.to_le_bytes(), &[]),
    // cbz x0, .+4
    guard: &[(&0xb400_0020_u32.to_le_bytes(), &[])],
    // fdiv d1, d1, d1
    divide: (&0x1e61_1821_u32.to_le_bytes(), &[]),
};

/// `xchg [rbx], rax`, which is locked without a prefix
const EXCHANGE: Encoding = (&[0x48, 0x87, 0x03], &[(SlotKind::Update, 8)]);
/// `movnti [rbx], rax`
const STORE_NON_TEMPORAL: Encoding = (&[0x48, 0x0f, 0xc3, 0x03], &[(SlotKind::Store, 8)]);
/// `clflush [rbx]`
const CLFLUSH: Encoding = (&[0x0f, 0xae, 0x3b], &[(SlotKind::Flush, 64)]);
/// `sfence`
const SFENCE: Encoding = (&[0x0f, 0xae, 0xf8], &[]);
/// `mfence`
const MFENCE: Encoding = (&[0x0f, 0xae, 0xf0], &[]);
/// `dc cvap, x1`
const DC_CVAP: Encoding = (&0xd50b_7c21_u32.to_le_bytes(), &[(SlotKind::Flush, 64)]);
/// `dc civac, x1`
const DC_CIVAC: Encoding = (&0xd50b_7e21_u32.to_le_bytes(), &[(SlotKind::Flush, 64)]);
/// `dmb ish`
const DMB: Encoding = (&0xd503_3bbf_u32.to_le_bytes(), &[]);
/// `dsb ish`
const DSB: Encoding = (&0xd503_3b9f_u32.to_le_bytes(), &[]);

impl Assembly {
    fn of(isa: Isa) -> &'static Assembly {
        match isa {
            Isa::X86 => &X86_64,
            Isa::Arm => &AARCH64,
        }
    }
}

fn encoding_of(fence: Fence) -> Encoding {
    match fence {
        Fence::Sfence => SFENCE,
        Fence::Mfence => MFENCE,
        Fence::Dmb => DMB,
        Fence::Dsb => DSB,
    }
}

/// A program on its way into a record.
pub(super) struct Recording {
    writer: Writer<Vec<u8>>,
    assembly: &'static Assembly,
    blocks: Vec<(Vec<u8>, u32)>,
    next_code: u64,
}

impl Recording {
    /// A program of so many threads, which all have been created.
    pub(super) fn new(isa: Isa, threads: u32) -> Recording {
        let assembly = Assembly::of(isa);
        let info = Info { isa: assembly.isa.into(), ..Info::default() };
        let writer = Writer::new(Vec::new(), &info, WriterOptions::default()).expect("memory takes everything");
        let mut recording = Recording { writer, assembly, blocks: Vec::new(), next_code: CODE };
        recording.begin(0);
        for thread in 1..threads {
            let clock = recording.writer.tick();
            recording.event(0, &Event::ThreadCreate { clock, thread: ThreadId(thread) });
            recording.begin(thread);
        }
        recording
    }

    fn begin(&mut self, thread: u32) {
        let clock = self.writer.tick();
        self.event(thread, &Event::ThreadStart { clock, kernel_tid: 0, stack_low: 0, stack_high: 0 });
    }

    fn event(&mut self, thread: u32, event: &Event) {
        self.writer.event(ThreadId(thread), event).expect("memory takes everything");
    }

    /// All threads wait for each other.
    pub(super) fn meet(&mut self, threads: u32) {
        for thread in 0..threads {
            let clock = self.writer.tick();
            let participants = u64::from(threads);
            self.event(thread, &Event::BarrierWait { clock, object: BARRIER, participants, generation: 0 });
        }
    }

    /// `thread` executes an instruction; `address` is that of its memory operand, if it has one.
    fn execute(&mut self, thread: u32, (bytes, slots): Encoding, address: u64) {
        let known = self.blocks.iter().find(|(own, _)| own == bytes).map(|(_, block)| *block);
        let block = known.unwrap_or_else(|| {
            let built = BlockBuilder::at(self.next_code).instruction(bytes, slots).build();
            self.next_code += LINE_BYTES;
            let block = self.writer.add_block(built).expect("it is a block");
            self.blocks.push((bytes.to_vec(), block));
            block
        });
        let values = if slots.is_empty() { &[][..] } else { &[address] };
        self.writer.execute(ThreadId(thread), block, values).expect("memory takes everything");
    }

    /// `thread` is busy for so many divisions, and begins nothing before.
    pub(super) fn delay(&mut self, thread: u32, divisions: u32) {
        if divisions > 0 {
            (0..divisions).for_each(|_| self.execute(thread, self.assembly.divide, 0));
            self.execute(thread, self.assembly.serialise, 0);
        }
    }

    /// `thread` stores to an address.
    pub(super) fn store(&mut self, thread: u32, address: u64) {
        self.execute(thread, self.assembly.store, address);
    }

    /// `thread` stores to an address around the caches.
    pub(super) fn store_non_temporal(&mut self, thread: u32, address: u64) {
        self.execute(thread, STORE_NON_TEMPORAL, address);
    }

    /// `thread` writes a line back and drops it.
    pub(super) fn clflush(&mut self, thread: u32, address: u64) {
        self.execute(thread, CLFLUSH, address);
    }

    /// `thread` loads from an address.
    fn load(&mut self, thread: u32, address: u64) {
        self.execute(thread, self.assembly.load, address);
    }

    /// `thread` makes a line durable that it has just stored to, and drops it.
    fn persist(&mut self, thread: u32, address: u64) {
        for encoding in self.assembly.persist {
            self.execute(thread, *encoding, address);
        }
    }

    /// `thread` executes a fence.
    pub(super) fn fence(&mut self, thread: u32, fence: Fence) {
        self.execute(thread, encoding_of(fence), 0);
    }

    /// `thread` loads so many lines of the set of `address` that nothing else stays in it.
    pub(super) fn evict(&mut self, thread: u32, address: u64) {
        let offset = address % SET_STRIDE_BYTES / LINE_BYTES * LINE_BYTES;
        for conflicting in 0..CONFLICTING_LINES {
            self.execute(thread, self.assembly.load, CONFLICTING + conflicting * SET_STRIDE_BYTES + offset);
        }
    }

    /// The program, on a host for which [`address_of_line`] is PM.
    pub(super) fn finish(self) -> HostProgram {
        let bytes = self.writer.seal("exit 0").expect("memory takes everything");
        let record = Record::open(Arc::new(Bytes::new("litmus.fencepost", bytes)), CutPolicy::Refuse);
        let range = AddressRange { start: PERSISTENT, end: PERSISTENT + PERSISTENT_BYTES };
        HostProgram {
            program: record.and_then(Program::new).expect("it was just written"),
            placement: Placement::in_dram_and_pm(&AddressRanges::union([range])),
            thread_limits: Vec::new(),
        }
    }
}

/// The virtual address of the PM line at `place`.
pub(super) fn address_of_line(place: u64) -> u64 {
    PERSISTENT + place * LINE_BYTES
}

/// The program of `test` as `variation` has it.
pub(super) fn record(test: &LitmusTest, variation: &Variation) -> HostProgram {
    let own = test.threads.len() as u32;
    let all = own + u32::from(!variation.evictions.is_empty());
    let mut recording = Recording::new(test.isa, all);
    let places = Places { test, variation };
    for (line, preparation) in variation.preparations.iter().enumerate() {
        let address = places.line(line);
        match *preparation {
            Preparation::Untouched => {}
            Preparation::Read { thread } => recording.load(thread, address),
            Preparation::Stored { thread } => recording.store(thread, address),
            Preparation::Flushed { thread } => {
                recording.store(thread, address);
                recording.persist(thread, address);
            }
        }
    }
    recording.meet(all);
    for (thread, statements) in (0..).zip(&test.threads) {
        for (statement, delay) in statements.iter().zip(&variation.delays[thread as usize]) {
            recording.delay(thread, *delay);
            perform(&mut recording, thread, *statement, &places);
        }
    }
    for eviction in &variation.evictions {
        recording.delay(own, eviction.delay);
        recording.evict(own, places.line(eviction.line));
    }
    recording.finish()
}

/// Where everything lies.
struct Places<'a> {
    test: &'a LitmusTest,
    variation: &'a Variation,
}

impl Places<'_> {
    fn line(&self, line: LineNumber) -> u64 {
        address_of_line(self.variation.places[line])
    }

    fn location(&self, location: Location) -> u64 {
        let line = self.test.lines[location];
        let before = self.test.lines[..location].iter().filter(|own| **own == line).count() as u64;
        self.line(line) + WORD_BYTES * before
    }
}

fn perform(recording: &mut Recording, thread: u32, statement: Statement, places: &Places<'_>) {
    match statement {
        Statement::Store(location, _) => recording.store(thread, places.location(location)),
        Statement::Exchange(location, _) => recording.execute(thread, EXCHANGE, places.location(location)),
        Statement::Load(location) => recording.load(thread, places.location(location)),
        Statement::If(location) => {
            recording.load(thread, places.location(location));
            for guard in recording.assembly.guard {
                recording.execute(thread, *guard, 0);
            }
        }
        Statement::Flush(Flush::Clflush, location) => recording.clflush(thread, places.location(location)),
        Statement::Flush(Flush::Clwb, location) => {
            let Assembly { write_back, write_back_and_drop, .. } = *recording.assembly;
            let encoding = if places.variation.is_clflushopt { write_back_and_drop } else { write_back };
            recording.execute(thread, encoding, places.location(location));
        }
        Statement::Fence(fence) => recording.fence(thread, fence),
    }
}

#[cfg(test)]
mod tests {
    use fencepost_isa::InstructionSet;
    use fencepost_isa::micro_op::{Awaited, FlushOrder, Operation};
    use fencepost_sim::cache::config::PointOfCoherence;

    use super::*;

    fn operation(assembly: &Assembly, (bytes, _): Encoding) -> Operation {
        let set = InstructionSet::from_name(assembly.isa).expect("it is replayed");
        set.persist_operation(bytes).expect("it is a flush or a fence")
    }

    #[test]
    fn what_persists_a_line_makes_it_durable_and_drops_it_before_anything_behind_it() {
        for assembly in [&X86_64, &AARCH64] {
            let (mut is_durable, mut is_dropped, mut is_awaited) = (false, false, true);
            for encoding in assembly.persist {
                match operation(assembly, *encoding) {
                    Operation::Flush(flush) => {
                        assert!(is_awaited, "{}: a flush behind another one that may be under way", assembly.isa);
                        is_durable |= PointOfCoherence::Volatile.persists(flush);
                        is_dropped |= flush.invalidates();
                        is_awaited = flush.order() == FlushOrder::Stores;
                        assert!(is_durable, "{}: it is dropped only once it is durable", assembly.isa);
                    }
                    Operation::Fence(fence) => is_awaited |= fence.awaits() == Awaited::Completion,
                    other => panic!("{other:?} persists nothing"),
                }
            }
            assert!(is_durable && is_dropped && is_awaited, "{}", assembly.isa);
        }
    }

    #[test]
    fn what_writes_a_line_back_makes_it_durable_and_is_ordered_by_fences_alone() {
        for assembly in [&X86_64, &AARCH64] {
            for encoding in [assembly.write_back, assembly.write_back_and_drop] {
                let Operation::Flush(flush) = operation(assembly, encoding) else { panic!("it is a flush") };
                assert!(PointOfCoherence::Volatile.persists(flush), "{}", assembly.isa);
                assert_eq!(flush.order(), FlushOrder::Fences, "{}", assembly.isa);
            }
        }
    }
}
