//! Signals: the program may use the trigger's signal itself, and cannot keep it from us.
//!
//! The trigger's signal has our handler all the time. What the program installs for it is kept here, and called for
//! those that no trigger sent. Where the program blocks it, it stays unblocked, and what comes for the program
//! meanwhile is kept until the program unblocks it.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};

use fencepost_channel_core::trigger::SIGNAL;
use fencepost_channel_core::{system, system_call};

use crate::next::next;
use crate::signal_mask::{self, Mask, OURS};
use crate::{channel, handler, process};

next!(sigaction_next = c"sigaction" as fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int);
next!(signal_next = c"signal" as fn(c_int, libc::sighandler_t) -> libc::sighandler_t);
next!(sigprocmask_next = c"sigprocmask" as fn(c_int, *const libc::sigset_t, *mut libc::sigset_t) -> c_int);
next!(pthread_sigmask_next = c"pthread_sigmask" as fn(c_int, *const libc::sigset_t, *mut libc::sigset_t) -> c_int);
next!(sigwait_next = c"sigwait" as fn(*const libc::sigset_t, *mut c_int) -> c_int);
next!(signalfd_next = c"signalfd" as fn(c_int, *const libc::sigset_t, c_int) -> c_int);

/// Looks up what is replaced here.
pub fn find() {
    sigaction_next::NEXT.find();
    signal_next::NEXT.find();
    sigprocmask_next::NEXT.find();
    pthread_sigmask_next::NEXT.find();
    sigwait_next::NEXT.find();
    signalfd_next::NEXT.find();
}

/// What the program has installed for the trigger's signal. Programs do so before they have threads, as a rule: words
/// that are changed one by one are as good as what the kernel gives to those that race.
static HANDLER: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
static FLAGS: AtomicI32 = AtomicI32::new(0);
static MASK: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Whether the program believes that the calling thread blocks the trigger's signal.
    static IS_BLOCKED: Cell<bool> = const { Cell::new(false) };
    /// Whether one came for the program meanwhile.
    static IS_PENDING: Cell<bool> = const { Cell::new(false) };
}

/// Whether the program believes that the calling thread blocks the trigger's signal.
pub fn is_blocked() -> bool {
    IS_BLOCKED.get()
}

/// A thread begins: its creator's mask is its own, and the trigger's signal comes through.
pub fn begin_thread(is_blocked: bool) {
    let before = signal_mask::change(libc::SIG_UNBLOCK, OURS);
    IS_BLOCKED.set(is_blocked || before & OURS != 0);
}

/// The calling thread runs on without a channel: its mask is the program's alone.
pub fn end_thread() {
    if IS_BLOCKED.replace(false) {
        signal_mask::change(libc::SIG_BLOCK, OURS);
    }
}

/// Hands a signal that no trigger sent to the program's own handler.
///
/// # Safety
/// The arguments are what the kernel gave a handler.
pub unsafe fn forward(signal: c_int, information: *mut libc::siginfo_t, context: *mut c_void) {
    let handler = HANDLER.load(Ordering::Relaxed);
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
        return;
    }
    if IS_BLOCKED.get() {
        IS_PENDING.set(true);
        return;
    }
    let flags = FLAGS.load(Ordering::Relaxed);
    if flags & libc::SA_RESETHAND != 0 {
        HANDLER.store(libc::SIG_DFL, Ordering::Relaxed);
    }
    // SAFETY: the kernel gives handlers with SA_SIGINFO this structure; its first word is the kernel's mask.
    let before = unsafe { (&raw const (*context.cast::<libc::ucontext_t>()).uc_sigmask).cast::<Mask>().read() };
    let own = if flags & libc::SA_NODEFER != 0 { 0 } else { OURS };
    // What we return to restores the mask.
    signal_mask::change(libc::SIG_SETMASK, before | MASK.load(Ordering::Relaxed) | own);
    // SAFETY: the program installed it, with or without SA_SIGINFO.
    unsafe {
        if flags & libc::SA_SIGINFO != 0 {
            let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = std::mem::transmute(handler);
            handler(signal, information, context);
        } else {
            let handler: extern "C" fn(c_int) = std::mem::transmute(handler);
            handler(signal);
        }
    }
}

fn is_ours(signal: c_int) -> bool {
    signal == SIGNAL && process::segment().is_some()
}

/// The first word of a set of signals is the kernel's.
///
/// # Safety
/// `set` is valid.
unsafe fn mask_of(set: *const libc::sigset_t) -> Mask {
    // SAFETY: as the caller promises.
    unsafe { set.cast::<Mask>().read() }
}

/// # Safety
/// `set` is valid.
unsafe fn with_mask(set: *const libc::sigset_t, mask: Mask) -> libc::sigset_t {
    // SAFETY: as the caller promises; a set is longer than its first word.
    unsafe {
        let mut copy = set.read();
        (&raw mut copy).cast::<Mask>().write(mask);
        copy
    }
}

fn installed() -> libc::sigaction {
    // SAFETY: a structure of numbers and sets, for which zero is a value.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = HANDLER.load(Ordering::Relaxed);
    action.sa_flags = FLAGS.load(Ordering::Relaxed);
    // SAFETY: the set is valid, and longer than its first word.
    unsafe { (&raw mut action.sa_mask).cast::<Mask>().write(MASK.load(Ordering::Relaxed)) };
    action
}

