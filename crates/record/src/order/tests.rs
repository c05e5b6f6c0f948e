mod private;
mod wide;

use std::sync::Arc;

use super::FrameChanges;
use crate::frame::{FOOTER_BYTES, Footer};
use crate::{
    BlockBuilder, Bytes, Clock, CutPolicy, Event, Frame, Info, Record, SlotKind, SpinReleaseKind, ThreadId, Writer,
    WriterOptions,
};

const WORD: u64 = 0x5000;
const FIRST: ThreadId = ThreadId(0);
const SECOND: ThreadId = ThreadId(1);

/// A program of two threads that take turns: the second polls a word until the first stores to it.
struct Turns {
    writer: Writer<Vec<u8>>,
    polls: u32,
    stores: u32,
    works: u32,
}

impl Turns {
    fn new() -> Self {
        // cmp [rdi], eax; jne back: a loop of one block.
        Self::of(Info::default(), &[0x39, 0x07], &[0x75, 0xfc])
    }

    /// `look` and `jump` are the loop's instructions.
    fn of(info: Info, look: &[u8], jump: &[u8]) -> Self {
        let mut writer = Writer::new(Vec::new(), &info, WriterOptions::default()).expect("a writer");
        let polls = BlockBuilder::at(0x1000).instruction(look, &[(SlotKind::Load, 4)]);
        let polls = writer.add_block(polls.instruction(jump, &[]).build()).expect("a block");
        let works = writer.add_block(BlockBuilder::at(0x1004).instruction(&[0x90], &[]).build()).expect("a block");
        let stores = BlockBuilder::at(0x2000).instruction(&[0x89, 0x07], &[(SlotKind::Store, 4)]);
        let stores = writer.add_block(stores.build()).expect("a block");
        let mut turns = Self { writer, polls, stores, works };
        turns.start(FIRST);
        turns
    }

    fn start(&mut self, thread: ThreadId) {
        let clock = self.writer.tick();
        let start = Event::ThreadStart { clock, kernel_tid: 0, stack_low: 0, stack_high: 0 };
        self.writer.event(thread, &start).expect("an event");
    }

    fn turn(&mut self, thread: ThreadId) {
        let clock = self.writer.tick();
        self.writer.event(thread, &Event::Turn { clock, estimate: 0 }).expect("an event");
    }

    fn execute(&mut self, thread: ThreadId, block: u32, slots: &[u64], times: u32) {
        for _ in 0..times {
            self.writer.execute(thread, block, slots).expect("an execution");
        }
    }

    /// What a replay sees of the second thread: its blocks, 0 for events, and these.
    fn seen(self, thread: ThreadId) -> (Vec<u32>, Vec<Event>) {
        seen(&self.record(), thread)
    }

    fn record(self) -> Record {
        opened(self.writer.seal("exit 0").expect("a record"))
    }
}

fn opened(bytes: Vec<u8>) -> Record {
    Record::open(Arc::new(Bytes::new("turns", bytes)), CutPolicy::Allow).expect("a record")
}

fn seen(record: &Record, thread: ThreadId) -> (Vec<u32>, Vec<Event>) {
    let mut frame = Frame::default();
    assert!(record.reader(thread).next_frame(&mut frame).expect("a frame"));
    (frame.steps, frame.events)
}

/// The frames of a record without its seal.
fn frames_of(record: &Record) -> Vec<u8> {
    let mut footer = [0; FOOTER_BYTES];
    record.source().read_at(record.source().len() - FOOTER_BYTES as u64, &mut footer).expect("a footer");
    let mut bytes = vec![0; Footer::parse(&footer).expect("a footer").seal_offset as usize];
    record.source().read_at(0, &mut bytes).expect("frames");
    bytes
}

/// The second thread polls before and behind what the first does.
fn polled(between: impl FnOnce(&mut Turns)) -> Turns {
    let mut turns = Turns::new();
    turns.start(SECOND);
    turns.execute(SECOND, turns.polls, &[WORD], 5);
    turns.turn(FIRST);
    between(&mut turns);
    turns.turn(SECOND);
    turns.execute(SECOND, turns.polls, &[WORD], 1);
    turns.execute(SECOND, turns.works, &[], 1);
    turns
}

