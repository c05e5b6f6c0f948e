//! 2xx: locks, barriers, conditions, semaphores, joins, and records that lack something.

use super::*;
use fencepost_record::{FutexOutcome, ThreadId};

/// From an access to an object that its core owns to its commit: it is the oldest in the next cycle.
const ACCESS: u64 = 3;

#[test]
fn h201_a_lock_goes_to_the_thread_that_comes_first_in_simulated_time() {
    // Recorded: thread 1 had the lock first. Here it comes later.
    let mut script = threads(1);
    is_busy(&mut script, 1, 400);
    lock(&mut script, 1, 0);
    reads(&mut script, 1, 1);
    unlock(&mut script, 1, 0);
    lock(&mut script, 0, 0);
    reads(&mut script, 0, 0);
    unlock(&mut script, 0, 0);
    let mut bench = on_cores(2, script);
    let (first, second) = (bench.read_of(line(0)), bench.read_of(line(1)));
    assert!(first < 400 && second > 400, "{first} {second}");
    assert_eq!(bench.host().forced_waits(), 0);
}

#[test]
fn h202_a_thread_waits_while_another_has_the_lock() {
    let mut script = Script::default();
    lock(&mut script, 0, 0);
    script.create(0, 1);
    reads(&mut script, 0, 0);
    unlock(&mut script, 0, 0);
    lock(&mut script, 1, 0);
    reads(&mut script, 1, 1);
    unlock(&mut script, 1, 0);
    let mut bench = on_cores(2, script);
    let (first, second) = (bench.read_of(line(0)), bench.read_of(line(1)));
    assert!(second > first + READ, "{first} {second}");
}

#[test]
fn h203_an_operation_accesses_its_object() {
    let mut script = Script::default();
    lock(&mut script, 0, 0);
    reads(&mut script, 0, 0);
    let mut bench = Setup::machine(&[]).run(script);
    bench.warm(0, object(0), crate::cache::hierarchy::Want::Own);
    bench.end();
    assert_eq!(bench.read_of(line(0)), ACCESS + 1 + 1 + WAY_OUT, "performed, committed, dispatched");
    assert_eq!((bench.core(0).atomics, bench.core(0).synchronisations), (1, 1));
    assert_eq!(bench.core(0).instructions, 1, "the operation is none of the program's instructions");
}

#[test]
fn h204_an_object_that_another_core_used_has_to_come_from_there() {
    let mut script = Script::default();
    lock(&mut script, 0, 0);
    unlock(&mut script, 0, 0);
    script.create(0, 1);
    lock(&mut script, 1, 0);
    let bench = on_cores(2, script);
    assert_eq!(bench.caches().counters().snoops, 1);
}

#[test]
fn h205_all_threads_at_a_barrier_go_on_when_the_last_comes() {
    let mut script = threads(2);
    let barrier = |clock| Event::BarrierWait { clock, object: object(0), participants: 3, generation: 0 };
    for thread in 0..3 {
        is_busy(&mut script, thread, 300 * (thread as usize + 1));
        script.event(thread, barrier);
        reads(&mut script, thread, u64::from(thread));
    }
    let mut bench = on_cores(3, script);
    let starts = [0, 1, 2].map(|number| bench.read_of(line(number)));
    assert!(starts.iter().all(|&start| start > 900), "{starts:?}");
    assert!(starts.iter().max().unwrap() - starts.iter().min().unwrap() < 5, "{starts:?}");
}

#[test]
fn h206_a_barrier_is_used_again() {
    let mut script = threads(1);
    for generation in 0..3 {
        for thread in 0..2 {
            is_busy(&mut script, thread, if (u64::from(thread) + generation).is_multiple_of(2) { 500 } else { 10 });
            let event = |clock| Event::BarrierWait { clock, object: object(0), participants: 2, generation };
            script.event(thread, event);
        }
    }
    reads(&mut script, 0, 0);
    let mut bench = on_cores(2, script);
    assert!(bench.read_of(line(0)) > 1500);
    assert_eq!(bench.host().forced_waits(), 0);
}

#[test]
fn h207_a_wait_at_a_condition_ends_with_the_signal_it_ended_with_when_recorded() {
    let mut script = threads(1);
    lock(&mut script, 0, 0);
    // The wait's event is recorded when it returns, after the signal; it names the second one.
    let signals = [0, 1].map(|_| {
        is_busy(&mut script, 1, 400);
        script.event(1, |clock| Event::ConditionSignal { clock, object: object(1) })
    });
    script.event(0, |clock| Event::ConditionWait {
        clock,
        object: object(1),
        mutex: object(0),
        wake: Some(signals[1]),
        timed_out: false,
    });
    reads(&mut script, 0, 0);
    let mut bench = on_cores(2, script);
    assert!(bench.read_of(line(0)) > 800);
    assert_eq!(bench.host().forced_waits(), 0);
}

