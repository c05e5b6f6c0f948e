//! The Perfetto trace format: packets with descriptors of tracks and their events (`perfetto/protos/perfetto/trace`,
//! `trace_packet.proto`, `track_descriptor.proto`, `track_event.proto`, whose field numbers stand below).
//!
//! Time stamps are nanoseconds, as the viewer wants them: those of slices are rounded down, the exact picoseconds are
//! arguments. Names are interned; each text stands in the file once.

use std::collections::BTreeMap;

use super::protobuf::Buffer;
use super::{Timeline, cause, doing};
use fencepost_kernel::ComponentId;
use fencepost_kernel::message::Stage;
use fencepost_kernel::time::Time;
use fencepost_kernel::trace::{Doing, Slice, TracedRequest};

const TRACE_PACKET: u32 = 1;

mod packet {
    pub const TIMESTAMP: u32 = 8;
    pub const SEQUENCE_ID: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const INTERNED_DATA: u32 = 12;
    pub const SEQUENCE_FLAGS: u32 = 13;
    pub const TRACK_DESCRIPTOR: u32 = 60;
}

mod descriptor {
    pub const UUID: u32 = 1;
    pub const NAME: u32 = 2;
    pub const PROCESS: u32 = 3;
    pub const PARENT_UUID: u32 = 5;
    pub const COUNTER: u32 = 8;
}

mod process {
    pub const PID: u32 = 1;
    pub const NAME: u32 = 6;
}

mod event {
    pub const CATEGORY_IIDS: u32 = 3;
    pub const DEBUG_ANNOTATIONS: u32 = 4;
    pub const TYPE: u32 = 9;
    pub const NAME_IID: u32 = 10;
    pub const TRACK_UUID: u32 = 11;
    pub const COUNTER_VALUE: u32 = 30;
    pub const FLOW_IDS: u32 = 47;

    pub const SLICE_BEGIN: u64 = 1;
    pub const SLICE_END: u64 = 2;
    pub const COUNTER: u64 = 4;
}

mod annotation {
    pub const NAME_IID: u32 = 1;
    pub const UINT: u32 = 3;
    pub const TEXT: u32 = 6;
}

mod interned {
    pub const CATEGORIES: u32 = 1;
    pub const EVENT_NAMES: u32 = 2;
    pub const ANNOTATION_NAMES: u32 = 3;
    pub const IID: u32 = 1;
    pub const NAME: u32 = 2;
}

/// All packets are of one sequence.
const SEQUENCE: u64 = 1;
const STATE_CLEARED: u64 = 1;
const NEEDS_STATE: u64 = 2;

/// A whole trace.
pub fn write(timeline: &Timeline) -> Vec<u8> {
    let mut writer = Writer::default();
    let mut lanes = Lanes::default();
    let mut events: Vec<(Time, Buffer)> = Vec::new();
    let mut slices: Vec<&Slice> = timeline.trace.slices().iter().collect();
    slices.sort_by_key(|slice| (slice.from, slice.until, slice.request));
    let mut seen = vec![false; timeline.trace.requests().len()];
    for slice in slices {
        let track = lanes.place(slice, timeline.track(slice));
        let index = slice.request.0 as usize - 1;
        let is_first = !std::mem::replace(&mut seen[index], true);
        events.push((slice.from, writer.slice_begin(slice, &timeline.trace.requests()[index], track, is_first)));
        let mut end = Buffer::default();
        end.number(event::TYPE, event::SLICE_END).number(event::TRACK_UUID, track);
        events.push((slice.until, end));
    }
    let mut counters = BTreeMap::new();
    for sample in timeline.trace.samples() {
        let next = COUNTERS + counters.len() as u64;
        let track = *counters.entry((sample.component, sample.gauge.as_str())).or_insert(next);
        let mut value = Buffer::default();
        value
            .number(event::TYPE, event::COUNTER)
            .number(event::TRACK_UUID, track)
            .number(event::COUNTER_VALUE, sample.value);
        events.push((sample.time, value));
    }
    // Of events at one time on one track the order is that of this list.
    events.sort_by_key(|(time, _)| *time);
    let mut file = Buffer::default();
    file.message(TRACE_PACKET, &writer.first_packet());
    for (id, name) in timeline.components.iter().enumerate() {
        file.message(TRACE_PACKET, &process_track(id as u64, name));
    }
    for ((component, name, _), (track, _)) in &lanes.lanes {
        file.message(TRACE_PACKET, &track_of(*component, name, *track, false));
    }
    for ((component, name), track) in &counters {
        file.message(TRACE_PACKET, &track_of(*component, name, *track, true));
    }
    for (time, event) in events {
        let mut packet = Buffer::default();
        packet
            .number(packet::TIMESTAMP, time.as_ps() / 1000)
            .number(packet::SEQUENCE_ID, SEQUENCE)
            .number(packet::SEQUENCE_FLAGS, NEEDS_STATE)
            .message(packet::TRACK_EVENT, &event);
        file.message(TRACE_PACKET, &packet);
    }
    file.into_bytes()
}

/// The viewer joins the slices of a flow in the order of time. A request's flow has its name for a number; those from a
/// write to the drain of its line, and from a device's queue to the medium, go their own ways meanwhile and have
/// numbers of their own.
const INTO_DRAIN: u64 = 1 << 32;
const INTO_MEDIUM: u64 = 2 << 32;

/// Identities of tracks: processes from 1 on, then lanes, then counters.
const LANES: u64 = 1 << 20;
const COUNTERS: u64 = 1 << 40;

