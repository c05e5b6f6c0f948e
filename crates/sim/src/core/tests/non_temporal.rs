//! 5xx: non-temporal stores and the buffers they combine in.

use super::{FIRST_TURN, core, core_with};
use crate::cache::hierarchy::Want;
use crate::host::bench::assembler::*;
use crate::host::bench::{PM, WAY_BACK, WRITE};
use fencepost_kernel::line::ByteMask;
use fencepost_kernel::message::{Cause, Opcode};

fn line(number: u64) -> u64 {
    PM + 64 * number
}

fn quarters(of: u64) -> Vec<Instruction> {
    (0..4).map(|part| movntdq(RBX, of + 16 * part)).collect()
}

#[test]
fn s501_stores_to_all_of_a_line_leave_as_one_full_write() {
    let mut bench = core(&quarters(line(0)));
    let filled = FIRST_TURN + 3;
    assert_eq!(bench.end(), filled + WRITE + WAY_BACK);
    let [sent] = *bench.sent() else { panic!("one message, not {:?}", bench.sent()) };
    assert_eq!((sent.cycle, sent.opcode, sent.mask), (filled, Opcode::MemWr, ByteMask::FULL));
    assert_eq!((sent.cause, sent.version.0), (Cause::NonTemporalStore, 1));
    assert_eq!(bench.core(0).non_temporal_stores, 4);
    assert_eq!(bench.caches().counters().non_temporal, 1);
}

#[test]
fn s502_a_store_of_a_whole_line_leaves_at_once() {
    let mut bench = core(&[movntdq_64(line(0)), movntdq_64(line(1))]);
    bench.end();
    assert_eq!(bench.writes(), [FIRST_TURN, FIRST_TURN + 1]);
}

#[test]
fn s503_a_fence_sends_what_is_there_with_its_mask() {
    let mut bench = core(&[movnti(RBX, RCX, line(0) + 8), movnti(RBX, RCX, line(0) + 56), sfence()]);
    bench.end();
    let [sent] = *bench.sent() else { panic!("one message, not {:?}", bench.sent()) };
    assert_eq!((sent.opcode, sent.mask), (Opcode::MemWrPtl, ByteMask(0xff00_0000_0000_ff00)));
    assert_eq!(sent.cycle, FIRST_TURN + 2);
}

#[test]
fn s504_the_end_of_a_thread_sends_what_is_there() {
    let mut bench = core(&[movnti(RBX, RCX, line(0))]);
    bench.end();
    assert_eq!(bench.sent()[0].mask, ByteMask(0xff));
}

#[test]
fn s505_stores_to_several_lines_combine_in_any_order() {
    let mut program = Vec::new();
    for part in 0..4 {
        program.extend([movntdq(RBX, line(0) + 16 * part), movntdq(RBX, line(1) + 16 * part)]);
    }
    let mut bench = core(&program);
    bench.end();
    assert!(bench.sent().iter().all(|sent| sent.opcode == Opcode::MemWr));
    assert_eq!(bench.writes(), [FIRST_TURN + 6, FIRST_TURN + 7]);
}

#[test]
fn s506_a_store_without_a_buffer_drives_the_oldest_out() {
    let program = [movnti(RBX, RCX, line(0)), movnti(RBX, RCX, line(1)), movnti(RBX, RCX, line(2))];
    let mut bench = core_with(&["core.write_combining_buffers=2"], &program);
    bench.end();
    assert_eq!(bench.writes()[0], FIRST_TURN + 2, "the third needs room");
    let first = bench.line(line(0));
    assert_eq!(bench.sent()[0].line, first);
    assert_eq!(bench.writes().len(), 3);
}

#[test]
fn s507_a_store_across_two_lines_fills_both() {
    let mut program: Vec<_> = (0..3).map(|part| movntdq(RBX, line(0) + 8 + 16 * part)).collect();
    program.extend([movnti(RBX, RCX, line(0)), movntdq(RBX, line(0) + 56)]);
    let mut bench = core(&program);
    bench.end();
    let masks: Vec<_> = bench.sent().iter().map(|sent| sent.mask).collect();
    assert_eq!(masks, [ByteMask::FULL, ByteMask(0xff)]);
    assert_eq!(bench.writes()[0], FIRST_TURN + 4);
}

#[test]
fn s508_a_store_that_fills_two_lines_sends_both() {
    let mut program = vec![movnti(RBX, RCX, line(0))];
    program.extend((0..7).map(|part| movnti(RBX, RCX, line(1) + 8 + 8 * part)));
    program.push(movntdq_64(line(0) + 8));
    let mut bench = core(&program);
    bench.end();
    let turn = FIRST_TURN + 8;
    assert_eq!(bench.writes(), [turn, turn]);
}

#[test]
fn s509_a_store_to_a_line_that_is_dirty_in_a_cache_writes_all_of_it() {
    let mut bench = core(&[movnti(RBX, RCX, line(0)), sfence()]);
    bench.warm(0, line(0), Want::Own);
    bench.end();
    let [sent] = *bench.sent() else { panic!("one message, not {:?}", bench.sent()) };
    assert_eq!((sent.opcode, sent.mask, sent.version.0), (Opcode::MemWr, ByteMask::FULL, 2));
    assert_eq!(bench.l1d(0, line(0)).map(|line| line.version), None);
}

#[test]
fn s510_a_store_to_a_line_that_is_clean_in_a_cache_takes_the_copy_away() {
    let mut bench = core(&[movnti(RBX, RCX, line(0)), sfence()]);
    bench.warm(0, line(0), Want::Read);
    bench.end();
    assert_eq!(bench.sent()[0].mask, ByteMask(0xff));
    assert_eq!(bench.state(0, line(0)), None);
}

