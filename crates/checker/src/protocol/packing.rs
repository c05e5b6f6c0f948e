//! A state as a few words: what the set of visited states keeps, byte for byte, so that no two states are ever taken
//! for one. Each field has room for all values that it can have: within [`super::bounds::Bounds::check`], and in a
//! canonical state, where generations are 0 or 1 and ages and recencies are ranks among the slots. Of versions, which
//! are ranks too, the highest is not known before: one that is too high gives no words.
//!
//! One description of the fields serves both ways, as `exploration::fields` has it.
//!
//! Long because: this description is one, field by field.

use fencepost_kernel::line::{LineAddress, Version};
use fencepost_sim::switch::persist_buffer::packet::{Read, RequestId, Write};
use fencepost_sim::switch::persist_buffer::state::{EntryState, LineData, Operation, Phase, Slot, SlotIndex};
use fencepost_sim::switch::persist_buffer::{DrainId, Packet, State};

use super::model::Model;
use super::world::{
    Acknowledgement, Channel, Drain, Halves, Host, InUse, OWN_WRITE, ReadPlace, Requester, WHOLE, World, WritePlace,
    drain_id, halves_of, mask_of,
};
use crate::exploration::Words;
use crate::exploration::fields::{Coder, Fields, Reader, Writer};

/// Bits of a version; the highest number stands for [`OWN_WRITE`].
const VERSION_BITS: u32 = 4;
const VERSION_OWN: u8 = 15;
const SLOT_BITS: u32 = 3;
const HOST_BITS: u32 = 2;
const LENGTH_BITS: u32 = 3;

/// How many fields there are, and what their widths depend on.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Layout {
    in_use: InUse,
    slots: usize,
    buffers: usize,
    line_bits: u32,
    /// Bits for the hops that a request has to go, or the number of the buffer that it is at.
    place_bits: u32,
    has_halves: bool,
    has_seen: bool,
    has_acknowledged_lines: bool,
    has_failures: bool,
}

impl Layout {
    /// That of the default bounds, with one persist buffer.
    const DEFAULT: Layout = Layout {
        in_use: InUse::DEFAULT,
        slots: 5,
        buffers: 1,
        line_bits: 1,
        place_bits: 0,
        has_halves: false,
        has_seen: false,
        has_acknowledged_lines: false,
        has_failures: false,
    };

    fn of<const S: usize, const I: usize>(model: &Model<S, I>) -> Layout {
        let (bounds, buffers) = (&model.bounds, model.buffers());
        let is_direct = buffers == 1 && (0..bounds.hosts.into()).all(|host| model.hops_of(host) == 0);
        Layout {
            in_use: model.in_use(),
            slots: usize::from(bounds.entries) + 1,
            buffers,
            line_bits: u32::from(bounds.addresses).next_power_of_two().trailing_zeros(),
            place_bits: if is_direct { 0 } else { 2 },
            has_halves: bounds.partial_writes,
            has_seen: model.reads.selector_sight,
            has_acknowledged_lines: model.reads.acknowledged_lines,
            has_failures: bounds.failures > 0,
        }
    }
}

/// Packs the states of a model.
pub struct Packer<const B: usize, const S: usize, const I: usize> {
    layout: Layout,
    first: World<B, S, I>,
}

impl<const B: usize, const S: usize, const I: usize> Packer<B, S, I> {
    /// Of that model.
    ///
    /// # Panics
    /// If its bounds are none that can be explored.
    pub fn new(model: &Model<S, I>) -> Self {
        assert_eq!(model.bounds.check(), Ok(()));
        let mut first = model.initial::<B>();
        model.make_canonical(&mut first);
        Packer { layout: Layout::of(model), first }
    }

    /// The first state, as the model makes it canonical: what has no field is in all states as it is here.
    pub fn first(&self) -> &World<B, S, I> {
        &self.first
    }

    /// `world`, a canonical state, which stays as it is; nothing if it does not fit into the words.
    pub fn pack<const K: usize>(&self, world: &mut World<B, S, I>) -> Option<Words<K>> {
        let mut writer = Writer::new();
        self.code(&mut writer, world);
        let packed = writer.finish();
        debug_assert!(
            packed.is_none_or(|words| self.unpack(&words) == *world),
            "the words hold all of the state: {world:#?}"
        );
        packed
    }

