//! What must hold: named predicates, numbered after the invariants of the persist buffer.
//!
//! Some hold of states, some of single actions. Those of one buffer's state are the simulator's own, which asserts them
//! in debug builds ([`fencepost_sim::switch::persist_buffer::invariants`]); the others need the hosts, PM or the past,
//! and are here.

use fencepost_sim::switch::persist_buffer::state::{EntryState, Phase, SlotIndex};
use fencepost_sim::switch::persist_buffer::{DrainId, Packet, Parameters, State, invariants};

use super::world::{Halves, World};

/// A named predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predicate {
    /// The invariants that it serves.
    pub invariants: &'static [u8],
    /// Its name.
    pub name: &'static str,
    /// What it says.
    pub says: &'static str,
}

/// Nothing promised is gone.
pub const DURABLE: Predicate = Predicate {
    invariants: &[1, 10],
    name: "durable",
    says: "every version that was acknowledged or seen by a read, or a newer one, is in PM or in an entry",
};
/// A recovery leaves nothing where it was.
pub const RECOVERY_COMPLETE: Predicate = Predicate {
    invariants: &[1, 9],
    name: "recovery_complete",
    says: "when a persist buffer opens after a recovery, every promised version, or a newer one, is in PM or in another persist buffer",
};
/// Lines are never seen or written in pieces.
pub const WHOLE_LINES: Predicate = Predicate {
    invariants: &[2],
    name: "whole_lines",
    says: "no read is answered with, and PM is never sent, a line in pieces, another line, or one that nobody wrote",
};
/// No acknowledgement before an entry holds the write.
pub const ACKNOWLEDGED_WHEN_DURABLE: Predicate = Predicate {
    invariants: &[3],
    name: "acknowledged_when_durable",
    says: "a write is acknowledged only when data, tag and state of an entry that holds it are durable",
};
/// A line in PM never gets older.
pub const PM_NEVER_GOES_BACK: Predicate = Predicate {
    invariants: &[4, 9],
    name: "pm_never_goes_back",
    says: "PM never takes an older version of a line than it holds",
};
/// Reads see what was promised.
pub const READ_LATEST: Predicate = Predicate {
    invariants: &[5, 11],
    name: "read_latest",
    says: "a read sees what was acknowledged, or seen by another read, before it was issued, or something newer",
};
/// An entry stays until its line is below.
pub const FREED_WHEN_TAKEN: Predicate = Predicate {
    invariants: &[5],
    name: "freed_when_taken",
    says: "a draining entry becomes Empty only when its version is durable below",
};
/// Nothing blocks for ever.
pub const NO_DEADLOCK: Predicate = Predicate {
    invariants: &[6],
    name: "no_deadlock",
    says: "as long as a message or a piece of work is under way something other than a power cut or a failure can happen, unless PM has failed",
};
/// No request is stranded.
pub const PROGRESS: Predicate = Predicate {
    invariants: &[7],
    name: "progress",
    says: "no request waits where nothing is under way for it, unless PM has failed, and no action but a power cut leads back",
};
/// An acknowledgement is for one entry of one generation.
pub const IDENTITY: Predicate = Predicate {
    invariants: &[8],
    name: "identity",
    says: "an acknowledgement frees only the entry and generation that it names, and only if that was sent",
};
/// No host traffic before the recovery is done.
pub const RECOVERY_HOLDS_TRAFFIC: Predicate = Predicate {
    invariants: &[9],
    name: "recovery_holds_traffic",
    says: "no read and no write is in a persist buffer that recovers",
};
/// What a power cut leaves to be drained.
pub const WITHIN_HOLD_UP_ENERGY: Predicate = Predicate {
    invariants: &[12],
    name: "within_hold_up_energy",
    says: "a persist buffer in use never holds more lines that a power cut would leave to be drained than it has entries",
};

/// The predicates of this module.
pub const OWN: [Predicate; 12] = [
    DURABLE,
    WHOLE_LINES,
    ACKNOWLEDGED_WHEN_DURABLE,
    PM_NEVER_GOES_BACK,
    READ_LATEST,
    FREED_WHEN_TAKEN,
    NO_DEADLOCK,
    PROGRESS,
    IDENTITY,
    RECOVERY_COMPLETE,
    RECOVERY_HOLDS_TRAFFIC,
    WITHIN_HOLD_UP_ENERGY,
];

/// What the simulator's predicates of one buffer's state serve and say, by name.
pub const OF_THE_LOGIC: [Predicate; 12] = [
    logic("counts_are_right", &[], "the numbers of slots in each state are counted right"),
    logic("no_entry_is_torn", &[2, 3], "no entry holds a part of what was written to it"),
    logic("only_drain_entries_are_sent", &[4, 8], "only entries in state Drain have been sent"),
    logic("one_drain_under_way_per_line", &[4], "of each line one entry at most is in state Drain"),
    logic("a_drain_is_the_oldest_of_its_line", &[4], "a draining entry is the oldest of its line"),
    logic(
        "one_dirty_entry_per_line",
        &[4],
        "of each line one entry at most is Dirty, but while another takes its place",
    ),
    logic(
        "a_clean_entry_is_whole_and_alone",
        &[1, 5],
        "of a line that has a Clean entry there is no other and none is being written; it holds the whole line",
    ),
    logic("ages_are_ranks", &[4, 9], "the ages of a line's entries are their ranks"),
    logic("recencies_are_ranks", &[7], "the recencies of Dirty entries are their ranks, and those of Clean ones too"),
    logic("a_slot_is_left_for_merging", &[4, 12], "a slot is left besides the entries when the controller is idle"),
    logic("input_keeps_to_its_places", &[6], "requests and acknowledgements each keep to their places in the input"),
    logic("parked_will_be_served", &[7], "what frees the parked packet is under way or comes next"),
];

