//! One proof or one attempt to kill a mutant, from bounds to a report.

use std::ops::ControlFlow;
use std::time::Instant;

use serde::Serialize;

use super::bounds::Bounds;
use super::expand::Expander;
use super::model::Model;
use super::packing::bits;
use super::predicates::{PROGRESS, about};
use super::story::tell;
use crate::exploration::explore::explore_and_keep;
use crate::exploration::{Counterexample, EndedEarly, Means, Progress, first_stranded};

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
    let started = Instant::now();
    let is_through = exploration.counterexample.is_none() && exploration.ended_early.is_none();
    let stranded = || {
        let index = first_stranded(&visited, |words, next| expander.onward(words, next))?;
        Some(Counterexample::to(&visited, (index, PROGRESS.name, None)))
    };
    let looks_for_stranded = is_through && model.looks.at(&PROGRESS);
    let found = exploration.counterexample.or_else(|| looks_for_stranded.then(stranded).flatten());
    let story = |found: &Counterexample<K>| Story {
        predicate: found.predicate,
        says: about(found.predicate),
        steps: tell(model, &expander, found),
    };
    Report {
        bounds: model.bounds.clone(),
        progress: exploration.progress,
        progress_seconds: started.elapsed().as_secs_f64(),
        counterexample: found.as_ref().map(story),
        ended_early: exploration.ended_early,
    }
}
