//! One proof or one attempt to kill a mutant, from bounds to a report.

use std::ops::ControlFlow;
use std::time::Instant;

use serde::Serialize;

use super::bounds::Bounds;
use super::device_memory;
use super::expand::Expander;
use super::model::Model;
use super::packing::bits;
use super::predicates::{PROGRESS, about};
use super::story::tell;
use crate::exploration::explore::explore_and_keep;
use crate::exploration::{
    Counterexample, EndedEarly, Ends, Exploration, Means, Onward, Progress, Visited, Words, first_stranded,
};

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The bounds.
    pub bounds: Bounds,
    /// How far it went.
    #[serde(flatten)]
    pub progress: Progress,
    /// Seconds that the search for states without a way to rest took, beside those of the exploration.
    pub progress_seconds: f64,
    /// What is broken, if something is.
    pub counterexample: Option<Story>,
    /// Why it ended before it was through, if it did.
    pub ended_early: Option<EndedEarly>,
}

/// A counterexample to be read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Story {
    /// The name of the predicate that is broken.
    pub predicate: &'static str,
    /// What it says.
    pub says: &'static str,
    /// A shortest way there, in words.
    pub steps: Vec<String>,
}

/// The rules as they should be, within `bounds`.
pub fn sound(bounds: Bounds) -> Result<Model, String> {
    bounds.check()?;
    Ok(Model::sound(bounds))
}

/// Explores all of `model` with `means`. `observe` is told how far it is now and then, and may stop it.
pub fn prove(model: &Model, means: Means, observe: &mut dyn FnMut(&Progress) -> ControlFlow<()>) -> Report {
    if let Some(memory) = &model.device_memory {
        let (exploration, visited) = device_memory::explore(memory, model.looks, means, observe);
        let onward = |words: &Words<1>, next: &mut Onward<1>| device_memory::onward(memory, words, next);
        return report(model, exploration, &visited, onward, observe, |found| device_memory::tell(memory, found));
    }
    match bits(model.sizes()).div_ceil(64) {
        1 => with_words::<1>(model, means, observe),
        2 => with_words::<2>(model, means, observe),
        3 => with_words::<3>(model, means, observe),
        4 => with_words::<4>(model, means, observe),
        5 => with_words::<5>(model, means, observe),
        words => unreachable!("{words} words are more than the limits of the bounds can take"),
    }
}

fn with_words<const K: usize>(
    model: &Model,
    means: Means,
    observe: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Report {
    let expander = Expander::new(model);
    let (exploration, visited) = explore_and_keep::<_, K>(&expander, means, observe);
    let onward = |words: &Words<K>, next: &mut Onward<K>| expander.onward(words, next);
    report(model, exploration, &visited, onward, observe, |found| tell(model, &expander, found))
}

/// What an exploration found, and what cannot come to rest in what it has seen. `observe` may end that search too.
fn report<const K: usize>(
    model: &Model,
    exploration: Exploration<K>,
    visited: &Visited<K>,
    onward: impl Fn(&Words<K>, &mut Onward<K>) -> Ends,
    observe: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    tell: impl Fn(&Counterexample<K>) -> Vec<String>,
) -> Report {
    let started = Instant::now();
    let is_through = exploration.counterexample.is_none() && exploration.ended_early.is_none();
    let (mut found, mut ended_early) = (exploration.counterexample, exploration.ended_early);
    if is_through && model.looks.at(&PROGRESS) {
        match first_stranded(visited, onward, &mut || observe(&exploration.progress)) {
            ControlFlow::Continue(index) => {
                found = index.map(|index| Counterexample::to(visited, (index, PROGRESS.name, None)));
            }
            ControlFlow::Break(()) => ended_early = Some(EndedEarly::Stopped),
        }
    }
    let story = |found: &Counterexample<K>| Story {
        predicate: found.predicate,
        says: about(found.predicate),
        steps: tell(found),
    };
    Report {
        bounds: model.bounds.clone(),
        progress: exploration.progress,
        progress_seconds: started.elapsed().as_secs_f64(),
        counterexample: found.as_ref().map(story),
        ended_early,
    }
}
