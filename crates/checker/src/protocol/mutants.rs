//! Broken variants of the protocol, each made for one predicate that has to find it.
//!
//! Those of the persist buffer break one of its [`Rules`]; those of what stands around it break one of the
//! [`Surroundings`]. Each has bounds in which it shows, as small as the one who wrote it down could find.
//!
//! [`Rules`]: fencepost_sim::switch::persist_buffer::Rules
//! [`Surroundings`]: super::model::Surroundings

use std::iter;

use fencepost_sim::nearest::there_is_no;
use fencepost_sim::switch::Scheme;
use fencepost_sim::switch::persist_buffer::DrainId;
use fencepost_sim::switch::persist_buffer::rules::{Rules, Sound, WriteStep};
use fencepost_sim::switch::persist_buffer::state::{EntryState, Slot, SlotIndex};

use super::bounds::{Bounds, INPUTS, Reductions, SLOTS, Topology};
use super::model::{Model, Reads, Surroundings};
use super::predicates::{
    ACKNOWLEDGED_WHEN_DURABLE, DURABLE, FREED_WHEN_TAKEN, IDENTITY, NO_DEADLOCK, PM_NEVER_GOES_BACK, PROGRESS,
    READ_LATEST, RECOVERY_COMPLETE, RECOVERY_HOLDS_TRAFFIC, WHOLE_LINES, WITHIN_HOLD_UP_ENERGY,
};

/// A model of the size that is explored.
pub type Explored = Model<SLOTS, INPUTS>;

/// A broken variant.
#[derive(Clone, Copy, Debug)]
pub struct Mutant {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does wrong.
    pub does: &'static str,
    /// The name of the predicate that has to find it.
    pub predicate: &'static str,
    model: fn() -> Explored,
}

impl Mutant {
    /// The broken protocol, in the bounds in which it shows. Only the predicate that it was made for is looked at.
    pub fn model(&self) -> Explored {
        Model { only: Some(self.predicate), ..(self.model)() }
    }

    /// The mutant of that name.
    pub fn named(name: &str) -> Result<&'static Mutant, String> {
        ALL.iter().find(|mutant| mutant.name == name).ok_or_else(|| {
            let names: Vec<&str> = iter::once("all").chain(ALL.iter().map(|mutant| mutant.name)).collect();
            there_is_no("mutant", name, &names)
        })
    }
}

/// The smallest bounds in which most can go wrong: one host, one address, two writes and a read, one power cut.
const SMALL: Bounds = Bounds {
    scheme: Scheme::Pb,
    topology: Topology::Single,
    entries: 2,
    addresses: 1,
    hosts: 1,
    writes: 2,
    reads: 1,
    in_flight: 2,
    crashes: 1,
    duplicates: 0,
    failures: 0,
    inputs: 1,
    acknowledgement_inputs: 1,
    threshold: 1,
    preset: 0,
    reads_in_turn: false,
    partial_writes: false,
    reductions: Reductions::ALL,
};

/// As many writes as entries are kept, so that nothing is drained unless somebody needs it.
const KEEPING: Bounds = Bounds { scheme: Scheme::PbRf, threshold: 2, preset: 2, ..SMALL };

/// What is acknowledged stays to be read.
const ADAPTIVE: Bounds = Bounds { scheme: Scheme::PbAdaptive, ..SMALL };

/// More lines than entries.
const CROWDED: Bounds = Bounds { addresses: 2, hosts: 2, entries: 1, crashes: 0, reads: 0, ..SMALL };

