//! A state as a few words: what the set of visited states keeps, byte for byte, so that no two states are ever taken for one.
//!
//! One description of the fields serves both ways: writing gives the field back as it is, reading gives what was written.

use fencepost_sim::message::{LineAddress, Version};
use fencepost_sim::switch::persist_buffer::packet::{Read, RequestId, Write};
use fencepost_sim::switch::persist_buffer::state::{EntryState, LineData, Operation, Phase, Slot, SlotIndex};
use fencepost_sim::switch::persist_buffer::{DrainId, Packet, State};

use super::model::Model;
use super::world::{
    Acknowledgement, Channel, Drain, Halves, Host, OWN_WRITE, ReadPlace, Requester, WHOLE, World, WritePlace, drain_id,
    halves_of, mask_of,
};

/// A packed state.
pub type Words<const K: usize> = [u64; K];

/// Bits of a version; the highest number stands for [`OWN_WRITE`].
const VERSION_BITS: u32 = 4;
const VERSION_OWN: u8 = 15;
const SLOT_BITS: u32 = 3;
const HOST_BITS: u32 = 2;
const LENGTH_BITS: u32 = 3;

/// Reads or writes groups of fields.
trait Coder {
    /// The fields of a group.
    type Group: Fields;
    /// Begins a group.
    fn begin(&mut self) -> Self::Group;
    /// A group has no more fields.
    fn end(&mut self, group: Self::Group);

    /// Fields of at most 64 bits together, which are read or written at once.
    #[inline(always)]
    fn group<T>(&mut self, code: impl FnOnce(&mut Self::Group) -> T) -> T {
        let mut group = self.begin();
        let coded = code(&mut group);
        self.end(group);
        coded
    }
}

/// Reads or writes fields.
trait Fields {
    /// Whether fields are read.
    const READS: bool;
    /// The field: `value` when writing, what was written when reading.
    fn field(&mut self, value: u64, bits: u32) -> u64;

    #[inline(always)]
    fn flag(&mut self, value: bool) -> bool {
        self.field(value.into(), 1) == 1
    }

    #[inline(always)]
    fn small(&mut self, value: u8, bits: u32) -> u8 {
        self.field(value.into(), bits) as u8
    }
}

/// Collects groups in a word, and puts it down when it is full.
struct Writer<const K: usize> {
    words: Words<K>,
    /// Words that were put down, those without a place among them.
    full: usize,
    word: u64,
    bits: u32,
    /// Whether a value had more bits than its field, or a group more than a word.
    has_overflown: bool,
}

impl<const K: usize> Writer<K> {
    fn new() -> Self {
        Writer { words: [0; K], full: 0, word: 0, bits: 0, has_overflown: false }
    }

    #[inline(always)]
    fn put_down(&mut self) {
        if let Some(place) = self.words.get_mut(self.full) {
            *place = self.word;
        }
        self.full += 1;
    }

    /// The words; nothing if there are too many, or a value was too large for its field.
    fn finish(mut self) -> Option<Words<K>> {
        if self.bits > 0 {
            self.put_down();
        }
        (self.full <= K && !self.has_overflown).then_some(self.words)
    }
}

impl<const K: usize> Coder for Writer<K> {
    type Group = WrittenGroup;

    #[inline(always)]
    fn begin(&mut self) -> WrittenGroup {
        WrittenGroup { word: 0, bits: 0, overflow: 0 }
    }

    #[inline(always)]
    fn end(&mut self, group: WrittenGroup) {
        self.has_overflown |= group.overflow != 0 || group.bits > u64::BITS;
        self.word |= group.word << self.bits;
        self.bits += group.bits;
        if self.bits >= u64::BITS {
            self.put_down();
            self.bits -= u64::BITS;
            // What of the group did not fit.
            self.word = group.word.checked_shr(group.bits - self.bits).unwrap_or(0);
        }
    }
}

/// A group that is written.
struct WrittenGroup {
    word: u64,
    bits: u32,
    /// Not 0 if a value had more bits than its field.
    overflow: u64,
}

impl Fields for WrittenGroup {
    const READS: bool = false;

    #[inline(always)]
    fn field(&mut self, value: u64, bits: u32) -> u64 {
        self.overflow |= value >> bits;
        self.word |= value.wrapping_shl(self.bits);
        self.bits += bits;
        value
    }
}

struct Reader<'a, const K: usize> {
    words: &'a Words<K>,
    position: usize,
}

