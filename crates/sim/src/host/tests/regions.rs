//! 4xx: regions of interest: what lies outside only warms up.

use super::*;
use crate::cache::array::State;
use crate::core::persist::PersistMode;
use fencepost_kernel::stats::StatsNode;
use fencepost_record::Info;

const BEGIN: u8 = 1;
const END: u8 = 2;
const NEXT: u8 = 3;

/// What was counted in the `number`th region.
fn region(bench: &Bench, number: usize) -> StatsNode {
    let (begin, end) = (&bench.boundaries[2 * number], &bench.boundaries[2 * number + 1]);
    assert!(begin.0.begins && !end.0.begins);
    end.1.since(&begin.1)
}

fn one_core(script: Script) -> Bench {
    on_cores(1, script)
}

#[test]
fn h401_caches_are_warm_when_a_region_begins() {
    let mut script = Script::of(&[load(RAX, RBX, line(0)), store(RBX, RCX, line(1)), marker(BEGIN)]);
    script.run(0, &[load(RAX, RBX, line(0)), store(RBX, RCX, line(1)), marker(END)]);
    let bench = one_core(script);
    assert!(bench.sent().is_empty(), "nothing was asked of memory: {:?}", bench.sent());
    let counted = region(&bench, 0);
    assert_eq!((counted.counter("core0.l1d.hits"), counted.counter("core0.l1d.misses")), (2, 0));
}

#[test]
fn h402_time_is_from_marker_to_marker() {
    let mut script = Script::of(&repeated(50, &nop()));
    script.run(0, &[marker(BEGIN)]);
    script.run(0, &[load(RAX, RBX, line(0)), marker(END)]);
    let bench = one_core(script);
    let [(true, begin), (false, end)] = bench.region_cycles()[..] else { panic!("one region") };
    assert_eq!(begin, 51, "an instruction a cycle while warming, the marker's included");
    assert_eq!(end - begin, 1 + MISS + 1, "as if the load were the first instruction of all");
}

#[test]
fn h403_only_what_a_region_does_is_counted() {
    let mut script = Script::of(&repeated(30, &load(RAX, RBX, line(0))));
    script.run(0, &[marker(BEGIN)]);
    script.run(0, &repeated(20, &load(RAX, RBX, line(0))));
    script.run(0, &[marker(END)]);
    script.run(0, &repeated(10, &load(RAX, RBX, line(0))));
    let bench = one_core(script);
    let counted = region(&bench, 0);
    assert_eq!(counted.counter("core0.instructions"), 20 + 1, "the end marker is the last of them");
    assert_eq!(bench.host().instructions(), 62);
}

#[test]
fn h404_a_region_of_a_few_instructions_is_counted_whole() {
    // Cores compute ahead: what they did must not be counted as if it had been before the region.
    let mut script = Script::of(&[marker(BEGIN), load(RAX, RBX, line(0)), load(RCX, RBX, line(0)), marker(END)]);
    script.run(0, &repeated(5, &nop()));
    let bench = one_core(script);
    let counted = region(&bench, 0);
    assert_eq!((counted.counter("core0.loads"), counted.counter("core0.instructions")), (2, 3));
}

#[test]
fn h405_each_of_several_regions_has_its_own_time_and_counters() {
    let mut script = Script::default();
    for number in 0..3 {
        script.run(0, &[marker(BEGIN)]);
        (0..=number).for_each(|part| script.run(0, &[load(RAX, RAX, line(8 * number + part))]));
        script.run(0, &[marker(END)]);
        script.run(0, &repeated(100, &nop()));
    }
    let bench = one_core(script);
    let boundaries = bench.region_cycles();
    let lengths: Vec<u64> = boundaries.chunks(2).map(|pair| pair[1].1 - pair[0].1).collect();
    assert_eq!(lengths, [1, 2, 3].map(|loads| 1 + loads * MISS + 1));
    assert_eq!([0, 1, 2].map(|number| region(&bench, number).counter("core0.loads")), [1, 2, 3]);
}

#[test]
fn h406_an_empty_region_begins_and_ends() {
    let bench = one_core(Script::of(&[nop(), marker(BEGIN), marker(END), nop()]));
    let [(true, begin), (false, end)] = bench.region_cycles()[..] else { panic!("{:?}", bench.region_cycles()) };
    assert_eq!(end, begin);
}

#[test]
fn h407_a_second_beginning_changes_nothing() {
    let bench =
        one_core(Script::of(&[marker(BEGIN), nop(), marker(BEGIN), nop(), marker(END), marker(END), marker(77)]));
    assert_eq!(bench.boundaries.len(), 2);
}

#[test]
fn h408_regions_are_process_wide() {
    let mut script = threads(1);
    for thread in 0..2 {
        (0..20).for_each(|_| is_busy(&mut script, thread, 100));
        if thread == 0 {
            script.run(0, &[marker(BEGIN)]);
        }
        script.run(thread, &[load(RAX, RBX, line(u64::from(thread)))]);
        (0..20).for_each(|_| is_busy(&mut script, thread, 100));
        if thread == 0 {
            script.run(0, &[marker(END)]);
        }
    }
    let bench = on_cores(2, script);
    let counted = region(&bench, 0);
    let instructions = [0, 1].map(|core| counted.counter(&format!("core{core}.instructions")));
    assert!(instructions.iter().all(|&instructions| (1500..2500).contains(&instructions)), "{instructions:?}");
}