    /// The state that was packed.
    pub fn unpack<const K: usize>(&self, words: &Words<K>) -> World<B, S, I> {
        let mut world = self.first;
        self.code(&mut Reader::new(words), &mut world);
        world
    }

    /// Replaces `world` by the state that was packed.
    pub fn unpack_into<const K: usize>(&self, words: &Words<K>, world: &mut World<B, S, I>) {
        *world = self.first;
        self.code(&mut Reader::new(words), world);
    }

    #[inline(always)]
    fn code(&self, coder: &mut impl Coder, world: &mut World<B, S, I>) {
        // The compiler makes this twice: in the first, for the default bounds, it knows all widths, and how often each
        // loop runs.
        match self.layout {
            Layout::DEFAULT => Layout::DEFAULT.world(coder, world),
            layout => layout.world(coder, world),
        }
    }
}

impl Layout {
    #[inline(always)]
    fn world<C: Coder, const B: usize, const S: usize, const I: usize>(
        self,
        coder: &mut C,
        world: &mut World<B, S, I>,
    ) {
        let mut fields = coder.begin();
        world.crashes_left = fields.small(world.crashes_left, 2);
        world.duplicates_left = fields.small(world.duplicates_left, 2);
        world.pm_has_failed = self.has_failures && fields.flag(world.pm_has_failed);
        coder.end(fields);
        let mut fields = coder.begin();
        for line in 0..self.in_use.addresses {
            let memory = self.halves(&mut fields, world.memory[line]);
            let promised = self.halves(&mut fields, world.promised[line]);
            if C::Group::READS {
                (world.memory[line], world.promised[line]) = (memory, promised);
            }
        }
        coder.end(fields);
        for host in &mut world.hosts[..self.in_use.hosts] {
            let mut fields = coder.begin();
            let coded = self.host(&mut fields, host);
            if C::Group::READS {
                *host = coded;
            }
            coder.end(fields);
        }
        for state in &mut world.buffers {
            self.state(coder, state);
        }
        for link in &mut world.links {
            self.channel(coder, &mut link.drains, Layout::drain);
            self.channel(coder, &mut link.acknowledgements, Layout::acknowledgement);
        }
    }

    #[inline(always)]
    fn line(self, fields: &mut impl Fields, line: LineAddress) -> LineAddress {
        LineAddress(fields.field(line.0, self.line_bits))
    }

    #[inline(always)]
    fn version(self, fields: &mut impl Fields, version: u8) -> u8 {
        fields.unbounded(version.into(), VERSION_BITS) as u8
    }

    /// Without partial writes both halves of a line always have one version.
    #[inline(always)]
    fn halves(self, fields: &mut impl Fields, versions: Halves) -> Halves {
        let low = self.version(fields, versions[0]);
        [low, if self.has_halves { self.version(fields, versions[1]) } else { low }]
    }

    /// What a read must see at least. A version as high as the number that stands for [`OWN_WRITE`] gives no words.
    #[inline(always)]
    fn floor(self, fields: &mut impl Fields, floor: Halves) -> Halves {
        let coded = floor.map(|version| match version {
            OWN_WRITE => VERSION_OWN,
            VERSION_OWN => u8::MAX,
            version => version,
        });
        self.halves(fields, coded).map(|version| if version == VERSION_OWN { OWN_WRITE } else { version })
    }

    #[inline(always)]
    fn carried(self, fields: &mut impl Fields, halves: u8) -> u8 {
        if self.has_halves { fields.small(halves, 2) } else { WHOLE }
    }

    #[inline(always)]
    fn slot_index(self, fields: &mut impl Fields, index: SlotIndex) -> SlotIndex {
        SlotIndex(fields.field(index.0.into(), SLOT_BITS) as u16)
    }

    #[inline(always)]
    fn maybe_slot_index(self, fields: &mut impl Fields, index: Option<SlotIndex>) -> Option<SlotIndex> {
        let is_there = fields.flag(index.is_some());
        let index = self.slot_index(fields, index.unwrap_or_default());
        is_there.then_some(index)
    }

