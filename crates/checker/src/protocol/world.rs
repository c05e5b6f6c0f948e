//! The state of everything: persist buffers, the hosts around them, the channels between, what PM holds, and what was
//! promised.
//!
//! The buffers are the simulator's own states. Everything else is as small as it can be and still do all that the real
//! parts can do.

use fencepost_kernel::line::{ByteMask, LineAddress, Version};
use fencepost_sim::switch::persist_buffer::packet::{RequestId, Write};
use fencepost_sim::switch::persist_buffer::state::{Operation, Slot, SlotIndex};
use fencepost_sim::switch::persist_buffer::{DrainId, Packet, State};

/// Addresses at most.
pub const ADDRESSES_MAX: usize = 4;
/// Hosts at most.
pub const HOSTS_MAX: usize = 4;
/// Messages in a channel at most.
pub const IN_FLIGHT_MAX: usize = 4;

/// The halves of a line that a mask covers, as bits: what partial writes are made of here.
pub const LOW: u8 = 1;
/// A whole line.
pub const WHOLE: u8 = 3;

/// The mask of `halves`.
pub fn mask_of(halves: u8) -> ByteMask {
    const MASKS: [u64; 4] = [0, 0xFFFF_FFFF, 0xFFFF_FFFF << 32, u64::MAX];
    ByteMask(MASKS[usize::from(halves)])
}

/// The halves that `mask` covers whole.
pub fn halves_of(mask: ByteMask) -> u8 {
    u8::from(mask.0 as u32 == u32::MAX) | u8::from((mask.0 >> 32) as u32 == u32::MAX) << 1
}

/// Whether `halves` has half number `half`.
pub fn has_half(halves: u8, half: usize) -> bool {
    halves >> half & 1 == 1
}

/// The versions of the two halves of a line.
pub type Halves = [u8; 2];

/// In the place of a version that a read must see at least: that of its own host's earlier write, which has none yet.
pub const OWN_WRITE: u8 = u8::MAX;

/// A message of a persist buffer to what lies below it: a line to be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Drain {
    /// The slot it came from.
    pub entry: u8,
    /// The slot's generation then.
    pub generation: u16,
    /// The line.
    pub line: u8,
    /// Its version.
    pub version: u8,
    /// What of the line it carries.
    pub halves: u8,
    /// Whether it is a line in pieces.
    pub is_torn: bool,
    /// Whether the receiver has acknowledged it already, without having kept it: what no sound receiver does.
    pub is_acknowledged: bool,
}

/// The acknowledgement of a drain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Acknowledgement {
    /// The slot that was drained.
    pub entry: u8,
    /// Its generation then.
    pub generation: u16,
    /// Its line then; 0 where no rule reads it.
    pub line: u8,
}

/// Messages of one class on a link. They arrive in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Channel<T> {
    messages: [T; IN_FLIGHT_MAX],
    length: u8,
}

impl<T: Copy + Default + Ord> Channel<T> {
    /// The messages.
    pub fn messages(&self) -> &[T] {
        &self.messages[..usize::from(self.length)]
    }

    /// The messages, to be renamed.
    pub fn messages_mut(&mut self) -> &mut [T] {
        &mut self.messages[..usize::from(self.length)]
    }

    /// The message at `place`, or the default where there is none.
    ///
    /// # Panics
    /// If there is no such place.
    pub fn at(&self, place: usize) -> T {
        self.messages[place]
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        usize::from(self.length)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// One more.
    pub fn push(&mut self, message: T) {
        self.messages[usize::from(self.length)] = message;
        self.length += 1;
    }

    /// One less.
    pub fn remove(&mut self, index: usize) -> T {
        let removed = self.messages[index];
        self.length -= 1;
        self.messages[index] = self.messages[usize::from(self.length)];
        self.messages[usize::from(self.length)] = T::default();
        removed
    }

    /// Brings the messages into one order: that in which they were sent means nothing.
    pub fn sort(&mut self) {
        self.messages_mut().sort_unstable();
    }
}

/// The link below a persist buffer. Its reads are with the hosts that wait for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Link {
    /// M2S RwD.
    pub drains: Channel<Drain>,
    /// S2M NDR.
    pub acknowledgements: Channel<Acknowledgement>,
}

/// Where a host's write to a line is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WritePlace {
    /// There is none without `Cmp`.
    #[default]
    None,
    /// So many hops before the first thing that may keep it.
    Travelling {
        /// The hops.
        hops: u8,
        /// What of the line it carries.
        halves: u8,
    },
    /// In the persist buffer.
    Inside,
    /// In PM, which has not acknowledged it (without persist buffers).
    Written {
        /// The version it made.
        version: u8,
        /// What of the line it carried.
        halves: u8,
    },
}

