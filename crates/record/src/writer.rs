//! Writes records: for tests, for litmus programs built by hand, for whatever makes requests without a recorded
//! program.

use std::io::Write;

use super::code::{Block, Program, Slot};
use super::control::ControlEncoder;
use super::error::Problem;
use super::event::{Clock, Event, FRAME_EVENTS_MAX, ThreadId};
use super::event_codec::EventEncoder;
use super::frame::{Codec, FOOTER_BYTES, FRAME_INSTRUCTIONS_MAX, Footer, FrameHeader, FrameKind, pack};
use super::info::Info;
use super::seal::{IndexEntry, Seal};
use super::slots::{FRAME_SLOTS_MAX, SlotEncoder};
use super::trace::encode_streams;
use super::values::ValueEncoder;

/// When a frame ends and how it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterOptions {
    /// Instructions after which a thread's frame ends.
    pub frame_instructions: u64,
    /// Bytes of its streams after which it ends too.
    pub frame_bytes: usize,
    /// How payloads are stored.
    pub codec: Codec,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self { frame_instructions: 1 << 20, frame_bytes: 1 << 20, codec: Codec::Zstd }
    }
}

/// Builds a [`Block`] instruction by instruction.
#[derive(Clone, Debug, Default)]
pub struct BlockBuilder {
    address: u64,
    code_version: u32,
    lengths: Vec<u8>,
    bytes: Vec<u8>,
    slots: Vec<Slot>,
}

impl BlockBuilder {
    /// A block that begins at this address.
    #[must_use]
    pub fn at(address: u64) -> Self {
        Self { address, ..Self::default() }
    }

    /// Sets which contents of the address these are.
    #[must_use]
    pub fn code_version(mut self, version: u32) -> Self {
        self.code_version = version;
        self
    }

    /// Adds an instruction with these bytes, and the kind and size in bytes of each slot that it fills.
    #[must_use]
    pub fn instruction(mut self, bytes: &[u8], slots: &[(super::code::SlotKind, u16)]) -> Self {
        let instruction = self.lengths.len() as u16;
        self.lengths.push(bytes.len() as u8);
        self.bytes.extend_from_slice(bytes);
        self.slots.extend(slots.iter().map(|&(kind, size)| Slot { instruction, kind, size }));
        self
    }

    /// The block.
    #[must_use]
    pub fn build(self) -> Block {
        Block {
            address: self.address,
            code_version: self.code_version,
            instruction_lengths: self.lengths.into(),
            bytes: self.bytes.into(),
            slots: self.slots.into(),
        }
    }
}

/// Writes one record. Frames go out as they fill; blocks may be added at any time before they run.
pub struct Writer<W> {
    output: W,
    options: WriterOptions,
    version: u16,
    program: Program,
    /// Blocks with ids below this one are written.
    unwritten_block: u32,
    code_frames: u32,
    threads: Vec<ThreadWriter>,
    clock: u64,
    offset: u64,
    index: Vec<IndexEntry>,
}

/// The open frame of one thread.
struct ThreadWriter {
    control: ControlEncoder,
    slots: SlotEncoder,
    events: EventEncoder,
    values: ValueEncoder,
    frames: u32,
    position: u64,
    begun_at: u64,
    instructions: u64,
    slot_values: u64,
    event_count: u64,
    last_block: u32,
    is_empty: bool,
}

impl ThreadWriter {
    fn new() -> Self {
        Self {
            control: ControlEncoder::default(),
            slots: SlotEncoder::default(),
            events: EventEncoder { stream: Vec::new(), clock: 0 },
            values: ValueEncoder::default(),
            frames: 0,
            position: 0,
            begun_at: 0,
            instructions: 0,
            slot_values: 0,
            event_count: 0,
            last_block: 0,
            is_empty: true,
        }
    }

    fn begin_frame_if_none(&mut self, clock: u64) {
        if self.is_empty {
            self.control.begin_frame();
            self.slots.begin_frame();
            self.events.clock = clock;
            (self.begun_at, self.is_empty, self.last_block) = (clock, false, 0);
            (self.instructions, self.slot_values, self.event_count) = (0, 0, 0);
        }
    }

    fn bytes(&self) -> usize {
        self.control.bytes() + self.slots.bytes() + self.events.stream.len() + self.values.bytes()
    }
}

