//! When a scheme drains its entries to the device.

use super::*;

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