#[test]
fn rounds_that_another_threads_store_ends_are_left_out_and_wait_for_it() {
    let stores = |turns: &mut Turns| turns.execute(FIRST, turns.stores, &[WORD], 1);
    let turns = polled(stores);
    let (polls, works) = (turns.polls, turns.works);
    let (steps, events) = turns.seen(SECOND);
    let blocks: Vec<u32> = steps.into_iter().filter(|&step| step != 0).collect();
    assert_eq!(blocks, [polls, works]);
    let waits = |event: &Event| match *event {
        Event::SpinWait { object, wake, .. } => Some((object, wake)),
        _ => None,
    };
    let waited: Vec<_> = events.iter().filter_map(waits).collect();
    let (_, events) = polled(stores).seen(FIRST);
    let release = |event: &Event| match *event {
        Event::SpinRelease { clock, object, kind: SpinReleaseKind::Store, .. } => Some((object, clock)),
        _ => None,
    };
    assert_eq!(waited, events.iter().filter_map(release).collect::<Vec<(u64, Clock)>>());
    assert_eq!(waited.len(), 1);
    assert_eq!(waited[0].0, WORD);
}

#[test]
fn what_a_long_wait_read_at_its_begin_is_known_at_its_end() {
    const LOOKS: u64 = 16;
    let mut turns = Turns::new();
    let mut block = BlockBuilder::at(0x1000);
    for _ in 0..LOOKS {
        block = block.instruction(&[0x39, 0x07], &[(SlotKind::Load, 4)]);
    }
    let polls = turns.writer.add_block(block.instruction(&[0x75, 0xde], &[]).build()).expect("a block");
    let works = BlockBuilder::at(0x3000).instruction(&[0x90], &[]).build();
    let works = turns.writer.add_block(works).expect("a block");
    let words: Vec<u64> = (0..LOOKS).map(|word| WORD + 4 * word).collect();
    turns.start(SECOND);
    turns.execute(SECOND, polls, &words, 40_000);
    turns.turn(FIRST);
    turns.execute(FIRST, turns.stores, &[WORD], 1);
    turns.turn(SECOND);
    turns.execute(SECOND, polls, &words, 1);
    turns.execute(SECOND, works, &[], 1);
    let record = turns.record();
    let mut reader = record.reader(SECOND);
    let (mut frame, mut rounds) = (Frame::default(), 0);
    while reader.next_frame(&mut frame).expect("a frame") {
        rounds += frame.steps.iter().filter(|step| **step == polls).count();
    }
    assert_eq!(rounds, 1);
}

#[test]
fn rounds_that_nobody_elses_store_ends_are_work() {
    let turns = polled(|turns| turns.execute(FIRST, turns.stores, &[WORD + 64], 1));
    let (polls, works) = (turns.polls, turns.works);
    let (steps, events) = turns.seen(SECOND);
    let blocks: Vec<u32> = steps.into_iter().filter(|&step| step != 0).collect();
    assert_eq!(blocks, [polls, polls, polls, polls, polls, polls, works]);
    assert!(!events.iter().any(|event| matches!(event, Event::SpinWait { .. })));
}

/// The second thread polls and stores elsewhere in each round; the first then reads what it stored, or does not.
fn polled_with_a_store(is_found: bool) -> Vec<u32> {
    let mut turns = Turns::new();
    // cmp [rdi], eax; mov [rsi], eax; jne back.
    let polls = BlockBuilder::at(0x3000).instruction(&[0x39, 0x07], &[(SlotKind::Load, 4)]);
    let polls = polls.instruction(&[0x89, 0x06], &[(SlotKind::Store, 4)]).instruction(&[0x75, 0xfa], &[]);
    let polls = turns.writer.add_block(polls.build()).expect("a block");
    let after = turns.writer.add_block(BlockBuilder::at(0x3006).instruction(&[0x90], &[]).build()).expect("a block");
    let loads = BlockBuilder::at(0x4000).instruction(&[0x8b, 0x07], &[(SlotKind::Load, 4)]);
    let loads = turns.writer.add_block(loads.build()).expect("a block");
    turns.start(SECOND);
    turns.execute(SECOND, polls, &[WORD, WORD + 64], 5);
    turns.turn(FIRST);
    turns.execute(FIRST, turns.stores, &[WORD], 1);
    turns.turn(SECOND);
    turns.execute(SECOND, polls, &[WORD, WORD + 64], 1);
    turns.execute(SECOND, after, &[], 1);
    turns.turn(FIRST);
    turns.execute(FIRST, loads, &[if is_found { WORD + 64 } else { WORD + 128 }], 1);
    let (steps, _) = turns.seen(SECOND);
    steps.into_iter().filter(|&step| step == polls).collect()
}

