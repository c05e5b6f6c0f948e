//! 7xx: fetch, branches, widths, blocks that are interrupted, system calls.

use super::{core, core_with};
use crate::cache::array::State;
use crate::host::bench::assembler::*;
use crate::host::bench::{CODE, DRAM, MISS, READ, Script, Setup, WAY_BACK, WAY_OUT};
use fencepost_kernel::message::Cause;
use fencepost_record::Event;

/// From a fetch's lookup in the instruction cache to the instructions at the core.
const FETCH: u64 = WAY_OUT + READ + WAY_BACK;
/// The front end's five cycles, behind the instruction cache's one.
const REDIRECT: u64 = 5 + 1;

fn line(number: u64) -> u64 {
    DRAM + 64 * number
}

#[test]
fn s701_as_many_instructions_dispatch_in_a_cycle_as_the_core_is_wide() {
    for (width, cycles) in [(8, 2), (4, 4), (1, 16)] {
        let sets =
            [format!("core.dispatch_width={width}"), "core.integer_ports=8".into(), "core.commit_width=16".into()];
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        let mut bench = core_with(&sets, &repeated(16, &nop()));
        assert_eq!(bench.end(), 3 + cycles - 1, "{width} a cycle");
    }
}

#[test]
fn s702_as_many_instructions_commit_in_a_cycle_as_the_core_is_wide() {
    let mut program = vec![load(RAX, RBX, DRAM)];
    program.extend(repeated(15, &nop()));
    let mut bench = core_with(&["core.commit_width=4"], &program);
    assert_eq!(bench.end(), 1 + MISS + 1 + 3, "16 instructions in four cycles, the first behind the miss");
}

#[test]
fn s703_units_of_a_kind_are_shared_in_program_order() {
    let mut bench = core_with(
        &["core.multiply_ports=1"],
        &[multiply(RAX, RBX), multiply(RCX, RBX), multiply(RDX, RBX), multiply(RSI, RBX)],
    );
    let latency = 3;
    assert_eq!(bench.end(), 1 + 3 + latency + 1, "pipelined: one starts each cycle");
}

#[test]
fn s704_a_wrong_prediction_costs_the_branch_s_lateness_and_the_way_from_fetch_to_dispatch() {
    let mut script = Script::of(&[load(RAX, RBX, line(0)), test(RAX), jump_if_not_zero()]);
    script.run(0, &[load(RCX, RBX, line(1))]);
    let mut bench = Setup::machine(&[]).run(script);
    bench.end();
    let resolved = 1 + MISS + 1 + 1;
    assert_eq!(bench.reads(), [1 + WAY_OUT, resolved + REDIRECT + 1 + WAY_OUT]);
    assert_eq!((bench.core(0).branches, bench.core(0).mispredictions), (1, 1));
}

#[test]
fn s705_the_first_cycle_after_a_redirection_is_as_wide_as_any() {
    let mut script = Script::of(&[nop(), nop(), nop(), nop(), test(RAX), jump_if_not_zero()]);
    script.run(0, &repeated(8, &nop()));
    let mut bench = Setup::machine(&["core.integer_ports=8"]).run(script);
    let resolved = 3;
    assert_eq!(bench.end(), resolved + REDIRECT + 3, "eight instructions dispatch together");
}

#[test]
fn s706_a_right_prediction_costs_nothing_however_late_the_branch_is() {
    let mut script = Script::default();
    let body = [load(RAX, RAX, line(0)), test(RAX), jump_if_not_zero()];
    for _ in 0..40 {
        script.run(0, &body);
    }
    let taken = [load(RAX, RAX, line(1)), test(RAX), jump_if_not_zero()];
    script.run(0, &body);
    script.run(0, &body);
    script.run(0, &taken);
    let mut bench = Setup::machine(&[]).run(script);
    bench.end();
    let wrong = bench.core(0).mispredictions;
    assert!(wrong < 20, "{wrong} wrong predictions of a loop");
    assert_eq!(bench.core(0).branches, 42);
}

#[test]
fn s707_a_branch_s_prediction_is_judged_by_its_own_resolution_whatever_was_dispatched_since() {
    // A flush is inserted between the branch and where it leads to.
    let mut script = Script::of(&[test(RAX), jump_if_not_zero()]);
    script.event(0, |clock| Event::MutexUnlock { clock, object: line(0) });
    script.run(0, &[load(RCX, RBX, line(1))]);
    let mut bench = Setup::machine(&["core.rob_entries=16"]).run(script);
    bench.warm(0, line(0), crate::cache::hierarchy::Want::Own);
    bench.end();
    let access_commits = 1 + 1 + 1 + 1;
    let resolved = 3;
    assert_eq!(bench.reads(), [(resolved + REDIRECT).max(access_commits) + 1 + WAY_OUT]);
}

