//! What hosts do: they issue writes and reads, which travel to the first persist buffer on their way, or to PM.

use fencepost_kernel::line::{LineAddress, Version};
use fencepost_sim::switch::persist_buffer::Packet;
use fencepost_sim::switch::persist_buffer::packet::{Action as Done, Read, Write};

use super::action::{Action, Ways};
use super::model::Model;
use super::predicates::{READ_LATEST, Watch, is_at_least};
use super::world::{
    Halves, LOW, OWN_WRITE, ReadPlace, Requester, WHOLE, World, WritePlace, has_half, mask_of, write_under_way,
};

impl<const S: usize, const I: usize> Model<S, I> {
    /// Every action of a host, and of its requests until the first persist buffer.
    pub(super) fn each_of_hosts<const B: usize>(&self, world: &World<B, S, I>, ways: &mut Ways<B, S, I>) {
        for host in 0..usize::from(self.bounds.hosts) {
            if !self.is_like_the_one_before(world, host) {
                for line in 0..self.bounds.addresses {
                    self.issue_writes(world, host, line, ways);
                    self.issue_read(world, host, line, ways);
                }
            }
            self.hop_writes(world, host, ways);
            self.hop_read(world, host, ways);
            self.acknowledge_written(world, host, ways);
        }
    }

    /// Whether whatever `host` may issue leads to the same as what the host before it may issue.
    fn is_like_the_one_before<const B: usize>(&self, world: &World<B, S, I>, host: usize) -> bool {
        let is_at_rest = world.hosts[host].read == ReadPlace::None
            && world.hosts[host].writes.iter().all(|write| *write == WritePlace::None);
        self.bounds.reductions.hosts
            && host > 0
            && is_at_rest
            && self.are_alike(host, host - 1)
            && world.hosts[host] == world.hosts[host - 1]
    }

    fn issue_writes<const B: usize>(&self, world: &World<B, S, I>, host: usize, line: u8, ways: &mut Ways<B, S, I>) {
        let state = &world.hosts[host];
        if state.writes_left == 0 || state.writes[usize::from(line)] != WritePlace::None {
            return;
        }
        let hops = self.hops_of(host);
        if hops > 0 && self.writes_travelling(world, host, hops) >= usize::from(self.bounds.in_flight) {
            return;
        }
        for halves in if self.bounds.partial_writes { &[WHOLE, LOW][..] } else { &[WHOLE] } {
            let next = ways.draft(world);
            next.hosts[host].writes_left -= 1;
            let place = WritePlace::Travelling { hops, halves: *halves };
            next.hosts[host].writes[usize::from(line)] = place;
            let mut watch = self.watch();
            if hops > 0 || self.write_arrives(next, host, line, *halves, &mut watch) {
                ways.keep(Action::IssueWrite { host, line, halves: *halves }, watch.broken);
            }
        }
    }

    fn issue_read<const B: usize>(&self, world: &World<B, S, I>, host: usize, line: u8, ways: &mut Ways<B, S, I>) {
        let state = &world.hosts[host];
        let may_be_held = self.surroundings.bridge_holds_requests && !self.bounds.reductions.arrival;
        let is_held = may_be_held && state.writes[usize::from(line)] != WritePlace::None;
        if state.reads_left == 0 || state.read != ReadPlace::None || is_held {
            return;
        }
        let hops = self.hops_of(host);
        let next = ways.draft(world);
        let floor = self.floor(world, host, line);
        let reader = &mut next.hosts[host];
        reader.reads_left -= 1;
        (reader.read_line, reader.read_floor) = (line, floor);
        reader.read = ReadPlace::Travelling { hops };
        let mut watch = self.watch();
        if hops > 0 || self.read_arrives(next, host, self.buffers_of(host), &mut watch) {
            ways.keep(Action::IssueRead { host, line }, watch.broken);
        }
    }