#[test]
fn rounds_that_store_what_another_thread_finds_later_are_work() {
    assert_eq!(polled_with_a_store(true).len(), 6);
    assert_eq!(polled_with_a_store(false).len(), 1);
}

fn waiting() -> Record {
    polled(|turns| turns.execute(FIRST, turns.stores, &[WORD], 1)).record()
}

#[test]
fn a_record_that_holds_its_order_is_read_as_one_whose_order_is_found() {
    let found = waiting();
    let orders = found.order_frames().expect("an order");
    assert!(!orders.is_empty());
    let kept = opened([frames_of(&found), orders].concat());
    assert!(kept.order_frames().expect("an order").is_empty());
    for thread in [FIRST, SECOND] {
        assert_eq!(seen(&kept, thread), seen(&found, thread));
    }
}

#[test]
fn a_record_that_holds_some_of_its_order_is_read_as_if_it_held_none() {
    let found = waiting();
    let orders = found.order_frames().expect("an order");
    let second = 1 + orders[1..].windows(4).position(|bytes| bytes == b"FPFR").expect("a second frame");
    let some = opened([&frames_of(&found), &orders[..second]].concat());
    assert_eq!(seen(&some, SECOND), seen(&found, SECOND));
}

#[test]
fn changes_are_read_as_they_were_written_and_every_prefix_is_refused() {
    for (_, _, changes) in super::changes_of(&waiting()).expect("changes").expect("turns").frames() {
        let payload = changes.encode();
        assert_eq!(FrameChanges::decode(&payload).expect("changes"), *changes);
        for length in 0..payload.len() {
            assert!(FrameChanges::decode(&payload[..length]).is_err(), "{length} bytes");
        }
    }
}

#[test]
fn changes_of_steps_that_a_frame_does_not_have_are_refused() {
    let record = waiting();
    let mut frame = Frame::default();
    for payload in [&[1, 0, 200, 1, 0][..], &[0, 1, 200, 1, 14, 0, 0]] {
        record.frame_as_recorded(SECOND, 0, &mut frame).expect("a frame");
        let changes = FrameChanges::decode(payload).expect("changes");
        assert!(changes.apply(record.program(), &mut frame).is_err(), "{payload:?}");
    }
}

fn polling(events: &[Event]) -> Vec<(u64, u64)> {
    let polling = |event: &Event| match *event {
        Event::Polling { instructions, by_count } => Some((instructions, by_count)),
        _ => None,
    };
    events.iter().filter_map(polling).collect()
}

/// Of ten rounds of two instructions: that the loop is one shows when the first is over, the second has none to repeat,
/// and the last one leaves.
const REPEATED: u64 = 2 * 7;

#[test]
fn rounds_that_read_anothers_word_again_up_to_a_count_are_told_apart_from_polling() {
    let mut turns = Turns::new();
    turns.start(SECOND);
    turns.turn(FIRST);
    turns.execute(FIRST, turns.stores, &[WORD], 1);
    turns.turn(SECOND);
    turns.execute(SECOND, turns.polls, &[WORD], 10);
    turns.execute(SECOND, turns.works, &[], 1);
    let (steps, events) = turns.seen(SECOND);
    assert_eq!(polling(&events), [(0, REPEATED)]);
    assert_eq!(steps.iter().filter(|&&step| step != 0).count(), 11);
}

#[test]
fn rounds_with_which_the_record_ends_have_polled() {
    let mut turns = Turns::new();
    turns.start(SECOND);
    turns.execute(SECOND, turns.polls, &[WORD], 10);
    turns.turn(FIRST);
    turns.execute(FIRST, turns.stores, &[WORD + 64], 1);
    turns.execute(FIRST, turns.stores, &[WORD], 1);
    assert_eq!(polling(&turns.seen(SECOND).1), [(REPEATED, 0)]);
}

