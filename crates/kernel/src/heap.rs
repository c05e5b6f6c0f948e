//! A priority queue of keys, the smallest first, laid out for the cache.
//!
//! A heap in which each node has four children, which lie in one line of the host's cache: half as many levels as with
//! two, and each level costs one line.

/// The place of an event among all, and where it lies; compared as one number.
pub(super) type Key = u128;

/// Children of a node.
const CHILDREN: usize = 4;
/// In the place of a child that is not there: later than all.
const NOTHING: Key = Key::MAX;

/// The children of one node: a line of the host's cache.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Siblings([Key; CHILDREN]);

/// Keys below `Key::MAX`, of which the smallest can be taken out.
///
/// Nodes are numbered level by level from the root, 0; the children of node `n` are 4n + 1 to 4n + 4, and lie in
/// `children[n]`.
#[derive(Clone, Default)]
pub(super) struct Heap {
    root: Key,
    children: Vec<Siblings>,
    len: usize,
}

impl Heap {
    /// How many keys there are.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The smallest key.
    #[inline]
    pub(super) fn first(&self) -> Option<Key> {
        (self.len > 0).then_some(self.root)
    }

    /// Adds a key.
    #[inline]
    pub(super) fn push(&mut self, key: Key) {
        debug_assert!(key < NOTHING, "that key says that there is none");
        let mut node = self.len;
        self.len += 1;
        if self.len > 1 + CHILDREN * self.children.len() {
            self.children.push(Siblings([NOTHING; CHILDREN]));
        }
        while node > 0 {
            let parent = (node - 1) / CHILDREN;
            let above = *self.at(parent);
            if above < key {
                break;
            }
            *self.at(node) = above;
            node = parent;
        }
        *self.at(node) = key;
    }

    /// Takes the smallest key out; there must be one.
    #[inline]
    pub(super) fn pop(&mut self) {
        self.len -= 1;
        let last = self.len;
        let key = std::mem::replace(self.at(last), NOTHING);
        if last % CHILDREN == 1 {
            self.children.pop();
        }
        if last == 0 {
            return;
        }
        let mut node = 0;
        while let Some(Siblings(keys)) = self.children.get(node) {
            let earlier = |one: usize, other: usize| if keys[other] < keys[one] { other } else { one };
            let child = earlier(earlier(0, 1), earlier(2, 3));
            let below = keys[child];
            if key < below {
                break;
            }
            *self.at(node) = below;
            node = CHILDREN * node + 1 + child;
        }
        *self.at(node) = key;
    }

    /// All keys, to be replaced by others in the same order.
    pub(super) fn keys_mut(&mut self) -> impl Iterator<Item = &mut Key> {
        let others = self.children.iter_mut().flat_map(|siblings| &mut siblings.0);
        std::iter::once(&mut self.root).chain(others).take(self.len)
    }

    /// Takes all out.
    pub(super) fn clear(&mut self) {
        *self = Heap::default();
    }

    /// The key at that node.
    #[inline]
    fn at(&mut self, node: usize) -> &mut Key {
        match node.checked_sub(1) {
            None => &mut self.root,
            Some(child) => &mut self.children[child / CHILDREN].0[child % CHILDREN],
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_smallest_key_comes_first(
            steps in prop::collection::vec(prop::option::weighted(0.6, 0..Key::MAX), 0..300),
        ) {
            let (mut heap, mut model) = (Heap::default(), BinaryHeap::new());
            for step in steps {
                match step {
                    Some(key) => {
                        heap.push(key);
                        model.push(Reverse(key));
                    }
                    None => {
                        if model.pop().is_some() {
                            heap.pop();
                        }
                    }
                }
                prop_assert_eq!(heap.first(), model.peek().map(|&Reverse(key)| key));
                prop_assert_eq!(heap.len(), model.len());
            }
        }
    }

    #[test]
    fn the_children_of_a_node_lie_in_one_line_of_the_cache() {
        assert_eq!((size_of::<Siblings>(), align_of::<Siblings>()), (64, 64));
    }

    #[test]
    fn a_heap_that_was_emptied_can_be_filled_again() {
        let mut heap = Heap::default();
        for _ in 0..3 {
            (0..20).rev().for_each(|key| heap.push(key));
            heap.clear();
            assert_eq!((heap.len(), heap.first()), (0, None));
        }
    }
}
