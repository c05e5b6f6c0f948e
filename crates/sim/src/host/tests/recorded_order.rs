//! 8xx: what threads saw of each other's writes is kept in a replay in recorded order.

use super::*;
use fencepost_record::{Info, RecordingOptions, ThreadId};

/// A record that says what threads saw of each other, with so many threads that the first creates.
fn with_order(others: u32) -> Script {
    let info = Info { options: RecordingOptions { values: true, ..RecordingOptions::default() }, ..Info::default() };
    let mut script = Script::recorded_as(&info);
    (1..=others).for_each(|thread| script.create(0, thread));
    script
}

/// What `thread` does from here on came after the first `writes` writes of another one.
fn comes_after(script: &mut Script, thread: u32, other: u32, writes: u64) {
    script.event(thread, |_| Event::Order { thread: ThreadId(other), writes });
}

fn in_recorded_order(cores: usize, script: Script) -> Bench {
    let mut bench = Setup::machine(&[&format!("core.count={cores}")]).in_recorded_order().run(script);
    while bench.step() || bench.unblock() {}
    assert!(bench.host().is_finished());
    bench
}

/// Thread 1 is busy and writes twice, which thread 0 has seen.
fn handed_over() -> Script {
    let mut script = with_order(1);
    comes_after(&mut script, 0, 1, 2);
    reads(&mut script, 0, 0);
    for cycles in [1000, 3000] {
        is_busy(&mut script, 1, cycles);
        script.run(1, &[store(RBX, RCX, line(7))]);
    }
    is_busy(&mut script, 1, 2000);
    script
}

#[test]
fn h801_a_thread_goes_on_when_the_write_that_it_saw_has_taken_effect() {
    for cores in [1, 2] {
        let mut bench = in_recorded_order(cores, handed_over());
        let read = bench.read_of(line(0));
        assert!(read > 4000 && (cores == 1 || read < 5000), "on {cores} cores at {read}");
        assert_eq!(bench.host().forced_waits(), 0);
    }
}

#[test]
fn h802_in_free_order_it_waits_for_nothing() {
    let mut bench = on_cores(2, handed_over());
    assert!(bench.read_of(line(0)) < 1000);
}

#[test]
fn h803_a_thread_waits_for_each_write_that_it_saw_and_for_nothing_else() {
    let mut script = with_order(1);
    for round in 0..3 {
        comes_after(&mut script, 0, 1, round + 1);
        reads(&mut script, 0, round);
        is_busy(&mut script, 1, 2000);
        script.run(1, &[store(RBX, RCX, line(7))]);
    }
    let mut bench = in_recorded_order(2, script);
    for round in 0..3 {
        let read = bench.read_of(line(round));
        assert!(read > 2000 * (round + 1) && read < 2000 * (round + 1) + 1000, "round {round} at {read}");
    }
    assert_eq!(bench.host().forced_waits(), 0);
}

#[test]
fn h804_waiting_completes_nothing_that_the_thread_has_under_way() {
    let mut script = with_order(1);
    // A flush of thread 0 is under way when it waits, and thread 1 writes at once: nothing says that the flush is
    // complete when it goes on.
    script.run(0, &[store(RBX, RCX, PM), clwb(RBX, PM)]);
    comes_after(&mut script, 0, 1, 1);
    reads(&mut script, 0, 0);
    script.run(1, &[store(RBX, RCX, line(7))]);
    let mut bench = in_recorded_order(2, script);
    let written = bench.writes()[0];
    let read = bench.read_of(line(0));
    assert!(
        read < written + WRITE,
        "it read at {read}, and what was written at {written} was not complete before {}",
        written + WRITE
    );
}

#[test]
fn h805_a_write_that_is_missing_counts_as_made_when_nobody_can_go_on() {
    let mut script = with_order(1);
    comes_after(&mut script, 0, 1, 5);
    reads(&mut script, 0, 0);
    script.run(1, &[store(RBX, RCX, line(7))]);
    let bench = in_recorded_order(2, script);
    assert_eq!(bench.host().forced_waits(), 1);
}

#[test]
fn h806_a_mutex_goes_back_to_a_waiter_in_its_recorded_turn() {
    let mut script = with_order(1);
    let wait =
        |clock, wake| Event::ConditionWait { clock, object: object(1), mutex: object(0), wake, timed_out: false };
    lock(&mut script, 0, 0);
    is_busy(&mut script, 1, 500);
    lock(&mut script, 1, 0);
    let wake = script.event(1, |clock| Event::ConditionSignal { clock, object: object(1) });
    unlock(&mut script, 1, 0);
    // It takes the mutex once more before the one that it has woken.
    lock(&mut script, 1, 0);
    is_busy(&mut script, 1, 1000);
    unlock(&mut script, 1, 0);
    script.event(0, |clock| wait(clock, Some(wake)));
    reads(&mut script, 0, 0);
    unlock(&mut script, 0, 0);
    let mut bench = in_recorded_order(2, script);
    assert_eq!(bench.host().forced_waits(), 0);
    assert!(bench.read_of(line(0)) > 1500);
}

#[test]
fn h807_who_waits_at_a_barrier_keeps_nobody_from_what_comes_before_he_leaves() {
    let barrier = |clock| Event::BarrierWait { clock, object: object(1), participants: 2, generation: 0 };
    let mut script = with_order(1);
    script.event(1, barrier);
    reads(&mut script, 1, 1);
    // Thread 0 takes and gives back a lock between the other's arrival and its own.
    is_busy(&mut script, 0, 1000);
    lock(&mut script, 0, 0);
    unlock(&mut script, 0, 0);
    script.event(0, barrier);
    let mut bench = in_recorded_order(2, script);
    assert_eq!(bench.host().forced_waits(), 0);
    assert!(bench.read_of(line(1)) > 1000);
}
