//! The blocks that were read last: which they are, not what is in them.

use std::collections::VecDeque;

/// A read buffer with least-recently-used replacement.
#[derive(Clone, Debug)]
pub struct ReadBuffer {
    capacity: usize,
    /// The most recently used one last.
    blocks: VecDeque<u64>,
}

impl ReadBuffer {
    /// A buffer of `capacity` blocks, empty.
    pub fn new(capacity: usize) -> ReadBuffer {
        ReadBuffer { capacity, blocks: VecDeque::with_capacity(capacity) }
    }

    /// Whether it holds `block`, which then is the most recently used one.
    pub fn touch(&mut self, block: u64) -> bool {
        let Some(index) = self.blocks.iter().rposition(|held| *held == block) else { return false };
        self.blocks.remove(index);
        self.blocks.push_back(block);
        true
    }

    /// `block` was read.
    pub fn insert(&mut self, block: u64) {
        if self.touch(block) {
            return;
        }
        if self.blocks.len() == self.capacity {
            self.blocks.pop_front();
        }
        self.blocks.push_back(block);
    }

    /// Power is gone.
    pub fn clear(&mut self) {
        self.blocks.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_block_gives_way() {
        let mut buffer = ReadBuffer::new(2);
        buffer.insert(1);
        buffer.insert(2);
        assert!(buffer.touch(1));
        buffer.insert(3);
        assert_eq!([1, 2, 3].map(|block| buffer.touch(block)), [true, false, true]);
    }
}
