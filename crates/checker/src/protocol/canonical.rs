//! One representative for all states that behave alike.
//!
//! Slots are interchangeable with every reference to them, and so are hosts at the same place and addresses. Versions
//! are only compared, so they are renumbered by rank; generations are only compared with that of their slot, so each
//! reference is to the present one or to a past one. Messages of a channel arrive in any order. Whichever
//! representative is chosen, the exploration stays exact: it is itself one of the states that behave alike, and no two
//! that do not are ever taken for one.

use fencepost_kernel::line::LineAddress;
use fencepost_sim::switch::persist_buffer::Packet;
use fencepost_sim::switch::persist_buffer::packet::RequestId;
use fencepost_sim::switch::persist_buffer::state::{InputQueue, Operation, Slot, SlotIndex};

use super::model::Model;
use super::world::{
    ADDRESSES_MAX, HOSTS_MAX, Host, InUse, ReadPlace, Requester, World, WritePlace, halves_of, write_under_way,
};

impl<const S: usize, const I: usize> Model<S, I> {
    /// Replaces `world` by the representative of all that behave like it.
    pub fn make_canonical<const B: usize>(&self, world: &mut World<B, S, I>) {
        // The compiler makes this twice: in the first, for the default bounds, it knows how often each loop runs.
        match self.in_use() {
            InUse::DEFAULT => self.make_canonical_of(InUse::DEFAULT, world),
            in_use => self.make_canonical_of(in_use, world),
        }
    }

    #[inline(always)]
    fn make_canonical_of<const B: usize>(&self, in_use: InUse, world: &mut World<B, S, I>) {
        for buffer in 0..B {
            tag_what_is_written(world, buffer);
            renumber_generations(world, buffer);
        }
        renumber_versions(world, in_use);
        if self.bounds.reductions.addresses && in_use.addresses > 1 && !self.reads.acknowledged_lines {
            self.sort_addresses(world, in_use);
        }
        for buffer in 0..B {
            if self.may_permute_slots() {
                sort_slots(world, buffer);
            }
            if !self.reads.input_order {
                acknowledgements_first(world, buffer);
            }
            let link = &mut world.links[buffer];
            link.drains.sort();
            link.acknowledgements.sort();
        }
        if self.bounds.reductions.hosts && in_use.hosts > 1 {
            self.sort_hosts(world, in_use);
        }
    }

    #[inline(always)]
    fn sort_hosts<const B: usize>(&self, world: &mut World<B, S, I>, in_use: InUse) {
        let mut keys = host_keys(world, in_use);
        let mut order: [usize; HOSTS_MAX] = std::array::from_fn(|host| host);
        let mut is_sorted = true;
        // Alike hosts have neighbouring numbers.
        for end in 1..in_use.hosts {
            let mut at = end;
            while at > 0 && self.are_alike(at - 1, at) && keys[at - 1] < keys[at] {
                keys.swap(at - 1, at);
                order.swap(at - 1, at);
                is_sorted = false;
                at -= 1;
            }
        }
        if is_sorted {
            return;
        }
        permute_hosts(world, &order);
    }
}

/// Host number `order[new]` becomes host number `new`.
pub(super) fn permute_hosts<const B: usize, const S: usize, const I: usize>(
    world: &mut World<B, S, I>,
    order: &[usize; HOSTS_MAX],
) {
    let old = world.hosts;
    let mut renamed = [0; HOSTS_MAX];
    for (new, was) in order.iter().copied().enumerate() {
        world.hosts[new] = old[was];
        renamed[was] = new;
    }
    for buffer in 0..B {
        each_request(world, buffer, |request| {
            if let Requester::Host { host, line } = Requester::of(*request) {
                *request = Requester::Host { host: renamed[host], line }.id();
            }
        });
    }
}

/// What there is to say of each host: its own state, and, where that leaves a tie, where its requests are in the
/// buffers.
#[inline(always)]
fn host_keys<const B: usize, const S: usize, const I: usize>(
    world: &mut World<B, S, I>,
    in_use: InUse,
) -> [u128; HOSTS_MAX] {
    /// Bits of a key for the places of requests in one buffer: the operation's, the parked one's and those of the
    /// input.
    const POSITIONS: usize = 12;
    let mut keys = [0; HOSTS_MAX];
    for (key, host) in keys.iter_mut().zip(&world.hosts[..in_use.hosts]) {
        let mut places = u64::from(host.reads_left);
        for write in &host.writes[..in_use.addresses] {
            places = places << 14 | u64::from(write_code(*write));
        }
        let read = u64::from(read_code(host)) << 8 | u64::from(host.read_line);
        let own = u128::from(places) << 40 | u128::from(read) << 4 | u128::from(host.writes_left);
        *key = own << (2 * POSITIONS);
    }
    let is_tie = |host: usize| keys[..host].contains(&keys[host]) && has_requests_inside(&world.hosts[host]);
    if !(1..in_use.hosts).any(is_tie) {
        return keys;
    }
    for buffer in 0..B {
        let mut position = 0;
        each_request(world, buffer, |request| {
            debug_assert!(position < POSITIONS);
            if let Requester::Host { host, .. } = Requester::of(*request) {
                keys[host] |= 1 << (buffer * POSITIONS + position);
            }
            position += 1;
        });
    }
    keys
}