impl<const K: usize> Coder for Reader<'_, K> {
    type Group = ReadGroup;

    #[inline(always)]
    fn begin(&mut self) -> ReadGroup {
        let (word, shift) = (self.position / 64, self.position as u32 % 64);
        let at = |word: usize| self.words.get(word).copied().unwrap_or(0);
        ReadGroup { rest: at(word) >> shift | at(word + 1).checked_shl(64 - shift).unwrap_or(0), bits: 0 }
    }

    #[inline(always)]
    fn end(&mut self, group: ReadGroup) {
        self.position += group.bits;
    }
}

/// A group that is read.
struct ReadGroup {
    rest: u64,
    bits: usize,
}

impl Fields for ReadGroup {
    const READS: bool = true;

    #[inline(always)]
    fn field(&mut self, _: u64, bits: u32) -> u64 {
        let value = self.rest & ((1 << bits) - 1);
        self.rest >>= bits;
        self.bits += bits as usize;
        value
    }
}

/// What the widths of fields depend on.
#[derive(Clone, Copy)]
struct Layout {
    line_bits: u32,
    has_halves: bool,
    has_seen: bool,
    has_acknowledged_lines: bool,
    has_failures: bool,
    buffers: usize,
}

impl<const S: usize, const I: usize> Model<S, I> {
    fn layout(&self) -> Layout {
        Layout {
            line_bits: u32::from(self.bounds.addresses).next_power_of_two().trailing_zeros(),
            has_halves: self.bounds.partial_writes,
            has_seen: self.reads.selector_sight,
            has_acknowledged_lines: self.reads.acknowledged_lines,
            has_failures: self.bounds.failures > 0,
            buffers: self.buffers(),
        }
    }

    /// `world`, a canonical state, in as few bits as are needed; nothing if they do not fit.
    pub fn pack<const B: usize, const K: usize>(&self, world: &mut World<B, S, I>) -> Option<Words<K>> {
        let mut writer = Writer::new();
        self.code(&mut writer, world);
        let packed = writer.finish();
        debug_assert!(
            packed.is_none_or(|words| self.unpack::<B, K>(&words) == *world),
            "the words hold all of the state: {world:#?}"
        );
        packed
    }

    /// The state that was packed.
    pub fn unpack<const B: usize, const K: usize>(&self, words: &Words<K>) -> World<B, S, I> {
        self.unpack_over(&self.initial(), words)
    }

    /// The state that was packed, written over the first state.
    pub fn unpack_over<const B: usize, const K: usize>(
        &self,
        first: &World<B, S, I>,
        words: &Words<K>,
    ) -> World<B, S, I> {
        let mut world = first.clone();
        self.code(&mut Reader { words, position: 0 }, &mut world);
        world
    }

    fn code<const B: usize>(&self, coder: &mut impl Coder, world: &mut World<B, S, I>) {
        let layout = self.layout();
        coder.group(|fields| {
            world.crashes_left = fields.small(world.crashes_left, 2);
            world.duplicates_left = fields.small(world.duplicates_left, 2);
            world.pm_has_failed = layout.has_failures && fields.flag(world.pm_has_failed);
        });
        for line in 0..usize::from(self.bounds.addresses) {
            coder.group(|fields| {
                world.memory[line] = layout.halves(fields, world.memory[line]);
                world.promised[line] = layout.halves(fields, world.promised[line]);
            });
        }
        for host in &mut world.hosts[..usize::from(self.bounds.hosts)] {
            coder.group(|fields| layout.host(fields, host, self.bounds.addresses));
        }
        for state in &mut world.buffers {
            layout.state(coder, state);
        }
        for link in &mut world.links {
            layout.channel(coder, &mut link.drains, Layout::drain);
            layout.channel(coder, &mut link.acknowledgements, Layout::acknowledgement);
        }
    }
}

impl Layout {
    #[inline(always)]
    fn line(self, fields: &mut impl Fields, line: LineAddress) -> LineAddress {
        LineAddress(fields.field(line.0, self.line_bits))
    }

