//! Several hosts, each with a program of its own, over one fabric.

use std::collections::BTreeSet;

use fencepost_kernel::time::Time;
use fencepost_sim::config::Machine;
use fencepost_sim::host::Host;
use fencepost_sim::replay::simulation::{Ended, HostProgram, Options, Outcome, Progress, Simulation};
use fencepost_sim::results::run_entry;
use fencepost_sim::switch::Scheme;

use super::machine::machine;
use super::program::{Instruction, ProgramBuilder, VOLATILE, options, persistent_line};
use super::results::check_entry;

/// `pcs-table1` with this fabric.
fn fabric(hosts: &[&str], switches: &[&str], edges: &[&str]) -> Machine {
    let list = |key: &str, names: &[&str]| format!("fabric.{key}={names:?}");
    let sets = [list("hosts", hosts), list("switches", switches), list("edges", edges)];
    machine("pcs-table1", &[&sets[0], &sets[1], &sets[2]])
}

/// So many hosts behind one switch.
fn one_switch(hosts: usize) -> Machine {
    let names: Vec<String> = (0..hosts).map(|host| format!("host{host}")).collect();
    let mut edges: Vec<String> = names.iter().map(|host| format!("{host} -> switch0")).collect();
    edges.push("switch0 -> pm0".to_owned());
    fabric(&texts(&names), &["switch0"], &texts(&edges))
}

/// Two hosts with a switch each, and a device with a port for both.
fn two_ports() -> Machine {
    fabric(&["host0", "host1"], &["left", "right"], &["host0 -> left", "host1 -> right", "left -> pm0", "right -> pm0"])
}

