//! 11xx: which instructions persist, and which fences wait for them.

use std::collections::BTreeSet;

use super::{FIRST_TURN, core};
use crate::cache::hierarchy::Want;
use crate::cache::persist_sites::PersistSite;
use crate::core::persist::PersistMode;
use crate::host::bench::assembler::*;
use crate::host::bench::{Bench, DRAM, PM, Script, Setup, WAY_BACK, WAY_OUT, WRITE};
use fencepost_isa::micro_op::{Fence, Flush, Operation};
use fencepost_record::Event;

const FLUSH: u64 = WAY_OUT + WRITE + WAY_BACK;
/// When a flush that is the first instruction is acknowledged.
const FLUSHED: u64 = FIRST_TURN + FLUSH;
const CYCLE_PS: u64 = 250;
const STACK: u64 = DRAM + 0x9000;

fn line(number: u64) -> u64 {
    PM + 64 * number
}

/// Runs to the end with the first `lines` dirty at the start; gives the sites in the order in which they came up.
fn sites(mut bench: Bench, lines: u64) -> (Vec<PersistSite>, Bench) {
    for number in 0..lines {
        bench.warm(0, line(number), Want::Own);
    }
    bench.log_sites();
    bench.end();
    let found = bench.host().persist_sites().next().expect("they are asked for").sites().to_vec();
    (found, bench)
}

fn cycles(ps: u64) -> u64 {
    assert_eq!(ps % CYCLE_PS, 0);
    ps / CYCLE_PS
}

fn cycles_of(site: &PersistSite) -> u64 {
    cycles(site.persists.latency().sum().as_ps())
}

#[test]
fn s1101_a_flush_of_a_line_that_is_always_clean_persists_nothing() {
    let mut script = Script::default();
    for _ in 0..3 {
        script.run(0, &[store(RBX, RCX, line(0)), clflushopt(RBX, line(0)), clflushopt(RBX, line(1)), sfence()]);
    }
    let (sites, bench) = sites(Setup::machine(&[]).run(script), 0);
    let [dirty, clean, fence] = &sites[..] else { panic!("three instructions, not {sites:?}") };
    assert_eq!((dirty.lines, dirty.clean, dirty.persists.count()), (3, 0, 3));
    assert_eq!((clean.lines, clean.clean, clean.behind_writes, clean.persists.count()), (3, 3, 0, 0));
    assert_eq!(cycles_of(dirty), 3 * WRITE);
    assert_eq!(fence.executions, 3);
    assert_eq!(clean.fence_wait_ps, 0, "nothing waits for what sends nothing, behind a flush that takes longer");
    assert_eq!(dirty.persists.parts_ps(), bench.caches().counters().persists.parts_ps());
}

#[test]
fn s1102_a_fence_waits_for_its_flush_from_its_turn_on() {
    let (sites, bench) = sites(core(&[clflushopt(RBX, line(0)), sfence()]), 1);
    let [flush, fence] = &sites[..] else { panic!("two instructions") };
    // The fence commits with the flush, and its turn comes one cycle after the flush's.
    let (alone, turn) = (FIRST_TURN, FIRST_TURN + 1);
    assert_eq!(cycles(fence.waited_ps), FLUSHED - alone);
    assert_eq!(fence.stall.sum(), bench.core(0).fence_stall.sum());
    assert_eq!(cycles(flush.fence_wait_ps), FLUSHED - turn);
    assert_eq!(cycles(fence.stores_ps), turn - alone);
    assert_eq!(fence.waited_for.iter().map(|(&site, &ps)| (site, ps)).collect::<Vec<_>>(), [(0, flush.fence_wait_ps)]);
}

#[test]
fn s1103_a_fence_waits_for_the_flush_whose_acknowledgement_comes_last() {
    for slow in 0..2 {
        let mut bench = core(&[clflushopt(RBX, line(0)), clwb(RBX, line(1)), sfence()]);
        let slow_line = bench.line(line(slow));
        bench.memory.slow.insert(slow_line, 5 * WRITE);
        let (sites, _) = sites(bench, 2);
        let waits = [sites[0].fence_wait_ps > 0, sites[1].fence_wait_ps > 0];
        assert_eq!(waits, [slow == 0, slow == 1], "line {slow} is the slow one");
        assert!(cycles(sites[slow as usize].fence_wait_ps) > 4 * WRITE);
    }
}

#[test]
fn s1104_a_fence_behind_clflushes_waits_for_each_while_it_holds_the_store_queue() {
    let (sites, _) = sites(core(&[clflush(RBX, line(0)), clflush(RAX, line(1)), mfence()]), 2);
    let [first, second, fence] = &sites[..] else { panic!("three instructions") };
    assert_eq!([cycles(first.held_ps), cycles(second.held_ps)], [FLUSH, FLUSH]);
    assert_eq!([first.fence_wait_ps, second.fence_wait_ps], [first.held_ps, second.held_ps]);
    assert_eq!(fence.waited_ps, first.fence_wait_ps + second.fence_wait_ps + fence.stores_ps);
}

