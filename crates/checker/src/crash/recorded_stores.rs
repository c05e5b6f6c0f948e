//! What the threads of a record did to persistent memory, in program order: stores with their bytes, flushes, fences.

use std::collections::HashMap;

use fencepost_isa::micro_op::{Awaited, DecodedBlock, MicroOp, Operation};
use fencepost_record::{AddressRanges, Clock, Event, Frame, MarkKind, PersistCall, RecordError, ThreadId};
use fencepost_sim::cache::config::PointOfCoherence;
use fencepost_sim::core::events::{Access, Meaning, meaning};
use fencepost_sim::replay::simulation::Program;

use super::CrashError;
use super::content_hash::LINE;
use super::named_functions::{NamedFunctions, OperationCalls};
use super::operations::RecordedMark;
use super::pool_file::PoolFile;
use super::sites::{BlockEnd, CallStack, SiteId, Sites};

/// Number of a store among all of a [`RecordedStores`].
pub type StoreId = u32;

/// One store to persistent memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedStore {
    /// By which thread.
    pub thread: u32,
    /// Its place among what the thread did.
    pub place: u32,
    /// Virtual address of the first byte.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// Where its bytes are, if the record has them: it has none of a `cmpxchg` that did not exchange.
    value: Option<usize>,
    /// Whether it goes around the caches.
    pub is_non_temporal: bool,
    /// Whether a system call made it, or a synchronisation function: the replay has it only as a moment.
    pub is_of_call: bool,
}

#[cfg(test)]
impl RecordedStore {
    /// An ordinary store of which the record has no bytes.
    pub fn plain(thread: u32, place: u32, address: u64, size: u64) -> RecordedStore {
        RecordedStore { thread, place, address, size, value: None, is_non_temporal: false, is_of_call: false }
    }
}

#[cfg(test)]
impl RecordedStores {
    /// Adds a store of a thread with its bytes; instructions of each thread are numbered from 100.
    pub fn add_store(&mut self, thread: u32, address: u64, bytes: &[u8]) -> StoreId {
        let number = self.stores.len() as StoreId;
        let place = self.add_act(thread, Act::Store(number));
        let value = Some(self.values.len());
        self.values.extend_from_slice(bytes);
        let size = bytes.len() as u64;
        self.stores.push(RecordedStore { value, ..RecordedStore::plain(thread, place, address, size) });
        number
    }

    /// Adds what a thread does next; gives its place there.
    pub fn add_act(&mut self, thread: u32, act: Act) -> u32 {
        let threads = self.threads.len().max(thread as usize + 1);
        self.threads.resize_with(threads, Vec::new);
        let acts = &mut self.threads[thread as usize];
        let place = acts.len() as u32;
        let site = self.sites.number(100 + u64::from(place), &mut CallStack::default());
        acts.push(PlacedAct { act, site });
        place
    }
}

/// What a thread did that concerns durability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// A store to persistent memory.
    Store(StoreId),
    /// A flush of the line of this address.
    Flush {
        /// The virtual address.
        address: u64,
        /// Which instruction.
        operation: Operation,
    },
    /// A flush of the line of this address to a point that the machine does not keep through a power cut.
    FlushElsewhere {
        /// The virtual address.
        address: u64,
    },
    /// A call that returned when all stores to these addresses were durable: `msync`, `fsync`, `fdatasync`.
    Sync {
        /// The virtual address of the first byte.
        start: u64,
        /// Bytes.
        length: u64,
    },
    /// A fence, or what orders as one: a locked instruction, a synchronisation function.
    Fence {
        /// Which instruction; [`Operation::Atomic`] also stands for a synchronisation function.
        operation: Operation,
    },
}

/// An act, and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedAct {
    /// What was done.
    pub act: Act,
    /// Its number in [`RecordedStores::sites`].
    pub site: SiteId,
}

/// Bytes that the pool held when it was mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignBytes {
    /// The thread in whose record they stand.
    pub thread: u32,
    /// How many acts of that thread come before.
    pub acts_before: u32,
    /// Virtual address.
    pub address: u64,
    /// The bytes.
    pub bytes: Box<[u8]>,
}