    #[inline(always)]
    fn host(self, fields: &mut impl Fields, host: &Host) -> Host {
        let mut coded = *host;
        coded.writes_left = fields.small(host.writes_left, 3);
        coded.reads_left = fields.small(host.reads_left, 2);
        for write in &mut coded.writes[..self.in_use.addresses] {
            *write = self.write_place(fields, *write);
        }
        let (kind, number) = host.read.parts();
        let kind = fields.small(kind, 2);
        fields.end_if(kind == 0);
        let number = fields.small(number, self.place_bits);
        coded.read = ReadPlace::of_parts(kind, number);
        coded.read_line = fields.small(host.read_line, self.line_bits);
        coded.read_floor = self.floor(fields, host.read_floor);
        coded
    }

    #[inline(always)]
    fn write_place(self, fields: &mut impl Fields, place: WritePlace) -> WritePlace {
        let (kind, number, halves) = place.parts();
        let kind = fields.small(kind, 2);
        // Only without persist buffers is a write in PM that waits for its acknowledgement.
        let number = if self.buffers == 0 {
            fields.unbounded(number.into(), VERSION_BITS) as u8
        } else {
            fields.small(number, self.place_bits)
        };
        let halves = self.carried(fields, halves);
        WritePlace::of_parts(kind, number, halves)
    }

    #[inline(always)]
    fn state<C: Coder, const S: usize, const I: usize>(self, coder: &mut C, state: &mut State<S, I>) {
        let mut slots = [Slot::default(); S];
        for (slot, old) in slots[..self.slots].iter_mut().zip(state.slots()) {
            let mut fields = coder.begin();
            *slot = self.slot(&mut fields, old);
            coder.end(fields);
        }
        let mut fields = coder.begin();
        let is_recovering = fields.flag(state.phase == Phase::Recovering);
        let is_draining = fields.flag(state.is_draining);
        let is_parked = fields.flag(state.parked.is_some());
        let length = fields.small(state.input.packets().len() as u8, LENGTH_BITS);
        let operation = self.operation(&mut fields, &state.operation);
        coder.end(fields);
        if C::Group::READS {
            *state = State::with_slots(&slots[..self.slots]);
            state.phase = if is_recovering { Phase::Recovering } else { Phase::Running };
            (state.operation, state.is_draining) = (operation, is_draining);
        }
        if is_parked {
            let parked = self.packet_alone(coder, &state.parked.unwrap_or_default());
            if C::Group::READS {
                state.parked = Some(parked);
            }
        }
        for place in 0..length.into() {
            let packet = self.packet_alone(coder, state.input.packets().get(place).unwrap_or(&Packet::default()));
            if C::Group::READS {
                state.input.push(packet);
            }
        }
    }

    #[inline(always)]
    fn packet_alone(self, coder: &mut impl Coder, packet: &Packet) -> Packet {
        let mut fields = coder.begin();
        let coded = self.packet(&mut fields, packet);
        coder.end(fields);
        coded
    }

    #[inline(always)]
    fn slot(self, fields: &mut impl Fields, slot: &Slot) -> Slot {
        let has_content = slot.data.mask.0 != 0 || slot.line != LineAddress(0);
        let is_written = slot.state == EntryState::Empty && has_content;
        let state = match fields.field(slot.state as u64, 2) {
            0 => EntryState::Empty,
            1 => EntryState::Dirty,
            2 => EntryState::Drain,
            _ => EntryState::Clean,
        };
        let is_written = fields.flag(is_written);
        fields.end_if(state == EntryState::Empty && !is_written);
        let line = self.line(fields, slot.line);
        let version = self.version(fields, slot.data.version.0 as u8);
        // In a slot that is being written even a line without partial writes may be empty.
        let halves = match self.has_halves {
            true => fields.small(halves_of(slot.data.mask), 2),
            false => fields.small(u8::from(slot.data.mask.0 != 0), 1) * WHOLE,
        };
        let is_torn = fields.flag(slot.data.is_torn);
        Slot {
            state,
            line,
            // A canonical state has one generation for all slots.
            generation: 1,
            age: fields.small(slot.age, 3),
            data: LineData { version: Version(version.into()), mask: mask_of(halves), is_torn },
            is_sent: fields.flag(slot.is_sent),
            recency: fields.field(slot.recency.into(), 3) as u16,
        }
    }

