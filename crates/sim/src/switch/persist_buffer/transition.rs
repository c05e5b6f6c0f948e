//! The transition function of the persist buffer's logic: state and input give the next state and what is sent.
//!
//! The simulator wraps it with timing, a checker explores it; both call this one function, and there is no second model
//! of the buffer.
//!
//! The controller (PBC) handles one packet at a time. When it is idle it takes, in this order: an acknowledgement of
//! the memory device; the parked packet, if it can go on; an entry that is to be drained; the oldest read or write.
//! Taking only looks up and plans; each further step changes one durable thing.
//!
//! | work | accesses, in order |
//! |---|---|
//! | write | tag (lookup), data, tag and state in one word; then the acknowledgement |
//! | write merged with an entry | the same, if it is partial with one more data access to read the entry; after the acknowledgement tag (the old entry becomes Empty) |
//! | read, answered | tag (lookup), data |
//! | read, line gone | tag (lookup) |
//! | acknowledgement | tag (lookup), state: Empty, for the memory device has it; that it can still be read (Clean) is a volatile bit |
//! | drain | state, data |
//! | no room, or a partial entry | tag (lookup), and again when it goes on |

use super::drain_policy::next_drain;
use super::packet::{Accesses, Action, Input, Output, OutputRoom, Packet, Reaction, Read, Write};
use super::parameters::Parameters;
use super::recovery;
use super::rules::{Rules, WriteStep};
use super::selector;
use super::state::{EntryState, LineData, Operation, Phase, Slot, SlotIndex, State};
use fencepost_kernel::line::ByteMask;
use fencepost_kernel::message::MessageClass;

/// Applies `input` to `state`.
pub fn transition<R: Rules, const S: usize, const I: usize>(
    parameters: &Parameters,
    state: &mut State<S, I>,
    input: Input,
) -> Reaction {
    match input {
        Input::Arrive(packet) => {
            Reaction::silent(selector::arrive::<R, S, I>(parameters, state, packet), Accesses::NONE)
        }
        Input::Step(room) if state.operation == Operation::Idle => take::<R, S, I>(parameters, state, room),
        Input::Step(_) => go_on::<R, S, I>(parameters, state),
        Input::PowerFail => {
            recovery::power_fail::<R, S, I>(state);
            Reaction::silent(Action::Power, Accesses::NONE)
        }
        Input::PowerOn => {
            recovery::power_on::<R, S, I>(state);
            Reaction::silent(Action::Power, Accesses::NONE)
        }
    }
}

/// The idle controller takes up its next work.
fn take<R: Rules, const S: usize, const I: usize>(
    parameters: &Parameters,
    state: &mut State<S, I>,
    room: OutputRoom,
) -> Reaction {
    if let Some(position) = next_acknowledgement::<R, S, I>(state, room) {
        return take_acknowledgement::<R, S, I>(state, position);
    }
    let may_go_on = |packet: &Packet| has_output_room(packet, room) && can_go_on::<R, S, I>(parameters, state, packet);
    if let Some(packet) = state.parked.filter(may_go_on) {
        state.parked = None;
        return take_request::<R, S, I>(parameters, state, packet);
    }
    let to_drain = match state.phase {
        Phase::Off => None,
        Phase::Running => next_drain::<R, S, I>(parameters, state),
        Phase::Recovering => recovery::next_recovered::<R, S, I>(state),
    };
    if let Some(slot) = to_drain.filter(|_| room.has(MessageClass::M2sRwd)) {
        state.operation = Operation::Drain { slot, is_marked: false };
        return Reaction::silent(Action::Draining, Accesses::NONE);
    }
    if let Some(position) = next_request(state, room) {
        let packet = state.input.remove(position);
        return take_request::<R, S, I>(parameters, state, packet);
    }
    Reaction::silent(Action::Nothing, Accesses::NONE)
}

