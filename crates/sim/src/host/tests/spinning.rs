//! 3xx: threads that wait for another thread's store to a word, and locks that are words.

use std::slice;

use super::*;
use fencepost_record::{FutexOutcome, SpinReleaseKind, ThreadId};

/// A word at which threads wait.
const WORD: u64 = DRAM + 0x20_0040;

/// A thread makes a store to a word at which others wait; gives the store's place in the process clock.
fn makes(script: &mut Script, thread: u32, kind: SpinReleaseKind, lock: u64, store: &Instruction) -> Clock {
    let clock = script.event(thread, |clock| Event::SpinRelease { clock, object: WORD, kind, lock });
    script.run(thread, slice::from_ref(store));
    clock
}

fn releases(script: &mut Script, thread: u32, kind: SpinReleaseKind, lock: u64) -> Clock {
    makes(script, thread, kind, lock, &store_4(RBX, RCX, WORD))
}

fn stores(script: &mut Script, thread: u32) -> Clock {
    releases(script, thread, SpinReleaseKind::Store, 0)
}

/// A thread has polled the word until that store of another.
fn awaits(script: &mut Script, thread: u32, maker: u32, wake: Clock) {
    awaits_and_lends(script, thread, maker, wake, 0);
}

fn awaits_and_lends(script: &mut Script, thread: u32, maker: u32, wake: Clock, lends: u64) {
    let maker = ThreadId(maker);
    script.event(thread, |clock| Event::SpinWait { clock, object: WORD, wake, maker, lends });
}

#[test]
fn h301_a_waiting_thread_goes_on_with_the_store_of_another() {
    let mut script = threads(1);
    is_busy(&mut script, 1, 1000);
    let store = stores(&mut script, 1);
    awaits(&mut script, 0, 1, store);
    reads(&mut script, 0, 0);
    let mut bench = on_cores(2, script);
    let read = bench.read_of(line(0));
    assert!((1000..1500).contains(&read), "{read}");
    assert_eq!(bench.host().forced_waits(), 0);
}

#[test]
fn h302_threads_that_wait_at_one_word_do_not_end_each_other_s_waits() {
    let mut script = threads(3);
    is_busy(&mut script, 3, 3000);
    let store = stores(&mut script, 3);
    for thread in 0..3 {
        is_busy(&mut script, thread, 300 * thread as usize + 1);
        awaits(&mut script, thread, 3, store);
        reads(&mut script, thread, u64::from(thread));
    }
    let mut bench = on_cores(4, script);
    for number in 0..3 {
        let read = bench.read_of(line(number));
        assert!(read > 3000, "thread {number} went on at {read}, before the store");
    }
}

#[test]
fn h303_it_goes_on_when_the_store_takes_effect_and_not_when_that_is_known() {
    let mut script = threads(1);
    // The store commits late: it waits for a chain of divisions that the core computes in advance.
    is_busy(&mut script, 1, 1000);
    script.run(1, &repeated(15, &divide()));
    let late = makes(&mut script, 1, SpinReleaseKind::Store, 0, &store_4(RBX, RAX, WORD));
    awaits(&mut script, 0, 1, late);
    reads(&mut script, 0, 0);
    let mut bench = on_cores(2, script);
    let read = bench.read_of(line(0));
    assert!(read > 1000 + 15 * 20, "{read}");
}

#[test]
fn h304_a_store_that_covers_the_word_ends_the_wait() {
    let mut script = threads(1);
    is_busy(&mut script, 1, 1000);
    let covering = makes(&mut script, 1, SpinReleaseKind::Store, 0, &store(RBX, RCX, WORD - 4));
    awaits(&mut script, 0, 1, covering);
    reads(&mut script, 0, 0);
    let mut bench = on_cores(2, script);
    assert!(bench.read_of(line(0)) > 1000);
    assert_eq!(bench.host().forced_waits(), 0);
}

