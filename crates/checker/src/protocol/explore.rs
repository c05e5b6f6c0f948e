//! Breadth-first exploration: every state within the bounds, once, and a shortest way to the first broken predicate.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::action::Action;
use super::model::Model;
use super::packing::Words;
use super::predicates::{NO_DEADLOCK, PROGRESS, check_state};
use super::visited::{StateIndex, Visited};
use super::world::World;

/// How far an exploration is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Progress {
    /// States found.
    pub states: u64,
    /// Actions done.
    pub transitions: u64,
    /// The longest of the shortest ways to the states found, in actions.
    pub depth: u32,
    /// States whose next states are all found.
    pub expanded: u64,
    /// Bytes that the set of states takes.
    pub bytes: u64,
    /// Seconds since the start.
    pub seconds: f64,
}

/// A predicate that does not hold, and the shortest way there.
#[derive(Clone, Debug, PartialEq)]
pub struct Counterexample<const K: usize> {
    /// The name of the predicate.
    pub predicate: &'static str,
    /// The states on the way, the first state first. An action can break a predicate on its way to a state; then that is the last.
    pub states: Vec<Words<K>>,
}

/// What came of an exploration.
#[derive(Clone, Debug)]
pub struct Exploration<const K: usize> {
    /// How far it went.
    pub progress: Progress,
    /// What it found; nothing if everything holds.
    pub counterexample: Option<Counterexample<K>>,
    /// Why it ended before everything was explored, if it did.
    pub ended_early: Option<EndedEarly>,
}

/// Why an exploration ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedEarly {
    /// It was told to.
    Stopped,
    /// A state has more bits than the words have.
    StateTooWide,
    /// The next states would take more memory than they may, or cannot be numbered any more.
    OutOfMemory,
}

/// States whose next states are found between two looks at the clock.
const BETWEEN_LOOKS: u32 = 4096;
/// Next states that are looked up together, so that the memory they are in is fetched at the same time.
const BATCH: usize = 64;

/// A state that was led to and is not looked up yet.
struct Found<const K: usize> {
    words: Words<K>,
    hash: u64,
    parent: StateIndex,
}

/// The last state known on the way to a broken predicate, its name, and where the action led that broke it, if it was an action.
type Broken<const K: usize> = (StateIndex, &'static str, Option<Words<K>>);

struct Explorer<'a, const B: usize, const S: usize, const I: usize, const K: usize> {
    model: &'a Model<S, I>,
    first: World<B, S, I>,
    visited: Visited<K>,
    batch: Vec<Found<K>>,
    transitions: u64,
    is_too_wide: bool,
    broken: Option<Broken<K>>,
}

/// Explores everything that `model` can do, with `memory_max` bytes for the set of states. `observe` is told how far it is now and then, and may
/// stop it.
pub fn explore<const B: usize, const S: usize, const I: usize, const K: usize>(
    model: &Model<S, I>,
    memory_max: u64,
    observe: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Exploration<K> {
    let start = Instant::now();
    let mut explorer: Explorer<'_, B, S, I, K> = Explorer::new(model);
    let (mut depth, mut level_end, mut ended_early) = (0, 1, None);
    let mut next: StateIndex = 0;
    let progress = |explorer: &Explorer<'_, B, S, I, K>, expanded: StateIndex, depth| Progress {
        states: explorer.visited.len() as u64,
        transitions: explorer.transitions,
        depth,
        expanded: expanded.into(),
        bytes: explorer.visited.bytes() as u64,
        seconds: start.elapsed().as_secs_f64(),
    };
    while (next as usize) < explorer.visited.len() && explorer.broken.is_none() && ended_early.is_none() {
        explorer.expand(next);
        next += 1;
        if explorer.batch.len() >= BATCH || next as usize == level_end {
            if explorer.has_room(memory_max) {
                explorer.look_up();
            } else {
                ended_early = Some(EndedEarly::OutOfMemory);
            }
        }
        if next as usize == level_end && explorer.visited.len() > level_end {
            depth += 1;
            level_end = explorer.visited.len();
        }
        if next.is_multiple_of(BETWEEN_LOOKS) && observe(&progress(&explorer, next, depth)).is_break() {
            ended_early = Some(EndedEarly::Stopped);
        }
        if explorer.is_too_wide {
            ended_early = Some(EndedEarly::StateTooWide);
        }
    }
    if matches!(explorer.broken, Some((_, _, Some(_)))) {
        // An action breaks something at the next level. A state of this level that breaks something is nearer.
        let rest = (next..level_end as StateIndex).find_map(|index| explorer.broken_state(index));
        explorer.broken = rest.or(explorer.broken);
    }
    Exploration { progress: progress(&explorer, next, depth), counterexample: explorer.counterexample(), ended_early }
}