/// All of a record.
#[derive(Clone, Debug, Default)]
pub struct RecordedStores {
    /// By thread, in program order.
    pub threads: Vec<Vec<PlacedAct>>,
    /// By thread: the calls that wrote into selected memory or asked for durability, each with the place of its act if
    /// it has one.
    pub calls: Vec<Vec<Option<u32>>>,
    /// By thread: what it said of its operations.
    pub marks: Vec<Vec<RecordedMark>>,
    /// Whether these are calls of functions that a user named, and not what the program says.
    pub marks_are_calls: bool,
    /// By number.
    pub stores: Vec<RecordedStore>,
    /// In the order of threads, each thread's in order.
    pub foreign: Vec<ForeignBytes>,
    /// Where acts come from.
    pub sites: Sites,
    values: Vec<u8>,
}

impl RecordedStores {
    /// Walks through the record of `program`, for a machine with that point of coherence; what lies in `persistent` is
    /// persistent memory. Bytes that a program stored there before another one replaced it do not count, if the `file`
    /// was mapped later.
    ///
    /// # Errors
    /// If the record cannot be read, or has more stores than can be numbered.
    pub fn read(
        program: &Program,
        persistent: &AddressRanges,
        file: &PoolFile,
        point_of_coherence: PointOfCoherence,
        functions: &NamedFunctions,
    ) -> Result<RecordedStores, CrashError> {
        let blocks = program.blocks().iter().enumerate();
        let relevant = blocks.map(|(id, block)| RelevantOperation::of_block(program, id as u32, block)).collect();
        let ends = (0..program.blocks().len() as u32).map(|id| BlockEnd::of_block(program, id)).collect();
        let mut walk = Walk {
            program,
            persistent,
            file_mapped: file.mapped,
            point_of_coherence,
            relevant,
            ends,
            stack: CallStack::default(),
            functions,
            calls: OperationCalls::default(),
            found: RecordedStores { marks_are_calls: !functions.is_empty(), ..RecordedStores::default() },
            values_of_frame: HashMap::new(),
        };
        for thread in 0..program.record().threads() {
            walk.thread(thread as u32)?;
        }
        if walk.found.stores.len() > StoreId::MAX as usize {
            return Err(CrashError::Unsuitable("the record has more than 4 billion stores to PM".into()));
        }
        Ok(walk.found)
    }

    /// Whether it is known what a store left: not of one that stored nothing.
    pub fn has_bytes(&self, store: StoreId) -> bool {
        self.stores[store as usize].value.is_some()
    }

    /// The bytes that a store left in line `line` (virtual address / 64), and where in it they begin; none if the
    /// record does not have them.
    pub fn bytes_in_line(&self, store: StoreId, line: u64) -> Option<(usize, &[u8])> {
        let store = &self.stores[store as usize];
        let value = store.value?;
        let start = store.address.max(line * LINE as u64);
        let end = store.address.saturating_add(store.size).min((line + 1).saturating_mul(LINE as u64));
        let first = value + (start - store.address) as usize;
        Some(((start % LINE as u64) as usize, &self.values[first..first + (end - start) as usize]))
    }

    /// Where a store comes from.
    pub fn site_of(&self, store: StoreId) -> SiteId {
        let store = &self.stores[store as usize];
        self.threads[store.thread as usize][store.place as usize].site
    }

    /// The address of an act's instruction.
    pub fn instruction_at(&self, thread: u32, place: u32) -> u64 {
        self.sites.get(self.threads[thread as usize][place as usize].site).instruction
    }
}

/// The lines (virtual address / 64) that these bytes lie in.
pub fn lines_of(address: u64, size: u64) -> std::ops::RangeInclusive<u64> {
    address / LINE as u64..=address.saturating_add(size.max(1) - 1) / LINE as u64
}

/// A micro-operation of a block that concerns durability.
struct RelevantOperation {
    micro_op: MicroOp,
    /// Number of its instruction in the block.
    index: u64,
    instruction: u64,
}

impl RelevantOperation {
    fn of_block(program: &Program, id: u32, decoded: &DecodedBlock) -> Vec<RelevantOperation> {
        if decoded.instructions == 0 {
            return Vec::new();
        }
        let block = program.record().program().block(id);
        let addresses: Vec<u64> = block.instructions().map(|(address, _)| address).collect();
        let mut index = 0;
        let mut relevant = Vec::new();
        for micro_op in &decoded.micro_ops {
            let is_string = micro_op.operation == Operation::String && micro_op.string.access.writes();
            if micro_op.operation.uses_store_queue() || is_string {
                let instruction = addresses[index as usize];
                relevant.push(RelevantOperation { micro_op: *micro_op, index, instruction });
            }
            index += u64::from(micro_op.ends_instruction);
        }
        relevant
    }
}

