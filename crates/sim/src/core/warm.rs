//! Replay without timing: what lies outside the regions of interest, or between the intervals of a sample, only warms
//! caches, TLBs and branch predictors.
//!
//! Outside of regions one instruction takes one cycle, so that threads still meet their synchronisation in a sensible
//! order. Inside a region that is sampled instructions take what they took in the intervals, persists are inserted as
//! in detail, and page walks and prefetchers are followed too: what an interval finds is to be what it would have found
//! in full detail. Most blocks go the short way: only what accesses memory is looked at.

use super::events::{Meaning, meaning};
use super::persist::{PersistMode, PersistPolicy};
use super::pipeline::{Core, Pause};
use super::stores::bytes_of_line;
use super::thread::{EventPhase, Extra, Step, Thread, instruction_number};
use super::translation::Translation;
use crate::address_space::page_table::{PAGE_SHIFT, PageTable, lines_of_access};
use crate::cache::hierarchy::{Request, Side, Want};
use crate::cache::sockets::Caches;
use fencepost_isa::micro_op::{DecodedBlock, Exit, MicroOp, Operation};
use fencepost_kernel::line::{ByteMask, LINE_BYTES, LineAddress};
use fencepost_kernel::message::Cause;
use fencepost_record::RecordError;

/// How long an instruction takes that only warms, in 1/256 of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace(u64);

/// One instruction, one cycle.
pub const INITIAL_PACE: Pace = Pace(1 << PACE_SHIFT);

const PACE_SHIFT: u32 = 8;

impl Default for Pace {
    fn default() -> Pace {
        INITIAL_PACE
    }
}

impl Pace {
    /// The pace of so many instructions in so many cycles; none if there were none.
    pub fn of(instructions: u64, cycles: u64) -> Option<Pace> {
        (instructions > 0).then(|| Pace(((cycles << PACE_SHIFT) / instructions).max(1)))
    }
}

/// How far a core has come while it only warms.
#[derive(Clone, Default)]
pub(super) struct Warming {
    pace: Pace,
    /// The part of a cycle that the last instructions have begun, in the unit of the pace.
    fraction: u64,
    /// Non-temporal stores that are being combined.
    combined: Vec<(LineAddress, ByteMask)>,
}

/// What warming follows besides inside a region that is sampled.
#[derive(Clone, Copy)]
pub struct SampledRegion<'a> {
    /// What is persisted beyond the program's own flushes.
    pub persist: &'a PersistPolicy,
    /// How long an instruction takes.
    pub pace: Pace,
    /// Instructions of this thread at which warming stops, because an interval may begin.
    pub stop_at: u64,
}

/// What warming works on.
pub struct WarmEnvironment<'a> {
    /// The core's number.
    pub core: usize,
    /// The thread it runs.
    pub thread: &'a mut Thread,
    /// The program's decoded blocks.
    pub blocks: &'a [DecodedBlock],
    /// All caches of the host.
    pub caches: &'a mut Caches,
    /// The process's address space.
    pub table: &'a mut PageTable,
    /// Set inside a region that is sampled.
    pub sampled: Option<SampledRegion<'a>>,
}

impl WarmEnvironment<'_> {
    /// Whether stores may make the thread persist something.
    fn inserts_persists(&self) -> bool {
        self.sampled.is_some_and(|sampled| sampled.persist.mode != PersistMode::Program)
    }

    fn is_at_stop(&self) -> bool {
        self.sampled.is_some_and(|sampled| self.thread.instructions >= sampled.stop_at)
    }
}