const fn logic(name: &'static str, invariants: &'static [u8], says: &'static str) -> Predicate {
    Predicate { invariants, name, says }
}

/// All predicates.
pub fn all() -> impl Iterator<Item = &'static Predicate> {
    OWN.iter().chain(&OF_THE_LOGIC)
}

/// The invariants that the predicate of that name serves, and what it says.
pub fn about(name: &str) -> (&'static [u8], &'static str) {
    let predicate = all().find(|predicate| predicate.name == name).expect("only predicates are broken");
    (predicate.invariants, predicate.says)
}

/// Which predicates are looked at, and the first that was found broken.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    only: Option<&'static str>,
    /// The name of a broken predicate.
    pub broken: Option<&'static str>,
}

impl Watch {
    /// Looks at all predicates, or at one.
    pub fn new(only: Option<&'static str>) -> Watch {
        Watch { only, broken: None }
    }

    /// Whether the predicate of that name is looked at.
    pub fn looks_at(&self, name: &'static str) -> bool {
        self.only.is_none_or(|only| only == name)
    }

    /// `predicate` has to hold here.
    pub fn require(&mut self, predicate: &Predicate, holds: bool) {
        if !holds && self.broken.is_none() && self.looks_at(predicate.name) {
            self.broken = Some(predicate.name);
        }
    }
}

/// Whether `read` is at least `floor`, half by half.
pub fn is_at_least(read: Halves, floor: Halves) -> bool {
    read[0] >= floor[0] && read[1] >= floor[1]
}

/// Looks at the predicates that hold of states. `addresses` lines are used.
pub fn check_state<const B: usize, const S: usize, const I: usize>(
    world: &World<B, S, I>,
    parameters: Option<&Parameters>,
    addresses: u8,
    watch: &mut Watch,
) {
    watch.require(&DURABLE, is_durable(world, addresses));
    let Some(parameters) = parameters else { return };
    for state in &world.buffers {
        match watch.only {
            None => watch.broken = watch.broken.or(invariants::violated(parameters, state)),
            Some(only) => {
                let all = invariants::invariants::<S, I>();
                let broken = all.iter().find(|(name, holds)| *name == only && !holds(parameters, state));
                watch.broken = watch.broken.or(broken.map(|(name, _)| *name));
            }
        }
        watch.require(&RECOVERY_HOLDS_TRAFFIC, state.phase != Phase::Recovering || !has_requests(state));
        let is_full = state.phase == Phase::Running && lines_to_drain(state) > usize::from(parameters.entries);
        watch.require(&WITHIN_HOLD_UP_ENERGY, !is_full);
    }
}

/// Whether everything promised is in PM or an entry.
pub fn is_durable<const B: usize, const S: usize, const I: usize>(world: &World<B, S, I>, addresses: u8) -> bool {
    (0..addresses).all(|line| is_at_least(world.durable(line, None), world.promised[usize::from(line)]))
}

fn has_requests<const S: usize, const I: usize>(state: &State<S, I>) -> bool {
    state.parked.is_some() || state.input.packets().iter().any(|packet| !packet.is_acknowledgement())
}

/// Entries that a recovery has to bring to PM: all that are occupied, but of two Dirty ones of a line the older, which
/// it empties.
fn lines_to_drain<const S: usize, const I: usize>(state: &State<S, I>) -> usize {
    let is_replaced = |index: usize| {
        let slot = &state.slots()[index];
        let newer = |other: &fencepost_sim::switch::persist_buffer::state::Slot| {
            other.state == EntryState::Dirty && other.holds(slot.line) && other.age < slot.age
        };
        slot.state == EntryState::Dirty && state.slots().iter().any(newer)
    };
    state.slots().iter().enumerate().filter(|(index, slot)| slot.is_occupied() && !is_replaced(*index)).count()
}

/// The acknowledgement that the controller takes next, and whether it names the entry `freed` as it stands.
pub fn names_the_freed<const S: usize, const I: usize>(before: &State<S, I>, freed: SlotIndex) -> bool {
    let slot = before.slot(freed);
    let names = |acknowledgement: &DrainId| {
        acknowledgement.entry == freed && acknowledgement.generation == slot.generation && slot.is_sent
    };
    let taken = before.input.packets().iter().find_map(|packet| match packet {
        Packet::Acknowledgement(acknowledgement) => Some(acknowledgement),
        _ => None,
    });
    taken.is_some_and(names)
}