struct Walk<'a> {
    program: &'a Program,
    persistent: &'a AddressRanges,
    file_mapped: Clock,
    point_of_coherence: PointOfCoherence,
    relevant: Vec<Vec<RelevantOperation>>,
    /// By block.
    ends: Vec<BlockEnd>,
    /// The calls that the thread is in.
    stack: CallStack,
    /// Those whose calls are operations, and the one that the thread is in.
    functions: &'a NamedFunctions,
    calls: OperationCalls,
    found: RecordedStores,
    /// The frame's values: by slot index, where their bytes begin in `found.values`.
    values_of_frame: HashMap<u32, usize>,
}

impl Walk<'_> {
    fn thread(&mut self, thread: u32) -> Result<(), RecordError> {
        self.found.threads.push(Vec::new());
        self.found.calls.push(Vec::new());
        self.found.marks.push(Vec::new());
        self.stack = CallStack::default();
        self.calls = OperationCalls::default();
        let mut reader = self.program.record().reader(ThreadId(thread));
        let mut frame = Frame::default();
        while reader.next_frame(&mut frame)? {
            self.values_of_frame.clear();
            for written in &frame.written {
                let start = written.start as usize;
                self.values_of_frame.insert(written.slot, self.found.values.len());
                self.found.values.extend_from_slice(&frame.values[start..start + written.length as usize]);
            }
            self.frame(thread, &frame);
        }
        Ok(())
    }

    fn frame(&mut self, thread: u32, frame: &Frame) {
        let (mut slot, mut event) = (0, 0);
        for (step, &block) in frame.steps.iter().enumerate() {
            if block == 0 {
                self.event(thread, &frame.events[event]);
                event += 1;
                continue;
            }
            let executed = match (frame.steps.get(step + 1), frame.events.get(event)) {
                (Some(0), Some(Event::Interrupted { instructions })) => *instructions,
                _ => u64::MAX,
            };
            self.block(thread, block, slot, frame, executed);
            slot += self.program.blocks()[block as usize].slots as usize;
        }
    }

    fn event(&mut self, thread: u32, event: &Event) {
        if event.replaces_call() {
            self.stack.returned();
        }
        match event {
            Event::Signal { .. } => self.stack.interrupted(),
            Event::Exec { clock, .. } if *clock < self.file_mapped => self.forget_bytes(thread),
            Event::InitialBytes { address, bytes } => {
                let acts_before = self.found.threads[thread as usize].len() as u32;
                self.found.foreign.push(ForeignBytes { thread, acts_before, address: *address, bytes: bytes.clone() });
            }
            Event::Mark { clock, kind, text } if self.functions.is_empty() => {
                self.mark(thread, *clock, *kind, text.to_string());
            }
            Event::ThreadExit { clock } => {
                if let Some((kind, name)) = self.calls.end() {
                    self.mark(thread, *clock, kind, name);
                }
            }
            Event::KernelWrite { address, bytes } => {
                let before = self.found.threads[thread as usize].len();
                self.call_wrote(thread, *address, bytes);
                self.note_call(thread, before);
            }
            Event::PersistCall { call, start, length, .. } => {
                let before = self.found.threads[thread as usize].len();
                if *call != PersistCall::Truncate {
                    self.act(thread, Act::Sync { start: *start, length: *length }, 0);
                }
                self.note_call(thread, before);
            }
            _ => {
                if let Meaning::Synchronisation { access: Access::Atomic(object), .. } = meaning(event) {
                    self.store(thread, 0, object, 4, None, false);
                    let fence = self.program.instruction_set().synchronisation();
                    if fence.awaits() == Awaited::Completion {
                        self.act(thread, Act::Fence { operation: Operation::Atomic(fence) }, 0);
                    }
                }
            }
        }
    }

    /// Of a program that another one has replaced: its own memory lay where the pool lies later.
    fn forget_bytes(&mut self, thread: u32) {
        self.found.stores.iter_mut().filter(|store| store.thread == thread).for_each(|store| store.value = None);
        self.found.foreign.retain(|foreign| foreign.thread != thread);
    }

    fn block(&mut self, thread: u32, block: u32, first_slot: usize, frame: &Frame, executed: u64) {
        let address = self.program.record().program().block(block).address;
        self.stack.begin(address);
        if !self.functions.is_empty() {
            for (kind, name) in self.calls.begin(self.functions, address, &self.stack) {
                self.mark(thread, Clock::default(), kind, name);
            }
        }
        self.operations(thread, block, first_slot, frame, executed);
        if executed == u64::MAX {
            let mut end = self.ends[block as usize];
            if let BlockEnd::Call { instruction, frame: stored_at, .. } = &mut end {
                *stored_at = self.return_address_of(*instruction, block, first_slot, frame);
            }
            self.stack.end(end);
            if matches!(end, BlockEnd::Call { .. }) {
                self.calls.call(&self.stack);
            }
        }
    }

    /// Where the call at the end of a block puts its return address, if not in a register.
    fn return_address_of(&self, call: u64, block: u32, first_slot: usize, frame: &Frame) -> u64 {
        let stored = self.relevant[block as usize].last().filter(|stored| stored.instruction == call);
        stored.map_or(0, |stored| frame.slots[first_slot + usize::from(stored.micro_op.slot)])
    }

    fn mark(&mut self, thread: u32, clock: Clock, kind: MarkKind, text: String) {
        let acts_before = self.found.threads[thread as usize].len() as u32;
        self.found.marks[thread as usize].push(RecordedMark { kind, text, clock, acts_before });
    }

    fn operations(&mut self, thread: u32, block: u32, first_slot: usize, frame: &Frame, executed: u64) {
        for number in 0..self.relevant[block as usize].len() {
            let RelevantOperation { micro_op, index, instruction } = self.relevant[block as usize][number];
            if index >= executed {
                return;
            }
            let operation = micro_op.operation;
            let slot = first_slot + usize::from(micro_op.slot);
            let address = || frame.slots[slot];
            match operation {
                Operation::Flush(flush) => {
                    let address = address();
                    if self.persistent.contains(address) {
                        let act = if self.point_of_coherence.persists(flush) {
                            Act::Flush { address, operation }
                        } else {
                            Act::FlushElsewhere { address }
                        };
                        self.act(thread, act, instruction);
                    }
                }
                // What only orders makes nothing durable.
                Operation::Fence(fence) => {
                    if fence.awaits() == Awaited::Completion {
                        self.act(thread, Act::Fence { operation }, instruction);
                    }
                }
                Operation::String => {
                    let slot = slot + if micro_op.string.access.has_source() { 2 } else { 0 };
                    let (before, after) = (frame.slots[slot], frame.slots[slot + 1]);
                    let start = if after >= before { before } else { after + u64::from(micro_op.size) };
                    if before != after {
                        let value = self.values_of_frame.get(&(slot as u32)).copied();
                        self.store(thread, instruction, start, before.abs_diff(after), value, false);
                    }
                }
                _ => {
                    let value = self.values_of_frame.get(&(slot as u32)).copied();
                    let is_non_temporal = operation == Operation::NonTemporalStore;
                    if address() != 0 {
                        self.store(thread, instruction, address(), micro_op.size.into(), value, is_non_temporal);
                    }
                    if let Operation::Atomic(fence) = operation
                        && fence.awaits() == Awaited::Completion
                    {
                        self.act(thread, Act::Fence { operation }, instruction);
                    }
                }
            }
        }
    }

    /// A system call or a synchronisation function has written to the pool: into the cache, as a store does, or into
    /// the pages that are there.
    fn call_wrote(&mut self, thread: u32, address: u64, bytes: &[u8]) {
        let value = Some(self.found.values.len());
        self.found.values.extend_from_slice(bytes);
        let before = self.found.stores.len();
        self.store(thread, 0, address, bytes.len() as u64, value, false);
        if let Some(store) = self.found.stores.get_mut(before) {
            store.is_of_call = true;
        }
    }

    /// A call has been taken in, when the thread had done so many acts.
    fn note_call(&mut self, thread: u32, before: usize) {
        let has_act = self.found.threads[thread as usize].len() > before;
        self.found.calls[thread as usize].push(has_act.then_some(before as u32));
    }

    fn store(
        &mut self,
        thread: u32,
        instruction: u64,
        address: u64,
        size: u64,
        value: Option<usize>,
        is_non_temporal: bool,
    ) {
        let last = address.saturating_add(size.max(1) - 1);
        if self.persistent.contains(address) || self.persistent.contains(last) {
            let place = self.found.threads[thread as usize].len() as u32;
            let size = size.max(1);
            let store = RecordedStore { thread, place, address, size, value, is_non_temporal, is_of_call: false };
            self.found.stores.push(store);
            let number = (self.found.stores.len() - 1) as StoreId;
            self.act(thread, Act::Store(number), instruction);
        }
    }

    fn act(&mut self, thread: u32, act: Act, instruction: u64) {
        let site = self.found.sites.number(instruction, &mut self.stack);
        self.found.threads[thread as usize].push(PlacedAct { act, site });
    }
}
