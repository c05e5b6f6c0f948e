//! The process that runs on a host: its program, its threads, and how they wait for each other.

use std::sync::Arc;

use super::early_loads::EarlyLoads;
use super::recorded_order::RecordedOrder;
use super::regions::Regions;
use super::scheduler::ThreadState;
use super::waiting_frames::WaitingFrames;
use super::{Host, Workload};
use crate::address_space::page_table::PageTable;
use crate::core::persist::PersistPolicy;
use crate::core::synchronisation::Synchronisation;
use crate::core::thread::Thread;
use crate::core::write_order::WriteOrder;
use fencepost_isa::micro_op::{DecodedBlock, Operation};
use fencepost_kernel::Context;
use fencepost_kernel::line::LineAddress;
use fencepost_kernel::time::Time;
use fencepost_record::ThreadId;

/// A process: all that would be the same on other cores and caches.
#[derive(Clone)]
pub(super) struct Process {
    pub blocks: Arc<[DecodedBlock]>,
    pub persist: PersistPolicy,
    pub table: PageTable,
    pub threads: Vec<Thread>,
    /// What each thread is doing.
    pub states: Vec<ThreadState>,
    /// Instructions of all threads. The sum is needed each time a core has run, and there may be many threads.
    pub instructions: u64,
    /// How many threads have ended.
    pub ended: usize,
    /// When the last of them did.
    pub finished_at: Time,
    /// All threads before this one have been started.
    first_unstarted: usize,
    pub waiting_frames: WaitingFrames,
    pub synchronisation: Synchronisation,
    /// Set if synchronisation keeps its recorded order.
    pub recorded_order: Option<Box<RecordedOrder>>,
    /// Set if threads wait for the writes of others that the record says they saw.
    pub write_order: Option<Box<WriteOrder>>,
    pub regions: Regions,
    /// Waits that were ended because nothing else could go on.
    pub forced_waits: u64,
    pub early_loads: EarlyLoads,
    /// Whether the record is one sequence.
    is_ordered: bool,
}

impl Process {
    /// A process about to start; `workload` names its pins and its limit of PM writes besides, which are the host's.
    pub fn new(workload: Workload) -> Process {
        let info = workload.record.info();
        let has_markers = |block: &DecodedBlock| block.micro_ops.iter().any(|op| op.operation == Operation::RoiMarker);
        let has_regions = info.options.roi.is_some() || workload.blocks.iter().any(has_markers);
        let thread = |thread: usize| Thread::new(workload.record.reader(ThreadId(thread as u32)));
        let mut threads: Vec<_> = (0..workload.record.threads()).map(thread).collect();
        for (thread, &limit) in threads.iter_mut().zip(&workload.limits) {
            thread.limit = limit;
        }
        // It has been read before, for its memory map.
        let is_ordered = workload.record.threads() < 2 || workload.record.has_turns().unwrap_or(true);
        Process {
            blocks: workload.blocks,
            persist: workload.persist,
            table: workload.table,
            states: vec![ThreadState::Unstarted; threads.len()],
            instructions: 0,
            ended: 0,
            finished_at: Time::ZERO,
            first_unstarted: 0,
            waiting_frames: WaitingFrames::new(threads.len()),
            threads,
            synchronisation: Synchronisation::default(),
            recorded_order: None,
            write_order: None,
            regions: Regions::new(has_regions),
            forced_waits: 0,
            early_loads: EarlyLoads::default(),
            is_ordered,
        }
    }

    /// Takes notice of what a thread has come to of the loads of words that are updated atomically.
    pub fn notice_loads(&mut self, thread: usize) {
        let thread = &mut self.threads[thread];
        thread.loads.drain(..).for_each(|noted| self.early_loads.take_in(noted));
    }

    /// Whether every thread has ended.
    pub fn is_finished(&self) -> bool {
        self.ended == self.threads.len()
    }

    /// The first thread that no other has created yet.
    pub fn next_unstarted(&mut self) -> Option<usize> {
        let states = &self.states[self.first_unstarted..];
        let next = states.iter().position(|state| *state == ThreadState::Unstarted);
        self.first_unstarted += next.unwrap_or(states.len());
        next.map(|_| self.first_unstarted)
    }