#[test]
fn s511_no_more_are_in_flight_than_the_core_can_track() {
    let program: Vec<_> = (0..3).map(|number| movntdq_64(line(number))).collect();
    let mut bench = core_with(&["core.flushes_in_flight=1", "core.write_combining_buffers=1"], &program);
    bench.end();
    let round = WRITE + WAY_BACK;
    assert_eq!(bench.writes(), [FIRST_TURN, FIRST_TURN + round, FIRST_TURN + 2 * round]);
}

#[test]
fn s512_a_full_buffer_leaves_as_soon_as_it_may() {
    // The second line is full while the first is in flight, and the thread is far from its end when that comes back.
    let mut program = vec![movntdq_64(line(0)), movntdq_64(line(1))];
    program.extend((0..8).map(|number| load(RAX, RAX, line(8 + number))));
    let mut bench = core_with(&["core.flushes_in_flight=1"], &program);
    bench.end();
    assert_eq!(bench.writes(), [FIRST_TURN, FIRST_TURN + WRITE + WAY_BACK]);
}

#[test]
fn s513_a_load_that_is_under_way_does_not_bring_the_old_line_back() {
    let mut bench =
        core(&[load(RAX, RBX, line(0)), movnti(RBX, RCX, line(0)), sfence(), mfence(), load(RAX, RBX, line(0))]);
    bench.end();
    assert_eq!(bench.l1d(0, line(0)).unwrap().version.0, 1);
    assert_eq!(bench.caches().counters().stale_reads, 0);
}

/// So many dependent multiplications, and a load that waits for them.
fn load_after(multiplications: usize, address: u64) -> Vec<Instruction> {
    let mut program = repeated(multiplications, &multiply(RAX, RAX));
    program.push(load(RDX, RAX, address));
    program
}

#[test]
fn s514_a_load_of_a_line_that_is_being_combined_sends_it_and_waits_for_it() {
    let mut program = vec![movnti(RBX, RCX, line(0))];
    program.extend(load_after(10, line(0) + 32));
    let mut bench = core(&program);
    bench.end();
    let first = bench.line(line(0));
    let [write, read] = bench.sent() else { panic!("two messages, not {:?}", bench.sent()) };
    assert_eq!((write.opcode, write.mask), (Opcode::MemWrPtl, ByteMask(0xff)));
    assert_eq!((read.opcode, read.line), (Opcode::MemRd, first));
    assert!(read.cycle >= write.cycle + WRITE, "{} after {}", read.cycle, write.cycle);
    assert_eq!(bench.l1d(0, line(0)).unwrap().version.0, 1, "it got what was stored");
}

#[test]
fn s515_a_load_finds_no_older_copy_in_the_cache() {
    let mut program = vec![movnti(RBX, RCX, line(0))];
    program.extend(load_after(10, line(0)));
    let mut bench = core(&program);
    bench.warm(0, line(0), Want::Read);
    bench.end();
    assert_eq!(bench.l1d(0, line(0)).unwrap().version.0, 1);
    assert_eq!(bench.core(0).l1d_hits, 0);
}

#[test]
fn s516_a_load_waits_until_the_limit_lets_its_line_go() {
    let mut program = vec![movntdq_64(line(1)), movnti(RBX, RCX, line(0))];
    program.extend(load_after(10, line(0)));
    let mut bench = core_with(&["core.flushes_in_flight=1"], &program);
    bench.end();
    assert_eq!(bench.writes(), [FIRST_TURN, FIRST_TURN + WRITE + WAY_BACK]);
    assert_eq!(bench.l1d(0, line(0)).unwrap().version.0, 1);
}

#[test]
fn s517_a_load_waits_for_a_store_that_is_in_the_queue() {
    let mut bench = core(&[movnti(RBX, RCX, line(0)), load(RDX, RBX, line(0))]);
    bench.end();
    let [write, read] = bench.sent() else { panic!("two messages, not {:?}", bench.sent()) };
    assert_eq!((write.opcode, write.cycle, read.opcode), (Opcode::MemWrPtl, FIRST_TURN, Opcode::MemRd));
    assert!(read.cycle >= FIRST_TURN + WRITE, "{}", read.cycle);
    assert_eq!(bench.l1d(0, line(0)).unwrap().version.0, 1, "it got what was stored");
}

#[test]
fn s518_loads_of_other_lines_wait_for_nothing() {
    let mut program = vec![movnti(RBX, RCX, line(0))];
    program.extend(load_after(10, line(1)));
    let mut bench = core(&program);
    bench.end();
    let other = bench.line(line(1));
    let [write, read] = bench.sent() else { panic!("two messages, not {:?}", bench.sent()) };
    assert_eq!((read.opcode, read.line, write.opcode), (Opcode::MemRd, other, Opcode::MemWrPtl));
    assert!(read.cycle < write.cycle + WRITE, "{} behind {}", read.cycle, write.cycle);
}

#[test]
fn s519_a_flush_of_a_line_that_is_being_combined_sends_it() {
    for flush in [clwb(RBX, line(0)), clflushopt(RBX, line(0)), clflush(RBX, line(0))] {
        let mut program = vec![movnti(RBX, RCX, line(0)), flush];
        program.extend(load_after(10, line(9)));
        let mut bench = core(&program);
        bench.end();
        assert_eq!(bench.sent()[0].mask, ByteMask(0xff), "{:?}", bench.sent());
        assert_eq!(bench.writes(), [FIRST_TURN + 1], "before the end of the thread, and only once");
    }
}