    #[inline(always)]
    fn packet(self, fields: &mut impl Fields, packet: &Packet) -> Packet {
        let kind = match packet {
            Packet::Write(_) => 0,
            Packet::Read(_) => 1,
            Packet::Acknowledgement(_) => 2,
        };
        match (fields.field(kind, 2), *packet) {
            (0, Packet::Write(write)) => Packet::Write(self.write(fields, &write)),
            (0, _) => Packet::Write(self.write(fields, &no_write())),
            (1, Packet::Read(read)) => Packet::Read(self.read(fields, &read)),
            (1, _) => Packet::Read(self.read(fields, &no_read())),
            (_, Packet::Acknowledgement(id)) => Packet::Acknowledgement(self.drain_id(fields, &id)),
            _ => unreachable!("no packet is read over one of another kind but an acknowledgement"),
        }
    }

    #[inline(always)]
    fn write(self, fields: &mut impl Fields, write: &Write) -> Write {
        let line = self.line(fields, write.line);
        Write {
            request: self.request(fields, write.request, line),
            line,
            version: Version(self.version(fields, write.version.0 as u8).into()),
            mask: mask_of(self.carried(fields, halves_of(write.mask))),
        }
    }

    #[inline(always)]
    fn read(self, fields: &mut impl Fields, read: &Read) -> Read {
        let line = self.line(fields, read.line);
        let request = self.request(fields, read.request, line);
        let seen = if self.has_seen { self.maybe_slot_index(fields, read.seen) } else { None };
        Read { request, line, seen }
    }

    /// Whoever waits for a packet of `line`.
    #[inline(always)]
    fn request(self, fields: &mut impl Fields, request: RequestId, line: LineAddress) -> RequestId {
        let line = line.0 as u8;
        let (is_drain, number, generation) = match Requester::of(request) {
            Requester::Host { host, .. } => (false, host as u8, 0),
            Requester::Drain { entry, generation } => (true, entry, generation),
        };
        if self.buffers < 2 {
            return Requester::Host { host: fields.small(number, HOST_BITS).into(), line }.id();
        }
        let is_drain = fields.flag(is_drain);
        let number = fields.small(number, SLOT_BITS);
        let generation = fields.field(generation.into(), 1) as u16;
        match is_drain {
            true => Requester::Drain { entry: number, generation }.id(),
            false => Requester::Host { host: number.into(), line }.id(),
        }
    }

    #[inline(always)]
    fn operation(self, fields: &mut impl Fields, operation: &Operation) -> Operation {
        const IDLE: u64 = 0;
        const WRITE: u64 = 1;
        const RETIRE: u64 = 2;
        const ANSWER: u64 = 3;
        const FREE: u64 = 4;
        const DRAIN: u64 = 5;
        let nothing = Write { mask: mask_of(0), ..no_write() };
        let (kind, slot, steps, replaced, write) = match *operation {
            Operation::Idle => (IDLE, SlotIndex(0), 0, None, nothing),
            Operation::Write { write, target, replaced, steps_done } => (WRITE, target, steps_done, replaced, write),
            Operation::Retire { slot } => (RETIRE, slot, 0, None, nothing),
            Operation::Answer { request, slot } => (ANSWER, slot, 0, None, Write { request, ..nothing }),
            Operation::Free { slot } => (FREE, slot, 0, None, nothing),
            Operation::Drain { slot, is_marked } => (DRAIN, slot, is_marked.into(), None, nothing),
        };
        let line = match Requester::of(write.request) {
            Requester::Host { line, .. } if kind == ANSWER => LineAddress(line.into()),
            _ => write.line,
        };
        let kind = fields.field(kind, 3);
        fields.end_if(kind == IDLE);
        let slot = self.slot_index(fields, slot);
        let steps = fields.small(steps, 3);
        let replaced = self.maybe_slot_index(fields, replaced);
        fields.end_if(kind != WRITE && kind != ANSWER);
        let write = self.write(fields, &Write { line, ..write });
        match kind {
            IDLE => Operation::Idle,
            WRITE => Operation::Write { write, target: slot, replaced, steps_done: steps },
            RETIRE => Operation::Retire { slot },
            ANSWER => Operation::Answer { request: write.request, slot },
            FREE => Operation::Free { slot },
            _ => Operation::Drain { slot, is_marked: steps == 1 },
        }
    }