#[test]
fn rounds_that_were_left_out_have_not_polled() {
    let turns = polled(|turns| turns.execute(FIRST, turns.stores, &[WORD], 1));
    assert_eq!(polling(&turns.seen(SECOND).1), []);
}

#[test]
fn without_turns_all_rounds_that_read_a_shared_word_again_have_polled() {
    let info = Info { isa: crate::ISA_AARCH64.into(), ..Info::default() };
    // ldr w1, [x0]; cbz w1, back.
    let mut turns = Turns::of(info, &0xb940_0001_u32.to_le_bytes(), &0x34ff_ffe1_u32.to_le_bytes());
    let (clock, thread) = (turns.writer.tick(), SECOND);
    turns.writer.event(FIRST, &Event::ThreadCreate { clock, thread }).expect("an event");
    turns.start(SECOND);
    turns.execute(SECOND, turns.polls, &[WORD], 10);
    turns.execute(SECOND, turns.works, &[], 1);
    turns.execute(FIRST, turns.stores, &[WORD], 1);
    let record = turns.record();
    assert!(!record.has_turns().expect("events"));
    let (steps, events) = seen(&record, SECOND);
    assert_eq!(polling(&events), [(REPEATED, 0)]);
    assert_eq!(steps.iter().filter(|&&step| step != 0).count(), 11);
}

#[test]
fn a_loop_that_waited_is_told_with_the_store_that_ended_it() {
    let [waited] = &crate::waiting_loops(&waiting()).expect("loops")[..] else { panic!("there is one") };
    assert_eq!((waited.address, waited.waits, waited.rounds, waited.instructions), (0x1000, 1, 5, 10));
    assert_eq!(waited.ended_by.iter().collect::<Vec<_>>(), [(&0x2000, &1)]);
}

/// The second thread looks once, at what the first has stored before; each says something else around it.
fn found_stored(behind_store: impl FnOnce(&mut Turns), before_look: impl FnOnce(&mut Turns)) -> (usize, usize) {
    let mut turns = Turns::new();
    turns.start(SECOND);
    turns.turn(FIRST);
    turns.execute(FIRST, turns.stores, &[WORD], 1);
    behind_store(&mut turns);
    turns.turn(SECOND);
    before_look(&mut turns);
    turns.execute(SECOND, turns.polls, &[WORD], 1);
    turns.execute(SECOND, turns.works, &[], 1);
    let record = turns.record();
    let count = |thread, is: fn(&Event) -> bool| seen(&record, thread).1.iter().filter(|event| is(event)).count();
    (
        count(SECOND, |event| matches!(event, Event::SpinWait { object: WORD, .. })),
        count(FIRST, |event| matches!(event, Event::SpinRelease { object: WORD, .. })),
    )
}

impl Turns {
    fn event(&mut self, thread: ThreadId, event: impl FnOnce(Clock) -> Event) {
        let clock = self.writer.tick();
        self.writer.event(thread, &event(clock)).expect("an event");
    }
}

const OBJECT: u64 = 0x9000;

#[test]
fn a_look_at_what_was_stored_already_waits_for_it() {
    assert_eq!(found_stored(|_| (), |_| ()), (1, 1));
}

#[test]
fn what_calls_put_in_order_waits_for_nothing_else() {
    let posts = |turns: &mut Turns| turns.event(FIRST, |clock| Event::SemaphorePost { clock, object: OBJECT });
    let waits = |turns: &mut Turns| {
        turns.event(SECOND, |clock| Event::SemaphoreWait { clock, object: OBJECT, wake: None });
    };
    assert_eq!(found_stored(posts, waits), (0, 0));
    let waits_for_another = |turns: &mut Turns| {
        turns.event(SECOND, |clock| Event::SemaphoreWait { clock, object: OBJECT + 8, wake: None });
    };
    assert_eq!(found_stored(posts, waits_for_another), (1, 1));
    let arrives = |thread| {
        move |turns: &mut Turns| {
            let event = |clock| Event::BarrierWait { clock, object: OBJECT, participants: 2, generation: 0 };
            turns.event(thread, event);
        }
    };
    assert_eq!(found_stored(arrives(FIRST), arrives(SECOND)), (0, 0));
}