impl Core {
    /// Warms up until the thread comes to something the host must deal with, or to `horizon`, or to where it has to
    /// stop. Nothing may be in flight.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub fn warm(&mut self, horizon: u64, env: &mut WarmEnvironment<'_>) -> Result<Pause, RecordError> {
        self.warming.pace = env.sampled.map_or(INITIAL_PACE, |sampled| sampled.pace);
        let inserts_persists = env.inserts_persists();
        loop {
            self.warm_extras(env);
            if env.thread.block != 0
                && let Some(pause) = self.warm_block(env)
            {
                return Ok(pause);
            }
            if self.next_dispatch.cycle >= horizon || env.is_at_stop() {
                return Ok(Pause::Horizon);
            }
            match env.thread.peek()? {
                Step::Block(_) if env.thread.instructions >= env.thread.limit => {
                    return Ok(Pause::End(self.next_dispatch.cycle));
                }
                Step::Block(block) => {
                    let decoded = &env.blocks[block as usize];
                    if self.is_emulated(decoded, env.table) {
                        env.thread.pass_over_block(block, decoded);
                        continue;
                    }
                    self.warm_entry(block, decoded, env);
                    if decoded.warm.is_plain && !inserts_persists && env.thread.interrupted_after().is_none() {
                        self.warm_plain_block(decoded, env);
                    }
                }
                Step::Event => {
                    if let Some(pause) = self.warm_event(env) {
                        return Ok(pause);
                    }
                }
                Step::End => {
                    if !env.sampled.is_some_and(|sampled| sampled.persist.before_end(env.thread)) {
                        return Ok(Pause::End(self.next_dispatch.cycle));
                    }
                }
            }
        }
    }

    /// What a core does with an event before the host deals with it; the pause for the host, if it does.
    fn warm_event(&mut self, env: &mut WarmEnvironment<'_>) -> Option<Pause> {
        match (meaning(env.thread.event()), env.sampled) {
            (Meaning::Nothing, _) | (Meaning::SystemCall, None) => {
                env.thread.note_load(self.next_dispatch.cycle);
                env.thread.pass_event();
                None
            }
            (Meaning::SystemCall, Some(_)) => {
                self.stats.system_calls += 1;
                self.next_dispatch.cycle += self.system_call_cycles();
                env.thread.pass_event();
                None
            }
            (Meaning::Region, _) | (Meaning::Synchronisation { .. }, None) => {
                env.thread.phase = EventPhase::Accessed;
                Some(Pause::Event(self.next_dispatch.cycle))
            }
            (Meaning::Call, sampled) => {
                if !sampled.is_some_and(|sampled| sampled.persist.before_synchronisation(env.thread)) {
                    env.thread.pass_event();
                }
                None
            }
            (Meaning::Release, sampled) => {
                if !sampled.is_some_and(|sampled| sampled.persist.before_synchronisation(env.thread)) {
                    self.expect_release(env.thread, env.table);
                    env.thread.pass_event();
                }
                None
            }
            (Meaning::Synchronisation { access }, Some(sampled)) => {
                if env.thread.phase == EventPhase::Reached {
                    env.thread.phase = EventPhase::Persisted;
                    if sampled.persist.before_synchronisation(env.thread) {
                        return None;
                    }
                }
                if env.thread.phase == EventPhase::Persisted {
                    env.thread.phase = EventPhase::Accessed;
                    if let Some(extra) =
                        access.micro_operation(sampled.persist.synchronisation).filter(|_| !env.thread.is_in_call)
                    {
                        env.thread.extra.push_back(extra);
                        return None;
                    }
                }
                Some(Pause::Event(self.next_dispatch.cycle))
            }
        }
    }

    /// Predicts the way to a block and fetches it.
    fn warm_entry(&mut self, block: u32, decoded: &DecodedBlock, env: &mut WarmEnvironment<'_>) {
        if env.thread.left_block != 0 {
            let left = &env.blocks[env.thread.left_block as usize];
            let is_right = self.predict(left, decoded, env.thread);
            if left.exit != Exit::FallThrough && env.sampled.is_some() {
                self.stats.branches += 1;
                self.stats.mispredictions += u64::from(!is_right);
            }
            env.thread.left_block = 0;
        }
        for line in decoded.address / LINE_BYTES..=(decoded.end - 1) / LINE_BYTES {
            let page = line >> 6;
            if page != self.front_end.code_page.0 {
                self.front_end.code_page = (page, env.table.frame(page));
            }
            let physical = LineAddress((self.front_end.code_page.1 << 6) | (line & 63));
            let cause = Cause::InstructionFetch;
            let request =
                Request { core: env.core, line: physical, want: Want::Read, side: Side::Instruction, cause, issued: 0 };
            env.caches.access_functionally(request);
        }
        env.thread.start_block(block, decoded.slots, decoded.micro_ops.len() as u32);
        if let Some(instructions) = env.thread.interrupted_after() {
            let ends = decoded.micro_ops.iter().enumerate().filter(|(_, micro_op)| micro_op.ends_instruction);
            env.thread.micro_ops = ends.take(instructions as usize).last().map_or(0, |(index, _)| index as u32 + 1);
        }
    }

    /// Executes a whole block that has nothing in it but accesses to memory and computation.
    fn warm_plain_block(&mut self, block: &DecodedBlock, env: &mut WarmEnvironment<'_>) {
        for access in &block.warm.accesses {
            let address = if access.size != 0 { env.thread.slot(access.slot) } else { 0 };
            self.warm_operation(access.operation, address, access.size, u32::from(access.micro_op), env);
        }
        if env.sampled.is_some() {
            let counts = &block.warm.counts;
            self.stats.micro_ops += block.micro_ops.len() as u64;
            self.stats.stores += u64::from(counts.stores);
            self.stats.flushes += u64::from(counts.flushes);
            self.stats.fences += u64::from(counts.fences);
            self.stats.atomics += u64::from(counts.atomics);
            self.stats.non_temporal_stores += u64::from(counts.non_temporal_stores);
        }
        self.warm_instructions(u64::from(block.instructions), env);
        env.thread.leave_block(block.micro_ops.len());
    }

    /// So many instructions have been executed.
    fn warm_instructions(&mut self, instructions: u64, env: &mut WarmEnvironment<'_>) {
        env.thread.instructions += instructions;
        self.stats.instructions += if env.sampled.is_some() { instructions } else { 0 };
        let cycles = self.warming.fraction + instructions * self.warming.pace.0;
        self.next_dispatch.cycle += cycles >> PACE_SHIFT;
        self.warming.fraction = cycles & ((1 << PACE_SHIFT) - 1);
    }

    /// Executes what is left of the current block, one micro-operation after the other; stops behind a marker.
    fn warm_block(&mut self, env: &mut WarmEnvironment<'_>) -> Option<Pause> {
        let block = &env.blocks[env.thread.block as usize];
        while env.thread.micro_op < env.thread.micro_ops {
            let micro_op = block.micro_ops[env.thread.micro_op as usize];
            self.warm_micro_op(block, &micro_op, env);
            env.thread.micro_op += 1;
            if micro_op.ends_instruction {
                self.warm_instructions(1, env);
            }
            if micro_op.operation == Operation::RoiMarker {
                return Some(Pause::Marker { code: micro_op.slot, cycle: self.next_dispatch.cycle });
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
        if env.sampled.is_some_and(|sampled| sampled.persist.before_operation(env.thread, micro_op.operation)) {
            self.warm_extras(env);
        }
        let access = if micro_op.size != 0 { env.thread.slot(micro_op.slot) } else { 0 };
        let address = micro_op.address_of_part(access);
        self.count_operation(micro_op.operation, env);
        self.warm_operation(micro_op.operation, address, micro_op.size, env.thread.micro_op, env);
        if matches!(micro_op.operation, Operation::Store | Operation::NonTemporalStore | Operation::Atomic(_))
            && !block.continues(env.thread.micro_op + 1)
        {
            self.warm_store_persists(access, micro_op.size_so_far(), env);
        }
    }

    /// A store may be one after which persists are inserted.
    fn warm_store_persists(&mut self, address: u64, size: u16, env: &mut WarmEnvironment<'_>) {
        let Some(sampled) = env.sampled else { return };
        if sampled.persist.after_store(env.thread, env.table, address, size) {
            self.warm_extras(env);
        }
    }

    /// Performs the parts of a string instruction, inserted persists, or what an interval in detail has left of them.
    fn warm_extras(&mut self, env: &mut WarmEnvironment<'_>) {
        while let Some(Extra { micro_op, address }) = env.thread.extra.pop_front() {
            self.count_operation(micro_op.operation, env);
            self.stats.inserted_flushes += u64::from(micro_op.operation.is_flush() && env.sampled.is_some());
            self.warm_operation(micro_op.operation, address, micro_op.size, 0, env);
            if micro_op.operation == Operation::Store
                && let Some(sampled) = env.sampled
            {
                sampled.persist.after_store(env.thread, env.table, address, micro_op.size);
            }
        }
    }

    /// What lies outside of regions is not counted.
    fn count_operation(&mut self, operation: Operation, env: &WarmEnvironment<'_>) {
        if env.sampled.is_none() {
            return;
        }
        self.stats.micro_ops += 1;
        match operation {
            Operation::Store => self.stats.stores += 1,
            Operation::NonTemporalStore => self.stats.non_temporal_stores += 1,
            Operation::Atomic(_) => self.stats.atomics += 1,
            Operation::Fence(_) => self.stats.fences += 1,
            Operation::Flush(_) => self.stats.flushes += 1,
            _ => {}
        }
    }

    /// Performs an access; `micro_op` is its number in its block.
    #[inline]
    fn warm_operation(
        &mut self,
        operation: Operation,
        address: u64,
        size: u16,
        micro_op: u32,
        env: &mut WarmEnvironment<'_>,
    ) {
        match operation {
            Operation::Fence(_) => self.send_warm_combined(env.caches),
            _ if address == 0 => {}
            Operation::Load => {
                self.warm_access(address, size, Want::Read, env);
                self.warm_prefetcher(address, micro_op, env);
            }
            Operation::Prefetch => self.warm_prefetch(address, env),
            Operation::Store => {
                self.warm_access(address, size, Want::Own, env);
                self.warm_prefetcher(address, micro_op, env);
            }
            Operation::Atomic(_) => {
                self.send_warm_combined(env.caches);
                self.warm_access(address, size, Want::Own, env);
            }
            Operation::Flush(flush) => {
                let physical = self.warm_translate(address, env);
                env.caches.flush_functionally(LineAddress::containing(physical), flush);
            }
            Operation::NonTemporalStore => self.warm_non_temporal(address, size, env),
            _ => {}
        }
    }

    /// Outside of regions each non-temporal store goes to memory alone; inside they combine as in detail, since each
    /// line that leaves is a persist.
    fn warm_non_temporal(&mut self, address: u64, size: u16, env: &mut WarmEnvironment<'_>) {
        let physical = self.warm_translate(address, env);
        for index in 0..lines_of_access(address, size) {
            let line = env.table.line_of_access(address, physical, index);
            if env.sampled.is_none() {
                env.caches.write_around_functionally(line);
                continue;
            }
            let place = self.warming.combined.iter().position(|(open, _)| *open == line).unwrap_or_else(|| {
                if self.warming.combined.len() >= self.combining.buffers {
                    env.caches.write_around_functionally(self.warming.combined.remove(0).0);
                }
                self.warming.combined.push((line, ByteMask(0)));
                self.warming.combined.len() - 1
            });
            self.warming.combined[place].1.0 |= bytes_of_line(address, size, index).0;
            if self.warming.combined[place].1.is_full() {
                env.caches.write_around_functionally(self.warming.combined.remove(place).0);
            }
        }
    }

    /// Non-temporal stores that still combine go to memory: at a fence, and before anything is timed.
    pub fn send_warm_combined(&mut self, caches: &mut Caches) {
        for (line, _) in self.warming.combined.drain(..) {
            caches.write_around_functionally(line);
        }
    }

    #[inline]
    fn warm_access(&mut self, address: u64, size: u16, want: Want, env: &mut WarmEnvironment<'_>) {
        let physical = self.warm_translate(address, env);
        if want == Want::Own {
            self.watch(physical, size, self.next_dispatch.cycle);
        }
        let lines = lines_of_access(address, size);
        self.warm_line(LineAddress::containing(physical), want, env);
        for index in 1..lines {
            let line = env.table.line_of_access(address, physical, index);
            self.warm_line(line, want, env);
        }
    }

    #[inline]
    fn warm_translate(&mut self, address: u64, env: &mut WarmEnvironment<'_>) -> u64 {
        let (physical, cost) = self.tlb.translate(address, env.table);
        if let Translation::Read(entry) = cost
            && env.sampled.is_some()
        {
            let (side, cause) = (Side::Walker, Cause::PageWalk);
            env.caches.access_functionally(Request {
                core: env.core,
                line: entry,
                want: Want::Read,
                side,
                cause,
                issued: 0,
            });
        }
        physical
    }

    #[inline]
    fn warm_prefetcher(&mut self, address: u64, micro_op: u32, env: &mut WarmEnvironment<'_>) {
        let Some(prefetcher) = self.prefetcher.as_mut().filter(|_| env.sampled.is_some()) else { return };
        let crosses_pages = prefetcher.crosses_pages;
        for ahead in prefetcher.kind.observe(instruction_number(env.thread.block, micro_op), address) {
            if ahead >> PAGE_SHIFT == address >> PAGE_SHIFT {
                self.warm_prefetch(ahead, env);
            } else if crosses_pages && ahead >> PAGE_SHIFT == (address >> PAGE_SHIFT) + 1 {
                let near = self.tlb.translate_if_near(ahead, env.table);
                self.warm_fetch_ahead(near.map(|(physical, _)| physical), env);
            }
        }
    }

    fn warm_prefetch(&mut self, address: u64, env: &mut WarmEnvironment<'_>) {
        let physical = self.tlb.translate_if_known(address, env.table);
        self.warm_fetch_ahead(physical, env);
    }

    /// Fetches the line at `physical`, if that is known.
    fn warm_fetch_ahead(&mut self, physical: Option<u64>, env: &mut WarmEnvironment<'_>) {
        if let Some(physical) = physical {
            let (line, side) = (LineAddress::containing(physical), Side::Data);
            env.caches.access_functionally(Request {
                core: env.core,
                line,
                want: Want::Read,
                side,
                cause: Cause::Prefetch,
                issued: 0,
            });
        }
    }

    #[inline]
    fn warm_line(&mut self, line: LineAddress, want: Want, env: &mut WarmEnvironment<'_>) {
        let request = Request { core: env.core, line, want, side: Side::Data, cause: Cause::DemandRead, issued: 0 };
        env.caches.access_functionally(request);
    }
}
