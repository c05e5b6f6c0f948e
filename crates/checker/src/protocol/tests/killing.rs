//! Every mutant is killed, by the predicate that it was made for, and the story says how.

use super::super::model::Model;
use super::super::mutants;
use super::super::predicates;
use super::*;

#[test]
fn every_mutant_is_killed_by_the_predicate_that_it_was_made_for() {
    for mutant in &mutants::ALL {
        let story = explored(&mutant.model()).counterexample;
        let story = story.unwrap_or_else(|| panic!("{} survives", mutant.name));
        assert_eq!(story.predicate, mutant.predicate, "{}", mutant.name);
        assert!(story.steps.len() >= 2, "{}: {:?}", mutant.name, story.steps);
    }
}

#[test]
fn every_invariant_has_a_mutant_that_breaks_it() {
    let killers = mutants::ALL.iter().flat_map(|mutant| predicates::about(mutant.predicate).0);
    let mut broken: Vec<u8> = killers.copied().collect();
    broken.sort_unstable();
    broken.dedup();
    assert_eq!(broken, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
}

#[test]
fn the_same_bounds_are_proved_without_the_mutation() {
    for mutant in &mutants::ALL {
        let bounds = mutant.model().bounds;
        let report = explored(&sound(bounds).unwrap());
        assert_eq!(report.counterexample, None, "{}", mutant.name);
    }
}

#[test]
fn reads_may_follow_writes_where_the_selector_sees_the_input() {
    let unseen = mutants::Mutant::named("input-unseen").unwrap().model();
    assert!(!unseen.surroundings.bridge_holds_requests);
    let seen = Model { surroundings: unseen.surroundings, ..sound(unseen.bounds).unwrap() };
    assert_eq!(explored(&seen).counterexample, None);
}

#[test]
fn the_story_of_a_read_that_does_not_see_a_draining_entry() {
    let mutant = mutants::Mutant::named("drain-unseen").unwrap();
    let story = explored(&mutant.model()).counterexample.unwrap();
    let told = [
        "host 0 writes A; it is in the input of the persist buffer as v1",
        "persist buffer: takes host 0's write of A v1; slot 0 is to hold it, slot 0 gets the first part of the data, slot 0 gets the \
         rest of the data, slot 0 gets its tag",
        "persist buffer: slot 0 is marked Dirty: it is an entry\npersist buffer: [0] Dirty A v1; PM: A v0",
        "persist buffer: acknowledges host 0's write of A v1",
        "persist buffer: is to drain slot 0",
        "persist buffer: marks slot 0 Drain\npersist buffer: [0] Drain A v1; PM: A v0",
        "host 0 reads A; the persist buffer has no A and passes it on",
        "host 0's read of A goes on; PM answers with v0",
    ];
    assert_eq!(story.steps, told);
}

#[test]
fn a_mutant_that_is_not_there_is_answered_with_those_that_are() {
    let error = mutants::Mutant::named("frees-early").unwrap_err();
    let near =
        "there is no mutant `frees-early`; did you mean `frees-when-sent`? There are: all, pm-acknowledges-early, ";
    assert!(error.starts_with(near), "{error}");
}
