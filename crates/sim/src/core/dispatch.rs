//! Dispatch: micro-operations of the thread enter the reorder buffer in program order, as far as every structure has
//! room.

use super::access_sites;
use super::environment::Environment;
use super::persist_site;
use super::pipeline::{Core, Pause};
use super::store_sets::LastStore;
use super::thread::{Extra, Step, instruction_number};
use fencepost_isa::micro_op::{MicroOp, Operation};
use fencepost_record::RecordError;

/// How far dispatch has come.
pub(super) enum Progress {
    /// There is more.
    Dispatched,
    /// It is stalled on an unresolved dependency.
    Blocked,
    /// The host has to act.
    Paused(Pause),
}

/// Stalled on an unresolved dependency.
pub(super) struct Blocked;

impl Core {
    /// Dispatches a block, or as much of it as can be.
    pub(super) fn dispatch_some(&mut self, env: &mut Environment<'_>) -> Result<Progress, RecordError> {
        if self.front_end.awaited.is_some() {
            return Ok(Progress::Blocked);
        }
        while let Some(&Extra { micro_op, address }) = env.thread.extra.front() {
            if self.dispatch(&micro_op, address, env).is_err() {
                return Ok(Progress::Blocked);
            }
            self.stats.inserted_flushes += u64::from(micro_op.operation.is_flush());
            env.thread.extra.pop_front();
            if micro_op.operation == Operation::Store {
                env.persist.after_store(env.thread, env.table, address, micro_op.size);
            }
        }
        if env.thread.block != 0 {
            return self.dispatch_block(env);
        }
        match env.thread.peek()? {
            // Events at the limit still happen: which of them others wait for depends on the machine, and positions
            // must not.
            Step::Block(_) if env.thread.instructions >= env.thread.limit => Ok(self.come_to_limit(env)),
            Step::Block(block) => {
                if self.enter_block(block, env).is_err() {
                    return Ok(Progress::Blocked);
                }
                self.dispatch_block(env)
            }
            Step::Event => self.come_to_event(env),
            Step::End => Ok(self.come_to_end(env)),
        }
    }

    fn dispatch_block(&mut self, env: &mut Environment<'_>) -> Result<Progress, RecordError> {
        let block = &env.blocks[env.thread.block as usize];
        while env.thread.micro_op < env.thread.micro_ops {
            let micro_op = &block.micro_ops[env.thread.micro_op as usize];
            match micro_op.operation {
                Operation::RoiMarker => {
                    let code = micro_op.slot;
                    let progress = self.when_drained(|cycle| Pause::Marker { code, cycle });
                    if matches!(progress, Progress::Paused(_)) {
                        env.thread.micro_op += 1;
                        self.count_instruction(env);
                    }
                    return Ok(progress);
                }
                Operation::String => {
                    env.thread.push_string(block, micro_op);
                    env.thread.micro_op += 1;
                    if micro_op.ends_instruction {
                        self.count_instruction(env);
                    }
                    return Ok(Progress::Dispatched);
                }
                Operation::Drain => {
                    if !self.rob.is_drained() {
                        return Ok(Progress::Blocked);
                    }
                    self.dispatch_from(self.last_commit.cycle);
                }
                operation if env.persist.before_operation(env.thread, operation) => return Ok(Progress::Dispatched),
                _ => {}
            }
            let access = if micro_op.size != 0 { env.thread.slot(micro_op.slot) } else { 0 };
            if self.dispatch(micro_op, micro_op.address_of_part(access), env).is_err() {
                return Ok(Progress::Blocked);
            }
            env.thread.micro_op += 1;
            if micro_op.ends_instruction {
                self.count_instruction(env);
            }
            if matches!(micro_op.operation, Operation::Store | Operation::NonTemporalStore | Operation::Atomic(_))
                && !block.continues(env.thread.micro_op)
            {
                let inserted = env.persist.after_store(env.thread, env.table, access, micro_op.size_so_far());
                if inserted {
                    return Ok(Progress::Dispatched);
                }
            }
        }
        env.thread.leave_block(block.micro_ops.len());
        Ok(Progress::Dispatched)
    }

