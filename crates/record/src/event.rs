//! Events: what happens between the blocks of a thread. Synchronisation, system calls, mappings.

use serde::Serialize;

use super::text::Text;

/// Largest number of events in one frame.
pub const FRAME_EVENTS_MAX: u64 = 1 << 19;

/// Dense number of a thread within its record, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ThreadId(pub u32);

/// A place in the total order of the synchronisation and mapping events of all threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Clock(pub u64);

/// What may be done in a mapping: the sum of 1 read, 2 write, 4 execute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Protection(pub u8);

impl Protection {
    /// What may be written.
    pub const WRITE: u8 = 2;
}

/// What lies behind a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MappingKind {
    /// No file.
    Anonymous = 0,
    /// A file.
    File = 1,
    /// The stack of the first thread.
    Stack = 2,
    /// What `brk` manages.
    Break = 3,
    /// The kernel's own, such as `[vdso]`.
    Special = 4,
}

/// How a futex wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FutexOutcome {
    /// By a wake.
    Woken = 0,
    /// At once, because the word had another value.
    ValueChanged = 1,
    /// By its time limit.
    TimedOut = 2,
    /// By a signal.
    Interrupted = 3,
}

/// What a store to a word at which threads wait does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpinReleaseKind {
    /// It stores.
    Store = 0,
    /// An atomic instruction changes it.
    Update = 1,
    /// An update by which the thread gets a lock.
    TakesLock = 4,
    /// A store or update by which it gives the lock back.
    GivesLock = 5,
}

/// The call by which a program asks the kernel for durability, or changes what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PersistCall {
    /// `msync` of an address range.
    Msync = 1,
    /// `fsync` of a file.
    Fsync = 2,
    /// `fdatasync` of a file.
    Fdatasync = 3,
    /// `truncate` of a file.
    Truncate = 4,
}

/// What a program says of its operations, by an instruction that does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MarkKind {
    /// An operation of the thread begins.
    Begin = 1,
    /// Its operation that began last has ended.
    End = 2,
    /// Someone has been told of it.
    Acknowledged = 3,
}

