//! The set of visited states: exact, in the order in which they were found, with the state that each was found from.

use super::packing::Words;

/// The number of a state, in the order in which they were found.
pub type StateIndex = u32;

/// Elements in one allocation; growing moves nothing.
const CHUNK: usize = 1 << 16;

/// A vector that grows without moving what is in it.
struct Chunked<T> {
    chunks: Vec<Vec<T>>,
    length: usize,
}

impl<T: Copy> Chunked<T> {
    fn get(&self, index: usize) -> &T {
        &self.chunks[index / CHUNK][index % CHUNK]
    }

    fn push(&mut self, element: T) {
        if self.length.is_multiple_of(CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        self.chunks[self.length / CHUNK].push(element);
        self.length += 1;
    }
}

/// The visited states. A table of their numbers, hashed; equality is that of all words.
pub struct Visited<const K: usize> {
    states: Chunked<Words<K>>,
    parents: Chunked<StateIndex>,
    /// The upper half is a part of the hash, the lower the number plus one; 0 is free. The place comes from the same part of the hash, so that
    /// growing the table reads no state.
    table: Vec<u64>,
}

impl<const K: usize> Visited<K> {
    /// With nothing in it.
    pub fn new() -> Self {
        let empty = || Chunked { chunks: Vec::new(), length: 0 };
        Visited { states: empty(), parents: Chunked { chunks: Vec::new(), length: 0 }, table: vec![0; 1 << 12] }
    }

    /// How many there are; never none, once the first state is in.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.states.length
    }

    /// A state.
    pub fn get(&self, index: StateIndex) -> &Words<K> {
        self.states.get(index as usize)
    }

    /// Where a state was found from.
    pub fn parent(&self, index: StateIndex) -> StateIndex {
        *self.parents.get(index as usize)
    }

    /// Bytes in use.
    pub fn bytes(&self) -> usize {
        let of_states = self.states.chunks.len() * CHUNK * (size_of::<Words<K>>() + size_of::<StateIndex>());
        of_states + self.table.len() * size_of::<u64>()
    }

    /// Bytes in use at most while some `more` states are added.
    pub fn bytes_with(&self, more: usize) -> usize {
        let is_full = (self.len() + more) * 4 > self.table.len() * 3;
        let grown = if is_full { self.table.len() * 2 * size_of::<u64>() } else { 0 };
        let chunks = (self.len() + more).div_ceil(CHUNK) - self.states.chunks.len();
        self.bytes() + grown + chunks * CHUNK * (size_of::<Words<K>>() + size_of::<StateIndex>())
    }

    /// What [`Self::insert`] looks a state up by.
    pub fn hash(words: &Words<K>) -> u64 {
        // The two halves of a product of 128 bits: together they depend on all bits of both factors.
        let mix = |hash: u64, word: &u64| {
            let product = u128::from(hash ^ word) * u128::from(0x9E37_79B9_7F4A_7C15_u64);
            product as u64 ^ (product >> 64) as u64
        };
        words.iter().fold(0x2545_F491_4F6C_DD1D, mix) >> 32
    }

    /// Reads what [`Self::insert`] will read of a state of this hash, so that it is near then.
    pub fn touch(&self, hash: u64) -> u64 {
        let held = self.table[self.place(hash)];
        if held != 0 && held >> 32 == hash { self.states.get((held as u32 - 1) as usize)[0] } else { held }
    }

    fn place(&self, hash: u64) -> usize {
        hash as usize & (self.table.len() - 1)
    }

    /// Adds a state, found from `parent`; its number if it is new.
    ///
    /// # Panics
    /// If there are more than 2^32 - 2.
    pub fn insert(&mut self, words: &Words<K>, hash: u64, parent: StateIndex) -> Option<StateIndex> {
        if self.len() * 4 > self.table.len() * 3 {
            self.grow();
        }
        let mut place = self.place(hash);
        loop {
            let held = self.table[place];
            if held == 0 {
                break;
            }
            if held >> 32 == hash && self.states.get((held as u32 - 1) as usize) == words {
                return None;
            }
            place = (place + 1) & (self.table.len() - 1);
        }
        let index = StateIndex::try_from(self.len()).expect("states are numbered in 32 bits");
        self.table[place] = hash << 32 | (u64::from(index) + 1);
        self.states.push(*words);
        self.parents.push(parent);
        Some(index)
    }

    fn grow(&mut self) {
        let larger = vec![0; self.table.len() * 2];
        for held in std::mem::replace(&mut self.table, larger) {
            if held != 0 {
                let mut place = self.place(held >> 32);
                while self.table[place] != 0 {
                    place = (place + 1) & (self.table.len() - 1);
                }
                self.table[place] = held;
            }
        }
    }
}

impl<const K: usize> Default for Visited<K> {
    fn default() -> Self {
        Visited::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_equal_hash_are_told_apart() {
        let mut visited: Visited<2> = Visited::new();
        assert_eq!(visited.insert(&[1, 2], 7, 0), Some(0));
        assert_eq!(visited.insert(&[2, 1], 7, 0), Some(1));
        assert_eq!(visited.insert(&[1, 2], 7, 0), None);
        assert_eq!(visited.len(), 2);
    }

    #[test]
    fn growing_keeps_every_state_and_its_parent() {
        let mut visited: Visited<1> = Visited::new();
        for number in 0..200_000u64 {
            let words = [number * 3];
            assert_eq!(visited.insert(&words, Visited::hash(&words), number as u32 / 2), Some(number as u32));
        }
        for number in 0..200_000u64 {
            let words = [number * 3];
            assert_eq!(visited.insert(&words, Visited::hash(&words), 0), None);
            assert_eq!((visited.get(number as u32), visited.parent(number as u32)), (&words, number as u32 / 2));
        }
    }
}
