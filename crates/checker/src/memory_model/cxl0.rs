//! The fabric's own memory model, enumerated: CXL0 (Assa, Friedman and Lahav, "A Programming Model for Disaggregated
//! Memory over CXL", arXiv 2407.16300, as summarised publicly).
//!
//! Host 0 works on memory that another node owns. Each node has a cache; the owner also has the memory, which is
//! non-volatile. `LStore` writes the cache of whoever stores, `RStore` that of the owner, `MStore` the memory itself. A
//! line moves on its own from any cache to the owner's, and from there to the memory. `LFlush` waits until it has left
//! the own cache, `RFlush` until no cache has it, `GPF` until no cache has anything. A crash of a node empties its
//! cache.

use std::collections::{BTreeSet, HashSet};

use super::litmus_test::{NvmState, display};

/// A node of the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// The one whose program runs.
    Host0 = 0,
    /// The one that owns the memory.
    Owner = 1,
}

/// What host 0 does; stores write 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FabricOperation {
    /// Into the own cache.
    LStore(usize),
    /// Into the owner's cache.
    RStore(usize),
    /// Into the owner's memory.
    MStore(usize),
    /// Waits until the own cache does not have it.
    LFlush(usize),
    /// Waits until no cache has it.
    RFlush(usize),
    /// The Global Persistent Flush: waits until no cache has anything.
    Gpf,
}

/// A test of the fabric's model.
#[derive(Clone, Debug)]
pub struct FabricTest {
    /// Its name.
    pub id: String,
    /// What host 0 does and who crashes then, as published.
    pub text: String,
    /// What host 0 does.
    pub operations: Vec<FabricOperation>,
    /// Who crashes when that is done.
    pub crashes: Vec<Node>,
    /// The names of the locations, in the order in which they are read after the crash.
    pub locations: Vec<String>,
    /// What may be read, as published.
    pub published: BTreeSet<NvmState>,
}

impl FabricTest {
    /// What may be read when host 0 has done all and then the nodes have crashed.
    pub fn readable(&self) -> BTreeSet<NvmState> {
        read(self)
    }

    /// What was read, as people write it.
    pub fn display(&self, values: &NvmState) -> String {
        display(&self.locations, values)
    }

    /// A row of the published table.
    pub(super) fn parse(id: &str, text: &str, query: &str, verdict: &str) -> Result<FabricTest, String> {
        let explain = |what: String| format!("{id}: {what}");
        let names = query.strip_prefix("read ").ok_or_else(|| explain(format!("`{query}` does not read")))?;
        let locations: Vec<String> = names.split(' ').map(str::to_owned).collect();
        let program = text.strip_prefix("host 0: ").ok_or_else(|| explain(format!("`{text}` is not of host 0")))?;
        let (mut operations, mut crashes) = (Vec::new(), Vec::new());
        for step in program.split("; ") {
            let location = |name: &str| {
                let found = locations.iter().position(|own| own == name);
                found.ok_or_else(|| explain(format!("`{name}` is not read")))
            };
            match step.split_once(' ') {
                None if step == "GPF" => operations.push(FabricOperation::Gpf),
                Some(("LStore", name)) => operations.push(FabricOperation::LStore(location(name)?)),
                Some(("RStore", name)) => operations.push(FabricOperation::RStore(location(name)?)),
                Some(("MStore", name)) => operations.push(FabricOperation::MStore(location(name)?)),
                Some(("LFlush", name)) => operations.push(FabricOperation::LFlush(location(name)?)),
                Some(("RFlush", name)) => operations.push(FabricOperation::RFlush(location(name)?)),
                Some(("crash", "host 0")) => crashes.push(Node::Host0),
                Some(("crash", "owner")) => crashes.push(Node::Owner),
                Some(("crash", "both")) => crashes.extend([Node::Host0, Node::Owner]),
                _ => return Err(explain(format!("`{step}` is no step"))),
            }
        }
        let published = values(verdict).ok_or_else(|| explain(format!("`{verdict}` is no set of values")))?;
        Ok(FabricTest { id: id.to_owned(), text: text.to_owned(), operations, crashes, locations, published })
    }
}

