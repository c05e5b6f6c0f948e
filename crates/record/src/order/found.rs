//! What the walk for rounds has found.

use rustc_hash::FxHashSet;

use super::history::Place;
use super::polling::Polled;
use super::queue_locks::Tenure;

/// What was found.
#[derive(Default)]
pub(super) struct Found {
    /// By thread: from where to where it waited.
    pub runs: Vec<Vec<(u64, u64)>>,
    /// By thread: rounds that are kept although they may have waited.
    pub polled: Vec<Vec<Polled>>,
    /// Words that were waited for.
    pub words: FxHashSet<u64>,
    /// Where they were read.
    pub places: FxHashSet<Place>,
    /// Whether each block has ever touched a shared word.
    pub has_looked: Vec<bool>,
    /// Locks that are handed on, by the words that threads update, with who had them.
    pub queue_locks: Vec<(u64, Vec<Tenure>)>,
}
