//! The state of the persist buffer's logic: fixed in size, comparable, without time.
//!
//! What survives a power cut and what does not stands field by field. Numbers that hardware would let grow (the age of
//! an entry, the recency of its use) are kept as ranks, so that states that behave alike compare equal and a finite
//! exploration closes.

use super::packet::{Acknowledgement, Packet, RequestId, Write};
use super::parameters::Parameters;
use fencepost_kernel::line::{ByteMask, LineAddress, Version};

/// Names a slot of the buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotIndex(pub u16);

impl SlotIndex {
    /// As an index into the slots.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The state of an entry (PBE), durable but for Clean: of that the durable bits say Empty, and a volatile one that it
/// can still be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryState {
    /// Holds nothing; tag and data mean nothing.
    #[default]
    Empty,
    /// Holds a line that the memory device has not been asked to take.
    Dirty,
    /// Holds a line that is on its way to the memory device, until the device acknowledges it.
    Drain,
    /// Holds a line that the memory device has acknowledged: it answers reads until a write needs the slot. A power cut
    /// leaves it Empty.
    Clean,
}

/// What a slot holds of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineData {
    /// The version of the line that these bytes make.
    pub version: Version,
    /// Which bytes are here.
    pub mask: ByteMask,
    /// Whether only a part of them is: a write was cut in the middle.
    pub is_torn: bool,
}

impl Default for LineData {
    fn default() -> LineData {
        LineData { version: Version(0), mask: ByteMask(0), is_torn: false }
    }
}

/// One slot of the buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    /// Durable: what the slot is to the rest of the buffer.
    pub state: EntryState,
    /// Durable, the tag: which line it holds.
    pub line: LineAddress,
    /// Durable, with the tag: how often the slot has been used (modulo 65,536), so that a late acknowledgement frees
    /// nothing else.
    pub generation: u16,
    /// Durable: how many younger entries of the same line there are. Hardware writes an order number with the tag; this
    /// is its rank.
    pub age: u8,
    /// Durable: the line.
    pub data: LineData,
    /// Volatile: whether the entry has been sent to the memory device since power came.
    pub is_sent: bool,
    /// Volatile: the rank among Dirty entries, or among Clean ones, by their last use, from 1 for the least recently
    /// used. 0 in other states.
    pub recency: u16,
}

impl Slot {
    /// Whether its room is taken, as it has to be drained yet or is being: Dirty or Drain.
    pub fn is_occupied(&self) -> bool {
        matches!(self.state, EntryState::Dirty | EntryState::Drain)
    }

    /// Whether its tag and data mean something: whether it is occupied or Clean.
    pub fn is_valid(&self) -> bool {
        self.state != EntryState::Empty
    }

    /// Whether it is an entry of `line` that has not been drained.
    pub fn holds(&self, line: LineAddress) -> bool {
        self.is_occupied() && self.line == line
    }

    /// What an acknowledgement of the device for this slot has to say.
    pub fn drain_id(&self, index: SlotIndex) -> Acknowledgement {
        Acknowledgement { entry: index, generation: self.generation, line: self.line }
    }
}

/// What the controller (PBC) is doing; volatile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Nothing.
    #[default]
    Idle,
    /// Puts a write into a slot, step by step.
    Write {
        /// The write.
        write: Write,
        /// The slot that becomes its entry.
        target: SlotIndex,
        /// The Dirty entry of the same line that the write is merged with.
        replaced: Option<SlotIndex>,
        /// How many steps are done.
        steps_done: u8,
    },
    /// Empties an entry whose content a younger one has taken over.
    Retire {
        /// The entry.
        slot: SlotIndex,
    },
    /// Reads an entry's data to answer a read.
    Answer {
        /// The read.
        request: RequestId,
        /// The entry.
        slot: SlotIndex,
    },
    /// Empties an entry that the memory device has acknowledged.
    Free {
        /// The entry.
        slot: SlotIndex,
    },
    /// Sends an entry to the memory device.
    Drain {
        /// The entry.
        slot: SlotIndex,
        /// Whether it is durably in state Drain yet.
        is_marked: bool,
    },
}

/// Whether there is power, and whether the buffer may take packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Takes packets.
    #[default]
    Running,
    /// Without power.
    Off,
    /// Drains what an earlier life left; takes acknowledgements only.
    Recovering,
}

