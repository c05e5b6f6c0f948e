//! The Global Persistent Flush: what is saved, what it takes, and what is said when time runs out.

use fencepost_kernel::time::Duration;
use fencepost_sim::replay::global_flush::{FlushError, FlushLimits, FlushReport};
use fencepost_sim::replay::simulation::Simulation;
use fencepost_sim::switch::Scheme;

use super::machine::machine;
use super::program::{Instruction, LittleProgram, ProgramBuilder, options, persistent_line};

/// Lines that the program leaves dirty in its caches, behind one that it flushes.
const DIRTY: u64 = 20;
const AMPLE: FlushLimits = FlushLimits::AMPLE;

/// Stores to lines, and flushes every other one.
fn leaves_dirty_lines() -> LittleProgram {
    let mut builder = ProgramBuilder::new();
    for number in 0..2 * DIRTY {
        builder.one(0, Instruction::Store, persistent_line(number));
        if number % 2 == 0 {
            builder.one(0, Instruction::Clwb, persistent_line(number));
            builder.one(0, Instruction::Sfence, 0);
        }
    }
    builder.finish()
}

/// A program at its end, its last flushes still in the buffer where there is one.
fn at_its_end(scheme: Scheme, sets: &[&str]) -> Simulation {
    let machine = machine("pcs-table1", &[&["core.count=1"], sets].concat());
    let simulation = Simulation::new(&machine, scheme, &[leaves_dirty_lines().on_host()], options());
    let mut simulation = simulation.unwrap_or_else(|error| panic!("{scheme}: {error}"));
    while simulation.step() {}
    simulation
}

/// The flush, then the power cut and a recovery: how many lines came back as they were stored last.
fn flushed_and_recovered(simulation: &mut Simulation, limits: FlushLimits) -> (FlushReport, u64) {
    let report = simulation.global_persistent_flush(limits);
    simulation.power_fail();
    simulation.recover().expect("it comes to an end");
    let host = simulation.system().hosts().next().expect("there is one");
    let is_kept = |number: &u64| {
        let line = host.line_of(persistent_line(*number)).expect("it was stored to");
        simulation.durable_version(line).0 == 1
    };
    (report, (0..2 * DIRTY).filter(is_kept).count() as u64)
}

#[test]
fn everything_dirty_is_saved_under_every_scheme() {
    for scheme in Scheme::ALL {
        for sets in [&[][..], &["cache.l2.write_buffers=1"], &["pm.ack_at=\"media\""]] {
            let mut simulation = at_its_end(scheme, sets);
            let (report, kept) = flushed_and_recovered(&mut simulation, AMPLE);
            assert!(!report.is_dirty_shutdown(), "{scheme}: {report:?}");
            assert_eq!(kept, 2 * DIRTY, "{scheme}, {sets:?}");
            assert_eq!(report.phase_1.bytes, DIRTY * 64, "{scheme}: {report:?}");
            assert!(report.phase_1.duration_ps > 0 && report.phase_1.bytes_left == 0);
        }
    }
}

#[test]
fn without_it_what_was_not_flushed_is_lost() {
    let mut simulation = at_its_end(Scheme::PbRf, &[]);
    simulation.power_fail();
    simulation.recover().expect("it comes to an end");
    let host = simulation.system().hosts().next().expect("there is one");
    let line = host.line_of(persistent_line(1)).expect("it was stored to");
    assert_eq!(simulation.durable_version(line).0, 0);
}

#[test]
fn phase_2_empties_the_persist_buffer() {
    let mut simulation = at_its_end(Scheme::PbRf, &[]);
    let report = simulation.global_persistent_flush(AMPLE);
    assert!(report.phase_2.bytes > 0 && report.phase_2.bytes_left == 0, "{report:?}");
    assert!(report.phase_2.duration_ps > 0);
    assert_eq!(report.switches, [("switch0".to_owned(), report.phase_2.bytes)]);
    let (_, switch) = simulation.system().switches().next().expect("there is one");
    assert_eq!(switch.persist_buffer().expect("it has one").state().occupied(), 0);
}