impl<W: Write> Writer<W> {
    /// Begins a record.
    ///
    /// # Errors
    /// If the output fails.
    pub fn new(output: W, info: &Info, options: WriterOptions) -> Result<Self, Problem> {
        let mut writer = Self {
            output,
            options,
            version: u16::try_from(info.format_version).unwrap_or(u16::MAX),
            program: Program::default(),
            unwritten_block: 1,
            code_frames: 0,
            threads: Vec::new(),
            clock: 0,
            offset: 0,
            index: Vec::new(),
        };
        writer.write_frame(writer.header(FrameKind::Info), &info.encode()?)?;
        Ok(writer)
    }

    /// Adds a block and gives its id.
    ///
    /// # Errors
    /// If the block breaks the format.
    pub fn add_block(&mut self, block: Block) -> Result<u32, Problem> {
        block.check()?;
        self.program.push(block)
    }

    /// The blocks so far.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The next place in the process clock, for the next event that has one.
    pub fn tick(&mut self) -> Clock {
        self.clock += 1;
        Clock(self.clock)
    }

    /// A thread executes a block with these slot values.
    ///
    /// # Errors
    /// If the output fails.
    ///
    /// # Panics
    /// If there is no such block, or it has another number of slots.
    pub fn execute(&mut self, thread: ThreadId, block: u32, slots: &[u64]) -> Result<(), Problem> {
        self.execute_with_values(thread, block, slots, &[])
    }

    /// Like [`Self::execute`], with the bytes of those writes that go to selected PM: each with the index of its slot
    /// in the block, in order.
    ///
    /// # Errors
    /// If the output fails.
    ///
    /// # Panics
    /// If there is no such block, it has another number of slots, or the values are not those of its writes.
    pub fn execute_with_values(
        &mut self,
        thread: ThreadId,
        block: u32,
        slots: &[u64],
        values: &[(usize, &[u8])],
    ) -> Result<(), Problem> {
        assert!(block > 0, "id 0 is no block");
        let shape = self.program.shapes()[block as usize];
        assert_eq!(slots.len(), shape.slots as usize, "block {block} has another number of slots");
        let instructions = u64::from(shape.instructions);
        self.make_room(thread, instructions, slots.len() as u64, 0)?;
        let writer = &mut self.threads[thread.0 as usize];
        writer.begin_frame_if_none(self.clock);
        writer.control.block(block);
        writer.slots.block(block, shape, slots);
        writer.values.block(&self.program.block(block).slots, slots, values);
        writer.instructions += instructions;
        writer.slot_values += slots.len() as u64;
        writer.last_block = block;
        Ok(())
    }

    /// Something happens to a thread between two blocks.
    ///
    /// # Errors
    /// If the output fails.
    ///
    /// # Panics
    /// If an interruption does not follow the block that it interrupts.
    pub fn event(&mut self, thread: ThreadId, event: &Event) -> Result<(), Problem> {
        let interrupted = match *event {
            Event::Interrupted { instructions } => Some(instructions),
            _ => None,
        };
        if interrupted.is_none() {
            self.make_room(thread, 0, 0, 1)?;
        }
        let program = &self.program;
        let writer = &mut self.threads[thread.0 as usize];
        writer.begin_frame_if_none(self.clock);
        if let Some(executed) = interrupted {
            let whole = program.block(std::mem::take(&mut writer.last_block)).instruction_count() as u64;
            assert!(executed <= whole && whole > 0, "an interruption follows the block that it interrupts");
            writer.instructions -= whole - executed;
        }
        writer.control.event();
        writer.events.encode(event);
        writer.event_count += 1;
        self.clock = self.clock.max(event.clock().map_or(0, |clock| clock.0));
        Ok(())
    }

    /// Ends the open frames and seals the record.
    ///
    /// # Errors
    /// If the output fails.
    pub fn seal(mut self, ended: &str) -> Result<W, Problem> {
        self.flush()?;
        let frames = std::mem::take(&mut self.index);
        let seal = Seal { ended: ended.to_string(), frames, ..Seal::default() };
        let seal_offset = self.offset;
        self.write_frame(self.header(FrameKind::Seal), &seal.encode())?;
        let footer = Footer { seal_offset, file_bytes: self.offset + FOOTER_BYTES as u64 };
        self.output.write_all(&footer.to_bytes())?;
        self.output.flush()?;
        Ok(self.output)
    }

