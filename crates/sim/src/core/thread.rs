//! One recorded thread on its way through a simulation: where it is in its record, and what it has to persist.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::write_order::AwaitedWrites;
use fencepost_isa::micro_op::{DecodedBlock, Exit, MicroOp};
use fencepost_record::{Clock, Event, Frame, RecordError, ThreadId, ThreadReader};

/// The number of a static micro-operation, for predictors and prefetchers: those of a block follow each other, up to 64
/// of them; what comes behind these differs from them in the highest bits, and is no micro-operation of the next block.
#[inline]
pub(super) fn instruction_number(block: u32, micro_op: u32) -> u32 {
    (block << 6) ^ (micro_op & 63) ^ (micro_op >> 6).reverse_bits()
}

/// A micro-operation that the record does not hold: a part of a string instruction, an access to a synchronisation
/// object, an inserted persist.
#[derive(Clone, Copy, Debug)]
pub struct Extra {
    /// What is to be done.
    pub micro_op: MicroOp,
    /// Virtual address it accesses.
    pub address: u64,
}

/// A store to a word that threads poll, which the thread has come to and which has not taken effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingRelease {
    /// Physical address of the word.
    pub word: u64,
    /// The store's place in the process clock.
    pub clock: Clock,
    /// The lock that it gives back.
    pub lock: Option<u64>,
}

/// Of the loads of words that are updated atomically, what a thread has come to, and in which cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noted {
    /// A store that loads see.
    Store {
        /// Its place in the process clock.
        clock: Clock,
        /// When the thread came to it.
        cycle: u64,
    },
    /// Loads.
    Loads {
        /// How many.
        count: u64,
        /// The store that they have to come behind.
        store: Option<Clock>,
        /// When the thread came to the first.
        cycle: u64,
    },
}

/// What comes next in a thread's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// This block.
    Block(u32),
    /// An event; [`Thread::event`] has it.
    Event,
    /// Nothing: the record of this thread is at its end.
    End,
}

/// How far the event that a thread has come to has been dealt with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventPhase {
    /// Not at all.
    #[default]
    Reached,
    /// The persists that it asks for are inserted.
    Persisted,
    /// Its object's access is inserted.
    Accessed,
}

/// A thread's place in its record.
#[derive(Clone)]
pub struct Thread {
    /// Which thread it is.
    pub id: ThreadId,
    reader: ThreadReader,
    /// The frame that is being replayed.
    pub frame: Arc<Frame>,
    /// How many frames were read so far.
    pub frame_number: u64,
    /// Set as long as `frame` is not there, to be read again before the thread goes on.
    is_put_away: bool,
    step: usize,
    /// Index of the first slot of the next block.
    next_slot: usize,
    next_event: usize,
    at_end: bool,
    /// The block being dispatched (0: none), its next micro-operation, and its first slot.
    pub block: u32,
    /// Next micro-operation of `block`.
    pub micro_op: u32,
    /// Micro-operations of `block` that are executed: fewer than all if it was interrupted.
    pub micro_ops: u32,
    /// Index of the first slot of `block` in the frame.
    pub first_slot: usize,
    /// The block executed last, whose exit has not been predicted yet (0: none).
    pub left_block: u32,
    /// Whether that block led to a call whose inside the record leaves out, and which has returned.
    pub has_passed_call: bool,
    /// Whether it is inside a synchronisation function that the record has the inside of.
    pub is_in_call: bool,
    /// What comes before the record goes on.
    pub extra: VecDeque<Extra>,
    /// Stores to polled words that are under way, in order.
    pub releases: VecDeque<PendingRelease>,
    /// How far the next event has been dealt with.
    pub phase: EventPhase,
    /// The place in the process clock of the last synchronisation that it came to; at first that of its creation.
    pub clock: Clock,
    /// Instructions dispatched.
    pub instructions: u64,
    /// Of them those in rounds that only read the same addresses again, as far as the record says.
    pub polling: u64,
    /// Loads of words that are updated atomically, and stores that they see, that the host has not dealt with.
    pub loads: Vec<Noted>,
    /// What should come behind something of another thread that the record does not name, so far.
    pub dropped_edges: u64,
    /// And those in iterations and tasks that were handed out, up to the last time that these ended; and since when it
    /// has been in some.
    handed_out: u64,
    handed_out_from: Option<u64>,
    /// Instructions after which the thread stops.
    pub limit: u64,
    /// PM lines (virtual address / 64) stored to since the last inserted persist, in order, and as a set.
    pub dirty_lines: Vec<u64>,
    dirty_set: FxHashSet<u64>,
    /// Stores to PM since the last inserted persist.
    pub stores_to_pm: u64,
    /// The micro-operation of `block` on whose account persists were inserted last.
    pub persists_at: u32,
    /// Its writes that others wait for, in a replay that keeps their order.
    pub awaited_writes: Option<Box<AwaitedWrites>>,
}

