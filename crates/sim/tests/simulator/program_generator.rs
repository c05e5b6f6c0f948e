//! Little programs made by chance: a few threads that read, write, flush and fence a few lines of PM and DRAM and wait
//! for each other.
//!
//! The threads are interleaved as a recorder might have seen them, so that every lock is free when it is taken and
//! every wake comes before the wait that it ended. Nobody waits for anybody while he holds a lock, so no other
//! interleaving can deadlock either.

use fencepost_kernel::line::LINE_BYTES;
use fencepost_record::{Clock, Event, FutexOutcome, SpinReleaseKind, ThreadId};
use fencepost_sim::core::persist::PersistMode;
use fencepost_sim::replay::simulation::{HostProgram, Options};

use super::program::{Execution, Instruction, LittleProgram, PERSISTENT, ProgramBuilder, VOLATILE, options};
use super::random::Random;

const PAGE: u64 = 4096;
/// Where synchronisation objects lie, each on a line of its own: in DRAM and in PM.
const OBJECTS: [u64; 2] = [VOLATILE + (64 << 20), PERSISTENT + (64 << 20)];

/// Which lines the threads of a program use.
struct Lines {
    /// Addresses of shared lines.
    shared: Vec<u64>,
    /// Of these, the ones that only non-temporal stores and loads use, so that a line is seldom written both ways.
    non_temporal: Vec<u64>,
}

impl Lines {
    /// Lines at the same few offsets of several pages, so that they meet in few sets.
    fn random(random: &mut Random) -> Lines {
        let pages = random.between(1, 6);
        let offsets: Vec<u64> = (0..random.between(1, 4)).map(|_| random.below(64) * LINE_BYTES).collect();
        let mut shared = Vec::new();
        for base in [VOLATILE, PERSISTENT, PERSISTENT] {
            let first = random.below(3);
            for page in 0..pages {
                shared.extend(offsets.iter().map(|offset| base + (first + page) * PAGE + offset));
            }
        }
        let non_temporal = (0..random.between(1, 4)).map(|line| PERSISTENT + (32 << 20) + line * LINE_BYTES).collect();
        Lines { shared, non_temporal }
    }

    /// An address for an access of `size` bytes; seldom one that crosses into the next line.
    fn address(&self, size: u64, random: &mut Random) -> u64 {
        let line = random.pick(&self.shared);
        match size {
            64 if random.once_in(4) => line + random.below(8) * 8,
            64 => line,
            _ if random.once_in(16) => line + LINE_BYTES - size / 2,
            _ => line + random.below(LINE_BYTES / size) * size,
        }
    }

    fn non_temporal_address(&self, size: u64, random: &mut Random) -> u64 {
        // Now and then both kinds of stores meet in a line after all.
        let line = if random.once_in(8) { random.pick(&self.shared) } else { random.pick(&self.non_temporal) };
        line + random.below(LINE_BYTES / size) * size
    }
}

/// Where a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThreadState {
    Unborn,
    Alive,
    Gone,
}

/// A random program in the making.
pub struct ProgramGenerator {
    random: Random,
    builder: ProgramBuilder,
    lines: Lines,
    /// What threads like to do: one instruction of these, or any.
    favourites: Vec<Instruction>,
    threads: Vec<ThreadState>,
    /// Semaphore posts and signals that nobody has waited for.
    posts: Vec<(u64, Clock)>,
    signals: Vec<(u64, Clock)>,
    generation: u64,
    spins: u64,
}

/// A random program for each of so many hosts, with random options to replay them under.
pub fn random_programs(hosts: usize, random: &mut Random) -> (Vec<(LittleProgram, HostProgram)>, Options) {
    let mut options = options();
    options.persist = match random.below(4) {
        0 => PersistMode::Sync,
        1 => PersistMode::Every(random.between(1, 10)),
        _ => PersistMode::Program,
    };
    options.seed = random.pick(&[0, 0, 1, 2]);
    let programs: Vec<_> = (0..hosts).map(|_| random_program(random)).collect();
    if programs.iter().all(|(_, program)| program.thread_limits.is_empty()) && random.once_in(10) {
        options.pm_writes_limit = Some(random.between(1, 30));
    }
    (programs, options)
}