/// Where in the input the acknowledgement is that may be taken now.
fn next_acknowledgement<R: Rules, const S: usize, const I: usize>(
    state: &State<S, I>,
    room: OutputRoom,
) -> Option<usize> {
    if state.parked.is_some() && !R::PARKED_LETS_ACKNOWLEDGEMENTS_PASS {
        return None;
    }
    if !R::ACKNOWLEDGEMENTS_NEED_NO_OUTPUT && !room.has(MessageClass::M2sRwd) {
        return None;
    }
    let position = state.input.packets().iter().position(Packet::is_acknowledgement)?;
    (R::ACKNOWLEDGEMENTS_FIRST || position == 0).then_some(position)
}

/// Where in the input the read or write is that may be taken now: the oldest, if nothing is parked and its answer finds
/// room.
fn next_request<const S: usize, const I: usize>(state: &State<S, I>, room: OutputRoom) -> Option<usize> {
    let position = state.input.packets().iter().position(|packet| !packet.is_acknowledgement())?;
    let packet = &state.input.packets()[position];
    (state.parked.is_none() && has_output_room(packet, room)).then_some(position)
}

/// Whether whatever a request leads to finds room in the output.
fn has_output_room(packet: &Packet, room: OutputRoom) -> bool {
    match packet {
        Packet::Write(_) => room.has(MessageClass::S2mNdr),
        Packet::Read(_) => room.has(MessageClass::S2mDrs) && room.has(MessageClass::M2sReq),
        Packet::Acknowledgement(_) => true,
    }
}

/// Whether a request would not have to be parked, or parked again.
fn can_go_on<R: Rules, const S: usize, const I: usize>(
    parameters: &Parameters,
    state: &State<S, I>,
    packet: &Packet,
) -> bool {
    match packet {
        Packet::Write(write) => {
            coalescing_entry::<R, S, I>(state, write).is_some()
                || R::has_room(state.occupied(), parameters.entries.into())
        }
        Packet::Read(read) => {
            seen_by::<R, S, I>(state, read).is_none_or(|slot| is_answerable::<R>(&state.slot(slot).data))
        }
        Packet::Acknowledgement(_) => true,
    }
}

fn is_answerable<R: Rules>(data: &LineData) -> bool {
    data.mask.is_full() || !R::HOLDS_READS_OF_PARTIAL_ENTRIES
}

fn seen_by<R: Rules, const S: usize, const I: usize>(state: &State<S, I>, read: &Read) -> Option<SlotIndex> {
    if R::LOOKS_UP_AGAIN { selector::seen_entry::<R, S, I>(state, read.line) } else { read.seen }
}

fn coalescing_entry<R: Rules, const S: usize, const I: usize>(state: &State<S, I>, write: &Write) -> Option<SlotIndex> {
    let youngest = state.youngest(write.line)?;
    R::may_coalesce_into(state.slot(youngest).state).then_some(youngest)
}

fn take_acknowledgement<R: Rules, const S: usize, const I: usize>(
    state: &mut State<S, I>,
    position: usize,
) -> Reaction {
    let Packet::Acknowledgement(acknowledgement) = state.input.remove(position) else {
        unreachable!("it is where an acknowledgement was found")
    };
    let acknowledged = state
        .slots_where(Slot::is_occupied)
        .find(|(index, slot)| R::acknowledges(slot, *index, &acknowledgement))
        .map(|(index, _)| index);
    match acknowledged {
        Some(slot) => {
            state.operation = Operation::Free { slot };
            Reaction::silent(Action::Freeing, Accesses::TAG)
        }
        None => Reaction::silent(Action::Ignored, Accesses::TAG),
    }
}

/// Looks up a read or write and plans what to do with it.
fn take_request<R: Rules, const S: usize, const I: usize>(
    parameters: &Parameters,
    state: &mut State<S, I>,
    packet: Packet,
) -> Reaction {
    let plan = match packet {
        Packet::Write(write) => plan_write::<R, S, I>(parameters, state, write),
        Packet::Read(read) => plan_read::<R, S, I>(state, read),
        Packet::Acknowledgement(_) => unreachable!("acknowledgements are taken apart"),
    };
    let (action, output) = plan.unwrap_or_else(|| {
        state.parked = Some(packet);
        (Action::Parked, None)
    });
    Reaction { action, accesses: Accesses::TAG, output }
}

