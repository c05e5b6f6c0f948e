//! What happens on the links below persist buffers and in PM: drains arrive, are kept and acknowledged, late or twice;
//! reads arrive.

use fencepost_kernel::line::{LineAddress, Version};
use fencepost_sim::switch::persist_buffer::Packet;
use fencepost_sim::switch::persist_buffer::packet::{Action as Done, Write};

use super::action::{Action, Ways};
use super::model::Model;
use super::predicates::{PM_NEVER_GOES_BACK, WHOLE_LINES, Watch};
use super::world::{Acknowledgement, Drain, ReadPlace, Requester, World, drain_id, has_half, mask_of};

impl<const S: usize, const I: usize> Model<S, I> {
    /// Every action of a channel or of PM.
    pub(super) fn each_of_links<const B: usize>(&self, world: &World<B, S, I>, ways: &mut Ways<B, S, I>) {
        for buffer in 0..B {
            self.take_drains(world, buffer, ways);
            self.deliver_acknowledgements(world, buffer, ways);
        }
        self.acknowledge_early(world, ways);
        self.repeat_acknowledgements(world, ways);
        self.read_below(world, ways);
    }

    pub(super) fn has_room_for_acknowledgement<const B: usize>(&self, world: &World<B, S, I>, buffer: usize) -> bool {
        world.links[buffer].acknowledgements.len() < usize::from(self.bounds.in_flight)
    }

    fn take_drains<const B: usize>(&self, world: &World<B, S, I>, buffer: usize, ways: &mut Ways<B, S, I>) {
        if buffer == 0 && world.pm_has_failed {
            return;
        }
        for (index, drain) in world.links[buffer].drains.messages().iter().enumerate() {
            let next = ways.draft(world);
            let mut watch = self.watch();
            if self.drain_arrives(next, buffer, *drain, &mut watch) {
                next.links[buffer].drains.remove(index);
                ways.keep(Action::TakeDrain { buffer, index }, watch.broken);
            }
        }
    }

    /// A drain of `buffer` reaches what lies below. Whether it got in.
    fn drain_arrives<const B: usize>(
        &self,
        next: &mut World<B, S, I>,
        buffer: usize,
        drain: Drain,
        watch: &mut Watch,
    ) -> bool {
        let has_room = self.has_room_for_acknowledgement(next, buffer);
        let Some(below) = buffer.checked_sub(1) else {
            if !drain.is_acknowledged && !has_room {
                return false;
            }
            watch.require(&WHOLE_LINES, !drain.is_torn && drain.halves != 0);
            self.pm_takes(next, drain.line, drain.halves, drain.version, watch);
            if !drain.is_acknowledged && self.surroundings.pm_acknowledges_in_the_end {
                self.acknowledge_drain(next, buffer, &drain);
            }
            return true;
        };
        let keeps_first = self.surroundings.next_buffer_keeps_before_it_acknowledges;
        let write = Write {
            request: Requester::Drain { entry: drain.entry, generation: drain.generation }.id(),
            line: LineAddress(drain.line.into()),
            version: Version(drain.version.into()),
            mask: mask_of(drain.halves),
        };
        if (!keeps_first && !has_room) || self.arrive(next, below, Packet::Write(write)).action != Done::Admitted {
            return false;
        }
        if !keeps_first {
            self.acknowledge_drain(next, buffer, &drain);
        }
        true
    }

    pub(super) fn acknowledge_drain<const B: usize>(&self, next: &mut World<B, S, I>, buffer: usize, drain: &Drain) {
        let line = self.acknowledged_line(drain.line);
        let acknowledgement = Acknowledgement { entry: drain.entry, generation: drain.generation, line };
        next.links[buffer].acknowledgements.push(acknowledgement);
    }

    /// PM keeps a version of some halves of a line, durably.
    pub(super) fn pm_takes<const B: usize>(
        &self,
        next: &mut World<B, S, I>,
        line: u8,
        halves: u8,
        version: u8,
        watch: &mut Watch,
    ) {
        for (half, held) in next.memory[usize::from(line)].iter_mut().enumerate() {
            if has_half(halves, half) {
                watch.require(&PM_NEVER_GOES_BACK, version >= *held);
                *held = version;
            }
        }
    }

    fn acknowledge_early<const B: usize>(&self, world: &World<B, S, I>, ways: &mut Ways<B, S, I>) {
        let is_sound = self.surroundings.pm_keeps_before_it_acknowledges;
        if is_sound || B == 0 || world.pm_has_failed || !self.has_room_for_acknowledgement(world, 0) {
            return;
        }
        for (index, drain) in
            world.links[0].drains.messages().iter().enumerate().filter(|(_, drain)| !drain.is_acknowledged)
        {
            let next = ways.draft(world);
            next.links[0].drains.messages_mut()[index].is_acknowledged = true;
            self.acknowledge_drain(next, 0, drain);
            ways.keep(Action::AcknowledgeEarly { index }, None);
        }
    }

    fn deliver_acknowledgements<const B: usize>(
        &self,
        world: &World<B, S, I>,
        buffer: usize,
        ways: &mut Ways<B, S, I>,
    ) {
        let messages = world.links[buffer].acknowledgements.messages();
        for (index, acknowledgement) in messages.iter().enumerate() {
            if messages[..index].contains(acknowledgement) {
                continue;
            }
            let next = ways.draft(world);
            let packet = Packet::Acknowledgement(drain_id(acknowledgement));
            if self.arrive(next, buffer, packet).action == Done::Admitted {
                next.links[buffer].acknowledgements.remove(index);
                ways.keep(Action::DeliverAcknowledgement { buffer, index }, None);
            }
        }
    }

    fn repeat_acknowledgements<const B: usize>(&self, world: &World<B, S, I>, ways: &mut Ways<B, S, I>) {
        let may_repeat = world.duplicates_left > 0 && !world.pm_has_failed;
        if B == 0 || !may_repeat || !self.has_room_for_acknowledgement(world, 0) {
            return;
        }
        for (index, acknowledgement) in world.links[0].acknowledgements.messages().iter().enumerate() {
            let next = ways.draft(world);
            next.duplicates_left -= 1;
            next.links[0].acknowledgements.push(*acknowledgement);
            ways.keep(Action::Repeat { index }, None);
        }
    }

    fn read_below<const B: usize>(&self, world: &World<B, S, I>, ways: &mut Ways<B, S, I>) {
        for host in 0..usize::from(self.bounds.hosts) {
            let ReadPlace::Below { buffer } = world.hosts[host].read else { continue };
            let next = ways.draft(world);
            let mut watch = self.watch();
            if self.read_arrives(next, host, buffer.into(), &mut watch) {
                ways.keep(Action::ReadGoesDown { host }, watch.broken);
            }
        }
    }
}
