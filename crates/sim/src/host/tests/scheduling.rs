//! 1xx: which thread runs on which core, and when.

use super::*;

const SWITCH: u64 = 400;

/// One core that switches threads in 400 cycles.
fn one_core(slice_us: u64, script: Script) -> Bench {
    let slice = format!("core.time_slice_us={slice_us}");
    Setup::machine(&["core.context_switch_ns=100", &slice]).run(script)
}

#[test]
fn h101_each_thread_has_a_core_of_its_own_as_long_as_there_are_enough() {
    let mut script = threads(2);
    for thread in 0..3 {
        script.run(thread, &repeated(10 * (thread as usize + 1), &nop()));
    }
    let bench = on_cores(4, script);
    let instructions: Vec<u64> = (0..4).map(|core| bench.core(core).instructions).collect();
    assert_eq!(instructions, [10, 20, 30, 0]);
    assert!((0..4).all(|core| bench.core(core).context_switches == 0));
}

#[test]
fn h102_threads_on_different_cores_run_side_by_side() {
    let mut script = threads(1);
    (0..2).for_each(|thread| reads(&mut script, thread, u64::from(thread)));
    let mut bench = on_cores(2, script);
    assert_eq!([bench.read_of(line(0)), bench.read_of(line(1))], [1 + WAY_OUT; 2]);
}

#[test]
fn h103_a_thread_that_blocks_leaves_its_core_to_the_next_and_switching_costs() {
    let mut script = threads(1);
    script.join(0, 1);
    reads(&mut script, 0, 0);
    reads(&mut script, 1, 1);
    let mut bench = one_core(1000, script);
    bench.end();
    let first_ends = SWITCH + 1 + MISS + 1;
    assert_eq!(bench.read_of(line(1)), SWITCH + 1 + WAY_OUT);
    assert_eq!(bench.read_of(line(0)), first_ends + SWITCH + 1 + WAY_OUT);
    assert_eq!(bench.core(0).context_switches, 2);
}

#[test]
fn h104_a_thread_that_goes_on_where_it_was_costs_nothing() {
    let mut script = threads(1);
    script.join(0, 1);
    reads(&mut script, 0, 0);
    reads(&mut script, 1, 1);
    let mut bench = on_cores(2, script);
    assert_eq!(bench.read_of(line(0)), 1 + MISS + 1 + 1 + WAY_OUT, "when the other ends");
    assert_eq!((bench.core(0).context_switches, bench.core(1).context_switches), (0, 0));
}

#[test]
fn h105_threads_that_are_ready_wait_in_order() {
    let mut script = threads(3);
    for thread in 0..4 {
        reads(&mut script, thread, u64::from(thread));
    }
    let mut bench = one_core(1000, script);
    bench.end();
    let turns: Vec<u64> = (0..4).map(|number| bench.read_of(line(number))).collect();
    let turn = SWITCH + 1 + MISS + 1;
    assert_eq!(turns, [0, turn, 2 * turn, 3 * turn].map(|start| start + 1 + WAY_OUT));
}

#[test]
fn h106_a_thread_leaves_its_core_after_its_slice_if_another_is_ready() {
    let slice = 4000;
    let mut script = threads(1);
    for thread in 0..2 {
        for _ in 0..100 {
            is_busy(&mut script, thread, 200);
        }
    }
    let mut bench = one_core(1, script);
    bench.run_until(slice - 100);
    assert_eq!(bench.host().positions()[1], 0);
    bench.run_until(slice + SWITCH + slice - 100);
    let [first, second] = bench.host().positions()[..] else { panic!("two threads") };
    assert!((slice..slice + 700).contains(&first), "the first had one slice, and did {first} cycles of work");
    assert!(second > slice - 500, "{second}");
    let end = bench.end();
    let switches = bench.core(0).context_switches;
    assert_eq!(switches, 9, "2 x 20,000 cycles in slices of 4,000");
    assert!(end >= 40_000 + switches * SWITCH, "{end}");
}

#[test]
fn h107_a_thread_keeps_its_core_while_no_other_is_ready() {
    let mut script = Script::default();
    (0..100).for_each(|_| is_busy(&mut script, 0, 200));
    let mut bench = one_core(1, script);
    bench.end();
    assert_eq!(bench.core(0).context_switches, 0);
}

#[test]
fn h108_a_thread_that_is_preempted_has_its_stores_and_flushes_done_first() {
    let mut script = threads(1);
    for thread in 0..2 {
        for round in 0..800 {
            let at = PM + (1 << 20) * u64::from(thread) + 64 * round;
            script.run(thread, &[store(RBX, RCX, at), clflushopt(RBX, at), store(RBX, RCX, at + (1 << 19))]);
        }
    }
    let mut bench = one_core(1, script);
    bench.end();
    assert_eq!((bench.core(0).stores, bench.core(0).flushes), (3200, 1600));
    assert!(bench.core(0).context_switches > 2);
}

#[test]
fn h109_a_thread_prefers_the_core_it_ran_on() {
    let mut script = threads(2);
    // Threads 1 and 2 wait for each other's semaphores in turns; each goes on where it was.
    let mut posted = [Clock(0); 3];
    for _ in 0..5 {
        posted[1] = script.event(1, |clock| Event::SemaphorePost { clock, object: object(1) });
        let wake = Some(posted[1]);
        script.event(2, |clock| Event::SemaphoreWait { clock, object: object(1), wake });
        posted[2] = script.event(2, |clock| Event::SemaphorePost { clock, object: object(2) });
        let wake = Some(posted[2]);
        script.event(1, |clock| Event::SemaphoreWait { clock, object: object(2), wake });
        is_busy(&mut script, 1, 50);
        is_busy(&mut script, 2, 70);
    }
    let bench = on_cores(3, script);
    assert_eq!([1, 2].map(|core| bench.core(core).instructions), [250, 350]);
}

