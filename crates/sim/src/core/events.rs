//! What a core does when its thread comes to an event of the record.

use super::dispatch::Progress;
use super::environment::Environment;
use super::pipeline::{Core, Pause};
use super::store_log::Performed;
use super::thread::{EventPhase, Extra, PendingRelease, Thread};
use super::write_order::Writes;
use crate::address_space::page_table::PageTable;
use fencepost_isa::micro_op::{Fence, MicroOp, Operation, Register};
use fencepost_kernel::time::Duration;
use fencepost_record::{Event, RecordError, SpinReleaseKind};

/// What an event means for the core that comes to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Nothing takes time.
    Nothing,
    /// A system call.
    SystemCall,
    /// The host arbitrates it.
    Synchronisation {
        /// How its object is accessed first, where the record does not have the inside of the function that does it.
        access: Access,
    },
    /// A synchronisation function begins.
    Call,
    /// The block that follows stores to a word that threads poll: the host is told when that takes effect.
    Release,
    /// A region of interest begins or ends.
    Region,
}

/// What the core does with a synchronisation object at its virtual address, before the host arbitrates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// There is no object.
    None,
    /// It reads the word, as a spin loop does, and the kernel at a futex.
    Read(u64),
    /// It reads and writes it as one.
    Atomic(u64),
}

impl Access {
    /// The micro-operation that does it; an atomic one orders what `fence` does.
    pub(super) fn micro_operation(self, fence: Fence) -> Option<Extra> {
        let (operation, address) = match self {
            Access::None => return None,
            Access::Read(object) => (Operation::Load, object),
            Access::Atomic(object) => (Operation::Atomic(fence), object),
        };
        let mut micro_op = MicroOp { operation, size: 4, ..MicroOp::default() };
        if operation == Operation::Load {
            micro_op.sources[0] = Register::BARRIER;
        } else if operation.holds_back_loads() {
            micro_op.destinations[0] = Register::BARRIER;
        }
        Some(Extra { micro_op, address })
    }
}

/// What `event` means for the core that comes to it.
pub fn meaning(event: &Event) -> Meaning {
    let synchronisation = |access| Meaning::Synchronisation { access };
    match *event {
        Event::MutexLock { object, .. }
        | Event::SpinLock { object, .. }
        | Event::ReadLock { object, .. }
        | Event::WriteLock { object, .. }
        | Event::AttemptFailed { object, .. }
        | Event::SemaphoreWait { object, .. }
        | Event::MutexUnlock { object, .. }
        | Event::SpinUnlock { object, .. }
        | Event::RwUnlock { object, .. }
        | Event::ConditionWait { object, .. }
        | Event::ConditionSignal { object, .. }
        | Event::ConditionBroadcast { object, .. }
        | Event::SemaphorePost { object, .. }
        | Event::BarrierWait { object, .. } => synchronisation(Access::Atomic(object)),
        Event::FutexWait { object, .. } | Event::FutexWake { object, .. } => synchronisation(Access::Read(object)),
        // What the program's own instructions do to the word follows in the record.
        Event::SpinRelease { kind, .. } if kind != SpinReleaseKind::TakesLock => Meaning::Release,
        Event::SpinWait { .. } | Event::SpinRelease { .. } => synchronisation(Access::None),
        Event::ThreadCreate { .. }
        | Event::ThreadExit { .. }
        | Event::ThreadJoin { .. }
        | Event::Supply { .. }
        | Event::Consume { .. } => synchronisation(Access::None),
        Event::CallBegin => Meaning::Call,
        Event::Roi { .. } => Meaning::Region,
        Event::SystemCall { .. } => Meaning::SystemCall,
        Event::ThreadStart { .. }
        | Event::Map { .. }
        | Event::Unmap { .. }
        | Event::SharedMapping { .. }
        | Event::ChildWait { .. }
        | Event::Module { .. }
        | Event::Interrupted { .. }
        | Event::Polling { .. }
        | Event::HandedOut { .. }
        | Event::StoreSeen { .. }
        | Event::Loads { .. }
        | Event::DroppedEdges { .. }
        | Event::Turn { .. }
        | Event::Signal { .. }
        | Event::Exec { .. }
        | Event::Fork { .. }
        | Event::KernelWrite { .. }
        | Event::PersistCall { .. }
        | Event::Mark { .. }
        | Event::InitialBytes { .. }
        | Event::Order { .. }
        | Event::CallEnd => Meaning::Nothing,
    }
}