#[test]
fn s1105_no_instant_of_a_core_is_charged_twice() {
    let program = [clflushopt(RBX, line(0)), sfence(), clflushopt(RBX, line(1)), sfence()];
    let mut bench = core(&program);
    (0..2).for_each(|number| bench.warm(0, line(number), Want::Own));
    bench.log_sites();
    let end = bench.end();
    let sites = bench.host().persist_sites().next().expect("they are asked for").sites();
    let stall: u64 = sites.iter().map(|site| cycles(site.stall.sum().as_ps())).sum();
    let waited: u64 = sites.iter().map(|site| cycles(site.waited_ps)).sum();
    assert!(stall > end, "both fences commit early, and their stalls overlap");
    assert!(waited <= end && waited > 2 * WRITE, "{waited} of {end} cycles");
    let charged: u64 = sites.iter().map(|site| cycles(site.fence_wait_ps + site.stores_ps)).sum();
    assert_eq!(charged, waited);
}

#[test]
fn s1106_a_flush_behind_the_write_of_its_line_waits_and_sends_nothing() {
    let (sites, _) = sites(core(&[clflushopt(RBX, line(0)), clflushopt(RAX, line(0)), sfence()]), 1);
    assert_eq!((sites[0].clean, sites[1].clean, sites[1].behind_writes), (0, 1, 1));
    assert!(sites[1].fence_wait_ps > 0, "its acknowledgement is that of the write, and is the last");
}

#[test]
fn s1107_a_combined_line_belongs_to_the_youngest_of_its_stores() {
    let quarters = [movntdq(RBX, line(0)), movntdq(RBX, line(0) + 16), movntdq(RBX, line(0) + 32), sfence()];
    let (sites, _) = sites(core(&quarters), 0);
    let lines: Vec<u64> = sites.iter().map(|site| site.lines).collect();
    assert_eq!(lines, [0, 0, 1, 0]);
    assert_eq!(sites[2].persists.count(), 1);
    assert!(sites[2].fence_wait_ps > 0);
}

#[test]
fn s1108_a_function_is_told_apart_by_who_called_it() {
    let mut script = Script::default();
    let (function, stub) = ([clflushopt(RBX, line(0)), ret(STACK)], [jump_through(DRAM)]);
    let callers = [[nop(), call(STACK)], [zero(RAX), call(STACK)]];
    let numbers = callers.each_ref().map(|caller| script.place(caller));
    for caller in [0, 1, 0] {
        script.run(0, &callers[caller]);
        script.run(0, &stub);
        // A function that has returned is not the one that called.
        script.run(0, &[lea(RAX, RBX), call(STACK)]);
        script.run(0, &[nop(), ret(STACK)]);
        script.run(0, &function);
    }
    let (sites, _) = sites(Setup::machine(&[]).run(script), 0);
    let found: Vec<(u32, u64)> = sites.iter().map(|site| (site.key.caller, site.lines)).collect();
    assert_eq!(found, [(numbers[0], 2), (numbers[1], 1)]);
}

#[test]
fn s1109_a_loop_keeps_its_caller_and_a_new_frame_does_not_show_it() {
    let mut script = Script::default();
    let caller = [nop(), call(STACK)];
    let number = script.place(&caller);
    script.run(0, &caller);
    (0..5).for_each(|_| script.run(0, &[clwb(RBX, line(0)), jump_if_not_zero()]));
    script.end_frames();
    script.run(0, &[clwb(RBX, line(0)), jump_if_not_zero()]);
    let (sites, _) = sites(Setup::machine(&[]).run(script), 0);
    let found: Vec<(u32, u64)> = sites.iter().map(|site| (site.key.caller, site.lines)).collect();
    assert_eq!(found, [(number, 5), (0, 1)]);
}

/// Two blocks of a program that call a function of a library, whose inner function flushes; all its blocks load.
fn library_calls() -> (Script, [u32; 2], [u32; 3]) {
    let mut script = Script::default();
    let outer = [nop(), load(RAX, RBX, line(7)), call(STACK)];
    let inner = [clwb(RBX, line(0)), load(RAX, RBX, line(8)), ret(STACK)];
    let after = [load(RAX, RBX, line(9)), ret(STACK)];
    let program = [[nop(), call(STACK)], [zero(RAX), call(STACK)]];
    let numbers = program.each_ref().map(|caller| script.place(caller));
    let library = [script.place(&outer), script.place(&inner), script.place(&after)];
    for caller in [0, 1] {
        script.run(0, &program[caller]);
        script.run(0, &outer);
        script.run(0, &inner);
        script.run(0, &after);
    }
    (script, numbers, library)
}

