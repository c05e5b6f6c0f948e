//! Power cuts, at any step, those of a recovery among them.

use fencepost_sim::switch::persist_buffer::packet::Input;
use fencepost_sim::switch::persist_buffer::state::Phase;

use super::action::{Action, Ways};
use super::model::Model;
use super::predicates::{RECOVERY_COMPLETE, Watch, is_at_least};
use super::world::{ReadPlace, World, WritePlace};

impl<const S: usize, const I: usize> Model<S, I> {
    /// Power is cut and comes back. What is on its way to PM arrives or is lost, each message by itself, before it is
    /// back.
    pub(super) fn each_power_cut<const B: usize>(&self, world: &World<B, S, I>, ways: &mut Ways<B, S, I>) {
        if world.crashes_left == 0 {
            return;
        }
        let choices = if self.surroundings.old_writes_are_dead { self.choices_of_kept(world) } else { 1 };
        for arrived in 0..choices {
            let next = ways.draft(world);
            let mut watch = self.watch();
            self.cut_power(next, arrived, &mut watch);
            ways.keep(Action::PowerCut { arrived }, watch.broken);
        }
    }

    fn cut_power<const B: usize>(&self, next: &mut World<B, S, I>, arrived: u8, watch: &mut Watch) {
        next.crashes_left -= 1;
        for buffer in 0..B {
            self.apply(next, buffer, Input::PowerFail);
        }
        self.pm_takes_without_a_word(next, arrived, watch);
        for (buffer, link) in next.links.iter_mut().enumerate() {
            link.acknowledgements = Default::default();
            if self.surroundings.old_writes_are_dead || buffer > 0 {
                link.drains = Default::default();
            }
        }
        for host in &mut next.hosts {
            host.writes.fill(WritePlace::None);
            host.read = ReadPlace::None;
            host.read_line = 0;
            host.read_floor = [0; 2];
        }
        for buffer in 0..B {
            self.apply(next, buffer, Input::PowerOn);
            self.check_opened(next, buffer, watch);
        }
    }

    /// If persist buffer number `buffer` has opened just now, everything promised has to be outside of it: in PM, or in
    /// another one.
    pub(super) fn check_opened<const B: usize>(&self, world: &World<B, S, I>, buffer: usize, watch: &mut Watch) {
        if world.buffers[buffer].phase != Phase::Running {
            return;
        }
        let holds = |line: u8| is_at_least(world.durable(line, Some(buffer)), world.promised[usize::from(line)]);
        watch.require(&RECOVERY_COMPLETE, (0..self.bounds.addresses).all(holds));
    }
}