    /// What a read that `host` issues now has to see at least: what was promised, and the host's own write before it.
    /// Where the bridge holds requests, a read that finds a write of its own host was issued before that and overtaken.
    fn floor<const B: usize>(&self, world: &World<B, S, I>, host: usize, line: u8) -> Halves {
        let mut floor = world.promised[usize::from(line)];
        if self.surroundings.bridge_holds_requests {
            return floor;
        }
        let own = match world.hosts[host].writes[usize::from(line)] {
            WritePlace::None => return floor,
            WritePlace::Travelling { halves, .. } => (OWN_WRITE, halves),
            WritePlace::Written { version, halves } => (version, halves),
            WritePlace::Inside => {
                let state = &world.buffers[self.buffers_of(host) - 1];
                let packets = state.input.packets().iter().chain(&state.parked);
                let writes = packets.filter_map(|packet| match packet {
                    Packet::Write(write) => Some(write),
                    _ => None,
                });
                let request = Requester::Host { host, line }.id();
                let all = writes.chain(write_under_way(state).map(|(write, _)| write));
                let own = all.into_iter().find(|write| write.request == request);
                own.map_or((0, 0), |write| (write.version.0 as u8, super::world::halves_of(write.mask)))
            }
        };
        for (half, version) in floor.iter_mut().enumerate() {
            if has_half(own.1, half) {
                *version = (*version).max(own.0);
            }
        }
        floor
    }

    /// Writes that are so many hops from their end, on the link that `host`'s would be on.
    fn writes_travelling<const B: usize>(&self, world: &World<B, S, I>, host: usize, at: u8) -> usize {
        let is_there = |write: &&WritePlace| matches!(write, WritePlace::Travelling { hops, .. } if *hops == at);
        let shares = |other: usize| other == host || (self.are_alike(host, other) && !self.is_first_hop(host, at));
        let hosts = (0..usize::from(self.bounds.hosts)).filter(|other| shares(*other));
        hosts.map(|other| world.hosts[other].writes.iter().filter(is_there).count()).sum()
    }

    /// Whether a request that has so many hops to go is on the host's own link.
    fn is_first_hop(&self, host: usize, hops: u8) -> bool {
        !self.bounds.reductions.arrival && hops == self.hops_of(host)
    }

    fn hop_writes<const B: usize>(&self, world: &World<B, S, I>, host: usize, ways: &mut Ways<B, S, I>) {
        for line in 0..self.bounds.addresses {
            let WritePlace::Travelling { hops, halves } = world.hosts[host].writes[usize::from(line)] else { continue };
            let next = ways.draft(world);
            let mut watch = self.watch();
            let has_moved = if hops > 1 {
                next.hosts[host].writes[usize::from(line)] = WritePlace::Travelling { hops: hops - 1, halves };
                self.writes_travelling(world, host, hops - 1) < usize::from(self.bounds.in_flight)
            } else {
                self.write_arrives(next, host, line, halves, &mut watch)
            };
            if has_moved {
                ways.keep(Action::WriteHops { host, line }, watch.broken);
            }
        }
    }

    fn hop_read<const B: usize>(&self, world: &World<B, S, I>, host: usize, ways: &mut Ways<B, S, I>) {
        let ReadPlace::Travelling { hops } = world.hosts[host].read else { return };
        let next = ways.draft(world);
        let mut watch = self.watch();
        let has_moved = if hops > 1 {
            next.hosts[host].read = ReadPlace::Travelling { hops: hops - 1 };
            true
        } else {
            self.read_arrives(next, host, self.buffers_of(host), &mut watch)
        };
        if has_moved {
            ways.keep(Action::ReadHops { host }, watch.broken);
        }
    }

