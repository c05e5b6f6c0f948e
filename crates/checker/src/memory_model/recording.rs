//! Litmus tests as records: real x86-64 instructions and the addresses that they access, as a recorder would have
//! written them.
//!
//! Each thread of the test is a thread of the program, on a core of its own. They prepare the lines as the variation
//! says, meet at a barrier, and run. A guard is recorded as taken: whether its load observed what it takes is looked at
//! when the run is judged. AArch64 tests are recorded as their x86-64 analogues, which become the same micro-operations
//! as `DC CVAP`, `DMB` and `DSB` would.

use std::sync::Arc;

use fencepost_sim::address_space::Placement;
use fencepost_sim::line::LINE_BYTES;
use fencepost_sim::record::{
    AddressRange, AddressRanges, BlockBuilder, Bytes, CutPolicy, Event, Info, Record, SlotKind, ThreadId, Writer,
    WriterOptions,
};
use fencepost_sim::replay::simulation::{HostProgram, Program};

use super::litmus_test::{Fence, Flush, LineNumber, LitmusTest, Location, Statement};
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

/// `mov [rbx], rax`
const STORE: Encoding = (&[0x48, 0x89, 0x03], &[(SlotKind::Store, 8)]);
/// `mov rax, [rbx]`
const LOAD: Encoding = (&[0x48, 0x8b, 0x03], &[(SlotKind::Load, 8)]);
/// `xchg [rbx], rax`, which is locked without a prefix
const EXCHANGE: Encoding = (&[0x48, 0x87, 0x03], &[(SlotKind::Update, 8)]);
/// `movnti [rbx], rax`
const STORE_NON_TEMPORAL: Encoding = (&[0x48, 0x0f, 0xc3, 0x03], &[(SlotKind::Store, 8)]);
/// `clflush [rbx]`
const CLFLUSH: Encoding = (&[0x0f, 0xae, 0x3b], &[(SlotKind::Flush, 64)]);
/// `clflushopt [rbx]`
const CLFLUSHOPT: Encoding = (&[0x66, 0x0f, 0xae, 0x3b], &[(SlotKind::Flush, 64)]);
/// `clwb [rbx]`
const CLWB: Encoding = (&[0x66, 0x0f, 0xae, 0x33], &[(SlotKind::Flush, 64)]);
/// `sfence`
const SFENCE: Encoding = (&[0x0f, 0xae, 0xf8], &[]);
/// `mfence`
const MFENCE: Encoding = (&[0x0f, 0xae, 0xf0], &[]);
/// `lfence`: what follows it does not begin before the delay is over
const LFENCE: Encoding = (&[0x0f, 0xae, 0xe8], &[]);
/// `test rax, rax`
const TEST: Encoding = (&[0x48, 0x85, 0xc0], &[]);
/// `jnz` over nothing
const BRANCH: Encoding = (&[0x75, 0x00], &[]);
/// `divsd xmm1, xmm1`: each waits for the one before it
const DIVIDE: Encoding = (&[0xf2, 0x0f, 0x5e, 0xc9], &[]);

/// A program on its way into a record.
pub(super) struct Recording {
    writer: Writer<Vec<u8>>,
    blocks: Vec<(Vec<u8>, u32)>,
    next_code: u64,
}

impl Recording {
    /// A program of so many threads, which all have been created.
    pub(super) fn new(threads: u32) -> Recording {
        let writer = Writer::new(Vec::new(), &Info::default(), WriterOptions::default());
        let mut recording =
            Recording { writer: writer.expect("memory takes everything"), blocks: Vec::new(), next_code: CODE };
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
            (0..divisions).for_each(|_| self.execute(thread, DIVIDE, 0));
            self.execute(thread, LFENCE, 0);
        }
    }

    /// `thread` stores to an address.
    pub(super) fn store(&mut self, thread: u32, address: u64) {
        self.execute(thread, STORE, address);
    }

    /// `thread` stores to an address around the caches.
    pub(super) fn store_non_temporal(&mut self, thread: u32, address: u64) {
        self.execute(thread, STORE_NON_TEMPORAL, address);
    }

    /// `thread` writes a line back and drops it.
    pub(super) fn clflush(&mut self, thread: u32, address: u64) {
        self.execute(thread, CLFLUSH, address);
    }

    /// `thread` executes a fence.
    pub(super) fn fence(&mut self, thread: u32, fence: Fence) {
        self.execute(thread, if fence == Fence::Sfence { SFENCE } else { MFENCE }, 0);
    }

    /// `thread` loads so many lines of the set of `address` that nothing else stays in it.
    pub(super) fn evict(&mut self, thread: u32, address: u64) {
        let offset = address % SET_STRIDE_BYTES / LINE_BYTES * LINE_BYTES;
        for conflicting in 0..CONFLICTING_LINES {
            self.execute(thread, LOAD, CONFLICTING + conflicting * SET_STRIDE_BYTES + offset);
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
    let mut recording = Recording::new(all);
    let places = Places { test, variation };
    for (line, preparation) in variation.preparations.iter().enumerate() {
        let address = places.line(line);
        match *preparation {
            Preparation::Untouched => {}
            Preparation::Read { thread } => recording.execute(thread, LOAD, address),
            Preparation::Stored { thread } => recording.store(thread, address),
            Preparation::Flushed { thread } => {
                recording.store(thread, address);
                recording.clflush(thread, address);
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
        Statement::Load(location) => recording.execute(thread, LOAD, places.location(location)),
        Statement::If(location) => {
            recording.execute(thread, LOAD, places.location(location));
            recording.execute(thread, TEST, 0);
            recording.execute(thread, BRANCH, 0);
        }
        Statement::Flush(Flush::Clflush, location) => recording.clflush(thread, places.location(location)),
        Statement::Flush(Flush::Clwb, location) => {
            let encoding = if places.variation.is_clflushopt { CLFLUSHOPT } else { CLWB };
            recording.execute(thread, encoding, places.location(location));
        }
        Statement::Fence(fence) => recording.fence(thread, fence),
    }
}