#[test]
fn s708_the_first_fetch_of_a_line_holds_dispatch() {
    let mut bench = Setup::machine(&[]).cold_code().run(Script::of(&[nop()]));
    assert_eq!(bench.end(), FETCH + 3);
    assert_eq!(bench.reads(), [WAY_OUT]);
    assert_eq!(bench.sent()[0].cause, Cause::InstructionFetch);
    assert_eq!((bench.counter("core0.l1i.hits"), bench.counter("core0.l1i.misses")), (0, 1));
}

#[test]
fn s709_a_block_s_lines_are_fetched_one_after_the_other() {
    let mut bench = Setup::machine(&[]).cold_code().run(Script::of(&repeated(100, &nop())));
    bench.end();
    assert_eq!(bench.reads(), [WAY_OUT, FETCH + WAY_OUT]);
    assert_eq!((bench.counter("core0.l1i.hits"), bench.counter("core0.l1i.misses")), (0, 2));
}

#[test]
fn s710_code_that_was_fetched_is_there_the_next_time() {
    let mut script = Script::of(&[load(RAX, RBX, line(0))]);
    script.run(0, &[nop()]);
    script.run(0, &[load(RAX, RBX, line(0))]);
    let mut bench = Setup::machine(&[]).cold_code().run(script);
    bench.end();
    let fetches = bench.sent().iter().filter(|sent| sent.cause == Cause::InstructionFetch).count();
    assert_eq!(fetches, 2);
    assert_eq!(bench.counter("core0.l1i.hits"), 1);
}

#[test]
fn s711_counters_can_be_read_while_a_fetch_is_under_way() {
    let mut bench = Setup::machine(&[]).cold_code().run(Script::of(&[nop()]));
    bench.run_until(20);
    assert_eq!((bench.counter("core0.l1i.hits"), bench.counter("core0.l1i.misses")), (0, 1));
}

#[test]
fn s712_an_interrupted_block_executes_its_first_instructions_only() {
    let mut script = Script::of(&[load(RAX, RBX, line(0)), load(RAX, RBX, line(1)), load(RAX, RBX, line(2))]);
    script.event(0, |_| Event::Interrupted { instructions: 2 });
    let mut bench = Setup::machine(&[]).run(script);
    bench.end();
    assert_eq!(bench.reads().len(), 2);
    assert_eq!(bench.core(0).instructions, 2);
    assert_eq!(bench.host().positions(), [2]);
}

#[test]
fn s713_a_block_interrupted_before_its_first_instruction_executes_nothing() {
    let mut script = Script::of(&[load(RAX, RBX, line(0))]);
    script.event(0, |_| Event::Interrupted { instructions: 0 });
    script.run(0, &[nop()]);
    let mut bench = Setup::machine(&[]).run(script);
    assert_eq!(bench.end(), 3);
    assert_eq!(bench.core(0).instructions, 1);
}

#[test]
fn s714_a_branch_that_was_not_executed_is_not_predicted() {
    let mut script = Script::of(&[load(RAX, RBX, line(0)), test(RAX), jump_if_not_zero()]);
    script.event(0, |_| Event::Interrupted { instructions: 1 });
    script.run(0, &[load(RCX, RBX, line(1))]);
    let mut bench = Setup::machine(&[]).run(script);
    bench.end();
    assert_eq!(bench.reads(), [1 + WAY_OUT; 2]);
    assert_eq!(bench.core(0).branches, 0);
}

#[test]
fn s715_a_system_call_waits_for_what_is_before_it_and_takes_its_time() {
    let mut script = Script::of(&[load(RAX, RBX, line(0))]);
    script.event(0, |_| Event::SystemCall { number: 1, result: 0 });
    script.run(0, &[load(RAX, RBX, line(1))]);
    let mut bench = Setup::machine(&["core.system_call_ns=25"]).run(script);
    bench.end();
    let committed = 1 + MISS + 1;
    assert_eq!(bench.reads(), [1 + WAY_OUT, committed + 100 + 1 + WAY_OUT]);
    assert_eq!(bench.core(0).system_calls, 1);
}

#[test]
fn s716_a_result_in_three_registers_is_whole() {
    // `div` writes rax, rdx and the flags.
    for register in [RAX, RDX] {
        let mut bench = core(&[divide(), load(RCX, register, line(0))]);
        bench.end();
        let [read] = bench.reads()[..] else { panic!("one read") };
        assert!(
            (1 + 20 + WAY_OUT..=1 + 21 + WAY_OUT).contains(&read),
            "{register:?}: the quotient takes 20 cycles, not {read}"
        );
    }
}

#[test]
fn s717_a_store_s_state_is_seen_only_after_the_whole_program_before_it() {
    let mut bench = core(&[load(RAX, RBX, line(0)), store(RBX, RCX, line(1))]);
    bench.run_until(MISS - 2);
    assert_ne!(bench.state(0, line(1)), Some(State::Modified));
    assert_eq!(bench.end(), 1 + MISS + 1 + 1, "the store commits with the load and has its turn in the next cycle");
}

/// A block that fills a line and ends with a call: where it returns to is the next line. `what` makes it a block of its
/// own.
fn calling(what: &Instruction) -> Vec<Instruction> {
    let mut block = vec![what.clone()];
    block.extend(repeated(59 - what.bytes.len(), &nop()));
    block.push(call(DRAM));
    block
}

