//! The worst instant of a replay for a power cut.

use fencepost_sim::global_flush::FlushLimits;
use fencepost_sim::kernel::Duration;
use fencepost_sim::power::PowerReport;
use fencepost_sim::simulation::{Progress, Simulation};
use fencepost_sim::switch::Scheme;

use super::machine::machine;
use super::program::{Instruction, ProgramBuilder, options, persistent_line};

/// Makes `most` lines dirty, flushes them all, and makes a single one dirty.
fn report(most: u64, scheme: Scheme, limits: FlushLimits) -> PowerReport {
    let mut builder = ProgramBuilder::new();
    (0..most).for_each(|number| builder.one(0, Instruction::Store, persistent_line(number)));
    // All of them are performed, and then it is long enough for a look.
    builder.one(0, Instruction::Mfence, 0);
    (0..400).for_each(|number| builder.one(0, Instruction::Load, persistent_line(10_000 + 64 * number)));
    (0..most).for_each(|number| builder.one(0, Instruction::Clwb, persistent_line(number)));
    builder.one(0, Instruction::Mfence, 0);
    builder.one(0, Instruction::Store, persistent_line(0));
    (0..400).for_each(|number| builder.one(0, Instruction::Load, persistent_line(50_000 + 64 * number)));
    let machine = machine("pcs-table1", &["core.count=1"]);
    let simulation = Simulation::new(&machine, scheme, &[builder.finish().on_host()], options());
    let simulation = simulation.unwrap_or_else(|error| panic!("{scheme}: {error}"));
    simulation.find_worst_power_cut(limits, &Progress::default()).unwrap_or_else(|error| panic!("{scheme}: {error}"))
}

#[test]
fn the_worst_instant_is_when_the_most_is_dirty() {
    let report = report(100, Scheme::Nopb, FlushLimits::AMPLE);
    assert!(report.looks > 3, "{report:?}");
    assert_eq!(report.cache_bytes, 6400, "{report:?}");
    assert_eq!(report.needed.phase_1.bytes, 6400);
    assert_eq!(report.needed, report.flush);
    assert!(!report.flush.is_dirty_shutdown() && report.buffer_bytes.is_empty() && report.fullest.is_empty());
}

#[test]
fn more_dirty_lines_need_a_longer_hold_up() {
    let [few, many] = [10, 200].map(|most| report(most, Scheme::Pb, FlushLimits::AMPLE));
    assert!(few.needed.phase_1.duration_ps < many.needed.phase_1.duration_ps, "{few:?} {many:?}");
}

#[test]
fn the_limits_make_a_shutdown_dirty_and_leave_what_is_needed() {
    let limits = FlushLimits { phase_1: Duration::from_ps(1000), ..FlushLimits::AMPLE };
    let report = report(100, Scheme::PbRf, limits);
    assert!(report.flush.is_dirty_shutdown() && !report.needed.is_dirty_shutdown());
    assert_eq!(report.flush.phase_1.duration_ps, 1000);
    assert!(report.needed.phase_1.duration_ps > 1000);
}

#[test]
fn the_fullest_a_buffer_was_is_no_more_than_it_has() {
    let report = report(100, Scheme::PbRf, FlushLimits::AMPLE);
    let [fullest] = &report.fullest[..] else { panic!("{report:?}") };
    assert_eq!(fullest.switch, "switch0");
    assert!(fullest.bytes > 0 && fullest.bytes <= 16 * 64, "{fullest:?}");
}
