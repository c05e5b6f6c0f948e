//! 9xx: persists inserted into programs that make none.

use crate::core::persist::PersistMode;
use crate::host::bench::assembler::*;
use crate::host::bench::{Bench, DRAM, PM, Script, Setup};
use fencepost_record::{Clock, Event, FutexOutcome, ThreadId};

const OBJECT: u64 = DRAM + 0x8000;

fn line(number: u64) -> u64 {
    PM + 64 * number
}

fn sync(script: Script) -> Bench {
    let mut bench = Setup::machine(&["persist.flush=\"clflush\"", "persist.fence=\"mfence\""])
        .persist(PersistMode::Sync)
        .run(script);
    bench.end();
    bench
}

/// The PM lines that were written, as numbers, in order.
fn persisted(bench: &mut Bench) -> Vec<u64> {
    let first = bench.line(PM);
    bench
        .sent()
        .iter()
        .filter(|sent| sent.opcode != fencepost_kernel::message::Opcode::MemRd)
        .map(|sent| sent.line.0 - first.0)
        .collect()
}

fn lock(script: &mut Script) {
    script.event(0, |clock| Event::MutexLock { clock, object: OBJECT });
}

fn unlock(script: &mut Script) {
    script.event(0, |clock| Event::MutexUnlock { clock, object: OBJECT });
}

#[test]
fn s901_a_release_persists_the_lines_dirtied_since_the_last_in_order_and_fences() {
    let mut script = Script::of(&[load(RAX, RBX, line(0))]);
    lock(&mut script);
    script.run(
        0,
        &[
            store(RBX, RCX, line(5)),
            store(RBX, RCX, line(2)),
            store(RBX, RCX, DRAM),
            store(RBX, RCX, line(5) + 8),
            store(RBX, RCX, line(3) - 4),
        ],
    );
    unlock(&mut script);
    lock(&mut script);
    script.run(0, &[store(RBX, RCX, line(2))]);
    unlock(&mut script);
    let mut bench = sync(script);
    assert_eq!(persisted(&mut bench), [5, 2, 3, 2]);
    let core = bench.core(0);
    assert_eq!((core.inserted_flushes, core.flushes, core.fences), (4, 4, 2));
}

#[test]
fn s902_a_release_without_stores_to_pm_inserts_nothing() {
    let mut script = Script::of(&[store(RBX, RCX, DRAM), load(RAX, RBX, line(0))]);
    lock(&mut script);
    unlock(&mut script);
    let bench = sync(script);
    assert_eq!((bench.core(0).flushes, bench.core(0).fences), (0, 0));
    assert_eq!(bench.caches().counters().pm_writes, 0);
}

#[test]
fn s903_the_persists_come_before_the_release_takes_effect() {
    let mut script = Script::default();
    lock(&mut script);
    script.create(0, 1);
    script.run(0, &[store(RBX, RCX, line(0))]);
    unlock(&mut script);
    script.event(1, |clock| Event::MutexLock { clock, object: OBJECT });
    script.run(1, &[load(RAX, RBX, line(9))]);
    let mut bench = Setup::machine(&["core.count=2"]).persist(PersistMode::Sync).run(script);
    bench.end();
    let written = bench.writes()[0] + crate::host::bench::WRITE;
    let other = bench.line(line(9));
    let read = bench.sent().iter().find(|sent| sent.line == other).expect("the second thread reads").cycle;
    assert!(read > written, "the second thread got the lock at {read}, the line was persistent at {written}");
}

#[test]
fn s904_every_kind_of_synchronisation_persists_what_was_stored_before_it() {
    let operations: [fn(Clock) -> Event; 18] = [
        |clock| Event::MutexUnlock { clock, object: OBJECT },
        |clock| Event::SpinUnlock { clock, object: OBJECT },
        |clock| Event::RwUnlock { clock, object: OBJECT },
        |clock| Event::ConditionSignal { clock, object: OBJECT },
        |clock| Event::ConditionBroadcast { clock, object: OBJECT },
        |clock| Event::ConditionWait { clock, object: OBJECT, mutex: OBJECT + 64, wake: None, timed_out: true },
        |clock| Event::SemaphorePost { clock, object: OBJECT },
        |clock| Event::SemaphoreWait { clock, object: OBJECT, wake: None },
        |clock| Event::BarrierWait { clock, object: OBJECT, participants: 1, generation: 0 },
        |clock| Event::FutexWake { clock, object: OBJECT, woken: 0 },
        |clock| Event::FutexWait { clock, object: OBJECT, wake: None, outcome: FutexOutcome::ValueChanged },
        |clock| Event::SpinWait { clock, object: OBJECT, wake: clock, maker: ThreadId(9), lends: 0 },
        |clock| Event::ThreadCreate { clock, thread: ThreadId(9) },
        |clock| Event::MutexLock { clock, object: OBJECT },
        |clock| Event::SpinLock { clock, object: OBJECT },
        |clock| Event::ReadLock { clock, object: OBJECT },
        |clock| Event::WriteLock { clock, object: OBJECT },
        |clock| Event::AttemptFailed { clock, object: OBJECT },
    ];
    for operation in operations {
        let mut script = Script::of(&[store(RBX, RCX, line(0))]);
        script.event(0, operation);
        // What is stored after it is persisted at the end, separately.
        script.run(0, &[store(RBX, RCX, line(0))]);
        let mut bench = sync(script);
        assert_eq!(persisted(&mut bench), [0, 0], "{:?}", operation(Clock(0)));
    }
}