/// One event of a thread. `clock` is its own place in the process clock; `wake` is the place of the
/// event that ended a wait, if that is known; objects and addresses are virtual addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the fields say it, and the format page has them in a table")]
pub enum Event {
    /// First event of a thread; the stack's mapping, 0 if unknown.
    ThreadStart {
        clock: Clock,
        kernel_tid: u64,
        stack_low: u64,
        stack_high: u64,
    },
    /// Last event of a thread that ended.
    ThreadExit {
        clock: Clock,
    },
    /// By the creator, after the call.
    ThreadCreate {
        clock: Clock,
        thread: ThreadId,
    },
    /// After a successful join.
    ThreadJoin {
        clock: Clock,
        thread: ThreadId,
    },
    /// Acquired, by whichever function.
    MutexLock {
        clock: Clock,
        object: u64,
    },
    MutexUnlock {
        clock: Clock,
        object: u64,
    },
    SpinLock {
        clock: Clock,
        object: u64,
    },
    SpinUnlock {
        clock: Clock,
        object: u64,
    },
    /// A reader-writer lock, shared.
    ReadLock {
        clock: Clock,
        object: u64,
    },
    /// A reader-writer lock, exclusive.
    WriteLock {
        clock: Clock,
        object: u64,
    },
    RwUnlock {
        clock: Clock,
        object: u64,
    },
    /// A `trylock` or timed operation that did not succeed.
    AttemptFailed {
        clock: Clock,
        object: u64,
    },
    /// Released the mutex, waited, took it again.
    ConditionWait {
        clock: Clock,
        object: u64,
        mutex: u64,
        wake: Option<Clock>,
        timed_out: bool,
    },
    ConditionSignal {
        clock: Clock,
        object: u64,
    },
    ConditionBroadcast {
        clock: Clock,
        object: u64,
    },
    SemaphorePost {
        clock: Clock,
        object: u64,
    },
    /// Without a `wake` the token was there from the start.
    SemaphoreWait {
        clock: Clock,
        object: u64,
        wake: Option<Clock>,
    },
    /// `participants` 0: unknown.
    BarrierWait {
        clock: Clock,
        object: u64,
        participants: u64,
        generation: u64,
    },
    FutexWait {
        clock: Clock,
        object: u64,
        wake: Option<Clock>,
        outcome: FutexOutcome,
    },
    /// `woken` is the number of waiters that the kernel woke.
    FutexWake {
        clock: Clock,
        object: u64,
        woken: u64,
    },
    /// A system call gave something to a pipe, a socket pair or an eventfd; `object` numbers the direction.
    Supply {
        clock: Clock,
        object: u64,
    },
    /// One is about to take what the call at `supply` gave, blocked for it or not.
    Consume {
        clock: Clock,
        object: u64,
        supply: Option<Clock>,
    },
    /// What follows comes behind the store to the word that thread `maker` makes at `wake`. Others may have the last
    /// `lends` locks of the thread meanwhile. Like the next one, no recorder writes it: the reader puts it into frames.
    SpinWait {
        clock: Clock,
        object: u64,
        wake: Clock,
        maker: ThreadId,
        lends: u64,
    },
    /// The block that follows stores to a word at which threads wait. `lock` is the word that stands for the lock that
    /// is taken or given back.
    SpinRelease {
        clock: Clock,
        object: u64,
        kind: SpinReleaseKind,
        lock: u64,
    },
    /// The kernel's instructions are not recorded.
    SystemCall {
        number: u64,
        result: i64,
    },
    Map {
        clock: Clock,
        start: u64,
        length: u64,
        protection: Protection,
        kind: MappingKind,
        offset: u64,
        name: Text,
    },
    Unmap {
        clock: Clock,
        start: u64,
        length: u64,
    },
    /// What is mapped there is shared with other processes: a number of the tree's, and the offset of the first byte in
    /// it.
    SharedMapping {
        clock: Clock,
        start: u64,
        length: u64,
        object: u64,
        offset: u64,
    },
    /// An executable or library was loaded.
    Module {
        clock: Clock,
        base: u64,
        length: u64,
        build_id: Box<[u8]>,
        path: Text,
    },
    /// A boundary that `--roi` asked for.
    Roi {
        begin: bool,
    },
    /// The block before executed only its first `instructions` instructions; the slots of the
    /// others are meaningless.
    Interrupted {
        instructions: u64,
    },
    /// So many instructions before it, and behind the event before it of this kind, were in rounds that only read the
    /// same words again, which other threads store to, and are kept: nobody knows what ended them, or a count or a
    /// clock did.
    Polling {
        instructions: u64,
        by_count: u64,
    },
    /// From here to where they end the thread takes iterations or tasks from a word that threads share: which ones is
    /// the recording's. The reader puts it into frames.
    HandedOut {
        begin: bool,
    },
    /// The block that follows makes a store that loads name by this place; nothing waits for it.
    StoreSeen {
        clock: Clock,
    },
    /// So many loads of words that are updated atomically: the one in the block that follows, which saw the store at
    /// this place; or some that cannot come before what they saw. The reader puts both into frames.
    Loads {
        count: u64,
        store: Option<Clock>,
    },
    /// What follows should come behind so many stores or calls of other threads that the record does not name.
    DroppedEdges {
        count: u64,
    },
    /// A thread's turn begins; its estimated clock, in instructions.
    Turn {
        clock: Clock,
        estimate: u64,
    },
    /// The thread enters a handler.
    Signal {
        number: u64,
    },
    /// The process replaced its image; what follows is the first thread of the new one.
    Exec {
        clock: Clock,
        path: Text,
    },
    /// The child is not in this record.
    Fork {
        child: u64,
    },
    /// A wait for a child that has ended, by its number in the tree, is over.
    ChildWait {
        clock: Clock,
        process: u64,
    },
    /// The program says what its operations are.
    Mark {
        clock: Clock,
        kind: MarkKind,
        text: Text,
    },
    /// The kernel wrote into selected PM.
    KernelWrite {
        address: u64,
        bytes: Box<[u8]>,
    },
    PersistCall {
        clock: Clock,
        call: PersistCall,
        start: u64,
        length: u64,
    },
    /// What selected PM held when it was first mapped.
    InitialBytes {
        address: u64,
        bytes: Box<[u8]>,
    },
    /// What the thread does from here on comes after the first `writes` writes of another one.
    Order {
        thread: ThreadId,
        writes: u64,
    },
    /// What follows, up to the next `CallEnd`, is the inside of a synchronisation function: the path that it takes
    /// where it does not have to wait, and the event of what it did.
    CallBegin,
    CallEnd,
}