/// Where a host's read is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReadPlace {
    /// There is none.
    #[default]
    None,
    /// So many hops before the first thing that may answer it.
    Travelling {
        /// The hops.
        hops: u8,
    },
    /// In this persist buffer.
    Inside {
        /// The number of the buffer.
        buffer: u8,
    },
    /// On the link below this persist buffer.
    Below {
        /// The number of the buffer.
        buffer: u8,
    },
}

impl WritePlace {
    /// A number for each kind of place, what else there is to say of it, and the halves that the write carries.
    pub fn parts(self) -> (u8, u8, u8) {
        match self {
            WritePlace::None => (0, 0, 0),
            WritePlace::Travelling { hops, halves } => (1, hops, halves),
            WritePlace::Inside => (2, 0, 0),
            WritePlace::Written { version, halves } => (3, version, halves),
        }
    }

    /// The place that has these parts.
    pub fn of_parts(kind: u8, number: u8, halves: u8) -> WritePlace {
        match kind {
            0 => WritePlace::None,
            1 => WritePlace::Travelling { hops: number, halves },
            2 => WritePlace::Inside,
            _ => WritePlace::Written { version: number, halves },
        }
    }
}

impl ReadPlace {
    /// A number for each kind of place, and what else there is to say of it.
    pub fn parts(self) -> (u8, u8) {
        match self {
            ReadPlace::None => (0, 0),
            ReadPlace::Travelling { hops } => (1, hops),
            ReadPlace::Inside { buffer } => (2, buffer),
            ReadPlace::Below { buffer } => (3, buffer),
        }
    }

    /// The place that has these parts.
    pub fn of_parts(kind: u8, number: u8) -> ReadPlace {
        match kind {
            0 => ReadPlace::None,
            1 => ReadPlace::Travelling { hops: number },
            2 => ReadPlace::Inside { buffer: number },
            _ => ReadPlace::Below { buffer: number },
        }
    }
}

/// A host with its bridge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host {
    /// Writes that it may still issue.
    pub writes_left: u8,
    /// Reads that it may still issue.
    pub reads_left: u8,
    /// Its write of each line; at most one without `Cmp`, as the host bridge sees to it.
    pub writes: [WritePlace; ADDRESSES_MAX],
    /// Its read.
    pub read: ReadPlace,
    /// The line that is read.
    pub read_line: u8,
    /// What the read must see at least: what was promised of the line when it was issued.
    pub read_floor: Halves,
}

/// How much of the room in a state is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InUse {
    /// Addresses.
    pub addresses: usize,
    /// Hosts.
    pub hosts: usize,
}

impl InUse {
    /// That of the default bounds.
    pub const DEFAULT: InUse = InUse { addresses: 2, hosts: 3 };
}

/// Everything, between two actions. `B` persist buffers, the one next to PM first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct World<const B: usize, const S: usize, const I: usize> {
    /// The persist buffers.
    pub buffers: [State<S, I>; B],
    /// The link below each of them.
    pub links: [Link; B],
    /// The hosts.
    pub hosts: [Host; HOSTS_MAX],
    /// What PM holds.
    pub memory: [Halves; ADDRESSES_MAX],
    /// What must never be lost: what was acknowledged, or seen by a read.
    pub promised: [Halves; ADDRESSES_MAX],
    /// Power cuts that may still come.
    pub crashes_left: u8,
    /// Acknowledgements that PM may still repeat.
    pub duplicates_left: u8,
    /// Whether PM has declared its failure. It holds what it held then.
    pub pm_has_failed: bool,
}

/// Who waits for the completion of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requester {
    /// A host, for its write or read of a line.
    Host {
        /// Its number.
        host: usize,
        /// The line.
        line: u8,
    },
    /// The persist buffer above, for a drain.
    Drain {
        /// The slot there.
        entry: u8,
        /// Its generation.
        generation: u16,
    },
}

const IS_DRAIN: u32 = 1 << 31;

impl Requester {
    /// As the name that the buffer's logic knows it by.
    pub fn id(self) -> RequestId {
        RequestId(match self {
            Requester::Host { host, line } => (host as u32) << 8 | u32::from(line),
            Requester::Drain { entry, generation } => IS_DRAIN | u32::from(entry) << 16 | u32::from(generation),
        })
    }