#[test]
fn a_phase_1_that_runs_out_of_time_is_a_dirty_shutdown_and_says_what_is_lost() {
    let mut simulation = at_its_end(Scheme::Nopb, &["cache.l2.write_buffers=1"]);
    let whole = simulation.clone().global_persistent_flush(AMPLE).phase_1.duration_ps;
    let half = FlushLimits { phase_1: Duration::from_ps(whole / 2), ..AMPLE };
    let (report, kept) = flushed_and_recovered(&mut simulation, half);
    assert!(report.is_dirty_shutdown());
    let [FlushError::Phase1TimedOut { host, bytes_left }] = &report.errors[..] else { panic!("{report:?}") };
    assert_eq!((host.as_str(), *bytes_left), ("host0", report.phase_1.bytes_left));
    let lost = 2 * DIRTY - kept;
    // What was on its way then still arrived: phase 2 comes all the same.
    assert!(lost > 0 && lost * 64 <= *bytes_left, "{lost} lines lost, {report:?}");
    assert_eq!(report.phase_1.duration_ps, whole / 2);
    let text = report.errors[0].to_string();
    assert_eq!(text, format!("GPF phase 1: host0 has {bytes_left} bytes left when its time is over"));
}

#[test]
fn a_phase_2_that_runs_out_of_time_is_a_dirty_shutdown_though_the_buffer_keeps_its_lines() {
    let mut simulation = at_its_end(Scheme::PbRf, &[]);
    let (report, kept) = flushed_and_recovered(&mut simulation, FlushLimits { phase_2: Duration::ZERO, ..AMPLE });
    let [FlushError::Phase2TimedOut { place, bytes_left }, ..] = &report.errors[..] else { panic!("{report:?}") };
    assert_eq!((place.as_str(), *bytes_left), ("switch0", report.phase_2.bytes_left));
    assert_eq!(kept, 2 * DIRTY, "the persist buffer is in the persistent domain");
}

#[test]
fn a_phase_2_that_the_devices_do_not_end_in_time_names_them_and_what_they_lose() {
    // With writes that are slow and complete on the medium only, a power cut loses just what a device has left.
    let slow = ["pm.write_ns=100000", "pm.ack_at=\"media\""];
    let medium = [
        &[][..],
        &["pm.handed_over_writes=4"],
        &["pm.row_bytes=256", "pm.block.read_buffer_entries=4", "pm.block.translation_ns=30"],
    ];
    for medium in medium {
        let mut simulation = at_its_end(Scheme::Nopb, &[&slow, medium].concat());
        let limits = FlushLimits { phase_1: Duration::from_ns(20_000.0), phase_2: Duration::from_ns(1_000.0) };
        let (report, kept) = flushed_and_recovered(&mut simulation, limits);
        let lost = 2 * DIRTY - kept;
        let [FlushError::Phase1TimedOut { .. }, FlushError::Phase2TimedOut { place, bytes_left }] = &report.errors[..]
        else {
            panic!("{medium:?}: {report:?}")
        };
        assert_eq!((place.as_str(), *bytes_left), ("pm0", lost * 64), "{medium:?}");
        assert!(lost > 0);
        let text = report.errors[1].to_string();
        assert_eq!(text, format!("GPF phase 2: pm0 has {bytes_left} bytes left when its time is over"));
    }
}

#[test]
fn a_machine_with_nothing_to_save_is_done_at_once() {
    let machine = machine("pcs-table1", &["core.count=1"]);
    let mut builder = ProgramBuilder::new();
    builder.one(0, Instruction::Load, persistent_line(0));
    let mut simulation =
        Simulation::new(&machine, Scheme::Pb, &[builder.finish().on_host()], options()).expect("it can be run");
    while simulation.step() {}
    let report = simulation.global_persistent_flush(AMPLE);
    assert_eq!((report.phase_1.bytes, report.phase_1.duration_ps), (0, 0));
    assert_eq!((report.phase_2.bytes, report.phase_2.duration_ps), (0, 0));
    assert!(!report.is_dirty_shutdown());
}

/// Stores to lines with every instruction that can, loads others, and flushes a part.
fn stores_in_every_way(host: u64) -> LittleProgram {
    let mut builder = ProgramBuilder::new();
    for number in 0..24 {
        let line = |place: u64| persistent_line(1000 * host + 100 * place + number);
        builder.one(0, Instruction::Store, line(0));
        builder.one(0, Instruction::NonTemporalLine, line(1));
        builder.one(0, Instruction::Load, line(2));
        builder.one(0, Instruction::NonTemporalLine, line(2));
        match number % 4 {
            0 => builder.one(0, Instruction::Clflushopt, line(0)),
            1 => builder.one(0, Instruction::Clwb, line(0)),
            2 => builder.one(0, Instruction::Sfence, 0),
            _ => builder.one(0, Instruction::Store, line(1)),
        }
    }
    builder.finish()
}

