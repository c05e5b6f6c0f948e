//! A persistent switch: what its persist buffer does with persists, reads, everybody else's traffic, and power cuts.

use proptest::prelude::*;

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
fn pb_sends_the_entry_to_the_device_right_after_the_acknowledgement() {
    let mut bench = persistent(Scheme::Pb, 16, 1);
    bench.devices_answer_after(100);
    bench.arrive(0, 0, write(7, 1, 42, 0));
    bench.run();
    assert_eq!(times(&bench, Opcode::MemWr), [HALF + WRITE + DRAIN + HALF + LONG]);
    let drain = &bench.got.iter().find(|got| got.message.opcode == Opcode::MemWr).unwrap().message;
    assert_eq!((drain.cause, drain.version), (Cause::Drain, Version(1)));
    assert_eq!(drain.stack.start(), Time::from_ps(HALF + WRITE + DRAIN), "its own request, with its own time");
    assert_eq!(bench.arrivals(Opcode::Cmp).len(), 1, "the device's acknowledgement stays in the switch");
    assert_eq!(bench.switch.durable_version(LineAddress(7)), None);
    assert!(bench.switch.is_idle());
}

#[test]
fn pb_adaptive_sends_entries_at_once_until_a_line_is_written_again() {
    let mut bench = persistent(Scheme::PbAdaptive, 16, 1);
    bench.devices_answer_after(100);
    bench.arrive(0, 0, write(7, 1, 42, 0));
    bench.arrive(1_000_000, 0, write(8, 1, 43, 1_000_000));
    bench.run();
    let sent = HALF + WRITE + DRAIN + HALF + LONG;
    assert_eq!(times(&bench, Opcode::MemWr), [sent, 1_000_000 + sent]);
    for (ps, line) in [(2_000_000, 7), (3_000_000, 9)] {
        bench.arrive(ps, 0, write(line, 2, 44, ps));
        bench.run();
    }
    assert_eq!(times(&bench, Opcode::MemWr).len(), 2, "others may be written again too");
    assert_eq!(bench.switch.durable_version(LineAddress(9)), Some(Version(2)));
}

/// Under `pb_adaptive`, with reads that pass the controller by or do not.
fn adaptive(reads_bypass: bool) -> Bench {
    let mut config = config(16);
    config.persist_buffer.as_mut().unwrap().reads_bypass = reads_bypass;
    Bench::new(&config, 1, 2, 8, Role::Persistent(Scheme::PbAdaptive))
}

#[test]
fn pb_adaptive_leaves_the_device_to_reads_however_they_come_to_it() {
    for reads_bypass in [true, false] {
        let mut bench = adaptive(reads_bypass);
        bench.devices_answer_after(100);
        bench.arrive(0, 0, read(8, 1, 0));
        bench.arrive(100_000, 0, write(7, 1, 2, 100_000));
        bench.run();
        assert!(times(&bench, Opcode::MemWr).is_empty(), "the read was less than two drain times ago");
        bench.arrive(300_000, 0, read(7, 3, 300_000));
        bench.arrive(400_000, 0, write(9, 1, 4, 400_000));
        bench.run();
        assert_eq!(bench.buffer_stats().read_hits, 1);
        assert!(times(&bench, Opcode::MemWr).is_empty(), "one that the buffer answers counts too");
        bench.arrive(600_000, 0, write(10, 1, 5, 600_000));
        bench.run();
        assert_eq!(times(&bench, Opcode::MemWr).len(), 3);
    }
}

#[test]
fn pb_adaptive_leaves_the_device_to_a_read_until_it_is_answered() {
    for reads_bypass in [true, false] {
        let mut bench = adaptive(reads_bypass);
        bench.devices_answer_after(1_000);
        bench.arrive(0, 0, read(8, 1, 0));
        bench.arrive(900_000, 0, write(7, 1, 2, 900_000));
        bench.arrive(1_400_000, 0, write(9, 1, 3, 1_400_000));
        bench.run();
        assert_eq!(bench.arrivals(Opcode::MemData).len(), 1);
        let drains = times(&bench, Opcode::MemWr);
        assert!(drains.len() == 2 && drains[0] > 1_400_000, "both go when the second comes: {drains:?}");
        assert!(bench.switch.is_idle());
    }
}

