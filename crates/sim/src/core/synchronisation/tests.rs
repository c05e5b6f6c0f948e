use super::super::passed_clocks::CLOCK_WORDS;
use super::*;

const A: ThreadId = ThreadId(0);
const B: ThreadId = ThreadId(1);
const C: ThreadId = ThreadId(2);
const D: ThreadId = ThreadId(3);
const M: u64 = 0x100;

fn lock(clock: u64) -> Event {
    Event::MutexLock { clock: Clock(clock), object: M }
}

fn unlock(clock: u64) -> Event {
    Event::MutexUnlock { clock: Clock(clock), object: M }
}

#[test]
fn a_lock_goes_to_waiters_in_the_order_they_came() {
    let mut threads = Synchronisation::default();
    assert!(threads.apply(A, &lock(1)).proceeds);
    assert!(!threads.apply(C, &lock(3)).proceeds);
    assert!(!threads.apply(B, &lock(2)).proceeds);
    assert_eq!(threads.apply(A, &unlock(4)).woken, [C]);
    assert_eq!(threads.apply(C, &unlock(5)).woken, [B]);
}

#[test]
fn readers_share_and_a_writer_waits_for_all_of_them() {
    let mut threads = Synchronisation::default();
    let read = |clock| Event::ReadLock { clock: Clock(clock), object: M };
    let write = Event::WriteLock { clock: Clock(9), object: M };
    let end = Event::RwUnlock { clock: Clock(10), object: M };
    assert!(threads.apply(A, &read(1)).proceeds && threads.apply(B, &read(2)).proceeds);
    assert!(!threads.apply(C, &write).proceeds);
    assert!(threads.apply(A, &end).woken.is_empty());
    assert_eq!(threads.apply(B, &end).woken, [C]);
}

#[test]
fn a_wake_that_comes_early_is_remembered() {
    let mut threads = Synchronisation::default();
    threads.apply(A, &Event::SemaphorePost { clock: Clock(5), object: M });
    let wait = Event::SemaphoreWait { clock: Clock(6), object: M, wake: Some(Clock(5)) };
    assert!(threads.apply(B, &wait).proceeds);
}

#[test]
fn wakes_that_all_threads_have_passed_are_not_remembered_one_by_one() {
    let mut threads = Synchronisation::default();
    let mut most = 0;
    for clock in 0..1_000_000 {
        threads.apply(A, &Event::ConditionSignal { clock: Clock(clock), object: M });
        if threads.remembers_many() {
            // Another thread is a thousand places behind.
            threads.forget_before(Clock(clock - 1000));
        }
        most = most.max(threads.given.words());
    }
    assert!(most <= CLOCK_WORDS, "{most} words");
    let wait = |clock| Event::SemaphoreWait { clock: Clock(2_000_000), object: M, wake: Some(Clock(clock)) };
    for early in [0, 999_000, 999_999] {
        assert!(threads.apply(B, &wait(early)).proceeds, "{early}");
    }
    assert!(!threads.apply(B, &wait(1_000_000)).proceeds, "nobody has come there");
}

#[test]
fn a_condition_wait_gives_its_mutex_up_and_takes_it_again() {
    let mut threads = Synchronisation::default();
    assert!(threads.apply(A, &lock(1)).proceeds);
    assert!(!threads.apply(B, &lock(2)).proceeds);
    let wait = Event::ConditionWait { clock: Clock(9), object: 1, mutex: M, wake: Some(Clock(3)), timed_out: false };
    let decision = threads.apply(A, &wait);
    assert_eq!((decision.proceeds, decision.woken), (false, vec![B]));
    let signal = threads.apply(B, &Event::ConditionSignal { clock: Clock(3), object: 1 });
    assert!(signal.woken.is_empty(), "B still has the mutex");
    assert_eq!(threads.apply(B, &unlock(4)).woken, [A]);
}

#[test]
fn the_last_at_a_barrier_wakes_the_others() {
    let mut threads = Synchronisation::default();
    let arrive = Event::BarrierWait { clock: Clock(1), object: M, participants: 3, generation: 0 };
    assert!(!threads.apply(A, &arrive).proceeds);
    assert!(!threads.apply(B, &arrive).proceeds);
    let last = threads.apply(C, &arrive);
    assert_eq!((last.proceeds, last.woken), (true, vec![A, B]));
}