/// Whether requests of a host are in a buffer, as the host knows. (A broken rule may complete one that is: then hosts
/// may tie.)
fn has_requests_inside(host: &Host) -> bool {
    matches!(host.read, ReadPlace::Inside { .. }) || host.writes.contains(&WritePlace::Inside)
}

/// A number of 26 bits for where a host's read is, and what it has to see.
fn read_code(host: &Host) -> u32 {
    let (kind, number) = host.read.parts();
    let [low, high] = host.read_floor.map(u32::from);
    u32::from(kind) << 24 | u32::from(number) << 16 | low << 8 | high
}

/// A number of 14 bits for where a write is.
fn write_code(write: WritePlace) -> u16 {
    let (kind, number, halves) = write.parts();
    u16::from(kind) << 12 | u16::from(number) << 2 | u16::from(halves)
}

/// Lets `visit` see, and change, who waits for the packets of a buffer, in the order of their places.
fn each_request<const B: usize, const S: usize, const I: usize>(
    world: &mut World<B, S, I>,
    buffer: usize,
    mut visit: impl FnMut(&mut RequestId),
) {
    let state = &mut world.buffers[buffer];
    match &mut state.operation {
        Operation::Write { write, .. } => visit(&mut write.request),
        Operation::Answer { request, .. } => visit(request),
        _ => {}
    }
    for packet in state.parked.iter_mut().chain(state.input.packets_mut()) {
        match packet {
            Packet::Write(write) => visit(&mut write.request),
            Packet::Read(read) => visit(&mut read.request),
            Packet::Acknowledgement(_) => {}
        }
    }
}

/// Lets `visit` see, and change, every name (slot and generation) of a slot of `buffer` in a message, with a number for
/// the kind of place.
fn each_name<const B: usize, const S: usize, const I: usize>(
    world: &mut World<B, S, I>,
    buffer: usize,
    mut visit: impl FnMut(u64, &mut u8, &mut u16),
) {
    for drain in world.links[buffer].drains.messages_mut() {
        visit(1, &mut drain.entry, &mut drain.generation);
    }
    for acknowledgement in world.links[buffer].acknowledgements.messages_mut() {
        visit(2, &mut acknowledgement.entry, &mut acknowledgement.generation);
    }
    for packet in world.buffers[buffer].input.packets_mut() {
        if let Packet::Acknowledgement(acknowledgement) = packet {
            let mut entry = acknowledgement.entry.0 as u8;
            visit(3, &mut entry, &mut acknowledgement.generation);
            acknowledgement.entry = SlotIndex(entry.into());
        }
    }
    if buffer > 0 {
        each_request(world, buffer - 1, |request| {
            if let Requester::Drain { mut entry, mut generation } = Requester::of(*request) {
                visit(4, &mut entry, &mut generation);
                *request = Requester::Drain { entry, generation }.id();
            }
        });
    }
}

/// Lets `visit` see, and change, every reference of a buffer's own state to one of its slots.
fn each_reference<const B: usize, const S: usize, const I: usize>(
    world: &mut World<B, S, I>,
    buffer: usize,
    mut visit: impl FnMut(&mut SlotIndex),
) {
    let state = &mut world.buffers[buffer];
    match &mut state.operation {
        Operation::Idle => {}
        Operation::Write { target, replaced, .. } => {
            visit(target);
            replaced.iter_mut().for_each(&mut visit);
        }
        Operation::Retire { slot }
        | Operation::Answer { slot, .. }
        | Operation::Free { slot }
        | Operation::Drain { slot, .. } => visit(slot),
    }
    for packet in state.input.packets_mut().iter_mut().chain(&mut state.parked) {
        if let Packet::Read(read) = packet {
            read.seen.iter_mut().for_each(&mut visit);
        }
    }
}