#[test]
fn what_is_stored_before_the_last_comes_to_a_barrier_is_behind_it_for_those_that_came_first() {
    let arrives = |turns: &mut Turns, thread| {
        turns.event(thread, |clock| Event::BarrierWait { clock, object: OBJECT, participants: 2, generation: 0 });
    };
    let waits = |is_before: bool| {
        let mut turns = Turns::new();
        turns.start(SECOND);
        arrives(&mut turns, SECOND);
        turns.turn(FIRST);
        if !is_before {
            arrives(&mut turns, FIRST);
        }
        turns.execute(FIRST, turns.stores, &[WORD], 1);
        if is_before {
            arrives(&mut turns, FIRST);
        }
        turns.turn(SECOND);
        turns.execute(SECOND, turns.polls, &[WORD], 1);
        turns.execute(SECOND, turns.works, &[], 1);
        turns.seen(SECOND).1.iter().filter(|event| matches!(event, Event::SpinWait { .. })).count()
    };
    assert_eq!((waits(true), waits(false)), (0, 1));
}

#[test]
fn who_waits_at_a_condition_gives_the_mutex_to_others_and_takes_it_again() {
    const MUTEX: u64 = OBJECT + 64;
    // The first thread stores and waits, the second has the mutex meanwhile and looks, or stores, and the first looks.
    let waits = |mutex: u64, is_store: bool| {
        let mut turns = Turns::new();
        turns.start(SECOND);
        turns.turn(FIRST);
        if !is_store {
            turns.execute(FIRST, turns.stores, &[WORD], 1);
        }
        turns.writer.event(FIRST, &Event::CallBegin).expect("an event");
        turns.turn(SECOND);
        turns.event(SECOND, |clock| Event::MutexLock { clock, object: MUTEX });
        if is_store {
            turns.execute(SECOND, turns.stores, &[WORD], 1);
        }
        turns.event(SECOND, |clock| Event::MutexUnlock { clock, object: MUTEX });
        if !is_store {
            turns.execute(SECOND, turns.polls, &[WORD], 1);
            turns.execute(SECOND, turns.works, &[], 1);
        }
        turns.turn(FIRST);
        turns.event(FIRST, |clock| {
            let (object, wake, timed_out) = (OBJECT, Some(clock), false);
            Event::ConditionWait { clock, object, mutex, wake, timed_out }
        });
        turns.writer.event(FIRST, &Event::CallEnd).expect("an event");
        if is_store {
            turns.execute(FIRST, turns.polls, &[WORD], 1);
            turns.execute(FIRST, turns.works, &[], 1);
        }
        let (thread, is_wait) =
            (if is_store { FIRST } else { SECOND }, |event: &Event| matches!(event, Event::SpinWait { .. }));
        turns.seen(thread).1.iter().filter(|event| is_wait(event)).count()
    };
    for is_store in [false, true] {
        assert_eq!((waits(MUTEX, is_store), waits(MUTEX + 64, is_store)), (0, 1), "{is_store}");
    }
}

/// The first thread stores, posts or not, and stores to the same line again long after; what the second then waits for,
/// and how far behind its begin the first says so.
fn stored_long_before(is_posted: bool) -> (usize, usize, Option<usize>) {
    let mut turns = Turns::new();
    turns.start(SECOND);
    turns.turn(FIRST);
    turns.execute(FIRST, turns.stores, &[WORD], 1);
    if is_posted {
        turns.event(FIRST, |clock| Event::SemaphorePost { clock, object: OBJECT });
    }
    turns.execute(FIRST, turns.works, &[], 10_000);
    turns.execute(FIRST, turns.stores, &[WORD + 4], 1);
    turns.turn(SECOND);
    if is_posted {
        turns.event(SECOND, |clock| Event::SemaphoreWait { clock, object: OBJECT, wake: None });
    }
    turns.execute(SECOND, turns.polls, &[WORD], 1);
    turns.execute(SECOND, turns.works, &[], 1);
    let record = turns.record();
    let (_, events) = seen(&record, SECOND);
    let count = |is: fn(&&Event) -> bool| events.iter().filter(is).count();
    let (of_first, released) = seen(&record, FIRST);
    let place = released.iter().position(|event| matches!(event, Event::SpinRelease { object: WORD, .. }));
    let place =
        place.map(|nth| of_first.iter().enumerate().filter(|(_, step)| **step == 0).nth(nth).expect("a step").0);
    (
        count(|event| matches!(event, Event::SpinWait { object: WORD, .. })),
        count(|event| matches!(event, Event::DroppedEdges { .. })),
        place,
    )
}