/// What is to be done with a write; nothing if there is no room for it.
fn plan_write<R: Rules, const S: usize, const I: usize>(
    parameters: &Parameters,
    state: &mut State<S, I>,
    write: Write,
) -> Option<(Action, Option<Output>)> {
    let merged_with = coalescing_entry::<R, S, I>(state, &write);
    if merged_with.is_none() && !R::has_room(state.occupied(), parameters.entries.into()) {
        return None;
    }
    let has_line = || state.slots_where(|slot| slot.is_valid() && slot.line == write.line).next().is_some();
    let action = match merged_with {
        Some(_) => Action::Coalescing,
        None if has_line() => Action::Renewing,
        None => Action::Allocating,
    };
    let (target, replaced) = match merged_with {
        Some(entry) if !R::COALESCES_INTO_SPARE_SLOT => (entry, None),
        _ => (slot_for::<R, S, I>(state, &write), merged_with),
    };
    state.operation = Operation::Write { write, target, replaced, steps_done: 0 };
    Some((action, None))
}

/// The slot that a write gets for its entry, which is made Empty if it was Clean: that of the line's Clean entry, or
/// one that is Empty, or that of the Clean entry which was used the longest ago.
fn slot_for<R: Rules, const S: usize, const I: usize>(state: &mut State<S, I>, write: &Write) -> SlotIndex {
    let ended = if R::WRITES_END_CLEAN { state.clean(write.line) } else { None };
    let empty = || state.slots_where(|slot| !slot.is_valid()).next();
    let evicted = || state.slots_where(|slot| R::may_be_evicted(slot.state)).min_by_key(|(_, slot)| slot.recency);
    let target = ended.or_else(|| empty().or_else(evicted).map(|(index, _)| index));
    let target = target.expect("one slot more than the entries is there");
    if state.slot(target).is_valid() {
        state.empty(target);
    }
    target
}

/// What is to be done with a read; nothing if it has to wait for a drain.
fn plan_read<R: Rules, const S: usize, const I: usize>(
    state: &mut State<S, I>,
    read: Read,
) -> Option<(Action, Option<Output>)> {
    let Some(slot) = seen_by::<R, S, I>(state, &read) else {
        return Some((Action::Missed, Some(Output::Forwarded(read.request))));
    };
    is_answerable::<R>(&state.slot(slot).data).then(|| {
        state.operation = Operation::Answer { request: read.request, slot };
        (Action::Hit, None)
    })
}

/// The controller goes on with what it is doing.
fn go_on<R: Rules, const S: usize, const I: usize>(parameters: &Parameters, state: &mut State<S, I>) -> Reaction {
    let (accesses, output) = match state.operation {
        Operation::Idle => unreachable!("an idle controller takes up new work"),
        Operation::Write { write, target, replaced, steps_done } => {
            return write_step::<R, S, I>(parameters, state, write, target, replaced, steps_done);
        }
        Operation::Retire { slot } => {
            state.operation = Operation::Idle;
            state.empty(slot);
            parameters.policy.update(state);
            (Accesses::TAG, None)
        }
        Operation::Answer { request, slot } => {
            state.operation = Operation::Idle;
            if state.slot(slot).recency > 0 {
                state.touch(slot);
            }
            (Accesses::data(1), Some(Output::Answered(request, state.slot(slot).data)))
        }
        Operation::Free { slot } => {
            state.operation = Operation::Idle;
            release::<R, S, I>(parameters, state, slot);
            recovery::finish_if_done::<R, S, I>(state);
            (Accesses::TAG, None)
        }
        Operation::Drain { slot, is_marked: false } => {
            state.operation = Operation::Drain { slot, is_marked: true };
            state.forget_recency(slot);
            state.set_state(slot, EntryState::Drain);
            (Accesses::TAG, None)
        }
        Operation::Drain { slot, is_marked: true } => {
            state.operation = Operation::Idle;
            let entry = state.slot_mut(slot);
            entry.is_sent = true;
            let output = Output::Drain(entry.drain_id(slot), entry.data);
            if !R::KEEPS_UNTIL_ACKNOWLEDGED {
                release::<R, S, I>(parameters, state, slot);
                recovery::finish_if_done::<R, S, I>(state);
            }
            parameters.policy.update(state);
            (Accesses::data(1), Some(output))
        }
    };
    Reaction { action: Action::Continued, accesses, output }
}

