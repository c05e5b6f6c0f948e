//! The store queue: stores, flushes and fences in program order, from dispatch until they have taken effect.

use super::reorder_buffer::UNKNOWN;
use super::store_sets::StoreSets;
use fencepost_isa::micro_op::Operation;
use fencepost_kernel::line::LINE_BYTES;

const FILTER: usize = 256;

/// One store, flush or fence.
#[derive(Clone, Copy, Debug)]
pub struct StoreEntry {
    /// What it is.
    pub operation: Operation,
    /// Its place in program order.
    pub sequence: u64,
    /// Its slot in the reorder buffer.
    pub slot: u32,
    /// Which static micro-operation a store is, for store sets and prefetchers; the site of anything else, if sites
    /// are counted.
    pub instruction: u32,
    /// Virtual address.
    pub address: u64,
    /// Physical address, once it has been translated.
    pub physical: u64,
    /// Bytes.
    pub size: u16,
    /// When address and data are there; [`UNKNOWN`] until that is known.
    pub data_ready: u64,
    /// When it committed; [`UNKNOWN`] until that is known.
    pub committed: u64,
    /// When it left the queue; [`UNKNOWN`] until that is known.
    pub released: u64,
    /// Whether its flush is under way.
    pub is_issued: bool,
    /// How many of its lines it has written.
    pub lines_written: u16,
    /// When the latest of them was there to be written.
    pub lines_ready: u64,
    /// Whether it has been counted as a miss.
    pub has_missed: bool,
    /// Whether the prefetcher has seen it.
    pub has_trained: bool,
}

/// What an older store means for a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarding {
    /// No older store overlaps.
    None,
    /// The youngest overlapping store covers the load; its data are there at that cycle.
    Covered(u64),
    /// It covers only a part: the data have to meet in the cache.
    Partial(u64),
    /// Its data are not known yet: the load waits for the entry in that slot of the reorder buffer.
    Waits(u32),
}

/// The store queue of one core.
#[derive(Clone, Debug)]
pub struct StoreQueue {
    /// A power of two of places, so that a number gives its place by masking; at most `limit` are in the queue, and
    /// those before them that have left it at a cycle that has not come yet.
    entries: Box<[StoreEntry]>,
    limit: u64,
    /// The oldest entry that may be in the queue at some cycle from now on.
    oldest: u64,
    /// The oldest entry of which it is not known when it leaves.
    head: u64,
    tail: u64,
    /// How many stores from the oldest on touch an 8-byte granule, by its low address bits.
    filter: [u16; FILTER],
    /// How many entries are non-temporal stores.
    non_temporal: u32,
}

impl StoreQueue {
    /// An empty queue.
    pub fn new(limit: usize) -> StoreQueue {
        let empty = StoreEntry {
            operation: Operation::Store,
            sequence: 0,
            slot: 0,
            instruction: 0,
            address: 0,
            physical: 0,
            size: 0,
            data_ready: 0,
            committed: 0,
            released: 0,
            is_issued: false,
            lines_written: 0,
            lines_ready: 0,
            has_missed: false,
            has_trained: false,
        };
        StoreQueue {
            entries: vec![empty; (2 * limit).next_power_of_two()].into(),
            limit: limit as u64,
            oldest: 0,
            head: 0,
            tail: 0,
            filter: [0; FILTER],
            non_temporal: 0,
        }
    }

    /// When an entry is free for the next one; none if that is not known.
    #[inline]
    pub fn room_at(&self) -> Option<u64> {
        if self.tail - self.head >= self.limit {
            return None;
        }
        Some(self.entries[self.index(self.tail.wrapping_sub(self.limit))].released)
    }