#[test]
fn h110_a_thread_that_nobody_creates_is_started_when_nothing_else_goes_on() {
    let mut script = Script::default();
    reads(&mut script, 0, 0);
    reads(&mut script, 1, 1);
    let mut bench = on_cores(2, script);
    assert!(bench.read_of(line(1)) > MISS);
    assert_eq!(bench.host().forced_waits(), 1);
}

#[test]
fn h111_an_empty_program_is_at_its_end() {
    let mut bench = Setup::machine(&[]).run(Script::default());
    assert_eq!(bench.end(), 0);
}

#[test]
fn h112_a_seed_lets_each_thread_start_up_to_the_jitter_late_and_seed_0_none() {
    let starts = |seed: u64| {
        let mut script = threads(1);
        (0..2).for_each(|thread| reads(&mut script, thread, u64::from(thread)));
        let mut bench = Setup::machine(&["core.count=2", "core.start_jitter_ns=1000"]).seed(seed).run(script);
        bench.end();
        [0, 1].map(|thread| bench.read_of(line(thread)) - 1 - WAY_OUT)
    };
    assert_eq!(starts(0), [0, 0]);
    let seeds: Vec<[u64; 2]> = (1..20).map(starts).collect();
    // The second is created by the first; 1000 ns are 4000 cycles.
    assert!(
        seeds.iter().all(|[first, second]| *first <= 4000 && (*first..=first + 4000).contains(second)),
        "{seeds:?}"
    );
    assert!(seeds.iter().collect::<std::collections::BTreeSet<_>>().len() == seeds.len(), "{seeds:?}");
    assert_eq!(starts(7), starts(7));
}

/// A block of 30 instructions in two lines, unlike every other `number`'s.
fn two_lines_of_code(number: usize) -> Vec<Instruction> {
    let bit = |bit: usize| if number >> bit & 1 == 1 { add(RAX, RAX) } else { add(RCX, RCX) };
    (0..30).map(|at| bit(at % 6)).collect()
}

#[test]
fn h113_a_thread_keeps_its_core_until_it_has_executed_something_however_short_the_slice() {
    // Blocks whose lines are in the same sets of every cache, and a slice shorter than it takes to fetch the first
    // one's: who leaves the core while the second is fetched loses both to the other.
    let mut script = threads(1);
    (0..8 * 6).for_each(|number| _ = script.place(&two_lines_of_code(number)));
    for round in 0..3 {
        (0..2).for_each(|thread| script.run(thread, &two_lines_of_code(8 * (2 * round + thread as usize))));
    }
    let one_way =
        ["l1i", "l1d", "l2"].map(|level| [format!("cache.{level}.size_kib=1"), format!("cache.{level}.ways=1")]);
    let mut sets: Vec<&str> = one_way.iter().flatten().map(String::as_str).collect();
    sets.extend(["core.time_slice_us=1", "core.context_switch_ns=100"]);
    let mut bench = Setup::machine(&sets).cold_code().run(script);
    let slice = 4000;
    bench.memory.read = 2 * slice;
    bench.run_until(100 * slice);
    assert_eq!(bench.host().positions(), [3 * 30, 3 * 30]);
    assert!(bench.core(0).context_switches >= 4, "they did share the core");
}

#[test]
fn h114_a_thread_whose_frame_was_put_away_goes_on_where_it_was() {
    let run = |keeps_frames: bool| {
        let mut script = threads(2);
        for thread in 0..3 {
            for round in 0..40 {
                is_busy(&mut script, thread, 150);
                lock(&mut script, thread, 0);
                reads(&mut script, thread, 40 * u64::from(thread) + round);
                is_busy(&mut script, thread, 150);
                unlock(&mut script, thread, 0);
            }
        }
        let mut bench = one_core(1, script);
        if !keeps_frames {
            bench.keep_no_frames();
        }
        let end = bench.end();
        let reads: Vec<u64> = (0..120).map(|number| bench.read_of(line(number))).collect();
        (end, reads, bench.core(0).context_switches)
    };
    let kept = run(true);
    assert!(kept.2 > 5, "{} switches", kept.2);
    assert_eq!(run(false), kept);
}

#[test]
fn h115_threads_that_nobody_creates_start_one_after_the_other_at_the_end() {
    let mut script = Script::default();
    is_busy(&mut script, 0, 10);
    for thread in 1..4 {
        is_busy(&mut script, thread, 10 * thread as usize);
    }
    let mut bench = Setup::machine(&[]).run(script);
    bench.end();
    assert_eq!(bench.host().positions(), [10, 10, 20, 30]);
    assert_eq!(bench.host().forced_waits(), 3);
    assert!(bench.host().is_finished());
}

#[test]
fn h116_a_pinned_thread_runs_on_its_core_alone_though_others_are_idle() {
    let mut script = threads(2);
    for thread in 0..3 {
        script.run(thread, &repeated(10 * (thread as usize + 1), &nop()));
    }
    let mut bench = Setup::machine(&["core.count=4"]).pins(&[3, 1]).run(script);
    bench.end();
    let instructions: Vec<u64> = (0..4).map(|core| bench.core(core).instructions).collect();
    assert_eq!(instructions, [0, 20, 0, 10 + 30], "the third thread begins from the start of the list");
}
