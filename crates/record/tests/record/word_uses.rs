//! What a polled word is for holds from its first store on, also for those before the recorder knew.

use fencepost_record::{Clock, CutPolicy, Event, Frame, Info, SpinReleaseKind, ThreadId, Writer, WriterOptions};

use super::generate::open;

const COUNTER: u64 = 0x1000;
const OTHER: u64 = 0x2000;

fn release(clock: u64, object: u64, kind: SpinReleaseKind) -> Event {
    Event::SpinRelease { clock: Clock(clock), object, kind, after: None, lock: 0 }
}

#[test]
fn an_update_counts_where_another_thread_s_later_one_does() {
    use SpinReleaseKind::{Count, Store, Update};
    let mut writer = Writer::new(Vec::new(), &Info::default(), WriterOptions::default()).unwrap();
    for event in [release(1, COUNTER, Update), release(2, OTHER, Update), release(3, COUNTER, Store)] {
        writer.event(ThreadId(0), &event).unwrap();
    }
    writer.event(ThreadId(1), &release(4, COUNTER, Count)).unwrap();
    let record = open(writer.seal("exit 0").unwrap(), CutPolicy::Refuse).unwrap();

    let mut frame = Frame::default();
    assert!(record.reader(ThreadId(0)).next_frame(&mut frame).unwrap());
    let read = [release(1, COUNTER, Count), release(2, OTHER, Update), release(3, COUNTER, Store)];
    assert_eq!(frame.events, read);
}

fn lock_use(clock: u64, kind: SpinReleaseKind) -> Event {
    Event::SpinRelease { clock: Clock(clock), object: OTHER, kind, after: None, lock: OTHER }
}

fn polls(clock: u64) -> Event {
    Event::SpinWait { clock: Clock(clock), object: OTHER, wake: None, iterations: 3, lends: 0 }
}

/// The kinds of the first thread's stores to a word that is a lock for the second.
fn kinds_beside_a_taker(events: &[Event]) -> Vec<Event> {
    let mut writer = Writer::new(Vec::new(), &Info::default(), WriterOptions::default()).unwrap();
    for event in events {
        writer.event(ThreadId(0), event).unwrap();
    }
    writer.event(ThreadId(1), &lock_use(100, SpinReleaseKind::TakesLock)).unwrap();
    writer.event(ThreadId(1), &lock_use(101, SpinReleaseKind::GivesLock)).unwrap();
    let record = open(writer.seal("exit 0").unwrap(), CutPolicy::Refuse).unwrap();
    let mut frame = Frame::default();
    assert!(record.reader(ThreadId(0)).next_frame(&mut frame).unwrap());
    frame.events
}

#[test]
fn a_thread_that_never_waited_takes_the_lock_that_others_wait_for() {
    use SpinReleaseKind::{GivesLock, Store, TakesLock, Update};
    let events =
        [release(1, OTHER, Update), release(2, OTHER, Store), release(3, OTHER, Update), release(4, OTHER, Update)];
    let read = [lock_use(1, TakesLock), lock_use(2, GivesLock), lock_use(3, TakesLock), lock_use(4, GivesLock)];
    assert_eq!(kinds_beside_a_taker(&events), read);
}

#[test]
fn an_update_that_found_the_lock_taken_is_none() {
    use SpinReleaseKind::{GivesLock, Store, TakesLock, Update};
    let events = [release(1, OTHER, Update), polls(1), lock_use(2, TakesLock), release(3, OTHER, Store)];
    let reads = Event::LockRead { clock: Clock(1), object: OTHER, lends: 0 };
    let read = [release(1, OTHER, Update), reads, lock_use(2, TakesLock), lock_use(3, GivesLock)];
    assert_eq!(kinds_beside_a_taker(&events), read);
    let again = [release(1, OTHER, Update), lock_use(2, TakesLock), lock_use(3, GivesLock)];
    assert_eq!(kinds_beside_a_taker(&again), again);
}

#[test]
fn a_wait_at_a_lock_is_for_the_lock_and_not_for_the_store_that_it_saw() {
    let wait = |object| Event::SpinWait { clock: Clock(1), object, wake: Some(Clock(1)), iterations: 3, lends: 0 };
    let read = [Event::LockRead { clock: Clock(1), object: OTHER, lends: 0 }, wait(COUNTER)];
    assert_eq!(kinds_beside_a_taker(&[wait(OTHER), wait(COUNTER)]), read);
}

#[test]
fn a_store_without_the_lock_gives_none_back() {
    use SpinReleaseKind::{Store, Update};
    let events = [release(1, OTHER, Store), release(2, COUNTER, Update), release(3, COUNTER, Store)];
    assert_eq!(kinds_beside_a_taker(&events), events);
}