/// How many messages name each slot of a buffer.
pub(super) fn names_of<const B: usize, const S: usize, const I: usize>(
    world: &World<B, S, I>,
    buffer: usize,
) -> [u8; S] {
    let mut names = [0; S];
    each_name(&mut world.clone(), buffer, |_, entry, _| names[usize::from(*entry)] += 1);
    names
}

/// Two slots of a buffer change places.
pub(super) fn exchange_slots<const B: usize, const S: usize, const I: usize>(
    world: &mut World<B, S, I>,
    buffer: usize,
    one: usize,
    other: usize,
) {
    let mut order: [usize; S] = std::array::from_fn(|slot| slot);
    order.swap(one, other);
    permute_slots(world, buffer, &order);
}

/// Slot number `order[new]` becomes slot number `new`.
pub(super) fn permute_slots<const B: usize, const S: usize, const I: usize>(
    world: &mut World<B, S, I>,
    buffer: usize,
    order: &[usize; S],
) {
    let mut old = [Slot::default(); S];
    let slots = world.buffers[buffer].slots_mut();
    old[..slots.len()].copy_from_slice(slots);
    let mut renamed = [0; S];
    for (new, slot) in slots.iter_mut().enumerate() {
        *slot = old[order[new]];
        renamed[order[new]] = new;
    }
    each_name(world, buffer, |_, entry, _| *entry = renamed[usize::from(*entry)] as u8);
    each_reference(world, buffer, |slot| *slot = SlotIndex(renamed[slot.index()] as u16));
}

/// An Empty slot that is being written has the line of the write: nothing reads its tag before it is written.
fn tag_what_is_written<const B: usize, const S: usize, const I: usize>(world: &mut World<B, S, I>, buffer: usize) {
    let state = &mut world.buffers[buffer];
    let Some((line, target)) = write_under_way(state).map(|(write, target)| (write.line, target)) else { return };
    let slot = &mut state.slots_mut()[target.index()];
    if !slot.is_occupied() {
        slot.line = line;
    }
}

/// A name is of the present generation of its slot (1) or of a past one (0): no rule sees more of it.
fn renumber_generations<const B: usize, const S: usize, const I: usize>(world: &mut World<B, S, I>, buffer: usize) {
    let mut generations = [0; S];
    for (generation, slot) in generations.iter_mut().zip(world.buffers[buffer].slots_mut()) {
        *generation = std::mem::replace(&mut slot.generation, 1);
    }
    each_name(world, buffer, |_, entry, generation| {
        *generation = u16::from(*generation == generations[usize::from(*entry)]);
    });
}

/// Versions become ranks among those of their line that exist.
#[inline(always)]
fn renumber_versions<const B: usize, const S: usize, const I: usize>(world: &mut World<B, S, I>, in_use: InUse) {
    let mut existing = [0u32; ADDRESSES_MAX];
    world.each_version(in_use, |line, version| existing[usize::from(line)] |= 1 << *version);
    if existing.iter().all(|versions| versions & (versions + 1) == 0) {
        return;
    }
    let mut ranks = [[0u8; u32::BITS as usize]; ADDRESSES_MAX];
    for (ranks, versions) in ranks.iter_mut().zip(existing) {
        let mut left = versions;
        for rank in 0..versions.count_ones() {
            ranks[left.trailing_zeros() as usize] = rank as u8;
            left &= left - 1;
        }
    }
    world.each_version(in_use, |line, version| *version = ranks[usize::from(line)][usize::from(*version)]);
}

