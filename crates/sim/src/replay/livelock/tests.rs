//! Whole systems in which one component does what none may do: each ends in a report that names who waits for whom.

use super::LivelockWatch;
use crate::address_space::Placement;
use crate::config::{Machine, SourceText};
use crate::core::persist::PersistMode;
use crate::error::SimulationError;
use crate::host::ThreadPlacement;
use crate::host::bench::assembler::{RAX, RBX, clwb, sfence, store};
use crate::host::bench::{PM, Script};
use crate::replay::simulation::{HostProgram, Options, Program, Progress, Simulation};
use crate::switch::Scheme;
use crate::system::broken::Fault;
use crate::traffic::{Pattern, SharedBy, StreamConfig};
use crate::traffic_experiment::Experiment;
use fencepost_kernel::time::{Duration, Time};
use fencepost_kernel::trace::{Selection, Trace};
use fencepost_record::{AddressRange, AddressRanges};

const TWO_HOSTS: [&str; 2] =
    [r#"fabric.hosts=["host0","host1"]"#, r#"fabric.edges=["host0 -> switch0","host1 -> switch0","switch0 -> pm0"]"#];

fn machine(sets: &[&str]) -> Machine {
    let text = include_str!("../../../../../machines/pcs-table1.toml").to_owned();
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let source = SourceText { name: "pcs-table1".to_owned(), text };
    Machine::resolve(source, &|_| None, &sets).unwrap_or_else(|errors| panic!("{errors}"))
}

/// Four reads of PM under way from every host, without end.
fn experiment() -> Experiment {
    let stream = StreamConfig {
        memory: "pm".to_owned(),
        pattern: Pattern::Random,
        footprint_bytes: 1 << 20,
        request_bytes: 64,
        reads: 1,
        writes: 0,
        outstanding: 4,
        lines_outstanding: None,
        inject_delay_ns: 0.0,
        inject_jitter_ns: 0.0,
        dependent: false,
        shared_by: SharedBy::Stream,
        caches: false,
        modifies: false,
        weight: 1.0,
        begin_ns: 0.0,
        end_ns: None,
        group: None,
        counted_part: 1.0,
        dies: false,
        requests: None,
    };
    Experiment {
        streams: vec![vec![stream]],
        warm_up_ns: 1_000.0,
        measure_ns: 1_000_000.0,
        seed: 1,
        ..Experiment::default()
    }
}

/// Stores, writes back and fences so many lines of PM, one after the other.
fn persists(lines: u64) -> HostProgram {
    let mut script = Script::default();
    for line in 0..lines {
        script.run(0, &[store(RBX, RAX, PM + 64 * line), clwb(RBX, PM + 64 * line), sfence()]);
    }
    let persistent = AddressRanges::union([AddressRange { start: PM, end: PM + (1 << 24) }]);
    HostProgram {
        program: Program::new(script.record()).expect("it is x86-64"),
        placement: Placement::in_dram_and_pm(&persistent),
        thread_limits: Vec::new(),
    }
}

/// Each host of `machine` persists so many lines.
fn replay(machine: &Machine, scheme: Scheme, lines: &[u64]) -> Simulation {
    let options = Options {
        threads: ThreadPlacement::default(),
        persist: PersistMode::Program,
        pm_writes_limit: None,
        instructions_limit: None,
        seed: 0,
        sample: None,
        transport: crate::transport::Transport::None,
    };
    let programs: Vec<_> = lines.iter().map(|&lines| persists(lines)).collect();
    Simulation::new(machine, scheme, &programs, options).unwrap_or_else(|error| panic!("{error}"))
}

/// The same with the component `name` broken from the start.
fn broken_replay(machine: &Machine, scheme: Scheme, lines: &[u64], name: &str, fault: Fault) -> Simulation {
    let mut simulation = replay(machine, scheme, lines);
    simulation.system_mut().break_component(name, fault);
    simulation
}

fn deadlock<T>(result: Result<T, SimulationError>) -> (Time, Vec<String>) {
    match result {
        Err(SimulationError::Deadlock { time, waiting }) => (time, waiting),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it went on"),
    }
}

fn livelock<T>(result: Result<T, SimulationError>) -> (Time, Vec<String>) {
    match result {
        Err(SimulationError::Livelock { time, waiting }) => (time, waiting),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it went on"),
    }
}

#[test]
fn a_device_that_keeps_a_persist_is_reported_from_the_core_to_the_device() {
    let simulation = broken_replay(&machine(&[]), Scheme::Nopb, &[3], "pm0", Fault::KeepsEverything);
    let error = simulation.run(&Progress::default()).expect_err("it cannot go on");
    let report = error.to_string();
    println!("{report}");
    // docs/deadlocks.md shows it.
    let page = include_str!("../../../../../docs/deadlocks.md");
    for line in report.lines() {
        assert!(page.lines().any(|shown| shown == line), "docs/deadlocks.md has no line:\n{line}");
    }
    deadlock::<()>(Err(error));
}

#[test]
fn a_traced_replay_that_cannot_go_on_is_a_deadlock_too() {
    let simulation = broken_replay(&machine(&[]), Scheme::Nopb, &[3], "pm0", Fault::KeepsEverything);
    let trace = Trace::new(Selection::Persist(2), 1000);
    deadlock(simulation.run_traced(trace, &Progress::default()));
}

#[test]
fn a_host_that_waits_for_ever_is_named_when_the_other_has_come_to_its_end() {
    let machine = machine(&TWO_HOSTS);
    let lines = [2, 300];
    let simulation = broken_replay(&machine, Scheme::Nopb, &lines, "host0_bridge", Fault::KeepsEverything);
    let (time, waiting) = deadlock(simulation.run(&Progress::default()));
    println!("{}", waiting.join("\n"));
    assert!(time > Time::from_ps(50_000_000), "the other one persists 300 lines first: {time}");
    assert!(waiting.iter().any(|line| line.starts_with("host0: core 0 runs thread 0")), "{waiting:?}");
    assert!(waiting.contains(&"host0_bridge: keeps 1 messages for ever".to_owned()), "{waiting:?}");
    assert!(!waiting.iter().any(|line| line.starts_with("host1")), "{waiting:?}");
}

#[test]
fn what_wakes_itself_for_ever_ends_a_replay_whether_or_not_time_goes_on() {
    for later in [0, 1000] {
        let fault = Fault::WakesItself(Duration::from_ps(later));
        let simulation = broken_replay(&machine(&[]), Scheme::Pb, &[3], "pm0", fault);
        let (_, waiting) = livelock(simulation.run(&Progress::default()));
        assert!(waiting.contains(&"pm0: wakes itself for ever".to_owned()), "{waiting:?}");
        assert!(waiting.iter().any(|line| line.starts_with("pm0: leads by port 0 to switch0")), "{waiting:?}");
    }
}

#[test]
fn a_host_that_wakes_itself_for_ever_is_found_beside_one_that_goes_on() {
    let (machine, experiment) = (machine(&TWO_HOSTS), experiment());
    let mut system = experiment.system(&machine, Scheme::Nopb).unwrap_or_else(|error| panic!("{error}"));
    system.break_component("host0", Fault::WakesItself(Duration::from_ps(1)));
    let (time, waiting) = livelock(experiment.measure(&machine, system));
    assert!(time < Time::from_ps(1_100_000), "after a million events, each 1 ps later: {time}");
    assert!(waiting[0].starts_with("host0: has handled 100"), "{waiting:?}");
    assert!(waiting[0].ends_with("events since it came on last"), "{waiting:?}");
    assert!(!waiting.iter().any(|line| line.starts_with("host1: has")), "{waiting:?}");
}

#[test]
fn many_hosts_are_looked_at_less_often_and_one_that_wakes_itself_for_ever_is_found_among_them() {
    let names: Vec<String> = (0..100).map(|host| format!("host{host}")).collect();
    let edges: Vec<String> = names.iter().map(|name| format!("{name} -> switch0")).collect();
    let hosts = format!("fabric.hosts={names:?}");
    let edges = format!("fabric.edges={:?}", [edges, vec!["switch0 -> pm0".to_owned()]].concat());
    let (machine, experiment) = (machine(&[&hosts, &edges]), experiment());
    let mut system = experiment.system(&machine, Scheme::Nopb).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(LivelockWatch::new(&system).events_per_look(), 100 * 64);
    system.break_component("host99", Fault::WakesItself(Duration::from_ps(1)));
    let (_, waiting) = livelock(experiment.measure(&machine, system));
    assert!(waiting[0].starts_with("host99: has handled 100"), "after a million events: {}", waiting[0]);
    assert!(!waiting[1..].iter().any(|line| line.contains("has handled")), "the others come on");
}

#[test]
fn traffic_that_gets_no_answers_is_a_deadlock_and_endless_wakes_are_a_livelock() {
    let machine = machine(&[]);
    let experiment = |fault| {
        let experiment = experiment();
        let mut system = experiment.system(&machine, Scheme::Nopb)?;
        system.break_component("pm0", fault);
        experiment.measure(&machine, system)
    };
    let (_, waiting) = deadlock(experiment(Fault::KeepsEverything));
    println!("{}", waiting.join("\n"));
    assert!(waiting.contains(&"host0: stream 0: 4 requests wait for 4 lines".to_owned()), "{waiting:?}");
    assert!(waiting.contains(&"switch0: 4 requests wait for the answers of devices".to_owned()), "{waiting:?}");
    assert!(waiting.contains(&"pm0: keeps 4 messages for ever".to_owned()), "{waiting:?}");
    let (_, waiting) = livelock(experiment(Fault::WakesItself(Duration::ZERO)));
    assert!(waiting.contains(&"pm0: wakes itself for ever".to_owned()), "{waiting:?}");
}

#[test]
fn recovery_is_watched_as_well() {
    let cut = |fault| {
        let mut simulation = replay(&machine(&[]), Scheme::PbRf, &[40]);
        simulation.run_until(Time::from_ps(10_000_000)).unwrap_or_else(|error| panic!("{error}"));
        simulation.power_fail();
        simulation.system_mut().break_component("pm0", fault);
        simulation.recover()
    };
    let (_, waiting) = deadlock(cut(Fault::KeepsEverything));
    println!("{}", waiting.join("\n"));
    assert!(waiting.iter().any(|line| line.starts_with("switch0: persist buffer")), "{waiting:?}");
    let (_, waiting) = livelock(cut(Fault::WakesItself(Duration::from_ps(1_000_000))));
    assert!(waiting.contains(&"pm0: wakes itself for ever".to_owned()), "{waiting:?}");
}

#[test]
fn only_many_events_in_a_row_without_progress_are_a_livelock() {
    let mut still = super::Standstill::default();
    let mut after = |events, progress| still.length(progress, events);
    assert_eq!(after(5_000_000, 0), 5_000_000);
    assert_eq!(after(5_000_001, 1), 0);
    assert_eq!(after(10_000_001, 1), 5_000_000);
    assert_eq!(after(10_000_002, 2), 0);
}