/// # Safety
/// What `sigaction` demands.
#[unsafe(no_mangle)]
unsafe extern "C" fn sigaction(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int {
    if !is_ours(signal) {
        // SAFETY: the caller's own call.
        return unsafe { sigaction_next::get()(signal, new, old) };
    }
    let before = installed();
    // SAFETY: where they are not null they are valid, as the caller promises.
    unsafe {
        if let Some(new) = new.as_ref() {
            MASK.store(mask_of(&new.sa_mask), Ordering::Relaxed);
            FLAGS.store(new.sa_flags, Ordering::Relaxed);
            HANDLER.store(new.sa_sigaction, Ordering::Relaxed);
            let is_default = new.sa_sigaction == libc::SIG_DFL || new.sa_sigaction == libc::SIG_IGN;
            handler::install(is_default || new.sa_flags & libc::SA_RESTART != 0);
        }
        if !old.is_null() {
            old.write(before);
        }
    }
    0
}

/// # Safety
/// What `signal` demands.
#[unsafe(no_mangle)]
unsafe extern "C" fn signal(signal: c_int, new: libc::sighandler_t) -> libc::sighandler_t {
    if !is_ours(signal) {
        // SAFETY: the caller's own call.
        return unsafe { signal_next::get()(signal, new) };
    }
    // SAFETY: a structure of numbers and sets, for which zero is a value.
    let (mut action, mut before): (libc::sigaction, libc::sigaction) = unsafe { std::mem::zeroed() };
    action.sa_sigaction = new;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: both are valid.
    unsafe { sigaction(signal, &action, &mut before) };
    before.sa_sigaction
}

/// Changes the mask as the program wants, but for the trigger's signal.
///
/// # Safety
/// What `pthread_sigmask` demands; `next` is that or `sigprocmask`.
unsafe fn change_mask(
    next: unsafe extern "C-unwind" fn(c_int, *const libc::sigset_t, *mut libc::sigset_t) -> c_int,
    how: c_int,
    new: *const libc::sigset_t,
    old: *mut libc::sigset_t,
) -> c_int {
    if !channel::is_open() {
        // SAFETY: the caller's own call.
        return unsafe { next(how, new, old) };
    }
    let was_blocked = IS_BLOCKED.get();
    // SAFETY: where they are not null, both are valid, as the caller promises.
    unsafe {
        let result = if new.is_null() {
            next(how, new, old)
        } else {
            let wanted = mask_of(new);
            let result = next(how, &with_mask(new, wanted & !OURS), old);
            if result == 0 {
                let is_in = wanted & OURS != 0;
                IS_BLOCKED.set(match how {
                    libc::SIG_BLOCK => was_blocked || is_in,
                    libc::SIG_UNBLOCK => was_blocked && !is_in,
                    _ => is_in,
                });
            }
            result
        };
        if result == 0 && !old.is_null() {
            let seen = mask_of(old) & !OURS | if was_blocked { OURS } else { 0 };
            old.write(with_mask(old, seen));
        }
        if !IS_BLOCKED.get() && IS_PENDING.replace(false) {
            system_call!(libc::SYS_tgkill, system::process(), system::thread(), SIGNAL);
        }
        result
    }
}

/// # Safety
/// What `sigprocmask` demands.
#[unsafe(no_mangle)]
unsafe extern "C" fn sigprocmask(how: c_int, new: *const libc::sigset_t, old: *mut libc::sigset_t) -> c_int {
    // SAFETY: the caller's own call.
    unsafe { change_mask(sigprocmask_next::get(), how, new, old) }
}

/// # Safety
/// What `pthread_sigmask` demands.
#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_sigmask(how: c_int, new: *const libc::sigset_t, old: *mut libc::sigset_t) -> c_int {
    // SAFETY: the caller's own call.
    unsafe { change_mask(pthread_sigmask_next::get(), how, new, old) }
}

/// A set without the trigger's signal, which is not for the program to fetch.
///
/// # Safety
/// `set` is valid.
pub unsafe fn without_ours(set: *const libc::sigset_t) -> libc::sigset_t {
    // SAFETY: as the caller promises.
    unsafe { with_mask(set, if channel::is_open() { mask_of(set) & !OURS } else { mask_of(set) }) }
}

/// # Safety
/// What `sigwait` demands.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn sigwait(set: *const libc::sigset_t, signal: *mut c_int) -> c_int {
    // SAFETY: the caller's own call; the set is valid.
    unsafe { sigwait_next::get()(&without_ours(set), signal) }
}

/// # Safety
/// What `signalfd` demands.
#[unsafe(no_mangle)]
unsafe extern "C" fn signalfd(file: c_int, set: *const libc::sigset_t, flags: c_int) -> c_int {
    if set.is_null() {
        // SAFETY: the caller's own call.
        return unsafe { signalfd_next::get()(file, ptr::null(), flags) };
    }
    // SAFETY: the caller's own call; the set is valid.
    unsafe { signalfd_next::get()(file, &without_ours(set), flags) }
}
