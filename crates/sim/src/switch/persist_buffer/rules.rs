//! The rules that the persist buffer's safety rests on, one by one.
//!
//! The transition function takes them as a generic parameter. The defaults are right, and [`Sound`] is all the
//! simulator uses; a checker breaks one rule at a time and has to find out what goes wrong.

use super::packet::Acknowledgement;
use super::state::{EntryState, Slot, SlotIndex};

/// The steps by which a write becomes an entry. A power cut can fall between any two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteStep {
    /// The first part of the data is written: what the slot holds is torn.
    DataBegin,
    /// The rest of the data is written.
    DataEnd,
    /// The tag is written, with the next generation and the order.
    Tag,
    /// The one bit is written that makes the slot an entry, Dirty.
    State,
    /// The write is acknowledged.
    Acknowledge,
}

/// What a persist buffer may do, and in which order. The number in parentheses is that of the invariant of the design
/// it serves.
pub trait Rules {
    /// (3) Acknowledge last: when data, tag, order and state are durable.
    const WRITE_ORDER: [WriteStep; 5] =
        [WriteStep::DataBegin, WriteStep::DataEnd, WriteStep::Tag, WriteStep::State, WriteStep::Acknowledge];

    /// (4) A line that is acknowledged is not overwritten: a write that is merged with it goes into a spare slot, and
    /// takes its place by the one write of the new slot's state. The old entry is older, and is retired afterwards.
    const COALESCES_INTO_SPARE_SLOT: bool = true;

    /// (2) A partial write that is merged with an entry keeps the bytes of the entry that it does not carry.
    const KEEPS_OTHER_BYTES: bool = true;

    /// (4) An entry is drained only when no other drain of its line is under way.
    const ONE_DRAIN_PER_LINE: bool = true;

    /// (5) An entry is freed by the memory device's acknowledgement, and not when it is sent.
    const KEEPS_UNTIL_ACKNOWLEDGED: bool = true;

    /// (5) The selector also sees writes that are in the controller's input, parked, or being written.
    const SELECTOR_SEES_WRITES_UNDER_WAY: bool = true;

    /// (5) The controller looks up again what the selector saw.
    const LOOKS_UP_AGAIN: bool = true;

    /// (5) A read gets the youngest entry of its line.
    const READS_YOUNGEST: bool = true;

    /// (2) A read of an entry that is not a whole line waits until it is drained.
    const HOLDS_READS_OF_PARTIAL_ENTRIES: bool = true;

    /// (5) A write that becomes an entry ends the Clean entry of its line.
    const WRITES_END_CLEAN: bool = true;

    /// (1) What a power cut leaves of a Clean entry is nothing.
    const POWER_CUT_ENDS_CLEAN: bool = true;

    /// (6) Acknowledgements overtake reads and writes in the controller's input.
    const ACKNOWLEDGEMENTS_FIRST: bool = true;

    /// (6) Acknowledgements have places of their own in the controller's input.
    const ACKNOWLEDGEMENTS_HAVE_PLACES: bool = true;

    /// (6) The controller takes acknowledgements while a read or write is parked.
    const PARKED_LETS_ACKNOWLEDGEMENTS_PASS: bool = true;

    /// (6) An acknowledgement is handled even if the controller's output is full.
    const ACKNOWLEDGEMENTS_NEED_NO_OUTPUT: bool = true;

    /// (7) Where no threshold asks for a drain, a parked write does.
    const DRAINS_FOR_PARKED: bool = true;

    /// (9) A line's entries are recovered oldest first, one after the other.
    const RECOVERS_OLDEST_FIRST: bool = true;

    /// (9) Reads and writes wait until the recovery is done.
    const RECOVERY_HOLDS_TRAFFIC: bool = true;

    /// (4) Into which entries a write may be merged.
    fn may_coalesce_into(state: EntryState) -> bool {
        state == EntryState::Dirty
    }

    /// (5) Which entries a read is answered from.
    fn is_seen_by_reads(state: EntryState) -> bool {
        state != EntryState::Empty
    }

    /// (8) Whether `acknowledgement` is that of the drain of this slot, which is under way.
    fn acknowledges(slot: &Slot, index: SlotIndex, acknowledgement: &Acknowledgement) -> bool {
        index == acknowledgement.entry
            && slot.generation == acknowledgement.generation
            && slot.state == EntryState::Drain
            && slot.is_sent
    }

    /// (9) Which entries a recovery drains.
    fn is_recovered(state: EntryState) -> bool {
        matches!(state, EntryState::Dirty | EntryState::Drain)
    }

    /// [2, 5] Which acknowledged entries may stay, Clean, to be read: the newest of their lines, if they are whole.
    fn may_be_clean(slot: &Slot) -> bool {
        slot.age == 0 && slot.data.mask.is_full()
    }

    /// (1) Whose slot a write may take.
    fn may_be_evicted(state: EntryState) -> bool {
        state == EntryState::Clean
    }

    /// (12) Whether a write may have one more entry than the `occupied` ones. One slot more than the entries is there,
    /// but it stays free for merging, and the hold-up energy covers the entries only.
    fn has_room(occupied: usize, entries: usize) -> bool {
        occupied < entries
    }
}

/// The right rules.
#[derive(Clone, Copy, Debug)]
pub struct Sound;

impl Rules for Sound {}