    /// A write reaches the first thing that may keep it, where its turn in the order of all writes to its line is
    /// decided. Whether it got in.
    fn write_arrives<const B: usize>(
        &self,
        next: &mut World<B, S, I>,
        host: usize,
        line: u8,
        halves: u8,
        watch: &mut Watch,
    ) -> bool {
        let version = next.next_version(self.in_use(), line);
        match self.buffers_of(host) {
            0 if next.pm_has_failed => return false,
            0 => {
                self.pm_takes(next, line, halves, version, watch);
                next.hosts[host].writes[usize::from(line)] = WritePlace::Written { version, halves };
            }
            above => {
                let write = Write {
                    request: Requester::Host { host, line }.id(),
                    line: LineAddress(line.into()),
                    version: Version(version.into()),
                    mask: mask_of(halves),
                };
                if self.arrive(next, above - 1, Packet::Write(write)).action != Done::Admitted {
                    return false;
                }
                next.hosts[host].writes[usize::from(line)] = WritePlace::Inside;
            }
        }
        let reader = &mut next.hosts[host];
        if reader.read != ReadPlace::None && reader.read_line == line {
            let own = reader.read_floor.iter_mut().filter(|floor| **floor == OWN_WRITE);
            own.for_each(|floor| *floor = version);
        }
        true
    }

    /// A read reaches persist buffer number `above` - 1, or PM if that is none. Whether it got in.
    pub(super) fn read_arrives<const B: usize>(
        &self,
        next: &mut World<B, S, I>,
        host: usize,
        above: usize,
        watch: &mut Watch,
    ) -> bool {
        let Some(buffer) = above.checked_sub(1) else {
            if next.pm_has_failed {
                return false;
            }
            let line = next.hosts[host].read_line;
            let seen = next.memory[usize::from(line)];
            self.read_answered(next, host, seen, watch);
            return true;
        };
        let line = next.hosts[host].read_line;
        let request = Requester::Host { host, line }.id();
        let read = Read { request, line: LineAddress(line.into()), seen: None };
        match self.arrive(next, buffer, Packet::Read(read)).action {
            Done::Admitted => next.hosts[host].read = ReadPlace::Inside { buffer: buffer as u8 },
            Done::Passed if self.reads_below(next, buffer) < usize::from(self.bounds.in_flight) => {
                next.hosts[host].read = ReadPlace::Below { buffer: buffer as u8 };
            }
            _ => return false,
        }
        true
    }

    /// The reads on the link below `buffer`.
    pub(super) fn reads_below<const B: usize>(&self, world: &World<B, S, I>, buffer: usize) -> usize {
        let is_there = |read: ReadPlace| read == ReadPlace::Below { buffer: buffer as u8 };
        world.hosts.iter().filter(|host| is_there(host.read)).count()
    }

    /// A read is answered. What it saw is promised from now on: it must not be taken back by a power cut either.
    pub(super) fn read_answered<const B: usize>(
        &self,
        next: &mut World<B, S, I>,
        host: usize,
        seen: Halves,
        watch: &mut Watch,
    ) {
        let reader = &mut next.hosts[host];
        watch.require(&READ_LATEST, is_at_least(seen, reader.read_floor));
        reader.read = ReadPlace::None;
        let line = std::mem::take(&mut reader.read_line);
        reader.read_floor = [0; 2];
        promise(next, line, WHOLE, seen);
    }

    fn acknowledge_written<const B: usize>(&self, world: &World<B, S, I>, host: usize, ways: &mut Ways<B, S, I>) {
        for line in 0..self.bounds.addresses {
            let WritePlace::Written { version, halves } = world.hosts[host].writes[usize::from(line)] else { continue };
            let next = ways.draft(world);
            promise(next, line, halves, [version; 2]);
            next.hosts[host].writes[usize::from(line)] = WritePlace::None;
            ways.keep(Action::Acknowledge { host, line }, None);
        }
    }
}

/// From now on nothing older than `versions` may be left of the `halves` of `line`.
pub(super) fn promise<const B: usize, const S: usize, const I: usize>(
    world: &mut World<B, S, I>,
    line: u8,
    halves: u8,
    versions: Halves,
) {
    for (half, promised) in world.promised[usize::from(line)].iter_mut().enumerate() {
        if has_half(halves, half) {
            *promised = (*promised).max(versions[half]);
        }
    }
}