/// Four functions in each other, the innermost with a lock and an unlock through the same stub; `within` comes behind
/// the unlock.
fn nested_calls(script: &mut Script, within: &[Instruction]) {
    let returning = |what: Instruction| vec![what, ret(DRAM)];
    let [outer, middle, inner] = [add(RAX, RAX), add(RCX, RCX), add(RDX, RDX)].map(|what| calling(&what));
    let [locks, unlocks] = [add(RSI, RSI), add(RDI, RDI)].map(|what| calling(&what));
    let [from_middle, from_inner] = [zero(RCX), zero(RDX)].map(returning);
    let mut from_locked = within.to_vec();
    from_locked.extend(returning(zero(RSI)));
    let (end, stub) = (vec![zero(RAX)], vec![jump_through(DRAM)]);
    let in_order = [&outer, &end, &middle, &from_middle, &inner, &from_inner, &locks, &unlocks, &from_locked, &stub];
    in_order.into_iter().for_each(|block| _ = script.place(block));
    [&outer, &middle, &inner, &locks, &stub].into_iter().for_each(|block| script.run(0, block));
    script.event(0, |clock| Event::MutexLock { clock, object: line(0) });
    [&unlocks, &stub].into_iter().for_each(|block| script.run(0, block));
    script.event(0, |clock| Event::MutexUnlock { clock, object: line(0) });
    [&from_locked, &from_inner, &from_middle, &end].into_iter().for_each(|block| script.run(0, block));
}

#[test]
fn s718_calls_whose_inside_is_not_recorded_do_not_lead_returns_astray() {
    let mut script = Script::default();
    (0..20).for_each(|_| nested_calls(&mut script, &[]));
    let mut bench = Setup::machine(&[]).run(script);
    bench.end();
    assert_eq!((bench.core(0).branches, bench.core(0).mispredictions), (20 * 10, 0));
}

#[test]
fn s719_nor_do_they_while_warming() {
    let mut script = Script::default();
    nested_calls(&mut script, &[marker(1)]);
    let mut bench = Setup::machine(&[]).run(script);
    bench.end();
    assert_eq!((bench.core(0).branches, bench.core(0).mispredictions), (3, 0));
}

#[test]
fn s720_a_futex_wake_has_no_call_of_its_own() {
    let mut script = Script::default();
    let (outer, end, inner) = (calling(&add(RAX, RAX)), vec![nop()], vec![zero(RAX)]);
    let behind = vec![zero(RCX), ret(DRAM)];
    [&outer, &end, &inner, &behind].into_iter().for_each(|block| _ = script.place(block));
    script.run(0, &outer);
    script.run(0, &inner);
    script.event(0, |clock| Event::FutexWake { clock, object: line(0), woken: 0 });
    script.run(0, &behind);
    script.run(0, &end);
    let mut bench = Setup::machine(&[]).run(script);
    bench.end();
    assert_eq!((bench.core(0).branches, bench.core(0).mispredictions), (2, 0));
}

#[test]
fn s721_a_redirected_fetch_takes_the_instruction_cache_s_latency() {
    let end = |latency: &str| {
        let mut script = Script::of(&[test(RAX), jump_if_not_zero()]);
        script.run(0, &[nop()]);
        Setup::machine(&[latency]).run(script).end()
    };
    assert_eq!(end("cache.l1i.latency_cycles=9"), end("cache.l1i.latency_cycles=1") + 8);
}

#[test]
fn s722_a_fetch_that_misses_looks_for_its_line_first() {
    let mut bench = Setup::machine(&["cache.l1i.latency_cycles=9"]).cold_code().run(Script::of(&[nop()]));
    assert_eq!(bench.end(), FETCH + 8 + 3);
    assert_eq!(bench.reads(), [WAY_OUT + 8]);
}

#[test]
fn s723_instructions_and_data_take_the_way_from_their_first_level_to_the_core() {
    let sets = ["cache.l1i.response_cycles=7", "cache.l1d.response_cycles=11"];
    let mut bench = Setup::machine(&sets).cold_code().run(Script::of(&[nop()]));
    assert_eq!(bench.end(), FETCH + 7 + 3);
    let mut bench = Setup::machine(&sets).run(Script::of(&[load(RAX, RBX, line(0))]));
    assert_eq!(bench.end(), 1 + MISS + 11 + 1);
}

#[test]
fn s724_code_of_the_vdso_is_executed_or_passed_over() {
    for (vdso, reads) in [("executed", 2), ("emulated", 1)] {
        let set = format!("core.vdso=\"{vdso}\"");
        let script = Script::of(&[load(RAX, RBX, line(0))]).then(0, &[load(RCX, RBX, line(1)), nop()]);
        let mut bench = Setup::machine(&[&set]).vdso(CODE + 64..CODE + 128).run(script);
        bench.end();
        assert_eq!((bench.reads().len(), bench.core(0).instructions), (reads, 3), "{vdso}");
    }
}