    /// Ends the open frames and leaves the record without a seal, as a launcher that is killed does.
    ///
    /// # Errors
    /// If the output fails.
    pub fn abandon(mut self) -> Result<W, Problem> {
        self.flush()?;
        Ok(self.output)
    }

    /// Ends the open frame of every thread.
    ///
    /// # Errors
    /// If the output fails.
    pub fn flush(&mut self) -> Result<(), Problem> {
        self.write_code()?;
        for thread in 0..self.threads.len() {
            self.end_frame(thread)?;
        }
        Ok(())
    }

    /// Ends the thread's open frame if there is no room in it for so much more.
    fn make_room(&mut self, thread: ThreadId, instructions: u64, slots: u64, events: u64) -> Result<(), Problem> {
        let index = thread.0 as usize;
        if self.threads.len() <= index {
            Problem::check_limit("the thread", thread.0.into(), u64::from(super::frame::THREADS_MAX) - 1)?;
            self.threads.resize_with(index + 1, ThreadWriter::new);
        }
        let writer = &self.threads[index];
        let instructions_max = self.options.frame_instructions.min(FRAME_INSTRUCTIONS_MAX);
        // One event is kept free, so that an interruption finds room beside its block.
        let is_full = writer.instructions + instructions > instructions_max
            || writer.slot_values + slots > FRAME_SLOTS_MAX
            || writer.event_count + events >= FRAME_EVENTS_MAX
            || writer.bytes() >= self.options.frame_bytes;
        if is_full && !writer.is_empty {
            self.write_code()?;
            self.end_frame(index)?;
        }
        Ok(())
    }

    /// Writes the blocks that are not written yet, so that they stand before the frames that use them.
    fn write_code(&mut self) -> Result<(), Problem> {
        const PAYLOAD_BYTES: usize = 16 << 20;
        while (self.unwritten_block as usize) < self.program.blocks.len() {
            let first = self.unwritten_block;
            let mut payload = Vec::new();
            for block in &self.program.blocks[first as usize..] {
                block.encode(&mut payload);
                self.unwritten_block += 1;
                if payload.len() >= PAYLOAD_BYTES {
                    break;
                }
            }
            let header = FrameHeader {
                sequence: self.code_frames,
                instructions: u64::from(self.unwritten_block - first),
                position: first.into(),
                ..self.header(FrameKind::Code)
            };
            self.code_frames += 1;
            self.write_frame(header, &payload)?;
        }
        Ok(())
    }

    fn end_frame(&mut self, thread: usize) -> Result<(), Problem> {
        let clock = self.clock;
        let header = self.header(FrameKind::Trace);
        let writer = &mut self.threads[thread];
        if writer.is_empty {
            return Ok(());
        }
        let clocks = [writer.begun_at.to_le_bytes(), clock.to_le_bytes()].concat();
        let payload = encode_streams(&[
            (1, writer.control.end_frame()),
            (2, writer.slots.end_frame()),
            (3, std::mem::take(&mut writer.events.stream)),
            (4, clocks),
            (5, writer.values.end_frame()),
        ]);
        let header = FrameHeader {
            thread: thread as u32,
            sequence: writer.frames,
            instructions: writer.instructions,
            position: writer.position,
            ..header
        };
        writer.frames += 1;
        writer.position += writer.instructions;
        writer.is_empty = true;
        (writer.instructions, writer.slot_values, writer.event_count) = (0, 0, 0);
        self.write_frame(header, &payload)
    }

    fn header(&self, kind: FrameKind) -> FrameHeader {
        FrameHeader {
            version: self.version,
            kind,
            codec: self.options.codec,
            thread: 0,
            sequence: 0,
            instructions: 0,
            position: 0,
            stored_bytes: 0,
            raw_bytes: 0,
            checksum: 0,
        }
    }

    fn write_frame(&mut self, header: FrameHeader, payload: &[u8]) -> Result<(), Problem> {
        let mut frame = Vec::new();
        let header = pack(header, payload, &mut frame)?;
        self.output.write_all(&frame)?;
        self.index.push(IndexEntry::new(&header, self.offset));
        self.offset += frame.len() as u64;
        Ok(())
    }
}
