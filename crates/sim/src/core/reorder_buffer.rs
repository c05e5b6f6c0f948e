//! The reorder buffer: micro-operations in program order, which of them wait for which, and when each completes and
//! commits.

use fencepost_isa::micro_op::{Operation, Register};

/// A cycle that is not known yet.
pub const UNKNOWN: u64 = u64::MAX;

const NO_WAITER: u32 = u32::MAX;
const PRODUCER: u64 = 1 << 63;

/// One micro-operation in flight.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its place in program order, counted from the core's start.
    pub sequence: u64,
    /// When its result is there; [`UNKNOWN`] until that is known.
    pub complete: u64,
    /// When it commits.
    pub commit: u64,
    /// The latest of the times its sources are known to be there.
    pub ready: u64,
    /// Virtual address of its memory access.
    pub address: u64,
    /// Sources, or parts of a memory access, that are still unknown.
    pub outstanding: u8,
    /// What it does.
    pub operation: Operation,
    /// Bytes it accesses.
    pub size: u16,
    /// Which static micro-operation it is, for prefetchers; 0 for inserted ones.
    pub instruction: u32,
    /// Its place in the load or store queue.
    pub queue_index: u32,
    first_waiter: u32,
    last_waiter: u32,
    next_waiter: [u32; Entry::SOURCES],
}

impl Entry {
    const SOURCES: usize = 4;
}

/// The reorder buffer and the map from registers to their producers.
#[derive(Clone, Debug)]
pub struct ReorderBuffer {
    /// A power of two of slots, so that a sequence gives its slot by masking; at most `limit` are in use.
    entries: Box<[Entry]>,
    mask: u64,
    limit: u64,
    /// Sequence of the next micro-operation to be dispatched.
    tail: u64,
    /// Sequence of the oldest one whose commit is not known.
    head: u64,
    /// For each register the cycle its value is there, or its producer's sequence.
    registers: [u64; Register::COUNT],
}

impl ReorderBuffer {
    /// An empty buffer.
    pub fn new(limit: usize) -> ReorderBuffer {
        let entries = limit.next_power_of_two();
        let empty = Entry {
            sequence: u64::MAX,
            complete: 0,
            commit: 0,
            ready: 0,
            address: 0,
            outstanding: 0,
            operation: Operation::Integer,
            size: 0,
            instruction: 0,
            queue_index: 0,
            first_waiter: NO_WAITER,
            last_waiter: NO_WAITER,
            next_waiter: [NO_WAITER; Entry::SOURCES],
        };
        ReorderBuffer {
            entries: vec![empty; entries].into(),
            mask: entries as u64 - 1,
            limit: limit as u64,
            tail: 0,
            head: 0,
            registers: [0; Register::COUNT],
        }
    }

    /// When the slot for the next micro-operation is free; none if its holder's commit is not known.
    #[inline]
    pub fn room_at(&self) -> Option<u64> {
        if self.tail - self.head >= self.limit {
            return None;
        }
        let holder = &self.entries[(self.tail.wrapping_sub(self.limit) & self.mask) as usize];
        Some(holder.commit)
    }

    /// How many micro-operations were entered and committed so far.
    #[inline]
    pub fn known(&self) -> u64 {
        self.tail + self.head
    }

    /// Whether every micro-operation's commit is known.
    #[inline]
    pub fn is_drained(&self) -> bool {
        self.head == self.tail
    }

    /// The oldest entry whose commit is not known, with its slot.
    #[inline]
    pub fn head(&self) -> Option<(u32, &Entry)> {
        let slot = (self.head & self.mask) as u32;
        (self.head < self.tail).then(|| (slot, &self.entries[slot as usize]))
    }

    /// The same to be changed, if it is complete.
    #[inline]
    pub fn complete_head(&mut self) -> Option<&mut Entry> {
        let entry = &mut self.entries[(self.head & self.mask) as usize];
        (self.head < self.tail && entry.complete != UNKNOWN).then_some(entry)
    }

    /// The commit of the head has become known: the next one is the head.
    #[inline]
    pub fn pass_head(&mut self) {
        self.head += 1;
    }

    /// Enters the next micro-operation and gives its slot; its sources and destinations are set apart.
    #[inline]
    pub fn push(&mut self, operation: Operation, address: u64, size: u16, ready: u64) -> u32 {
        let slot = (self.tail & self.mask) as u32;
        let entry = &mut self.entries[slot as usize];
        // The links of its waits are set when it waits.
        let next_waiter = entry.next_waiter;
        *entry = Entry {
            sequence: self.tail,
            complete: UNKNOWN,
            commit: UNKNOWN,
            ready,
            address,
            outstanding: 0,
            operation,
            size,
            instruction: 0,
            queue_index: 0,
            first_waiter: NO_WAITER,
            last_waiter: NO_WAITER,
            next_waiter,
        };
        self.tail += 1;
        slot
    }

    /// When all of `sources` are there, if that is known.
    #[inline(always)]
    pub fn known_sources(&mut self, sources: &[Register; Entry::SOURCES]) -> Option<u64> {
        let mut ready = 0;
        for &register in sources {
            if register == Register::NONE {
                continue;
            }
            let mut value = self.registers[register.index()];
            if value >= PRODUCER {
                value = self.result_of(value & !PRODUCER);
                if value == UNKNOWN {
                    return None;
                }
                self.registers[register.index()] = value;
            }
            ready = ready.max(value);
        }
        Some(ready)
    }