/// The memory device has the entry: its room is free. Its content may stay to be read.
fn release<R: Rules, const S: usize, const I: usize>(
    parameters: &Parameters,
    state: &mut State<S, I>,
    slot: SlotIndex,
) {
    let stays = parameters.policy.keeps_clean() && state.phase == Phase::Running && R::may_be_clean(state.slot(slot));
    if stays { state.make_clean(slot) } else { state.empty(slot) }
}

fn write_step<R: Rules, const S: usize, const I: usize>(
    parameters: &Parameters,
    state: &mut State<S, I>,
    write: Write,
    target: SlotIndex,
    replaced: Option<SlotIndex>,
    steps_done: u8,
) -> Reaction {
    let step = R::WRITE_ORDER[usize::from(steps_done)];
    let accesses = step_accesses(step, &write, replaced);
    let mut output = None;
    match step {
        WriteStep::DataBegin => {
            // An Empty slot has no bytes.
            let other_bytes = state.slot(replaced.unwrap_or(target)).data.mask;
            let kept = if R::KEEPS_OTHER_BYTES { other_bytes.0 } else { 0 };
            let mask = ByteMask(write.mask.0 | kept);
            state.slot_mut(target).data = LineData { version: write.version, mask, is_torn: true };
        }
        WriteStep::DataEnd => state.slot_mut(target).data.is_torn = false,
        WriteStep::Tag => {
            let slot = state.slot_mut(target);
            slot.line = write.line;
            slot.generation = slot.generation.wrapping_add(1);
        }
        WriteStep::State => state.make_dirty(target),
        WriteStep::Acknowledge => output = Some(Output::Completed(write.request)),
    }
    let steps_done = steps_done + 1;
    state.operation = if usize::from(steps_done) < R::WRITE_ORDER.len() {
        Operation::Write { write, target, replaced, steps_done }
    } else if let Some(slot) = replaced {
        Operation::Retire { slot }
    } else {
        Operation::Idle
    };
    if state.operation == Operation::Idle {
        parameters.policy.update(state);
    }
    Reaction { action: Action::Continued, accesses, output }
}

fn step_accesses(step: WriteStep, write: &Write, replaced: Option<SlotIndex>) -> Accesses {
    match step {
        // A partial write reads the bytes that it does not carry from the entry it is merged with.
        WriteStep::DataBegin => Accesses::data(if replaced.is_some() && !write.mask.is_full() { 2 } else { 1 }),
        WriteStep::Tag => Accesses::TAG,
        // The rest of the same access; the same word as the tag; a message.
        WriteStep::DataEnd | WriteStep::State | WriteStep::Acknowledge => Accesses::NONE,
    }
}

impl Operation {
    /// What the operation will access until it sends something or ends.
    pub(super) fn accesses_ahead<R: Rules>(&self) -> Accesses {
        match self {
            Operation::Idle => Accesses::NONE,
            Operation::Write { write, replaced, steps_done, .. } => R::WRITE_ORDER[usize::from(*steps_done)..]
                .iter()
                .fold(Accesses::NONE, |sum, step| sum + step_accesses(*step, write, *replaced)),
            Operation::Retire { .. } | Operation::Free { .. } => Accesses::TAG,
            Operation::Answer { .. } => Accesses::data(1),
            Operation::Drain { is_marked, .. } => {
                let mark = if *is_marked { Accesses::NONE } else { Accesses::TAG };
                mark + Accesses::data(1)
            }
        }
    }
}