fn texts(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

/// Stores and flushes so many lines of PM, one after the other; after `warm_up` instructions and inside a region if
/// there is a number of them.
fn flushes(lines: u64, warm_up: Option<u64>) -> HostProgram {
    let mut builder = ProgramBuilder::new();
    (0..warm_up.unwrap_or(0)).for_each(|line| builder.one(0, Instruction::Load, VOLATILE + 64 * line));
    if warm_up.is_some() {
        builder.one(0, Instruction::RoiBegin, 0);
    }
    for line in 0..lines {
        builder.one(0, Instruction::Store, persistent_line(line));
        builder.one(0, Instruction::Clwb, persistent_line(line));
        builder.one(0, Instruction::Sfence, 0);
    }
    if warm_up.is_some() {
        builder.one(0, Instruction::RoiEnd, 0);
    }
    builder.finish().on_host()
}

fn replay(machine: &Machine, scheme: Scheme, programs: &[HostProgram], options: Options) -> Outcome {
    let simulation = Simulation::new(machine, scheme, programs, options);
    simulation.and_then(|simulation| simulation.run(&Progress::default())).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_host_has_frames_of_its_own_and_what_it_persisted_is_there() {
    for (machine, schemes) in [(one_switch(3), &Scheme::ALL[..]), (two_ports(), &[Scheme::Nopb])] {
        let hosts = machine.topology().hosts.len();
        for &scheme in schemes {
            let programs = vec![flushes(40, None); hosts];
            let mut simulation = Simulation::new(&machine, scheme, &programs, options()).unwrap();
            while simulation.step() {}
            let lines_of = |host: &Host| (0..40).map(|line| host.line_of(persistent_line(line)).unwrap()).collect();
            let lines: Vec<BTreeSet<_>> = simulation.system().hosts().map(lines_of).collect();
            let all: BTreeSet<_> = lines.iter().flatten().collect();
            assert_eq!(all.len(), 40 * hosts, "{scheme}: two hosts have a line in common");
            assert!(all.iter().all(|line| simulation.durable_version(**line).0 == 1), "{scheme}");
        }
    }
}

#[test]
fn hosts_that_share_a_switch_wait_for_each_other_and_equal_ones_get_equal_parts() {
    let alone = replay(&one_switch(1), Scheme::Nopb, &[flushes(200, None)], options());
    let shared = replay(&one_switch(3), Scheme::Nopb, &vec![flushes(200, None); 3], options());
    let [alone, shared] = [alone, shared].map(|outcome| run_entry(&outcome, "machine", Scheme::Nopb, 1.0));
    [&alone, &shared].into_iter().for_each(check_entry);
    let number = |value: &serde_json::Value| value.as_f64().expect("it is a number");
    let mean = |entry: &serde_json::Value| number(&entry["persist"]["latency_ns"]["mean"]);
    let waited = |entry: &serde_json::Value| number(&entry["explanation"]["switch_arbitration_wait_ns"]);
    // Reads wait for each other, and then persists come one after the other; three hosts that did not meet would wait
    // three times as long as one.
    assert!(waited(&shared) > 3.0 * waited(&alone), "{} alone, {} shared", waited(&alone), waited(&shared));
    assert!(number(&shared["simulated_ns"]) > number(&alone["simulated_ns"]));
    assert_eq!(shared["persist"]["count"], 600);
    let hosts = shared["hosts"].as_array().expect("it is a list");
    assert_eq!(
        hosts.iter().map(|host| host["name"].as_str().unwrap()).collect::<Vec<_>>(),
        ["host0", "host1", "host2"]
    );
    for host in hosts {
        assert_eq!((&host["persist"]["count"], &host["instructions"]), (&200.into(), &600.into()));
        assert!((mean(host) / mean(&shared) - 1.0).abs() < 0.05, "one gets more than the others: {hosts:?}");
    }
    let last = hosts.iter().map(|host| number(&host["finished_ns"])).fold(0.0, f64::max);
    assert_eq!(last, number(&shared["simulated_ns"]));
    let [only] = &alone["hosts"].as_array().expect("it is a list")[..] else { panic!("there is one host") };
    assert_eq!(only["finished_ns"], alone["simulated_ns"]);
    for same in ["instructions", "persist", "llc_read"] {
        assert_eq!(only[same], alone[same]);
    }
}

#[test]
fn a_persist_waits_for_the_first_switch_that_all_hosts_pass() {
    let tree = |hosts: &[&str], edges: &[&str]| fabric(hosts, &["left", "right", "root"], edges);
    let below = ["host0 -> left", "left -> root", "root -> pm0"];
    let shared = tree(&["host0", "host1"], &[&below[..], &["host1 -> right", "right -> root"]].concat());
    let alone = fabric(&["host0"], &["left", "root"], &below);
    let [shared, alone] = [(shared, 2), (alone, 1)].map(|(machine, hosts)| {
        let outcome = replay(&machine, Scheme::Pb, &vec![flushes(5, None); hosts], options());
        let drains = |switch: &str| {
            outcome.stats.get(&format!("{switch}.persist_buffer")).map(|node| node.counter("writes_flush"))
        };
        ((drains("left"), drains("root")), outcome)
    });
    assert_eq!(alone.0, (Some(5), None), "the only host passes the left switch first");
    assert_eq!(shared.0, (None, Some(10)), "the other host does not pass the left switch");
}

#[test]
fn a_device_reached_by_two_switches_has_no_persist_point_and_the_reason_is_said() {
    let programs = [flushes(1, None), flushes(1, None)];
    for scheme in [Scheme::Pb, Scheme::PbRf, Scheme::PbAdaptive] {
        let refused = Simulation::new(&two_ports(), scheme, &programs, options());
        assert_eq!(
            refused.err().expect("it cannot be").to_string(),
            format!(
                "scheme {scheme} needs a switch that every route to a PM device passes: the routes to pm0 (host0 -> left -> pm0; host1 -> right -> \
                 pm0) share no switch, and a host that does not pass the persist point would read stale data"
            )
        );
    }
    let outcome = replay(&two_ports(), Scheme::Nopb, &programs, options());
    assert_eq!(outcome.stats.counter("pm0.writes"), 2);
    assert_eq!(outcome.links.len(), 8);
}

#[test]
fn each_host_needs_a_program() {
    let refused = Simulation::new(&one_switch(2), Scheme::Nopb, &[flushes(1, None)], options());
    assert_eq!(refused.err().expect("it cannot be").to_string(), "each of 2 hosts needs a program, and there are 1");
}

#[test]
fn regions_of_all_hosts_begin_together_and_end_with_the_last() {
    // One warms up for long, one for a while, one marks no region at all.
    let programs = [flushes(20, Some(5000)), flushes(60, Some(10)), flushes(30, None)];
    for scheme in Scheme::ALL {
        let outcome = replay(&one_switch(3), scheme, &programs, options());
        assert_eq!((outcome.ended, outcome.intervals.len(), outcome.has_regions), (Ended::Complete, 1, true));
        let interval = &outcome.intervals[0];
        assert!(
            interval.start >= Time::ZERO + fencepost_kernel::time::Duration::from_ns(5000.0 / 4.0),
            "{:?}",
            interval.start
        );
        assert_eq!(interval.end, *interval.host_ends.iter().max().unwrap());
        assert!(interval.host_ends[0] < interval.host_ends[2] && interval.host_ends[2] < interval.host_ends[1]);
        let entry = run_entry(&outcome, "machine", scheme, 1.0);
        check_entry(&entry);
        assert_eq!(entry["persist"]["count"], 110);
        // The instructions of the warm-up are not in it; the marker that begins a region is, or is not, one itself.
        let instructions: Vec<u64> =
            (0..3).map(|host| entry["hosts"][host]["instructions"].as_u64().unwrap()).collect();
        assert!(instructions[0] < 70 && instructions[1] < 190 && instructions[2] == 90, "{instructions:?}");
        // The same without others in its way; a persist buffer may be fast enough for all.
        let alone = replay(&one_switch(1), scheme, &programs[..1], options());
        let time = |outcome: &Outcome| outcome.intervals[0].host_ends[0].since(outcome.intervals[0].start);
        let is_slower = time(&alone) < time(&outcome) || (scheme != Scheme::Nopb && time(&alone) == time(&outcome));
        assert!(is_slower, "{scheme}: {} alone, {} together", time(&alone), time(&outcome));
    }
}

#[test]
fn hosts_with_different_numbers_of_regions_come_to_their_end() {
    let regions = |count: u64| {
        let mut builder = ProgramBuilder::new();
        for region in 0..count {
            builder.one(0, Instruction::RoiBegin, 0);
            for line in 10 * region..10 * region + 10 {
                builder.one(0, Instruction::Store, persistent_line(line));
                builder.one(0, Instruction::Clflush, persistent_line(line));
            }
            builder.one(0, Instruction::RoiEnd, 0);
            // Written while warming up: the devices have it when the next region begins.
            builder.one(0, Instruction::Store, persistent_line(500 + region));
            builder.one(0, Instruction::Clflush, persistent_line(500 + region));
        }
        builder.finish().on_host()
    };
    let programs = [regions(3), regions(1), flushes(5, None)];
    for scheme in Scheme::ALL {
        let outcome = replay(&one_switch(3), scheme, &programs, options());
        assert_eq!(outcome.ended, Ended::Complete);
        let persists = |interval: &fencepost_sim::replay::simulation::Interval| {
            let of = |host: &str| {
                interval.stats.get(&format!("{host}.memory_border")).map_or(0, |border| border.counter("pm_writes"))
            };
            ["host0", "host1", "host2"].map(of)
        };
        assert_eq!(outcome.intervals.iter().map(persists).collect::<Vec<_>>(), [[10, 10, 5], [10, 0, 0], [10, 0, 0]]);
        assert!(outcome.intervals.is_sorted_by(|one, next| one.end <= next.start));
    }
}

#[test]
fn limits_count_all_hosts_together() {
    let programs = [flushes(500, None), flushes(500, None)];
    let limited = |options| replay(&one_switch(2), Scheme::Nopb, &programs, options);
    let outcome = limited(Options { pm_writes_limit: Some(100), ..options() });
    assert_eq!(outcome.ended, Ended::LimitPmWrites);
    let writes = ["host0", "host1"].map(|host| outcome.stats.counter(&format!("{host}.memory_border.pm_writes")));
    // Cores compute ahead, and what is under way is still written.
    assert!((100..150).contains(&writes.iter().sum::<u64>()) && writes.iter().all(|own| *own > 40), "{writes:?}");
    // Replays that stop at the same positions do the same work.
    let mut stopped = programs.clone();
    for (program, positions) in stopped.iter_mut().zip(&outcome.positions) {
        program.thread_limits.clone_from(positions);
    }
    let again = replay(&one_switch(2), Scheme::PbRf, &stopped, options());
    assert_eq!(again.positions, outcome.positions);
    let outcome = limited(Options { instructions_limit: Some(1000), ..options() });
    assert_eq!(outcome.ended, Ended::LimitInstructions);
    assert!((1000..1002).contains(&outcome.instructions), "{}", outcome.instructions);
    let own: Vec<u64> = outcome.positions.iter().map(|threads| threads.iter().sum()).collect();
    assert!(own.iter().all(|own| *own > 400), "both went on until then: {own:?}");
    assert_eq!(outcome.warnings, [""; 0]);
}

#[test]
fn a_limit_beyond_the_end_says_how_much_there_is() {
    let options = Options { instructions_limit: Some(9_000_000), pm_writes_limit: Some(1_234_567), ..options() };
    let programs = [flushes(500, None), flushes(500, None)];
    let [alone, both] =
        [1, 2].map(|hosts| replay(&one_switch(hosts), Scheme::Nopb, &programs[..hosts], options.clone()));
    assert_eq!((alone.ended, both.ended), (Ended::Complete, Ended::Complete));
    let one_record = [
        "--limit-instructions 9,000,000: the record has only 1,500 instructions",
        "--limit-pm-writes 1,234,567: the record makes only 500 writes to PM",
    ];
    let two_records = [
        "--limit-instructions 9,000,000: the records have only 3,000 instructions",
        "--limit-pm-writes 1,234,567: the records make only 1,000 writes to PM",
    ];
    assert_eq!((texts(&alone.warnings), texts(&both.warnings)), (one_record.to_vec(), two_records.to_vec()));
}