fn random_program(random: &mut Random) -> (LittleProgram, HostProgram) {
    let mut generator = ProgramGenerator::new(random);
    let steps = random.between(5, 120);
    let with_regions = random.once_in(5);
    generator.write(steps, with_regions);
    let little = generator.builder.finish();
    let mut program = little.on_host();
    if random.once_in(10) {
        let record = program.program.record();
        let limit = |thread| random.below(record.thread_instructions(ThreadId(thread)) + 2);
        program.thread_limits = (0..record.threads() as u32).map(limit).collect();
    }
    (little, program)
}

impl ProgramGenerator {
    fn new(random: &mut Random) -> ProgramGenerator {
        let mut own = Random::new(random.next());
        let favourites = (0..own.between(1, 5)).map(|_| own.pick(&ORDINARY)).collect();
        let threads = vec![ThreadState::Unborn; own.pick(&[1, 1, 2, 2, 3, 4, 6])];
        ProgramGenerator {
            lines: Lines::random(&mut own),
            random: own,
            builder: ProgramBuilder::new(),
            favourites,
            threads,
            posts: Vec::new(),
            signals: Vec::new(),
            generation: 0,
            spins: 0,
        }
    }

    fn write(&mut self, steps: u64, with_regions: bool) {
        self.begin(0);
        for step in 0..steps {
            let alive: Vec<u32> = self.threads_in(ThreadState::Alive);
            let thread = self.random.pick(&alive);
            if with_regions && step % 16 == 5 {
                self.builder.one(thread, Instruction::RoiBegin, 0);
            } else if with_regions && step % 16 == 12 {
                self.builder.one(thread, Instruction::RoiEnd, 0);
            }
            match self.random.below(20) {
                0 => self.critical_section(thread),
                1 => self.hand_over(thread),
                2 if self.random.once_in(3) => self.barrier(&alive),
                3 | 4 => self.create(thread),
                5 if self.random.once_in(3) => self.leave(thread),
                6 => self.oddity(thread),
                _ => self.work(thread),
            }
        }
        for thread in self.threads_in(ThreadState::Alive) {
            if thread != 0 {
                self.end(thread);
            }
        }
        self.end(0);
    }

    fn threads_in(&self, state: ThreadState) -> Vec<u32> {
        let threads = self.threads.iter().zip(0..);
        threads.filter(|(own, _)| **own == state).map(|(_, thread)| thread).collect()
    }

    fn begin(&mut self, thread: u32) {
        self.threads[thread as usize] = ThreadState::Alive;
        let clock = self.builder.tick();
        self.builder.event(thread, &Event::ThreadStart { clock, kernel_tid: 100, stack_low: 0, stack_high: 0 });
    }

    fn create(&mut self, thread: u32) {
        let Some(&created) = self.threads_in(ThreadState::Unborn).first() else { return self.work(thread) };
        let clock = self.builder.tick();
        self.builder.event(thread, &Event::ThreadCreate { clock, thread: ThreadId(created) });
        self.begin(created);
        self.work(created);
    }

    /// A thread ends before the others; another one joins it.
    fn leave(&mut self, thread: u32) {
        if thread == 0 {
            return self.work(thread);
        }
        self.end(thread);
        let others = self.threads_in(ThreadState::Alive);
        let other = self.random.pick(&others);
        let clock = self.builder.tick();
        self.builder.event(other, &Event::ThreadJoin { clock, thread: ThreadId(thread) });
    }

    fn end(&mut self, thread: u32) {
        self.work(thread);
        self.threads[thread as usize] = ThreadState::Gone;
        if !self.random.once_in(4) {
            let clock = self.builder.tick();
            self.builder.event(thread, &Event::ThreadExit { clock });
        }
    }