impl Core {
    /// Deals with the thread's next event as far as a core can.
    pub(super) fn come_to_event(&mut self, env: &mut Environment<'_>) -> Result<Progress, RecordError> {
        if env.order.is_some()
            && let Some(progress) = self.come_to_order(env)
        {
            return Ok(progress);
        }
        match meaning(env.thread.event()) {
            Meaning::Nothing => {
                if matches!(env.thread.event(), Event::KernelWrite { .. } | Event::PersistCall { .. }) {
                    env.log_event(self.time(self.next_dispatch.cycle), Performed::CameToCall);
                }
                if matches!(env.thread.event(), Event::Mark { .. }) && env.stores.is_some() {
                    self.effects.marks.push_back((self.stores.entered(), self.next_dispatch.cycle));
                }
                env.thread.note_load(self.next_dispatch.cycle);
                env.thread.pass_event();
                Ok(Progress::Dispatched)
            }
            Meaning::SystemCall => {
                let progress = self.when_drained(Pause::Event);
                if let Progress::Paused(_) = progress {
                    self.stats.system_calls += 1;
                    self.next_dispatch.cycle += self.system_call_cycles();
                    env.thread.pass_event();
                    return Ok(Progress::Dispatched);
                }
                Ok(progress)
            }
            Meaning::Call => {
                if !env.persist.before_synchronisation(env.thread) {
                    env.thread.pass_event();
                }
                Ok(Progress::Dispatched)
            }
            Meaning::Release => {
                if !env.persist.before_synchronisation(env.thread) {
                    self.expect_release(env.thread, env.table);
                    env.thread.pass_event();
                }
                Ok(Progress::Dispatched)
            }
            Meaning::Synchronisation { access } => Ok(self.come_to_synchronisation(access, env)),
            Meaning::Region => {
                env.thread.phase = EventPhase::Accessed;
                Ok(self.when_drained(Pause::Event))
            }
        }
    }

    /// Marks count from when a store in their place would take effect: behind all stores and fences before them.
    #[inline]
    pub(super) fn pass_marks(&mut self, env: &mut Environment<'_>) {
        while let Some(&(entries, cycle)) = self.effects.marks.front()
            && entries <= self.stores.known()
        {
            env.log_event(self.time(cycle.max(self.effects.cycle)), Performed::PassedMark);
            self.effects.marks.pop_front();
        }
    }

    /// Where the order of writes is kept, an event may be a part of it. Apart, since most replays do not keep it.
    #[cold]
    #[inline(never)]
    fn come_to_order(&mut self, env: &mut Environment<'_>) -> Option<Progress> {
        let order = env.order.as_mut()?;
        let event = env.thread.event();
        match *event {
            Event::Order { thread, writes } if thread == env.thread.id => {
                self.mark_writes(Writes { of: thread, count: writes });
            }
            Event::Order { thread, writes: count } => {
                let writes = Writes { of: thread, count };
                match order.performed(writes) {
                    Some(cycle) => self.dispatch_from(cycle + 1),
                    // It keeps its core, so that what it has under way does not become complete only because it waits
                    // here.
                    None if !order.is_core_wanted => {
                        order.stall(env.core, writes);
                        return Some(Progress::Blocked);
                    }
                    None if !self.rob.is_drained() || !self.drain(env) => return Some(Progress::Blocked),
                    None => {
                        env.thread.phase = EventPhase::Accessed;
                        return Some(self.when_drained(Pause::Event));
                    }
                }
            }
            _ => return None,
        }
        env.thread.pass_event();
        Some(Progress::Dispatched)
    }

