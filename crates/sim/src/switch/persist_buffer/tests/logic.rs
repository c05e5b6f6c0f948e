//! What the logic does with packets while there is power.

use super::*;
use crate::switch::persist_buffer::packet::Accesses;
use fencepost_kernel::message::MessageClass;

#[test]
fn a_write_is_acknowledged_after_its_data_tag_and_state() {
    let mut bench = Bench::new(4, threshold(4, 4));
    let (_, request) = bench.offer_write(1, 1, ByteMask::FULL);
    let mut accesses = Accesses::NONE;
    let mut steps = 0;
    while !bench.is_completed(request) {
        assert!(steps == 0 || bench.state.durable_version(LineAddress(1)).is_none() || steps == 5);
        accesses = accesses + bench.step().accesses;
        steps += 1;
        bench.check();
    }
    assert_eq!(steps, 6, "lookup, two parts of the data, tag, state, acknowledgement");
    assert_eq!(accesses, Accesses { tag: 2, data: 1 });
    assert_eq!(bench.entry(1), (EntryState::Dirty, 1));
}

#[test]
fn pb_drains_each_entry_as_soon_as_it_is_acknowledged() {
    let mut bench = Bench::new(4, DrainPolicy::AtOnce);
    bench.offer_write(1, 1, ByteMask::FULL);
    bench.offer_write(2, 1, ByteMask::FULL);
    assert_eq!(bench.settle(), [Action::Allocating, Action::Draining, Action::Allocating, Action::Draining]);
    assert_eq!(bench.lines_in(EntryState::Drain), [1, 2]);
    bench.device_takes_all();
    assert!(bench.lines_in(EntryState::Drain).is_empty());
    assert_eq!(bench.memory.halves(2), [1, 1]);
}

#[test]
fn a_write_to_a_dirty_line_is_merged_and_the_old_entry_retired() {
    let mut bench = Bench::new(2, threshold(2, 2));
    bench.write(1, 1);
    let first = bench.state.youngest(LineAddress(1)).unwrap();
    bench.offer_write(1, 2, ByteMask::FULL);
    assert_eq!(bench.settle(), [Action::Coalescing]);
    let second = bench.state.youngest(LineAddress(1)).unwrap();
    assert_ne!(first, second, "it is not overwritten in place");
    assert_eq!(bench.entry(1), (EntryState::Dirty, 2));
    assert_eq!(bench.state.occupied(), 1);
}

#[test]
fn merging_needs_no_free_entry() {
    let mut bench = Bench::new(2, threshold(2, 2));
    bench.write(1, 1);
    bench.write(2, 1);
    bench.offer_write(1, 2, ByteMask::FULL);
    assert_eq!(bench.settle(), [Action::Coalescing]);
    bench.check();
    assert_eq!(bench.state.occupied(), 2);
}

#[test]
fn the_acknowledgement_of_a_merged_write_does_not_wait_for_the_old_entry_to_be_retired() {
    let mut bench = Bench::new(2, threshold(2, 2));
    bench.write(1, 1);
    let (_, request) = bench.offer_write(1, 2, ByteMask::FULL);
    while !bench.is_completed(request) {
        bench.step();
    }
    assert!(matches!(bench.state.operation, Operation::Retire { .. }));
    assert_eq!(bench.lines_in(EntryState::Dirty), [1, 1], "both are there, the younger one counts");
    assert_eq!(bench.state.durable_version(LineAddress(1)), Some(Version(2)));
}

#[test]
fn a_write_to_a_draining_line_gets_an_entry_of_its_own_and_waits_for_the_first_drain() {
    let mut bench = Bench::new(4, DrainPolicy::AtOnce);
    bench.write(1, 1);
    bench.write(1, 2);
    assert_eq!((bench.lines_in(EntryState::Drain), bench.lines_in(EntryState::Dirty)), (vec![1], vec![1]));
    assert_eq!(bench.drains.len(), 1, "one drain of a line at a time");
    bench.write(1, 3);
    assert_eq!(bench.entry(1), (EntryState::Dirty, 3), "later ones are merged into the second entry");
    bench.device_takes_all();
    assert_eq!(bench.memory.halves(1), [3, 3]);
    assert_eq!(bench.state.occupied(), 0);
}

