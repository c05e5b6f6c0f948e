//! What a core does when its thread comes to an event of the record.

use super::micro_op::{MicroOp, Operation, Register};
use super::pipeline::{Core, Environment, Pause, Progress};
use super::thread::{EventPhase, Extra};
use crate::kernel::Duration;
use crate::record::{Event, RecordError};

/// What an event means for the core that comes to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Nothing takes time.
    Nothing,
    /// A system call.
    SystemCall,
    /// The host arbitrates it; `object` is accessed first, and whether other threads may go on because of it.
    Synchronisation {
        /// The synchronisation object, 0 if there is none.
        object: u64,
        /// Whether it releases something.
        releases: bool,
    },
}

/// What `event` means for the core that comes to it.
pub fn meaning(event: &Event) -> Meaning {
    let synchronisation = |object: u64, releases| Meaning::Synchronisation { object, releases };
    match *event {
        Event::MutexLock { object, .. }
        | Event::SpinLock { object, .. }
        | Event::ReadLock { object, .. }
        | Event::WriteLock { object, .. }
        | Event::AttemptFailed { object, .. }
        | Event::SemaphoreWait { object, .. }
        | Event::FutexWait { object, .. }
        | Event::SpinWait { object, .. } => synchronisation(object, false),
        Event::MutexUnlock { object, .. }
        | Event::SpinUnlock { object, .. }
        | Event::RwUnlock { object, .. }
        | Event::ConditionWait { object, .. }
        | Event::ConditionSignal { object, .. }
        | Event::ConditionBroadcast { object, .. }
        | Event::SemaphorePost { object, .. }
        | Event::BarrierWait { object, .. }
        | Event::FutexWake { object, .. } => synchronisation(object, true),
        Event::ThreadCreate { .. } | Event::ThreadExit { .. } => synchronisation(0, true),
        Event::ThreadJoin { .. } | Event::Roi { .. } => synchronisation(0, false),
        Event::SystemCall { .. } => Meaning::SystemCall,
        Event::ThreadStart { .. }
        | Event::Map { .. }
        | Event::Unmap { .. }
        | Event::Module { .. }
        | Event::Interrupted { .. }
        | Event::Signal { .. }
        | Event::Exec { .. }
        | Event::Fork { .. }
        | Event::KernelWrite { .. }
        | Event::PersistCall { .. }
        | Event::InitialBytes { .. } => Meaning::Nothing,
    }
}

impl Core {
    /// Deals with the thread's next event as far as a core can.
    pub(super) fn come_to_event(&mut self, env: &mut Environment<'_>) -> Result<Progress, RecordError> {
        match meaning(env.thread.event()) {
            Meaning::Nothing => {
                env.thread.pass_event();
                Ok(Progress::Dispatched)
            }
            Meaning::SystemCall => {
                let progress = self.when_drained(Pause::Event);
                if let Progress::Paused(_) = progress {
                    self.stats.system_calls += 1;
                    let cost = Duration::from_ns(self.config.system_call_ns);
                    self.dispatch_cycle += cost.as_ps().div_ceil(self.period.as_ps());
                    env.thread.pass_event();
                    return Ok(Progress::Dispatched);
                }
                Ok(progress)
            }
            Meaning::Synchronisation { object, releases } => Ok(self.come_to_synchronisation(object, releases, env)),
        }
    }

    fn come_to_synchronisation(&mut self, object: u64, releases: bool, env: &mut Environment<'_>) -> Progress {
        if env.thread.phase == EventPhase::Reached {
            env.thread.phase = EventPhase::Persisted;
            if releases && env.persist.before_release(env.thread) {
                return Progress::Dispatched;
            }
        }
        if env.thread.phase == EventPhase::Persisted {
            env.thread.phase = EventPhase::Accessed;
            if object != 0 {
                let mut access = MicroOp { operation: Operation::Atomic, size: 4, ..MicroOp::default() };
                access.destinations[0] = Register::BARRIER;
                env.thread.extra.push_back(Extra { micro_op: access, address: object });
                return Progress::Dispatched;
            }
        }
        self.when_drained(Pause::Event)
    }

    /// The thread's record, or its limit, is at its end: what it has not persisted is, and everything takes effect.
    pub(super) fn come_to_end(&mut self, env: &mut Environment<'_>) -> Progress {
        if env.persist.before_end(env.thread) {
            return Progress::Dispatched;
        }
        self.send_combined(env);
        if !self.is_drained() {
            return Progress::Blocked;
        }
        self.dispatch_cycle = self.dispatch_cycle.max(self.store_cycle).max(self.combining.last_complete());
        self.when_drained(Pause::End)
    }
}