/// The tracks of slices. Those of one name that overlap in time lie in lanes of their own.
#[derive(Default)]
struct Lanes {
    /// By component, name and number of the lane: its identity, and until when it is taken.
    lanes: BTreeMap<(ComponentId, String, u32), (u64, Time)>,
}

impl Lanes {
    /// The lane of a slice; they come in the order of time.
    fn place(&mut self, slice: &Slice, track: String) -> u64 {
        let next = LANES + self.lanes.len() as u64;
        let mut key = (slice.component, track, 0);
        loop {
            let lane = self.lanes.entry(key.clone()).or_insert((next, Time::ZERO));
            if lane.1 <= slice.from {
                lane.1 = slice.until;
                return lane.0;
            }
            key.2 += 1;
        }
    }
}

fn process_track(id: u64, name: &str) -> Buffer {
    let mut process = Buffer::default();
    process.number(process::PID, id + 1).text(process::NAME, name);
    let mut descriptor = Buffer::default();
    descriptor.number(descriptor::UUID, id + 1).text(descriptor::NAME, name).message(descriptor::PROCESS, &process);
    described(&descriptor)
}

fn track_of(component: ComponentId, name: &str, track: u64, is_counter: bool) -> Buffer {
    let mut descriptor = Buffer::default();
    descriptor
        .number(descriptor::UUID, track)
        .text(descriptor::NAME, name)
        .number(descriptor::PARENT_UUID, u64::from(component.0) + 1);
    if is_counter {
        descriptor.message(descriptor::COUNTER, &Buffer::default());
    }
    described(&descriptor)
}

fn described(descriptor: &Buffer) -> Buffer {
    let mut packet = Buffer::default();
    packet.number(packet::SEQUENCE_ID, SEQUENCE).message(packet::TRACK_DESCRIPTOR, descriptor);
    packet
}

/// Texts that stand in the file once, with their numbers from 1 on.
#[derive(Default)]
struct Names(Vec<&'static str>);

impl Names {
    fn number(&mut self, name: &'static str) -> u64 {
        let place = self.0.iter().position(|known| *known == name).unwrap_or_else(|| {
            self.0.push(name);
            self.0.len() - 1
        });
        place as u64 + 1
    }

    fn write(&self, field: u32, into: &mut Buffer) {
        for (name, number) in self.0.iter().zip(1..) {
            let mut entry = Buffer::default();
            entry.number(interned::IID, number).text(interned::NAME, name);
            into.message(field, &entry);
        }
    }
}

/// What is interned so far.
#[derive(Default)]
struct Writer {
    categories: Names,
    events: Names,
    annotations: Names,
}

impl Writer {
    fn slice_begin(&mut self, slice: &Slice, request: &TracedRequest, track: u64, is_first: bool) -> Buffer {
        let name = u64::from(slice.request.0);
        let mut begin = Buffer::default();
        begin
            .number(event::TYPE, event::SLICE_BEGIN)
            .number(event::TRACK_UUID, track)
            .number(event::CATEGORY_IIDS, self.categories.number(cause(request)))
            .number(event::NAME_IID, self.events.number(doing(slice, request)))
            .fixed64(event::FLOW_IDS, if slice.doing == Doing::MediaWrite { INTO_MEDIUM | name } else { name });
        match slice.doing {
            Doing::Stage(Stage::PersistBufferAccess) => _ = begin.fixed64(event::FLOW_IDS, INTO_DRAIN | name),
            Doing::Stage(Stage::DeviceQueue) => _ = begin.fixed64(event::FLOW_IDS, INTO_MEDIUM | name),
            _ => {}
        }
        if is_first {
            let drains = request.drains.iter();
            drains.for_each(|drained| _ = begin.fixed64(event::FLOW_IDS, INTO_DRAIN | u64::from(drained.0)));
        }
        let numbers = [
            ("request", name),
            ("version", request.version.0),
            ("from_ps", slice.from.as_ps()),
            ("duration_ps", slice.until.since(slice.from).as_ps()),
        ];
        for (name, value) in numbers {
            let mut annotation = Buffer::default();
            annotation.number(annotation::NAME_IID, self.annotations.number(name)).number(annotation::UINT, value);
            begin.message(event::DEBUG_ANNOTATIONS, &annotation);
        }
        let part_of = if matches!(slice.doing, Doing::Stage(_)) { "latency stack" } else { "after the answer" };
        let mut texts = vec![
            ("line", format!("{:#x}", request.line.byte())),
            ("cause", cause(request).into()),
            ("part of", part_of.into()),
        ];
        texts.extend(slice.message.map(|opcode| ("message", format!("{opcode:?}"))));
        for (name, text) in texts {
            let mut annotation = Buffer::default();
            annotation.number(annotation::NAME_IID, self.annotations.number(name)).text(annotation::TEXT, &text);
            begin.message(event::DEBUG_ANNOTATIONS, &annotation);
        }
        begin
    }

    /// The packet that all others of the sequence rest on: what is interned.
    fn first_packet(&self) -> Buffer {
        let mut data = Buffer::default();
        self.categories.write(interned::CATEGORIES, &mut data);
        self.events.write(interned::EVENT_NAMES, &mut data);
        self.annotations.write(interned::ANNOTATION_NAMES, &mut data);
        let mut packet = Buffer::default();
        packet
            .number(packet::SEQUENCE_ID, SEQUENCE)
            .number(packet::SEQUENCE_FLAGS, STATE_CLEARED)
            .message(packet::INTERNED_DATA, &data);
        packet
    }
}