#[test]
fn pb_rf_drains_above_its_threshold_down_to_its_preset_least_recently_used_first() {
    let mut bench = Bench::new(8, threshold(6, 4));
    (1..=6).for_each(|line| bench.write(line, 1));
    assert!(bench.drains.is_empty(), "six are not more than six");
    bench.write(1, 2);
    assert!(bench.drains.is_empty(), "a merged write occupies nothing more");
    bench.write(7, 1);
    assert_eq!(bench.lines_in(EntryState::Drain), [2, 3, 4], "line 1 was used again");
    assert_eq!(bench.lines_in(EntryState::Dirty), [1, 5, 6, 7]);
    bench.device_takes_all();
    assert_eq!(bench.lines_in(EntryState::Dirty), [1, 5, 6, 7], "below the threshold they stay");
}

#[test]
fn a_read_makes_its_entry_the_most_recently_used() {
    let mut bench = Bench::new(4, threshold(3, 3));
    (1..=3).for_each(|line| bench.write(line, 1));
    bench.offer_read(1);
    assert_eq!(bench.settle(), [Action::Hit]);
    bench.write(4, 1);
    assert_eq!(bench.lines_in(EntryState::Drain), [2]);
}

#[test]
fn thresholds_of_16_entries_are_rounded_so_that_more_than_and_at_most_are_exact() {
    let config = |part: (f64, f64), entries| crate::switch::PersistBufferConfig {
        entries,
        tag_access_ns: 0.0,
        data_access_ns: 0.0,
        service_ns: 0.0,
        reads_bypass: true,
        input_entries: 1,
        input_acknowledgement_entries: 1,
        output_entries: 1,
        drain_threshold: part.0,
        drain_preset: part.1,
    };
    let policy = |part, entries| DrainPolicy::of(crate::switch::Scheme::PbRf, &config(part, entries)).unwrap();
    assert_eq!(policy((0.8, 0.6), 16), threshold(12, 9), "13 of 16 are more than 80 %, 9 are at most 60 %");
    assert_eq!(policy((0.29, 0.07), 100), threshold(29, 7), "whole numbers stay whole");
    assert_eq!(policy((1.0, 0.0), 7), threshold(7, 0));
}

#[test]
fn a_full_buffer_parks_the_write_and_still_takes_acknowledgements() {
    let mut bench = Bench::new(2, DrainPolicy::AtOnce);
    bench.write(1, 1);
    bench.write(2, 1);
    let (_, request) = bench.offer_write(3, 1, ByteMask::FULL);
    assert_eq!(bench.settle(), [Action::Parked]);
    bench.check();
    let (_, behind) = bench.offer_write(1, 2, ByteMask::FULL);
    assert_eq!(bench.settle(), [], "what came later waits behind it");
    let acknowledgement = bench.device_writes();
    assert_eq!(bench.acknowledge(acknowledgement), Action::Admitted);
    assert_eq!(bench.one_work(), Action::Freeing);
    bench.settle();
    assert!(bench.is_completed(request));
    assert!(!bench.is_completed(behind), "the buffer is full again");
    bench.device_takes_all();
    assert!(bench.is_completed(behind));
    assert_eq!([1, 2, 3].map(|line| bench.memory.halves(line)[0]), [2, 1, 1]);
}

#[test]
fn acknowledgements_have_a_place_when_the_input_is_full_of_writes_and_overtake_them() {
    let mut bench = Bench::new(2, DrainPolicy::AtOnce);
    bench.write(1, 1);
    for line in 2..6 {
        assert_eq!(bench.offer_write(line, 1, ByteMask::FULL).0, Action::Admitted);
    }
    assert_eq!(bench.offer_write(6, 1, ByteMask::FULL).0, Action::Refused);
    let acknowledgement = bench.device_writes();
    assert_eq!(bench.acknowledge(acknowledgement), Action::Admitted);
    assert_eq!(bench.acknowledge(acknowledgement), Action::Refused, "its place is taken");
    bench.check();
    assert_eq!(bench.one_work(), Action::Freeing);
    assert_eq!(bench.one_work(), Action::Allocating);
}

#[test]
fn acknowledgements_need_no_room_in_the_output() {
    let mut bench = Bench::new(2, DrainPolicy::AtOnce);
    bench.write(1, 1);
    bench.offer_write(2, 1, ByteMask::FULL);
    bench.room = OutputRoom([false; MessageClass::COUNT]);
    assert_eq!(bench.settle(), [], "nothing else is possible");
    let acknowledgement = bench.device_writes();
    bench.acknowledge(acknowledgement);
    assert_eq!(bench.settle(), [Action::Freeing]);
    assert_eq!(bench.state.occupied(), 0);
}

