//! 6xx: from when to when a latency runs.

use super::*;
use crate::message::Stage;

/// The start of a message's latency and the part that the last level has in it, in cycles.
fn waited(pending: &Pending) -> (u64, u64) {
    let period = Duration::from_ps(250).as_ps();
    let stack = pending.message.stack;
    (stack.start().as_ps() / period, stack.parts_ps()[Stage::Cache as usize] / period)
}

fn asks(bench: &mut Bench, core: usize, number: u64, now: u64) {
    assert_eq!(bench.request(core, pm(number), Want::Read, Side::Data, now), Outcome::Pending);
}

#[test]
fn c601_a_read_s_latency_begins_with_its_miss() {
    let mut bench = Bench::small(1);
    asks(&mut bench, 0, 0, 100);
    assert_eq!(bench.pending[0].cycle, 100 + L2);
    assert_eq!(waited(&bench.pending[0]), (100 + L2, 0));
}

#[test]
fn c602_waiting_for_an_mshr_is_part_of_a_read_s_latency() {
    let mut bench = Bench::small(1);
    (0..5).for_each(|number| asks(&mut bench, 0, number, 100));
    assert_eq!(bench.pending.len(), 4, "there are four MSHRs");
    bench.answer(pm(0), 300);
    let last = bench.pending.iter().find(|pending| pending.message.line == pm(4)).expect("it is sent now");
    assert_eq!((last.cycle, waited(last)), (300, (100 + L2, 200 - L2)));
}

#[test]
fn c603_waiting_for_a_write_buffer_is_part_of_a_read_s_latency() {
    let mut bench = Bench::small(1);
    for number in 0..4 {
        bench.write(0, pm(number), 0);
        bench.flush(0, pm(number), false, 50);
    }
    asks(&mut bench, 0, 9, 100);
    assert_eq!(bench.pending.len(), 4, "there are four write buffers");
    bench.serve(pm(2), 250);
    let read = bench.pending.iter().find(|pending| pending.message.line == pm(9)).expect("it is sent now");
    assert_eq!((read.cycle, waited(read)), (250, (100 + L2, 150 - L2)));
}

#[test]
fn c604_waiting_behind_a_write_of_the_line_is_part_of_a_read_s_latency() {
    let mut bench = Bench::small(2);
    bench.write(0, pm(0), 0);
    bench.flush(1, pm(0), false, 100);
    asks(&mut bench, 1, 0, 100);
    let read = bench.pending.iter().find(|pending| !pending.message.is_write()).expect("it is sent");
    assert_eq!((read.cycle, waited(read)), (100 + L2 + SNOOP, (100 + L2, SNOOP)));
}

#[test]
fn c605_a_write_s_latency_begins_when_it_leaves() {
    let mut bench = Bench::small(1);
    for number in 0..5 {
        bench.write(0, pm(number), 0);
    }
    for number in 0..5 {
        bench.flush(0, pm(number), false, 50);
    }
    assert_eq!(waited(&bench.pending[0]), (50 + L2, 0));
    bench.serve(pm(0), 300);
    let last = bench.pending.iter().find(|pending| pending.message.line == pm(4)).expect("it is sent now");
    assert_eq!((last.cycle, waited(last)), (300 + L2, (300 + L2, 0)));
}
