//! Values by number where most numbers have none and those that have lie together: of lines, or of pages.

use std::sync::Arc;

use rustc_hash::FxHashMap;

/// Values of a chunk; of lines, those of 64 KiB of memory.
const CHUNK_VALUES: usize = 1024;

/// A value for each number; those never set are the default, and take no room.
///
/// Neighbours lie together, so that what goes through memory in order, or comes back to a place, finds them in the
/// host's caches: a hash map has them all over. A clone shares chunks with the original until one of them writes there:
/// a snapshot of a large memory costs little.
#[derive(Clone, Debug)]
pub struct SparseTable<T> {
    chunks: FxHashMap<u64, Arc<[T; CHUNK_VALUES]>>,
}

impl<T> Default for SparseTable<T> {
    fn default() -> SparseTable<T> {
        SparseTable { chunks: FxHashMap::default() }
    }
}

impl<T: Copy + Default> SparseTable<T> {
    /// The value of `number`.
    #[inline]
    pub fn get(&self, number: u64) -> T {
        let (chunk, value) = position(number);
        self.chunks.get(&chunk).map_or_else(T::default, |chunk| chunk[value])
    }

    /// The value of `number`, to be changed.
    #[inline]
    pub fn get_mut(&mut self, number: u64) -> &mut T {
        let (chunk, value) = position(number);
        let chunk = self.chunks.entry(chunk).or_insert_with(|| Arc::new([T::default(); CHUNK_VALUES]));
        &mut Arc::make_mut(chunk)[value]
    }

    /// No number has a value any more.
    pub fn clear(&mut self) {
        self.chunks.clear();
    }
}

#[inline]
fn position(number: u64) -> (u64, usize) {
    (number / CHUNK_VALUES as u64, (number % CHUNK_VALUES as u64) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_keeps_its_value_and_others_stay_as_they_were() {
        let mut table = SparseTable::default();
        for (number, value) in [(10_000, 3), (10_001, 1), (10_000 + 1024, 7), (u64::MAX, 9)] {
            *table.get_mut(number) = value;
        }
        let numbers = [9_999, 10_000, 10_001, 10_000 + 1024, 10_000 + 2 * 1024, u64::MAX];
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
