//! The front end: branch prediction and instruction fetch, block by block.

use super::branch_predictor::BranchPredictor;
use super::config::{BranchPredictorConfig, Vdso};
use super::dispatch::Blocked;
use super::environment::{CoreRequest, Environment};
use super::pipeline::Core;
use super::reorder_buffer::UNKNOWN;
use super::thread::Thread;
use crate::address_space::page_table::PageTable;
use crate::cache::hierarchy::{Side, Want};
use fencepost_isa::micro_op::{DecodedBlock, Exit};
use fencepost_kernel::line::LineAddress;
use fencepost_kernel::message::Cause;

/// What fetch and prediction keep.
#[derive(Clone)]
pub(super) struct FrontEnd {
    predictor: BranchPredictor,
    /// The line of instructions fetched last.
    fetched_line: u64,
    /// The virtual page of the code fetched last, and its frame.
    pub code_page: (u64, u64),
    /// The instruction line that dispatch waits for.
    pub awaited: Option<LineAddress>,
    /// The instruction line that has arrived for dispatch, until dispatch takes it: the caches may have lost it again
    /// by then.
    pub arrived: Option<LineAddress>,
    /// The block that is fetched only in part, by its address, and its next line.
    partly_fetched: Option<(u64, u64)>,
    /// The last branch, by its slot and its sequence: where it was mispredicted, the next block waits for it.
    pub last_branch: (u32, u64),
    mispredicted: bool,
}

impl FrontEnd {
    /// Nothing fetched, nothing learned.
    pub fn new(predictor: &BranchPredictorConfig) -> FrontEnd {
        FrontEnd {
            predictor: BranchPredictor::new(predictor),
            fetched_line: u64::MAX,
            code_page: (u64::MAX, 0),
            awaited: None,
            arrived: None,
            partly_fetched: None,
            last_branch: (0, 0),
            mispredicted: false,
        }
    }

    /// Another thread starts, at code of its own; what was learned stays.
    pub fn start_thread(&mut self) {
        self.fetched_line = u64::MAX;
        self.code_page = (u64::MAX, 0);
        self.arrived = None;
        self.partly_fetched = None;
        self.mispredicted = false;
    }
}

impl Core {
    /// Enters a block: predicts the branch that led to it and fetches its instructions.
    pub(super) fn enter_block(&mut self, block: u32, env: &mut Environment<'_>) -> Result<(), Blocked> {
        let decoded = &env.blocks[block as usize];
        if self.is_emulated(decoded, env.table) {
            env.thread.pass_over_block(block, decoded);
            self.stats.instructions += u64::from(decoded.instructions);
            return Ok(());
        }
        if env.thread.left_block != 0 {
            let left = &env.blocks[env.thread.left_block as usize];
            let is_right = self.predict(left, decoded, env.thread);
            if left.exit != Exit::FallThrough {
                self.stats.branches += 1;
                self.front_end.mispredicted = !is_right;
                self.stats.mispredictions += u64::from(self.front_end.mispredicted);
                if decoded.address != left.end {
                    self.fetch_goes_elsewhere();
                }
            }
            env.thread.left_block = 0;
        }
        let mut lookup = 0;
        if self.front_end.mispredicted {
            let (slot, sequence) = self.front_end.last_branch;
            let branch = self.rob.entry(slot);
            if branch.sequence == sequence && branch.complete == UNKNOWN {
                self.stats.blocked_by_branch += 1;
                return Err(Blocked);
            }
            // A branch whose slot has been reused has committed long ago.
            let resolved = if branch.sequence == sequence { branch.complete } else { 0 };
            self.dispatch_from(resolved + u64::from(self.config.front_end_cycles));
            self.front_end.mispredicted = false;
            lookup = self.timing.l1i;
        }
        self.fetch(decoded, env)?;
        // The latency of a missing line includes its lookup.
        self.dispatch_from(self.next_dispatch.cycle + lookup);
        env.thread.start_block(block, decoded.slots, decoded.micro_ops.len() as u32);
        if let Some(instructions) = env.thread.interrupted_after() {
            let ends = decoded.micro_ops.iter().enumerate().filter(|(_, micro_op)| micro_op.ends_instruction);
            let executed = ends.take(instructions as usize).last().map_or(0, |(index, _)| index + 1);
            env.thread.micro_ops = executed as u32;
        }
        Ok(())
    }

    /// Predicts which block follows the one that `thread` left, and says whether the prediction was right.
    #[inline]
    pub(super) fn predict(&mut self, left: &DecodedBlock, next: &DecodedBlock, thread: &Thread) -> bool {
        if thread.has_passed_call {
            self.front_end.predictor.predict_around_call(left, next.address)
        } else {
            self.front_end.predictor.predict(left, next.address)
        }
    }

    /// Whether `block` belongs to the vDSO and is emulated instead of executed.
    #[inline]
    pub(super) fn is_emulated(&self, block: &DecodedBlock, table: &PageTable) -> bool {
        self.config.vdso == Vdso::Emulated && table.is_vdso(block.address)
    }

    /// Charges what fetch loses by following a taken branch.
    fn fetch_goes_elsewhere(&mut self) {
        let branch = self.next_dispatch.cycle - u64::from(self.next_dispatch.taken == 0);
        self.dispatch_from(branch + u64::from(self.config.taken_branch_cycles));
    }

    /// Brings the lines of a block into the instruction cache, in order, or asks for the first that is missing.
    fn fetch(&mut self, block: &DecodedBlock, env: &mut Environment<'_>) -> Result<(), Blocked> {
        let last = (block.end - 1) / 64;
        let mut line = block.address / 64;
        if line == self.front_end.fetched_line {
            line += 1;
        }
        if let Some((_, next)) = self.front_end.partly_fetched.take().filter(|(address, _)| *address == block.address) {
            line = next;
        }
        while line <= last {
            let page = line >> 6;
            if page != self.front_end.code_page.0 {
                self.front_end.code_page = (page, env.table.frame(page));
            }
            let physical = LineAddress((self.front_end.code_page.1 << 6) | (line & 63));
            match env.l1i.find_and_touch(physical) {
                _ if self.front_end.arrived.take() == Some(physical) => self.front_end.fetched_line = line,
                Some(index) => {
                    self.stats.l1i_hits += 1;
                    self.dispatch_from(env.l1i.line(index).ready);
                    self.front_end.fetched_line = line;
                }
                None => {
                    self.stats.l1i_misses += 1;
                    self.stats.blocked_by_fetch += 1;
                    self.front_end.awaited = Some(physical);
                    self.front_end.partly_fetched = Some((block.address, line));
                    let request = CoreRequest::Line {
                        line: physical,
                        want: Want::Read,
                        side: Side::Instruction,
                        cause: Cause::InstructionFetch,
                        issued: self.next_dispatch.cycle,
                    };
                    env.requests.push((self.next_dispatch.cycle + self.timing.l1i, request));
                    return Err(Blocked);
                }
            }
            line += 1;
        }
        Ok(())
    }
}
