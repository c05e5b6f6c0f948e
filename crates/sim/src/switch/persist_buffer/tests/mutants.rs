//! Broken rules: each must make a visible difference, or the tests around it prove nothing. The checker does this
//! exhaustively.

use super::crash::some_cut_loses;
use super::*;
use crate::switch::persist_buffer::rules::WriteStep;
use fencepost_kernel::message::MessageClass;

macro_rules! mutant {
    ($name:ident { $($rule:item)* }) => {
        struct $name;
        impl Rules for $name { $($rule)* }
    };
}

mutant!(AcknowledgesFirst {
    const WRITE_ORDER: [WriteStep; 5] =
        [WriteStep::Acknowledge, WriteStep::DataBegin, WriteStep::DataEnd, WriteStep::Tag, WriteStep::State];
});
mutant!(StateBeforeData {
    const WRITE_ORDER: [WriteStep; 5] =
        [WriteStep::Tag, WriteStep::State, WriteStep::DataBegin, WriteStep::DataEnd, WriteStep::Acknowledge];
});
mutant!(OverwritesInPlace { const COALESCES_INTO_SPARE_SLOT: bool = false; });
mutant!(FreesWhenSent { const KEEPS_UNTIL_ACKNOWLEDGED: bool = false; });
mutant!(RecoversInSlotOrder { const RECOVERS_OLDEST_FIRST: bool = false; });
mutant!(RecoversDirtyOnly {
    fn is_recovered(state: EntryState) -> bool {
        state == EntryState::Dirty
    }
});

#[test]
fn a_cut_loses_an_acknowledged_line_under_each_rule_broken_for_durability() {
    assert!(some_cut_loses::<AcknowledgesFirst>(), "acknowledged before it is durable");
    assert!(some_cut_loses::<StateBeforeData>(), "an entry before it has data");
    assert!(some_cut_loses::<OverwritesInPlace>(), "torn in place");
    assert!(some_cut_loses::<FreesWhenSent>(), "lost on the wire");
    assert!(some_cut_loses::<RecoversInSlotOrder>(), "an older version last");
    assert!(some_cut_loses::<RecoversDirtyOnly>(), "what was being drained is forgotten");
}

mutant!(CoalescesIntoDrain {
    fn may_coalesce_into(state: EntryState) -> bool {
        state != EntryState::Empty
    }
});
mutant!(TwoDrainsOfALine { const ONE_DRAIN_PER_LINE: bool = false; });

#[test]
fn two_versions_of_a_line_are_under_way_when_the_write_order_is_not_kept() {
    fn under_way<R: Rules>() -> usize {
        let mut bench: Bench<R> = Bench::with_rules(parameters(4, DrainPolicy::AtOnce));
        bench.write(1, 1);
        bench.write(1, 2);
        bench.drains.iter().filter(|(drain, _)| drain.line == LineAddress(1)).count()
    }
    assert_eq!(under_way::<Sound>(), 1);
    assert_eq!(under_way::<CoalescesIntoDrain>(), 2);
    assert_eq!(under_way::<TwoDrainsOfALine>(), 2);
}

mutant!(NoPriority { const ACKNOWLEDGEMENTS_FIRST: bool = false; });
mutant!(NoReservedPlace { const ACKNOWLEDGEMENTS_HAVE_PLACES: bool = false; });
mutant!(ParkedBlocks { const PARKED_LETS_ACKNOWLEDGEMENTS_PASS: bool = false; });
mutant!(AcknowledgementsNeedOutput { const ACKNOWLEDGEMENTS_NEED_NO_OUTPUT: bool = false; });
mutant!(Strands { const DRAINS_FOR_PARKED: bool = false; });

