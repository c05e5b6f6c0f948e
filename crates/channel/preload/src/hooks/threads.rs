//! Threads get a channel before their first instruction, and give it back behind their last.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use super::signals;
use crate::next::next;
use crate::{channel, process};

// A thread that ends by `pthread_exit`, or is cancelled, unwinds through these.
type StartRoutine = extern "C-unwind" fn(*mut c_void) -> *mut c_void;
type CStartRoutine = extern "C-unwind" fn(*mut c_void) -> c_int;

next!(
    pthread_create_next =
        c"pthread_create" as fn(*mut libc::pthread_t, *const libc::pthread_attr_t, StartRoutine, *mut c_void) -> c_int
);
next!(thrd_create_next = c"thrd_create" as fn(*mut c_void, CStartRoutine, *mut c_void) -> c_int);

/// Looks up what is replaced here.
pub fn find() {
    pthread_create_next::NEXT.find();
    thrd_create_next::NEXT.find();
}

static KEY: AtomicU32 = AtomicU32::new(0);

/// Has the C library call us when a thread ends, however it does.
pub fn watch_ends() {
    extern "C" fn on_end(_: *mut c_void) {
        channel::close();
    }
    let mut key: libc::pthread_key_t = 0;
    // SAFETY: `key` is valid, and the function has the type that is asked for.
    if unsafe { libc::pthread_key_create(&mut key, Some(on_end)) } == 0 {
        KEY.store(key + 1, Ordering::Relaxed);
    }
}

/// What a new thread begins with, in memory of its own: the program's allocator is not ours to call.
struct Start<Routine> {
    routine: Routine,
    argument: *mut c_void,
    /// Whether the creator believes that it blocks the trigger's signal.
    is_blocked: bool,
}

impl<Routine> Start<Routine> {
    fn new(routine: Routine, argument: *mut c_void) -> *mut Start<Routine> {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping where the kernel chooses.
        let memory = unsafe { libc::mmap(ptr::null_mut(), size_of::<Self>(), access, kind, -1, 0) };
        if memory == libc::MAP_FAILED {
            return ptr::null_mut();
        }
        // SAFETY: the mapping is long enough and aligned.
        unsafe { memory.cast::<Self>().write(Start { routine, argument, is_blocked: signals::is_blocked() }) };
        memory.cast()
    }

    /// # Safety
    /// `new` made it, and this is called once.
    unsafe fn take(start: *mut c_void) -> Start<Routine> {
        // SAFETY: as the caller promises.
        unsafe {
            let taken = start.cast::<Self>().read();
            libc::munmap(start, size_of::<Self>());
            taken
        }
    }
}

fn begin_thread(is_blocked: bool) {
    signals::begin_thread(is_blocked);
    let key = KEY.load(Ordering::Relaxed);
    if channel::open(None).is_ok() && key > 0 {
        // SAFETY: the key is ours; what is not null makes the C library call us at the end.
        unsafe { libc::pthread_setspecific(key - 1, ptr::dangling::<u8>().cast()) };
    }
}

extern "C-unwind" fn run(start: *mut c_void) -> *mut c_void {
    // SAFETY: `pthread_create` below handed it to this thread alone.
    let Start { routine, argument, is_blocked } = unsafe { Start::<StartRoutine>::take(start) };
    begin_thread(is_blocked);
    routine(argument)
}

extern "C-unwind" fn run_c(start: *mut c_void) -> c_int {
    // SAFETY: `thrd_create` below handed it to this thread alone.
    let Start { routine, argument, is_blocked } = unsafe { Start::<CStartRoutine>::take(start) };
    begin_thread(is_blocked);
    routine(argument)
}

/// # Safety
/// What `pthread_create` demands.
#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    routine: StartRoutine,
    argument: *mut c_void,
) -> c_int {
    let next = pthread_create_next::get();
    if process::segment().is_none() {
        // SAFETY: the caller's own call.
        return unsafe { next(thread, attributes, routine, argument) };
    }
    let start = Start::new(routine, argument);
    if start.is_null() {
        return libc::EAGAIN;
    }
    // SAFETY: the caller's own call, with a routine that begins with his.
    let result = unsafe { next(thread, attributes, run, start.cast()) };
    if result != 0 {
        // SAFETY: no thread took it.
        unsafe { Start::<StartRoutine>::take(start.cast()) };
    }
    result
}

/// # Safety
/// What `thrd_create` demands.
#[unsafe(no_mangle)]
unsafe extern "C" fn thrd_create(thread: *mut c_void, routine: CStartRoutine, argument: *mut c_void) -> c_int {
    const THRD_ERROR: c_int = 2;
    let next = thrd_create_next::get();
    if process::segment().is_none() {
        // SAFETY: the caller's own call.
        return unsafe { next(thread, routine, argument) };
    }
    let start = Start::new(routine, argument);
    if start.is_null() {
        return THRD_ERROR;
    }
    // SAFETY: the caller's own call, with a routine that begins with his.
    let result = unsafe { next(thread, run_c, start.cast()) };
    if result != 0 {
        // SAFETY: no thread took it.
        unsafe { Start::<CStartRoutine>::take(start.cast()) };
    }
    result
}
