//! What persist buffers do: the steps of their controllers, and where what they send goes.

use fencepost_kernel::line::Version;
use fencepost_kernel::message::MessageClass;
use fencepost_sim::switch::persist_buffer::packet::{Action as Done, Input, Output, OutputRoom, Write};
use fencepost_sim::switch::persist_buffer::state::{EntryState, LineData, Operation, Phase};
use fencepost_sim::switch::persist_buffer::{DrainId, DrainPolicy, Parameters, Reaction, State, invariants};

use super::action::{Action, SubStep, Ways, freed_by};
use super::canonical::{exchange_slots, names_of};
use super::hosts::promise;
use super::model::Model;
use super::predicates::{
    ACKNOWLEDGED_WHEN_DURABLE, FREED_WHEN_TAKEN, IDENTITY, WHOLE_LINES, Watch, is_at_least, names_the_freed,
};
use super::world::{
    Acknowledgement, Drain, Halves, ReadPlace, Requester, World, WritePlace, halves_of, has_half, write_under_way,
};

/// The pieces of a step for whoever wants to know them: the buffer before and after, and what was done.
pub(super) type Pieces<const S: usize, const I: usize> = Vec<(State<S, I>, State<S, I>, SubStep)>;

impl<const S: usize, const I: usize> Model<S, I> {
    /// Every step that the controller of persist buffer number `buffer` can do.
    pub(super) fn each_step<const B: usize>(&self, world: &World<B, S, I>, buffer: usize, ways: &mut Ways<B, S, I>) {
        let before = &world.buffers[buffer];
        let was_idle = before.operation == Operation::Idle;
        let done = self.try_step(world, buffer, true, None, ways);
        if was_idle && done != Some(Done::Draining) {
            self.drain_ahead(world, buffer, ways);
        }
        let Some(done) = done else { return };
        // Without room for the answer the parked request stays, and the controller may find something else to do.
        if was_idle
            && before.parked.is_some()
            && matches!(done, Done::Allocating | Done::Renewing | Done::Coalescing | Done::Hit | Done::Missed)
        {
            self.try_step(world, buffer, false, None, ways);
        }
        if was_idle && self.may_permute_slots() {
            self.each_other_numbering(world, buffer, done, ways);
        }
    }

    /// The forecast of an adaptive policy lets the controller drain what it would hold back. Which entry that is does
    /// not depend on how many it holds back, so this is all that a forecast can lead to.
    fn drain_ahead<const B: usize>(&self, world: &World<B, S, I>, buffer: usize, ways: &mut Ways<B, S, I>) {
        let state = &world.buffers[buffer];
        let is_adaptive = matches!(self.parameters, Some(Parameters { policy: DrainPolicy::Adaptive { .. }, .. }));
        if !is_adaptive || state.phase != Phase::Running || state.count(EntryState::Dirty) == 0 {
            return;
        }
        let next = ways.draft(world);
        let mut watch = self.watch();
        if self.step(next, buffer, true, true, &mut watch, None) == Some(Done::Draining) {
            let action = Action::Step { buffer, has_room: true, drains_ahead: true, exchange: None };
            ways.keep(action, watch.broken);
        }
    }

    /// Slots are interchangeable, but the controller takes the first that fits: each that fits may be the first.
    fn each_other_numbering<const B: usize>(
        &self,
        world: &World<B, S, I>,
        buffer: usize,
        done: Done,
        ways: &mut Ways<B, S, I>,
    ) {
        let state = &world.buffers[buffer];
        let fits = |index: usize| match done {
            Done::Allocating | Done::Renewing | Done::Coalescing => state.slots()[index].state == EntryState::Empty,
            Done::Draining => {
                state.phase == Phase::Recovering && state.slots()[index].is_occupied() && !state.slots()[index].is_sent
            }
            _ => false,
        };
        let mut fitting = (0..state.slots().len()).filter(|index| fits(*index));
        let Some(first) = fitting.next() else { return };
        let mut names = None;
        for other in fitting {
            // Of each slot how many messages that are under way name it.
            let names = names.get_or_insert_with(|| names_of(world, buffer));
            let is_alike = state.slots()[first].state == EntryState::Empty && names[first] == 0 && names[other] == 0;
            if !is_alike {
                self.try_step(world, buffer, true, Some((first as u8, other as u8)), ways);
            }
        }
    }

    fn try_step<const B: usize>(
        &self,
        world: &World<B, S, I>,
        buffer: usize,
        has_room: bool,
        exchange: Option<(u8, u8)>,
        ways: &mut Ways<B, S, I>,
    ) -> Option<Done> {
        let next = ways.draft(world);
        if let Some((first, other)) = exchange {
            exchange_slots(next, buffer, first.into(), other.into());
        }
        let mut watch = self.watch();
        let done = self.step(next, buffer, has_room, false, &mut watch, None)?;
        ways.keep(Action::Step { buffer, has_room, drains_ahead: false, exchange }, watch.broken);
        Some(done)
    }