#[test]
fn s1115_a_library_without_source_lines_persists_for_the_line_that_called_it() {
    let (_, numbers, library) = library_calls();
    let callers = |without_source: &[u32]| {
        let mut bench = Setup::machine(&[]).run(library_calls().0);
        bench.log_sites_without_source(without_source);
        bench.end();
        let sites = bench.host().persist_sites().next().expect("they are asked for").sites();
        let flushes: Vec<u32> = sites.iter().map(|site| site.key.caller).collect();
        let accesses = bench.host().access_sites().expect("they are asked for").sites();
        let of_library = accesses.iter().map(|site| site.key).filter(|key| library.contains(&key.block));
        (flushes, of_library.map(|key| (key.block, key.caller)).collect::<BTreeSet<_>>())
    };
    let (flushes, accesses) = callers(&library);
    assert_eq!(flushes, numbers);
    let expected = numbers.iter().flat_map(|caller| library.map(|block| (block, *caller)));
    assert_eq!(accesses, expected.collect());
    let unknown = BTreeSet::from(library.map(|block| (block, 0)));
    assert_eq!(callers(&[]), (vec![library[0]], unknown.clone()));
    // Of a program without any source lines, the call itself is all that can be named.
    assert_eq!(callers(&[library.as_slice(), numbers.as_slice()].concat()), (vec![library[0]], unknown));
}

#[test]
fn s1110_an_inserted_persist_belongs_to_the_call_that_releases() {
    let mut script = Script::default();
    let release = [store(RBX, RCX, line(1)), call(STACK)];
    let number = script.place(&release);
    script.run(0, &release);
    script.run(0, &[jump_through(DRAM)]);
    script.event(0, |clock| Event::MutexUnlock { clock, object: DRAM + 0x8000 });
    let (sites, _) = sites(Setup::machine(&[]).persist(PersistMode::Sync).run(script), 0);
    let keys: Vec<_> = sites.iter().map(|site| (site.key.block, site.key.operation, site.key.is_inserted)).collect();
    let [flush, fence, release] = keys[..] else { panic!("a flush, a fence and the access to the mutex: {keys:?}") };
    assert_eq!(flush, (number, Operation::Flush(Flush::CLFLUSH), true));
    assert_eq!(fence, (number, Operation::Fence(Fence::MFENCE), true));
    assert_eq!(release, (number, Operation::Atomic(Fence::MFENCE), true));
    assert_eq!(sites[0].persists.count(), 1);
    assert!(sites[0].fence_wait_ps > 0);
}

#[test]
fn s1113_an_inserted_persist_belongs_to_the_locked_instruction_that_it_stands_before() {
    let program = [store(RBX, RCX, line(1)), locked_add(RBX, RCX, line(2))];
    let bench = Setup::machine(&[]).persist(PersistMode::Sync).run(Script::of(&program));
    let (sites, _) = sites(bench, 0);
    let inserted: Vec<_> = sites.iter().filter(|site| site.key.is_inserted && site.key.block != 0).collect();
    assert_eq!((inserted[0].key.micro_op, inserted[0].lines), (1, 1));
}

#[test]
fn s1114_the_inside_of_a_synchronisation_function_does_not_hide_the_caller() {
    let mut script = Script::default();
    let caller = [nop(), call(STACK)];
    let number = script.place(&caller);
    script.run(0, &caller);
    script.run(0, &[nop(), call(STACK + 8)]);
    script.event(0, |_| Event::CallBegin);
    script.event(0, |clock| Event::MutexLock { clock, object: DRAM + 0x8000 });
    script.run(0, &[locked_add(RBX, RCX, DRAM + 0x8000), ret(STACK + 8)]);
    script.event(0, |_| Event::CallEnd);
    script.run(0, &[clwb(RBX, line(0))]);
    let (sites, _) = sites(Setup::machine(&[]).run(script), 0);
    let flush = sites.iter().find(|site| site.key.operation == Operation::Flush(Flush::CLWB)).expect("it flushes");
    assert_eq!(flush.key.caller, number);
}

#[test]
fn s1111_a_persist_inserted_after_a_store_belongs_to_that_store() {
    let program = [nop(), store(RBX, RCX, line(1)), nop()];
    let bench = Setup::machine(&[]).persist(PersistMode::Every(1)).run(Script::of(&program));
    let (sites, _) = sites(bench, 0);
    assert_eq!((sites[0].key.micro_op, sites[0].lines), (1, 1));
}

#[test]
fn s1112_nothing_is_counted_while_time_does_not_count() {
    let mut bench = core(&[clflushopt(RBX, line(0)), sfence()]);
    bench.warm(0, line(0), Want::Own);
    bench.log_sites();
    bench.pause_sites();
    bench.end();
    let sites = bench.host().persist_sites().next().expect("they are asked for").sites();
    assert!(sites.iter().all(|site| site.lines + site.persists.count() + site.executions + site.waited_ps == 0));
}