    /// A lock of some kind, work, and its release.
    fn critical_section(&mut self, thread: u32) {
        let number = self.random.below(3);
        let object = self.object(number);
        let clock = self.builder.tick();
        let (acquire, kind) = match self.random.below(4) {
            0 => (Event::SpinLock { clock, object }, 0),
            1 => (Event::ReadLock { clock, object: object + 4 * LINE_BYTES }, 1),
            2 => (Event::WriteLock { clock, object: object + 4 * LINE_BYTES }, 1),
            _ => (Event::MutexLock { clock, object: object + 8 * LINE_BYTES }, 2),
        };
        self.builder.event(thread, &acquire);
        self.work(thread);
        let mutex = object + 8 * LINE_BYTES;
        let mut signals = std::mem::take(&mut self.signals);
        if kind == 2 && self.random.once_in(3) {
            // A signal that was given earlier: the wait ends as soon as the mutex can be had again.
            if let Some((condition, wake)) = signals.pop() {
                let clock = self.builder.tick();
                let wait = Event::ConditionWait { clock, object: condition, mutex, wake: Some(wake), timed_out: false };
                self.builder.event(thread, &wait);
            } else {
                let (clock, condition) = (self.builder.tick(), self.object(20));
                let timed_out = Event::ConditionWait { clock, object: condition, mutex, wake: None, timed_out: true };
                self.builder.event(thread, &timed_out);
            }
        }
        self.signals = signals;
        let clock = self.builder.tick();
        let release = match kind {
            0 => Event::SpinUnlock { clock, object },
            1 => Event::RwUnlock { clock, object: object + 4 * LINE_BYTES },
            _ => Event::MutexUnlock { clock, object: mutex },
        };
        self.builder.event(thread, &release);
    }

    /// Posts a semaphore, signals, or waits for what somebody did of that kind.
    fn hand_over(&mut self, thread: u32) {
        let clock = self.builder.tick();
        match self.random.below(4) {
            0 => {
                let object = self.object(21);
                self.builder.event(thread, &Event::SemaphorePost { clock, object });
                self.posts.push((object, clock));
            }
            1 => {
                let object = self.object(22);
                let signal = match self.random.below(2) {
                    0 => Event::ConditionSignal { clock, object },
                    _ => Event::ConditionBroadcast { clock, object },
                };
                self.builder.event(thread, &signal);
                self.signals.push((object, clock));
            }
            2 => {
                let object = self.object(23);
                self.builder.event(thread, &Event::FutexWake { clock, object, woken: 1 });
                let waiters = self.threads_in(ThreadState::Alive);
                let waiter = self.random.pick(&waiters);
                let wait = self.builder.tick();
                let outcome = self.random.pick(&[FutexOutcome::Woken, FutexOutcome::ValueChanged]);
                self.builder.event(waiter, &Event::FutexWait { clock: wait, object, wake: Some(clock), outcome });
            }
            _ => {
                let (object, wake) = match self.posts.pop() {
                    Some((object, post)) => (object, Some(post)),
                    None => (self.object(24), None),
                };
                self.builder.event(thread, &Event::SemaphoreWait { clock, object, wake });
            }
        }
    }

    /// Everyone alive meets.
    fn barrier(&mut self, alive: &[u32]) {
        let object = self.object(25);
        self.generation += 1;
        for &thread in alive {
            self.work(thread);
            let clock = self.builder.tick();
            let arrival =
                Event::BarrierWait { clock, object, participants: alive.len() as u64, generation: self.generation };
            self.builder.event(thread, &arrival);
        }
    }

