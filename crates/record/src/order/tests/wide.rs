//! Accesses of 32 bytes, at the first of their words or across lines.

use super::{FIRST, SECOND, Turns, WORD, seen};
use crate::{BlockBuilder, Event, SlotKind};

const BYTES: u16 = 32;
const LINE: u64 = 64;

/// As [`Turns`], with a loop that polls by a wide read, and a wide store.
struct Wide {
    turns: Turns,
    polls: u32,
    stores: u32,
}

impl Wide {
    fn new() -> Self {
        let mut turns = Turns::new();
        let polls = BlockBuilder::at(0x1100).instruction(&[0xc5, 0xfe, 0x6f, 0x07], &[(SlotKind::Load, BYTES)]);
        let polls = turns.writer.add_block(polls.instruction(&[0x75, 0xfa], &[]).build()).expect("a block");
        let stores = BlockBuilder::at(0x2100).instruction(&[0xc5, 0xfe, 0x7f, 0x07], &[(SlotKind::Store, BYTES)]);
        let stores = turns.writer.add_block(stores.build()).expect("a block");
        turns.start(SECOND);
        Self { turns, polls, stores }
    }

    /// The objects that the second thread waits for, and how many blocks are left of it.
    fn waits(mut self) -> (Vec<u64>, usize) {
        self.turns.execute(SECOND, self.turns.works, &[], 1);
        let (steps, events) = self.turns.seen(SECOND);
        let object = |event: &Event| if let Event::SpinWait { object, .. } = *event { Some(object) } else { None };
        (events.iter().filter_map(object).collect(), steps.iter().filter(|step| **step != 0).count())
    }
}

/// The second thread polls at an address by wide reads until the first stores to a word.
fn polled_wide(polled: u64, stored: u64) -> (Vec<u64>, usize) {
    let mut wide = Wide::new();
    wide.turns.execute(SECOND, wide.polls, &[polled], 5);
    wide.turns.turn(FIRST);
    wide.turns.execute(FIRST, wide.turns.stores, &[stored], 1);
    wide.turns.turn(SECOND);
    wide.turns.execute(SECOND, wide.polls, &[polled], 1);
    wide.waits()
}

#[test]
fn a_wide_read_waits_for_a_store_to_any_of_its_words() {
    for word in [WORD, WORD + 12, WORD + 28] {
        assert_eq!(polled_wide(WORD, word), (vec![word], 2), "{word:#x}");
    }
    let across = WORD + LINE - 16;
    for word in [across, across + 12, across + 16, across + 28] {
        assert_eq!(polled_wide(across, word), (vec![word], 2), "{word:#x}");
    }
    assert_eq!(polled_wide(WORD, WORD + 32), (vec![], 7), "a word behind it");
}

#[test]
fn a_wide_store_ends_a_wait_at_any_of_its_words() {
    for (polled, stored) in [(WORD, WORD), (WORD + 20, WORD), (WORD + LINE + 4, WORD + LINE - 8)] {
        let mut wide = Wide::new();
        wide.turns.execute(SECOND, wide.turns.polls, &[polled], 5);
        wide.turns.turn(FIRST);
        wide.turns.execute(FIRST, wide.stores, &[stored], 1);
        wide.turns.turn(SECOND);
        wide.turns.execute(SECOND, wide.turns.polls, &[polled], 1);
        assert_eq!(wide.waits(), (vec![polled], 2), "{polled:#x}");
    }
}

#[test]
fn wide_reads_that_pass_over_what_another_thread_stored_wait_where_they_begin() {
    const READS: u64 = 16;
    let mut wide = Wide::new();
    let passes = BlockBuilder::at(0x3000).instruction(&[0xc5, 0xfe, 0x6f, 0x07], &[(SlotKind::Load, BYTES)]);
    let passes = wide.turns.writer.add_block(passes.build()).expect("a block");
    wide.turns.turn(FIRST);
    for at in 0..READS {
        wide.turns.execute(FIRST, wide.stores, &[WORD + at * u64::from(BYTES)], 1);
    }
    wide.turns.turn(SECOND);
    for at in 0..READS {
        wide.turns.execute(SECOND, passes, &[WORD + at * u64::from(BYTES)], 1);
    }
    assert_eq!(wide.waits(), (vec![WORD], READS as usize + 1));
}

#[test]
fn a_thread_s_own_words_beside_another_s_are_no_looks() {
    let mut wide = Wide::new();
    let (own, others) = (WORD, WORD + u64::from(BYTES));
    wide.turns.execute(SECOND, wide.stores, &[own], 1);
    wide.turns.execute(SECOND, wide.polls, &[own], 5);
    wide.turns.turn(FIRST);
    wide.turns.execute(FIRST, wide.stores, &[others], 1);
    wide.turns.turn(SECOND);
    wide.turns.execute(SECOND, wide.polls, &[own], 1);
    assert_eq!(wide.waits(), (vec![], 8));
}

#[test]
fn a_wide_store_long_before_another_to_its_line_is_found_where_it_was() {
    let mut wide = Wide::new();
    wide.turns.turn(FIRST);
    wide.turns.execute(FIRST, wide.stores, &[WORD], 1);
    wide.turns.execute(FIRST, wide.turns.works, &[], 10_000);
    wide.turns.execute(FIRST, wide.turns.stores, &[WORD + u64::from(BYTES)], 1);
    wide.turns.turn(SECOND);
    wide.turns.execute(SECOND, wide.turns.polls, &[WORD + 8], 1);
    wide.turns.execute(SECOND, wide.turns.works, &[], 1);
    let record = wide.turns.record();
    let waits = |event: &Event| matches!(event, Event::SpinWait { object, .. } if *object == WORD + 8);
    assert_eq!(seen(&record, SECOND).1.iter().filter(|event| waits(event)).count(), 1);
    let (steps, events) = seen(&record, FIRST);
    let releases = |event: &Event| matches!(event, Event::SpinRelease { object, .. } if *object == WORD + 8);
    let nth = events.iter().position(releases).expect("it says that it stores");
    let place = steps.iter().enumerate().filter(|(_, step)| **step == 0).nth(nth).expect("a step").0;
    assert_eq!(place, 2, "behind the begin of the thread and of its turn");
}
