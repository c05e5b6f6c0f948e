//! A PM device that declares its failure: from then on it takes nothing, answers nothing and acknowledges nothing, and
//! holds what it held.
//!
//! Acknowledgements that are under way then may still come; those that never do are in the runs that end without them.
//! What was sent to it stays under way or is dropped. Requests may wait for ever, but nothing that was acknowledged may
//! be lost: it is in what PM held, or in an entry.

use super::action::{Action, Ways};
use super::model::Model;
use super::predicates::Watch;
use super::world::World;

impl<const S: usize, const I: usize> Model<S, I> {
    /// PM declares its failure; or, when it has, drops what is sent to it.
    pub(super) fn each_failure<const B: usize>(&self, world: &World<B, S, I>, ways: &mut Ways<B, S, I>) {
        if world.pm_has_failed {
            self.drop_drains(world, ways);
            return;
        }
        if self.bounds.failures == 0 {
            return;
        }
        for kept in 0..self.choices_of_kept(world) {
            let next = ways.draft(world);
            let mut watch = self.watch();
            self.pm_takes_without_a_word(next, kept, &mut watch);
            next.pm_has_failed = true;
            ways.keep(Action::DeclareFailure { kept }, watch.broken);
        }
    }

    fn drop_drains<const B: usize>(&self, world: &World<B, S, I>, ways: &mut Ways<B, S, I>) {
        let Some(link) = world.links.first() else { return };
        let is_acknowledged = !self.surroundings.dropped_drains_stay_unacknowledged;
        if is_acknowledged && !self.has_room_for_acknowledgement(world, 0) {
            return;
        }
        for (index, drain) in link.drains.messages().iter().enumerate() {
            let next = ways.draft(world);
            next.links[0].drains.remove(index);
            if is_acknowledged {
                self.acknowledge_drain(next, 0, drain);
            }
            ways.keep(Action::Drop { index }, None);
        }
    }

    /// How many choices there are of the drains that PM keeps without an acknowledgement before power or PM fails. As
    /// long as it could acknowledge them, those that it keeps are kept before, which is another action, and their
    /// acknowledgement is lost.
    pub(super) fn choices_of_kept<const B: usize>(&self, world: &World<B, S, I>) -> u8 {
        match world.links.first() {
            Some(link) if !world.pm_has_failed && !self.has_room_for_acknowledgement(world, 0) => {
                1 << link.drains.len()
            }
            _ => 1,
        }
    }

    /// PM keeps some of the drains on their way to it, and acknowledges none.
    pub(super) fn pm_takes_without_a_word<const B: usize>(
        &self,
        next: &mut World<B, S, I>,
        kept: u8,
        watch: &mut Watch,
    ) {
        let Some(drains) = next.links.first().map(|link| link.drains) else { return };
        for (_, drain) in drains.messages().iter().enumerate().filter(|(index, _)| kept >> index & 1 == 1) {
            self.pm_takes(next, drain.line, drain.halves, drain.version, watch);
        }
    }
}