/// At each `every`-th event: a flush, the power cut, a recovery, and no version that had been performed is lost.
fn nothing_is_lost(every: u64, machine_name: &str, scheme: Scheme, sets: &[&str]) {
    let machine = machine(machine_name, sets);
    let program = stores_in_every_way(0);
    let mut simulation = Simulation::new(&machine, scheme, &[program.on_host()], options()).expect("it can be run");
    let (mut events, mut saved_most) = (0, 0);
    loop {
        let mut cut = simulation.clone();
        let durable = |simulation: &Simulation, address: u64| {
            let host = simulation.system().hosts().next().expect("there is one");
            host.line_of(address)
                .map(|line| (line, host.caches().newest_version(line), simulation.durable_version(line)))
        };
        let without = {
            let mut lost = simulation.clone();
            lost.power_fail();
            lost.recover().expect("it comes to an end");
            lost
        };
        let report = cut.global_persistent_flush(AMPLE);
        assert!(!report.is_dirty_shutdown(), "event {events}: {report:?}");
        let flushed = cut.clone();
        cut.power_fail();
        cut.recover().expect("it comes to an end");
        let mut saved = 0;
        for address in (0..300).map(persistent_line) {
            let Some((line, performed, _)) = durable(&flushed, address) else { continue };
            assert_eq!(cut.durable_version(line), performed, "{scheme}, event {events}, {line:?}");
            saved += u64::from(cut.durable_version(line) != without.durable_version(line));
        }
        saved_most = saved_most.max(saved);
        if !(0..every).all(|_| simulation.step()) {
            break;
        }
        events += every;
    }
    assert!(saved_most >= 4, "at no event were there more than {saved_most} lines to save");
}

fn nothing_is_lost_on_any_machine(every: u64) {
    for scheme in Scheme::ALL {
        nothing_is_lost(every, "pcs-table1", scheme, &["core.count=1"]);
    }
    nothing_is_lost(every, "pcs-table1", Scheme::PbRf, &["core.count=1", "cache.l2.write_buffers=1"]);
    nothing_is_lost(every, "pcs-table1-2sw", Scheme::Pb, &["core.count=1", "pm.ack_at=\"media\""]);
    let both = "fabric.persist_points=[\"switch0\", \"switch1\"]";
    nothing_is_lost(every, "pcs-table1-2sw", Scheme::PbRf, &["core.count=1", both]);
}

#[test]
fn a_flush_in_the_middle_of_a_run_saves_all_that_was_performed() {
    nothing_is_lost_on_any_machine(5);
}

#[test]
#[ignore = "takes half a minute: make slow-tests"]
fn a_flush_at_any_event_saves_all_that_was_performed() {
    nothing_is_lost_on_any_machine(1);
}

#[test]
fn non_temporal_stores_that_wait_for_room_are_saved() {
    let machine = machine("pcs-table1", &["core.count=1", "cache.l2.write_buffers=1"]);
    let mut builder = ProgramBuilder::new();
    (0..20).for_each(|number| builder.one(0, Instruction::NonTemporalLine, persistent_line(number)));
    let mut simulation =
        Simulation::new(&machine, Scheme::Nopb, &[builder.finish().on_host()], options()).expect("it can be run");
    let kept = |mut simulation: Simulation| {
        simulation.power_fail();
        simulation.recover().expect("it comes to an end");
        let host = simulation.system().hosts().next().expect("there is one");
        let lines = (0..20).filter_map(|number| host.line_of(persistent_line(number)));
        lines.filter(|line| simulation.durable_version(*line).0 == 1).count()
    };
    let mut saved_most = 0;
    while simulation.step() {
        let mut flushed = simulation.clone();
        flushed.global_persistent_flush(AMPLE);
        saved_most = saved_most.max(kept(flushed) - kept(simulation.clone()));
    }
    assert!(saved_most > 2, "with one write buffer {saved_most} were saved at most: those that waited were not");
}
