//! Programs written by hand: what each thread executes, with the addresses it accesses.

use std::collections::HashMap;
use std::sync::Arc;

use super::assembler::Instruction;
use fencepost_record::{
    BlockBuilder, Bytes, Clock, CutPolicy, Event, Info, Record, SlotKind, ThreadId, Writer, WriterOptions,
};

/// Virtual addresses from here on lie in DRAM.
pub const DRAM: u64 = 0x10_0000_0000;
/// 16 MiB of virtual addresses from here on lie in PM.
pub const PM: u64 = 0x20_0000_0000;
/// The first block of code.
pub const CODE: u64 = 0x40_0000;

type StaticInstruction = (Vec<u8>, Vec<(SlotKind, u16)>);

/// A program in the making.
pub struct Script {
    writer: Writer<Vec<u8>>,
    blocks: HashMap<Vec<StaticInstruction>, u32>,
    next_address: u64,
}

impl Default for Script {
    fn default() -> Script {
        Script::recorded_as(&Info::default())
    }
}

impl Script {
    /// A program whose record says so about itself.
    pub fn recorded_as(info: &Info) -> Script {
        let writer = Writer::new(Vec::new(), info, WriterOptions::default());
        Script { writer: writer.expect("a vector takes everything"), blocks: HashMap::new(), next_address: CODE }
    }
}

impl Script {
    /// A program of one thread that executes `instructions` once.
    pub fn of(instructions: &[Instruction]) -> Script {
        Script::default().then(0, instructions)
    }

    /// `thread` executes `instructions`, a block at a line of its own; the same instructions are the same block.
    pub fn run(&mut self, thread: u32, instructions: &[Instruction]) {
        let block = self.place(instructions);
        let values: Vec<u64> = instructions.iter().flat_map(|instruction| instruction.values.clone()).collect();
        self.writer.execute(ThreadId(thread), block, &values).expect("a vector takes everything");
    }

    /// Puts `instructions` where the next block is to be, unless they are somewhere; gives the block.
    pub fn place(&mut self, instructions: &[Instruction]) -> u32 {
        let key: Vec<StaticInstruction> =
            instructions.iter().map(|instruction| (instruction.bytes.clone(), instruction.slots.clone())).collect();
        if let Some(&block) = self.blocks.get(&key) {
            return block;
        }
        let mut builder = BlockBuilder::at(self.next_address);
        for (bytes, slots) in &key {
            builder = builder.instruction(bytes, slots);
        }
        let built = builder.build();
        self.next_address = (self.next_address + built.bytes.len() as u64).next_multiple_of(64);
        let block = self.writer.add_block(built).expect("the block is sound");
        self.blocks.insert(key, block);
        block
    }

    /// The same, to be chained.
    pub fn then(mut self, thread: u32, instructions: &[Instruction]) -> Script {
        self.run(thread, instructions);
        self
    }

    /// An event of `thread` at the next place of the process clock; gives that place.
    pub fn event(&mut self, thread: u32, event: impl FnOnce(Clock) -> Event) -> Clock {
        let clock = self.writer.tick();
        self.writer.event(ThreadId(thread), &event(clock)).expect("a vector takes everything");
        clock
    }

    /// What every thread does from here on is in frames of its own.
    pub fn end_frames(&mut self) {
        self.writer.flush().expect("a vector takes everything");
    }

    /// `creator` creates `thread`.
    pub fn create(&mut self, creator: u32, thread: u32) {
        self.event(creator, |clock| Event::ThreadCreate { clock, thread: ThreadId(thread) });
        self.event(thread, |clock| Event::ThreadStart { clock, kernel_tid: 0, stack_low: 0, stack_high: 0 });
    }

    /// `thread` waits for the end of `other`.
    pub fn join(&mut self, thread: u32, other: u32) {
        self.event(thread, |clock| Event::ThreadJoin { clock, thread: ThreadId(other) });
    }

    /// The program's record.
    pub fn record(self) -> Record {
        let bytes = self.writer.seal("exit 0").expect("a vector takes everything");
        Record::open(Arc::new(Bytes::new("script.fencepost", bytes)), CutPolicy::Refuse).expect("it was just written")
    }
}