    /// The requester of that name.
    pub fn of(id: RequestId) -> Requester {
        match id.0 & IS_DRAIN {
            0 => Requester::Host { host: (id.0 >> 8) as usize, line: id.0 as u8 },
            _ => Requester::Drain { entry: (id.0 >> 16) as u8, generation: id.0 as u16 },
        }
    }
}

/// The write that the controller of `state` is at.
pub fn write_under_way<const S: usize, const I: usize>(state: &State<S, I>) -> Option<(&Write, SlotIndex)> {
    match &state.operation {
        Operation::Write { write, target, .. } => Some((write, *target)),
        _ => None,
    }
}

/// Whether a slot's content means something: it is an entry, or about to become one.
pub fn is_live(slot: &Slot, index: usize, target: Option<SlotIndex>) -> bool {
    slot.is_valid() || target.is_some_and(|target| target.index() == index) || slot.data.mask.0 != 0
}

/// What the buffer's logic calls the acknowledgement.
pub fn drain_id(acknowledgement: &Acknowledgement) -> DrainId {
    DrainId {
        entry: SlotIndex(acknowledgement.entry.into()),
        generation: acknowledgement.generation,
        line: LineAddress(acknowledgement.line.into()),
    }
}

impl<const B: usize, const S: usize, const I: usize> World<B, S, I> {
    /// Lets `visit` see, and change, every version that exists, with its line. [`OWN_WRITE`] is none.
    #[inline]
    pub fn each_version(&mut self, in_use: InUse, mut visit: impl FnMut(u8, &mut u8)) {
        for (line, (held, promised)) in
            self.memory.iter_mut().zip(&mut self.promised).enumerate().take(in_use.addresses)
        {
            held.iter_mut().for_each(|version| visit(line as u8, version));
            promised.iter_mut().for_each(|version| visit(line as u8, version));
        }
        let mut visit_wide = |line: LineAddress, version: &mut Version| {
            let mut narrow = version.0 as u8;
            visit(line.0 as u8, &mut narrow);
            version.0 = narrow.into();
        };
        for state in &mut self.buffers {
            let written = write_under_way(state).map(|(write, _)| write.line);
            for slot in state.slots_mut().iter_mut().filter(|slot| slot.data.mask.0 != 0) {
                // A slot that is being written gets its tag after its data.
                let line = if slot.is_valid() { slot.line } else { written.unwrap_or(slot.line) };
                visit_wide(line, &mut slot.data.version);
            }
            for packet in state.input.packets_mut().iter_mut().chain(&mut state.parked) {
                if let Packet::Write(write) = packet {
                    visit_wide(write.line, &mut write.version);
                }
            }
            if let Operation::Write { write, .. } = &mut state.operation {
                visit_wide(write.line, &mut write.version);
            }
        }
        for drain in self.links.iter_mut().flat_map(|link| link.drains.messages_mut()) {
            visit(drain.line, &mut drain.version);
        }
        for host in &mut self.hosts[..in_use.hosts] {
            // Where there is a persist buffer, no write of a host reaches PM.
            if B == 0 {
                for (line, write) in host.writes.iter_mut().enumerate() {
                    if let WritePlace::Written { version, .. } = write {
                        visit(line as u8, version);
                    }
                }
            }
            if host.read != ReadPlace::None {
                let line = host.read_line;
                host.read_floor.iter_mut().filter(|floor| **floor != OWN_WRITE).for_each(|floor| visit(line, floor));
            }
        }
    }

    /// The version that the next write of `line` makes of it: one that nobody has seen.
    pub fn next_version(&mut self, in_use: InUse, line: u8) -> u8 {
        let mut newest = 0;
        self.each_version(in_use, |of, version| {
            if of == line {
                newest = newest.max(*version);
            }
        });
        newest + 1
    }

    /// The newest version of each half of `line` in PM and in the persist buffers, but for number `without`.
    pub fn durable(&self, line: u8, without: Option<usize>) -> Halves {
        let mut newest = self.memory[usize::from(line)];
        let address = LineAddress(line.into());
        let buffers = self.buffers.iter().enumerate().filter(|(buffer, _)| Some(*buffer) != without);
        for (_, state) in buffers {
            for slot in state.slots().iter().filter(|slot| slot.holds(address) && !slot.data.is_torn) {
                let halves = halves_of(slot.data.mask);
                for (half, version) in newest.iter_mut().enumerate() {
                    if has_half(halves, half) {
                        *version = (*version).max(slot.data.version.0 as u8);
                    }
                }
            }
        }
        newest
    }
}
