//! What a state leads to, and what it breaks.

use super::model::Model;
use super::packing::Packer;
use super::predicates::{NO_DEADLOCK, broken_in};
use super::world::World;
use crate::exploration::{Block, Broken, Ends, Expand, Expanded, Found, Onward, StateIndex, Visited, Words};

/// Finds next states.
pub struct Expander<'a> {
    model: &'a Model,
    packer: Packer,
}

impl<'a> Expander<'a> {
    /// Of that model.
    pub fn new(model: &'a Model) -> Self {
        Expander { model, packer: Packer::new(model.sizes(), model.bounds.symmetry) }
    }

    /// Packs and unpacks its states.
    pub fn packer(&self) -> &Packer {
        &self.packer
    }

    /// Where the actions of a state lead that have to be done sooner or later.
    pub fn onward<const K: usize>(&self, words: &Words<K>, next: &mut Onward<K>) -> Ends {
        let world = self.packer.unpack(words);
        self.model.each_action(&world, &mut |action| {
            if !action.what.is_optional() {
                next.push(self.packer.pack(&self.model.apply(&world, action).next));
            }
        });
        if self.is_at_rest(&world) { Ends::AtRest } else { Ends::Onward }
    }

    fn is_at_rest(&self, world: &World) -> bool {
        world.lines[..self.model.sizes()[2]].iter().all(super::world::Line::is_at_rest)
    }

    fn broken_in_world<const K: usize>(&self, index: StateIndex, world: &World) -> Option<Broken<K>> {
        let mut lines = world.lines[..self.model.sizes()[2]].iter();
        lines.find_map(|line| broken_in(line, self.model.looks)).map(|name| (index, name, None))
    }

    /// Finds the next states of one. What it breaks by an action, or by having none.
    fn expand_world<const K: usize>(
        &self,
        index: StateIndex,
        world: &World,
        expanded: &mut Expanded<K>,
    ) -> Option<Broken<K>> {
        let mut broken = None;
        let mut must_go_on = true;
        self.model.each_action(world, &mut |action| {
            must_go_on &= action.what.is_optional();
            let step = self.model.apply(world, action);
            let words = self.packer.pack(&step.next);
            if let Some(name) = step.breaks {
                broken = broken.or(Some((index, name, Some(words))));
            }
            expanded.transitions += 1;
            expanded.found.push(Found { words, hash: Visited::hash(&words), parent: index });
        });
        let is_stuck = must_go_on && self.model.looks.at(&NO_DEADLOCK) && !self.is_at_rest(world);
        broken.or(is_stuck.then_some((index, NO_DEADLOCK.name, None)))
    }
}

impl<const K: usize> Expand<K> for Expander<'_> {
    type Scratch = ();

    fn first(&self) -> Words<K> {
        self.packer.pack(&World::initial())
    }

    fn expand(&self, block: &Block<K>, _: &mut ()) -> Expanded<K> {
        let mut expanded =
            Expanded { end: block.first, found: Vec::new(), transitions: 0, is_too_wide: false, broken: None };
        for (index, words) in (block.first..).zip(&block.states) {
            expanded.end = index + 1;
            let world = self.packer.unpack(words);
            expanded.broken = self.broken_in_world(index, &world);
            if expanded.broken.is_none() {
                expanded.broken = self.expand_world(index, &world, &mut expanded);
            }
            if expanded.broken.is_some() {
                break;
            }
        }
        expanded
    }

    fn broken_in(&self, index: StateIndex, words: &Words<K>) -> Option<Broken<K>> {
        self.broken_in_world(index, &self.packer.unpack(words))
    }
}