impl<const B: usize, const S: usize, const I: usize, const K: usize> Explorer<'_, B, S, I, K> {
    /// Knows the first state.
    fn new(model: &Model<S, I>) -> Explorer<'_, B, S, I, K> {
        let mut first = model.initial::<B>();
        model.make_canonical(&mut first);
        let words = model.pack(&mut first).expect("the first state is nearly empty");
        let mut visited = Visited::new();
        visited.insert(&words, Visited::hash(&words), 0);
        Explorer { model, first, visited, batch: Vec::new(), transitions: 0, is_too_wide: false, broken: None }
    }

    /// Looks at the predicates of a state, and finds its next states.
    fn expand(&mut self, index: StateIndex) {
        let model = self.model;
        let world = model.unpack_over(&self.first, self.visited.get(index));
        self.broken = self.broken_in(index, &world);
        if self.broken.is_some() {
            return;
        }
        let work = model.work_left(&world);
        let (batch, transitions, broken) = (&mut self.batch, &mut self.transitions, &mut self.broken);
        let is_too_wide = &mut self.is_too_wide;
        let looks_at_progress = model.watch().looks_at(PROGRESS.name);
        let mut has_way_on = false;
        let mut sink = |action: Action, next: &mut World<B, S, I>, breaks: Option<&'static str>| {
            let is_cut = matches!(action, Action::PowerCut { .. });
            has_way_on |= !action.is_optional();
            *transitions += 1;
            let mut watch = model.watch();
            watch.broken = breaks;
            watch.require(&PROGRESS, is_cut || !looks_at_progress || model.work_left(next) < work);
            model.make_canonical(next);
            let Some(words) = model.pack(next) else {
                *is_too_wide = true;
                return;
            };
            if let (Some(name), None) = (watch.broken, &broken) {
                *broken = Some((index, name, Some(words)));
            }
            batch.push(Found { words, hash: Visited::hash(&words), parent: index });
        };
        model.each_next(&world, &mut sink);
        if !has_way_on && !model.may_end_in(&world) && self.broken.is_none() {
            let mut watch = model.watch();
            let predicate = if model.has_anything_under_way(&world) { &NO_DEADLOCK } else { &PROGRESS };
            watch.require(predicate, false);
            self.broken = watch.broken.map(|name| (index, name, None));
        }
    }

    /// Whether all that was found fits into so many bytes if it is new.
    fn has_room(&self, memory_max: u64) -> bool {
        let (found, known) = (self.batch.len(), self.visited.len());
        known + found < StateIndex::MAX as usize && self.visited.bytes_with(found) as u64 <= memory_max
    }

    /// Looks up what was found, and keeps what is new.
    fn look_up(&mut self) {
        let near = self.batch.iter().fold(0, |sum: u64, found| sum.wrapping_add(self.visited.touch(found.hash)));
        std::hint::black_box(near);
        for found in self.batch.drain(..) {
            self.visited.insert(&found.words, found.hash, found.parent);
        }
    }

    /// What a state breaks.
    fn broken_state(&self, index: StateIndex) -> Option<Broken<K>> {
        self.broken_in(index, &self.model.unpack_over(&self.first, self.visited.get(index)))
    }

    fn broken_in(&self, index: StateIndex, world: &World<B, S, I>) -> Option<Broken<K>> {
        let mut watch = self.model.watch();
        check_state(world, self.model.parameters.as_ref(), self.model.bounds.addresses, &mut watch);
        watch.broken.map(|name| (index, name, None))
    }

    /// The shortest way to what is broken.
    fn counterexample(&self) -> Option<Counterexample<K>> {
        let (mut index, predicate, last) = self.broken?;
        let mut path = vec![index];
        while index > 0 {
            index = self.visited.parent(index);
            path.push(index);
        }
        path.reverse();
        let mut states: Vec<Words<K>> = path.into_iter().map(|index| *self.visited.get(index)).collect();
        states.extend(last);
        Some(Counterexample { predicate, states })
    }
}

/// Looks at the clock and passes on how far it is, at most so often.
pub fn every<'a>(
    interval: Duration,
    mut observe: impl FnMut(&Progress) -> ControlFlow<()> + 'a,
) -> impl FnMut(&Progress) -> ControlFlow<()> + 'a {
    let mut last = Instant::now();
    move |progress| {
        if last.elapsed() < interval {
            return ControlFlow::Continue(());
        }
        last = Instant::now();
        observe(progress)
    }
}
