//! What calls a thread's handler: a signal to that thread each time that it has run for a quantum.
//!
//! The signal is SIGURG. Where nobody handles it, it does nothing, so one that is still under way when the thread
//! executes another program does no harm; a real-time signal would end that program. The best triggers are
//! counters, of the thread's bytes where there is one, or of its processor time: they overflow only while the thread is
//! in the program's own code and never interrupt a system call, so `poll` and its like wait as they do without us.

use std::ptr;
use std::time::Duration;

use crate::counters::Event;
use crate::perf::{self, Attributes};
use crate::system_call;

/// The signal that calls the handler.
pub const SIGNAL: libc::c_int = libc::SIGURG;

/// What calls a thread's handler, by its number in rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// Only the program itself, by `mchannel_sched`.
    None = 0,
    /// The overflow of a software counter of the thread's processor time, while the thread is in the program's code.
    PerfTaskClock = 1,
    /// A timer on the thread's processor time. Ordinary kernels look at it at each of their ticks only.
    ThreadTimer = 2,
    /// A timer on real time: it also interrupts threads that wait.
    Timer = 3,
    /// The overflow of the counter of the thread's bytes, when it has moved what its path carries in a quantum.
    ByteCounter = 4,
}

impl Trigger {
    /// All kinds, the best first.
    pub const BY_WORTH: [Trigger; 4] =
        [Trigger::ByteCounter, Trigger::PerfTaskClock, Trigger::ThreadTimer, Trigger::Timer];

    /// By its number.
    pub fn of(number: u32) -> Trigger {
        Trigger::BY_WORTH.into_iter().find(|trigger| *trigger as u32 == number).unwrap_or(Trigger::None)
    }

    /// By its name.
    pub fn named(name: &str) -> Option<Trigger> {
        Trigger::BY_WORTH.into_iter().find(|trigger| trigger.name() == name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Trigger::None => "none",
            Trigger::PerfTaskClock => "perf-task-clock",
            Trigger::ThreadTimer => "thread-timer",
            Trigger::Timer => "timer",
            Trigger::ByteCounter => "byte-counter",
        }
    }

    /// Whether its signal may come while the thread is in a system call, which then may end early.
    pub fn interrupts_system_calls(self) -> bool {
        matches!(self, Trigger::ThreadTimer | Trigger::Timer)
    }
}

/// A trigger of the calling thread.
#[derive(Clone, Copy, Debug)]
pub enum Armed {
    /// None.
    Nothing,
    /// The page keeps the counter alive, whose file is closed: a program that closes all files does not disarm it.
    Counter {
        /// What is counted.
        trigger: Trigger,
        /// The counter's page.
        page: *mut libc::c_void,
        /// The number that its file had, which comes with each of its signals.
        file: libc::c_int,
    },
    /// The number of a timer.
    Timer(Trigger, libc::c_int),
}

impl Armed {
    /// Which trigger it is.
    pub fn trigger(&self) -> Trigger {
        match self {
            Armed::Nothing => Trigger::None,
            Armed::Counter { trigger, .. } | Armed::Timer(trigger, _) => *trigger,
        }
    }

    /// Whether it has sent this signal.
    ///
    /// # Safety
    /// `information` is what the kernel gave a handler of `SIGNAL`.
    pub unsafe fn has_sent(&self, information: *const libc::siginfo_t) -> bool {
        const POLL_IN: libc::c_int = 1;
        // SAFETY: as the caller promises.
        let code = unsafe { (*information).si_code };
        match self {
            Armed::Nothing => false,
            Armed::Counter { file, .. } => {
                // SAFETY: signals of this code have a band and a file behind the header.
                code == POLL_IN && unsafe { (*information.cast::<PollSignal>()).file == *file }
            }
            Armed::Timer(_, timer) => {
                // SAFETY: signals of timers have the timer's number there.
                code == libc::SI_TIMER && unsafe { (*information.cast::<TimerSignal>()).timer == *timer }
            }
        }
    }
}

/// `siginfo_t` of a file that is ready.
#[repr(C)]
struct PollSignal {
    header: [libc::c_int; 3],
    padding: libc::c_int,
    band: libc::c_long,
    file: libc::c_int,
}

/// `siginfo_t` of a timer.
#[repr(C)]
struct TimerSignal {
    header: [libc::c_int; 3],
    padding: libc::c_int,
    timer: libc::c_int,
}

/// After how much a thread's handler is called.
#[derive(Clone, Copy, Debug)]
pub struct Quantum {
    /// Of its processor time, or of real time.
    pub time: Duration,
    /// The event by which its bytes are counted, and how many of them, if there is one.
    pub event: Option<(Event, u64)>,
}