    /// What happens seldom.
    fn oddity(&mut self, thread: u32) {
        match self.random.below(5) {
            0 => self.builder.event(thread, &Event::SystemCall { number: 1, result: 0 }),
            1 => {
                let (clock, object) = (self.builder.tick(), self.object(26));
                self.builder.event(thread, &Event::AttemptFailed { clock, object });
            }
            2 => {
                self.spins += 1;
                let (clock, object) = (self.builder.tick(), self.object(27 + self.spins));
                let kind = SpinReleaseKind::Store;
                self.builder.event(thread, &Event::SpinRelease { clock, object, kind, lock: 0 });
                self.builder.one(thread, Instruction::Store, object);
                let alive = self.threads_in(ThreadState::Alive);
                for waiter in alive.into_iter().filter(|other| *other != thread) {
                    let (wake, maker, clock) = (clock, ThreadId(thread), self.builder.tick());
                    self.builder.event(waiter, &Event::SpinWait { clock, object, wake, maker, lends: 0 });
                }
            }
            3 => {
                let block = self.block();
                let executed = self.random.below(block.len() as u64 + 1) as usize;
                self.builder.execute_until(thread, &block, executed);
            }
            _ => self.builder.event(thread, &Event::Signal { number: 10 }),
        }
    }

    fn work(&mut self, thread: u32) {
        for _ in 0..self.random.between(1, 4) {
            let block = self.block();
            for _ in 0..self.random.pick(&[1, 1, 1, 3]) {
                self.builder.execute(thread, &block);
            }
        }
    }

    fn block(&mut self) -> Vec<Execution> {
        let mut block: Vec<Execution> = (0..self.random.between(1, 6)).map(|_| self.execution()).collect();
        if self.random.once_in(3) {
            block.push((Instruction::Branch, Vec::new()));
        }
        block
    }

    fn execution(&mut self) -> Execution {
        let instruction = match self.random.below(8) {
            0 => self.random.pick(&SELDOM),
            1..=3 => self.random.pick(&ORDINARY),
            _ => self.random.pick(&self.favourites),
        };
        let addresses = self.addresses(instruction);
        (instruction, addresses)
    }

    fn addresses(&mut self, instruction: Instruction) -> Vec<u64> {
        use Instruction as I;
        let (lines, random) = (&self.lines, &mut self.random);
        match instruction {
            I::CopyString | I::CompareStrings => {
                let bytes = random.below(200);
                let (source, destination) = (lines.address(8, random), lines.address(8, random));
                vec![source, source + bytes, destination, destination + bytes]
            }
            I::FillString => {
                let (bytes, destination) = (random.below(200), lines.address(8, random));
                vec![destination, destination + bytes]
            }
            I::Gather | I::Scatter => {
                let mut elements = vec![0; 8];
                elements[1] = lines.address(8, random);
                elements[6] = lines.address(8, random);
                elements
            }
            I::NonTemporal | I::NonTemporal16 | I::NonTemporalLine => {
                vec![lines.non_temporal_address(instruction.size(), random)]
            }
            _ if instruction.slots() == 0 => Vec::new(),
            _ => vec![lines.address(instruction.size(), random)],
        }
    }

    /// A synchronisation object with that number, always at the same place.
    fn object(&self, number: u64) -> u64 {
        OBJECTS[number as usize % 2] + number * LINE_BYTES
    }
}

const ORDINARY: [Instruction; 16] = {
    use Instruction as I;
    [
        I::Load,
        I::LoadLine,
        I::Chase,
        I::Store,
        I::Store,
        I::StoreByte,
        I::StoreLine,
        I::Update,
        I::Clflush,
        I::Clflushopt,
        I::Clwb,
        I::Sfence,
        I::NonTemporal,
        I::NonTemporalLine,
        I::Add,
        I::Multiply,
    ]
};

const SELDOM: [Instruction; 17] = {
    use Instruction as I;
    [
        I::LoadByte,
        I::Exchange,
        I::LockedAdd,
        I::Mfence,
        I::Lfence,
        I::Prefetch,
        I::Push,
        I::Divide,
        I::FloatMultiply,
        I::FloatDivide,
        I::NonTemporal16,
        I::CopyString,
        I::FillString,
        I::CompareStrings,
        I::Gather,
        I::Scatter,
        I::Branch,
    ]
};
