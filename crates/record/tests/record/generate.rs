//! Random records, and beside each what a reader has to find in it.

use std::sync::Arc;

use fencepost_record::{
    BlockBuilder, Bytes, Clock, Codec, CutPolicy, Event, Frame, FutexOutcome, Info, MappingKind, MarkKind, PersistCall,
    Program, Protection, Record, RecordError, SlotKind, ThreadId, Writer, WriterOptions,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// What one thread does next.
#[derive(Clone, Debug)]
pub enum Action {
    /// Executes a block, some times in a row, with addresses that move on by a stride.
    Execute { block: usize, times: u64, base: u64, stride: u64, with_values: bool, interrupted_after: Option<u64> },
    /// Something happens between blocks.
    Happen(Event),
}

/// Length in bytes, and kind and size of each slot.
pub type PlannedInstruction = (u8, Vec<(SlotKind, u16)>);

/// A random record before it is written.
#[derive(Clone, Debug)]
pub struct Plan {
    pub options: WriterOptions,
    /// Of each block its instructions.
    pub blocks: Vec<Vec<PlannedInstruction>>,
    pub actions: Vec<(u32, Action)>,
}

/// What one thread did, over all its frames.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadContents {
    pub steps: Vec<u32>,
    pub slots: Vec<u64>,
    pub events: Vec<Event>,
    pub instructions: u64,
    /// Of each write with a value the index of its slot, and the value.
    pub values: Vec<(usize, Vec<u8>)>,
}

impl ThreadContents {
    /// Adds what a frame holds.
    pub fn extend(&mut self, frame: &Frame) {
        for written in &frame.written {
            let bytes = &frame.values[written.start as usize..][..written.length as usize];
            self.values.push((self.slots.len() + written.slot as usize, bytes.to_vec()));
        }
        self.steps.extend_from_slice(&frame.steps);
        self.slots.extend_from_slice(&frame.slots);
        self.events.extend_from_slice(&frame.events);
        self.instructions += frame.instructions;
    }

    /// Whether this is what a reader of `whole` has seen after some of its frames.
    pub fn is_prefix_of(&self, whole: &Self) -> bool {
        whole.steps.starts_with(&self.steps)
            && whole.slots.starts_with(&self.slots)
            && whole.events.starts_with(&self.events)
            && whole.values.starts_with(&self.values)
    }
}

pub fn open(bytes: Vec<u8>, cut: CutPolicy) -> Result<Record, RecordError> {
    Record::open(Arc::new(Bytes::new("test.fencepost", bytes)), cut)
}

/// All that a reader finds, thread by thread.
pub fn read(record: &Record) -> Result<Vec<ThreadContents>, RecordError> {
    let mut frame = Frame::default();
    let threads = (0..record.threads() as u32).map(|thread| {
        let mut contents = ThreadContents::default();
        let mut reader = record.reader(ThreadId(thread));
        while reader.next_frame(&mut frame)? {
            assert_eq!(frame.first_instruction, contents.instructions, "frames follow each other");
            contents.extend(&frame);
        }
        Ok(contents)
    });
    threads.collect()
}

impl Plan {
    /// Writes the record, sealed or not, and says what is in it.
    pub fn write(&self, is_sealed: bool) -> (Vec<u8>, Vec<ThreadContents>) {
        let mut writer = Writer::new(Vec::new(), &Info::default(), self.options).unwrap();
        let mut threads: Vec<ThreadContents> = Vec::new();
        let mut ids = vec![0; self.blocks.len()];
        for (thread, action) in &self.actions {
            let index = *thread as usize;
            threads.resize(threads.len().max(index + 1), ThreadContents::default());
            let (thread, contents) = (ThreadId(*thread), &mut threads[index]);
            match action {
                Action::Happen(event) => {
                    writer.event(thread, event).unwrap();
                    contents.steps.push(0);
                    contents.events.push(event.clone());
                }
                Action::Execute { block, .. } => {
                    // Blocks are added when they first run, as a recorder does.
                    let block = block % self.blocks.len();
                    if ids[block] == 0 {
                        ids[block] = self.add_block(block, &mut writer);
                    }
                    execute(&mut writer, thread, ids[block], action, contents);
                }
            }
        }
        let file = if is_sealed { writer.seal("exit 0") } else { writer.abandon() };
        (file.unwrap(), threads)
    }

