//! Progress: from every state, whatever was chosen on the way to it, a state at rest can be reached.
//!
//! Only actions that someone has to do sooner or later count; starting something new does not. In the graph of those
//! actions, that holds exactly if every terminal strongly connected component is a state at rest: any other one is a
//! deadlock or a livelock.

use std::ops::ControlFlow;

use super::expand::Words;
use super::visited::{StateIndex, Visited};

/// States between two calls of what may end the search: some milliseconds.
const STATES_BETWEEN_LOOKS: usize = 4096;

/// Where the actions of one state that have to be done lead.
pub type Onward<const K: usize> = Vec<Words<K>>;

/// Whether a state may be the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// It is at rest.
    AtRest,
    /// Something is under way.
    Onward,
}

/// The first of all states, and so one of those nearest to the first state, from which no state at rest can be reached.
/// `onward` adds where the actions of a state lead. `observe` is called again and again, and may end the search.
///
/// # Panics
/// If a state leads to one that is not among them.
pub fn first_stranded<const K: usize>(
    visited: &Visited<K>,
    mut onward: impl FnMut(&Words<K>, &mut Onward<K>) -> Ends,
    observe: &mut dyn FnMut() -> ControlFlow<()>,
) -> ControlFlow<(), Option<StateIndex>> {
    let states = visited.len();
    let mut can_rest = vec![false; states];
    // Where each state leads, one state after the other.
    let (mut leads, mut first_of) = (Vec::new(), Vec::with_capacity(states + 1));
    let mut next = Onward::new();
    for (index, can_rest) in can_rest.iter_mut().enumerate() {
        if index % STATES_BETWEEN_LOOKS == 0 {
            observe()?;
        }
        first_of.push(leads.len());
        next.clear();
        *can_rest = onward(visited.get(index as StateIndex), &mut next) == Ends::AtRest;
        if !*can_rest {
            leads.extend(next.iter().map(|words| visited.find(words).expect("every next state was found")));
        }
    }
    first_of.push(leads.len());
    // Most actions lead to states with higher numbers, so that going backwards needs few rounds.
    loop {
        let mut has_changed = false;
        for index in (0..states).rev().filter(|index| first_of[*index] < first_of[index + 1]) {
            if index % STATES_BETWEEN_LOOKS == 0 {
                observe()?;
            }
            let leads = &leads[first_of[index]..first_of[index + 1]];
            if !can_rest[index] && leads.iter().any(|next: &StateIndex| can_rest[*next as usize]) {
                can_rest[index] = true;
                has_changed = true;
            }
        }
        if !has_changed {
            let stranded = can_rest.iter().position(|can_rest| !can_rest);
            return ControlFlow::Continue(stranded.map(|index| index as StateIndex));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stranded(graph: &[&[u64]]) -> Option<StateIndex> {
        let found = looked_for(graph, &mut || ControlFlow::Continue(()));
        found.continue_value().expect("nobody ends it")
    }

    /// The first stranded state of a graph whose states without a next one are at rest.
    fn looked_for(
        graph: &[&[u64]],
        observe: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> ControlFlow<(), Option<StateIndex>> {
        let mut visited: Visited<1> = Visited::new();
        for state in 0..graph.len() as u64 {
            visited.insert(&[state], Visited::hash(&[state]), 0);
        }
        let onward = |words: &Words<1>, next: &mut Onward<1>| {
            next.extend(graph[words[0] as usize].iter().map(|state| [*state]));
            if next.is_empty() { Ends::AtRest } else { Ends::Onward }
        };
        first_stranded(&visited, onward, observe)
    }

    #[test]
    fn a_circle_that_can_be_left_strands_nobody() {
        assert_eq!(stranded(&[&[1], &[2], &[0, 3], &[]]), None);
        assert_eq!(stranded(&[&[3], &[], &[1], &[2]]), None, "against the order of the numbers");
    }

    #[test]
    fn a_circle_without_a_way_out_strands() {
        assert_eq!(stranded(&[&[1, 3], &[2], &[1], &[]]), Some(1));
    }

    #[test]
    fn the_search_ends_when_it_is_told_to_while_it_looks_and_while_it_goes_backwards() {
        let graph: &[&[u64]] = &[&[1], &[]];
        for looks in 0..2 {
            let mut left = looks;
            let mut observe = || {
                left -= 1;
                if left < 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            assert_eq!(looked_for(graph, &mut observe), ControlFlow::Break(()), "{looks}");
        }
    }
}
