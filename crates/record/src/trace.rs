//! The TRACE frames: what one thread did for a while, packed into streams and unpacked into a [`Frame`].

use std::ops::Range;

use super::code::Program;
use super::control::{ControlDecoder, ControlTotals, Successors};
use super::error::Problem;
use super::event::{Clock, Event};
use super::event_codec::decode_events;
use super::frame::FrameHeader;
use super::slots::{FRAME_SLOTS_MAX, Strides, decode_slots};
use super::tree::Member;
use super::values::{WrittenValue, decode_values};
use super::varint::{Fields, PADDING};

/// What one thread did for a while, ready to be replayed. A reader fills the same frame again and again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The executed blocks by id, in order; 0 stands for the next event.
    pub steps: Vec<u32>,
    /// The values of all slots of all executed blocks, in order.
    pub slots: Vec<u64>,
    /// The events, in order.
    pub events: Vec<Event>,
    /// Instructions of the thread before this frame.
    pub first_instruction: u64,
    /// Instructions in this frame.
    pub instructions: u64,
    /// The process clock when the frame began and when it ended.
    pub clocks: (Clock, Clock),
    /// The bytes that writes left in selected PM, one after the other.
    pub values: Vec<u8>,
    /// The writes that left [`Self::values`], in order.
    pub written: Vec<WrittenValue>,
}

/// Where the streams lie in a payload. A stream that is not there is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Streams {
    control: Range<usize>,
    slots: Range<usize>,
    events: Range<usize>,
    clock: Range<usize>,
    values: Range<usize>,
}

impl Frame {
    /// How much memory it takes, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of::<u32>() * self.steps.capacity()
            + size_of::<u64>() * self.slots.capacity()
            + size_of::<Event>() * self.events.capacity()
            + self.values.capacity()
            + size_of::<WrittenValue>() * self.written.capacity()
    }
}

const STREAM_IDS: Range<u32> = 1..6;

impl Streams {
    /// Reads the directory.
    pub(super) fn parse(payload: &[u8]) -> Result<Self, Problem> {
        let mut fields = Fields::new(payload);
        let count = fields.u32()? as usize;
        if count > fields.remaining() / 8 {
            return Err(Problem::Malformed("it has more streams than bytes"));
        }
        let mut streams = Self::default();
        let mut seen = 0u32;
        let mut start = 4 + 8 * count;
        for _ in 0..count {
            let (id, bytes) = (fields.u32()?, fields.u32()? as usize);
            let end = start + bytes;
            if end > payload.len() {
                return Err(Problem::Malformed("a stream runs past its end"));
            }
            if STREAM_IDS.contains(&id) {
                if seen & (1 << id) != 0 {
                    return Err(Problem::Malformed("a stream is there twice"));
                }
                seen |= 1 << id;
                let streams = [
                    &mut streams.control,
                    &mut streams.slots,
                    &mut streams.events,
                    &mut streams.clock,
                    &mut streams.values,
                ];
                *streams.into_iter().nth(id as usize - 1).expect("five ids, five streams") = start..end;
            }
            start = end;
        }
        if start != payload.len() {
            return Err(Problem::Malformed("bytes follow its last stream"));
        }
        Ok(streams)
    }

    fn clocks(&self, payload: &[u8]) -> Result<(Clock, Clock), Problem> {
        let mut fields = Fields::new(&payload[self.clock.clone()]);
        let clocks = (Clock(fields.u64()?), Clock(fields.u64()?));
        if !fields.is_at_end() || clocks.1 < clocks.0 {
            return Err(Problem::Malformed("its clock stream is not two growing clocks"));
        }
        Ok(clocks)
    }
}

/// The tables that predict while a frame is decoded. They mean nothing between frames, and any record can use them.
#[derive(Default)]
pub(super) struct Predictors {
    successors: Successors,
    strides: Strides,
}

