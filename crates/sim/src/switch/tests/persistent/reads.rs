//! Reads of lines that the buffer holds, and of those that pass beside it.

use super::*;

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