/// `{0,1}` or `{(1,1)}`.
fn values(text: &str) -> Option<BTreeSet<NvmState>> {
    let inner = text.strip_prefix('{')?.strip_suffix('}')?;
    let tuple = |text: &str| text.split(',').map(|value| value.trim().parse().ok()).collect::<Option<NvmState>>();
    if let Some(inner) = inner.strip_prefix('(') {
        return inner.strip_suffix(')')?.split("),(").map(tuple).collect();
    }
    inner.split(',').map(tuple).collect()
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    /// The next operation.
    next: usize,
    /// Whether the crash has been.
    has_crashed: bool,
    /// What each node's cache has of each location.
    caches: [Vec<Option<u32>>; 2],
    /// The owner's memory.
    memory: Vec<u32>,
}

/// What may be read when host 0 has done all and then the nodes have crashed.
fn read(test: &FabricTest) -> BTreeSet<NvmState> {
    let locations = test.locations.len();
    let empty = vec![None; locations];
    let first = State { next: 0, has_crashed: false, caches: [empty.clone(), empty], memory: vec![0; locations] };
    let mut found = BTreeSet::new();
    let mut seen = HashSet::from([first.clone()]);
    let mut open = vec![first];
    while let Some(state) = open.pop() {
        if state.has_crashed {
            found.insert((0..locations).map(|location| state.value(location)).collect());
        }
        for next in state.moved().into_iter().chain(state.executed(test)) {
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    found
}

impl State {
    fn value(&self, location: usize) -> u32 {
        self.caches.iter().find_map(|cache| cache[location]).unwrap_or(self.memory[location])
    }

    /// A line moves on its own.
    fn moved(&self) -> Vec<State> {
        let mut moved = Vec::new();
        for location in 0..self.memory.len() {
            if let Some(value) = self.caches[Node::Host0 as usize][location] {
                moved.push(self.clone());
                let next = moved.last_mut().expect("it was just put there");
                next.caches[Node::Host0 as usize][location] = None;
                next.caches[Node::Owner as usize][location] = Some(value);
            }
            if let Some(value) = self.caches[Node::Owner as usize][location] {
                moved.push(self.clone());
                let next = moved.last_mut().expect("it was just put there");
                next.caches.iter_mut().for_each(|cache| cache[location] = None);
                next.memory[location] = value;
            }
        }
        moved
    }

    /// Host 0 does what comes next, if it need not wait; behind the last operation is the crash.
    fn executed(&self, test: &FabricTest) -> Option<State> {
        let mut state = self.clone();
        let Some(operation) = test.operations.get(self.next) else {
            if self.has_crashed {
                return None;
            }
            state.has_crashed = true;
            for node in &test.crashes {
                state.caches[*node as usize].fill(None);
            }
            return Some(state);
        };
        state.next += 1;
        let are_without =
            |caches: &[Vec<Option<u32>>], location: usize| caches.iter().all(|own| own[location].is_none());
        match *operation {
            FabricOperation::LStore(location) => state.store_in(Node::Host0, location),
            FabricOperation::RStore(location) => state.store_in(Node::Owner, location),
            FabricOperation::MStore(location) => {
                state.caches.iter_mut().for_each(|cache| cache[location] = None);
                state.memory[location] = 1;
            }
            FabricOperation::LFlush(location) if are_without(&self.caches[..1], location) => {}
            FabricOperation::RFlush(location) if are_without(&self.caches, location) => {}
            FabricOperation::Gpf if (0..self.memory.len()).all(|location| are_without(&self.caches, location)) => {}
            FabricOperation::LFlush(_) | FabricOperation::RFlush(_) | FabricOperation::Gpf => return None,
        }
        Some(state)
    }

    fn store_in(&mut self, node: Node, location: usize) {
        self.caches.iter_mut().for_each(|cache| cache[location] = None);
        self.caches[node as usize][location] = Some(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_model::published;

    #[test]
    fn what_may_be_read_after_a_crash_is_what_was_published() {
        for test in published::fabric_tests() {
            assert_eq!(read(&test), test.published, "{}: {}", test.id, test.text);
        }
    }
}