/// A queue of at most `N` packets, in the order in which they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InputQueue<const N: usize> {
    /// The packets; the rest is always the default, so that equal queues compare equal.
    packets: [Packet; N],
    length: u16,
}

impl<const N: usize> Default for InputQueue<N> {
    fn default() -> Self {
        InputQueue { packets: [Packet::default(); N], length: 0 }
    }
}

impl<const N: usize> InputQueue<N> {
    /// The packets, oldest first.
    pub fn packets(&self) -> &[Packet] {
        &self.packets[..self.length as usize]
    }

    /// The packets, oldest first, to be renamed.
    pub fn packets_mut(&mut self) -> &mut [Packet] {
        &mut self.packets[..self.length as usize]
    }

    /// Adds a packet at the end.
    pub fn push(&mut self, packet: Packet) {
        self.packets[self.length as usize] = packet;
        self.length += 1;
    }

    /// Takes the packet at `position`.
    pub fn remove(&mut self, position: usize) -> Packet {
        let packet = self.packets()[position];
        self.packets.copy_within(position + 1..self.length as usize, position);
        self.length -= 1;
        self.packets[self.length as usize] = Packet::default();
        packet
    }

    /// How many of the packets are acknowledgements.
    pub fn acknowledgements(&self) -> usize {
        self.packets().iter().filter(|packet| packet.is_acknowledgement()).count()
    }
}

/// Everything the persist buffer's logic knows. `SLOTS` is at least one more than the entries, `INPUTS` at least all
/// places of the input. An exploration copies it for each next state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct State<const SLOTS: usize, const INPUTS: usize> {
    /// The slots, each with durable and volatile fields; those from `slot_count` on are not there.
    slots: [Slot; SLOTS],
    slot_count: u16,
    /// How many slots are in each [`EntryState`].
    count: [u16; 4],
    /// Volatile: the controller's input (PI).
    pub input: InputQueue<INPUTS>,
    /// Volatile: a read or write that cannot go on until an entry is freed. Others wait behind it, acknowledgements do
    /// not.
    pub parked: Option<Packet>,
    /// Volatile: what the controller is doing.
    pub operation: Operation,
    /// Volatile: whether a threshold was passed and the preset is not reached yet.
    pub is_draining: bool,
    /// Whether there is power.
    pub phase: Phase,
}

impl<const SLOTS: usize, const INPUTS: usize> State<SLOTS, INPUTS> {
    /// The empty, running buffer of `parameters`.
    ///
    /// # Panics
    /// If `SLOTS` or `INPUTS` are too small for it.
    pub fn new(parameters: &Parameters) -> Self {
        assert!(parameters.slots() <= SLOTS && parameters.inputs() <= INPUTS, "the state is too small");
        Self::with_slots(&[Slot::default(); SLOTS][..parameters.slots()])
    }

    /// A running buffer with nothing but these `slots` in it.
    ///
    /// # Panics
    /// If there are more than `SLOTS`.
    pub fn with_slots(slots: &[Slot]) -> Self {
        let mut state = State {
            slots: [Slot::default(); SLOTS],
            slot_count: slots.len() as u16,
            count: [0; 4],
            input: InputQueue::default(),
            parked: None,
            operation: Operation::Idle,
            is_draining: false,
            phase: Phase::Running,
        };
        state.slots[..slots.len()].copy_from_slice(slots);
        slots.iter().for_each(|slot| state.count[slot.state as usize] += 1);
        state
    }

    /// All slots.
    pub fn slots(&self) -> &[Slot] {
        &self.slots[..usize::from(self.slot_count)]
    }

    /// All slots, to be exchanged with each other; their states are counted.
    pub fn slots_mut(&mut self) -> &mut [Slot] {
        &mut self.slots[..usize::from(self.slot_count)]
    }

    /// The indices of all slots.
    pub fn indices(&self) -> impl Iterator<Item = SlotIndex> + use<SLOTS, INPUTS> {
        (0..self.slot_count).map(SlotIndex)
    }

    /// One slot.
    pub fn slot(&self, index: SlotIndex) -> &Slot {
        &self.slots()[index.index()]
    }

    /// One slot, to be changed in all but its state.
    pub(super) fn slot_mut(&mut self, index: SlotIndex) -> &mut Slot {
        &mut self.slots_mut()[index.index()]
    }