#[test]
fn h305_a_neighbour_s_store_ends_no_wait() {
    let mut script = threads(1);
    // The store that is announced comes behind one to the same line.
    let add = script.event(1, |clock| {
        let kind = SpinReleaseKind::Update;
        Event::SpinRelease { clock, object: WORD, kind, lock: 0 }
    });
    script.run(1, &[store_4(RBX, RCX, WORD + 4)]);
    is_busy(&mut script, 1, 1000);
    script.run(1, &[locked_add(RBX, RCX, WORD)]);
    awaits(&mut script, 0, 1, add);
    reads(&mut script, 0, 0);
    let mut bench = on_cores(2, script);
    assert!(bench.read_of(line(0)) > 1000);
}

#[test]
fn h306_futex_operations_at_the_word_are_no_stores() {
    let mut script = threads(2);
    let wake = script.event(2, |clock| Event::FutexWake { clock, object: WORD, woken: 1 });
    let outcome = FutexOutcome::Woken;
    script.event(1, |clock| Event::FutexWait { clock, object: WORD, wake: Some(wake), outcome });
    is_busy(&mut script, 2, 1500);
    let store = stores(&mut script, 2);
    awaits(&mut script, 0, 2, store);
    reads(&mut script, 0, 0);
    let mut bench = on_cores(3, script);
    assert!(bench.read_of(line(0)) > 1500);
}

#[test]
fn h307_a_store_while_warming_ends_a_wait_too() {
    let mut script = threads(1);
    is_busy(&mut script, 1, 1000);
    let store = stores(&mut script, 1);
    awaits(&mut script, 0, 1, store);
    script.run(0, &[marker(1)]);
    reads(&mut script, 0, 0);
    script.run(0, &[marker(2)]);
    let mut bench = on_cores(2, script);
    assert!(bench.read_of(line(0)) >= 1000);
    assert_eq!(bench.host().forced_waits(), 0);
}

#[test]
fn h308_a_wait_that_no_store_ends_ends_when_nothing_else_goes_on() {
    let mut script = threads(1);
    awaits(&mut script, 0, 1, Clock(1 << 20));
    reads(&mut script, 0, 0);
    is_busy(&mut script, 1, 500);
    let mut bench = on_cores(2, script);
    assert!(bench.read_of(line(0)) > 500);
    assert_eq!(bench.host().forced_waits(), 1);
}

#[test]
fn h309_a_wait_reads_its_word_by_the_rounds_in_the_record_alone() {
    let waits = |rounds: u64| {
        let mut script = Script::default();
        awaits(&mut script, 0, 1, Clock(1 << 20));
        (0..rounds).for_each(|_| script.run(0, &[load(RAX, RBX, WORD)]));
        let mut bench = on_cores(1, script);
        let state = bench.state(0, WORD);
        (bench.core(0).loads, bench.core(0).atomics, state)
    };
    assert_eq!(waits(0), (0, 0, None));
    assert_eq!(waits(1), (1, 0, Some(crate::cache::array::State::Exclusive)));
}

#[test]
fn h310_a_wait_is_for_its_own_store() {
    let mut script = threads(1);
    stores(&mut script, 1);
    is_busy(&mut script, 1, 1000);
    let second = stores(&mut script, 1);
    awaits(&mut script, 0, 1, second);
    reads(&mut script, 0, 0);
    let mut bench = on_cores(2, script);
    let read = bench.read_of(line(0));
    assert!(read > 1000, "{read}: the first store ended it");
    assert_eq!(bench.host().forced_waits(), 0);
}

#[test]
fn h311_who_waits_for_a_store_lets_its_maker_have_a_lock_before() {
    // The store is made under the lock that the waiting thread has taken.
    for lends in [0, 1] {
        let mut script = threads(1);
        is_busy(&mut script, 1, 500);
        lock(&mut script, 1, 7);
        let wake = stores(&mut script, 1);
        unlock(&mut script, 1, 7);
        lock(&mut script, 0, 7);
        awaits_and_lends(&mut script, 0, 1, wake, lends);
        reads(&mut script, 0, 0);
        unlock(&mut script, 0, 7);
        let mut bench = on_cores(2, script);
        assert!(bench.read_of(line(0)) > 500);
        assert_eq!(bench.host().forced_waits(), 0);
    }
}

