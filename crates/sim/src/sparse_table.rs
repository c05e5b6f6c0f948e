//! Values by number where most numbers have none and those that have lie together: of lines, or of pages.

use std::sync::Arc;

use rustc_hash::FxHashMap;

/// Values of a leaf; of lines, those of 4 KiB of memory.
const LEAF_VALUES: usize = 64;
/// Leaves of a branch; of lines, it stands for 2 MiB of memory.
const BRANCH_LEAVES: usize = 512;

type Leaf<T> = [T; LEAF_VALUES];
type Branch<T> = [Option<Arc<Leaf<T>>>; BRANCH_LEAVES];

/// A value for each number; those never set are the default, and take no room.
///
/// A tree of two levels below its root. Neighbours lie together, so that what goes through memory in order, or comes back to a page, finds them in the
/// host's caches: a hash map has them all over. A clone shares branches and leaves with the original until one of them writes there: a snapshot of
/// a large memory costs little.
#[derive(Clone, Debug)]
pub struct SparseTable<T> {
    branches: FxHashMap<u64, Arc<Branch<T>>>,
}

impl<T> Default for SparseTable<T> {
    fn default() -> SparseTable<T> {
        SparseTable { branches: FxHashMap::default() }
    }
}

impl<T: Copy + Default> SparseTable<T> {
    /// The value of `number`.
    #[inline]
    pub fn get(&self, number: u64) -> T {
        let (branch, leaf, value) = position(number);
        let leaf = self.branches.get(&branch).and_then(|branch| branch[leaf].as_ref());
        leaf.map_or_else(T::default, |leaf| leaf[value])
    }

    /// The value of `number`, to be changed.
    pub fn get_mut(&mut self, number: u64) -> &mut T {
        let (branch, leaf, value) = position(number);
        let branch = self.branches.entry(branch).or_insert_with(|| Arc::new([const { None }; BRANCH_LEAVES]));
        let leaf = Arc::make_mut(branch)[leaf].get_or_insert_with(|| Arc::new([T::default(); LEAF_VALUES]));
        &mut Arc::make_mut(leaf)[value]
    }

    /// No number has a value any more.
    pub fn clear(&mut self) {
        self.branches.clear();
    }
}

#[inline]
fn position(number: u64) -> (u64, usize, usize) {
    let (leaf, value) = (number / LEAF_VALUES as u64, number % LEAF_VALUES as u64);
    (leaf / BRANCH_LEAVES as u64, (leaf % BRANCH_LEAVES as u64) as usize, value as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_keeps_its_value_and_others_stay_as_they_were() {
        let mut table = SparseTable::default();
        for (number, value) in [(10_000, 3), (10_001, 1), (10_000 + 32_768, 7), (u64::MAX, 9)] {
            *table.get_mut(number) = value;
        }
        let numbers = [9_999, 10_000, 10_001, 10_000 + 32_768, 10_000 + 2 * 32_768, u64::MAX];
        assert_eq!(numbers.map(|number| table.get(number)), [0, 3, 1, 7, 0, 9]);
        table.clear();
        assert_eq!(numbers.map(|number| table.get(number)), [0; 6]);
    }

    #[test]
    fn a_snapshot_does_not_change_with_the_original() {
        let mut table = SparseTable::default();
        *table.get_mut(5) = 1;
        let snapshot = table.clone();
        *table.get_mut(5) = 2;
        assert_eq!((snapshot.get(5), table.get(5)), (1, 2));
    }
}
