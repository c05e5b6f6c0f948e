//! 5xx: limits, which end every scheme's run at the same places of the record.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::core::persist::PersistMode;

fn pm(number: u64) -> u64 {
    PM + 64 * number
}

#[test]
fn h501_a_thread_stops_at_the_end_of_the_block_in_which_its_limit_is() {
    for (limit, stops) in [(0, 0), (1, 10), (10, 10), (11, 20), (1000, 50)] {
        let mut script = Script::default();
        (0..5).for_each(|_| is_busy(&mut script, 0, 10));
        let mut bench = Setup::machine(&[]).limits(&[limit]).run(script);
        bench.end();
        assert_eq!(bench.host().positions(), [stops], "limit {limit}");
    }
}

#[test]
fn h502_all_threads_stop_when_enough_writes_have_gone_to_pm() {
    let mut script = threads(1);
    for number in 0..20 {
        script.run(0, &[store(RBX, RCX, pm(number)), clflush(RBX, pm(number)), mfence()]);
        is_busy(&mut script, 1, 50);
    }
    let mut bench = Setup::machine(&["core.count=2"]).pm_writes_limit(5).run(script);
    bench.end();
    assert!(bench.host().has_reached_pm_writes_limit());
    // What has been dispatched by then is finished: that is as far as the core was.
    let writes = bench.writes().len();
    assert!((5..20).contains(&writes), "{writes}");
    assert_eq!(bench.host().positions()[0], 3 * writes as u64);
}

#[test]
fn h503_a_limit_that_is_not_reached_limits_nothing() {
    let mut script = Script::of(&[store(RBX, RCX, pm(0)), clflush(RBX, pm(0))]);
    is_busy(&mut script, 0, 50);
    let mut bench = Setup::machine(&[]).pm_writes_limit(2).run(script);
    bench.end();
    assert!(!bench.host().has_reached_pm_writes_limit());
    assert_eq!(bench.host().positions(), [52]);
}

#[test]
fn h504_a_thread_that_waits_at_its_limit_is_at_its_end() {
    let mut script = threads(1);
    is_busy(&mut script, 0, 10);
    script.join(0, 1);
    is_busy(&mut script, 0, 10);
    (0..9).for_each(|_| is_busy(&mut script, 1, 10));
    let mut bench = Setup::machine(&["core.count=2"]).limits(&[10, 40]).run(script);
    bench.end();
    assert_eq!(bench.host().positions(), [10, 40]);
    assert_eq!(bench.host().forced_waits(), 0, "that says nothing about the record");
}

#[test]
fn h505_what_happens_at_the_limit_still_happens_for_those_who_wait_for_it() {
    // Thread 0 stops right behind a release that thread 1 needs.
    let mut script = Script::default();
    lock(&mut script, 0, 0);
    script.create(0, 1);
    is_busy(&mut script, 0, 500);
    unlock(&mut script, 0, 0);
    is_busy(&mut script, 0, 10);
    lock(&mut script, 1, 0);
    reads(&mut script, 1, 1);
    is_busy(&mut script, 1, 10);
    let mut bench = Setup::machine(&["core.count=2"]).limits(&[500, 11]).run(script);
    bench.end();
    assert_eq!(bench.host().positions(), [500, 11]);
    assert!((500..800).contains(&bench.read_of(line(1))), "it got the lock when it was released");
}

#[test]
fn h506_a_thread_whose_lock_is_held_by_one_that_stopped_still_comes_to_its_limit() {
    let mut script = Script::default();
    lock(&mut script, 0, 0);
    script.create(0, 1);
    is_busy(&mut script, 0, 500);
    is_busy(&mut script, 0, 500);
    unlock(&mut script, 0, 0);
    lock(&mut script, 1, 0);
    is_busy(&mut script, 1, 30);
    unlock(&mut script, 1, 0);
    let mut bench = Setup::machine(&["core.count=2"]).limits(&[500, 30]).run(script);
    bench.end();
    assert_eq!(bench.host().positions(), [500, 30]);
}