/// Unpacks one payload. `bytes` is the payload and [`PADDING`] bytes more.
pub(super) struct TraceDecoder<'a> {
    pub(super) header: &'a FrameHeader,
    pub(super) program: &'a Program,
    pub(super) bytes: &'a [u8],
    streams: Streams,
    /// Its process, if it is read as one of a tree.
    member: Option<&'a Member>,
}

impl<'a> TraceDecoder<'a> {
    pub(super) fn new(
        header: &'a FrameHeader,
        program: &'a Program,
        bytes: &'a [u8],
        member: Option<&'a Member>,
    ) -> Result<Self, Problem> {
        let payload = &bytes[..bytes.len() - PADDING];
        Ok(Self { header, program, bytes, streams: Streams::parse(payload)?, member })
    }

    /// Everything.
    pub(super) fn frame(&self, predictors: &mut Predictors, into: &mut Frame) -> Result<(), Problem> {
        let totals = self.steps(predictors, into)?;
        self.slots(totals, predictors, into)?;
        into.values.clear();
        into.written.clear();
        let stream = &self.bytes[self.streams.values.clone()];
        decode_values(stream, self.program, &into.steps, &into.slots, &mut into.values, &mut into.written)?;
        into.first_instruction = self.header.position;
        into.instructions = self.header.instructions;
        if let Some(member) = self.member {
            member.place_frame(self.header, into);
        }
        Ok(())
    }

    /// The blocks and the events, without the slots; as its process has them.
    pub(super) fn steps(&self, predictors: &mut Predictors, into: &mut Frame) -> Result<ControlTotals, Problem> {
        self.own_events(into)?;
        let decoder = ControlDecoder {
            shapes: self.program.shapes(),
            events: &into.events,
            // A block has an instruction, unless it was interrupted, and then it has an event.
            blocks_max: self.header.instructions + into.events.len() as u64,
        };
        let Range { start, end } = self.streams.control;
        into.steps.clear();
        let totals = decoder.decode(self.bytes, start, end, &mut predictors.successors, &mut into.steps)?;
        if totals.instructions != self.header.instructions {
            return Err(Problem::Malformed("its blocks have another number of instructions than its header says"));
        }
        Ok(totals)
    }

    /// The events and the clocks only.
    pub(super) fn events(&self, into: &mut Frame) -> Result<(), Problem> {
        self.own_events(into)?;
        if let Some(member) = self.member {
            member.place_events(self.header, into);
        }
        Ok(())
    }

    fn own_events(&self, into: &mut Frame) -> Result<(), Problem> {
        into.clocks = self.streams.clocks(self.bytes)?;
        into.events.clear();
        decode_events(&self.bytes[self.streams.events.clone()], into.clocks.0.0, &mut into.events)
    }

    fn slots(&self, totals: ControlTotals, predictors: &mut Predictors, into: &mut Frame) -> Result<(), Problem> {
        Problem::check_limit("the number of slot values", totals.slots, FRAME_SLOTS_MAX)?;
        let Range { start, end } = self.streams.slots;
        // Each value has at least one byte, so this refuses before it allocates.
        if totals.slots > (end - start) as u64 {
            return Err(Problem::Malformed("its blocks have more slots than its slot stream has values"));
        }
        let shapes = self.program.shapes();
        predictors.strides.begin_frame(shapes.len(), self.program.slot_count());
        into.slots.resize(totals.slots as usize, 0);
        decode_slots(self.bytes, start, end, &into.steps, shapes, &mut predictors.strides, &mut into.slots)
    }
}

/// A payload of streams with these ids and contents.
pub(super) fn encode_streams(streams: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut payload = Vec::new();
    payload.extend_from_slice(&(streams.len() as u32).to_le_bytes());
    for (id, contents) in streams {
        payload.extend_from_slice(&id.to_le_bytes());
        payload.extend_from_slice(&(contents.len() as u32).to_le_bytes());
    }
    for (_, contents) in streams {
        payload.extend_from_slice(contents);
    }
    payload
}