#[test]
fn a_read_that_a_power_cut_took_holds_nothing_back() {
    let mut bench = persistent(Scheme::PbAdaptive, 16, 1);
    bench.devices_answer_after(1_000);
    bench.arrive(0, 0, read(8, 1, 0));
    bench.run_until(500_000).cut_power();
    bench.recover();
    bench.arrive(900_000, 0, write(7, 1, 2, 900_000));
    bench.run();
    assert_eq!(times(&bench, Opcode::MemWr).len(), 1);
    assert!(bench.switch.is_idle());
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
fn a_read_of_a_held_line_takes_one_tag_and_one_data_access() {
    let mut bench = persistent(Scheme::PbRf, 16, 1);
    bench.arrive(0, 0, write(7, 3, 1, 0));
    bench.arrive(100_000, 0, read(7, 2, 100_000));
    bench.run();
    assert_eq!(bench.arrivals(Opcode::MemData), [(100_000 + PIPELINE + TAG + DATA + LONG, 0, 2)]);
    assert_eq!(bench.got.last().unwrap().message.version, Version(3));
    assert_eq!((bench.buffer_stats().reads, bench.buffer_stats().read_hits), (1, 1));
}

#[test]
fn a_read_of_a_line_that_is_not_held_passes_beside_the_buffer() {
    let mut bench = persistent(Scheme::PbRf, 16, 1);
    bench.arrive(0, 0, write(7, 3, 1, 0));
    bench.arrive(100_000, 0, read(8, 2, 100_000));
    bench.run();
    assert_eq!(times(&bench, Opcode::MemRd), [100_000 + PIPELINE + SHORT]);
    assert_eq!((bench.buffer_stats().reads, bench.buffer_stats().reads_passed), (1, 1));
}

#[test]
fn where_reads_do_not_bypass_the_controller_serves_them_in_turn() {
    let mut config = config(16);
    config.persist_buffer.as_mut().unwrap().reads_bypass = false;
    let mut bench = Bench::new(&config, 2, 2, 8, Role::Persistent(Scheme::PbRf));
    bench.arrive(0, 0, write(7, 3, 1, 0));
    bench.arrive(100, 1, read(8, 2, 100));
    bench.run();
    // It waits for the write, costs a lookup, and goes to the device after all.
    assert_eq!(times(&bench, Opcode::MemRd), [HALF + WRITE + TAG + HALF + SHORT]);
    let stats = bench.buffer_stats();
    assert_eq!((stats.reads, stats.reads_passed, stats.reads_missed), (1, 0, 1));
}

#[test]
fn where_reads_do_not_bypass_they_wait_behind_a_write_without_room() {
    let mut config = config(1);
    config.persist_buffer.as_mut().unwrap().reads_bypass = false;
    let mut bench = Bench::new(&config, 2, 2, 8, Role::Persistent(Scheme::Pb));
    bench.devices_answer_after(100);
    bench.arrive(0, 0, write(7, 1, 1, 0));
    bench.arrive(100, 0, write(8, 1, 2, 100));
    bench.arrive(10_000, 1, read(9, 3, 10_000));
    bench.run();
    let acknowledged = *times(&bench, Opcode::Cmp).last().unwrap();
    assert!(times(&bench, Opcode::MemRd)[0] > acknowledged - HALF - SHORT, "the second write first");
    assert_eq!(bench.buffer_stats().stalls, 1);
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
fn a_read_right_behind_the_write_of_its_line_is_answered_from_the_buffer() {
    let mut bench = persistent(Scheme::PbRf, 16, 2);
    bench.arrive(0, 0, write(7, 3, 1, 0));
    bench.arrive(100, 1, read(7, 2, 100));
    bench.run();
    // It waits for the write, and finds it.
    assert_eq!(bench.arrivals(Opcode::MemData), [(HALF + WRITE + TAG + DATA + HALF + LONG, 1, 2)]);
    let waited = bench.got.last().unwrap().message.stack.parts_ps()[Stage::PersistBufferWait as usize];
    assert_eq!(waited, WRITE - 100);
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
fn a_write_that_finds_no_entry_waits_for_the_devices_acknowledgement() {
    let mut bench = persistent(Scheme::Pb, 1, 1);
    bench.devices_answer_after(100);
    bench.arrive(0, 0, write(7, 1, 0, 0));
    bench.arrive(0, 0, write(8, 1, 1, 0));
    bench.run();
    let drain_at_device = HALF + WRITE + DRAIN + HALF + LONG;
    let back_in_the_switch = drain_at_device + 100_000 + SHORT + HALF;
    // The entry is freed by a lookup and a state write; the parked write is looked up again.
    let completed = back_in_the_switch + 2 * TAG + WRITE + HALF + SHORT;
    assert_eq!(times(&bench, Opcode::Cmp), [PIPELINE + WRITE + SHORT, completed]);
    let stats = bench.buffer_stats();
    assert_eq!(stats.stalls, 1);
    // Parked when it was looked up first, behind the drain.
    assert_eq!(stats.stall_ps, back_in_the_switch + 2 * TAG - (HALF + WRITE + DRAIN));
}

#[test]
fn a_write_ack_overtakes_queued_writes() {
    let mut bench = persistent(Scheme::Pb, 2, 1);
    bench.devices_answer_after(20);
    for line in 0..7 {
        bench.arrive(0, 0, write(line, 1, line as u32, 0));
    }
    bench.run_until(HALF + 2 * (WRITE + DRAIN) + TAG);
    let state = bench.switch.persist_buffer().unwrap().state();
    assert!(state.parked.is_some(), "two entries are on their way, the third write is parked");
    assert_eq!(state.input.packets().len(), 4, "and the input is full of writes");
    bench.run();
    assert_eq!(bench.arrivals(Opcode::Cmp).len(), 7);
    assert_eq!(bench.buffer_stats().acknowledgements, 7);
    assert_eq!(bench.buffer_stats().stalls, 3, "two acknowledgements come together, so every other write waits");
    assert!(bench.switch.is_idle());
}

#[test]
fn pb_rf_drains_above_the_threshold_down_to_the_preset() {
    let mut bench = persistent(Scheme::PbRf, 16, 1);
    bench.devices_answer_after(50);
    for line in 0..12 {
        bench.arrive(line * 20_000, 0, write(line, 1, 0, line * 20_000));
    }
    bench.run();
    assert_eq!(bench.buffer_stats().drains, 0, "12 entries are not more than 80 %");
    bench.arrive(1_000_000, 0, write(12, 1, 0, 1_000_000));
    bench.run();
    let drained: Vec<u64> =
        bench.got.iter().filter(|got| got.message.opcode == Opcode::MemWr).map(|got| got.message.line.0).collect();
    assert_eq!(drained, [0, 1, 2, 3], "13 down to 9, least recently used first");
    // One drain after the other leaves the controller.
    let first = 1_000_000 + HALF + WRITE + DRAIN + HALF + LONG;
    let arrivals = times(&bench, Opcode::MemWr);
    assert_eq!(arrivals[..2], [first, first + DRAIN.max(2_000)], "then the link is what is slower");
}

#[test]
fn persists_behind_a_full_input_wait_at_their_port_and_hold_up_what_is_behind_them() {
    let mut bench = persistent(Scheme::Pb, 1, 1);
    bench.devices_answer_after(100);
    // One is written, four wait in the input, two at the port.
    for line in 0..7 {
        bench.arrive(0, 0, write(line, 1, 0, 0));
    }
    let bystander = line_of(1, 0);
    bench.arrive(0, 0, write(bystander, 1, 99, 0));
    bench.arrive(0, 0, read(bystander + 1, 98, 0));
    bench.run();
    assert_eq!(times(&bench, Opcode::MemRd), [PIPELINE + SHORT], "another class is not held up");
    let stats = bench.buffer_stats();
    assert_eq!(stats.input_full_stalls, 2, "the sixth until the second is parked, then the seventh");
    assert_eq!(stats.input_full_bystanders, 2, "behind either");
    // A place becomes free when the parked write has its entry and the next one is taken and parked.
    let first_freed = HALF + WRITE + DRAIN + HALF + LONG + 100_000 + SHORT + HALF + 2 * TAG;
    assert_eq!(stats.input_full_stall_ps, first_freed + WRITE + DRAIN - HALF);
    assert_eq!(stats.input_full_bystander_ps, stats.input_full_stall_ps);
    let bystander = bench.got.iter().find(|got| got.message.line.0 == bystander).unwrap();
    let waited = bystander.message.stack.parts_ps()[Stage::Arbitration as usize];
    assert_eq!(waited, stats.input_full_bystander_ps);
}

#[test]
fn acknowledgements_that_find_the_input_full_are_counted_apart_from_reads_and_writes() {
    let mut bench = persistent(Scheme::Pb, 16, 1);
    let at_device = HALF + WRITE + DRAIN + HALF + LONG;
    // The device acknowledges three writes at the same time.
    for line in 0..3 {
        let start = line * 20_000;
        bench.arrive(start, 0, write(line, 1, line as u32, start));
        bench.devices_answer_after(100 - 20 * line);
        bench.run_until(start + at_device);
    }
    let acknowledged = at_device + 100_000 + SHORT + HALF;
    // The controller serves one of five writes by then, and four wait in the input.
    let burst = acknowledged - 500;
    for line in 3..8 {
        bench.arrive(burst - HALF, 0, write(line, 1, line as u32, burst - HALF));
    }
    bench.run();
    let stats = bench.buffer_stats();
    assert_eq!(stats.acknowledgements, 8);
    assert_eq!((stats.input_full_stalls, stats.input_full_stall_ps), (0, 0), "no read and no write waited");
    // The first takes the place that is for acknowledgements alone. The second waits until it is taken out, behind the write; the third, as soon as
    // it is at the head, until the second is.
    let first_taken = burst + WRITE - acknowledged;
    assert_eq!((stats.acknowledgement_stalls, stats.acknowledgement_stall_ps), (2, first_taken + 2 * TAG));
}

#[test]
fn traffic_that_is_not_persistent_does_not_wait_for_a_busy_controller() {
    let mut bench = persistent(Scheme::PbRf, 16, 2);
    for line in 0..4 {
        bench.arrive(0, 0, write(line, 1, 0, 0));
    }
    bench.arrive(0, 1, write(line_of(1, 0), 1, 99, 0));
    bench.run();
    assert_eq!(times(&bench, Opcode::MemWr), [PIPELINE + LONG]);
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
fn a_read_of_a_partial_entry_waits_for_its_drain_and_is_answered_by_the_device() {
    let mut bench = persistent(Scheme::PbRf, 16, 1);
    bench.devices_answer_after(100);
    bench.arrive(0, 0, partial_write(7, 1, 0xFF, 1, 0));
    bench.arrive(50_000, 0, read(7, 2, 50_000));
    bench.run();
    // Looked up and parked; drained; acknowledged; looked up again and sent on.
    let drain = 50_000 + HALF + TAG + DRAIN + HALF + LONG;
    let freed = drain + 100_000 + SHORT + HALF + 2 * TAG;
    assert_eq!(times(&bench, Opcode::MemWrPtl), [drain]);
    assert_eq!(times(&bench, Opcode::MemRd), [freed + TAG + HALF + SHORT]);
    assert_eq!(bench.got.last().unwrap().message.version, Version(1));
    assert_eq!(bench.buffer_stats().reads_parked, 1);
    assert_eq!(bench.buffer_stats().reads_parked_ps, freed - 50_000 - HALF);
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

/// Several hosts write versions of a few lines, each line's next one after the acknowledgement of the one before, and read another line.
fn busy(scheme: Scheme, entries: u16) -> Bench {
    let mut bench = Bench::new(&config(entries), 2, 2, 64, Role::Persistent(scheme));
    bench.devices_answer_after(60);
    for round in 0..6u32 {
        for line in 0..5u64 {
            let ps = u64::from(round) * 40_000 + line * 300;
            bench.arrive(ps, (line % 2) as u16, write(line, round + 1, line as u32, ps));
        }
        let ps = u64::from(round) * 40_000 + 2_000;
        bench.arrive(ps, 0, read(7, 9, ps));
    }
    bench
}

/// The newest version of each line that a host has seen acknowledged.
fn acknowledged(bench: &Bench) -> BTreeMap<LineAddress, Version> {
    let mut newest = BTreeMap::new();
    for got in bench.got.iter().filter(|got| got.message.opcode == Opcode::Cmp) {
        let version: &mut Version = newest.entry(got.message.line).or_default();
        *version = got.message.version.max(*version);
    }
    newest
}

#[test]
fn a_power_cut_at_any_time_loses_no_acknowledged_persist() {
    let with_buffers = [Scheme::Pb, Scheme::PbRf, Scheme::PbAdaptive];
    for (scheme, entries) in [2, 5, 16].into_iter().flat_map(|entries| with_buffers.map(|scheme| (scheme, entries))) {
        let original = busy(scheme, entries);
        let mut snapshot = original.clone();
        let mut cuts_with_entries = 0;
        for cut in (0..400_000).step_by(499) {
            let mut bench = snapshot.run_until(cut).clone();
            bench.cut_power();
            let promised = acknowledged(&bench);
            for (line, version) in &promised {
                let below = bench.neighbours[2].memory.get(line).copied().unwrap_or_default();
                let held = bench.switch.durable_version(*line).unwrap_or_default();
                assert!(held.max(below) >= *version, "{line:?} at {cut} ps under {scheme}");
            }
            bench.recover();
            cuts_with_entries += u32::from(!bench.switch.is_idle());
            bench.run();
            assert!(bench.switch.is_idle());
            for (line, version) in &promised {
                assert!(bench.neighbours[2].memory.get(line) >= Some(version), "{line:?} at {cut} ps under {scheme}");
            }
        }
        assert!(cuts_with_entries > 100, "{cuts_with_entries} cuts found something to recover under {scheme}");
    }
}

#[test]
fn a_recovery_cut_by_another_power_failure_starts_again() {
    let mut original = busy(Scheme::PbRf, 16);
    original.run_until(170_000).cut_power();
    let promised = acknowledged(&original);
    original.recover();
    let start = original.now.as_ps();
    for cut in (start..start + 150_000).step_by(997) {
        let mut bench = original.clone();
        bench.run_until(cut).cut_power();
        bench.recover();
        bench.run();
        for (line, version) in &promised {
            assert!(bench.neighbours[2].memory.get(line) >= Some(version), "{line:?}, second cut at {cut} ps");
        }
        assert!(bench.switch.is_idle());
    }
}

#[test]
fn a_full_buffer_cut_in_the_middle_of_a_merge_drains_no_more_than_its_entries() {
    let config = SwitchConfig {
        persist_buffer: Some(PersistBufferConfig {
            drain_threshold: 1.0,
            drain_preset: 1.0,
            ..config(2).persist_buffer.unwrap()
        }),
        ..config(2)
    };
    let mut bench = Bench::new(&config, 1, 2, 8, Role::Persistent(Scheme::PbRf));
    bench.devices_answer_after(50);
    for (line, version, ps) in [(1, 1, 0), (2, 1, 20_000), (1, 2, 40_000)] {
        bench.arrive(ps, 0, write(line, version, 0, ps));
    }
    // The third has been acknowledged, and what it replaces has not been retired.
    bench.run_until(40_000 + HALF + WRITE).cut_power();
    assert_eq!(bench.switch.persist_buffer().unwrap().state().occupied(), 3, "two entries and the slot for merging");
    bench.recover();
    bench.run();
    assert!(bench.switch.is_idle());
    assert_eq!(bench.neighbours[1].memory[&LineAddress(1)], Version(2));
    assert_eq!(bench.neighbours[1].memory[&LineAddress(2)], Version(1));
    assert_eq!(bench.buffer_stats().recovery_drains, 2, "not the content that was replaced");
    let highest = bench.buffer_stats().occupancy.time_at_level_ps().iter().rposition(|time| *time > 0);
    assert_eq!(highest, Some(2));
}

#[test]
fn host_traffic_waits_until_recovery_is_done() {
    let mut bench = busy(Scheme::PbRf, 16);
    bench.run().cut_power();
    bench.recover();
    bench.got.clear();
    assert!(!bench.switch.is_idle());
    let now = bench.now.as_ps();
    bench.arrive(now, 0, write(0, 100, 1, now));
    bench.arrive(now, 1, read(4, 2, now));
    bench.arrive(now, 1, read(line_of(1, 0), 3, now));
    bench.run();
    let last_drain = bench
        .got
        .iter()
        .filter(|got| got.message.cause == Cause::Drain && got.message.version < Version(100))
        .map(|got| got.ps)
        .max()
        .unwrap();
    assert!(times(&bench, Opcode::Cmp)[0] > last_drain, "a persist");
    let answers = bench.arrivals(Opcode::MemData);
    let answered = |tag| answers.iter().find(|(_, _, other)| *other == tag).unwrap().0;
    assert!(answered(2) > last_drain, "a read of a line that persists here");
    let recovered =
        bench.got.iter().find(|got| got.message.tag.0 == 2 && got.message.opcode == Opcode::MemData).unwrap();
    assert_eq!(recovered.message.version, Version(6));
}

/// What hosts do in a random run: each has lines of its own and at most one request for each line under way.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Read,
    Write,
    WriteHalf,
}

/// Random traffic until everything is done: whether every request is answered, and reads see what was acknowledged.
fn random_traffic(
    config: &SwitchConfig,
    scheme: Scheme,
    credits: u16,
    deeds: &[Vec<Deed>],
) -> Result<(), TestCaseError> {
    const HOSTS: usize = 2;
    let mut bench = Bench::new(config, HOSTS as u16, 2, credits, Role::Persistent(scheme));
    bench.devices_answer_after(30);
    // Chain number n belongs to host n modulo 2 and line n / 2 of the device number n / 2 modulo 2; its tag is n.
    let line = |chain: usize| line_of(chain as u64 / 2 % 2, chain as u64);
    let mut done = vec![0; deeds.len()];
    let mut newest = vec![0u32; deeds.len()];
    let mut seen = 0;
    let send_next = |bench: &mut Bench, chain: usize, done: &[usize], newest: &mut [u32]| {
        let Some(deed) = deeds[chain].get(done[chain]) else { return };
        let (tag, now) = (chain as u32, bench.now.as_ps());
        let message = match deed {
            Deed::Read => read(line(chain), tag, now),
            Deed::Write => write(line(chain), newest[chain] + 1, tag, now),
            Deed::WriteHalf => partial_write(line(chain), newest[chain] + 1, 0xFFFF_FFFF, tag, now),
        };
        newest[chain] += u32::from(message.is_write());
        bench.send((chain % HOSTS) as u16, message);
    };
    for chain in 0..deeds.len() {
        send_next(&mut bench, chain, &done, &mut newest);
    }
    while !bench.queue.is_empty() {
        bench.one_event();
        while let Some(got) = bench.got.get(seen).cloned() {
            seen += 1;
            if usize::from(got.by) < HOSTS {
                let chain = got.message.tag.0 as usize;
                prop_assert_eq!(chain % HOSTS, usize::from(got.by), "an answer went to the wrong host");
                prop_assert_eq!(got.message.stack.total(), Time::from_ps(got.ps).since(got.message.stack.start()));
                prop_assert_eq!(got.message.version, Version(newest[chain]), "what was written last");
                done[chain] += 1;
                send_next(&mut bench, chain, &done, &mut newest);
            }
        }
    }
    for (chain, deeds) in deeds.iter().enumerate() {
        prop_assert_eq!(done[chain], deeds.len(), "{:#?}", bench.switch.waiting());
    }
    prop_assert!(bench.switch.is_idle(), "{:#?}", bench.switch.waiting());
    let in_transmitters: usize =
        bench.neighbours.iter().map(|neighbour| usize::from(!neighbour.transmitter.is_idle())).sum();
    prop_assert_eq!(in_transmitters, 0, "every credit comes back");
    Ok(())
}

fn any_deeds() -> impl Strategy<Value = Vec<Vec<Deed>>> {
    let deed = prop_oneof![2 => Just(Deed::Read), 4 => Just(Deed::Write), 1 => Just(Deed::WriteHalf)];
    prop::collection::vec(prop::collection::vec(deed, 0..12), 1..16)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_smallest_buffers_never_deadlock_and_reads_see_the_last_write(
        deeds in any_deeds(), entries in 1..6u16, input in 1..3u16, acknowledgements in 1..3u16, output in 1..3u16,
        credits in 1..4u16, threshold in 0.0..=1.0f64, preset in 0.0..=1.0f64, stage in 0..3u8, crossbar in 0..3u8,
        scheme in prop::sample::select(Scheme::ALL.to_vec()), reads_bypass in any::<bool>(),
    ) {
        let config = SwitchConfig {
            pipeline_stage_ns: f64::from(stage),
            crossbar_flit_ns: f64::from(crossbar) * 0.7,
            persist_buffer: Some(PersistBufferConfig {
                entries,
                tag_access_ns: 0.388,
                data_access_ns: 0.785,
                service_ns: 0.0,
                reads_bypass,
                input_entries: input,
                input_acknowledgement_entries: acknowledgements,
                output_entries: output,
                drain_threshold: threshold,
                drain_preset: threshold * preset,
            }),
        };
        random_traffic(&config, scheme, credits, &deeds)?;
    }
}
