//! The worst instant of a replay for a power cut.

use fencepost_kernel::time::Duration;
use fencepost_sim::replay::global_flush::FlushLimits;
use fencepost_sim::replay::power::{DirtyLines, EVENTS_BETWEEN_CHECKPOINTS, PowerReport};
use fencepost_sim::replay::simulation::{HostProgram, Options, Outcome, Progress, Simulation};
use fencepost_sim::switch::Scheme;

use super::machine::machine;
use super::machine_generator::random_machine;
use super::program::{Instruction, LittleProgram, ProgramBuilder, options, persistent_line};
use super::program_generator::random_programs;
use super::random::Random;

/// Makes `most` lines dirty, flushes them all, and makes a single one dirty.
fn dirties_most(most: u64) -> LittleProgram {
    let mut builder = ProgramBuilder::new();
    (0..most).for_each(|number| builder.one(0, Instruction::Store, persistent_line(number)));
    // All of them are performed, and nothing else is dirty for long.
    builder.one(0, Instruction::Mfence, 0);
    (0..400).for_each(|number| builder.one(0, Instruction::Load, persistent_line(10_000 + 64 * number)));
    (0..most).for_each(|number| builder.one(0, Instruction::Clwb, persistent_line(number)));
    builder.one(0, Instruction::Mfence, 0);
    builder.one(0, Instruction::Store, persistent_line(0));
    (0..400).for_each(|number| builder.one(0, Instruction::Load, persistent_line(50_000 + 64 * number)));
    builder.finish()
}

fn found(simulation: Simulation, limits: FlushLimits, events_between_checkpoints: u64) -> (Outcome, PowerReport) {
    let found = simulation.run_to_worst_power_cut(limits, events_between_checkpoints, &Progress::default());
    found.unwrap_or_else(|error| panic!("{error}"))
}

fn report(most: u64, scheme: Scheme, limits: FlushLimits) -> PowerReport {
    let machine = machine("pcs-table1", &["core.count=1"]);
    let simulation = Simulation::new(&machine, scheme, &[dirties_most(most).on_host()], options());
    let simulation = simulation.unwrap_or_else(|error| panic!("{scheme}: {error}"));
    found(simulation, limits, EVENTS_BETWEEN_CHECKPOINTS).1
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
fn the_fullest_a_buffer_was_is_what_its_own_statistics_say() {
    for scheme in [Scheme::Pb, Scheme::PbRf, Scheme::PbAdaptive] {
        let machine = machine("pcs-table1", &["core.count=1"]);
        let program = dirties_most(100);
        let new = || Simulation::new(&machine, scheme, &[program.on_host()], options()).expect("it can be run");
        let (followed, report) = found(new(), FlushLimits::AMPLE, EVENTS_BETWEEN_CHECKPOINTS);
        let outcome = new().run(&Progress::default()).expect("it ends");
        assert_eq!(followed.stats.to_json(), outcome.stats.to_json(), "to follow it changes nothing");
        let levels = outcome.stats.get("switch0.persist_buffer.occupancy.level_ps").expect("it has them");
        let most = (0..=16u64).rev().find(|level| levels.counter(&level.to_string()) > 0).expect("at some level");
        assert_eq!(report.fullest.iter().map(|fullest| fullest.bytes).collect::<Vec<_>>(), [64 * most], "{scheme}");
        assert!(most > 1);
    }
}

#[test]
fn from_whichever_checkpoint_it_goes_there_it_finds_the_same() {
    let machine = machine("pcs-table1", &["core.count=1"]);
    let program = dirties_most(40);
    let report = |events_between_checkpoints| {
        let simulation =
            Simulation::new(&machine, Scheme::PbRf, &[program.on_host()], options()).expect("it can be run");
        found(simulation, FlushLimits::AMPLE, events_between_checkpoints).1
    };
    let from_the_start = report(u64::MAX);
    assert!(from_the_start.looks > 300 && from_the_start.time_ps > 0, "{from_the_start:?}");
    for events in [1, 7, 50] {
        assert_eq!(report(events), from_the_start, "copied every {events} events");
    }
}

#[test]
fn what_is_only_warmed_between_intervals_of_a_sample_counts_in_the_next() {
    let mut builder = ProgramBuilder::new();
    for number in 0..20_000 {
        builder.one(0, Instruction::Store, persistent_line(number * 7 % 500));
        if number % 3 == 0 {
            builder.one(0, Instruction::Clwb, persistent_line(number * 5 % 500));
        }
    }
    let program = builder.finish();
    let machine = machine("pcs-table1", &["core.count=1"]);
    let options = Options { sample: Some("2k:100:100".parse().expect("a plan")), ..options() };
    let new = || Simulation::new(&machine, Scheme::Pb, &[program.on_host()], options.clone()).expect("it can be run");
    let (most, looks) = follow(&mut new(), u64::MAX, "sampled");
    let (_, report) = found(new(), FlushLimits::AMPLE, 100);
    assert_eq!(report.looks, looks);
    assert!(most > 300 && report.cache_bytes >= 64 * most as u64, "{most} {report:?}");
}

/// Goes on for so many events; after each that is timed the dirty lines are those of the caches. The most of them, and
/// how often it looked.
fn follow(simulation: &mut Simulation, events: u64, what: &str) -> (usize, u64) {
    let (mut most, mut looks) = (0, 0);
    let mut dirty = DirtyLines::follow(simulation);
    for event in 0..events {
        if !simulation.step() {
            break;
        }
        if dirty.go_on(simulation) {
            let counted: usize = simulation.system().hosts().map(|host| host.caches().dirty_pm_lines()).sum();
            assert_eq!(dirty.lines(), counted, "{what}, event {event}");
            (most, looks) = (counted.max(most), looks + 1);
        }
    }
    (most, looks)
}

#[test]
fn dirty_lines_are_followed_exactly_on_random_machines() {
    let (mut most, mut looks) = (0, 0);
    for seed in 0..60 {
        let random = &mut Random::new(seed);
        let machine = random_machine(random);
        if machine.sockets() > 1 {
            continue; // The Global Persistent Flush of those is refused.
        }
        let (hosts, options) = random_programs(machine.topology().hosts.len(), random);
        let programs: Vec<HostProgram> = hosts.into_iter().map(|(_, program)| program).collect();
        let is_legal = |scheme: &Scheme| machine.topology().check_scheme(*scheme).is_ok();
        let scheme = Scheme::ALL.into_iter().rfind(is_legal).expect("nopb is always legal");
        let mut simulation = Simulation::new(&machine, scheme, &programs, options).expect("it can be run");
        let (most_here, looks_here) = follow(&mut simulation, 3000, &format!("seed {seed}"));
        (most, looks) = (most_here.max(most), looks + looks_here);
    }
    assert!(most > 10 && looks > 10_000, "{most} {looks}");
}