    /// The controller does its next step, and those after it that nobody can tell from not having been done. Nothing if
    /// there is none.
    pub(super) fn step<const B: usize>(
        &self,
        next: &mut World<B, S, I>,
        buffer: usize,
        has_room: bool,
        drains_ahead: bool,
        watch: &mut Watch,
        mut pieces: Option<&mut Pieces<S, I>>,
    ) -> Option<Done> {
        let done = self.one_step(next, buffer, has_room, drains_ahead, watch, pieces.as_deref_mut())?;
        if self.bounds.reductions.invisible_steps {
            while self.next_step_is_invisible(&next.buffers[buffer]) {
                self.one_step(next, buffer, has_room, drains_ahead, watch, pieces.as_deref_mut());
            }
        }
        Some(done)
    }

    /// Whether the next step only writes into a slot that is Empty and stays so. A power cut clears such a slot, and
    /// nothing reads it.
    fn next_step_is_invisible(&self, state: &State<S, I>) -> bool {
        let Some((_, target)) = write_under_way(state) else { return false };
        if state.slot(target).is_occupied() {
            return false;
        }
        let mut after = *state;
        let parameters = self.parameters.as_ref().expect("a buffer has sizes");
        let reaction = (self.logic)(parameters, &mut after, Input::Step(OutputRoom::ALL));
        let is_invisible = reaction.output.is_none()
            && write_under_way(&after).is_some_and(|(_, same)| same == target)
            && !after.slot(target).is_occupied();
        debug_assert!(
            !is_invisible || self.a_cut_leaves_the_same(state, &after),
            "what nobody can tell apart is the same"
        );
        is_invisible
    }

    /// Whether a power cut leaves the same of both states, but for how often an Empty slot was used.
    fn a_cut_leaves_the_same(&self, before: &State<S, I>, after: &State<S, I>) -> bool {
        let parameters = self.parameters.as_ref().expect("a buffer has sizes");
        let left = |state: &State<S, I>| {
            let mut left = *state;
            (self.logic)(parameters, &mut left, Input::PowerFail);
            let empty = left.slots_mut().iter_mut().filter(|slot| !slot.is_occupied());
            empty.for_each(|slot| slot.generation = 0);
            left
        };
        left(before) == left(after)
    }

    fn one_step<const B: usize>(
        &self,
        next: &mut World<B, S, I>,
        buffer: usize,
        has_room: bool,
        drains_ahead: bool,
        watch: &mut Watch,
        mut pieces: Option<&mut Pieces<S, I>>,
    ) -> Option<Done> {
        let room = self.room(next, buffer, has_room);
        let operation = next.buffers[buffer].operation;
        let may_be_freed = match operation {
            Operation::Free { slot } | Operation::Drain { slot, .. } => Some((slot, *next.buffers[buffer].slot(slot))),
            _ => None,
        };
        let before = pieces.is_some().then(|| next.buffers[buffer]);
        let takes_acknowledgement = operation == Operation::Idle && next.buffers[buffer].input.acknowledgements() > 0;
        let taken_from = takes_acknowledgement.then(|| next.buffers[buffer]);
        let was_recovering = next.buffers[buffer].phase == Phase::Recovering;
        let mut parameters = self.parameters.expect("a buffer has sizes");
        if drains_ahead {
            parameters.policy = DrainPolicy::Adaptive { hold: 0 };
        }
        let reaction = (self.logic)(&parameters, &mut next.buffers[buffer], Input::Step(room));
        if reaction.action == Done::Nothing {
            return None;
        }
        if let (Some(pieces), Some(before)) = (&mut pieces, before) {
            let piece = SubStep { operation, done: reaction.action, output: reaction.output };
            pieces.push((before, next.buffers[buffer], piece));
        }
        if let (Some(before), Some(slot)) = (taken_from, freed_by(&next.buffers[buffer])) {
            watch.require(&IDENTITY, names_the_freed(&before, slot));
        }
        if let Some((slot, freed)) = may_be_freed
            && !next.buffers[buffer].slot(slot).is_occupied()
        {
            let line = freed.line.0 as u8;
            self.check_below(next, buffer, line, halves_of(freed.data.mask), freed.data.version, watch);
        }
        self.send(next, buffer, operation, &reaction, watch);
        if was_recovering {
            self.check_opened(next, buffer, watch);
        }
        Some(reaction.action)
    }