impl Event {
    /// Whether, outside of `CallBegin` and `CallEnd`, it stands for a call that has returned and whose inside is not in
    /// the record: one of a synchronisation function. Futexes and spinning are in the record by what the program itself
    /// executed.
    #[must_use]
    #[inline]
    pub fn replaces_call(&self) -> bool {
        use Event as E;
        matches!(
            self,
            E::ThreadCreate { .. }
                | E::ThreadJoin { .. }
                | E::MutexLock { .. }
                | E::MutexUnlock { .. }
                | E::SpinLock { .. }
                | E::SpinUnlock { .. }
                | E::ReadLock { .. }
                | E::WriteLock { .. }
                | E::RwUnlock { .. }
                | E::AttemptFailed { .. }
                | E::ConditionWait { .. }
                | E::ConditionSignal { .. }
                | E::ConditionBroadcast { .. }
                | E::SemaphorePost { .. }
                | E::SemaphoreWait { .. }
                | E::BarrierWait { .. }
        )
    }

    /// The event's place in the process clock; `None` for those that only their thread sees.
    #[must_use]
    #[inline]
    pub fn clock(&self) -> Option<Clock> {
        use Event as E;
        match *self {
            E::ThreadStart { clock, .. }
            | E::ThreadExit { clock }
            | E::ThreadCreate { clock, .. }
            | E::ThreadJoin { clock, .. }
            | E::MutexLock { clock, .. }
            | E::MutexUnlock { clock, .. }
            | E::SpinLock { clock, .. }
            | E::SpinUnlock { clock, .. }
            | E::ReadLock { clock, .. }
            | E::WriteLock { clock, .. }
            | E::RwUnlock { clock, .. }
            | E::AttemptFailed { clock, .. }
            | E::ConditionWait { clock, .. }
            | E::ConditionSignal { clock, .. }
            | E::ConditionBroadcast { clock, .. }
            | E::SemaphorePost { clock, .. }
            | E::SemaphoreWait { clock, .. }
            | E::BarrierWait { clock, .. }
            | E::FutexWait { clock, .. }
            | E::FutexWake { clock, .. }
            | E::Supply { clock, .. }
            | E::Consume { clock, .. }
            | E::SpinWait { clock, .. }
            | E::SpinRelease { clock, .. }
            | E::Map { clock, .. }
            | E::Unmap { clock, .. }
            | E::SharedMapping { clock, .. }
            | E::Module { clock, .. }
            | E::Exec { clock, .. }
            | E::ChildWait { clock, .. }
            | E::Mark { clock, .. }
            | E::PersistCall { clock, .. }
            | E::Turn { clock, .. } => Some(clock),
            E::SystemCall { .. }
            | E::Roi { .. }
            | E::Interrupted { .. }
            | E::Polling { .. }
            | E::HandedOut { .. }
            | E::StoreSeen { .. }
            | E::Loads { .. }
            | E::DroppedEdges { .. }
            | E::Signal { .. }
            | E::Fork { .. }
            | E::KernelWrite { .. }
            | E::InitialBytes { .. }
            | E::Order { .. }
            | E::CallBegin
            | E::CallEnd => None,
        }
    }

    /// What ended it, of a wait that names that.
    pub(super) fn wake_mut(&mut self) -> Option<&mut Option<Clock>> {
        match self {
            Self::ConditionWait { wake, .. }
            | Self::SemaphoreWait { wake, .. }
            | Self::Consume { supply: wake, .. }
            | Self::FutexWait { wake, .. } => Some(wake),
            _ => None,
        }
    }

