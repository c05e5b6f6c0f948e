//! A persistent switch: what its persist buffer does with persists, reads, other traffic, and power cuts.
//!
//! Here are acknowledgements, and the time that the controller takes.

mod drains;
mod power_cuts;
mod random;
mod reads;
mod waiting;

use super::*;

/// Four stages of 2 ns.
const PIPELINE: u64 = 8_000;
/// Two stages of it.
const HALF: u64 = 4_000;
/// A message without data on an idle link.
const SHORT: u64 = 6_000;
/// A message with data.
const LONG: u64 = 7_000;
/// Tag and data access of Table I.
const TAG: u64 = 388;
const DATA: u64 = 785;
/// A write: lookup, data, tag with state. A drain: state, data.
const WRITE: u64 = 2 * TAG + DATA;
const DRAIN: u64 = TAG + DATA;

fn persistent(scheme: Scheme, entries: u16, hosts: u16) -> Bench {
    Bench::new(&config(entries), hosts, 2, 8, Role::Persistent(scheme))
}

fn times(bench: &Bench, opcode: Opcode) -> Vec<u64> {
    bench.arrivals(opcode).iter().map(|(ps, _, _)| *ps).collect()
}

#[test]
fn a_persist_is_acknowledged_by_the_switch_after_the_accesses_of_a_write() {
    let mut bench = persistent(Scheme::PbRf, 16, 1);
    bench.arrive(0, 0, write(7, 1, 42, 0));
    bench.run();
    assert_eq!(bench.arrivals(Opcode::Cmp), [(PIPELINE + WRITE + SHORT, 0, 42)]);
    let stack = &bench.got[0].message.stack;
    let part = |stage: Stage| stack.parts_ps()[stage as usize];
    assert_eq!(part(Stage::SwitchPipeline), PIPELINE);
    assert_eq!((part(Stage::PersistBufferWait), part(Stage::PersistBufferAccess)), (0, WRITE));
    assert_eq!(stack.total().as_ps(), PIPELINE + WRITE + SHORT);
    assert_eq!(bench.switch.durable_version(LineAddress(7)), Some(Version(1)));
    assert!(bench.arrivals(Opcode::MemWr).is_empty(), "pb_rf keeps it");
    assert!(bench.switch.is_idle(), "a Dirty entry is nothing under way");
}

#[test]
fn under_nopb_the_device_acknowledges() {
    let mut volatile = Bench::new(&config(16), 1, 2, 8, Role::Volatile);
    let mut nopb = persistent(Scheme::Nopb, 16, 1);
    for bench in [&mut volatile, &mut nopb] {
        bench.devices_answer_after(100);
        bench.arrive(0, 0, write(7, 1, 42, 0));
        bench.run();
    }
    assert_eq!(times(&nopb, Opcode::Cmp), [PIPELINE + LONG + 100_000 + SHORT + PIPELINE + SHORT]);
    assert_eq!(format!("{:?}", volatile.got), format!("{:?}", nopb.got));
    assert!(nopb.switch.persist_buffer().is_none());
}

#[test]
fn the_controllers_service_time_is_added_to_each_piece_of_work() {
    let mut config = config(16);
    config.persist_buffer.as_mut().unwrap().service_ns = 3.0;
    let mut bench = Bench::new(&config, 1, 2, 8, Role::Persistent(Scheme::Pb));
    bench.devices_answer_after(100);
    bench.arrive(0, 0, write(7, 1, 42, 0));
    bench.run();
    assert_eq!(times(&bench, Opcode::Cmp), [PIPELINE + 3_000 + WRITE + SHORT]);
    assert_eq!(times(&bench, Opcode::MemWr), [HALF + 2 * 3_000 + WRITE + DRAIN + HALF + LONG]);
    assert_eq!(
        bench.buffer_stats().controller_busy_ps,
        3 * 3_000 + WRITE + DRAIN + 2 * TAG,
        "write, drain, acknowledgement"
    );
}

