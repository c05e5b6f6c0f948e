//! When an entry is drained, and which: the difference between the schemes.

use super::packet::Packet;
use super::parameters::Parameters;
use super::rules::Rules;
use super::state::{EntryState, Slot, SlotIndex, State};
use crate::switch::config::PersistBufferConfig;
use crate::switch::scheme::Scheme;

/// When entries are drained although no request waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrainPolicy {
    /// Every entry as soon as it is acknowledged (`pb`).
    AtOnce,
    /// When more than `above` entries are occupied, the least recently used until at most `down_to` are Dirty
    /// (`pb_rf`).
    Threshold {
        /// Occupied entries (Dirty or Drain) up to which nothing is drained.
        above: u16,
        /// Dirty entries that may stay.
        down_to: u16,
    },
    /// The least recently used while more than `hold` entries are Dirty; what is acknowledged stays Clean
    /// (`pb_adaptive`). The forecast (`forecast.rs`) may change `hold` before every step: whatever it says, nothing is
    /// lost and everything is served.
    Adaptive {
        /// Dirty entries that are held back, to be merged with.
        hold: u16,
    },
}

impl DrainPolicy {
    /// The policy of `scheme`; none if it has no persist buffer. Parts of entries are rounded down, which is exact for
    /// "more than" and "at most".
    pub fn of(scheme: Scheme, config: &PersistBufferConfig) -> Option<DrainPolicy> {
        // A part that is meant to be whole may come out a hair below it in binary.
        let entries = |part: f64| (part * f64::from(config.entries) + 1e-9).floor() as u16;
        match scheme {
            Scheme::Nopb => None,
            Scheme::Pb => Some(DrainPolicy::AtOnce),
            Scheme::PbRf => Some(DrainPolicy::Threshold {
                above: entries(config.drain_threshold),
                down_to: entries(config.drain_preset),
            }),
            Scheme::PbAdaptive => Some(DrainPolicy::Adaptive { hold: config.entries }),
        }
    }

    /// Whether what is acknowledged stays Clean.
    pub fn keeps_clean(self) -> bool {
        matches!(self, DrainPolicy::Adaptive { .. })
    }

    /// Notices whether a threshold has been passed or the preset is reached.
    pub(super) fn update<const S: usize, const I: usize>(self, state: &mut State<S, I>) {
        if let DrainPolicy::Threshold { above, down_to } = self {
            let dirty = state.count(EntryState::Dirty);
            state.is_draining =
                (state.is_draining || state.occupied() > usize::from(above)) && dirty > usize::from(down_to);
        }
    }
}

/// The entry that is to be drained next, if any is.
pub(super) fn next_drain<R: Rules, const S: usize, const I: usize>(
    parameters: &Parameters,
    state: &State<S, I>,
) -> Option<SlotIndex> {
    let is_due = match parameters.policy {
        DrainPolicy::AtOnce => true,
        DrainPolicy::Threshold { .. } => state.is_draining,
        DrainPolicy::Adaptive { hold } => state.count(EntryState::Dirty) > usize::from(hold),
    };
    if is_due && let Some(victim) = least_recently_used::<R, S, I>(state) {
        return Some(victim);
    }
    if !R::DRAINS_FOR_PARKED {
        return None;
    }
    match state.parked? {
        // The next acknowledgement frees an entry; if none is to come, a drain is needed.
        Packet::Write(_) if state.count(EntryState::Drain) == 0 => least_recently_used::<R, S, I>(state),
        Packet::Read(read) => state
            .slots_where(|slot| slot.holds(read.line))
            .find_map(|(index, slot)| is_drainable::<R, S, I>(state, slot).then_some(index)),
        _ => None,
    }
}

fn least_recently_used<R: Rules, const S: usize, const I: usize>(state: &State<S, I>) -> Option<SlotIndex> {
    if state.count(EntryState::Dirty) == 0 {
        return None;
    }
    let by_recency = |(_, slot): &(SlotIndex, &Slot)| slot.recency;
    let (first, slot) = state.slots_where(|slot| slot.state == EntryState::Dirty).min_by_key(by_recency)?;
    if is_drainable::<R, S, I>(state, slot) {
        return Some(first);
    }
    // Rare: an older content of the same line is under way.
    let drainable = state.slots_where(|slot| is_drainable::<R, S, I>(state, slot));
    drainable.min_by_key(by_recency).map(|(index, _)| index)
}

/// Whether an entry may be sent to the memory device.
fn is_drainable<R: Rules, const S: usize, const I: usize>(state: &State<S, I>, slot: &Slot) -> bool {
    let is_under_way = |other: &Slot| other.state == EntryState::Drain && other.line == slot.line;
    let may_be_under_way = R::ONE_DRAIN_PER_LINE && state.count(EntryState::Drain) > 0;
    slot.state == EntryState::Dirty && !(may_be_under_way && state.slots().iter().any(is_under_way))
}
