//! Clean entries: what the memory device has acknowledged stays to be read until its room is needed.

use super::*;

fn read_of(bench: &mut Bench, line: u64) -> Option<u64> {
    let (action, request) = bench.offer_read(line);
    bench.settle();
    match (action, bench.sent.last()) {
        (Action::Admitted, Some(Output::Answered(answered, data))) if *answered == request => Some(data.version.0),
        _ => None,
    }
}

#[test]
fn an_acknowledged_entry_answers_reads_and_takes_no_room() {
    let mut bench = Bench::new(2, adaptive(0));
    bench.write(1, 1);
    bench.device_takes_all();
    assert_eq!((bench.lines_in(EntryState::Clean), bench.state.occupied()), (vec![1], 0));
    assert_eq!(read_of(&mut bench, 1), Some(1));
    assert_eq!(bench.state.durable_version(LineAddress(1)), None, "a recovery has nothing to do");
    bench.check();
}

#[test]
fn all_slots_may_be_clean_and_the_least_recently_used_is_evicted() {
    let mut bench = Bench::new(2, adaptive(0));
    (1..=3).for_each(|line| {
        bench.write(line, 1);
        bench.device_takes_all();
    });
    assert_eq!(bench.lines_in(EntryState::Clean), [1, 2, 3], "the slot for merging too");
    assert_eq!(read_of(&mut bench, 1), Some(1));
    bench.write(4, 1);
    assert_eq!(bench.lines_in(EntryState::Clean), [1, 3], "2 was used the longest ago");
    bench.check();
}

#[test]
fn a_write_takes_the_slot_of_its_line_and_ends_what_was_clean() {
    let mut bench = Bench::new(2, adaptive(2));
    bench.write(1, 1);
    bench.parameters.policy = adaptive(0);
    bench.device_takes_all();
    let clean = bench.state.clean(LineAddress(1)).unwrap();
    bench.parameters.policy = adaptive(2);
    bench.offer_write(1, 2, ByteMask::FULL);
    bench.step();
    assert!(bench.lines_in(EntryState::Clean).is_empty(), "before the first byte is overwritten");
    bench.settle();
    assert_eq!((bench.entry(1), bench.state.youngest(LineAddress(1))), ((EntryState::Dirty, 2), Some(clean)));
    assert_eq!(read_of(&mut bench, 1), Some(2));
}

#[test]
fn an_entry_with_a_younger_one_or_with_a_part_of_a_line_does_not_stay() {
    let mut bench = Bench::new(3, adaptive(0));
    bench.write(1, 1);
    bench.write(1, 2);
    let first = bench.device_writes();
    bench.acknowledge(first);
    bench.step();
    bench.step();
    assert!(bench.lines_in(EntryState::Clean).is_empty(), "version 1 is old");
    bench.device_takes_all();
    assert_eq!(bench.lines_in(EntryState::Clean), [1]);
    bench.offer_write(2, 1, LOW_HALF);
    bench.device_takes_all();
    assert_eq!(bench.lines_in(EntryState::Clean), [1]);
    assert_eq!(bench.offer_read(2).0, Action::Passed);
}

#[test]
fn what_is_held_back_is_merged_with_and_what_is_more_is_drained() {
    let mut bench = Bench::new(4, adaptive(2));
    (1..=4).for_each(|line| bench.write(line, 1));
    assert_eq!((bench.lines_in(EntryState::Drain), bench.lines_in(EntryState::Dirty)), (vec![1, 2], vec![3, 4]));
    bench.offer_write(3, 2, ByteMask::FULL);
    assert_eq!(bench.settle(), [Action::Coalescing]);
    bench.check();
}

#[test]
fn a_write_that_gets_an_entry_says_whether_its_line_was_there() {
    let mut bench = Bench::new(2, adaptive(0));
    bench.offer_write(1, 1, ByteMask::FULL);
    assert_eq!(bench.settle()[0], Action::Allocating);
    assert_eq!(bench.lines_in(EntryState::Drain), [1]);
    bench.offer_write(1, 2, ByteMask::FULL);
    assert_eq!(bench.settle()[0], Action::Renewing);
    bench.device_takes_all();
    assert_eq!(bench.lines_in(EntryState::Clean), [1]);
    bench.offer_write(1, 3, ByteMask::FULL);
    assert_eq!(bench.settle()[0], Action::Renewing);
    bench.device_takes_all();
    (2..=4).for_each(|line| {
        bench.write(line, 1);
        bench.device_takes_all();
    });
    bench.offer_write(1, 4, ByteMask::FULL);
    assert_eq!(bench.settle()[0], Action::Allocating, "it was evicted");
}

#[test]
fn a_parked_write_is_served_however_much_is_held_back() {
    let mut bench = Bench::new(2, adaptive(2));
    (1..=2).for_each(|line| bench.write(line, 1));
    let (_, request) = bench.offer_write(3, 1, ByteMask::FULL);
    bench.settle();
    assert!(!bench.is_completed(request) && bench.drains.len() == 1);
    let acknowledgement = bench.device_writes();
    bench.acknowledge(acknowledgement);
    bench.settle();
    assert!(bench.is_completed(request));
    assert_eq!(bench.lines_in(EntryState::Clean), [1], "it needs the room of its entry, but there is one slot more");
}

#[test]
fn a_power_cut_leaves_nothing_of_what_was_clean() {
    let mut bench = Bench::new(2, adaptive(0));
    bench.write(1, 1);
    bench.device_takes_all();
    bench.cut_power();
    bench.apply(Input::PowerOn);
    assert_eq!(bench.state.phase, Phase::Running, "there is nothing to recover");
    assert_eq!(bench.offer_read(1).0, Action::Passed, "PM has it");
}

#[test]
fn a_recovery_leaves_nothing_clean() {
    let mut bench = Bench::new(2, adaptive(2));
    bench.write(1, 1);
    bench.cut_power();
    bench.recover();
    assert_eq!((bench.lines_in(EntryState::Clean), bench.memory.halves(1)), (vec![], [1, 1]));
}