#[test]
fn h208_a_waiter_at_a_condition_has_its_mutex_again_before_it_goes_on() {
    let mut script = Script::default();
    lock(&mut script, 0, 0);
    script.create(0, 1);
    lock(&mut script, 1, 0);
    let signal = script.event(1, |clock| Event::ConditionSignal { clock, object: object(1) });
    reads(&mut script, 1, 1);
    unlock(&mut script, 1, 0);
    script.event(0, |clock| Event::ConditionWait {
        clock,
        object: object(1),
        mutex: object(0),
        wake: Some(signal),
        timed_out: false,
    });
    reads(&mut script, 0, 0);
    let mut bench = on_cores(2, script);
    let (holder, waiter) = (bench.read_of(line(1)), bench.read_of(line(0)));
    assert!(waiter > holder + READ, "the signal came before the mutex was free: {holder} {waiter}");
}

#[test]
fn h209_a_wait_that_timed_out_waits_for_nobody() {
    let mut script = Script::default();
    lock(&mut script, 0, 0);
    script.event(0, |clock| Event::ConditionWait {
        clock,
        object: object(1),
        mutex: object(0),
        wake: Some(Clock(99)),
        timed_out: true,
    });
    script.event(0, |clock| Event::FutexWait {
        clock,
        object: object(2),
        wake: Some(Clock(99)),
        outcome: FutexOutcome::TimedOut,
    });
    script.event(0, |clock| Event::AttemptFailed { clock, object: object(0) });
    let bench = on_cores(1, script);
    assert_eq!(bench.host().forced_waits(), 0);
}

#[test]
fn h210_a_semaphore_s_token_is_there_however_early_it_was_posted() {
    let mut script = threads(1);
    let post = script.event(1, |clock| Event::SemaphorePost { clock, object: object(0) });
    is_busy(&mut script, 0, 500);
    script.event(0, |clock| Event::SemaphoreWait { clock, object: object(0), wake: Some(post) });
    script.event(0, |clock| Event::SemaphoreWait { clock, object: object(0), wake: None });
    reads(&mut script, 0, 0);
    let mut bench = on_cores(2, script);
    assert!((500..800).contains(&bench.read_of(line(0))));
}

#[test]
fn h211_a_futex_wait_ends_with_its_wake() {
    let mut script = threads(1);
    is_busy(&mut script, 1, 500);
    let wake = script.event(1, |clock| Event::FutexWake { clock, object: object(0), woken: 1 });
    let outcome = FutexOutcome::Woken;
    script.event(0, |clock| Event::FutexWait { clock, object: object(0), wake: Some(wake), outcome });
    reads(&mut script, 0, 0);
    let mut bench = on_cores(2, script);
    assert!(bench.read_of(line(0)) > 500);
}

#[test]
fn h212_writers_exclude_and_readers_do_not() {
    let mut script = Script::default();
    script.event(0, |clock| Event::ReadLock { clock, object: object(0) });
    (1..=2).for_each(|thread| script.create(0, thread));
    script.event(1, |clock| Event::ReadLock { clock, object: object(0) });
    reads(&mut script, 1, 1);
    is_busy(&mut script, 0, 1000);
    script.event(0, |clock| Event::RwUnlock { clock, object: object(0) });
    script.event(1, |clock| Event::RwUnlock { clock, object: object(0) });
    is_busy(&mut script, 2, 300);
    script.event(2, |clock| Event::WriteLock { clock, object: object(0) });
    reads(&mut script, 2, 2);
    let mut bench = on_cores(3, script);
    assert!(bench.read_of(line(1)) < 500);
    assert!(bench.read_of(line(2)) > 1000);
}

#[test]
fn h213_a_recursive_mutex_is_free_after_as_many_releases() {
    let mut script = Script::default();
    lock(&mut script, 0, 0);
    script.create(0, 1);
    lock(&mut script, 0, 0);
    unlock(&mut script, 0, 0);
    is_busy(&mut script, 0, 1000);
    unlock(&mut script, 0, 0);
    lock(&mut script, 1, 0);
    reads(&mut script, 1, 1);
    let mut bench = on_cores(2, script);
    assert!(bench.read_of(line(1)) > 1000);
}

#[test]
fn h214_a_join_waits_for_the_end_and_then_passes() {
    let mut script = threads(1);
    is_busy(&mut script, 1, 700);
    script.join(0, 1);
    script.join(0, 1);
    reads(&mut script, 0, 0);
    let mut bench = on_cores(2, script);
    assert!((700..720).contains(&bench.read_of(line(0))));
}

#[test]
fn h215_a_thread_that_exits_is_joined_although_its_record_goes_on() {
    let mut script = threads(1);
    script.event(1, |clock| Event::ThreadExit { clock });
    is_busy(&mut script, 1, 700);
    script.join(0, 1);
    reads(&mut script, 0, 0);
    let mut bench = on_cores(2, script);
    assert!(bench.read_of(line(0)) < 100);
}

#[test]
fn h216_a_thread_that_blocks_leaves_nothing_under_way() {
    let mut script = threads(1);
    // A store that misses, a flush, and a non-temporal store just before the join.
    script.run(0, &[store(RBX, RCX, PM), clflushopt(RBX, PM), movnti(RBX, RCX, PM + 64), store(RBX, RCX, PM + 128)]);
    script.join(0, 1);
    reads(&mut script, 0, 0);
    is_busy(&mut script, 1, 100);
    let mut bench = on_cores(2, script);
    assert!(bench.read_of(line(0)) > READ + WRITE, "the join itself comes after them");
    assert_eq!((bench.core(0).stores, bench.writes().len()), (2, 2));
}