    fn add_block(&self, block: usize, writer: &mut Writer<Vec<u8>>) -> u32 {
        let mut builder = BlockBuilder::at(0x1000 * block as u64).code_version(block as u32 % 3);
        for (length, slots) in &self.blocks[block] {
            builder = builder.instruction(&vec![0x90 + length; usize::from(*length)], slots);
        }
        writer.add_block(builder.build()).unwrap()
    }
}

fn execute(writer: &mut Writer<Vec<u8>>, thread: ThreadId, block: u32, action: &Action, contents: &mut ThreadContents) {
    let &Action::Execute { times, base, stride, with_values, interrupted_after, .. } = action else {
        panic!("only for executions")
    };
    for turn in 0..times {
        let count = writer.program().block(block).slots.len() as u64;
        // The two slots of a string stay near each other: their difference is the length of a value.
        let address = |slot: u64| base.wrapping_add(turn.wrapping_mul(stride)).wrapping_add(5 * slot);
        let slots: Vec<u64> = (0..count).map(address).collect();
        let values = if with_values { values_of(writer.program(), block, &slots) } else { Vec::new() };
        let borrowed: Vec<(usize, &[u8])> = values.iter().map(|(slot, bytes)| (*slot, bytes.as_slice())).collect();
        writer.execute_with_values(thread, block, &slots, &borrowed).unwrap();
        contents.values.extend(values.iter().map(|(slot, bytes)| (contents.slots.len() + slot, bytes.clone())));
        contents.steps.push(block);
        contents.slots.extend(slots);
        contents.instructions += writer.program().block(block).instruction_count() as u64;
    }
    if let Some(after) = interrupted_after {
        let whole = writer.program().block(block).instruction_count() as u64;
        let event = Event::Interrupted { instructions: after % (whole + 1) };
        writer.event(thread, &event).unwrap();
        contents.instructions -= whole - after % (whole + 1);
        contents.steps.push(0);
        contents.events.push(event);
    }
}

/// Values for every other write of a block.
fn values_of(program: &Program, block: u32, addresses: &[u64]) -> Vec<(usize, Vec<u8>)> {
    let slots = &program.block(block).slots;
    let mut values = Vec::new();
    let mut index = 0;
    while index < slots.len() {
        let length = match slots[index].kind {
            SlotKind::StringDestination => addresses[index].abs_diff(addresses[index + 1]) as usize,
            _ => usize::from(slots[index].size),
        };
        if slots[index].kind.writes() && addresses[index].is_multiple_of(2) {
            values.push((index, (0..length).map(|byte| (byte * 7 + index) as u8).collect()));
        }
        index += if slots[index].kind.is_string() { 2 } else { 1 };
    }
    values
}