#[test]
fn each_packet_waits_for_room_of_the_class_of_its_answer() {
    let mut bench = Bench::new(2, threshold(2, 2));
    bench.write(1, 1);
    bench.offer_read(1);
    bench.room = OutputRoom::ALL.without(MessageClass::S2mDrs);
    assert_eq!(bench.settle(), []);
    bench.room = OutputRoom::ALL.without(MessageClass::M2sReq);
    assert_eq!(bench.settle(), [], "it may turn out that the read has to go on to the device");
    bench.room = OutputRoom::ALL.without(MessageClass::S2mNdr);
    assert_eq!(bench.settle(), [Action::Hit]);
    bench.offer_write(2, 1, ByteMask::FULL);
    assert_eq!(bench.settle(), []);
    bench.room = OutputRoom::ALL.without(MessageClass::M2sRwd);
    assert_eq!(bench.settle(), [Action::Allocating]);
}

#[test]
fn a_threshold_that_is_never_passed_does_not_strand_a_write() {
    let mut bench = Bench::new(2, threshold(2, 2));
    bench.write(1, 1);
    bench.write(2, 1);
    assert!(bench.drains.is_empty());
    let (_, request) = bench.offer_write(3, 1, ByteMask::FULL);
    assert_eq!(bench.settle(), [Action::Parked, Action::Draining]);
    assert_eq!(bench.lines_in(EntryState::Drain), [1], "the least recently used, and no more than needed");
    bench.device_takes_all();
    assert!(bench.is_completed(request));
}

#[test]
fn a_late_or_duplicate_acknowledgement_frees_nothing_else() {
    let mut bench = Bench::new(1, DrainPolicy::AtOnce);
    bench.write(1, 1);
    let first = bench.device_writes();
    assert_eq!(bench.acknowledge(first), Action::Admitted);
    assert_eq!(bench.settle(), [Action::Freeing]);
    assert_eq!(bench.acknowledge(first), Action::Admitted);
    assert_eq!(bench.settle(), [Action::Ignored], "the entry is empty");
    // The same two slots in turn: after two more writes the first slot drains again, of a later generation.
    for version in 2..=4 {
        bench.write(1, version);
        bench.acknowledge(first);
        assert_eq!(bench.settle(), [Action::Ignored]);
        assert_eq!(bench.entry(1), (EntryState::Drain, version));
        let acknowledgement = bench.device_writes();
        bench.acknowledge(acknowledgement);
        bench.settle();
    }
}

#[test]
fn an_acknowledgement_of_another_generation_of_the_same_slot_is_ignored() {
    let mut bench = Bench::new(1, DrainPolicy::AtOnce);
    bench.write(1, 1);
    let right = bench.device_writes();
    let wrong = Acknowledgement { generation: right.generation.wrapping_sub(1), ..right };
    bench.acknowledge(wrong);
    assert_eq!(bench.settle(), [Action::Ignored]);
    assert_eq!(bench.entry(1), (EntryState::Drain, 1));
    let wrong_line = Acknowledgement { line: LineAddress(99), ..right };
    bench.acknowledge(wrong_line);
    assert_eq!(bench.settle(), [Action::Freeing], "an NDR carries no address: none is looked at");
}

#[test]
fn a_dirty_entry_is_not_freed_by_an_acknowledgement() {
    let mut bench = Bench::new(2, threshold(2, 2));
    bench.write(1, 1);
    let index = bench.state.youngest(LineAddress(1)).unwrap();
    let forged = bench.state.slot(index).drain_id(index);
    bench.acknowledge(forged);
    assert_eq!(bench.settle(), [Action::Ignored]);
    assert_eq!(bench.entry(1), (EntryState::Dirty, 1));
}

#[test]
fn a_read_is_answered_from_the_youngest_entry_dirty_or_draining() {
    let mut bench = Bench::new(4, DrainPolicy::AtOnce);
    bench.write(1, 1);
    let (_, first) = bench.offer_read(1);
    bench.settle();
    bench.write(1, 2);
    let (_, second) = bench.offer_read(1);
    bench.settle();
    let answer = |request, version| {
        Output::Answered(request, LineData { version: Version(version), mask: ByteMask::FULL, is_torn: false })
    };
    assert!(bench.sent.contains(&answer(first, 1)));
    assert!(bench.sent.contains(&answer(second, 2)));
}