/// Arms the calling thread's trigger: `wanted`, or else the best that works here. Does not allocate.
pub fn arm(thread: u32, quantum: Quantum, wanted: Option<Trigger>) -> Armed {
    let candidates = wanted.as_ref().map_or(&Trigger::BY_WORTH[..], std::slice::from_ref);
    let armed = candidates.iter().map(|trigger| match trigger {
        Trigger::None => Armed::Nothing,
        Trigger::ByteCounter => match quantum.event {
            Some((event, period)) => arm_counter(*trigger, thread, event.attributes(), period),
            None => Armed::Nothing,
        },
        Trigger::PerfTaskClock => arm_counter(*trigger, thread, task_clock(), nanoseconds(quantum.time)),
        Trigger::ThreadTimer => arm_timer(*trigger, libc::CLOCK_THREAD_CPUTIME_ID, thread, quantum.time),
        Trigger::Timer => arm_timer(*trigger, libc::CLOCK_MONOTONIC, thread, quantum.time),
    });
    armed.into_iter().find(|armed| !matches!(armed, Armed::Nothing)).unwrap_or(Armed::Nothing)
}

/// Disarms it. Only the thread that armed it may call this, and not in a child that it forked.
pub fn disarm(armed: Armed) {
    match armed {
        Armed::Nothing => {}
        // SAFETY: the page is ours; the kernel drops the counter with it.
        Armed::Counter { page, .. } => unsafe {
            system_call!(libc::SYS_munmap, page, PAGE);
        },
        // SAFETY: the timer is ours.
        Armed::Timer(_, timer) => unsafe {
            system_call!(libc::SYS_timer_delete, timer);
        },
    }
}

const PAGE: usize = 4096;

#[repr(C)]
struct FileOwner {
    kind: libc::c_int,
    thread: libc::pid_t,
}

fn task_clock() -> Attributes {
    const TASK_CLOCK: u64 = 1;
    Attributes { kind: perf::SOFTWARE, config: TASK_CLOCK, ..Attributes::default() }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn arm_counter(trigger: Trigger, thread: u32, event: Attributes, sample_period: u64) -> Armed {
    const F_SETSIG: libc::c_int = 10;
    const F_SETOWN_EX: libc::c_int = 15;
    const F_OWNER_TID: libc::c_int = 0;
    let opened = perf::open(Attributes { sample_period, flags: perf::OF_THE_PROGRAM, wakeup_events: 1, ..event });
    let owner = FileOwner { kind: F_OWNER_TID, thread: thread as libc::pid_t };
    let Some(file) = opened else { return Armed::Nothing };
    // SAFETY: the file is ours, `owner` is what F_SETOWN_EX reads, and the page is mapped where the kernel chooses.
    unsafe {
        let fcntl = |command: libc::c_int, value: libc::c_long| system_call!(libc::SYS_fcntl, file, command, value);
        let is_set = fcntl(F_SETOWN_EX, (&raw const owner) as libc::c_long) == 0
            && fcntl(F_SETSIG, libc::c_long::from(SIGNAL)) == 0
            && fcntl(libc::F_SETFL, libc::c_long::from(libc::O_ASYNC | libc::O_NONBLOCK)) == 0;
        let page =
            system_call!(libc::SYS_mmap, ptr::null_mut::<u8>(), PAGE, libc::PROT_READ, libc::MAP_SHARED, file, 0);
        system_call!(libc::SYS_close, file);
        let page = page as *mut libc::c_void;
        if page == libc::MAP_FAILED {
            return Armed::Nothing;
        }
        if !is_set {
            system_call!(libc::SYS_munmap, page, PAGE);
            return Armed::Nothing;
        }
        Armed::Counter { trigger, page, file }
    }
}

/// `struct sigevent` of the kernel.
#[repr(C)]
struct TimerEvent {
    value: usize,
    signal: libc::c_int,
    notify: libc::c_int,
    thread: libc::pid_t,
    padding: [libc::c_int; 11],
}

fn arm_timer(trigger: Trigger, clock: libc::clockid_t, thread: u32, quantum: Duration) -> Armed {
    const SIGEV_THREAD_ID: libc::c_int = 4;
    let event = TimerEvent {
        value: 0,
        signal: SIGNAL,
        notify: SIGEV_THREAD_ID,
        thread: thread as libc::pid_t,
        padding: [0; 11],
    };
    let each =
        libc::timespec { tv_sec: quantum.as_secs() as libc::time_t, tv_nsec: quantum.subsec_nanos() as libc::c_long };
    let times = libc::itimerspec { it_interval: each, it_value: each };
    let mut timer: libc::c_int = 0;
    // SAFETY: all of them are valid for the calls.
    unsafe {
        if system_call!(libc::SYS_timer_create, clock, &raw const event, &raw mut timer) != 0 {
            return Armed::Nothing;
        }
        let none = ptr::null_mut::<libc::itimerspec>();
        if system_call!(libc::SYS_timer_settime, timer, 0, &raw const times, none) != 0 {
            system_call!(libc::SYS_timer_delete, timer);
            return Armed::Nothing;
        }
    }
    Armed::Timer(trigger, timer)
}
