//! What a state leads to, and what it breaks: the work that no other state has a part in.

use super::action::{Action, Way, Ways};
use super::model::Model;
use super::packing::Packer;
use super::predicates::{NO_DEADLOCK, PROGRESS, check_state};
use super::world::World;
use crate::exploration::{Block, Broken, Expand, Expanded, Found, StateIndex, Visited, Words};

/// States that are expanded together, each step of the work for all of them before the next step: the code of one step
/// fits into a first-level instruction cache, that of all does not. What so many lead to fits into the second level.
const GROUP: usize = 16;

/// Some states and what they lead to, in memory that is used again and again.
#[derive(Debug, Default)]
pub struct Scratch<const B: usize, const S: usize, const I: usize> {
    worlds: Vec<World<B, S, I>>,
    ways: Ways<B, S, I>,
    /// Of each way the number of the state that it starts from.
    parents: Vec<StateIndex>,
}

/// Finds next states.
pub struct Expander<'a, const B: usize, const S: usize, const I: usize> {
    model: &'a Model<S, I>,
    packer: Packer<B, S, I>,
}

impl<const B: usize, const S: usize, const I: usize, const K: usize> Expand<K> for Expander<'_, B, S, I> {
    type Scratch = Scratch<B, S, I>;

    fn first(&self) -> Words<K> {
        self.packer.pack(&mut self.packer.first().clone()).expect("the first state is nearly empty")
    }

    fn expand(&self, block: &Block<K>, scratch: &mut Self::Scratch) -> Expanded<K> {
        let mut expanded =
            Expanded { end: block.first, found: Vec::new(), transitions: 0, is_too_wide: false, broken: None };
        for states in block.states.chunks(GROUP) {
            self.expand_group(states, scratch, &mut expanded);
            if expanded.broken.is_some() || expanded.is_too_wide {
                break;
            }
        }
        expanded
    }

    fn broken_in(&self, index: StateIndex, words: &Words<K>) -> Option<Broken<K>> {
        self.broken_in_world(index, &self.packer.unpack(words))
    }
}

impl<'a, const B: usize, const S: usize, const I: usize> Expander<'a, B, S, I> {
    /// Of that model.
    pub fn new(model: &'a Model<S, I>) -> Self {
        Expander { model, packer: Packer::new(model) }
    }

    fn broken_in_world<const K: usize>(&self, index: StateIndex, world: &World<B, S, I>) -> Option<Broken<K>> {
        let mut watch = self.model.watch();
        check_state(world, self.model.parameters.as_ref(), self.model.bounds.addresses, &mut watch);
        watch.broken.map(|name| (index, name, None))
    }

    /// Looks at the predicates of some states, and finds their next states.
    fn expand_group<const K: usize>(
        &self,
        states: &[Words<K>],
        scratch: &mut Scratch<B, S, I>,
        expanded: &mut Expanded<K>,
    ) {
        let first = expanded.end;
        let Scratch { worlds, ways, parents } = scratch;
        worlds.resize(states.len(), *self.packer.first());
        worlds.iter_mut().zip(states).for_each(|(world, words)| self.packer.unpack_into(words, world));
        let in_itself = (first..).zip(&*worlds).find_map(|(index, world)| self.broken_in_world(index, world));
        if let Some((index, ..)) = in_itself {
            worlds.truncate((index - first) as usize);
        }
        ways.clear();
        parents.clear();
        let on_its_ways = (first..).zip(&*worlds).find_map(|(index, world)| {
            let known = ways.len();
            self.model.each_next(world, ways);
            parents.resize(ways.len(), index);
            self.broken_on_ways(world, &mut ways[known..]).map(|name| (index, name))
        });
        ways.iter_mut().for_each(|way| self.model.make_canonical(&mut way.next));
        let mut broken_by_action = None;
        for (way, parent) in ways.iter_mut().zip(&*parents) {
            let Some(words) = self.packer.pack(&mut way.next) else {
                expanded.is_too_wide = true;
                continue;
            };
            broken_by_action = broken_by_action.or(way.breaks.map(|_| words));
            expanded.found.push(Found { words, hash: Visited::hash(&words), parent: *parent });
        }
        expanded.transitions += ways.len() as u64;
        expanded.broken = on_its_ways.map(|(index, name)| (index, name, broken_by_action)).or(in_itself);
        expanded.end = expanded.broken.map_or(first + states.len() as StateIndex, |(index, ..)| index + 1);
    }

    /// What the first of the ways of a state that breaks something breaks, or else what the state breaks by having no
    /// way on. Ways that leave no less work are marked.
    fn broken_on_ways(&self, world: &World<B, S, I>, ways: &mut [Way<B, S, I>]) -> Option<&'static str> {
        if self.model.watch().looks_at(PROGRESS.name) {
            let work = self.model.work_left(world);
            for way in &mut *ways {
                let mut watch = self.model.watch();
                watch.broken = way.breaks;
                let is_cut = matches!(way.action, Action::PowerCut { .. });
                watch.require(&PROGRESS, is_cut || self.model.work_left(&way.next) < work);
                way.breaks = watch.broken;
            }
        }
        ways.iter().find_map(|way| way.breaks).or_else(|| self.stuck_in(world, ways))
    }

    /// What a state with these ways breaks by having no way on.
    fn stuck_in(&self, world: &World<B, S, I>, ways: &[Way<B, S, I>]) -> Option<&'static str> {
        if ways.iter().any(|way| !way.action.is_optional()) || self.model.may_end_in(world) {
            return None;
        }
        let mut watch = self.model.watch();
        let predicate = if self.model.has_anything_under_way(world) { &NO_DEADLOCK } else { &PROGRESS };
        watch.require(predicate, false);
        watch.broken
    }
}
