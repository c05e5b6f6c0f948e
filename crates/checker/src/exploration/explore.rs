//! Breadth-first exploration: every state within the bounds, once, and a shortest way to the first broken predicate.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::crew::Crew;
use super::expand::{Block, Broken, Expand, Expanded, Words};
use super::visited::{BATCH, StateIndex, Visited};

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
    /// The states on the way, the first state first. An action can break a predicate on its way to a state; then that
    /// is the last.
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

/// What an exploration may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Means {
    /// Bytes for the set of states.
    pub memory_max: u64,
    /// Threads that find next states, beside the one that looks them up and finds some itself.
    pub threads: usize,
}

/// States that are handed over together to be expanded: so many that handing over costs little.
const BLOCK: usize = 256;

/// What is known so far.
struct Explorer<'a, E: Expand<K>, const K: usize> {
    expander: &'a E,
    visited: Visited<K>,
    transitions: u64,
    /// All before this one are expanded, and what they lead to is looked up.
    expanded: StateIndex,
    depth: u32,
    /// The first state of the next depth.
    level_end: usize,
    start: Instant,
}

/// Explores everything that `expander` finds. `observe` is told how far it is after each block, and may stop it.
///
/// # Panics
/// If an action does.
pub fn explore<E: Expand<K>, const K: usize>(
    expander: &E,
    means: Means,
    observe: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Exploration<K> {
    explore_and_keep(expander, means, observe).0
}

/// As [`explore`], and gives the set of states as well.
///
/// # Panics
/// If an action does.
pub fn explore_and_keep<E: Expand<K>, const K: usize>(
    expander: &E,
    means: Means,
    observe: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> (Exploration<K>, Visited<K>) {
    let mut explorer = Explorer::new(expander);
    let (mut given, mut broken, mut ended_early) = (0, None, None);
    std::thread::scope(|scope| {
        let mut crew: Crew<'_, E, K> = Crew::new(scope, expander, means.threads);
        loop {
            while crew.has_room() && (explorer.visited.len() >= given + BLOCK || crew.is_idle()) {
                let block = explorer.block(given);
                given += block.states.len();
                if block.states.is_empty() {
                    break;
                }
                crew.give(block);
            }
            let Some(expanded) = crew.take() else { break };
            if !explorer.keep(&expanded, means.memory_max) {
                ended_early = Some(EndedEarly::OutOfMemory);
                break;
            }
            if expanded.is_too_wide {
                ended_early = Some(EndedEarly::StateTooWide);
                break;
            }
            if expanded.broken.is_some() {
                broken = explorer.nearest(expanded.broken);
                break;
            }
            if observe(&explorer.progress()).is_break() {
                ended_early = Some(EndedEarly::Stopped);
                break;
            }
        }
    });
    let counterexample = broken.map(|broken| Counterexample::to(&explorer.visited, broken));
    (Exploration { progress: explorer.progress(), counterexample, ended_early }, explorer.visited)
}

impl<'a, E: Expand<K>, const K: usize> Explorer<'a, E, K> {
    /// Knows the first state.
    fn new(expander: &'a E) -> Self {
        let words = expander.first();
        let mut visited = Visited::new();
        visited.insert(&words, Visited::hash(&words), 0);
        Explorer { expander, visited, transitions: 0, expanded: 0, depth: 0, level_end: 1, start: Instant::now() }
    }

    /// The states from number `first` on, as many as there are and make a block.
    fn block(&self, first: usize) -> Block<K> {
        let end = self.visited.len().min(first + BLOCK);
        let states = (first..end).map(|index| *self.visited.get(index as StateIndex)).collect();
        Block { first: first as StateIndex, states }
    }

    /// Whether so many more states fit into so many bytes, and can be numbered.
    fn has_room(&self, found: usize, memory_max: u64) -> bool {
        self.visited.len() + found < StateIndex::MAX as usize && self.visited.bytes_with(found) as u64 <= memory_max
    }

    /// Looks up what was found, and keeps what is new, as long as there is room.
    fn keep(&mut self, expanded: &Expanded<K>, memory_max: u64) -> bool {
        for batch in expanded.found.chunks(BATCH) {
            if !self.has_room(batch.len(), memory_max) {
                return false;
            }
            self.visited.touch(batch.iter().map(|found| found.hash));
            for found in batch {
                self.reach(found.parent);
                self.visited.insert(&found.words, found.hash, found.parent);
            }
        }
        self.reach(expanded.end - 1);
        self.expanded = expanded.end;
        self.transitions += expanded.transitions;
        true
    }

    /// What all states before this one lead to is known.
    fn reach(&mut self, index: StateIndex) {
        if index as usize >= self.level_end {
            self.depth += 1;
            self.level_end = self.visited.len();
        }
    }

    /// An action breaks something at the next depth. A state of this depth that breaks something is nearer.
    fn nearest(&self, broken: Option<Broken<K>>) -> Option<Broken<K>> {
        if !matches!(broken, Some((_, _, Some(_)))) {
            return broken;
        }
        let mut rest = self.expanded..self.level_end as StateIndex;
        rest.find_map(|index| self.expander.broken_in(index, self.visited.get(index))).or(broken)
    }

    fn progress(&self) -> Progress {
        let is_level_through = self.expanded as usize == self.level_end && self.visited.len() > self.level_end;
        Progress {
            states: self.visited.len() as u64,
            transitions: self.transitions,
            depth: self.depth + u32::from(is_level_through),
            expanded: self.expanded.into(),
            bytes: self.visited.bytes() as u64,
            seconds: self.start.elapsed().as_secs_f64(),
        }
    }
}

impl<const K: usize> Counterexample<K> {
    /// The shortest way to what is broken.
    pub fn to(visited: &Visited<K>, (mut index, predicate, last): Broken<K>) -> Self {
        let mut path = vec![index];
        while index > 0 {
            index = visited.parent(index);
            path.push(index);
        }
        path.reverse();
        let mut states: Vec<Words<K>> = path.into_iter().map(|index| *visited.get(index)).collect();
        states.extend(last);
        Counterexample { predicate, states }
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
