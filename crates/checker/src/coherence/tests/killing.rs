//! Every mutant is found by the predicate that it was made for, and those of progress by that alone.

use super::super::mutants::{self, Mutant};
use super::super::predicates::{Looks, PROGRESS};
use super::*;

fn story_of(name: &str) -> Vec<String> {
    let report = explored(&Mutant::named(name).unwrap().model());
    report.counterexample.expect("it is killed").steps
}

#[test]
fn every_mutant_is_killed() {
    for mutant in mutants::ALL {
        let story = explored(&mutant.model()).counterexample;
        assert_eq!(story.map(|story| story.predicate), Some(mutant.predicate), "{}", mutant.name);
    }
}

#[test]
fn livelocks_are_found_by_progress_alone() {
    let of_progress = mutants::ALL.iter().filter(|mutant| mutant.predicate == PROGRESS.name);
    let found = of_progress.map(|mutant| {
        let model = Model { looks: Looks::Past(PROGRESS.name), ..mutant.model() };
        assert_eq!(explored(&model).counterexample, None, "{}", mutant.name);
    });
    assert!(found.count() >= 3);
}

/// `Write ‖ Read` from all-Invalid, in as many steps as in the published model. The writer has E, and makes it M
/// without a word.
#[test]
fn without_snoop_pushes_go_a_writer_and_a_reader_coexist() {
    let steps = story_of("snoop-passes-go");
    assert_eq!(steps.len(), 10, "{steps:#?}");
    assert!(steps[9].contains("device 0 S; device 1 E,"), "{steps:#?}");
}