    /// When the result of the micro-operation `sequence` is there, or [`UNKNOWN`].
    #[inline(always)]
    fn result_of(&self, sequence: u64) -> u64 {
        let holder = &self.entries[(sequence & self.mask) as usize];
        // A producer whose slot has another holder by now has committed long ago.
        if holder.sequence == sequence { holder.complete } else { 0 }
    }

    /// Enters the next micro-operation, whose result is there at `complete`, as `destinations`; gives its sequence.
    #[inline(always)]
    pub fn push_complete(&mut self, operation: Operation, complete: u64, destinations: &[Register; 2]) -> u64 {
        let sequence = self.tail;
        let slot = self.push(operation, 0, 0, complete);
        self.entries[slot as usize].complete = complete;
        for register in destinations {
            if *register != Register::NONE {
                self.registers[register.index()] = complete;
            }
        }
        sequence
    }

    /// The slot of the micro-operation `sequence`, as long as it has one.
    #[inline]
    pub fn slot(&self, sequence: u64) -> u32 {
        (sequence & self.mask) as u32
    }

    /// Lets the entry at `slot` wait for `sources`; its `outstanding` and `ready` tell the rest.
    #[inline(always)]
    pub fn read_sources(&mut self, slot: u32, sources: &[Register; Entry::SOURCES]) {
        for (place, &register) in sources.iter().enumerate() {
            if register == Register::NONE {
                continue;
            }
            let value = self.registers[register.index()];
            if value < PRODUCER {
                let entry = &mut self.entries[slot as usize];
                entry.ready = entry.ready.max(value);
                continue;
            }
            let sequence = value & !PRODUCER;
            let complete = self.result_of(sequence);
            if complete == UNKNOWN {
                self.wait_for(slot, place, self.slot(sequence));
            } else {
                self.registers[register.index()] = complete;
                let entry = &mut self.entries[slot as usize];
                entry.ready = entry.ready.max(complete);
            }
        }
    }

    /// From now on `destinations` come from the entry at `slot`.
    #[inline(always)]
    pub fn write_destinations(&mut self, slot: u32, destinations: &[Register; 2]) {
        let entry = &self.entries[slot as usize];
        let value = if entry.complete == UNKNOWN { PRODUCER | entry.sequence } else { entry.complete };
        for register in destinations {
            if *register != Register::NONE {
                self.registers[register.index()] = value;
            }
        }
    }

    /// Lets the entry at `slot` wait for the one at `producer` as well, in its last place (which loads do not use for a
    /// register).
    pub fn wait_for_entry(&mut self, slot: u32, producer: u32) {
        self.wait_for(slot, Entry::SOURCES - 1, producer);
    }

    /// The entry at `slot` is complete at `cycle`; appends to `ready` the entries that waited for nothing else.
    #[inline]
    pub fn complete(&mut self, slot: u32, cycle: u64, ready: &mut Vec<u32>) {
        let entry = &mut self.entries[slot as usize];
        entry.complete = cycle;
        if entry.first_waiter != NO_WAITER {
            self.wake(slot, cycle, ready);
        }
    }

    /// The entries that wait for the one at `slot` have its result at `cycle`.
    #[inline(never)]
    fn wake(&mut self, slot: u32, cycle: u64, ready: &mut Vec<u32>) {
        let entry = &mut self.entries[slot as usize];
        let mut waiter = std::mem::replace(&mut entry.first_waiter, NO_WAITER);
        entry.last_waiter = NO_WAITER;
        while waiter != NO_WAITER {
            let (consumer, place) = (waiter / Entry::SOURCES as u32, waiter as usize % Entry::SOURCES);
            let entry = &mut self.entries[consumer as usize];
            waiter = std::mem::replace(&mut entry.next_waiter[place], NO_WAITER);
            entry.ready = entry.ready.max(cycle);
            entry.outstanding -= 1;
            if entry.outstanding == 0 {
                ready.push(consumer);
            }
        }
    }

    /// The entry at `slot`.
    #[inline]
    pub fn entry(&self, slot: u32) -> &Entry {
        &self.entries[slot as usize]
    }

    /// The entry at `slot`.
    #[inline]
    pub fn entry_mut(&mut self, slot: u32) -> &mut Entry {
        &mut self.entries[slot as usize]
    }

    /// Another thread comes: all registers are there at `cycle`. The buffer must be drained.
    pub fn start_thread(&mut self, cycle: u64) {
        debug_assert!(self.is_drained(), "a thread leaves its core only when nothing of it is in flight");
        self.registers = [cycle; Register::COUNT];
    }

    /// Forgets everything: power is gone.
    pub fn clear(&mut self) {
        *self = ReorderBuffer::new(self.limit as usize);
    }

    #[inline(never)]
    fn wait_for(&mut self, slot: u32, place: usize, producer: u32) {
        let waiter = slot * Entry::SOURCES as u32 + place as u32;
        let entry = &mut self.entries[slot as usize];
        entry.outstanding += 1;
        entry.next_waiter[place] = NO_WAITER;
        let producer = &mut self.entries[producer as usize];
        let last = std::mem::replace(&mut producer.last_waiter, waiter);
        if last == NO_WAITER {
            producer.first_waiter = waiter;
        } else {
            let (previous, place) = (last / Entry::SOURCES as u32, last as usize % Entry::SOURCES);
            self.entries[previous as usize].next_waiter[place] = waiter;
        }
    }
}