impl Thread {
    /// The thread at the start of its record.
    pub fn new(reader: ThreadReader) -> Thread {
        Thread {
            id: reader.thread(),
            reader,
            frame: Arc::default(),
            frame_number: 0,
            is_put_away: false,
            step: 0,
            next_slot: 0,
            next_event: 0,
            at_end: false,
            block: 0,
            micro_op: 0,
            micro_ops: 0,
            first_slot: 0,
            left_block: 0,
            has_passed_call: false,
            is_in_call: false,
            extra: VecDeque::new(),
            releases: VecDeque::new(),
            phase: EventPhase::Reached,
            clock: Clock::default(),
            instructions: 0,
            polling: 0,
            loads: Vec::new(),
            dropped_edges: 0,
            handed_out: 0,
            handed_out_from: None,
            limit: u64::MAX,
            dirty_lines: Vec::new(),
            dirty_set: FxHashSet::default(),
            stores_to_pm: 0,
            persists_at: 0,
            awaited_writes: None,
        }
    }

    /// What comes next; reads the next frame if this one is used up.
    #[inline]
    pub fn peek(&mut self) -> Result<Step, RecordError> {
        loop {
            match self.frame.steps.get(self.step) {
                Some(0) => return Ok(Step::Event),
                Some(&block) => return Ok(Step::Block(block)),
                None if self.at_end => return Ok(Step::End),
                None => self.read_frame()?,
            }
        }
    }

    /// Starts the block that comes next; `slots` is how many each execution of it supplies.
    #[inline]
    pub fn start_block(&mut self, block: u32, slots: u32, micro_ops: u32) {
        self.block = block;
        self.micro_op = 0;
        self.micro_ops = micro_ops;
        self.first_slot = self.next_slot;
        self.next_slot += slots as usize;
        self.step += 1;
        self.has_passed_call = false;
    }

    /// The block that comes next is not executed here: its slots are used up, its instructions count.
    pub fn pass_over_block(&mut self, block: u32, decoded: &DecodedBlock) {
        self.left_block = 0;
        self.start_block(block, decoded.slots, 0);
        self.instructions += u64::from(decoded.instructions);
    }

    /// Every micro-operation of the block that is executed has been dispatched; the block has `micro_ops` of them.
    #[inline]
    pub fn leave_block(&mut self, micro_ops: usize) {
        // One that was interrupted did not come to its branch.
        self.left_block = if self.micro_ops as usize == micro_ops { self.block } else { 0 };
        self.block = 0;
    }

    /// How many instructions of the block just started were executed, if it was interrupted.
    #[inline]
    pub fn interrupted_after(&self) -> Option<u64> {
        if self.frame.steps.get(self.step) != Some(&0) {
            return None;
        }
        match self.frame.events.get(self.next_event) {
            Some(Event::Interrupted { instructions }) => Some(*instructions),
            _ => None,
        }
    }

    /// The event that comes next; [`Thread::peek`] has said that there is one.
    pub fn event(&self) -> &Event {
        &self.frame.events[self.next_event]
    }

    /// The event has been dealt with.
    pub fn pass_event(&mut self) {
        match self.event() {
            Event::CallBegin => self.is_in_call = true,
            Event::CallEnd => self.is_in_call = false,
            &Event::Polling { instructions, .. } => self.polling += instructions,
            &Event::DroppedEdges { count } => self.dropped_edges += count,
            &Event::HandedOut { begin } => {
                self.handed_out = self.handed_out_instructions();
                self.handed_out_from = begin.then_some(self.instructions);
            }
            event => self.has_passed_call |= !self.is_in_call && event.replaces_call(),
        }
        self.next_event += 1;
        self.step += 1;
        self.phase = EventPhase::Reached;
    }

    /// Notes the event that comes next, if it is of the loads of words that are updated atomically.
    #[inline]
    pub fn note_load(&mut self, cycle: u64) {
        let noted = match *self.event() {
            Event::StoreSeen { clock } => Noted::Store { clock, cycle },
            Event::Loads { count, store } => Noted::Loads { count, store, cycle },
            _ => return,
        };
        self.loads.push(noted);
    }

    /// Instructions in iterations and tasks that it takes from words that threads share.
    pub fn handed_out_instructions(&self) -> u64 {
        self.handed_out + self.handed_out_from.map_or(0, |from| self.instructions - from)
    }

