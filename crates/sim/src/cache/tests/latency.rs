//! 6xx: from when to when a latency runs.

use super::*;
use crate::cache::hierarchy::Departure;
use fencepost_kernel::message::Stage;

/// The cycle in which the last level had been looked up for a message, and how many it stayed there.
fn waited(pending: &Pending) -> (u64, u64) {
    let period = Duration::from_ps(250).as_ps();
    let stack = &pending.message.stack;
    let parts = stack.parts_ps();
    let looked_up = stack.start().as_ps() + parts[Stage::Core as usize];
    (looked_up / period, parts[Stage::Cache as usize] / period)
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
fn c605_waiting_for_a_write_buffer_is_part_of_a_write_s_time_in_the_last_level() {
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
    assert_eq!((last.cycle, waited(last)), (300 + L2, (50 + L2, 250)));
}

#[test]
fn c606_what_the_core_and_the_upper_levels_take_comes_before_the_latency() {
    let mut bench = Bench::small(1);
    let request =
        Request { core: 0, line: pm(0), want: Want::Read, side: Side::Data, cause: Cause::PageWalk, issued: 60 };
    bench.write(0, pm(1), 0);
    assert_eq!(bench.caches.request(request, 100), Outcome::Pending);
    bench.caches.flush(Requester { core: 0, id: 1, issued: 20 }, pm(1), Flush::CLFLUSHOPT, 100);
    bench.caches.write_around(Requester { core: 0, id: 2, issued: 90 }, pm(2), ByteMask::FULL, 100);
    let core = |departure: &Departure| {
        let period = Duration::from_ps(250).as_ps();
        (departure.message.stack.start().as_ps() / period, departure.message.stack.parts_ps()[0] / period)
    };
    let mut departures = Vec::new();
    bench.caches.take_departures(&mut departures);
    assert_eq!(departures.iter().map(core).collect::<Vec<_>>(), [(60, 40 + L2), (20, 80 + L2), (90, 10)]);
}
