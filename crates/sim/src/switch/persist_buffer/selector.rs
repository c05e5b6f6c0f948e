//! The controller selector (PBCS): which packets go to the controller, and whether they find room in its input (PI).
//!
//! It sees the tables exactly as the controller left them after its last step, so a lookup never falls into the middle
//! of a write.

use super::packet::{Action, Packet, Read};
use super::parameters::Parameters;
use super::rules::Rules;
use super::state::{Operation, Phase, SlotIndex, State};
use fencepost_kernel::line::LineAddress;

/// Whether a read of `line` has to go to the controller: an entry holds the line, a write of it is under way, or a
/// recovery is; or all reads do.
pub fn selects_read<R: Rules, const S: usize, const I: usize>(
    parameters: &Parameters,
    state: &State<S, I>,
    line: LineAddress,
) -> bool {
    !parameters.reads_bypass || state.phase != Phase::Running || seen_entry::<R, S, I>(state, line).is_some() || {
        R::SELECTOR_SEES_WRITES_UNDER_WAY && is_write_under_way(state, line)
    }
}

/// The packet reaches the selector.
pub(super) fn arrive<R: Rules, const S: usize, const I: usize>(
    parameters: &Parameters,
    state: &mut State<S, I>,
    mut packet: Packet,
) -> Action {
    let is_open = match state.phase {
        Phase::Running => true,
        Phase::Off => false,
        Phase::Recovering => packet.is_acknowledgement() || !R::RECOVERY_HOLDS_TRAFFIC,
    };
    if !is_open {
        return Action::Refused;
    }
    if let Packet::Read(Read { line, seen, .. }) = &mut packet {
        if !selects_read::<R, S, I>(parameters, state, *line) {
            return Action::Passed;
        }
        if !R::LOOKS_UP_AGAIN {
            *seen = seen_entry::<R, S, I>(state, *line);
        }
    }
    if !has_place::<R, S, I>(parameters, state, &packet) {
        return Action::Refused;
    }
    state.input.push(packet);
    Action::Admitted
}

fn has_place<R: Rules, const S: usize, const I: usize>(
    parameters: &Parameters,
    state: &State<S, I>,
    packet: &Packet,
) -> bool {
    let acknowledgements = state.input.acknowledgements();
    let others = state.input.packets().len() - acknowledgements;
    if !R::ACKNOWLEDGEMENTS_HAVE_PLACES {
        acknowledgements + others < parameters.inputs()
    } else if packet.is_acknowledgement() {
        acknowledgements < usize::from(parameters.acknowledgement_places)
    } else {
        others < usize::from(parameters.input_places)
    }
}

/// The entry that a read of `line` is answered from.
pub(super) fn seen_entry<R: Rules, const S: usize, const I: usize>(
    state: &State<S, I>,
    line: LineAddress,
) -> Option<SlotIndex> {
    let seen = state.slots_where(|slot| slot.is_valid() && slot.line == line && R::is_seen_by_reads(slot.state));
    let seen =
        if R::READS_YOUNGEST { seen.min_by_key(|(_, slot)| slot.age) } else { seen.max_by_key(|(_, slot)| slot.age) };
    seen.map(|(index, _)| index)
}

fn is_write_under_way<const S: usize, const I: usize>(state: &State<S, I>, line: LineAddress) -> bool {
    state.input.packets().iter().chain(&state.parked).any(|packet| packet.writes(line))
        || matches!(state.operation, Operation::Write { write, .. } if write.line == line)
}
