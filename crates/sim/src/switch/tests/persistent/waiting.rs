//! What waits where the buffer, or its input, has no room.

use super::*;

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
    // The first takes the place that is for acknowledgements alone. The second waits until it is taken out, behind the
    // write; the third, as soon as it is at the head, until the second is.
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
