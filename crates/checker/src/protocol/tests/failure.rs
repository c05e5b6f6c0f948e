//! PM that declares its failure: what was acknowledged is kept, and silence without a declaration is found.

use super::super::mutants::Mutant;
use super::*;

fn failing(bounds: Bounds) -> Bounds {
    Bounds { failures: 1, ..bounds }
}

#[test]
fn nothing_acknowledged_is_lost_when_pm_fails() {
    let counts = Scheme::ALL.map(|scheme| proved(failing(tiny(scheme, Topology::Single))));
    assert_eq!(counts, [[126, 263, 9], [3064, 7682, 28], [814, 1624, 22], [3113, 7513, 27]]);
    let counts = Scheme::ALL.map(|scheme| proved(failing(tiny(scheme, Topology::Chain))));
    assert_eq!(counts, [[224, 516, 12], [35739, 113194, 60], [560, 1108, 23], [37135, 114582, 56]]);
    let counts = [Scheme::Nopb, Scheme::PbRf].map(|scheme| proved(failing(tiny(scheme, Topology::Shared))));
    assert_eq!(counts, [[10816, 38841, 20], [65324, 190305, 35]]);
    let counts = Scheme::ALL.map(|scheme| proved(failing(small(scheme))));
    assert_eq!(counts, [[1434, 5207, 11], [24488, 79144, 30], [9717, 29422, 26], [28517, 89166, 30]]);
}

#[test]
fn an_acknowledgement_after_a_declared_failure_is_found_only_where_pm_may_fail() {
    let mutant = Mutant::named("acknowledges-for-a-failed-pm").unwrap();
    let story = explored(&mutant.model()).counterexample.unwrap();
    assert!(story.steps.iter().any(|step| step.starts_with("PM declares its failure")), "{:#?}", story.steps);
    let mut model = mutant.model();
    model.bounds.failures = 0;
    model.only = None;
    assert_eq!(explored(&model).counterexample, None);
}

#[test]
fn a_pm_that_stops_acknowledging_is_a_deadlock_unless_it_declares_a_failure() {
    for failures in [0, 1] {
        let mut model = Mutant::named("pm-goes-silent").unwrap().model();
        model.bounds.failures = failures;
        let story = explored(&model).counterexample.unwrap();
        assert_eq!(story.predicate, "no_deadlock");
        let declared = story.steps.iter().any(|step| step.starts_with("PM declares its failure"));
        assert!(!declared, "{:#?}", story.steps);
    }
}
