//! Power failure and recovery: what stays, and how it reaches the memory device.
//!
//! A recovery can itself be cut at any step and started again: it changes nothing durable but what the running buffer
//! changes too, an entry's state to Drain before it is sent and to Empty when it is acknowledged or another has
//! replaced it.

use super::rules::Rules;
use super::state::{EntryState, InputQueue, Operation, Phase, Slot, SlotIndex, State};

/// Power is gone: the input, the parked packet, the operation and all volatile fields are lost.
pub(super) fn power_fail<R: Rules, const S: usize, const I: usize>(state: &mut State<S, I>) {
    state.input = InputQueue::default();
    state.parked = None;
    state.operation = Operation::Idle;
    state.is_draining = false;
    state.phase = Phase::Off;
    for index in state.indices() {
        let slot = state.slot_mut(index);
        slot.is_sent = false;
        slot.recency = 0;
        if !slot.is_occupied() && (R::POWER_CUT_ENDS_CLEAN || slot.state == EntryState::Empty) {
            // Data and tag of a write that was cut before its state are nothing. What is Clean is durable elsewhere.
            state.empty(index);
        }
    }
}

/// Power is back: what is left has to be drained before the buffer takes packets.
pub(super) fn power_on<R: Rules, const S: usize, const I: usize>(state: &mut State<S, I>) {
    state.phase = Phase::Recovering;
    empty_what_is_replaced(state);
    finish_if_done::<R, S, I>(state);
}

/// A merge that was cut when both its entries were Dirty is brought to its end: the younger has all bytes of the older,
/// for which there is no energy.
fn empty_what_is_replaced<const S: usize, const I: usize>(state: &mut State<S, I>) {
    let replaced = state.indices().find(|index| {
        let slot = state.slot(*index);
        let replaces =
            |other: &Slot| other.state == EntryState::Dirty && other.line == slot.line && other.age < slot.age;
        slot.state == EntryState::Dirty && state.slots().iter().any(replaces)
    });
    if let Some(index) = replaced {
        state.empty(index);
    }
}

/// The entry that a recovery sends next: one that is the oldest of its line and has not been sent since power came.
pub(super) fn next_recovered<R: Rules, const S: usize, const I: usize>(state: &State<S, I>) -> Option<SlotIndex> {
    let mut left = state.slots_where(|slot| R::is_recovered(slot.state) && !slot.is_sent);
    let is_oldest = |index: SlotIndex| {
        let slot = state.slot(index);
        !state
            .slots()
            .iter()
            .any(|other| other.holds(slot.line) && R::is_recovered(other.state) && other.age > slot.age)
    };
    left.find(|(index, _)| !R::RECOVERS_OLDEST_FIRST || is_oldest(*index)).map(|(index, _)| index)
}

/// Opens the buffer once nothing is left to recover.
pub(super) fn finish_if_done<R: Rules, const S: usize, const I: usize>(state: &mut State<S, I>) {
    if state.phase == Phase::Recovering && !state.slots().iter().any(|slot| R::is_recovered(slot.state)) {
        state.phase = Phase::Running;
    }
}