    /// Enters the next one and gives its index.
    #[inline]
    pub fn push(&mut self, operation: Operation, sequence: u64, slot: u32, address: u64, size: u16) -> u32 {
        if self.tail - self.oldest == self.entries.len() as u64 {
            self.forget_oldest();
        }
        let index = self.index(self.tail);
        self.entries[index] = StoreEntry {
            operation,
            sequence,
            slot,
            instruction: 0,
            address,
            physical: 0,
            size,
            data_ready: UNKNOWN,
            committed: UNKNOWN,
            released: UNKNOWN,
            is_issued: false,
            lines_written: 0,
            lines_ready: 0,
            has_missed: false,
            has_trained: false,
        };
        self.tail += 1;
        match operation {
            Operation::Store => self.count_granules(address, size, true),
            Operation::NonTemporalStore => self.non_temporal += 1,
            _ => {}
        }
        index as u32
    }

    /// The oldest entry.
    #[inline]
    pub fn head(&mut self) -> Option<&mut StoreEntry> {
        let index = self.index(self.head);
        (self.head < self.tail).then(|| &mut self.entries[index])
    }

    /// Where the oldest entry is.
    #[inline]
    pub fn head_index(&self) -> u32 {
        self.index(self.head) as u32
    }

    /// The oldest entry leaves at `cycle`.
    #[inline]
    pub fn release_head(&mut self, cycle: u64) {
        let index = self.index(self.head);
        let entry = &mut self.entries[index];
        entry.released = cycle;
        self.non_temporal -= u32::from(entry.operation == Operation::NonTemporalStore);
        self.head += 1;
    }