    /// Dispatches one micro-operation, once every structure has room for it.
    #[inline(always)]
    fn dispatch(&mut self, micro_op: &MicroOp, address: u64, env: &mut Environment<'_>) -> Result<(), Blocked> {
        let cycle = self.dispatch_at(micro_op.operation)?;
        self.stats.micro_ops += 1;
        if cycle > self.next_dispatch.cycle {
            self.next_dispatch.cycle = cycle;
            self.next_dispatch.taken = 0;
        }
        self.next_dispatch.taken += 1;
        if self.next_dispatch.taken == self.config.dispatch_width {
            self.next_dispatch.cycle += 1;
            self.next_dispatch.taken = 0;
        }
        let operation = micro_op.operation;
        // Most micro-operations only compute, on sources that are known.
        if !operation.accesses_memory()
            && let Some(sources) = self.rob.known_sources(&micro_op.sources)
        {
            let complete = self.compute(operation, sources.max(cycle + 1));
            let sequence = self.rob.push_complete(operation, complete, &micro_op.destinations);
            if operation == Operation::Branch {
                self.front_end.last_branch = (self.rob.slot(sequence), sequence);
            }
            return Ok(());
        }
        let slot = self.rob.push(operation, address, micro_op.size, cycle + 1);
        if operation == Operation::Load {
            let entry = self.rob.entry_mut(slot);
            entry.queue_index = self.loads.push();
            entry.instruction = instruction_number(env.thread.block, env.thread.micro_op);
            if self.store_sets.is_some() {
                self.wait_for_store_set(slot);
            }
            if env.accesses.is_some() {
                let index = self.rob.entry(slot).queue_index;
                note_access(env, index, operation, cycle);
            }
        } else if operation.uses_store_queue() {
            let sequence = self.rob.entry(slot).sequence;
            let index = self.stores.push(operation, sequence, slot, address, micro_op.size);
            self.rob.entry_mut(slot).queue_index = index;
            if operation == Operation::Store {
                let instruction = instruction_number(env.thread.block, env.thread.micro_op);
                self.stores.entry_mut(index).instruction = instruction;
                if let Some(sets) = self.store_sets.as_mut() {
                    sets.store_dispatched(instruction, LastStore { slot, sequence });
                }
                if env.accesses.is_some() {
                    note_access(env, index, operation, cycle);
                }
            } else if env.sites.is_some() {
                self.note_site(index, operation, env);
            }
        } else if operation == Operation::Branch {
            self.front_end.last_branch = (slot, self.rob.entry(slot).sequence);
        }
        self.rob.read_sources(slot, &micro_op.sources);
        if self.rob.entry(slot).outstanding == 0 {
            self.execute(slot, env);
        } else {
            self.issue.wait();
        }
        // A flush that is no fence must not take the barrier of an earlier fence from later loads.
        if !matches!(operation, Operation::Flush(flush) if !self.is_full_fence(flush)) {
            self.rob.write_destinations(slot, &micro_op.destinations);
        }
        Ok(())
    }

    /// Names the persist site of entry `index` of the store queue. Out of line: few runs count persist sites.
    #[cold]
    #[inline(never)]
    fn note_site(&mut self, index: u32, operation: Operation, env: &mut Environment<'_>) {
        if let (Some(sites), Some(accesses)) = (&mut env.sites, &mut env.accesses) {
            let callers = accesses.callers();
            self.stores.entry_mut(index).instruction =
                persist_site::site(sites, callers, env.core, env.thread, env.blocks, operation);
        }
    }

    /// The first cycle in which reorder buffer, issue queue and load or store queue have room.
    #[inline(always)]
    fn dispatch_at(&mut self, operation: Operation) -> Result<u64, Blocked> {
        let Some(cycle) = self.rob.room_at() else {
            self.stats.blocked_by_reorder_buffer += 1;
            return Err(Blocked);
        };
        let mut cycle = cycle.max(self.next_dispatch.cycle);
        if operation == Operation::Load {
            let Some(room) = self.loads.room_at() else {
                self.stats.blocked_by_load_queue += 1;
                return Err(Blocked);
            };
            cycle = cycle.max(room);
        } else if operation.uses_store_queue() {
            let Some(room) = self.stores.room_at() else {
                self.stats.blocked_by_store_queue += 1;
                return Err(Blocked);
            };
            cycle = cycle.max(room);
        }
        let Some(cycle) = self.issue.room_at(cycle) else {
            self.stats.blocked_by_issue_queue += 1;
            return Err(Blocked);
        };
        Ok(cycle)
    }

    #[inline]
    fn count_instruction(&mut self, env: &mut Environment<'_>) {
        env.thread.instructions += 1;
        self.stats.instructions += 1;
    }

    /// Pauses if everything has committed, else blocks.
    pub(super) fn when_drained(&mut self, pause: impl FnOnce(u64) -> Pause) -> Progress {
        if !self.rob.is_drained() {
            return Progress::Blocked;
        }
        self.dispatch_from(self.last_commit.cycle);
        Progress::Paused(pause(self.next_dispatch.cycle))
    }

    /// Starts a thread on this core at `cycle`; nothing may be in flight.
    pub fn start_thread(&mut self, cycle: u64) {
        self.dispatch_from(cycle);
        self.rob.start_thread(self.next_dispatch.cycle);
        self.front_end.start_thread();
    }

    /// Lets the thread go on at `cycle`, after a wait.
    pub fn resume_at(&mut self, cycle: u64) {
        self.dispatch_from(cycle);
    }

    /// Nothing dispatches before `cycle`.
    #[inline]
    pub(super) fn dispatch_from(&mut self, cycle: u64) {
        if cycle > self.next_dispatch.cycle {
            self.next_dispatch.cycle = cycle;
            self.next_dispatch.taken = 0;
        }
    }
}

/// Names the site of the load or store at `index` of its queue. Out of line: few runs count accesses by site.
#[cold]
#[inline(never)]
fn note_access(env: &mut Environment<'_>, index: u32, operation: Operation, cycle: u64) {
    if let Some(sites) = &mut env.accesses {
        let key = access_sites::key(sites.callers(), env.core, env.thread, env.blocks, operation);
        sites.dispatched(env.core, index, key, cycle);
    }
}
