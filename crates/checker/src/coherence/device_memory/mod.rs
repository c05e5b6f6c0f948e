//! Memory of a device that the host caches too, explored: the very state machines of
//! [`fencepost_sim::device::type2::device_memory`], one line, one device, its host.
//!
//! The device reads and writes the line, in its cache or past it; the host loads, stores and evicts. Messages of a
//! class arrive in order, those of different classes in any. What must hold is what must hold for host memory.

mod model;
mod world;

use std::ops::ControlFlow;

use fencepost_sim::device::type2::device_memory::{Kind, MemoryRules};

use super::predicates::{Looks, NO_DEADLOCK};
use crate::exploration::explore::explore_and_keep;
use crate::exploration::{
    Block, Broken, Counterexample, Ends, Expand, Expanded, Exploration, Found, Means, Onward, Progress, StateIndex,
    Visited, Words,
};
use world::World;

/// What is explored.
#[derive(Clone, Copy, Debug)]
pub struct DeviceMemory {
    /// How the device asks the host.
    pub kind: Kind,
    /// What both ends keep to.
    pub rules: MemoryRules,
}

/// What an exploration found, and the states that it has seen.
pub(super) type Explored = (Exploration<1>, Visited<1>);

/// Explores it all.
pub(super) fn explore(
    memory: &DeviceMemory,
    looks: Looks,
    means: Means,
    observe: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Explored {
    explore_and_keep(&Expander { memory, looks }, means, observe)
}

/// Where the actions of a state lead that have to be done sooner or later.
pub(super) fn onward(memory: &DeviceMemory, words: &Words<1>, next: &mut Onward<1>) -> Ends {
    let world = World::unpack(words[0]);
    memory.each_action(&world, &mut |action| {
        if !action.is_optional() {
            next.push([memory.apply(&world, action).next.pack()]);
        }
    });
    if world.is_at_rest() { Ends::AtRest } else { Ends::Onward }
}

/// A counterexample in words.
pub(super) fn tell(memory: &DeviceMemory, counterexample: &Counterexample<1>) -> Vec<String> {
    let mut world = World::initial();
    let mut steps = Vec::new();
    for words in &counterexample.states[1..] {
        let mut found = None;
        memory.each_action(&world, &mut |action| {
            let next = memory.apply(&world, action).next;
            if found.is_none() && next.pack() == words[0] {
                found = Some((action, next));
            }
        });
        let (action, next) = found.expect("each state of a way comes from the one before");
        steps.push(format!("{}\n{}", action.said(&world), next.shown()));
        world = next;
    }
    steps
}

/// Finds next states.
struct Expander<'a> {
    memory: &'a DeviceMemory,
    looks: Looks,
}

impl Expander<'_> {
    fn expand_world(&self, index: StateIndex, world: &World, expanded: &mut Expanded<1>) -> Option<Broken<1>> {
        let mut broken = None;
        let mut must_go_on = true;
        self.memory.each_action(world, &mut |action| {
            must_go_on &= action.is_optional();
            let step = self.memory.apply(world, action);
            let words = [step.next.pack()];
            if let Some(name) = step.breaks.filter(|predicate| self.looks.at(predicate)) {
                broken = broken.or(Some((index, name.name, Some(words))));
            }
            expanded.transitions += 1;
            expanded.found.push(Found { words, hash: Visited::hash(&words), parent: index });
        });
        let is_stuck = must_go_on && self.looks.at(&NO_DEADLOCK) && !world.is_at_rest();
        broken.or(is_stuck.then_some((index, NO_DEADLOCK.name, None)))
    }
}

impl Expand<1> for Expander<'_> {
    type Scratch = ();

    fn first(&self) -> Words<1> {
        [World::initial().pack()]
    }

    fn expand(&self, block: &Block<1>, (): &mut ()) -> Expanded<1> {
        let mut expanded =
            Expanded { end: block.first, found: Vec::new(), transitions: 0, is_too_wide: false, broken: None };
        for (index, words) in (block.first..).zip(&block.states) {
            expanded.end = index + 1;
            expanded.broken = self.broken_in(index, words);
            if expanded.broken.is_none() {
                expanded.broken = self.expand_world(index, &World::unpack(words[0]), &mut expanded);
            }
            if expanded.broken.is_some() {
                break;
            }
        }
        expanded
    }

    fn broken_in(&self, index: StateIndex, words: &Words<1>) -> Option<Broken<1>> {
        World::unpack(words[0]).broken(self.looks).map(|name| (index, name, None))
    }
}
