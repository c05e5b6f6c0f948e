//! What always holds of a state under sound rules: named predicates, after the invariants of the design.
//!
//! The simulator asserts them in debug builds after every input; a checker proves them for all states within its
//! bounds. Invariants about more than one persist buffer (durability across a power cut, chains, several hosts) are the
//! checker's own.

use super::packet::{Output, Packet, Write};
use super::parameters::Parameters;
use super::state::{EntryState, Operation, Phase, Slot, State};
use super::{drain_policy, rules::Sound};

/// A named predicate over states.
pub type Invariant<const S: usize, const I: usize> = (&'static str, fn(&Parameters, &State<S, I>) -> bool);

/// All of them.
pub fn invariants<const S: usize, const I: usize>() -> [Invariant<S, I>; 12] {
    [
        ("counts_are_right", counts_are_right),
        ("no_entry_is_torn", no_entry_is_torn),
        ("only_drain_entries_are_sent", only_drain_entries_are_sent),
        ("one_drain_under_way_per_line", one_drain_under_way_per_line),
        ("a_drain_is_the_oldest_of_its_line", a_drain_is_the_oldest_of_its_line),
        ("one_dirty_entry_per_line", one_dirty_entry_per_line),
        ("a_clean_entry_is_whole_and_alone", a_clean_entry_is_whole_and_alone),
        ("ages_are_ranks", ages_are_ranks),
        ("recencies_are_ranks", recencies_are_ranks),
        ("a_slot_is_left_for_merging", a_slot_is_left_for_merging),
        ("input_keeps_to_its_places", input_keeps_to_its_places),
        ("parked_will_be_served", parked_will_be_served),
    ]
}

/// The name of an invariant that does not hold of `state`.
pub fn violated<const S: usize, const I: usize>(parameters: &Parameters, state: &State<S, I>) -> Option<&'static str> {
    let all = invariants();
    all.iter().find(|(_, holds)| !holds(parameters, state)).map(|(name, _)| *name)
}

/// (3) Whether an acknowledgement may be sent for `write`: some entry holds it, or something younger, durably and
/// whole.
pub fn is_durable<const S: usize, const I: usize>(state: &State<S, I>, write: &Write) -> bool {
    let holds_it = |slot: &Slot| {
        let data = &slot.data;
        slot.holds(write.line)
            && !data.is_torn
            && data.version >= write.version
            && data.mask.0 & write.mask.0 == write.mask.0
    };
    state.slots().iter().any(holds_it)
}

/// (2) Whether what is sent was issued: a line is never sent in pieces.
pub fn is_whole(output: &Output) -> bool {
    match output {
        Output::Answered(_, data) => !data.is_torn && data.mask.is_full(),
        Output::Drain(_, data) => !data.is_torn && data.mask.0 != 0,
        Output::Completed(_) | Output::Forwarded(_) => true,
    }
}

fn counts_are_right<const S: usize, const I: usize>(_: &Parameters, state: &State<S, I>) -> bool {
    let mut counted = [0; 4];
    state.slots().iter().for_each(|slot| counted[slot.state as usize] += 1);
    [EntryState::Empty, EntryState::Dirty, EntryState::Drain, EntryState::Clean]
        .into_iter()
        .all(|of| state.count(of) == counted[of as usize])
}

fn no_entry_is_torn<const S: usize, const I: usize>(_: &Parameters, state: &State<S, I>) -> bool {
    !state.slots().iter().any(|slot| slot.is_valid() && slot.data.is_torn)
}

fn only_drain_entries_are_sent<const S: usize, const I: usize>(_: &Parameters, state: &State<S, I>) -> bool {
    state.slots().iter().all(|slot| slot.state == EntryState::Drain || !slot.is_sent)
}

fn one_drain_under_way_per_line<const S: usize, const I: usize>(_: &Parameters, state: &State<S, I>) -> bool {
    let drains =
        |line| state.slots().iter().filter(|slot| slot.state == EntryState::Drain && slot.line == line).count();
    state.slots().iter().all(|slot| slot.state != EntryState::Drain || drains(slot.line) == 1)
}

fn a_drain_is_the_oldest_of_its_line<const S: usize, const I: usize>(_: &Parameters, state: &State<S, I>) -> bool {
    state
        .slots()
        .iter()
        .filter(|slot| slot.state == EntryState::Drain)
        .all(|slot| state.slots().iter().all(|other| !other.holds(slot.line) || other.age <= slot.age))
}