    /// Marks `thread` as ended.
    pub fn end_thread(&mut self, thread: usize) {
        let state = std::mem::replace(&mut self.states[thread], ThreadState::Ended);
        self.ended += usize::from(state != ThreadState::Ended);
        self.waiting_frames.release(thread);
    }
}

impl Host {
    /// Ends one wait, when no event is left and threads still wait: the wait for a region to settle, else one that
    /// nothing will end; says whether there was one.
    pub fn unblock(&mut self, context: &mut Context<'_>) -> bool {
        if !self.is_powered() {
            return false;
        }
        let cycle = self.cycle(context.now());
        if self.process.regions.settle() {
            self.resume_held(cycle, context);
            return true;
        }
        self.end_blocked_at_their_limits(cycle);
        if self.force_order(cycle, context) || self.force_write_order(cycle, context) {
            self.process.forced_waits += u64::from(!self.limits.is_limited);
            return true;
        }
        let forced = self.process.synchronisation.force().map(|thread| thread.0 as usize);
        let Some(thread) = forced.or_else(|| self.process.next_unstarted()) else { return false };
        if let Some(order) = &mut self.process.recorded_order {
            order.forced(thread);
        }
        // Threads that stop at a position leave others waiting for what lies behind it; that says nothing about the
        // record.
        self.process.forced_waits += u64::from(!self.limits.is_limited);
        self.make_ready(thread, cycle, context);
        true
    }

    /// Ends, at `cycle`, the threads that wait at the position at which they stop.
    fn end_blocked_at_their_limits(&mut self, cycle: u64) {
        if !self.limits.is_limited {
            return;
        }
        for index in 0..self.process.threads.len() {
            let (thread, state) = (&self.process.threads[index], self.process.states[index]);
            if matches!(state, ThreadState::Blocked | ThreadState::Unstarted) && thread.instructions >= thread.limit {
                self.process.synchronisation.give_up(thread.id);
                self.process.end_thread(index);
                self.note_wait_over(index, cycle);
            }
        }
    }

    /// Instructions of the record dispatched so far, including those that only warm.
    pub fn instructions(&self) -> u64 {
        self.process.instructions
    }

    /// Instructions that each thread has dispatched.
    pub fn positions(&self) -> Vec<u64> {
        self.process.threads.iter().map(|thread| thread.instructions).collect()
    }

    /// When the last thread ended.
    pub fn finished_at(&self) -> Time {
        self.process.finished_at
    }

    /// Whether any memory of its machine that it reaches is persistent.
    pub fn reaches_pm(&self) -> bool {
        self.process.table.nodes().any(|(node, _)| node.is_pm)
    }

    /// Waits that were ended because nothing else could go on.
    pub fn forced_waits(&self) -> u64 {
        self.process.forced_waits
    }

    /// Instructions in loops that read the same addresses again and again but were not recognised as waits.
    pub fn polling_instructions(&self) -> u64 {
        self.process.threads.iter().map(|thread| thread.polling).sum()
    }

    /// Instructions in iterations and tasks that threads take from words that they share.
    pub fn handed_out_instructions(&self) -> u64 {
        self.process.threads.iter().map(Thread::handed_out_instructions).sum()
    }

    /// Loads of words that are updated atomically; and those of them that came before the store that they saw.
    pub fn loads(&self) -> (u64, u64) {
        self.process.early_loads.counted(!self.limits.is_limited)
    }

    /// What should have come behind something of another thread that the record does not name.
    pub fn dropped_edges(&self) -> u64 {
        self.process.threads.iter().map(|thread| thread.dropped_edges).sum()
    }

    /// Whether threads polled, and nothing says what they waited for.
    pub fn spins_without_order(&self) -> bool {
        !self.process.is_ordered && self.polling_instructions() > 0
    }

    /// The memory that has run out, if the program touches more of it than the machine has.
    pub fn exhausted_memory(&self) -> Option<&str> {
        self.process.table.exhausted()
    }

    /// The physical line of a virtual address, if the program has touched its page.
    pub fn line_of(&self, address: u64) -> Option<LineAddress> {
        self.process.table.physical(address).map(LineAddress::containing)
    }
}
