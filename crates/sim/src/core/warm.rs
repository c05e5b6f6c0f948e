//! Replay without timing: what lies outside the regions of interest only warms caches, TLBs and branch predictors.
//!
//! One instruction takes one cycle, so that threads still meet their synchronisation in a sensible order.

use super::events::{Meaning, meaning};
use super::micro_op::{DecodedBlock, MicroOp, Operation};
use super::page_table::{PageTable, lines_of_access};
use super::pipeline::{Core, Pause};
use super::thread::{EventPhase, Step, Thread};
use crate::cache::hierarchy::{Hierarchy, Request, Side, Want};
use crate::message::{Cause, LINE_BYTES, LineAddress};
use crate::record::RecordError;

/// What warming works on.
pub struct WarmEnvironment<'a> {
    /// The core's number.
    pub core: usize,
    /// The thread it runs.
    pub thread: &'a mut Thread,
    /// The program's decoded blocks.
    pub blocks: &'a [DecodedBlock],
    /// All caches of the host.
    pub caches: &'a mut Hierarchy,
    /// The process's address space.
    pub table: &'a mut PageTable,
}

impl Core {
    /// Warms up until the thread comes to something the host must deal with, or to `horizon`. Nothing may be in flight.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub fn warm(&mut self, horizon: u64, env: &mut WarmEnvironment<'_>) -> Result<Pause, RecordError> {
        env.thread.extra.clear();
        loop {
            if env.thread.block != 0
                && let Some(pause) = self.warm_block(env)
            {
                return Ok(pause);
            }
            if self.dispatch_cycle >= horizon {
                return Ok(Pause::Horizon);
            }
            match env.thread.peek()? {
                Step::Block(_) if env.thread.instructions >= env.thread.limit => {
                    return Ok(Pause::End(self.dispatch_cycle));
                }
                Step::Block(block) => self.warm_entry(block, env),
                Step::Event => match meaning(env.thread.event()) {
                    Meaning::Nothing | Meaning::SystemCall => env.thread.pass_event(),
                    Meaning::Synchronisation { .. } | Meaning::Region => {
                        env.thread.phase = EventPhase::Accessed;
                        return Ok(Pause::Event(self.dispatch_cycle));
                    }
                },
                Step::End => return Ok(Pause::End(self.dispatch_cycle)),
            }
        }
    }

    fn warm_entry(&mut self, block: u32, env: &mut WarmEnvironment<'_>) {
        let decoded = &env.blocks[block as usize];
        if env.thread.left_block != 0 {
            self.predictor.predict(&env.blocks[env.thread.left_block as usize], decoded.address);
            env.thread.left_block = 0;
        }
        for line in decoded.address / LINE_BYTES..=(decoded.end - 1) / LINE_BYTES {
            let physical = (env.table.frame(line >> 6) << 6) | (line & 63);
            self.warm_line(LineAddress(physical), Want::Read, Side::Instruction, env);
        }
        env.thread.start_block(block, decoded.slots, decoded.micro_ops.len() as u32);
        if let Some(instructions) = env.thread.interrupted_after() {
            let ends = decoded.micro_ops.iter().enumerate().filter(|(_, micro_op)| micro_op.ends_instruction);
            env.thread.micro_ops = ends.take(instructions as usize).last().map_or(0, |(index, _)| index as u32 + 1);
        }
    }

    /// Executes what is left of the current block; stops behind a marker.
    fn warm_block(&mut self, env: &mut WarmEnvironment<'_>) -> Option<Pause> {
        let block = &env.blocks[env.thread.block as usize];
        while env.thread.micro_op < env.thread.micro_ops {
            let micro_op = block.micro_ops[env.thread.micro_op as usize];
            self.warm_micro_op(block, &micro_op, env);
            env.thread.micro_op += 1;
            if micro_op.ends_instruction {
                env.thread.instructions += 1;
                self.dispatch_cycle += 1;
            }
            if micro_op.operation == Operation::RoiMarker {
                return Some(Pause::Marker { code: micro_op.slot, cycle: self.dispatch_cycle });
            }
        }
        env.thread.leave_block(block.micro_ops.len());
        None
    }

    fn warm_micro_op(&mut self, block: &DecodedBlock, micro_op: &MicroOp, env: &mut WarmEnvironment<'_>) {
        let want = match micro_op.operation {
            Operation::Load | Operation::Prefetch => Want::Read,
            Operation::Store | Operation::Atomic => Want::Own,
            Operation::String => {
                env.thread.push_string(block, micro_op);
                while let Some(extra) = env.thread.extra.pop_front() {
                    let want = if extra.micro_op.operation == Operation::Store { Want::Own } else { Want::Read };
                    self.warm_access(extra.address, extra.micro_op.size, want, env);
                }
                return;
            }
            Operation::Clflush | Operation::Clflushopt | Operation::Clwb => {
                let (physical, _) = self.tlb.translate(env.thread.slot(micro_op.slot), env.table);
                let keep = micro_op.operation == Operation::Clwb;
                env.caches.flush_functionally(LineAddress::containing(physical), keep);
                return;
            }
            Operation::NonTemporalStore => {
                let (physical, _) = self.tlb.translate(env.thread.slot(micro_op.slot), env.table);
                env.caches.write_around_functionally(LineAddress::containing(physical));
                return;
            }
            _ => return,
        };
        self.warm_access(env.thread.slot(micro_op.slot), micro_op.size, want, env);
    }

    fn warm_access(&mut self, address: u64, size: u16, want: Want, env: &mut WarmEnvironment<'_>) {
        if address == 0 {
            return;
        }
        let (physical, _) = self.tlb.translate(address, env.table);
        if want == Want::Own {
            self.watch(physical, size, self.dispatch_cycle);
        }
        for index in 0..lines_of_access(address, size) {
            let line = env.table.line_of_access(address, physical, index);
            self.warm_line(line, want, Side::Data, env);
        }
    }

    fn warm_line(&mut self, line: LineAddress, want: Want, side: Side, env: &mut WarmEnvironment<'_>) {
        let request = Request { core: env.core, line, want, side, cause: Cause::DemandRead };
        env.caches.access_functionally(request);
    }
}
