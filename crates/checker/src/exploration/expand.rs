//! What a model has to say to be explored.

use super::visited::StateIndex;

/// A packed state.
pub type Words<const K: usize> = [u64; K];

/// States that are handed over together to be expanded.
#[derive(Clone, Debug, Default)]
pub struct Block<const K: usize> {
    /// The number of the first.
    pub first: StateIndex,
    /// The states, with the numbers that follow.
    pub states: Vec<Words<K>>,
}

/// A state that was led to and is not looked up yet.
pub struct Found<const K: usize> {
    /// The state.
    pub words: Words<K>,
    /// Its [`Visited::hash`](super::Visited::hash).
    pub hash: u64,
    /// The number of the state that led to it.
    pub parent: StateIndex,
}

/// The last state known on the way to a broken predicate, its name, and where the action led that broke it, if it was
/// an action.
pub type Broken<const K: usize> = (StateIndex, &'static str, Option<Words<K>>);

/// What the states of a block lead to.
pub struct Expanded<const K: usize> {
    /// The number after that of the last state that was expanded: of the last of the block, or of the first that breaks
    /// something.
    pub end: StateIndex,
    /// The next states, in the order in which they were found.
    pub found: Vec<Found<K>>,
    /// How many actions were done.
    pub transitions: u64,
    /// Whether a next state has more bits than the words have.
    pub is_too_wide: bool,
    /// What is broken first.
    pub broken: Option<Broken<K>>,
}

/// Finds next states.
pub trait Expand<const K: usize>: Sync {
    /// Memory that is used again and again.
    type Scratch: Default;

    /// The state that all others come from.
    fn first(&self) -> Words<K>;

    /// Expands the states of a block in order, up to one that breaks something.
    fn expand(&self, block: &Block<K>, scratch: &mut Self::Scratch) -> Expanded<K>;

    /// What a state itself breaks.
    fn broken_in(&self, index: StateIndex, words: &Words<K>) -> Option<Broken<K>>;
}
