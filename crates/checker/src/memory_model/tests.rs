//! The tree of switches, on which every published litmus test runs with some timings; `tests/test_litmus.py` has the
//! other machines, and `fencepost litmus` more timings.

use std::fs;
use std::path::Path;
use std::sync::Mutex;

use fencepost_sim::config::{Machine, SourceText};

use super::fabrics::FABRICS;
use super::{Finding, Guard, NamedMachine, NotExamined, Progress, examine, names};

/// A machine that ships, by name.
fn shipped(name: &str) -> Option<SourceText> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines").join(format!("{name}.toml"));
    Some(SourceText { name: format!("machines/{name}.toml"), text: fs::read_to_string(path).ok()? })
}

fn machines(selected: &[&str]) -> Vec<NamedMachine> {
    let fabrics = FABRICS.iter().filter(|fabric| selected.contains(&fabric.name));
    let resolved = fabrics.map(|fabric| {
        let sets: Vec<String> = fabric.sets.iter().map(|&set| set.to_owned()).collect();
        let text = shipped(fabric.machine).unwrap_or_else(|| panic!("there is no machine {}", fabric.machine));
        let machine = Machine::resolve(text, &shipped, &sets).unwrap_or_else(|errors| panic!("{errors}"));
        (fabric.name.to_owned(), machine)
    });
    resolved.collect()
}

/// A panic fails the test.
fn plainly(_: &str, work: &mut dyn FnMut()) -> Option<String> {
    work();
    None
}

/// What was found about one test.
fn examined(name: &str, machines: &[NamedMachine], seeds: std::ops::Range<u64>, guard: Guard) -> Finding {
    examine(name, machines, seeds, guard, &Progress::default()).unwrap_or_else(|error| panic!("{error:?}"))
}

/// What was found about every test, on two threads.
fn findings(selected: &[&str], seeds: std::ops::Range<u64>) -> Vec<Finding> {
    let machines = machines(selected);
    let (open, found) = (Mutex::new(names()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(name) = { open.lock().expect("nobody panics with it").pop() } {
                    let finding = examined(&name, &machines, seeds.clone(), plainly);
                    found.lock().expect("nobody panics with it").push(finding);
                }
            });
        }
    });
    found.into_inner().expect("nobody panicked with it")
}

#[test]
#[ignore = "slow: every test, behind a fabric that others do not look at"]
fn no_forbidden_state_is_left_behind_a_tree_of_switches() {
    let findings = findings(&["tree"], 0..3);
    assert_eq!(findings.len(), names().len());
    for finding in &findings {
        assert!(finding.holds, "{finding:#?}");
    }
    let flushed = findings.iter().find(|finding| finding.id == "cxl0-08").expect("it is published");
    assert!(!flushed.cells.is_empty());
    for cell in &flushed.cells {
        assert!(cell.is_reached && cell.cuts == 2 * cell.dirty_shutdowns && cell.cuts > 0, "{cell:#?}");
    }
    // Tests that could find nothing would hold too: these states are known to be within reach.
    for reached in ["px86-10", "arm-commit_weak"] {
        let finding = findings.iter().find(|finding| finding.id == reached).expect("it is published");
        assert!(finding.cells.iter().any(|cell| cell.is_reached), "{finding:#?}");
    }
}

#[test]
fn a_run_with_the_same_seed_leaves_the_same_states() {
    let once = || examined("px86-13", &machines(&["switch"]), 3..4, plainly);
    let (first, second) = (once(), once());
    assert_eq!(format!("{first:?}"), format!("{second:?}"));
}

#[test]
fn a_run_that_fails_leaves_the_others_whole_and_no_test_holds_with_it() {
    let guard: Guard = |run, work| {
        let fails = run == "px86-05 on switch under pb, seed 1";
        if fails { Some("it fails".into()) } else { plainly(run, work) }
    };
    let finding = examined("px86-05", &machines(&["switch"]), 0..3, guard);
    let judged: Vec<u64> = finding.cells.iter().map(|cell| cell.judged).collect();
    assert_eq!(judged, [3, 1, 3, 3]);
    let errors: Vec<&str> = finding.cells.iter().filter_map(|cell| cell.error.as_deref()).collect();
    assert_eq!(errors, ["px86-05 on switch under pb, seed 1: it fails"]);
    assert!(finding.model_agrees && !finding.holds);
}

#[test]
fn a_test_that_is_not_there_is_named() {
    let error = examine("px86-99", &[], 0..1, plainly, &Progress::default()).expect_err("there is no such test");
    let NotExamined::Unknown(error) = error else { panic!("nobody has cancelled it") };
    assert!(
        error.starts_with("there is no litmus test `px86-99`; did you mean `px86-09`? There are: px86-01, "),
        "{error}"
    );
}

#[test]
fn runs_are_counted_and_none_begins_once_it_is_cancelled() {
    static PROGRESS: Progress = Progress::new();
    let guard: Guard = |run, work| {
        if run == "px86-05 on switch under pb, seed 1" {
            PROGRESS.cancel();
        }
        plainly(run, work)
    };
    let ended = examine("px86-05", &machines(&["switch"]), 0..3, guard, &PROGRESS).map(|finding| finding.id);
    assert_eq!(ended, Err(NotExamined::Cancelled));
    // Three under nopb, then two under pb; each of four schemes has three.
    assert_eq!(PROGRESS.runs(), (5, 12));
}