    /// No load looks for stores that have left before `now`.
    #[inline]
    pub fn forget(&mut self, now: u64) {
        while self.oldest < self.head && self.entries[self.index(self.oldest)].released <= now {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let StoreEntry { operation, address, size, .. } = self.entries[self.index(self.oldest)];
        if operation == Operation::Store {
            self.count_granules(address, size, false);
        }
        self.oldest += 1;
    }

    /// The entry at `index`.
    #[inline]
    pub fn entry_mut(&mut self, index: u32) -> &mut StoreEntry {
        &mut self.entries[index as usize]
    }

    /// How many entries have left it so far.
    #[inline]
    pub fn known(&self) -> u64 {
        self.head
    }

    /// How many entries have been entered so far.
    pub fn entered(&self) -> u64 {
        self.tail
    }

    /// How many indices there are.
    pub fn places(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// What the stores older than `sequence` that are in the queue at `cycle` mean for a load of `size` bytes at
    /// `address`.
    #[inline]
    pub fn forward(&self, sequence: u64, address: u64, size: u16, cycle: u64) -> Forwarding {
        if !granules(address, size).any(|granule| self.filter[granule] != 0) {
            return Forwarding::None;
        }
        self.search(sequence, address, size, cycle)
    }

    /// Whether a non-temporal store is in it.
    #[inline]
    pub fn has_non_temporal(&self) -> bool {
        self.non_temporal > 0
    }

    /// Whether a non-temporal store older than `sequence` writes to a line that an access touches.
    pub fn has_non_temporal_before(&self, sequence: u64, address: u64, size: u16) -> bool {
        let (first, last) = lines(address, size);
        (self.head..self.tail).map(|number| &self.entries[self.index(number)]).any(|entry| {
            let (store_first, store_last) = lines(entry.address, entry.size);
            let is_older = entry.operation == Operation::NonTemporalStore && entry.sequence < sequence;
            is_older && store_first <= last && first <= store_last
        })
    }

    /// The youngest store older than `sequence` whose address lies in one of the granules of `sets` that an access
    /// touches, and which has not been executed at `cycle`: its instruction.
    pub fn unexecuted(&self, sequence: u64, address: u64, size: u16, cycle: u64, sets: &StoreSets) -> Option<u32> {
        let (first, last) = sets.granules(address, size);
        let is_overtaken = |entry: &&StoreEntry| {
            let (store_first, store_last) = sets.granules(entry.address, entry.size);
            entry.operation == Operation::Store
                && entry.sequence < sequence
                && entry.data_ready > cycle
                && store_first <= last
                && first <= store_last
        };
        let entries = (self.oldest..self.tail).rev().map(|number| &self.entries[self.index(number)]);
        entries.into_iter().find(is_overtaken).map(|entry| entry.instruction)
    }

    /// Forgets everything: power is gone.
    pub fn clear(&mut self) {
        *self = StoreQueue::new(self.limit as usize);
    }

    fn search(&self, sequence: u64, address: u64, size: u16, cycle: u64) -> Forwarding {
        let end = address + u64::from(size);
        for number in (self.oldest..self.tail).rev() {
            let entry = &self.entries[self.index(number)];
            // So have those before it.
            if entry.released <= cycle {
                break;
            }
            let entry_end = entry.address + u64::from(entry.size);
            let overlaps = entry.address < end && address < entry_end;
            if entry.operation != Operation::Store || entry.sequence >= sequence || !overlaps {
                continue;
            }
            if entry.data_ready == UNKNOWN {
                return Forwarding::Waits(entry.slot);
            }
            let covers = entry.address <= address && end <= entry_end;
            return if covers { Forwarding::Covered(entry.data_ready) } else { Forwarding::Partial(entry.data_ready) };
        }
        Forwarding::None
    }

    #[inline]
    fn index(&self, number: u64) -> usize {
        number as usize & (self.entries.len() - 1)
    }

    #[inline]
    fn count_granules(&mut self, address: u64, size: u16, enters: bool) {
        for granule in granules(address, size) {
            let count = &mut self.filter[granule];
            *count = if enters { *count + 1 } else { *count - 1 };
        }
    }
}

/// The first and the last line of an access, by their numbers.
fn lines(address: u64, size: u16) -> (u64, u64) {
    (address / LINE_BYTES, (address + u64::from(size.max(1)) - 1) / LINE_BYTES)
}

#[inline]
fn granules(address: u64, size: u16) -> impl Iterator<Item = usize> {
    let last = (address + u64::from(size.max(1)) - 1) >> 3;
    ((address >> 3)..=last).map(|granule| granule as usize % FILTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue_with(stores: &[(u64, u16, u64)]) -> StoreQueue {
        let mut queue = StoreQueue::new(8);
        for (sequence, &(address, size, data_ready)) in stores.iter().enumerate() {
            let index = queue.push(Operation::Store, sequence as u64, sequence as u32, address, size);
            queue.entry_mut(index).data_ready = data_ready;
        }
        queue
    }

    #[test]
    fn the_youngest_older_store_forwards() {
        let queue = queue_with(&[(0x100, 8, 5), (0x100, 8, 7), (0x100, 8, 9)]);
        assert_eq!(queue.forward(2, 0x100, 8, 10), Forwarding::Covered(7));
        assert_eq!(queue.forward(9, 0x104, 4, 10), Forwarding::Covered(9));
        assert_eq!(queue.forward(9, 0x108, 8, 10), Forwarding::None);
    }

    #[test]
    fn a_load_wider_than_the_store_meets_it_in_the_cache() {
        let queue = queue_with(&[(0x104, 4, 5)]);
        assert_eq!(queue.forward(9, 0x100, 8, 10), Forwarding::Partial(5));
    }

    #[test]
    fn a_load_waits_for_data_that_are_not_known() {
        let queue = queue_with(&[(0x100, 8, UNKNOWN)]);
        assert_eq!(queue.forward(9, 0x100, 8, 10), Forwarding::Waits(0));
    }

    #[test]
    fn a_store_that_has_left_forwards_no_more() {
        let mut queue = queue_with(&[(0x100, 8, 5)]);
        queue.release_head(20);
        assert_eq!(queue.forward(9, 0x100, 8, 19), Forwarding::Covered(5), "it is known already when it will leave");
        assert_eq!(queue.forward(9, 0x100, 8, 20), Forwarding::None);
        assert_eq!(queue.room_at(), Some(0), "seven entries were never used");
        queue.forget(19);
        assert_eq!(queue.forward(9, 0x100, 8, 19), Forwarding::Covered(5));
        queue.forget(20);
        assert_eq!(queue.filter, [0; FILTER]);
    }
}