    /// Hands on every place in the process clock that it names.
    pub(super) fn visit_clocks(&mut self, mut visit: impl FnMut(&mut Clock)) {
        use Event as E;
        if let Some(Some(wake)) = self.wake_mut() {
            visit(wake);
        }
        match self {
            E::SpinWait { clock, wake, .. } => {
                visit(clock);
                visit(wake);
            }
            E::ConditionWait { clock, .. }
            | E::SemaphoreWait { clock, .. }
            | E::Consume { clock, .. }
            | E::FutexWait { clock, .. }
            | E::ThreadStart { clock, .. }
            | E::ThreadExit { clock }
            | E::ThreadCreate { clock, .. }
            | E::ThreadJoin { clock, .. }
            | E::MutexLock { clock, .. }
            | E::MutexUnlock { clock, .. }
            | E::SpinLock { clock, .. }
            | E::SpinUnlock { clock, .. }
            | E::ReadLock { clock, .. }
            | E::WriteLock { clock, .. }
            | E::RwUnlock { clock, .. }
            | E::AttemptFailed { clock, .. }
            | E::ConditionSignal { clock, .. }
            | E::ConditionBroadcast { clock, .. }
            | E::SemaphorePost { clock, .. }
            | E::BarrierWait { clock, .. }
            | E::FutexWake { clock, .. }
            | E::Supply { clock, .. }
            | E::SpinRelease { clock, .. }
            | E::Map { clock, .. }
            | E::Unmap { clock, .. }
            | E::SharedMapping { clock, .. }
            | E::Module { clock, .. }
            | E::Exec { clock, .. }
            | E::ChildWait { clock, .. }
            | E::Mark { clock, .. }
            | E::PersistCall { clock, .. }
            | E::Turn { clock, .. } => visit(clock),
            E::SystemCall { .. }
            | E::Roi { .. }
            | E::Interrupted { .. }
            | E::Polling { .. }
            | E::HandedOut { .. }
            | E::StoreSeen { .. }
            | E::Loads { .. }
            | E::DroppedEdges { .. }
            | E::Signal { .. }
            | E::Fork { .. }
            | E::KernelWrite { .. }
            | E::InitialBytes { .. }
            | E::Order { .. }
            | E::CallBegin
            | E::CallEnd => {}
        }
    }

    /// Whether threads wait for each other by it, or one begins or ends.
    #[must_use]
    pub fn is_synchronisation(&self) -> bool {
        use Event as E;
        let others_have_clocks = matches!(
            self,
            E::Map { .. }
                | E::Unmap { .. }
                | E::SharedMapping { .. }
                | E::Module { .. }
                | E::Exec { .. }
                | E::PersistCall { .. }
                | E::Mark { .. }
                | E::Turn { .. }
        );
        self.clock().is_some() && !others_have_clocks
    }

    /// The event's name on the format page.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::ThreadStart { .. } => "thread_start",
            Self::ThreadExit { .. } => "thread_exit",
            Self::ThreadCreate { .. } => "thread_create",
            Self::ThreadJoin { .. } => "thread_join",
            Self::MutexLock { .. } => "mutex_lock",
            Self::MutexUnlock { .. } => "mutex_unlock",
            Self::SpinLock { .. } => "spin_lock",
            Self::SpinUnlock { .. } => "spin_unlock",
            Self::ReadLock { .. } => "read_lock",
            Self::WriteLock { .. } => "write_lock",
            Self::RwUnlock { .. } => "rw_unlock",
            Self::AttemptFailed { .. } => "attempt_failed",
            Self::ConditionWait { .. } => "condition_wait",
            Self::ConditionSignal { .. } => "condition_signal",
            Self::ConditionBroadcast { .. } => "condition_broadcast",
            Self::SemaphorePost { .. } => "semaphore_post",
            Self::SemaphoreWait { .. } => "semaphore_wait",
            Self::BarrierWait { .. } => "barrier_wait",
            Self::FutexWait { .. } => "futex_wait",
            Self::FutexWake { .. } => "futex_wake",
            Self::SpinWait { .. } => "spin_wait",
            Self::SpinRelease { .. } => "spin_release",
            Self::SystemCall { .. } => "system_call",
            Self::Map { .. } => "map",
            Self::Unmap { .. } => "unmap",
            Self::SharedMapping { .. } => "shared_mapping",
            Self::Module { .. } => "module",
            Self::Roi { .. } => "roi",
            Self::Interrupted { .. } => "interrupted",
            Self::Polling { .. } => "polling",
            Self::HandedOut { .. } => "handed_out",
            Self::StoreSeen { .. } => "store_seen",
            Self::Loads { .. } => "loads",
            Self::DroppedEdges { .. } => "dropped_edges",
            Self::Turn { .. } => "turn",
            Self::Supply { .. } => "supply",
            Self::Consume { .. } => "consume",
            Self::Signal { .. } => "signal",
            Self::Exec { .. } => "exec",
            Self::Fork { .. } => "fork",
            Self::ChildWait { .. } => "child_wait",
            Self::Mark { .. } => "mark",
            Self::KernelWrite { .. } => "kernel_write",
            Self::PersistCall { .. } => "persist_call",
            Self::InitialBytes { .. } => "initial_bytes",
            Self::Order { .. } => "order",
            Self::CallBegin => "call_begin",
            Self::CallEnd => "call_end",
        }
    }
}
