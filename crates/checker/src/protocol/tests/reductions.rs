//! The reductions change how much is explored, and nothing of what is found.

use super::super::bounds::Reductions;
use super::super::mutants;
use super::*;

/// Each reduction alone left out.
fn each_left_out() -> [(&'static str, Reductions); 5] {
    [
        ("slots", Reductions { slots: false, ..Reductions::ALL }),
        ("hosts", Reductions { hosts: false, ..Reductions::ALL }),
        ("addresses", Reductions { addresses: false, ..Reductions::ALL }),
        ("invisible_steps", Reductions { invisible_steps: false, ..Reductions::ALL }),
        ("arrival", Reductions { arrival: false, ..Reductions::ALL }),
    ]
}

#[test]
fn what_is_proved_with_reductions_is_proved_without_each_of_them_and_takes_more_states() {
    let bounds = Bounds { entries: 2, ..small(Scheme::Pb) };
    let [reduced, ..] = proved(bounds);
    let counts = each_left_out().map(|(name, reductions)| (name, proved(Bounds { reductions, ..bounds })[0]));
    for (name, states) in counts {
        assert!(states > reduced, "{name}: {states} and {reduced}");
    }
    let [unreduced, ..] = proved(Bounds { reductions: Reductions::NONE, ..tiny(Scheme::Pb, Topology::Single) });
    assert_eq!(unreduced, 2420);
}

#[test]
#[ignore = "takes ten seconds: make slow-tests"]
fn every_scheme_is_proved_without_the_reductions_of_steps_too() {
    let mut all = Vec::new();
    for scheme in Scheme::ALL {
        all.extend([Topology::Single, Topology::Shared].map(|topology| tiny(scheme, topology)));
        all.push(Bounds { partial_writes: true, ..tiny(scheme, Topology::Single) });
        all.push(Bounds { failures: 1, ..tiny(scheme, Topology::Single) });
        all.push(Bounds { acknowledgement_inputs: 2, ..tiny(scheme, Topology::Single) });
    }
    all.extend([Scheme::Nopb, Scheme::PbRf].map(|scheme| tiny(scheme, Topology::Chain)));
    for bounds in all {
        let [reduced, ..] = proved(bounds);
        let reductions = Reductions { invisible_steps: false, arrival: false, ..Reductions::ALL };
        let [unreduced, ..] = proved(Bounds { reductions, ..bounds });
        assert!(unreduced > reduced, "{bounds:?}");
    }
}

#[test]
fn interchangeable_slots_hosts_and_addresses_leave_counterexamples_as_short_as_they_are() {
    for mutant in &mutants::ALL {
        let mut model = mutant.model();
        let length = explored(&model).counterexample.unwrap().steps.len();
        model.bounds.reductions =
            Reductions { slots: false, hosts: false, addresses: false, ..model.bounds.reductions };
        let story = explored(&model).counterexample.unwrap_or_else(|| panic!("{} survives", mutant.name));
        assert_eq!(story.steps.len(), length, "{}: {:#?}", mutant.name, story.steps);
    }
}

#[test]
fn every_mutant_is_killed_without_any_reduction() {
    for mutant in &mutants::ALL {
        let mut model = mutant.model();
        model.bounds.reductions = Reductions::NONE;
        let report = explored(&model);
        assert_eq!(report.counterexample.map(|story| story.predicate), Some(mutant.predicate), "{}", mutant.name);
    }
}