#[test]
fn h409_what_was_written_while_warming_is_in_memory_in_the_region() {
    let mut script =
        Script::of(&[store(RBX, RCX, PM), clflush(RBX, PM), movnti(RBX, RCX, PM + 64), store(RBX, RCX, PM + 128)]);
    script.run(
        0,
        &[marker(BEGIN), load(RAX, RBX, PM), load(RAX, RBX, PM + 64), clwb(RBX, PM + 128), mfence(), marker(END)],
    );
    let mut bench = one_core(script);
    assert_eq!([PM, PM + 64].map(|address| bench.l1d(0, address).unwrap().version.0), [1, 1]);
    let written: Vec<u64> = bench.sent().iter().filter(|sent| sent.cycle > 0).map(|sent| sent.version.0).collect();
    assert_eq!(written.last(), Some(&1), "the line that was dirty when the region began");
    assert_eq!(bench.caches().counters().stale_reads, 0);
}

#[test]
fn h410_warming_after_a_region_waits_for_what_that_left_under_way() {
    let mut script = Script::of(&[marker(BEGIN), store(RBX, RCX, PM), clflushopt(RBX, PM), marker(END)]);
    script.run(0, &[store(RBX, RCX, PM), clflush(RBX, PM), marker(BEGIN), load(RAX, RBX, PM), marker(END)]);
    let mut bench = one_core(script);
    assert_eq!(bench.l1d(0, PM).unwrap().version.0, 2);
    assert_eq!(bench.writes().len(), 1, "the flush of the first region; the other took no time");
    assert_eq!(bench.caches().counters().stale_reads, 0);
}

#[test]
fn h411_regions_may_come_from_the_recorder() {
    let mut info = Info::default();
    info.options.roi = Some("100:200".to_owned());
    let mut script = Script::recorded_as(&info);
    is_busy(&mut script, 0, 100);
    script.event(0, |_| Event::Roi { begin: true });
    is_busy(&mut script, 0, 100);
    script.event(0, |_| Event::Roi { begin: false });
    is_busy(&mut script, 0, 100);
    let bench = one_core(script);
    let [(true, 100), (false, end)] = bench.region_cycles()[..] else { panic!("{:?}", bench.region_cycles()) };
    assert_eq!(end, 100 + 1 + 100 + 1);
    assert_eq!(region(&bench, 0).counter("core0.instructions"), 100);
}

#[test]
fn h412_a_program_without_regions_is_timed_as_a_whole() {
    let bench = one_core(Script::of(&[nop()]));
    assert!(!bench.host().is_warming() && bench.boundaries.is_empty());
}

#[test]
fn h413_a_program_that_never_comes_to_its_region_takes_no_time_of_memory() {
    let mut script = Script::of(&[load(RAX, RBX, line(0))]);
    script.event(0, |_| Event::SystemCall { number: 0, result: 0 });
    script.run(0, &[nop()]);
    let mut with_marker = script;
    with_marker.run(1, &[marker(BEGIN)]);
    let bench = Setup::machine(&["core.count=2"]).limits(&[u64::MAX, 0]).run(with_marker);
    let mut bench = bench;
    bench.end();
    assert!(bench.sent().is_empty() && bench.boundaries.is_empty());
}

#[test]
fn h414_nothing_is_inserted_while_warming() {
    let mut script = Script::of(&[store(RBX, RCX, PM)]);
    unlock(&mut script, 0, 0);
    script.run(0, &[marker(BEGIN), store(RBX, RCX, PM + 64)]);
    unlock(&mut script, 0, 0);
    script.run(0, &[marker(END)]);
    let mut bench = Setup::machine(&[]).persist(PersistMode::Sync).run(script);
    bench.end();
    assert_eq!(bench.core(0).inserted_flushes, 1, "the line that the region stored to");
    assert_eq!(bench.state(0, PM), Some(State::Modified));
}

#[test]
fn h415_threads_meet_at_their_locks_while_warming() {
    let mut script = threads(1);
    for thread in 0..2 {
        for round in 0..50 {
            lock(&mut script, thread, 0);
            script.run(thread, &[store(RBX, RCX, line(round % 3))]);
            unlock(&mut script, thread, 0);
        }
    }
    script.join(0, 1);
    script.run(0, &[marker(BEGIN), load(RAX, RBX, line(0)), marker(END)]);
    let bench = on_cores(2, script);
    assert_eq!(bench.boundaries.len(), 2);
    assert_eq!(bench.host().forced_waits(), 0);
}

#[test]
fn h416_a_region_that_follows_another_begins_while_everything_goes_on() {
    let mut script = threads(1);
    script.run(0, &[marker(BEGIN)]);
    script.run(1, &[load(RAX, RBX, line(0)), load(RCX, RBX, line(8))]);
    is_busy(&mut script, 0, 20);
    script.run(0, &[marker(NEXT)]);
    is_busy(&mut script, 0, 30);
    script.run(0, &[marker(END)]);
    let bench = on_cores(2, script);
    let [(true, begin), (true, next), (false, end)] = bench.region_cycles()[..] else { panic!("two regions") };
    assert!(next - begin < 30 && end - next < 40 && end - begin < MISS, "{begin} {next} {end}: nobody waits");
    assert_eq!([0, 1, 2].map(|at| bench.boundaries[at].0.follows_another), [false, true, false]);
    let count = |at: usize| bench.boundaries[at].1.counter("core0.instructions");
    assert_eq!([count(1) - count(0), count(2) - count(1)], [20 + 1, 30 + 1]);
}

#[test]
fn h417_no_region_follows_where_none_is_timed() {
    let bench = one_core(Script::of(&[marker(NEXT), marker(BEGIN), marker(END), marker(NEXT), nop()]));
    assert_eq!(bench.boundaries.len(), 2);
}
