//! One proof or one attempt to kill a mutant, from bounds to a report.

use std::ops::ControlFlow;

use serde::Serialize;

use super::bounds::{Bounds, INPUTS, SLOTS};
use super::expand::Expander;
use super::model::Model;
use super::mutants::Explored;
use super::predicates;
use super::story::tell;
use crate::exploration::explore::explore;
use crate::exploration::{EndedEarly, Exploration, Means, Progress};

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The bounds.
    pub bounds: Bounds,
    /// How far it went.
    #[serde(flatten)]
    pub progress: Progress,
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
    /// The invariants that it serves.
    pub invariants: &'static [u8],
    /// What it says.
    pub says: &'static str,
    /// A shortest way there, in words.
    pub steps: Vec<String>,
}

/// Explores all of `model` with `means`. `observe` is told how far it is now and then, and may stop it.
pub fn prove(model: &Explored, means: Means, observe: &mut dyn FnMut(&Progress) -> ControlFlow<()>) -> Report {
    // As few words as the states of these bounds fit into: they are what memory is needed for.
    let report = match model.buffers() {
        0 => with_words::<0, 4>(model, means, observe).or_else(|| with_words::<0, 5>(model, means, observe)),
        1 => with_words::<1, 4>(model, means, observe).or_else(|| with_words::<1, 8>(model, means, observe)),
        _ => with_words::<2, 6>(model, means, observe).or_else(|| with_words::<2, 13>(model, means, observe)),
    };
    report.expect("no state within the limits of the bounds is wider")
}

/// Nothing if some state does not fit into `K` words.
fn with_words<const B: usize, const K: usize>(
    model: &Explored,
    means: Means,
    observe: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Option<Report> {
    let expander: Expander<'_, B, SLOTS, INPUTS> = Expander::new(model);
    let exploration: Exploration<K> = explore(&expander, means, observe);
    if exploration.ended_early == Some(EndedEarly::StateTooWide) {
        return None;
    }
    let counterexample = exploration.counterexample.map(|found| {
        let (invariants, says) = predicates::about(found.predicate);
        Story { predicate: found.predicate, invariants, says, steps: tell::<B, SLOTS, INPUTS, K>(model, &found) }
    });
    Some(Report {
        bounds: model.bounds,
        progress: exploration.progress,
        counterexample,
        ended_early: exploration.ended_early,
    })
}

/// The protocol as it should be, within `bounds`.
pub fn sound(bounds: Bounds) -> Result<Explored, String> {
    bounds.check()?;
    Ok(Model::sound(bounds))
}