/// A second one is there only while it takes the place of the first; a power cut then leaves both.
fn one_dirty_entry_per_line<const S: usize, const I: usize>(_: &Parameters, state: &State<S, I>) -> bool {
    let is_replaced = |slot: &Slot| match state.operation {
        Operation::Write { replaced: Some(replaced), .. } | Operation::Retire { slot: replaced } => {
            std::ptr::eq(state.slot(replaced), slot)
        }
        _ => false,
    };
    let is_counted = |slot: &Slot| slot.state == EntryState::Dirty && !is_replaced(slot);
    let dirty = |line| state.slots().iter().filter(|slot| is_counted(slot) && slot.line == line).count();
    state.phase != Phase::Running || state.slots().iter().all(|slot| !is_counted(slot) || dirty(slot.line) == 1)
}

/// [1, 5] Of a line that has a Clean entry there is no other, none is being written, and it is there only while there
/// is power and no recovery.
fn a_clean_entry_is_whole_and_alone<const S: usize, const I: usize>(_: &Parameters, state: &State<S, I>) -> bool {
    let is_alone = |clean: &Slot| {
        let entries = state.slots().iter().filter(|slot| slot.is_valid() && slot.line == clean.line).count();
        let is_written = matches!(state.operation, Operation::Write { write, .. } if write.line == clean.line);
        entries == 1 && !is_written && clean.data.mask.is_full() && state.phase == Phase::Running
    };
    state.slots().iter().filter(|slot| slot.state == EntryState::Clean).all(is_alone)
}

fn ages_are_ranks<const S: usize, const I: usize>(_: &Parameters, state: &State<S, I>) -> bool {
    state.slots().iter().filter(|slot| slot.is_occupied()).all(|slot| {
        let younger = state.slots().iter().filter(|other| other.holds(slot.line) && other.age < slot.age).count();
        usize::from(slot.age) == younger
    })
}

fn recencies_are_ranks<const S: usize, const I: usize>(_: &Parameters, state: &State<S, I>) -> bool {
    state.phase != Phase::Running
        || state.slots().iter().all(|slot| {
            let is_lower = |other: &&Slot| other.state == slot.state && other.recency < slot.recency;
            let rank = match slot.state {
                EntryState::Dirty | EntryState::Clean => 1 + state.slots().iter().filter(is_lower).count(),
                EntryState::Empty | EntryState::Drain => 0,
            };
            usize::from(slot.recency) == rank
        })
}

/// [4, 12] The entries are all that is occupied when the controller is idle, and one slot more at any time.
fn a_slot_is_left_for_merging<const S: usize, const I: usize>(parameters: &Parameters, state: &State<S, I>) -> bool {
    let is_settled = state.phase == Phase::Running && state.operation == Operation::Idle;
    let most = usize::from(parameters.entries) + usize::from(!is_settled);
    let occupied = state.slots().iter().filter(|slot| slot.is_occupied()).count();
    occupied <= most && most <= state.slots().len()
}

/// (6) Requests and acknowledgements each keep to their places in the input.
fn input_keeps_to_its_places<const S: usize, const I: usize>(parameters: &Parameters, state: &State<S, I>) -> bool {
    let acknowledgements = state.input.acknowledgements();
    acknowledgements <= usize::from(parameters.acknowledgement_places)
        && state.input.packets().len() - acknowledgements <= usize::from(parameters.input_places)
}

/// (7) What frees the parked packet is under way, or will be as soon as the output has room.
fn parked_will_be_served<const S: usize, const I: usize>(parameters: &Parameters, state: &State<S, I>) -> bool {
    let is_line_drained = |line| state.slots().iter().any(|slot| slot.state == EntryState::Drain && slot.line == line);
    let is_served = match state.parked {
        None | Some(Packet::Acknowledgement(_)) => true,
        Some(Packet::Write(_)) => {
            state.count(EntryState::Drain) > 0 || state.occupied() < usize::from(parameters.entries)
        }
        Some(Packet::Read(read)) => is_line_drained(read.line) || state.youngest(read.line).is_none(),
    };
    is_served
        || state.operation != Operation::Idle
        || drain_policy::next_drain::<Sound, S, I>(parameters, state).is_some()
}