/// An event of the type with this number on the format page.
pub fn event(code: u8, [a, b, c, d]: [u64; 4], text: &str) -> Event {
    let (clock, object, thread) = (Clock(a), b, ThreadId(b as u32 % 4096));
    let wake = (c != 0).then_some(Clock(c));
    let (name, bytes): (fencepost_record::Text, Box<[u8]>) = (text.into(), text.as_bytes().into());
    match code {
        1 => Event::ThreadStart { clock, kernel_tid: b, stack_low: c, stack_high: d },
        2 => Event::ThreadExit { clock },
        3 => Event::ThreadCreate { clock, thread },
        4 => Event::ThreadJoin { clock, thread },
        5 => Event::MutexLock { clock, object },
        6 => Event::MutexUnlock { clock, object },
        7 => Event::SpinLock { clock, object },
        8 => Event::SpinUnlock { clock, object },
        9 => Event::ReadLock { clock, object },
        10 => Event::WriteLock { clock, object },
        11 => Event::RwUnlock { clock, object },
        12 => Event::AttemptFailed { clock, object },
        13 => Event::ConditionWait { clock, object, mutex: d, wake, timed_out: d % 2 == 1 },
        14 => Event::ConditionSignal { clock, object },
        15 => Event::ConditionBroadcast { clock, object },
        16 => Event::SemaphorePost { clock, object },
        17 => Event::SemaphoreWait { clock, object, wake },
        18 => Event::BarrierWait { clock, object, participants: c, generation: d },
        19 => {
            use FutexOutcome::{Interrupted, TimedOut, ValueChanged, Woken};
            let outcome = [Woken, ValueChanged, TimedOut, Interrupted][d as usize % 4];
            Event::FutexWait { clock, object, wake, outcome }
        }
        20 => Event::FutexWake { clock, object, woken: c },
        21 => Event::SpinWait { clock, object, wake: Clock(c), maker: thread, lends: d },
        22 => Event::SystemCall { number: a, result: b as i64 },
        23 => {
            use MappingKind::{Anonymous, Break, File, Special, Stack};
            let kind = [Anonymous, File, Stack, Break, Special][c as usize % 5];
            let protection = Protection(d as u8 % 8);
            Event::Map { clock, start: b, length: c.min(!b), protection, kind, offset: d, name }
        }
        24 => Event::Unmap { clock, start: b, length: c.min(!b) },
        25 => Event::Module { clock, base: b, length: c.min(!b), build_id: bytes, path: name },
        26 => Event::Roi { begin: a % 2 == 0 },
        28 => Event::Signal { number: a },
        29 => Event::Exec { clock, path: name },
        // Of a child with a record of its own, the wakes are not in this one.
        30 => Event::Fork { child: 0 },
        31 => Event::KernelWrite { address: a, bytes },
        32 => {
            use PersistCall::{Fdatasync, Fsync, Msync, Truncate};
            Event::PersistCall {
                clock,
                call: [Msync, Fsync, Fdatasync, Truncate][d as usize % 4],
                start: b,
                length: c.min(!b),
            }
        }
        33 => Event::InitialBytes { address: a, bytes },
        34 => Event::Order { thread, writes: b },
        35 => Event::Mark {
            clock,
            kind: [MarkKind::Begin, MarkKind::End, MarkKind::Acknowledged][a as usize % 3],
            text: name,
        },
        36 => Event::CallBegin,
        37 => Event::CallEnd,
        _ => panic!("{code} is no event that stands for itself"),
    }
}

/// Numbers of all sizes, small ones as likely as large ones.
fn number() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0..64u32).prop_map(|(value, shift)| value >> shift)
}

fn slot() -> impl Strategy<Value = Vec<(SlotKind, u16)>> {
    use SlotKind::{Flush, Gather, Load, Prefetch, Scatter, Store, StringDestination, StringSource, Update};
    (0..9usize, 0..70u16).prop_map(|(kind, size)| {
        let kind = [Load, Store, Update, Flush, Prefetch, StringSource, StringDestination, Gather, Scatter][kind];
        vec![(kind, size); if kind.is_string() { 2 } else { 1 }]
    })
}

fn action() -> impl Strategy<Value = Action> {
    let execute = (any::<usize>(), 1..30u64, number(), number(), any::<bool>(), prop::option::weighted(0.1, 0..20u64));
    let execute = execute.prop_map(|(block, times, base, stride, with_values, interrupted_after)| Action::Execute {
        block,
        times,
        base,
        stride,
        with_values,
        interrupted_after,
    });
    let codes = (1..36u8).prop_filter("interruptions belong to their blocks", |&code| code != 27);
    let happen = (codes, [number(), number(), number(), number()], "[a-zé]{0,6}");
    let happen = happen.prop_map(|(code, numbers, text)| Action::Happen(event(code, numbers, &text)));
    prop_oneof![3 => execute, 1 => happen]
}

/// Random records of up to `actions` actions.
pub fn plan(actions: usize) -> impl Strategy<Value = Plan> {
    let instruction = (
        1..16u8,
        prop_oneof![2 => Just(Vec::new()), 3 => slot(), 1 => vec(slot(), 0..6).prop_map(|slots| slots.concat())],
    );
    let options = (1..400u64, 1..4000usize, any::<bool>()).prop_map(|(frame_instructions, frame_bytes, is_stored)| {
        let codec = if is_stored { Codec::Stored } else { Codec::Zstd };
        WriterOptions { frame_instructions, frame_bytes, codec }
    });
    let blocks = vec(vec(instruction, 1..12), 1..8);
    (options, blocks, vec((0..3u32, action()), 0..actions)).prop_map(|(options, blocks, actions)| Plan {
        options,
        blocks,
        actions,
    })
}
