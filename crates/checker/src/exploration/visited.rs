//! The set of visited states: exact, in the order in which they were found, with the state that each was found from.

use super::expand::Words;

/// The number of a state, in the order in which they were found.
pub type StateIndex = u32;

/// States in one [`Chunk`]; growing moves nothing.
const CHUNK: usize = 1 << 16;
/// Bytes of a line of the cache.
const LINE_BYTES: usize = 64;
/// States that are looked up together, so that the memory they are in is fetched at the same time.
pub const BATCH: usize = 64;

/// States in a row, the first at a line of the cache: one of four words is never in two of them then.
struct Chunk {
    /// Before the first state.
    padding: usize,
    words: Vec<u64>,
    parents: Vec<StateIndex>,
}

impl Chunk {
    /// With room for all states of `width` words.
    fn new(width: usize) -> Chunk {
        let mut words: Vec<u64> = Vec::with_capacity(CHUNK * width + LINE_BYTES / size_of::<u64>());
        let padding = words.as_ptr().align_offset(LINE_BYTES);
        words.resize(padding, 0);
        Chunk { padding, words, parents: Vec::with_capacity(CHUNK) }
    }
}

/// The visited states. A table of their numbers, hashed; equality is that of all words.
pub struct Visited<const K: usize> {
    chunks: Vec<Chunk>,
    length: usize,
    /// The upper half is a part of the hash, the lower the number plus one; 0 is free. The place comes from the same
    /// part of the hash, so that growing the table reads no state.
    table: Vec<u64>,
}

impl<const K: usize> Visited<K> {
    /// With nothing in it.
    pub fn new() -> Self {
        Visited { chunks: Vec::new(), length: 0, table: vec![0; 1 << 12] }
    }

    /// How many there are; never none, once the first state is in.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.length
    }

    /// A state.
    pub fn get(&self, index: StateIndex) -> &Words<K> {
        let (chunk, place) = self.locate(index);
        chunk.words[chunk.padding + place * K..].first_chunk().expect("states are whole")
    }

    /// Where a state was found from.
    pub fn parent(&self, index: StateIndex) -> StateIndex {
        let (chunk, place) = self.locate(index);
        chunk.parents[place]
    }

    fn locate(&self, index: StateIndex) -> (&Chunk, usize) {
        (&self.chunks[index as usize / CHUNK], index as usize % CHUNK)
    }

    /// Bytes in use.
    pub fn bytes(&self) -> usize {
        let of_states = self.chunks.len() * CHUNK * (size_of::<Words<K>>() + size_of::<StateIndex>());
        of_states + self.table.len() * size_of::<u64>()
    }

    /// Bytes in use at most while some `more` states are added.
    pub fn bytes_with(&self, more: usize) -> usize {
        let is_full = (self.len() + more) * 4 > self.table.len() * 3;
        let grown = if is_full { self.table.len() * 2 * size_of::<u64>() } else { 0 };
        let chunks = (self.len() + more).div_ceil(CHUNK) - self.chunks.len();
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

    /// Reads what [`Self::insert`] will read of states of these hashes, `BATCH` at most, so that it is near then:
    /// their places in the table, and then the states that are named there. No read of a step waits for another, so
    /// they wait for memory together.
    pub fn touch(&self, hashes: impl Iterator<Item = u64> + Clone) {
        let mut held = [0; BATCH];
        for (held, hash) in held.iter_mut().zip(hashes.clone()) {
            *held = self.table[self.place(hash)];
        }
        let named = held.iter().zip(hashes).filter(|(held, hash)| **held != 0 && **held >> 32 == *hash);
        std::hint::black_box(named.fold(0, |sum, (held, _)| sum ^ self.get(*held as u32 - 1)[0]));
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
            if held >> 32 == hash && self.get(held as u32 - 1) == words {
                return None;
            }
            place = (place + 1) & (self.table.len() - 1);
        }
        let index = StateIndex::try_from(self.len()).expect("states are numbered in 32 bits");
        self.table[place] = hash << 32 | (u64::from(index) + 1);
        if self.length.is_multiple_of(CHUNK) {
            self.chunks.push(Chunk::new(K));
        }
        let last = self.chunks.last_mut().expect("there is one");
        last.words.extend_from_slice(words);
        last.parents.push(parent);
        self.length += 1;
        Some(index)
    }

    /// The number of a state.
    pub fn find(&self, words: &Words<K>) -> Option<StateIndex> {
        let hash = Visited::hash(words);
        let mut place = self.place(hash);
        while self.table[place] != 0 {
            let index = (self.table[place] as u32).wrapping_sub(1);
            if self.table[place] >> 32 == hash && self.get(index) == words {
                return Some(index);
            }
            place = (place + 1) & (self.table.len() - 1);
        }
        None
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
            assert_eq!(visited.find(&words), Some(number as u32));
            assert_eq!(visited.find(&[number * 3 + 1]), None);
        }
    }
}