/// When the thread goes on that waits at the word while it holds a lock, and the one that wants that lock. The store
/// comes at cycle 1000.
fn goes_on_beside_a_wait_under_a_lock(lends: u64) -> (u64, u64) {
    let mut script = threads(2);
    lock(&mut script, 0, 7);
    is_busy(&mut script, 1, 1000);
    let wake = stores(&mut script, 1);
    awaits_and_lends(&mut script, 0, 1, wake, lends);
    reads(&mut script, 0, 0);
    is_busy(&mut script, 0, 1000);
    unlock(&mut script, 0, 7);
    is_busy(&mut script, 2, 300);
    lock(&mut script, 2, 7);
    reads(&mut script, 2, 2);
    is_busy(&mut script, 2, 1000);
    unlock(&mut script, 2, 7);
    let mut bench = on_cores(3, script);
    assert_eq!(bench.host().forced_waits(), 0);
    (bench.read_of(line(0)), bench.read_of(line(2)))
}

#[test]
fn h316_a_lock_that_a_thread_keeps_while_it_waits_is_nobody_else_s() {
    let (waiting, wanting) = goes_on_beside_a_wait_under_a_lock(0);
    assert!((1000..1500).contains(&waiting), "{waiting}");
    assert!(wanting > waiting + 1000, "{waiting} {wanting}");
}

#[test]
fn h317_a_lock_that_each_round_gives_back_goes_to_others_meanwhile() {
    let (waiting, wanting) = goes_on_beside_a_wait_under_a_lock(1);
    assert!((300..900).contains(&wanting), "{wanting}");
    assert!(waiting > wanting + 900, "{waiting} {wanting}");
}

#[test]
fn h312_a_word_that_is_a_lock_goes_to_whoever_comes_first() {
    let mut script = threads(1);
    // Recorded with thread 1 first, which comes late.
    is_busy(&mut script, 1, 2000);
    releases(&mut script, 1, SpinReleaseKind::TakesLock, WORD);
    reads(&mut script, 1, 1);
    releases(&mut script, 1, SpinReleaseKind::GivesLock, WORD);
    releases(&mut script, 0, SpinReleaseKind::TakesLock, WORD);
    reads(&mut script, 0, 0);
    is_busy(&mut script, 0, 4000);
    releases(&mut script, 0, SpinReleaseKind::GivesLock, WORD);
    let mut bench = on_cores(2, script);
    let (first, second) = (bench.read_of(line(0)), bench.read_of(line(1)));
    assert!(first < 2000 && second > 4000, "{first} {second}");
    assert_eq!(bench.host().forced_waits(), 0);
}

/// The first thread loads what the second stores ; gives all loads and the early ones.
fn loads_beside_a_store(loading: usize, storing: usize) -> (u64, u64) {
    let mut script = threads(1);
    is_busy(&mut script, 1, storing);
    let store = Clock(77);
    script.event(1, |_| Event::StoreSeen { clock: store });
    reads(&mut script, 1, 1);
    is_busy(&mut script, 0, loading);
    script.event(0, |_| Event::Loads { count: 3, store: None });
    script.event(0, |_| Event::Loads { count: 1, store: Some(store) });
    reads(&mut script, 0, 0);
    on_cores(2, script).host().loads()
}

#[test]
fn h319_a_load_before_the_store_that_it_saw_is_counted() {
    assert_eq!(loads_beside_a_store(1000, 100), (4, 0));
    assert_eq!(loads_beside_a_store(100, 1000), (4, 1));
}

#[test]
fn h320_what_should_come_behind_something_unnamed_is_counted() {
    let mut script = threads(0);
    script.event(0, |_| Event::DroppedEdges { count: 2 });
    reads(&mut script, 0, 0);
    assert_eq!(on_cores(1, script).host().dropped_edges(), 2);
}