#[test]
fn h217_a_creation_is_seen_after_the_stores_before_it() {
    let mut script = Script::of(&[store(RBX, RCX, line(5))]);
    script.create(0, 1);
    reads(&mut script, 1, 1);
    let mut bench = on_cores(2, script);
    assert!(bench.read_of(line(1)) > MISS);
}

#[test]
fn h218_a_wake_up_that_the_record_lacks_is_given_when_nothing_else_goes_on() {
    let mut script = threads(1);
    let missing = Some(Clock(1_000_000));
    script.event(0, |clock| Event::SemaphoreWait { clock, object: object(0), wake: missing });
    reads(&mut script, 0, 0);
    is_busy(&mut script, 1, 600);
    let mut bench = on_cores(2, script);
    assert!(bench.read_of(line(0)) > 600);
    assert_eq!(bench.host().forced_waits(), 1);
    assert_eq!(bench.counter("threads.forced_waits"), 1);
}

#[test]
fn h219_of_several_hopeless_waits_the_one_recorded_first_ends_and_may_free_the_others() {
    let mut script = threads(2);
    let missing = Some(Clock(1_000_000));
    script.event(1, |clock| Event::SemaphoreWait { clock, object: object(0), wake: missing });
    reads(&mut script, 1, 1);
    let post = script.event(1, |clock| Event::SemaphorePost { clock, object: object(1) });
    script.event(2, |clock| Event::SemaphoreWait { clock, object: object(1), wake: Some(post) });
    reads(&mut script, 2, 2);
    let mut bench = on_cores(3, script);
    assert!(bench.read_of(line(2)) > bench.read_of(line(1)));
    assert_eq!(bench.host().forced_waits(), 1, "the second wait ended as it should");
}

#[test]
fn h220_locks_taken_in_a_cycle_come_apart() {
    let mut script = threads(1);
    for thread in 0..2 {
        lock(&mut script, thread, u64::from(thread));
        is_busy(&mut script, thread, 500);
        lock(&mut script, thread, u64::from(1 - thread));
        unlock(&mut script, thread, u64::from(1 - thread));
        unlock(&mut script, thread, u64::from(thread));
    }
    reads(&mut script, 0, 0);
    reads(&mut script, 1, 1);
    let bench = on_cores(2, script);
    assert_eq!(bench.host().forced_waits(), 1);
}

#[test]
fn h221_who_went_past_a_lock_does_not_take_it_from_its_holder() {
    use crate::core::synchronisation::Synchronisation;
    let mut threads = Synchronisation::default();
    let [a, b, c] = [0, 1, 2].map(ThreadId);
    let lock = |clock| Event::MutexLock { clock: Clock(clock), object: 7 };
    let unlock = Event::MutexUnlock { clock: Clock(99), object: 7 };
    assert!(threads.apply(a, &lock(1)).proceeds);
    assert!(!threads.apply(b, &lock(2)).proceeds && !threads.apply(c, &lock(3)).proceeds);
    assert_eq!(threads.force(), Some(b));
    assert!(threads.apply(b, &unlock).woken.is_empty(), "a still has it");
    assert_eq!(threads.apply(a, &unlock).woken, [c]);
}

#[test]
fn h222_a_condition_s_waiter_whose_signal_is_missing_takes_its_mutex() {
    use crate::core::synchronisation::Synchronisation;
    let mut threads = Synchronisation::default();
    let [a, b] = [0, 1].map(ThreadId);
    let lock = |clock| Event::MutexLock { clock: Clock(clock), object: 7 };
    assert!(threads.apply(a, &lock(1)).proceeds);
    let wake = Some(Clock(500));
    threads.apply(a, &Event::ConditionWait { clock: Clock(2), object: 8, mutex: 7, wake, timed_out: false });
    assert_eq!(threads.force(), Some(a));
    assert!(!threads.apply(b, &lock(3)).proceeds, "it is a's again");
}

#[test]
fn h223_what_is_remembered_of_wakes_does_not_grow_with_the_record() {
    // Two threads signal whom nobody waits for, one of them lagging behind, while a third only computes and the first
    // waits for all.
    let mut script = threads(3);
    for round in 0..20_000 {
        for thread in 1..3 {
            script.event(thread, |clock| Event::ConditionSignal { clock, object: object(u64::from(thread)) });
            is_busy(&mut script, thread, if thread == 1 { 5 } else { 6 });
        }
        if round % 100 == 0 {
            is_busy(&mut script, 3, 500);
            script.end_frames();
        }
    }
    (1..4).for_each(|other| script.join(0, other));
    let mut bench = Setup::machine(&["core.count=4"]).run(script);
    let mut most = 0;
    while bench.step() {
        most = most.max(bench.host().process.synchronisation.remembered());
    }
    bench.end();
    assert!(most < 300, "{most} words of 64 places; the 40,000 signals have 625");
    assert_eq!(bench.host().forced_waits(), 0);
}