    /// What was freed has to be below `buffer`.
    fn check_below<const B: usize>(
        &self,
        next: &World<B, S, I>,
        buffer: usize,
        line: u8,
        halves: u8,
        version: Version,
        watch: &mut Watch,
    ) {
        let mut below = next.memory[usize::from(line)];
        for lower in 0..buffer {
            let held = lower_durable(next, line, lower);
            below = [below[0].max(held[0]), below[1].max(held[1])];
        }
        let version = version.0 as u8;
        let freed: Halves = std::array::from_fn(|half| if has_half(halves, half) { version } else { 0 });
        watch.require(&FREED_WHEN_TAKEN, is_at_least(below, freed));
    }

    /// For which messages the output has room. Answers to hosts always find it sooner or later; the other channels are
    /// bounded here.
    fn room<const B: usize>(&self, world: &World<B, S, I>, buffer: usize, has_room: bool) -> OutputRoom {
        let in_flight = usize::from(self.bounds.in_flight);
        let mut room = [has_room; MessageClass::COUNT];
        room[MessageClass::M2sRwd.index()] = world.links[buffer].drains.len() < in_flight;
        room[MessageClass::M2sReq.index()] = has_room && self.reads_below(world, buffer) < in_flight;
        if let Some(above) = world.links.get(buffer + 1) {
            room[MessageClass::S2mNdr.index()] = has_room && above.acknowledgements.len() < in_flight;
        }
        OutputRoom(room)
    }

    /// What a persist buffer sent goes where it belongs.
    fn send<const B: usize>(
        &self,
        next: &mut World<B, S, I>,
        buffer: usize,
        operation: Operation,
        reaction: &Reaction,
        watch: &mut Watch,
    ) {
        let Some(output) = reaction.output else { return };
        watch.require(&WHOLE_LINES, invariants::is_whole(&output));
        match output {
            Output::Completed(_) => {
                let Operation::Write { write, .. } = operation else { unreachable!("only a write is completed") };
                self.completed(next, buffer, &write, watch);
            }
            Output::Answered(request, data) => {
                let Requester::Host { host, .. } = Requester::of(request) else { unreachable!("only hosts read") };
                let Operation::Answer { slot, .. } = operation else { unreachable!("only a read is answered") };
                let reader = next.hosts[host];
                let is_asked_for = next.buffers[buffer].slot(slot).line.0 == u64::from(reader.read_line);
                watch.require(&WHOLE_LINES, is_asked_for);
                // Versions of different lines are not comparable.
                let seen = if is_asked_for { versions_of(&data) } else { reader.read_floor };
                self.read_answered(next, host, seen, watch);
            }
            Output::Forwarded(request) => {
                let Requester::Host { host, .. } = Requester::of(request) else { unreachable!("only hosts read") };
                next.hosts[host].read = ReadPlace::Below { buffer: buffer as u8 };
            }
            Output::Drain(id, data) => next.links[buffer].drains.push(drain_of(&id, &data)),
        }
    }

    fn completed<const B: usize>(&self, next: &mut World<B, S, I>, buffer: usize, write: &Write, watch: &mut Watch) {
        watch.require(&ACKNOWLEDGED_WHEN_DURABLE, invariants::is_durable(&next.buffers[buffer], write));
        let line = write.line.0 as u8;
        match Requester::of(write.request) {
            Requester::Host { host, .. } => {
                promise(next, line, halves_of(write.mask), [write.version.0 as u8; 2]);
                next.hosts[host].writes[usize::from(line)] = WritePlace::None;
            }
            Requester::Drain { entry, generation } => {
                if self.surroundings.next_buffer_keeps_before_it_acknowledges {
                    let line = self.acknowledged_line(line);
                    let acknowledgement = Acknowledgement { entry, generation, line };
                    next.links[buffer + 1].acknowledgements.push(acknowledgement);
                }
            }
        }
    }
}

/// The newest versions of `line` that persist buffer number `buffer` holds.
fn lower_durable<const B: usize, const S: usize, const I: usize>(
    world: &World<B, S, I>,
    line: u8,
    buffer: usize,
) -> Halves {
    let mut newest = [0; 2];
    let address = fencepost_kernel::line::LineAddress(line.into());
    for slot in world.buffers[buffer].slots().iter().filter(|slot| slot.holds(address) && !slot.data.is_torn) {
        let seen = versions_of(&slot.data);
        newest = [newest[0].max(seen[0]), newest[1].max(seen[1])];
    }
    newest
}

fn versions_of(data: &LineData) -> Halves {
    let halves = halves_of(data.mask);
    std::array::from_fn(|half| if has_half(halves, half) { data.version.0 as u8 } else { 0 })
}

fn drain_of(id: &DrainId, data: &LineData) -> Drain {
    Drain {
        entry: id.entry.0 as u8,
        generation: id.generation,
        line: id.line.0 as u8,
        version: data.version.0 as u8,
        halves: halves_of(data.mask),
        is_torn: data.is_torn,
        is_acknowledged: false,
    }
}