#[test]
fn s905_a_join_persists_what_was_stored_before_it() {
    let mut script = Script::default();
    script.create(0, 1);
    script.run(0, &[store(RBX, RCX, line(0))]);
    script.join(0, 1);
    script.run(0, &[store(RBX, RCX, line(0))]);
    let mut bench = sync(script);
    assert_eq!(persisted(&mut bench), [0, 0]);
}

#[test]
fn s906_the_end_of_a_thread_persists_what_is_left() {
    let mut bench = sync(Script::of(&[store(RBX, RCX, line(4)), store(RBX, RCX, line(1))]));
    assert_eq!(persisted(&mut bench), [4, 1]);
    assert_eq!(bench.core(0).fences, 1);
}

#[test]
fn s907_all_instructions_that_store_dirty_their_lines() {
    let mut script = Script::of(&[
        rep_stos(line(0), 128),
        rep_movs(DRAM, line(4) + 32, 64),
        locked_add(RBX, RCX, line(8)),
        add_to_memory(RBX, RCX, line(9)),
        call(line(10)),
    ]);
    unlock(&mut script);
    let mut bench = sync(script);
    assert_eq!(persisted(&mut bench), [0, 1, 4, 5, 8, 9, 10]);
}

#[test]
fn s908_a_non_temporal_store_is_flushed_too() {
    let mut script = Script::of(&[movnti(RBX, RCX, line(0))]);
    unlock(&mut script);
    let bench = sync(script);
    assert_eq!((bench.core(0).inserted_flushes, bench.core(0).fences), (1, 1));
    assert_eq!(bench.caches().counters().persists.count(), 1, "the store itself; the flush finds nothing");
}

#[test]
fn s909_the_object_s_own_access_is_not_the_program_s_store() {
    let mut script = Script::default();
    script.event(0, |clock| Event::MutexLock { clock, object: line(0) });
    script.event(0, |clock| Event::MutexUnlock { clock, object: line(0) });
    let bench = sync(script);
    assert_eq!(bench.core(0).flushes, 0);
}

#[test]
fn s910_every_so_many_stores_to_pm_are_persisted_together() {
    let stores: Vec<_> = [0, 1, 1, 2, 3, 3, 4].map(|number| store(RBX, RCX, line(number))).to_vec();
    let mut bench = Setup::machine(&[]).persist(PersistMode::Every(3)).run(Script::of(&stores));
    bench.end();
    assert_eq!(persisted(&mut bench), [0, 1, 2, 3, 4], "after the third, after the sixth, at the end");
    assert_eq!((bench.core(0).fences, bench.core(0).inserted_flushes), (3, 5));
}

#[test]
fn s911_stores_to_dram_do_not_count() {
    let stores: Vec<_> = [PM, DRAM, DRAM, PM + 64].map(|address| store(RBX, RCX, address)).to_vec();
    let mut bench = Setup::machine(&[]).persist(PersistMode::Every(2)).run(Script::of(&stores));
    bench.end();
    assert_eq!((persisted(&mut bench), bench.core(0).fences), (vec![0, 1], 1));
}

#[test]
fn s912_the_machine_chooses_the_instructions() {
    for (flush, stays) in [("clflush", false), ("clflushopt", false), ("clwb", true)] {
        let sets = [format!("persist.flush=\"{flush}\""), "persist.fence=\"sfence\"".to_owned()];
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        let mut bench = Setup::machine(&sets).persist(PersistMode::Sync).run(Script::of(&[store(RBX, RCX, PM)]));
        bench.end();
        assert_eq!(bench.state(0, PM).is_some(), stays, "{flush}");
        assert_eq!(bench.caches().counters().persists.count(), 1);
    }
}

#[test]
fn s913_a_store_across_two_pages_dirties_a_line_of_each() {
    let second = PM + 4096;
    let mut bench = sync(Script::of(&[load(RAX, RBX, PM), load(RAX, RBX, PM + 8 * 4096), store(RBX, RCX, second - 4)]));
    let lines = [second - 64, second].map(|address| bench.line(address));
    let writes = bench.sent().iter().filter(|sent| sent.opcode != fencepost_kernel::message::Opcode::MemRd);
    assert_eq!(writes.map(|sent| sent.line).collect::<Vec<_>>(), lines);
}