#[test]
fn the_selector_passes_reads_of_other_lines_and_keeps_those_whose_write_is_still_under_way() {
    let mut bench = Bench::new(2, DrainPolicy::AtOnce);
    assert_eq!(bench.offer_read(1).0, Action::Passed);
    bench.offer_write(1, 1, ByteMask::FULL);
    assert_eq!(bench.offer_read(2).0, Action::Passed);
    assert_eq!(bench.offer_read(1).0, Action::Admitted, "the write is in the input");
    bench.step();
    assert!(
        selector::selects_read::<Sound, _, _>(&bench.parameters, &bench.state, LineAddress(1)),
        "the write is being written"
    );
    bench.settle();
    bench.write(2, 1);
    bench.offer_write(3, 1, ByteMask::FULL);
    assert_eq!(bench.settle(), [Action::Parked]);
    assert!(
        selector::selects_read::<Sound, _, _>(&bench.parameters, &bench.state, LineAddress(3)),
        "the write is parked"
    );
}

#[test]
fn the_controller_looks_up_again_and_sends_a_read_on_whose_entry_has_gone() {
    let mut bench = Bench::new(2, DrainPolicy::AtOnce);
    bench.write(1, 1);
    let acknowledgement = bench.device_writes();
    let (action, request) = bench.offer_read(1);
    assert_eq!(action, Action::Admitted);
    bench.acknowledge(acknowledgement);
    assert_eq!(bench.settle(), [Action::Freeing, Action::Missed], "the acknowledgement overtakes the read");
    assert!(bench.sent.contains(&Output::Forwarded(request)));
}

#[test]
fn a_read_of_a_partial_entry_waits_for_its_drain_and_then_goes_to_the_device() {
    let mut bench = Bench::new(4, threshold(4, 4));
    bench.offer_write(1, 1, LOW_HALF);
    bench.settle();
    let (_, request) = bench.offer_read(1);
    assert_eq!(bench.settle(), [Action::Parked, Action::Draining], "nothing else would ever drain it");
    assert!(!bench.sent.contains(&Output::Forwarded(request)));
    bench.device_takes_all();
    assert!(bench.sent.contains(&Output::Forwarded(request)));
    assert_eq!(bench.memory.halves(1), [1, 0]);
}

#[test]
fn a_read_behind_two_partial_entries_waits_for_both() {
    let mut bench = Bench::new(4, DrainPolicy::AtOnce);
    bench.offer_write(1, 1, LOW_HALF);
    bench.settle();
    bench.offer_write(1, 2, HIGH_HALF);
    let (_, request) = bench.offer_read(1);
    bench.settle();
    let first = bench.device_writes();
    bench.acknowledge(first);
    bench.settle();
    assert!(!bench.sent.contains(&Output::Forwarded(request)), "the second part is still under way");
    bench.device_takes_all();
    assert!(bench.sent.contains(&Output::Forwarded(request)));
    assert_eq!(bench.memory.halves(1), [1, 2]);
}

#[test]
fn a_partial_write_merged_into_an_entry_keeps_the_entrys_other_bytes_and_reads_them_first() {
    let mut bench = Bench::new(2, threshold(2, 2));
    bench.write(1, 1);
    bench.offer_write(1, 2, LOW_HALF);
    let mut accesses = bench.step().accesses;
    while bench.state.operation != Operation::Idle {
        accesses = accesses + bench.step().accesses;
    }
    assert_eq!(accesses, Accesses { tag: 3, data: 2 }, "lookup, read, write, tag, and the old entry's state");
    let (_, request) = bench.offer_read(1);
    bench.settle();
    let whole = LineData { version: Version(2), mask: ByteMask::FULL, is_torn: false };
    assert!(bench.sent.contains(&Output::Answered(request, whole)));
    bench.offer_write(2, 1, LOW_HALF);
    bench.offer_write(2, 2, HIGH_HALF);
    bench.settle();
    let index = bench.state.youngest(LineAddress(2)).unwrap();
    assert!(bench.state.slot(index).data.mask.is_full(), "two halves make a line");
}

#[test]
fn equal_behaviour_gives_equal_states() {
    let mut one = Bench::new(4, DrainPolicy::AtOnce);
    one.write(1, 1);
    one.device_takes_all();
    let mut other = Bench::new(4, DrainPolicy::AtOnce);
    other.write(2, 7);
    other.device_takes_all();
    assert_eq!(one.state, other.state, "what an empty slot once held is forgotten");
    assert!(one.state.cmp(&other.state).is_eq());
}
