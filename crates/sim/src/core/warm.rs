//! Replay without timing: what lies outside the regions of interest only warms caches, TLBs and branch predictors.
//!
//! One instruction takes one cycle, so that threads still meet their synchronisation in a sensible order.

use super::events::{Meaning, meaning};
use super::micro_op::{DecodedBlock, MicroOp, Operation};
use super::page_table::{PageTable, lines_of_access};
use super::pipeline::{Core, Pause};
use super::thread::{EventPhase, Extra, Step, Thread};
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
        self.warm_extras(env);
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
            self.predict(&env.blocks[env.thread.left_block as usize], decoded, env.thread);
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
        if micro_op.operation == Operation::String {
            env.thread.push_string(block, micro_op);
            return self.warm_extras(env);
        }
        let address = if micro_op.size != 0 { env.thread.slot(micro_op.slot) } else { 0 };
        self.warm_operation(micro_op.operation, address, micro_op.size, env);
    }

    /// Performs the parts of a string instruction, or what an earlier region has left of one.
    fn warm_extras(&mut self, env: &mut WarmEnvironment<'_>) {
        while let Some(Extra { micro_op, address }) = env.thread.extra.pop_front() {
            self.warm_operation(micro_op.operation, address, micro_op.size, env);
        }
    }

    fn warm_operation(&mut self, operation: Operation, address: u64, size: u16, env: &mut WarmEnvironment<'_>) {
        match operation {
            _ if address == 0 => {}
            Operation::Load => self.warm_access(address, size, Want::Read, env),
            Operation::Prefetch => {
                if let Some(physical) = self.tlb.translate_if_known(address, env.table) {
                    self.warm_line(LineAddress::containing(physical), Want::Read, Side::Data, env);
                }
            }
            Operation::Store | Operation::Atomic => self.warm_access(address, size, Want::Own, env),
            Operation::Clflush | Operation::Clflushopt | Operation::Clwb => {
                let (physical, _) = self.tlb.translate(address, env.table);
                env.caches.flush_functionally(LineAddress::containing(physical), operation == Operation::Clwb);
            }
            Operation::NonTemporalStore => {
                let (physical, _) = self.tlb.translate(address, env.table);
                for index in 0..lines_of_access(address, size) {
                    env.caches.write_around_functionally(env.table.line_of_access(address, physical, index));
                }
            }
            _ => {}
        }
    }

    fn warm_access(&mut self, address: u64, size: u16, want: Want, env: &mut WarmEnvironment<'_>) {
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
        let request = Request { core: env.core, line, want, side, cause: Cause::DemandRead, issued: 0 };
        env.caches.access_functionally(request);
    }
}
