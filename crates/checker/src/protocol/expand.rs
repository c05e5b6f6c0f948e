//! What a state leads to, and what it breaks: the work that no other state has a part in.

use super::action::Action;
use super::model::Model;
use super::packing::{Packer, Words};
use super::predicates::{NO_DEADLOCK, PROGRESS, check_state};
use super::visited::{StateIndex, Visited};
use super::world::World;

/// States that are expanded together.
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
    /// Its [`Visited::hash`].
    pub hash: u64,
    /// The number of the state that led to it.
    pub parent: StateIndex,
}

/// The last state known on the way to a broken predicate, its name, and where the action led that broke it, if it was an action.
pub type Broken<const K: usize> = (StateIndex, &'static str, Option<Words<K>>);

/// What the states of a block lead to.
pub struct Expanded<const K: usize> {
    /// The number after that of the last state that was expanded: of the last of the block, or of the first that breaks something.
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
pub struct Expander<'a, const B: usize, const S: usize, const I: usize> {
    model: &'a Model<S, I>,
    packer: Packer<B, S, I>,
}

impl<'a, const B: usize, const S: usize, const I: usize> Expander<'a, B, S, I> {
    /// Of that model.
    pub fn new(model: &'a Model<S, I>) -> Self {
        Expander { model, packer: Packer::new(model) }
    }

    /// The state that all others come from.
    pub fn first<const K: usize>(&self) -> Words<K> {
        self.packer.pack(&mut self.packer.first().clone()).expect("the first state is nearly empty")
    }

    /// Expands the states of a block one after the other, up to one that breaks something.
    pub fn expand<const K: usize>(&self, block: &Block<K>) -> Expanded<K> {
        let mut expanded =
            Expanded { end: block.first, found: Vec::new(), transitions: 0, is_too_wide: false, broken: None };
        for words in &block.states {
            self.expand_one(expanded.end, words, &mut expanded);
            expanded.end += 1;
            if expanded.broken.is_some() || expanded.is_too_wide {
                break;
            }
        }
        expanded
    }

    /// What a state itself breaks.
    pub fn broken_in<const K: usize>(&self, index: StateIndex, words: &Words<K>) -> Option<Broken<K>> {
        self.broken_in_world(index, &self.packer.unpack(words))
    }

    fn broken_in_world<const K: usize>(&self, index: StateIndex, world: &World<B, S, I>) -> Option<Broken<K>> {
        let mut watch = self.model.watch();
        check_state(world, self.model.parameters.as_ref(), self.model.bounds.addresses, &mut watch);
        watch.broken.map(|name| (index, name, None))
    }

    /// Looks at the predicates of a state, and finds its next states.
    fn expand_one<const K: usize>(&self, index: StateIndex, words: &Words<K>, expanded: &mut Expanded<K>) {
        let model = self.model;
        let world = self.packer.unpack(words);
        expanded.broken = self.broken_in_world(index, &world);
        if expanded.broken.is_some() {
            return;
        }
        let work = model.work_left(&world);
        let looks_at_progress = model.watch().looks_at(PROGRESS.name);
        let mut has_way_on = false;
        let mut sink = |action: Action, next: &mut World<B, S, I>, breaks: Option<&'static str>| {
            let is_cut = matches!(action, Action::PowerCut { .. });
            has_way_on |= !action.is_optional();
            expanded.transitions += 1;
            let mut watch = model.watch();
            watch.broken = breaks;
            watch.require(&PROGRESS, is_cut || !looks_at_progress || model.work_left(next) < work);
            model.make_canonical(next);
            let Some(words) = self.packer.pack(next) else {
                expanded.is_too_wide = true;
                return;
            };
            if let (Some(name), None) = (watch.broken, &expanded.broken) {
                expanded.broken = Some((index, name, Some(words)));
            }
            expanded.found.push(Found { words, hash: Visited::hash(&words), parent: index });
        };
        model.each_next(&world, &mut sink);
        if !has_way_on && !model.may_end_in(&world) && expanded.broken.is_none() {
            let mut watch = model.watch();
            let predicate = if model.has_anything_under_way(&world) { &NO_DEADLOCK } else { &PROGRESS };
            watch.require(predicate, false);
            expanded.broken = watch.broken.map(|name| (index, name, None));
        }
    }
}