    /// The thread's next event says that a store to a polled word follows: it will be noticed.
    pub fn expect_release(&mut self, thread: &mut Thread, table: &mut PageTable) {
        let Event::SpinRelease { clock, object, kind, lock, .. } = *thread.event() else {
            unreachable!("only a release is expected")
        };
        let word = (table.frame(object >> 12) << 12) | (object & 0xfff);
        let lock = (kind == SpinReleaseKind::GivesLock).then_some(lock);
        thread.releases.push_back(PendingRelease { word, clock, lock });
        thread.clock = thread.clock.max(clock);
        self.watch_word(word);
    }

    /// What a system call costs.
    pub(super) fn system_call_cycles(&self) -> u64 {
        Duration::from_ns(self.config.system_call_ns).as_ps().div_ceil(self.timing.period.as_ps())
    }

    fn come_to_synchronisation(&mut self, access: Access, env: &mut Environment<'_>) -> Progress {
        if env.thread.phase == EventPhase::Reached {
            env.thread.phase = EventPhase::Persisted;
            if env.persist.before_synchronisation(env.thread) {
                return Progress::Dispatched;
            }
        }
        if env.thread.phase == EventPhase::Persisted {
            env.thread.phase = EventPhase::Accessed;
            if let Some(extra) = access.micro_operation(env.persist.synchronisation).filter(|_| !env.thread.is_in_call)
            {
                env.thread.extra.push_back(extra);
                return Progress::Dispatched;
            }
        }
        // A thread that blocks leaves its core, so nothing of it may be in flight. An atomic access sees to that
        // itself.
        if !self.rob.is_drained() || !self.drain(env) {
            return Progress::Blocked;
        }
        self.when_drained(Pause::Event)
    }

    /// The thread's record is at its end: what it has not persisted is, and everything takes effect.
    pub(super) fn come_to_end(&mut self, env: &mut Environment<'_>) -> Progress {
        if env.persist.before_end(env.thread) {
            return Progress::Dispatched;
        }
        self.come_to_limit(env)
    }

    /// The thread stops in the middle of its record: everything takes effect. Nothing is persisted that the program
    /// would not have persisted here.
    pub(super) fn come_to_limit(&mut self, env: &mut Environment<'_>) -> Progress {
        self.send_combined(env);
        if !self.is_drained() {
            return Progress::Blocked;
        }
        self.dispatch_from(self.effects.cycle.max(self.combining.last_complete()));
        self.when_drained(Pause::End)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost_record::{Clock, ThreadId};

    #[test]
    fn what_has_no_place_in_the_order_is_not_arbitrated() {
        let (thread, bytes) = (ThreadId(1), Box::from([]));
        let events = [
            Event::SystemCall { number: 1, result: 0 },
            Event::Roi { begin: true },
            Event::Interrupted { instructions: 1 },
            Event::Polling { instructions: 1, by_count: 0 },
            Event::HandedOut { begin: true },
            Event::StoreSeen { clock: Clock(1) },
            Event::Loads { count: 1, store: Some(Clock(1)) },
            Event::DroppedEdges { count: 1 },
            Event::Signal { number: 1 },
            Event::Fork { child: 1 },
            Event::KernelWrite { address: 64, bytes },
            Event::InitialBytes { address: 64, bytes: Box::from([]) },
            Event::Order { thread, writes: 1 },
            Event::CallBegin,
            Event::CallEnd,
        ];
        for event in events {
            assert_eq!(event.clock(), None, "{event:?}");
            assert!(!matches!(meaning(&event), Meaning::Synchronisation { .. }), "{event:?}");
        }
    }
}