#[test]
fn h507_a_thread_that_is_created_at_the_limit_of_its_creator_runs_to_its_own() {
    let mut script = Script::default();
    is_busy(&mut script, 0, 10);
    script.create(0, 1);
    is_busy(&mut script, 0, 10);
    is_busy(&mut script, 1, 10);
    let mut bench = Setup::machine(&["core.count=2"]).limits(&[10, 10]).run(script);
    bench.end();
    assert_eq!(bench.host().positions(), [10, 10]);
}

#[test]
fn h508_limits_hold_while_warming() {
    let mut script = Script::default();
    (0..5).for_each(|_| is_busy(&mut script, 0, 10));
    script.run(0, &[marker(1)]);
    let mut bench = Setup::machine(&[]).limits(&[20]).run(script);
    bench.end();
    assert_eq!(bench.host().positions(), [20]);
    assert!(bench.boundaries.is_empty());
}

#[test]
fn h510_all_threads_stop_in_the_block_in_which_they_have_come_to_so_many_instructions_together() {
    for (limit, is_warming) in [(500, false), (2777, false), (500, true), (4000, true)] {
        let mut script = threads(3);
        for _ in 0..200 {
            (0..4).for_each(|thread| is_busy(&mut script, thread, 7));
        }
        if is_warming {
            script.run(0, &[marker(1)]);
        }
        let mut bench = Setup::machine(&["core.count=3", "core.time_slice_us=1"]).run(script);
        bench.limit_instructions(limit);
        bench.end();
        let positions = bench.host().positions();
        let together: u64 = positions.iter().sum();
        assert!((limit..limit + 4 * 7).contains(&together), "{positions:?} for {limit}");
    }
}

/// What a thread does next: work, a critical section, or a meeting of all.
#[derive(Clone, Copy, Debug)]
enum Part {
    Work { line: u64, cycles: usize },
    Critical { lock: u64, line: u64 },
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        (0..12u64, 1..60usize).prop_map(|(line, cycles)| Part::Work { line, cycles }),
        (0..3u64, 0..12u64).prop_map(|(lock, line)| Part::Critical { lock, line }),
    ]
}

fn program(threads_do: &[Vec<Part>]) -> Script {
    let mut script = threads(threads_do.len() as u32 - 1);
    let longest = threads_do.iter().map(Vec::len).max().unwrap_or_default();
    for round in 0..longest {
        for (thread, parts) in threads_do.iter().enumerate() {
            let thread = thread as u32;
            match parts.get(round) {
                Some(&Part::Work { line, cycles }) => {
                    script.run(thread, &[store(RBX, RCX, pm(line)), clflushopt(RBX, pm(line))]);
                    is_busy(&mut script, thread, cycles);
                }
                Some(&Part::Critical { lock: number, line }) => {
                    lock(&mut script, thread, number);
                    script.run(
                        thread,
                        &[load(RAX, RBX, pm(line)), store(RBX, RAX, pm(line)), clwb(RBX, pm(line)), sfence()],
                    );
                    unlock(&mut script, thread, number);
                }
                None => {}
            }
        }
    }
    script
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn h509_every_machine_stops_at_the_positions_at_which_one_has_sent_so_many_writes(
        threads_do in vec(vec(part(), 1..25), 1..4),
        writes in 1..30u64,
        cores in 1..4usize,
        read in 20..900u64,
        write in 20..900u64,
        mode in prop_oneof![Just(PersistMode::Program), Just(PersistMode::Sync), Just(PersistMode::Every(3))],
    ) {
        let cores = format!("core.count={cores}");
        let sets = [cores.as_str(), "core.time_slice_us=1"];
        let mut first = Setup::machine(&sets).persist(mode).pm_writes_limit(writes).run(program(&threads_do));
        first.end();
        let positions = first.host().positions();
        let mut other = Setup::machine(&sets).persist(mode).limits(&positions).run(program(&threads_do));
        (other.memory.read, other.memory.write) = (read, write);
        other.end();
        prop_assert_eq!(other.host().positions(), positions);
        prop_assert_eq!(other.caches().counters().stale_reads, 0);
    }
}