#[test]
fn the_controller_handles_one_packet_at_a_time() {
    let mut bench = persistent(Scheme::PbRf, 16, 3);
    for host in 0..3 {
        bench.arrive(0, host, write(7 + u64::from(host), 1, 0, 0));
    }
    bench.run();
    let first = PIPELINE + WRITE + SHORT;
    assert_eq!(times(&bench, Opcode::Cmp), [first, first + WRITE, first + 2 * WRITE]);
    let mut bench = persistent(Scheme::Pb, 16, 3);
    for host in 0..3 {
        bench.arrive(0, host, write(7 + u64::from(host), 1, 0, 0));
    }
    bench.run();
    let each = WRITE + DRAIN;
    assert_eq!(
        times(&bench, Opcode::Cmp),
        [first, first + each, first + 2 * each],
        "pb drains before it takes the next"
    );
}

#[test]
fn a_merged_write_holds_the_controller_one_more_tag_access() {
    let mut bench = persistent(Scheme::PbRf, 16, 2);
    bench.arrive(0, 0, write(7, 1, 0, 0));
    bench.arrive(100_000, 0, write(7, 2, 1, 100_000));
    bench.arrive(100_100, 1, write(8, 1, 2, 100_100));
    bench.run();
    let first = 100_000 + PIPELINE + WRITE + SHORT;
    assert_eq!(times(&bench, Opcode::Cmp)[1..], [first, first + TAG + WRITE]);
    assert_eq!(bench.buffer_stats().writes_coalesced, 1);
    assert_eq!(bench.switch.durable_version(LineAddress(7)), Some(Version(2)));
}

#[test]
fn a_tag_used_again_after_the_acknowledgement_is_not_mixed_up_with_the_drain() {
    let mut bench = persistent(Scheme::Pb, 4, 1);
    bench.devices_answer_after(200);
    bench.arrive(0, 0, write(7, 1, 5, 0));
    bench.arrive(50_000, 0, write(line_of(1, 0), 1, 5, 50_000));
    bench.arrive(60_000, 0, read(8, 5, 60_000));
    bench.run();
    let completions = bench.arrivals(Opcode::Cmp);
    assert_eq!(completions.iter().map(|(_, by, tag)| (*by, *tag)).collect::<Vec<_>>(), [(0, 5), (0, 5)]);
    assert_eq!(bench.arrivals(Opcode::MemData).len(), 1);
    assert_eq!(bench.buffer_stats().acknowledgements, 1);
}

#[test]
fn writes_are_counted_by_their_cause() {
    let mut bench = persistent(Scheme::PbRf, 16, 1);
    for (number, cause) in
        [Cause::Flush, Cause::Writeback, Cause::Flush, Cause::NonTemporalStore].into_iter().enumerate()
    {
        let ps = number as u64 * 10_000;
        bench.arrive(ps, 0, Message { cause, ..write(number as u64, 1, 0, ps) });
    }
    bench.run();
    let stats = bench.switch.stats(bench.now);
    let count = |name: &str| stats.counter(&format!("persist_buffer.{name}"));
    assert_eq!(count("writes"), 4);
    assert_eq!((count("writes_flush"), count("writes_eviction"), count("writes_non_temporal")), (2, 1, 1));
}

#[test]
fn occupancy_is_counted_over_time() {
    let mut bench = persistent(Scheme::PbRf, 16, 1);
    bench.arrive(0, 0, write(1, 1, 0, 0));
    bench.arrive(10_000, 0, write(2, 1, 0, 10_000));
    bench.run();
    let stats = bench.switch.stats(Time::from_ps(50_000));
    let count = |name: &str| stats.counter(&format!("persist_buffer.{name}"));
    let first = HALF + WRITE;
    let levels = ["0", "1", "2"].map(|level| count(&format!("occupancy.level_ps.{level}")));
    assert_eq!(levels, [first, 10_000, 50_000 - 10_000 - first]);
    assert_eq!(count("controller_busy_ps"), 2 * WRITE);
}

#[test]
fn a_persist_costs_the_switch_three_events_and_a_drain_four() {
    let mut bench = persistent(Scheme::PbRf, 16, 1);
    bench.arrive(0, 0, write(1, 1, 0, 0));
    bench.run();
    // Arrival, ready, controller; then the host's arrival, the credit for the host and the one from it.
    assert_eq!(bench.queue.taken(), 3 + 3);
}
