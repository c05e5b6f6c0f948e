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
const VERSION_OWN: u64 = 15;
const SLOT_BITS: u32 = 3;
const HOST_BITS: u32 = 2;
const LENGTH_BITS: u32 = 3;

/// Reads or writes fields.
trait Coder {
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

/// Collects fields in a word, and puts it down when it is full.
struct Writer<const K: usize> {
    words: Words<K>,
    /// Words that were put down, those without a place among them.
    full: usize,
    word: u64,
    bits: u32,
    /// Not 0 if a value had more bits than its field.
    overflow: u64,
}

impl<const K: usize> Writer<K> {
    fn new() -> Self {
        Writer { words: [0; K], full: 0, word: 0, bits: 0, overflow: 0 }
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
        (self.full <= K && self.overflow == 0).then_some(self.words)
    }
}

impl<const K: usize> Coder for Writer<K> {
    const READS: bool = false;

    #[inline(always)]
    fn field(&mut self, value: u64, bits: u32) -> u64 {
        self.overflow |= value >> bits;
        self.word |= value << self.bits;
        self.bits += bits;
        if self.bits >= 64 {
            self.put_down();
            self.bits -= 64;
            // What of the value did not fit.
            self.word = value >> (bits - self.bits);
        }
        value
    }
}

struct Reader<'a, const K: usize> {
    words: &'a Words<K>,
    position: usize,
}