#[test]
fn a_join_waits_for_the_end() {
    let mut threads = Synchronisation::default();
    assert!(!threads.apply(A, &Event::ThreadJoin { clock: Clock(1), thread: B }).proceeds);
    assert_eq!(threads.end(B).woken, [A]);
    assert!(threads.apply(C, &Event::ThreadJoin { clock: Clock(2), thread: B }).proceeds);
}

#[test]
fn where_nobody_can_go_on_the_wait_recorded_first_is_ended() {
    let mut threads = Synchronisation::default();
    let wait = |clock| Event::SemaphoreWait { clock: Clock(clock), object: M, wake: Some(Clock(99)) };
    assert!(!threads.apply(A, &wait(8)).proceeds);
    assert!(!threads.apply(B, &wait(7)).proceeds);
    assert_eq!([threads.force(), threads.force(), threads.force()], [Some(B), Some(A), None]);
}

/// The store of B for which A waits, at a word, under locks.
const S: Clock = Clock(9);

fn waits(threads: &mut Synchronisation, lends: u64) -> Decision {
    threads.wait_for_word(A, Clock(3), 0x200, (S, B), lends)
}

#[test]
fn a_lock_that_is_kept_over_a_wait_goes_to_nobody_else() {
    let mut threads = Synchronisation::default();
    assert!(threads.apply(A, &lock(1)).proceeds);
    assert_eq!(waits(&mut threads, 0), Decision::default());
    assert!(!threads.apply(C, &lock(2)).proceeds);
    assert_eq!(threads.stored(B, S, None).woken, [A]);
    assert_eq!(threads.apply(A, &unlock(4)).woken, [C]);
}

#[test]
fn only_as_many_locks_are_lent_as_a_round_gives_back_the_last_first() {
    let mut threads = Synchronisation::default();
    for word in [7, 8] {
        assert!(threads.take_word(A, Clock(1), word).proceeds);
    }
    assert!(!threads.take_word(C, Clock(2), 8).proceeds);
    assert_eq!(waits(&mut threads, 1), Decision { proceeds: false, woken: vec![C] });
    assert!(!threads.take_word(D, Clock(2), 7).proceeds);
    assert!(threads.stored(B, S, None).woken.is_empty(), "C has what A is to have again");
    assert_eq!(threads.stored(C, Clock(10), Some(8)).woken, [A]);
    assert!(!threads.take_word(C, Clock(11), 8).proceeds, "it is A's again");
}

#[test]
fn a_kept_lock_goes_to_the_thread_that_needs_it_before_it_makes_the_store() {
    let mut threads = Synchronisation::default();
    assert!(threads.apply(A, &lock(1)).proceeds && threads.take_word(A, Clock(2), 7).proceeds);
    assert!(!waits(&mut threads, 0).proceeds);
    assert!(!threads.take_word(C, Clock(2), 7).proceeds);
    let lent = threads.apply(B, &lock(2));
    assert_eq!(lent, Decision { proceeds: true, woken: vec![C] }, "and what A got later, as it is not there yet");
    assert!(threads.stored(B, S, None).woken.is_empty());
    assert!(threads.apply(B, &unlock(10)).woken.is_empty());
    assert_eq!(threads.stored(C, Clock(11), Some(7)).woken, [A]);
    assert!(!threads.apply(B, &lock(12)).proceeds, "A has both again");
}

#[test]
fn a_circle_may_go_through_threads_that_have_no_lock() {
    let mut threads = Synchronisation::default();
    assert!(threads.apply(A, &lock(1)).proceeds && !waits(&mut threads, 0).proceeds);
    assert!(!threads.apply(C, &lock(2)).proceeds, "B may still make its store");
    let lent = threads.wait_for_word(B, Clock(4), 0x300, (Clock(8), C), 0);
    assert_eq!(lent, Decision { proceeds: false, woken: vec![C] });
}