    /// The slots that `condition` holds for.
    pub fn slots_where(&self, condition: impl Fn(&Slot) -> bool) -> impl Iterator<Item = (SlotIndex, &Slot)> {
        let indexed = self.slots().iter().enumerate().map(|(index, slot)| (SlotIndex(index as u16), slot));
        indexed.filter(move |(_, slot)| condition(slot))
    }

    /// How many slots are in `state`.
    pub fn count(&self, state: EntryState) -> usize {
        usize::from(self.count[state as usize])
    }

    /// How many entries are occupied. A slot that is about to be retired counts no longer.
    pub fn occupied(&self) -> usize {
        let retiring = usize::from(matches!(self.operation, Operation::Retire { .. }));
        self.count(EntryState::Dirty) + self.count(EntryState::Drain) - retiring
    }

    /// The youngest entry of `line` that has not been drained.
    pub fn youngest(&self, line: LineAddress) -> Option<SlotIndex> {
        self.slots_where(|slot| slot.holds(line)).min_by_key(|(_, slot)| slot.age).map(|(index, _)| index)
    }

    /// The version of `line` that a recovery would bring to the memory device: that of its youngest entry.
    pub fn durable_version(&self, line: LineAddress) -> Option<Version> {
        self.youngest(line).map(|index| self.slot(index).data.version)
    }

    /// Changes the state of an entry.
    pub(super) fn set_state(&mut self, index: SlotIndex, state: EntryState) {
        let old = std::mem::replace(&mut self.slot_mut(index).state, state);
        self.count[old as usize] -= 1;
        self.count[state as usize] += 1;
    }

    /// Makes `index`, which is Dirty or Clean, the most recently used entry of its state.
    pub(super) fn touch(&mut self, index: SlotIndex) {
        self.forget_recency(index);
        self.slot_mut(index).recency = self.count[self.slot(index).state as usize];
    }

    /// Takes `index` out of the order of use of its state.
    pub(super) fn forget_recency(&mut self, index: SlotIndex) {
        let recency = std::mem::take(&mut self.slot_mut(index).recency);
        let state = self.slot(index).state;
        // Nothing stands above the most recently used.
        if recency > 0 && recency < self.count[state as usize] {
            let later = self.slots_mut().iter_mut().filter(|slot| slot.state == state && slot.recency > recency);
            later.for_each(|slot| slot.recency -= 1);
        }
    }

    /// Makes `index` an entry in state Dirty, the youngest of its line.
    pub(super) fn make_dirty(&mut self, index: SlotIndex) {
        let line = self.slot(index).line;
        if !self.slot(index).is_occupied() {
            self.slots_mut().iter_mut().filter(|slot| slot.holds(line)).for_each(|slot| slot.age += 1);
            self.slot_mut(index).age = 0;
        }
        self.set_state(index, EntryState::Dirty);
        self.touch(index);
    }

    /// Makes `index`, the only entry of its line, Clean: it has been acknowledged.
    pub(super) fn make_clean(&mut self, index: SlotIndex) {
        self.set_state(index, EntryState::Clean);
        let slot = self.slot_mut(index);
        (slot.is_sent, slot.age) = (false, 0);
        self.touch(index);
    }

    /// The Clean entry of `line`.
    pub fn clean(&self, line: LineAddress) -> Option<SlotIndex> {
        if self.count[EntryState::Clean as usize] == 0 {
            return None;
        }
        let is_it = |slot: &Slot| slot.state == EntryState::Clean && slot.line == line;
        self.slots_where(is_it).next().map(|(index, _)| index)
    }

    /// Makes `index` Empty. Only its generation stays; what else an Empty slot holds means nothing and is forgotten, so
    /// that equal states are equal.
    pub(super) fn empty(&mut self, index: SlotIndex) {
        self.forget_recency(index);
        let emptied = *self.slot(index);
        self.set_state(index, EntryState::Empty);
        *self.slot_mut(index) = Slot { generation: emptied.generation, ..Slot::default() };
        if emptied.is_occupied() {
            let older = self.slots_mut().iter_mut().filter(|slot| slot.holds(emptied.line) && slot.age > emptied.age);
            older.for_each(|slot| slot.age -= 1);
        }
    }
}