impl<const K: usize> Coder for Reader<'_, K> {
    const READS: bool = true;

    #[inline(always)]
    fn field(&mut self, _: u64, bits: u32) -> u64 {
        if bits == 0 {
            return 0;
        }
        let (word, shift) = (self.position / 64, self.position % 64);
        let mut value = self.words[word] >> shift;
        if shift + bits as usize > 64 {
            value |= self.words[word + 1] << (64 - shift);
        }
        self.position += bits as usize;
        value & ((1 << bits) - 1)
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
        world.crashes_left = coder.small(world.crashes_left, 2);
        world.duplicates_left = coder.small(world.duplicates_left, 2);
        world.pm_has_failed = layout.has_failures && coder.flag(world.pm_has_failed);
        for line in 0..usize::from(self.bounds.addresses) {
            world.memory[line] = layout.halves(coder, world.memory[line]);
            world.promised[line] = layout.halves(coder, world.promised[line]);
        }
        for host in &mut world.hosts[..usize::from(self.bounds.hosts)] {
            layout.host(coder, host, self.bounds.addresses);
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
    #[inline]
    fn line(self, coder: &mut impl Coder, line: LineAddress) -> LineAddress {
        LineAddress(coder.field(line.0, self.line_bits))
    }

    #[inline]
    fn version(self, coder: &mut impl Coder, version: u8) -> u8 {
        let wide = if version == OWN_WRITE { VERSION_OWN } else { version.into() };
        match coder.field(wide, VERSION_BITS) {
            VERSION_OWN => OWN_WRITE,
            version => version as u8,
        }
    }

    /// Without partial writes both halves of a line always have one version.
    #[inline]
    fn halves(self, coder: &mut impl Coder, versions: Halves) -> Halves {
        let low = self.version(coder, versions[0]);
        [low, if self.has_halves { self.version(coder, versions[1]) } else { low }]
    }

    #[inline]
    fn carried(self, coder: &mut impl Coder, halves: u8) -> u8 {
        if self.has_halves { coder.small(halves, 2) } else { WHOLE }
    }

    #[inline]
    fn slot_index(self, coder: &mut impl Coder, index: SlotIndex) -> SlotIndex {
        SlotIndex(coder.field(index.0.into(), SLOT_BITS) as u16)
    }

    #[inline]
    fn host(self, coder: &mut impl Coder, host: &mut Host, addresses: u8) {
        host.writes_left = coder.small(host.writes_left, 3);
        host.reads_left = coder.small(host.reads_left, 2);
        for write in &mut host.writes[..usize::from(addresses)] {
            *write = self.write_place(coder, *write);
        }
        let (kind, number) = match host.read {
            ReadPlace::None => (0, 0),
            ReadPlace::Travelling { hops } => (1, hops),
            ReadPlace::Inside { buffer } => (2, buffer),
            ReadPlace::Below { buffer } => (3, buffer),
        };
        let kind = coder.small(kind, 2);
        if kind == 0 {
            host.read = ReadPlace::None;
            return;
        }
        let number = if kind == 1 || self.buffers > 1 { coder.small(number, 2) } else { 0 };
        host.read = match kind {
            1 => ReadPlace::Travelling { hops: number },
            2 => ReadPlace::Inside { buffer: number },
            _ => ReadPlace::Below { buffer: number },
        };
        host.read_line = coder.small(host.read_line, self.line_bits);
        host.read_floor = self.halves(coder, host.read_floor);
    }

    #[inline]
    fn write_place(self, coder: &mut impl Coder, place: WritePlace) -> WritePlace {
        let (kind, number, halves) = match place {
            WritePlace::None => (0, 0, WHOLE),
            WritePlace::Travelling { hops, halves } => (1, hops, halves),
            WritePlace::Inside => (2, 0, WHOLE),
            WritePlace::Written { version, halves } => (3, version, halves),
        };
        match coder.small(kind, 2) {
            0 => WritePlace::None,
            1 => WritePlace::Travelling { hops: coder.small(number, 2), halves: self.carried(coder, halves) },
            2 => WritePlace::Inside,
            _ => WritePlace::Written { version: self.version(coder, number), halves: self.carried(coder, halves) },
        }
    }

    fn state<C: Coder, const S: usize, const I: usize>(self, coder: &mut C, state: &mut State<S, I>) {
        let operation = self.operation(coder, state.operation);
        let mut slots = [Slot::default(); S];
        let count = state.slots().len();
        for (slot, old) in slots.iter_mut().zip(state.slots()) {
            *slot = self.slot(coder, old);
        }
        let is_recovering = coder.flag(state.phase == Phase::Recovering);
        let is_draining = coder.flag(state.is_draining);
        let parked = coder.flag(state.parked.is_some());
        let parked = parked.then(|| self.packet(coder, &state.parked.unwrap_or_default()));
        let length = coder.small(state.input.packets().len() as u8, LENGTH_BITS);
        if !C::READS {
            for packet in state.input.packets() {
                self.packet(coder, packet);
            }
            return;
        }
        *state = State::with_slots(&slots[..count]);
        state.operation = operation;
        state.phase = if is_recovering { Phase::Recovering } else { Phase::Running };
        state.is_draining = is_draining;
        state.parked = parked;
        for _ in 0..length {
            let packet = self.packet(coder, &Packet::default());
            state.input.push(packet);
        }
    }

    #[inline]
    fn slot(self, coder: &mut impl Coder, slot: &Slot) -> Slot {
        // A canonical state has one generation for all slots.
        let mut coded = Slot { generation: 1, ..Slot::default() };
        coded.state = match coder.field(slot.state as u64, 2) {
            0 => EntryState::Empty,
            1 => EntryState::Dirty,
            2 => EntryState::Drain,
            _ => EntryState::Clean,
        };
        let has_content = coded.is_valid() || coder.flag(slot.data.mask.0 != 0 || slot.line != LineAddress(0));
        if !has_content {
            return coded;
        }
        coded.line = self.line(coder, slot.line);
        let version = self.version(coder, slot.data.version.0 as u8);
        // In a slot that is being written even a line without partial writes may be empty.
        let halves = if self.has_halves {
            coder.small(halves_of(slot.data.mask), 2)
        } else {
            coder.small(u8::from(slot.data.mask.0 != 0), 1) * WHOLE
        };
        let is_torn = coder.flag(slot.data.is_torn);
        coded.data = LineData { version: Version(version.into()), mask: mask_of(halves), is_torn };
        if coded.is_occupied() {
            coded.age = coder.small(slot.age, 3);
        }
        // A broken rule may leave a Dirty entry that was sent.
        coded.is_sent = coded.is_occupied() && coder.flag(slot.is_sent);
        if matches!(coded.state, EntryState::Dirty | EntryState::Clean) {
            coded.recency = coder.field(slot.recency.into(), 3) as u16;
        }
        coded
    }

    fn packet(self, coder: &mut impl Coder, packet: &Packet) -> Packet {
        let kind = match packet {
            Packet::Write(_) => 0,
            Packet::Read(_) => 1,
            Packet::Acknowledgement(_) => 2,
        };
        match (coder.field(kind, 2), *packet) {
            (0, Packet::Write(write)) => Packet::Write(self.write(coder, &write)),
            (0, _) => Packet::Write(self.write(coder, &no_write())),
            (1, Packet::Read(read)) => Packet::Read(self.read(coder, &read)),
            (1, _) => Packet::Read(self.read(coder, &no_read())),
            (_, Packet::Acknowledgement(id)) => Packet::Acknowledgement(self.drain_id(coder, &id)),
            _ => unreachable!("no packet is read over one of another kind but an acknowledgement"),
        }
    }

    fn write(self, coder: &mut impl Coder, write: &Write) -> Write {
        let line = self.line(coder, write.line);
        Write {
            request: self.request(coder, write.request, line),
            line,
            version: Version(self.version(coder, write.version.0 as u8).into()),
            mask: mask_of(self.carried(coder, halves_of(write.mask))),
        }
    }

    fn read(self, coder: &mut impl Coder, read: &Read) -> Read {
        let line = self.line(coder, read.line);
        let request = self.request(coder, read.request, line);
        let is_seen = self.has_seen && coder.flag(read.seen.is_some());
        let seen = is_seen.then(|| self.slot_index(coder, read.seen.unwrap_or_default()));
        Read { request, line, seen }
    }

    /// Whoever waits for a packet of `line`.
    #[inline]
    fn request(self, coder: &mut impl Coder, request: RequestId, line: LineAddress) -> RequestId {
        let line = line.0 as u8;
        let (is_host, number, generation) = match Requester::of(request) {
            Requester::Host { host, .. } => (true, host as u8, 0),
            Requester::Drain { entry, generation } => (false, entry, generation),
        };
        if self.buffers < 2 || coder.flag(is_host) {
            return Requester::Host { host: coder.field(number.into(), HOST_BITS) as usize, line }.id();
        }
        let entry = coder.small(number, SLOT_BITS);
        Requester::Drain { entry, generation: coder.field(generation.into(), 1) as u16 }.id()
    }

    fn operation(self, coder: &mut impl Coder, operation: Operation) -> Operation {
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
        match coder.field(kind, 3) {
            0 => Operation::Idle,
            1 => {
                let write = self.write(coder, &write);
                let target = self.slot_index(coder, target);
                let is_merged = coder.flag(replaced.is_some());
                let replaced = is_merged.then(|| self.slot_index(coder, replaced.unwrap_or_default()));
                Operation::Write { write, target, replaced, steps_done: coder.small(steps_done, 3) }
            }
            2 => Operation::Retire { slot: self.slot_index(coder, slot) },
            3 => {
                let line = match Requester::of(answered) {
                    Requester::Host { line, .. } => LineAddress(line.into()),
                    Requester::Drain { .. } => LineAddress(0),
                };
                let line = self.line(coder, line);
                let request = self.request(coder, answered, line);
                Operation::Answer { request, slot: self.slot_index(coder, slot) }
            }
            4 => Operation::Free { slot: self.slot_index(coder, slot) },
            _ => {
                let slot = self.slot_index(coder, slot);
                Operation::Drain { slot, is_marked: coder.flag(was_marked) }
            }
        }
    }

    fn channel<C: Coder, T: Copy + Default + Ord>(
        self,
        coder: &mut C,
        channel: &mut Channel<T>,
        code: fn(Layout, &mut C, &T) -> T,
    ) {
        let length = coder.small(channel.len() as u8, LENGTH_BITS);
        if C::READS {
            (0..length).for_each(|_| {
                let message = code(self, coder, &T::default());
                channel.push(message);
            });
        } else {
            channel.messages().iter().for_each(|message| {
                code(self, coder, message);
            });
        }
    }

    fn drain<C: Coder>(self, coder: &mut C, drain: &Drain) -> Drain {
        Drain {
            entry: coder.small(drain.entry, SLOT_BITS),
            generation: coder.field(drain.generation.into(), 1) as u16,
            line: coder.small(drain.line, self.line_bits),
            version: self.version(coder, drain.version),
            halves: self.carried(coder, drain.halves),
            is_torn: coder.flag(drain.is_torn),
            is_acknowledged: coder.flag(drain.is_acknowledged),
        }
    }

    fn acknowledgement<C: Coder>(self, coder: &mut C, acknowledgement: &Acknowledgement) -> Acknowledgement {
        let entry = coder.small(acknowledgement.entry, SLOT_BITS);
        let generation = coder.field(acknowledgement.generation.into(), 1) as u16;
        let line = if self.has_acknowledged_lines { coder.small(acknowledgement.line, self.line_bits) } else { 0 };
        Acknowledgement { entry, generation, line }
    }

    fn drain_id(self, coder: &mut impl Coder, id: &DrainId) -> DrainId {
        let (entry, generation, line) = (id.entry.0 as u8, id.generation, id.line.0 as u8);
        drain_id(&self.acknowledgement(coder, &Acknowledgement { entry, generation, line }))
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
            writer.field(3, 2);
            writer.field(value, 4);
            writer.finish()
        };
        assert_eq!(packed(15), Some([0b11_1111]));
        assert_eq!(packed(16), None);
    }
}