    #[inline(always)]
    fn channel<C: Coder, T: Copy + Default + Ord>(
        self,
        coder: &mut C,
        channel: &mut Channel<T>,
        code: impl Fn(Layout, &mut C::Group, &T) -> T,
    ) {
        let mut fields = coder.begin();
        for place in 0..fields.small(channel.len() as u8, LENGTH_BITS).into() {
            let message = code(self, &mut fields, &channel.at(place));
            if C::Group::READS {
                channel.push(message);
            }
        }
        coder.end(fields);
    }

    #[inline(always)]
    fn drain(self, fields: &mut impl Fields, drain: &Drain) -> Drain {
        Drain {
            entry: fields.small(drain.entry, SLOT_BITS),
            generation: fields.field(drain.generation.into(), 1) as u16,
            line: fields.small(drain.line, self.line_bits),
            version: self.version(fields, drain.version),
            halves: self.carried(fields, drain.halves),
            is_torn: fields.flag(drain.is_torn),
            is_acknowledged: fields.flag(drain.is_acknowledged),
        }
    }

    #[inline(always)]
    fn acknowledgement(self, fields: &mut impl Fields, acknowledgement: &Acknowledgement) -> Acknowledgement {
        let entry = fields.small(acknowledgement.entry, SLOT_BITS);
        let generation = fields.field(acknowledgement.generation.into(), 1) as u16;
        let line = if self.has_acknowledged_lines { fields.small(acknowledgement.line, self.line_bits) } else { 0 };
        Acknowledgement { entry, generation, line }
    }

    #[inline(always)]
    fn drain_id(self, fields: &mut impl Fields, id: &DrainId) -> DrainId {
        let (entry, generation, line) = (id.entry.0 as u8, id.generation, id.line.0 as u8);
        drain_id(&self.acknowledgement(fields, &Acknowledgement { entry, generation, line }))
    }
}

fn no_write() -> Write {
    Write { request: RequestId(0), line: LineAddress(0), version: Version(0), mask: mask_of(WHOLE) }
}

fn no_read() -> Read {
    Read { request: RequestId(0), line: LineAddress(0), seen: None }
}

#[cfg(test)]
mod tests {
    use fencepost_sim::switch::Scheme;

    use super::super::action::Ways;
    use super::super::bounds::{Bounds, INPUTS, SLOTS, Topology};
    use super::*;

    #[test]
    fn the_default_bounds_have_the_code_that_was_made_for_them() {
        for scheme in [Scheme::Pb, Scheme::PbRf, Scheme::PbAdaptive] {
            let model = Model::<SLOTS, INPUTS>::sound(Bounds { scheme, ..Bounds::default() });
            assert!(Layout::of(&model) == Layout::DEFAULT);
        }
    }

    /// Walks from the first state, now here, now there. [`Packer::pack`] looks whether what it packs comes out again.
    fn walk<const B: usize, const K: usize>(model: &Model<SLOTS, INPUTS>) {
        let packer: Packer<B, SLOTS, INPUTS> = Packer::new(model);
        let (mut world, mut random) = (*packer.first(), 1_u64);
        for _ in 0..3000 {
            let mut ways = Ways::default();
            model.each_next(&world, &mut ways);
            // Knuth's generator.
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            world = match ways.len() {
                0 => *packer.first(),
                count => ways[(random >> 33) as usize % count].next,
            };
            model.make_canonical(&mut world);
            assert!(packer.pack::<K>(&mut world).is_some(), "{:?}", model.bounds);
        }
    }

    #[test]
    fn the_widest_states_fit_and_come_out_again() {
        let topologies = Topology::ALL.into_iter().flat_map(|topology| [(topology, 1), (topology, 3)]);
        for (topology, acknowledgement_inputs) in topologies {
            for scheme in Scheme::ALL {
                let widest = Bounds {
                    scheme,
                    topology,
                    addresses: 4,
                    hosts: 4,
                    writes: 7,
                    reads: 3,
                    in_flight: 4,
                    crashes: 3,
                    duplicates: 3,
                    failures: 1,
                    inputs: INPUTS as u16 - acknowledgement_inputs,
                    acknowledgement_inputs,
                    partial_writes: true,
                    ..Bounds::default()
                };
                let model = Model::sound(widest);
                match model.buffers() {
                    0 => walk::<0, 5>(&model),
                    1 => walk::<1, 8>(&model),
                    _ => walk::<2, 13>(&model),
                }
            }
        }
    }
}