    #[inline(always)]
    fn version(self, fields: &mut impl Fields, version: u8) -> u8 {
        fields.small(version, VERSION_BITS)
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
    fn host<F: Fields>(self, fields: &mut F, host: &mut Host, addresses: u8) {
        host.writes_left = fields.small(host.writes_left, 3);
        host.reads_left = fields.small(host.reads_left, 2);
        for write in &mut host.writes[..usize::from(addresses)] {
            let coded = self.write_place(fields, *write);
            if F::READS {
                *write = coded;
            }
        }
        let (kind, number) = match host.read {
            ReadPlace::None => (0, 0),
            ReadPlace::Travelling { hops } => (1, hops),
            ReadPlace::Inside { buffer } => (2, buffer),
            ReadPlace::Below { buffer } => (3, buffer),
        };
        let kind = fields.small(kind, 2);
        if kind == 0 {
            host.read = ReadPlace::None;
            return;
        }
        let number = if kind == 1 || self.buffers > 1 { fields.small(number, 2) } else { 0 };
        host.read = match kind {
            1 => ReadPlace::Travelling { hops: number },
            2 => ReadPlace::Inside { buffer: number },
            _ => ReadPlace::Below { buffer: number },
        };
        host.read_line = fields.small(host.read_line, self.line_bits);
        host.read_floor = self.floor(fields, host.read_floor);
    }

    #[inline(always)]
    fn write_place(self, fields: &mut impl Fields, place: WritePlace) -> WritePlace {
        /// Bits of the number, by kind.
        const NUMBER_BITS: [u32; 4] = [0, 2, 0, VERSION_BITS];
        let (kind, number, halves) = match place {
            WritePlace::None => (0, 0, WHOLE),
            WritePlace::Travelling { hops, halves } => (1, hops, halves),
            WritePlace::Inside => (2, 0, WHOLE),
            WritePlace::Written { version, halves } => (3, version, halves),
        };
        let kind = fields.small(kind, 2);
        let number = fields.small(number, NUMBER_BITS[usize::from(kind)]);
        let halves = if self.has_halves && kind & 1 == 1 { fields.small(halves, 2) } else { WHOLE };
        match kind {
            0 => WritePlace::None,
            1 => WritePlace::Travelling { hops: number, halves },
            2 => WritePlace::Inside,
            _ => WritePlace::Written { version: number, halves },
        }
    }

    fn state<C: Coder, const S: usize, const I: usize>(self, coder: &mut C, state: &mut State<S, I>) {
        let mut slots = [Slot::default(); S];
        let count = state.slots().len();
        for (slot, old) in slots.iter_mut().zip(state.slots()) {
            *slot = coder.group(|fields| self.slot(fields, old));
        }
        let (operation, parked, phase, is_draining, length) = coder.group(|fields| {
            let operation = self.operation(fields, state.operation);
            let is_recovering = fields.flag(state.phase == Phase::Recovering);
            let phase = if is_recovering { Phase::Recovering } else { Phase::Running };
            let is_draining = fields.flag(state.is_draining);
            let is_parked = fields.flag(state.parked.is_some());
            let parked = is_parked.then(|| self.packet(fields, &state.parked.unwrap_or_default()));
            (operation, parked, phase, is_draining, fields.small(state.input.packets().len() as u8, LENGTH_BITS))
        });
        if !C::Group::READS {
            for packet in state.input.packets() {
                coder.group(|fields| self.packet(fields, packet));
            }
            return;
        }
        *state = State::with_slots(&slots[..count]);
        (state.operation, state.parked, state.phase, state.is_draining) = (operation, parked, phase, is_draining);
        for _ in 0..length {
            state.input.push(coder.group(|fields| self.packet(fields, &Packet::default())));
        }
    }

    #[inline(always)]
    fn slot(self, fields: &mut impl Fields, slot: &Slot) -> Slot {
        // A canonical state has one generation for all slots.
        let mut coded = Slot { generation: 1, ..Slot::default() };
        coded.state = match fields.field(slot.state as u64, 2) {
            0 => EntryState::Empty,
            1 => EntryState::Dirty,
            2 => EntryState::Drain,
            _ => EntryState::Clean,
        };
        let has_content = coded.is_valid() || fields.flag(slot.data.mask.0 != 0 || slot.line != LineAddress(0));
        if !has_content {
            return coded;
        }
        coded.line = self.line(fields, slot.line);
        let version = self.version(fields, slot.data.version.0 as u8);
        // In a slot that is being written even a line without partial writes may be empty.
        let halves = if self.has_halves {
            fields.small(halves_of(slot.data.mask), 2)
        } else {
            fields.small(u8::from(slot.data.mask.0 != 0), 1) * WHOLE
        };
        let is_torn = fields.flag(slot.data.is_torn);
        coded.data = LineData { version: Version(version.into()), mask: mask_of(halves), is_torn };
        if coded.is_occupied() {
            coded.age = fields.small(slot.age, 3);
        }
        // A broken rule may leave a Dirty entry that was sent.
        coded.is_sent = coded.is_occupied() && fields.flag(slot.is_sent);
        if matches!(coded.state, EntryState::Dirty | EntryState::Clean) {
            coded.recency = fields.field(slot.recency.into(), 3) as u16;
        }
        coded
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
        let is_seen = self.has_seen && fields.flag(read.seen.is_some());
        let seen = is_seen.then(|| self.slot_index(fields, read.seen.unwrap_or_default()));
        Read { request, line, seen }
    }

    /// Whoever waits for a packet of `line`.
    #[inline(always)]
    fn request(self, fields: &mut impl Fields, request: RequestId, line: LineAddress) -> RequestId {
        let line = line.0 as u8;
        let (is_host, number, generation) = match Requester::of(request) {
            Requester::Host { host, .. } => (true, host as u8, 0),
            Requester::Drain { entry, generation } => (false, entry, generation),
        };
        if self.buffers < 2 || fields.flag(is_host) {
            return Requester::Host { host: fields.field(number.into(), HOST_BITS) as usize, line }.id();
        }
        let entry = fields.small(number, SLOT_BITS);
        Requester::Drain { entry, generation: fields.field(generation.into(), 1) as u16 }.id()
    }

    #[inline(always)]
    fn operation(self, fields: &mut impl Fields, operation: Operation) -> Operation {
        let (mut write, mut target, mut replaced, mut steps_done) = (no_write(), SlotIndex(0), None, 0);
        let (mut slot, mut answered, mut was_marked) = (SlotIndex(0), RequestId(0), false);
        let kind = match operation {
            Operation::Idle => 0,
            Operation::Write { .. } => {
                let Operation::Write { write: of, target: to, replaced: old, steps_done: steps } = operation else {
                    unreachable!("it was matched")
                };
                (write, target, replaced, steps_done) = (of, to, old, steps);
                1
            }
            Operation::Retire { slot: of } => {
                slot = of;
                2
            }
            Operation::Answer { request, slot: of } => {
                (answered, slot) = (request, of);
                3
            }
            Operation::Free { slot: of } => {
                slot = of;
                4
            }
            Operation::Drain { slot: of, is_marked } => {
                (slot, was_marked) = (of, is_marked);
                5
            }
        };
        match fields.field(kind, 3) {
            0 => Operation::Idle,
            1 => {
                let write = self.write(fields, &write);
                let target = self.slot_index(fields, target);
                let is_merged = fields.flag(replaced.is_some());
                let replaced = is_merged.then(|| self.slot_index(fields, replaced.unwrap_or_default()));
                Operation::Write { write, target, replaced, steps_done: fields.small(steps_done, 3) }
            }
            2 => Operation::Retire { slot: self.slot_index(fields, slot) },
            3 => {
                let line = match Requester::of(answered) {
                    Requester::Host { line, .. } => LineAddress(line.into()),
                    Requester::Drain { .. } => LineAddress(0),
                };
                let line = self.line(fields, line);
                let request = self.request(fields, answered, line);
                Operation::Answer { request, slot: self.slot_index(fields, slot) }
            }
            4 => Operation::Free { slot: self.slot_index(fields, slot) },
            _ => {
                let slot = self.slot_index(fields, slot);
                Operation::Drain { slot, is_marked: fields.flag(was_marked) }
            }
        }
    }

    #[inline(always)]
    fn channel<C: Coder, T: Copy + Default + Ord>(
        self,
        coder: &mut C,
        channel: &mut Channel<T>,
        code: impl Fn(Layout, &mut C::Group, &T) -> T,
    ) {
        coder.group(|fields| {
            let length = fields.small(channel.len() as u8, LENGTH_BITS);
            if C::Group::READS {
                (0..length).for_each(|_| channel.push(code(self, fields, &T::default())));
            } else {
                channel.messages().iter().for_each(|message| {
                    code(self, fields, message);
                });
            }
        });
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
    use super::*;

    #[test]
    fn a_value_too_large_for_its_field_gives_no_words() {
        let packed = |value| {
            let mut writer = Writer::<1>::new();
            writer.group(|fields| fields.field(3, 2));
            writer.group(|fields| fields.field(value, 4));
            writer.finish()
        };
        assert_eq!(packed(15), Some([0b11_1111]));
        assert_eq!(packed(16), None);
    }
}