macro_rules! rules {
    ($($(#[$text:meta])* $name:ident { $($rule:item)* })*) => {
        $($(#[$text])* pub(super) struct $name; impl Rules for $name { $($rule)* })*
    };
}

rules! {
    AcknowledgesFirst {
        const WRITE_ORDER: [WriteStep; 5] =
            [WriteStep::Acknowledge, WriteStep::DataBegin, WriteStep::DataEnd, WriteStep::Tag, WriteStep::State];
    }
    AcknowledgesBeforeState {
        const WRITE_ORDER: [WriteStep; 5] =
            [WriteStep::DataBegin, WriteStep::DataEnd, WriteStep::Tag, WriteStep::Acknowledge, WriteStep::State];
    }
    StateBeforeData {
        const WRITE_ORDER: [WriteStep; 5] =
            [WriteStep::Tag, WriteStep::State, WriteStep::DataBegin, WriteStep::DataEnd, WriteStep::Acknowledge];
    }
    OverwritesInPlace { const COALESCES_INTO_SPARE_SLOT: bool = false; }
    ForgetsOtherBytes { const KEEPS_OTHER_BYTES: bool = false; }
    TwoDrainsOfALine { const ONE_DRAIN_PER_LINE: bool = false; }
    CoalescesIntoDrain {
        const COALESCES_INTO_SPARE_SLOT: bool = false;
        fn may_coalesce_into(state: EntryState) -> bool { state != EntryState::Empty }
    }
    ReplacesDrain { fn may_coalesce_into(state: EntryState) -> bool { state != EntryState::Empty } }
    /// An entry is freed when it is sent to PM.
    FreesWhenSent { const KEEPS_UNTIL_ACKNOWLEDGED: bool = false; }
    TrustsSelector { const LOOKS_UP_AGAIN: bool = false; }
    InputUnseen { const SELECTOR_SEES_WRITES_UNDER_WAY: bool = false; }
    ReadsOldest { const READS_YOUNGEST: bool = false; }
    DrainUnseen { fn is_seen_by_reads(state: EntryState) -> bool { state == EntryState::Dirty } }
    NoHoldOfPartialReads { const HOLDS_READS_OF_PARTIAL_ENTRIES: bool = false; }
    NoPriority { const ACKNOWLEDGEMENTS_FIRST: bool = false; }
    NoReservedPlace { const ACKNOWLEDGEMENTS_HAVE_PLACES: bool = false; }
    ParkedBlocks { const PARKED_LETS_ACKNOWLEDGEMENTS_PASS: bool = false; }
    AcknowledgementsNeedOutput { const ACKNOWLEDGEMENTS_NEED_NO_OUTPUT: bool = false; }
    Strands { const DRAINS_FOR_PARKED: bool = false; }
    RecoversInSlotOrder { const RECOVERS_OLDEST_FIRST: bool = false; }
    RecoversDirtyOnly { fn is_recovered(state: EntryState) -> bool { state == EntryState::Dirty } }
    RecoversDrainOnly { fn is_recovered(state: EntryState) -> bool { state == EntryState::Drain } }
    RecoveryTakesTraffic { const RECOVERY_HOLDS_TRAFFIC: bool = false; }
    UsesTheSpareSlot { fn has_room(occupied: usize, entries: usize) -> bool { occupied <= entries } }
    WritesLeaveClean { const WRITES_END_CLEAN: bool = false; }
    KeepsPartClean { fn may_be_clean(slot: &Slot) -> bool { slot.age == 0 } }
    KeepsOldClean { fn may_be_clean(slot: &Slot) -> bool { slot.data.mask.is_full() } }
    EvictsDirty { fn may_be_evicted(state: EntryState) -> bool { state == EntryState::Dirty } }
    RecoversClean {
        const WRITES_END_CLEAN: bool = false;
        const POWER_CUT_ENDS_CLEAN: bool = false;
        fn is_recovered(state: EntryState) -> bool { state != EntryState::Empty }
    }
    IgnoresGeneration {
        fn acknowledges(slot: &Slot, index: SlotIndex, acknowledgement: &DrainId) -> bool {
            index == acknowledgement.entry && slot.state == EntryState::Drain
        }
    }
    IgnoresEntry {
        fn acknowledges(slot: &Slot, _: SlotIndex, acknowledgement: &DrainId) -> bool {
            slot.generation == acknowledgement.generation && slot.state == EntryState::Drain && slot.is_sent
        }
    }
    MatchesByLine {
        fn acknowledges(slot: &Slot, _: SlotIndex, acknowledgement: &DrainId) -> bool {
            slot.line == acknowledgement.line && slot.state == EntryState::Drain
        }
    }
}

fn broken<R: Rules>(bounds: Bounds) -> Explored {
    Model::with_rules::<R>(bounds)
}

fn around(bounds: Bounds, surroundings: Surroundings) -> Explored {
    Model { surroundings, ..broken::<Sound>(bounds) }
}

/// Two entries of a line that nothing but their slots tells apart.
fn told_apart(model: Explored) -> Explored {
    Model { reads: Reads { slot_numbers: true, ..model.reads }, ..model }
}

fn surroundings() -> Surroundings {
    Surroundings::default()
}

/// All broken variants, in the order of the invariants that they break.
pub static ALL: [Mutant; 41] = [
    Mutant {
        name: "pm-acknowledges-early",
        does: "PM acknowledges a drain while it has it only where a power cut clears it",
        predicate: DURABLE.name,
        model: || around(SMALL, Surroundings { pm_keeps_before_it_acknowledges: false, ..surroundings() }),
    },
    Mutant {
        name: "acknowledges-for-a-failed-pm",
        does: "PM has declared its failure, and what it drops is acknowledged in its name",
        predicate: DURABLE.name,
        model: || {
            around(
                Bounds { failures: 1, ..SMALL },
                Surroundings { dropped_drains_stay_unacknowledged: false, ..surroundings() },
            )
        },
    },
    Mutant {
        name: "state-before-data",
        does: "an entry becomes valid before its data is written",
        predicate: "no_entry_is_torn",
        model: || broken::<StateBeforeData>(SMALL),
    },
    Mutant {
        name: "forgets-other-bytes",
        does: "a partial write that is merged with an entry drops the bytes that it does not carry",
        predicate: DURABLE.name,
        model: || broken::<ForgetsOtherBytes>(Bounds { partial_writes: true, ..KEEPING }),
    },
    Mutant {
        name: "answers-with-part-of-a-line",
        does: "a read is answered from an entry that holds a part of the line only",
        predicate: WHOLE_LINES.name,
        model: || broken::<NoHoldOfPartialReads>(Bounds { partial_writes: true, ..SMALL }),
    },
    Mutant {
        name: "acknowledges-first",
        does: "a write is acknowledged when the controller takes it, before anything is durable",
        predicate: DURABLE.name,
        model: || broken::<AcknowledgesFirst>(SMALL),
    },
    Mutant {
        name: "acknowledges-before-state",
        does: "a write is acknowledged when data and tag are durable, and the state is not",
        predicate: ACKNOWLEDGED_WHEN_DURABLE.name,
        model: || broken::<AcknowledgesBeforeState>(SMALL),
    },
    Mutant {
        name: "overwrites-in-place",
        does: "a write is merged into an acknowledged entry in its own slot",
        predicate: DURABLE.name,
        model: || broken::<OverwritesInPlace>(KEEPING),
    },
    Mutant {
        name: "coalesces-into-drain",
        does: "a write is merged into an entry that is on its way to PM",
        predicate: FREED_WHEN_TAKEN.name,
        model: || broken::<CoalescesIntoDrain>(SMALL),
    },
    Mutant {
        name: "replaces-drain",
        does: "a write takes the place of an entry that is on its way to PM",
        predicate: PM_NEVER_GOES_BACK.name,
        model: || broken::<ReplacesDrain>(SMALL),
    },
    Mutant {
        name: "two-drains-of-a-line",
        does: "an entry is drained while an older one of its line is on its way to PM",
        predicate: PM_NEVER_GOES_BACK.name,
        model: || broken::<TwoDrainsOfALine>(SMALL),
    },
    Mutant {
        name: "frees-when-sent",
        does: "an entry is freed when it is sent to PM",
        predicate: FREED_WHEN_TAKEN.name,
        model: || broken::<FreesWhenSent>(SMALL),
    },
    Mutant {
        name: "loses-what-was-sent",
        does: "an entry is freed when it is sent to PM, and power is cut",
        predicate: DURABLE.name,
        model: || broken::<FreesWhenSent>(SMALL),
    },
    Mutant {
        name: "clean-when-sent",
        does: "an entry is taken for durable below, and becomes Clean, when it is sent to PM",
        predicate: FREED_WHEN_TAKEN.name,
        model: || broken::<FreesWhenSent>(ADAPTIVE),
    },
    Mutant {
        name: "evicts-dirty",
        does: "a write takes the slot of a Dirty entry, not that of a Clean one",
        predicate: DURABLE.name,
        model: || broken::<EvictsDirty>(Bounds { addresses: 2, entries: 1, writes: 3, crashes: 0, ..ADAPTIVE }),
    },
    Mutant {
        name: "writes-leave-clean",
        does: "a Clean entry can still be read when its line has been written again",
        predicate: READ_LATEST.name,
        model: || told_apart(broken::<WritesLeaveClean>(ADAPTIVE)),
    },
    Mutant {
        name: "keeps-old-clean",
        does: "an entry becomes Clean though there is a younger one of its line",
        predicate: READ_LATEST.name,
        model: || told_apart(broken::<KeepsOldClean>(ADAPTIVE)),
    },
    Mutant {
        name: "reads-oldest",
        does: "a read is answered from the oldest entry of its line",
        predicate: READ_LATEST.name,
        model: || broken::<ReadsOldest>(SMALL),
    },
    Mutant {
        name: "drain-unseen",
        does: "a read of a line whose entry is in state Drain goes straight to PM",
        predicate: READ_LATEST.name,
        model: || broken::<DrainUnseen>(SMALL),
    },
    Mutant {
        name: "forwards-from-a-victim",
        does: "a read is answered from the slot that the selector saw, which was freed meanwhile",
        predicate: WHOLE_LINES.name,
        model: || Model {
            reads: Reads { selector_sight: true, slot_numbers: true, ..Reads::default() },
            ..broken::<TrustsSelector>(Bounds { addresses: 2, inputs: 2, crashes: 0, ..SMALL })
        },
    },
    Mutant {
        name: "bridge-does-not-hold",
        does: "the host bridge lets a read follow a write of its line that has no Cmp, on links that reorder classes",
        predicate: READ_LATEST.name,
        model: || {
            around(
                Bounds { reductions: Reductions { arrival: false, ..Reductions::ALL }, ..SMALL },
                Surroundings { bridge_holds_requests: false, ..surroundings() },
            )
        },
    },
    Mutant {
        name: "input-unseen",
        does: "the selector does not see writes that wait in the input, and the host bridge lets reads follow writes",
        predicate: READ_LATEST.name,
        model: || Model {
            surroundings: Surroundings { bridge_holds_requests: false, ..surroundings() },
            ..broken::<InputUnseen>(SMALL)
        },
    },
    Mutant {
        name: "no-priority",
        does: "acknowledgements wait behind requests in the controller's input",
        predicate: NO_DEADLOCK.name,
        model: || Model { reads: Reads { input_order: true, ..Reads::default() }, ..broken::<NoPriority>(CROWDED) },
    },
    Mutant {
        name: "no-reserved-place",
        does: "acknowledgements have no place of their own in the controller's input",
        predicate: NO_DEADLOCK.name,
        model: || broken::<NoReservedPlace>(Bounds { addresses: 3, hosts: 3, ..CROWDED }),
    },
    Mutant {
        name: "parked-blocks",
        does: "the controller takes no acknowledgement while a write is parked",
        predicate: NO_DEADLOCK.name,
        model: || broken::<ParkedBlocks>(CROWDED),
    },
    Mutant {
        name: "acknowledgements-need-output",
        does: "an acknowledgement is taken only when the output has room for a drain",
        predicate: NO_DEADLOCK.name,
        model: || {
            broken::<AcknowledgementsNeedOutput>(Bounds {
                entries: 4,
                addresses: 4,
                writes: 4,
                duplicates: 1,
                hosts: 1,
                ..CROWDED
            })
        },
    },
    Mutant {
        name: "pm-goes-silent",
        does: "PM takes drains and never acknowledges them, though it has declared no failure",
        predicate: NO_DEADLOCK.name,
        model: || {
            around(
                Bounds { failures: 1, ..SMALL },
                Surroundings { pm_acknowledges_in_the_end: false, ..surroundings() },
            )
        },
    },
    Mutant {
        name: "strands",
        does: "nothing is drained below the threshold, even if a write waits for a free entry",
        predicate: PROGRESS.name,
        model: || broken::<Strands>(Bounds { scheme: Scheme::PbRf, threshold: 1, preset: 1, ..CROWDED }),
    },
    Mutant {
        name: "keeps-part-clean",
        does: "an entry with a part of a line becomes Clean, and its readers wait for a drain that does not come",
        predicate: PROGRESS.name,
        model: || broken::<KeepsPartClean>(Bounds { partial_writes: true, ..ADAPTIVE }),
    },
    Mutant {
        name: "matches-by-line",
        does: "an acknowledgement frees whichever draining entry has its line",
        predicate: IDENTITY.name,
        model: || Model {
            reads: Reads { acknowledged_lines: true, ..Reads::default() },
            ..broken::<MatchesByLine>(Bounds { duplicates: 1, ..SMALL })
        },
    },
    Mutant {
        name: "ignores-generation",
        does: "an acknowledgement frees whatever is in its slot now",
        predicate: IDENTITY.name,
        model: || broken::<IgnoresGeneration>(Bounds { duplicates: 1, ..SMALL }),
    },
    Mutant {
        name: "ignores-entry",
        does: "an acknowledgement frees any entry of its generation",
        predicate: FREED_WHEN_TAKEN.name,
        model: || Model {
            reads: Reads { slot_numbers: true, ..Reads::default() },
            ..broken::<IgnoresEntry>(Bounds { addresses: 2, ..SMALL })
        },
    },
    Mutant {
        name: "recovers-in-slot-order",
        does: "a recovery drains entries in the order of their slots",
        predicate: RECOVERY_COMPLETE.name,
        model: || Model {
            reads: Reads { slot_numbers: true, ..Reads::default() },
            ..broken::<RecoversInSlotOrder>(Bounds { writes: 3, ..SMALL })
        },
    },
    Mutant {
        name: "recovers-clean",
        does: "a Clean entry outlives a newer write of its line and a power cut, and the recovery drains it",
        predicate: PM_NEVER_GOES_BACK.name,
        model: || told_apart(broken::<RecoversClean>(ADAPTIVE)),
    },
    Mutant {
        name: "skips-drain-in-recovery",
        does: "a recovery drains Dirty entries only",
        predicate: RECOVERY_COMPLETE.name,
        model: || broken::<RecoversDirtyOnly>(SMALL),
    },
    Mutant {
        name: "skips-dirty-in-recovery",
        does: "a recovery drains Drain entries only",
        predicate: RECOVERY_COMPLETE.name,
        model: || broken::<RecoversDrainOnly>(SMALL),
    },
    Mutant {
        name: "recovers-before-old-writes-are-dead",
        does: "a recovery begins while drains from before the power cut are still on their way",
        predicate: PM_NEVER_GOES_BACK.name,
        model: || around(SMALL, Surroundings { old_writes_are_dead: false, ..surroundings() }),
    },
    Mutant {
        name: "recovery-takes-traffic",
        does: "reads and writes are taken while a recovery runs",
        predicate: RECOVERY_HOLDS_TRAFFIC.name,
        model: || broken::<RecoveryTakesTraffic>(SMALL),
    },
    Mutant {
        name: "next-switch-acknowledges-early",
        does: "in a chain, the second persist buffer acknowledges a drain of the first when it arrives in its input",
        predicate: DURABLE.name,
        model: || {
            around(
                Bounds { topology: Topology::Chain, ..SMALL },
                Surroundings { next_buffer_keeps_before_it_acknowledges: false, ..surroundings() },
            )
        },
    },
    Mutant {
        name: "first-switch-acknowledges",
        does: "each host's first switch acknowledges its writes, though another host reaches the line without passing it",
        predicate: READ_LATEST.name,
        model: || {
            around(
                Bounds { topology: Topology::Shared, hosts: 2, ..SMALL },
                Surroundings { shared_persist_point: false, ..surroundings() },
            )
        },
    },
    Mutant {
        name: "exceeds-the-energy",
        does: "a write takes the spare slot, so that more lines are to be drained than the hold-up energy is for",
        predicate: WITHIN_HOLD_UP_ENERGY.name,
        model: || broken::<UsesTheSpareSlot>(CROWDED),
    },
];