#[test]
fn s914_a_limit_is_no_end_and_persists_nothing() {
    let run = |mode, limit: u64, script: Script| {
        let mut bench = Setup::machine(&[]).persist(mode).limits(&[limit]).run(script);
        bench.end();
        persisted(&mut bench)
    };
    let script = || {
        let mut script = Script::default();
        (0..4).for_each(|number| script.run(0, &[store(RBX, RCX, line(number))]));
        script
    };
    assert_eq!(run(PersistMode::Sync, 3, script()), [0_u64; 0]);
    assert_eq!(run(PersistMode::Every(2), 3, script()), [0, 1], "two stores later, and the third is left");
    assert_eq!(run(PersistMode::Sync, 4, script()), [0, 1, 2, 3], "the limit is where the record ends");
}

/// A thread arrives at a barrier that is made of a mutex: it has written a line of its own, and counts in PM.
fn arrive_at_a_mutex_barrier(script: &mut Script, thread: u32, own: u64) {
    script.run(thread, &[store(RBX, RCX, line(own))]);
    script.event(thread, |clock| Event::MutexLock { clock, object: OBJECT });
    script.run(thread, &[add_to_memory(RBX, RCX, line(0))]);
    script.event(thread, |clock| Event::MutexUnlock { clock, object: OBJECT });
}

#[test]
fn s915_nothing_that_was_written_before_a_lock_is_persisted_under_it() {
    let mut script = Script::default();
    script.create(0, 1);
    arrive_at_a_mutex_barrier(&mut script, 0, 1);
    arrive_at_a_mutex_barrier(&mut script, 1, 2);
    let mut bench = Setup::machine(&["core.count=2"]).persist(PersistMode::Sync).run(script);
    bench.end();
    let written = persisted(&mut bench);
    assert_eq!(written[2..], [0, 0], "the counter, once for each thread, last: {written:?}");
    let writes = bench.writes();
    assert!(
        writes[1] < writes[0] + crate::host::bench::WRITE,
        "both at the same time, not one after the other: {writes:?}"
    );
}

#[test]
fn s916_a_locked_instruction_persists_what_was_stored_before_it_and_its_own_line_comes_next() {
    let program =
        [store(RBX, RCX, line(3)), locked_add(RBX, RCX, line(1)), store(RBX, RCX, line(2)), locked_add(RBX, RCX, DRAM)];
    let mut bench = sync(Script::of(&program));
    assert_eq!(persisted(&mut bench), [3, 1, 2]);
    let core = bench.core(0);
    assert_eq!((core.inserted_flushes, core.fences, core.atomics), (3, 2, 2));
}

/// A call of a function that locks or unlocks a mutex in PM, with the inside that the record has of it.
fn call_of(script: &mut Script, event: fn(Clock) -> Event, is_acquire: bool) {
    let inside = [store(RBX, RCX, line(7)), locked_add(RBX, RCX, line(0)), store(RBX, RCX, line(0) + 8)];
    script.event(0, |_| Event::CallBegin);
    if is_acquire {
        script.event(0, event);
    }
    script.run(0, &inside);
    if !is_acquire {
        script.event(0, event);
    }
    script.event(0, |_| Event::CallEnd);
}

fn critical_sections(mode: PersistMode) -> Bench {
    let mut script = Script::default();
    for number in [3, 4] {
        script.run(0, &[store(RBX, RCX, line(5))]);
        call_of(&mut script, |clock| Event::MutexLock { clock, object: line(0) }, true);
        script.run(0, &[store(RBX, RCX, line(number))]);
        call_of(&mut script, |clock| Event::MutexUnlock { clock, object: line(0) }, false);
    }
    let mut bench = Setup::machine(&["persist.flush=\"clflush\""]).persist(mode).run(script);
    bench.end();
    bench
}

#[test]
fn s917_what_a_synchronisation_function_stores_is_not_persisted_and_nothing_is_inside_it() {
    let mut bench = critical_sections(PersistMode::Sync);
    assert_eq!(persisted(&mut bench), [5, 3, 5, 4]);
    let core = bench.core(0);
    assert_eq!((core.inserted_flushes, core.fences), (4, 4));
    let mut bench = critical_sections(PersistMode::Every(2));
    assert_eq!(persisted(&mut bench), [5, 3, 5, 4], "of the program's four stores the second and the fourth");
    assert_eq!(bench.core(0).fences, 2);
}

#[test]
fn s918_a_recorded_inside_has_the_access_to_the_object() {
    let bench = critical_sections(PersistMode::Program);
    assert_eq!((bench.core(0).atomics, bench.core(0).synchronisations), (4, 4));
    assert_eq!(bench.core(0).instructions, 4 + 4 * 3);
}