/// More writes than entries, always pressing; the device is slow. Whether all writes are acknowledged in the end.
/// `room` is what the output has while an
/// acknowledgement waits.
fn all_writes_end<R: Rules>(policy: DrainPolicy, room: OutputRoom) -> bool {
    let mut bench: Bench<R> = Bench::with_rules(parameters(2, policy));
    let mut requests = Vec::new();
    for time in 0..1000 {
        bench.step();
        while requests.len() < 12 {
            let (action, request) = bench.offer_write(requests.len() as u64, 1, ByteMask::FULL);
            if action == Action::Refused {
                break;
            }
            requests.push(request);
        }
        if time % 30 == 0
            && let Some((drain, _)) = bench.drains.front().copied()
            && bench.acknowledge(drain) == Action::Admitted
        {
            bench.drains.pop_front();
        }
        let acknowledgements = bench.state.input.acknowledgements();
        bench.room = if acknowledgements > 0 { room } else { OutputRoom::ALL };
    }
    requests.len() == 12 && requests.iter().all(|request| bench.is_completed(*request))
}

#[test]
fn writes_wait_for_ever_under_each_rule_broken_for_progress() {
    let never_full = OutputRoom::ALL;
    let at_once = DrainPolicy::AtOnce;
    assert!(all_writes_end::<Sound>(at_once, never_full));
    assert!(!all_writes_end::<NoPriority>(at_once, never_full));
    assert!(!all_writes_end::<NoReservedPlace>(at_once, never_full));
    assert!(!all_writes_end::<ParkedBlocks>(at_once, never_full));
    assert!(all_writes_end::<Sound>(threshold(2, 2), never_full));
    assert!(!all_writes_end::<Strands>(threshold(2, 2), never_full));
    let no_drains = OutputRoom::ALL.without(MessageClass::M2sRwd);
    assert!(all_writes_end::<Sound>(at_once, no_drains));
    assert!(!all_writes_end::<AcknowledgementsNeedOutput>(at_once, no_drains));
}

mutant!(ReadsOldest { const READS_YOUNGEST: bool = false; });
mutant!(DrainUnseen {
    fn is_seen_by_reads(state: EntryState) -> bool {
        state == EntryState::Dirty
    }
});
mutant!(InputUnseen { const SELECTOR_SEES_WRITES_UNDER_WAY: bool = false; });
mutant!(TrustsSelector { const LOOKS_UP_AGAIN: bool = false; });

/// The version that a read sees after versions 1 and 2 of its line were acknowledged, 1 of them on its way to the
/// device.
fn version_read<R: Rules>() -> Option<u64> {
    let mut bench: Bench<R> = Bench::with_rules(parameters(4, DrainPolicy::AtOnce));
    bench.write(1, 1);
    bench.write(1, 2);
    read_version(&mut bench)
}

/// The version that a read of line 1 sees; none if it is never answered.
fn read_version<R: Rules>(bench: &mut Bench<R>) -> Option<u64> {
    let (action, _) = bench.offer_read(1);
    if action == Action::Passed {
        return Some(bench.memory.halves(1)[0]);
    }
    bench.settle();
    match bench.sent.last()? {
        Output::Answered(_, data) => Some(data.version.0),
        Output::Forwarded(_) => Some(bench.memory.halves(1)[0]),
        Output::Completed(_) | Output::Drain(..) => None,
    }
}

#[test]
fn a_read_sees_something_old_under_each_rule_broken_for_reads() {
    assert_eq!(version_read::<Sound>(), Some(2));
    assert_eq!(version_read::<ReadsOldest>(), Some(1));
    fn of_a_draining_line<R: Rules>() -> Option<u64> {
        let mut bench: Bench<R> = Bench::with_rules(parameters(4, DrainPolicy::AtOnce));
        bench.write(1, 1);
        read_version(&mut bench)
    }
    assert_eq!((of_a_draining_line::<Sound>(), of_a_draining_line::<DrainUnseen>()), (Some(1), Some(0)));
    fn behind_its_write<R: Rules>() -> Option<u64> {
        let mut bench: Bench<R> = Bench::with_rules(parameters(4, DrainPolicy::AtOnce));
        bench.offer_write(1, 1, ByteMask::FULL);
        read_version(&mut bench)
    }
    assert_eq!((behind_its_write::<Sound>(), behind_its_write::<InputUnseen>()), (Some(1), Some(0)));
    fn of_a_line_that_goes<R: Rules>() -> Option<u64> {
        let mut bench: Bench<R> = Bench::with_rules(parameters(4, DrainPolicy::AtOnce));
        bench.write(1, 1);
        let drain = bench.device_writes();
        bench.acknowledge(drain);
        read_version(&mut bench)
    }
    assert_eq!((of_a_line_that_goes::<Sound>(), of_a_line_that_goes::<TrustsSelector>()), (Some(1), None));
}

