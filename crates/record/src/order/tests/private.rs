//! What is logged of words that one thread alone touches, up to where another one looks at them.

use super::{FIRST, OBJECT, SECOND, Turns, WORD};
use crate::order::outlines::Outlines;
use crate::order::rounds::Rounds;
use crate::order::walk;
use crate::{Block, BlockBuilder, Event, Record, SlotKind};

const UPDATES: u32 = 100;

fn logged(record: &Record) -> usize {
    let outlines = Outlines::of(record.program(), &record.info().isa);
    let mut rounds = Rounds::new(record, &outlines, true);
    let turns = walk::Turns::of(record).expect("turns");
    turns.walk(record, |thread, number, what| rounds.take_in(thread, number, what)).expect("frames");
    rounds.finish().0.log.len()
}

/// The accesses that are logged where the first thread updates a word again and again, by these values, and the second
/// then reads it.
fn logged_updates(block: Block, slots: &[u64], is_locked: bool) -> usize {
    let mut turns = Turns::new();
    let updates = turns.writer.add_block(block).expect("a block");
    turns.start(SECOND);
    turns.turn(FIRST);
    if is_locked {
        turns.event(FIRST, |clock| Event::MutexLock { clock, object: OBJECT });
    }
    turns.execute(FIRST, turns.stores, &[WORD], 1);
    turns.execute(FIRST, updates, slots, UPDATES);
    turns.turn(SECOND);
    turns.execute(SECOND, turns.polls, &[WORD], 1);
    turns.execute(SECOND, turns.works, &[], 1);
    logged(&turns.record())
}

#[test]
fn updates_of_a_thread_s_own_word_that_change_nothing_or_are_not_atomic_are_not_logged() {
    let adds = |values: usize| {
        // lock add [rdi], eax, or without lock.
        let code: &[u8] = if values > 0 { &[0xf0, 0x01, 0x07] } else { &[0x01, 0x07] };
        let slots: Vec<_> = [(SlotKind::Update, 4)].into_iter().chain(vec![(SlotKind::Value, 4); values]).collect();
        BlockBuilder::at(0x4000).instruction(code, &slots).build()
    };
    let last_and_read = 2;
    assert_eq!(logged_updates(adds(2), &[WORD, 7, 0], false), last_and_read, "fences");
    assert_eq!(logged_updates(adds(0), &[WORD], false), last_and_read, "not atomic");
    let all = UPDATES as usize + 2;
    assert_eq!(logged_updates(adds(2), &[WORD, 7, 1], false), all, "with the store before");
    assert_eq!(logged_updates(adds(0), &[WORD], true), all, "under a lock, threads may take from it");
}