#[test]
fn a_store_long_before_another_to_its_line_is_found_where_it_was() {
    assert_eq!(stored_long_before(false), (1, 0, Some(2)), "behind the begin of the thread and of its turn");
    assert_eq!(stored_long_before(true), (0, 0, None), "it was before the post");
}

#[test]
fn under_a_lock_nothing_waits_for_what_was_stored_already() {
    let locks = |turns: &mut Turns| turns.event(SECOND, |clock| Event::MutexLock { clock, object: OBJECT });
    assert_eq!(found_stored(|_| (), locks), (0, 0));
}

/// The first thread exchanges a word, again if `times` says so; the second then looks at it, under a lock or not. What
/// waits and loads replays have of that.
fn found_exchanged(times: u64, is_locked: bool) -> (usize, Vec<(u64, bool)>, usize) {
    let mut turns = Turns::new();
    let exchanges = [(SlotKind::Update, 4), (SlotKind::Value, 4), (SlotKind::Value, 4)];
    let exchanges = BlockBuilder::at(0x3000).instruction(&[0x87, 0x07], &exchanges).build();
    let exchanges = turns.writer.add_block(exchanges).expect("a block");
    turns.start(SECOND);
    turns.turn(FIRST);
    for value in 0..times {
        turns.execute(FIRST, exchanges, &[WORD, value, value + 1], 1);
    }
    turns.turn(SECOND);
    if is_locked {
        turns.event(SECOND, |clock| Event::MutexLock { clock, object: OBJECT });
    }
    turns.execute(SECOND, turns.polls, &[WORD], 1);
    turns.execute(SECOND, turns.works, &[], 1);
    let record = turns.record();
    let (_, of_second) = seen(&record, SECOND);
    let loads = |event: &Event| match *event {
        Event::Loads { count, store } => Some((count, store.is_some())),
        _ => None,
    };
    (
        of_second.iter().filter(|event| matches!(event, Event::SpinWait { object: WORD, .. })).count(),
        of_second.iter().filter_map(loads).collect(),
        seen(&record, FIRST).1.iter().filter(|event| matches!(event, Event::StoreSeen { .. })).count(),
    )
}

#[test]
fn a_load_of_what_was_exchanged_already_waits_for_it() {
    assert_eq!(found_exchanged(3, false), (1, vec![(1, false)], 0));
}

#[test]
fn a_load_under_a_lock_says_which_store_it_saw() {
    assert_eq!(found_exchanged(3, true), (0, vec![(1, true)], 1));
}

#[test]
fn a_wake_up_by_nobody_is_an_edge_less() {
    let waits = |wake| {
        move |turns: &mut Turns| {
            let (object, mutex, timed_out) = (OBJECT, OBJECT + 64, false);
            turns.event(SECOND, |clock| Event::ConditionWait { clock, object, mutex, wake, timed_out });
        }
    };
    let dropped = |wake| {
        let mut turns = Turns::new();
        turns.start(SECOND);
        turns.turn(FIRST);
        turns.turn(SECOND);
        waits(wake)(&mut turns);
        turns.execute(SECOND, turns.works, &[], 1);
        seen(&turns.record(), SECOND).1.iter().filter(|event| matches!(event, Event::DroppedEdges { count: 1 })).count()
    };
    assert_eq!((dropped(None), dropped(Some(Clock(1)))), (1, 0));
}

#[test]
fn a_read_of_one_of_more_stores_than_the_clock_has_places_for_is_an_edge_less() {
    let mut turns = Turns::new();
    turns.start(SECOND);
    turns.turn(FIRST);
    turns.execute(FIRST, turns.stores, &[WORD], 1);
    turns.turn(SECOND);
    turns.execute(SECOND, turns.polls, &[WORD], 1);
    turns.turn(FIRST);
    turns.execute(FIRST, turns.stores, &[WORD], 1 << 14);
    turns.turn(SECOND);
    turns.execute(SECOND, turns.polls, &[WORD], 1);
    turns.execute(SECOND, turns.works, &[], 1);
    let (_, events) = turns.seen(SECOND);
    assert_eq!(events.iter().filter(|event| matches!(event, Event::DroppedEdges { .. })).count(), 1);
}