mutant!(IgnoresGeneration {
    fn acknowledges(slot: &super::super::state::Slot, index: SlotIndex, acknowledgement: &Acknowledgement) -> bool {
        index == acknowledgement.entry && slot.state == EntryState::Drain
    }
});
mutant!(MatchesByLine {
    fn acknowledges(slot: &super::super::state::Slot, _: SlotIndex, acknowledgement: &Acknowledgement) -> bool {
        slot.line == acknowledgement.line && slot.state == EntryState::Drain
    }
});
mutant!(NoHoldOfPartialReads { const HOLDS_READS_OF_PARTIAL_ENTRIES: bool = false; });
mutant!(ForgetsOtherBytes { const KEEPS_OTHER_BYTES: bool = false; });
mutant!(UsesTheSpareSlot {
    fn has_room(occupied: usize, entries: usize) -> bool {
        occupied <= entries
    }
});
mutant!(RecoveryTakesTraffic { const RECOVERY_HOLDS_TRAFFIC: bool = false; });

#[test]
fn a_duplicate_acknowledgement_frees_a_later_drain_when_identity_is_not_checked() {
    fn frees_too_much<R: Rules>() -> bool {
        let mut bench: Bench<R> = Bench::with_rules(parameters(1, DrainPolicy::AtOnce));
        bench.write(1, 1);
        let first = bench.device_writes();
        bench.acknowledge(first);
        bench.settle();
        bench.write(1, 2);
        bench.acknowledge(first);
        bench.settle();
        bench.state.occupied() == 0
    }
    assert!(!frees_too_much::<Sound>());
    assert!(frees_too_much::<IgnoresGeneration>());
    assert!(frees_too_much::<MatchesByLine>());
}

#[test]
fn lines_are_sent_in_pieces_or_bytes_are_lost_when_masks_are_not_kept() {
    let mut bench: Bench<NoHoldOfPartialReads> = Bench::with_rules(parameters(2, DrainPolicy::AtOnce));
    bench.offer_write(1, 1, LOW_HALF);
    bench.offer_read(1);
    bench.settle();
    assert!(bench.sent.iter().any(|output| !invariants::is_whole(output)));
    let mut bench: Bench<ForgetsOtherBytes> = Bench::with_rules(parameters(2, threshold(2, 2)));
    bench.write(1, 1);
    bench.offer_write(1, 2, LOW_HALF);
    bench.settle();
    bench.cut_power();
    bench.recover();
    assert_eq!(bench.memory.halves(1), [2, 0], "the high half of version 1 was acknowledged and is gone");
}

#[test]
fn more_is_occupied_than_the_hold_up_energy_drains_when_the_spare_slot_is_used() {
    let mut bench: Bench<UsesTheSpareSlot> = Bench::with_rules(parameters(2, threshold(2, 2)));
    (1..=3).for_each(|line| bench.write(line, 1));
    assert_eq!(invariants::violated(&bench.parameters, &bench.state), Some("a_slot_is_left_for_merging"));
}

#[test]
fn a_recovery_that_lets_traffic_in_takes_writes_before_it_is_done() {
    let mut bench: Bench<RecoveryTakesTraffic> = Bench::with_rules(parameters(2, threshold(2, 2)));
    bench.write(1, 1);
    bench.cut_power();
    bench.apply(Input::PowerOn);
    assert_eq!(bench.offer_write(1, 2, ByteMask::FULL).0, Action::Admitted);
}
