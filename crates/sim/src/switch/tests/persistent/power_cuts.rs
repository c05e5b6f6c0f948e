//! Power cuts at any time, and recovery.

use super::*;

/// Several hosts write versions of a few lines, each line's next one after the acknowledgement of the one before, and
/// read another line.
fn busy(scheme: Scheme, entries: u16) -> Bench {
    let mut bench = Bench::new(&config(entries), 2, 2, 64, Role::Persistent(scheme));
    bench.devices_answer_after(60);
    for round in 0..6u64 {
        for line in 0..5u64 {
            let ps = round * 40_000 + line * 300;
            bench.arrive(ps, (line % 2) as u16, write(line, round + 1, line as u32, ps));
        }
        let ps = round * 40_000 + 2_000;
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