    /// A place in the process clock behind which all that it synchronises from now on lies.
    pub fn passed_clock(&self) -> Clock {
        // A call that began before the frame has its event, with a place of that time, before the first block. (A
        // reader that was not asked for a frame yet has one without blocks.)
        let is_in_frame = self.frame.steps.iter().take(self.step).any(|step| *step != 0);
        let passed = if is_in_frame { self.clock.max(self.frame.clocks.0) } else { self.clock };
        self.releases.iter().map(|release| Clock(release.clock.0 - 1)).fold(passed, Clock::min)
    }

    /// The value of slot `slot` of the block being dispatched.
    #[inline]
    pub fn slot(&self, slot: u16) -> u64 {
        self.frame.slots[self.first_slot + usize::from(slot)]
    }

    /// How many steps of its frame it has begun.
    pub fn step(&self) -> usize {
        self.step
    }

    /// The block that was executed last; 0 if this frame has none.
    pub fn last_block(&self) -> u32 {
        self.frame.steps[..self.step].iter().rev().copied().find(|&block| block != 0).unwrap_or(0)
    }

    /// The block whose call entered the function that the thread is in, or, where that is not `wanted`, the nearest
    /// wanted one of those whose calls led there; the first where none is, and 0 if this frame shows none. `found` is
    /// what this gave when the thread had begun so many steps of the frame.
    pub fn caller(
        &self,
        blocks: &[DecodedBlock],
        wanted: impl Fn(u32) -> bool,
        found: impl Fn(usize) -> Option<u32>,
    ) -> u32 {
        if let Some(caller) = found(self.step).filter(|_| self.block != 0) {
            return caller;
        }
        let mut first = 0;
        let mut event = self.next_event;
        let mut returned_calls = 0;
        let mut is_in_call = self.is_in_call;
        // The block that is being dispatched has been begun.
        for step in (0..self.step - usize::from(self.block != 0)).rev() {
            let block = self.frame.steps[step];
            if block == 0 {
                event -= 1;
                match &self.frame.events[event] {
                    Event::CallEnd => is_in_call = true,
                    Event::CallBegin => is_in_call = false,
                    // The call that it stands for has returned.
                    passed if !is_in_call && passed.replaces_call() => returned_calls += 1,
                    // A handler is entered by no call.
                    Event::Signal { .. } | Event::Interrupted { .. } => return first,
                    _ => {}
                }
                continue;
            }
            match blocks[block as usize].exit {
                Exit::Return => returned_calls += 1,
                Exit::Call | Exit::IndirectCall if returned_calls == 0 => {
                    if wanted(block) {
                        return block;
                    }
                    first = if first == 0 { block } else { first };
                }
                Exit::Call | Exit::IndirectCall => returned_calls -= 1,
                _ => {}
            }
            if let Some(caller) = found(step + 1).filter(|_| returned_calls == 0) {
                return if first == 0 || wanted(caller) && caller != 0 { caller } else { first };
            }
        }
        first
    }

    /// Notes a store to PM, for inserted persists.
    pub fn note_store(&mut self, address: u64, size: u16) {
        self.stores_to_pm += 1;
        for line in address / 64..=(address + u64::from(size.max(1)) - 1) / 64 {
            if self.dirty_set.insert(line) {
                self.dirty_lines.push(line);
            }
        }
    }

    /// Gives the lines noted since the last call.
    pub fn take_dirty_lines(&mut self) -> Vec<u64> {
        self.dirty_set.clear();
        self.stores_to_pm = 0;
        std::mem::take(&mut self.dirty_lines)
    }

    /// How many bytes its frame takes in memory, and how many in the record.
    pub fn frame_bytes(&self) -> (u64, u64) {
        let stored = if self.frame_number == 0 || self.at_end { 0 } else { self.reader.last_stored_bytes() };
        (self.frame.bytes() as u64, stored)
    }

    /// Gives the memory of its frame back until the thread goes on.
    pub fn put_frame_away(&mut self) {
        self.clock = self.passed_clock();
        self.frame = Arc::default();
        self.is_put_away = true;
    }

    /// The thread is about to go on: its frame is there again.
    ///
    /// # Errors
    /// If the record has changed since it was read.
    pub fn take_up_frame(&mut self) -> Result<(), RecordError> {
        if std::mem::take(&mut self.is_put_away) {
            self.reader.last_frame(Arc::make_mut(&mut self.frame))?;
        }
        Ok(())
    }

    fn read_frame(&mut self) -> Result<(), RecordError> {
        self.step = 0;
        self.next_slot = 0;
        self.next_event = 0;
        self.frame_number += 1;
        let frame = Arc::make_mut(&mut self.frame);
        self.at_end = !self.reader.next_frame(frame)?;
        if self.at_end {
            *frame = Frame { clocks: frame.clocks, ..Frame::default() };
        } else if let Some(awaited) = &mut self.awaited_writes {
            awaited.mark(self.id, frame);
        }
        Ok(())
    }
}