/// A number that spreads `value` over all bits.
fn spread(value: u64) -> u64 {
    // An odd number near 2^64 divided by the golden ratio, as in Fibonacci hashing.
    let product = (value + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    product ^ product >> 29
}

/// What a slot is, but for its line.
fn slot_key(slot: &Slot) -> u64 {
    (slot.state as u64) << 40
        | u64::from(slot.age) << 32
        | u64::from(slot.recency) << 24
        | u64::from(slot.is_sent) << 20
        | u64::from(slot.data.is_torn) << 19
        | u64::from(halves_of(slot.data.mask)) << 16
        | slot.data.version.0
}

/// Numbers for addresses, made of what there is of each, in any order.
struct AddressKeys([u64; ADDRESSES_MAX]);

impl AddressKeys {
    /// There is `what` of `line` in a place of that kind.
    fn add(&mut self, line: usize, kind: u64, what: u64) {
        debug_assert!(what >> 56 == 0);
        self.0[line] = self.0[line].wrapping_add(spread(kind << 56 | what));
    }
}

impl<const S: usize, const I: usize> Model<S, I> {
    #[inline(always)]
    fn sort_addresses<const B: usize>(&self, world: &mut World<B, S, I>, in_use: InUse) {
        let addresses = in_use.addresses;
        let keys = self.address_keys(world, in_use);
        if keys[..addresses].is_sorted() {
            return;
        }
        let mut order: [usize; ADDRESSES_MAX] = std::array::from_fn(|line| line);
        order[..addresses].sort_by_key(|line| keys[*line]);
        permute_addresses(world, &order);
    }

    /// A number for each address that does not depend on how addresses are numbered, nor on how slots and hosts are
    /// that may change places. Different addresses may have the same, by chance or by what is left out here: then they
    /// keep their order, and a state more is explored.
    #[inline(always)]
    fn address_keys<const B: usize>(&self, world: &World<B, S, I>, in_use: InUse) -> [u64; ADDRESSES_MAX] {
        let mut keys = AddressKeys([0; ADDRESSES_MAX]);
        for (line, (memory, promised)) in world.memory.iter().zip(&world.promised).enumerate().take(in_use.addresses) {
            keys.add(line, 0, u32::from_le_bytes([memory[0], memory[1], promised[0], promised[1]]).into());
        }
        // Mostly this tells them apart.
        if (1..in_use.addresses).all(|line| !keys.0[..line].contains(&keys.0[line])) {
            return keys.0;
        }
        for buffer in 0..B {
            self.add_buffer(&mut keys, world, buffer);
        }
        for (host, state) in world.hosts[..in_use.hosts].iter().enumerate() {
            let number = if self.bounds.reductions.hosts { self.place_of(host) } else { host };
            let whose = (number as u64) << 48 | u64::from(state.writes_left) << 8 | u64::from(state.reads_left);
            for (line, write) in state.writes[..in_use.addresses].iter().enumerate() {
                if *write != WritePlace::None {
                    keys.add(line, 6, u64::from(write_code(*write)) << 16 | whose);
                }
            }
            if state.read != ReadPlace::None {
                keys.add(state.read_line.into(), 7, u64::from(read_code(state)) << 16 | whose);
            }
        }
        keys.0
    }

    /// What is in a persist buffer and on the link below it.
    fn add_buffer<const B: usize>(&self, keys: &mut AddressKeys, world: &World<B, S, I>, buffer: usize) {
        let (state, link) = (&world.buffers[buffer], &world.links[buffer]);
        let at = |position: usize| (buffer as u64) << 55 | (position as u64) << 48;
        for (index, slot) in state.slots().iter().enumerate().filter(|(_, slot)| slot.is_valid()) {
            let index = if self.may_permute_slots() { 0 } else { index };
            keys.add(slot.line.0 as usize, 1, at(index) | slot_key(slot));
        }
        let requests = state.input.packets().iter().filter(|packet| !packet.is_acknowledgement());
        for (position, packet) in state.parked.iter().chain(requests).enumerate() {
            let position = at(position + usize::from(state.parked.is_none()));
            match packet {
                Packet::Write(write) => {
                    let what = u64::from(halves_of(write.mask)) << 8 | write.version.0;
                    keys.add(write.line.0 as usize, 2, position | what);
                }
                Packet::Read(read) => keys.add(read.line.0 as usize, 2, position | 1 << 16),
                Packet::Acknowledgement(_) => {}
            }
        }
        match state.operation {
            Operation::Idle => {}
            Operation::Write { write, steps_done, .. } => {
                let what = u64::from(steps_done) << 8 | write.version.0;
                keys.add(write.line.0 as usize, 3, at(0) | what);
            }
            Operation::Retire { slot }
            | Operation::Answer { slot, .. }
            | Operation::Free { slot }
            | Operation::Drain { slot, .. } => {
                let slot = state.slot(slot);
                if slot.is_valid() {
                    keys.add(slot.line.0 as usize, 3, at(1) | slot_key(slot));
                }
            }
        }
        for drain in link.drains.messages() {
            let what = u64::from(drain.generation) << 24
                | u64::from(drain.halves) << 16
                | u64::from(drain.is_acknowledged) << 8
                | u64::from(drain.version);
            keys.add(drain.line.into(), 4, at(0) | what);
        }
        // What names an entry belongs to the entry's line.
        let on_the_link =
            link.acknowledgements.messages().iter().map(|named| (0, named.entry.into(), named.generation));
        let inside = state.input.packets().iter().filter_map(|packet| match packet {
            Packet::Acknowledgement(named) => Some((1, named.entry.index(), named.generation)),
            _ => None,
        });
        for (position, entry, generation) in on_the_link.chain(inside) {
            let slot = &state.slots()[entry];
            if slot.is_valid() {
                keys.add(slot.line.0 as usize, 5, at(position) | u64::from(generation));
            }
        }
    }
}

/// Address number `order[new]` becomes address number `new`.
pub(super) fn permute_addresses<const B: usize, const S: usize, const I: usize>(
    world: &mut World<B, S, I>,
    order: &[usize; ADDRESSES_MAX],
) {
    let mut renamed = [0u8; ADDRESSES_MAX];
    let (memory, promised, hosts) = (world.memory, world.promised, world.hosts);
    for (new, was) in order.iter().copied().enumerate() {
        renamed[was] = new as u8;
        world.memory[new] = memory[was];
        world.promised[new] = promised[was];
        for (host, old) in world.hosts.iter_mut().zip(&hosts) {
            host.writes[new] = old.writes[was];
        }
    }
    for host in world.hosts.iter_mut().filter(|host| host.read != ReadPlace::None) {
        host.read_line = renamed[usize::from(host.read_line)];
    }
    rename_addresses(world, &renamed);
}

fn rename_addresses<const B: usize, const S: usize, const I: usize>(
    world: &mut World<B, S, I>,
    renamed: &[u8; ADDRESSES_MAX],
) {
    let rename = |line: &mut LineAddress| line.0 = renamed[line.0 as usize].into();
    for buffer in 0..B {
        each_request(world, buffer, |request| {
            if let Requester::Host { host, line } = Requester::of(*request) {
                *request = Requester::Host { host, line: renamed[usize::from(line)] }.id();
            }
        });
        let state = &mut world.buffers[buffer];
        let target = write_under_way(state).map(|(write, target)| (write.line, target.index()));
        for (index, slot) in state.slots_mut().iter_mut().enumerate() {
            // An Empty slot has a line if it is being written: that of the write.
            if slot.is_valid() || target == Some((slot.line, index)) {
                rename(&mut slot.line);
            }
        }
        for packet in state.input.packets_mut().iter_mut().chain(&mut state.parked) {
            match packet {
                Packet::Write(write) => rename(&mut write.line),
                Packet::Read(read) => rename(&mut read.line),
                Packet::Acknowledgement(_) => {}
            }
        }
        if let Operation::Write { write, .. } = &mut state.operation {
            rename(&mut write.line);
        }
        for drain in world.links[buffer].drains.messages_mut() {
            drain.line = renamed[usize::from(drain.line)];
        }
    }
}

/// Entries first, by line and age; then Empty slots that no message names.
fn sort_slots<const B: usize, const S: usize, const I: usize>(world: &mut World<B, S, I>, buffer: usize) {
    /// Keys from this one on are of slots that are Empty: first that which is being written, then the others.
    const EMPTY: u64 = 1 << 60;
    let mut keys = [u64::MAX; S];
    let target = write_under_way(&world.buffers[buffer]).map_or(S, |(_, target)| target.index());
    for (index, (key, slot)) in keys.iter_mut().zip(world.buffers[buffer].slots()).enumerate() {
        let valid = slot.line.0 << 16 | u64::from(slot.age);
        let empty = EMPTY << u32::from(index != target);
        *key = if slot.is_valid() { valid } else { empty };
    }
    let slots = world.buffers[buffer].slots().len();
    each_name(world, buffer, |place, entry, generation| {
        let key = &mut keys[usize::from(*entry)];
        let name = ((place << 4) + 1 + u64::from(*generation)).pow(2);
        *key += u64::from(*key >= EMPTY) * name;
    });
    if keys[..slots].is_sorted() {
        return;
    }
    let mut order: [usize; S] = std::array::from_fn(|slot| slot);
    order[..slots].sort_by_key(|slot| keys[*slot]);
    permute_slots(world, buffer, &order);
}

/// Acknowledgements overtake requests, and have places of their own: how the two stand among each other in the input
/// means nothing.
fn acknowledgements_first<const B: usize, const S: usize, const I: usize>(world: &mut World<B, S, I>, buffer: usize) {
    let input = &mut world.buffers[buffer].input;
    if input.packets().is_sorted_by_key(|packet| !packet.is_acknowledgement()) {
        return;
    }
    let mut sorted = InputQueue::default();
    for acknowledgements in [true, false] {
        let of_the_kind = input.packets().iter().filter(|packet| packet.is_acknowledgement() == acknowledgements);
        of_the_kind.for_each(|packet| sorted.push(*packet));
    }
    *input = sorted;
}
