//! Ends windows and pauses: in the trigger's signal, or where the program says so.

use std::ptr;
use std::time::Duration;

use fencepost_channel_core::{system, system_call};

use crate::channel;
use crate::hooks::signals;
use crate::signal_mask::{self, Blocked, Mask, OURS};

/// Installs the handler. All signals wait while it computes; while it pauses, those of the program do not.
pub fn install(restarts_system_calls: bool) {
    let restart = if restarts_system_calls { libc::SA_RESTART } else { 0 };
    // SAFETY: a structure of numbers and sets, for which zero is a value.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_signal as *const () as usize;
    // On the program's own stack for signals, if it has one: threads may have small ones.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | restart;
    // SAFETY: both are valid; the handler has the type that SA_SIGINFO asks for.
    unsafe {
        libc::sigfillset(&mut action.sa_mask);
        signals::sigaction_next::get()(fencepost_channel_core::trigger::SIGNAL, &action, ptr::null_mut());
    }
}

extern "C" fn on_signal(signal: libc::c_int, information: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: this thread's `errno`.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    // SAFETY: the kernel gave it to us.
    let is_ours = |channel: &mut channel::Channel| unsafe { channel.armed().has_sent(information) };
    if channel::of_this_thread().is_some_and(is_ours) {
        // SAFETY: the kernel gives handlers with SA_SIGINFO this structure; its first word is the kernel's mask.
        let mask = unsafe { (&raw const (*context.cast::<libc::ucontext_t>()).uc_sigmask).cast::<Mask>().read() };
        end_window(mask);
    } else {
        // SAFETY: it is what the kernel gave us.
        unsafe { signals::forward(signal, information, context) };
    }
    // SAFETY: as above.
    unsafe { *errno = before };
}

/// Ends the calling thread's window if it is over, and pauses it if it has to. Returns the pause; `None` without a
/// channel.
pub fn schedule() -> Option<Duration> {
    let _blocked = Blocked::new();
    end_window(signal_mask::current())
}

/// The same, with the trigger's signal blocked, and the program's mask for the pause.
fn end_window(mask: Mask) -> Option<Duration> {
    let begun = system::processor_time();
    let channel = channel::of_this_thread()?;
    if channel.is_stopped() {
        return Some(Duration::ZERO);
    }
    let identity = channel.identity();
    let now = system::now();
    let progress = channel.progress(now, begun);
    let pause = channel.end_window(progress);
    channel.spent(system::processor_time().saturating_sub(begun));
    let Some(pause) = pause else { return Some(Duration::ZERO) };
    pause_until(now + pause, mask | OURS);
    let paused = system::now().saturating_sub(now);
    // A handler of the program may have run meanwhile, and forked: the channel is another one then, or none.
    if let Some(channel) = channel::of_this_thread().filter(|channel| channel.identity() == identity) {
        channel.was_paused(paused);
    }
    Some(paused)
}

/// Sleeps until that time. Handlers of the program run meanwhile, those that `mask` lets through.
fn pause_until(end: Duration, mask: Mask) {
    loop {
        let left = end.saturating_sub(system::now());
        if left.is_zero() {
            return;
        }
        let mut left =
            libc::timespec { tv_sec: left.as_secs() as libc::time_t, tv_nsec: left.subsec_nanos() as libc::c_long };
        // SAFETY: no files; the time and the mask are valid, the mask as long as the kernel's are.
        unsafe {
            let no_files = ptr::null_mut::<libc::pollfd>();
            system_call!(libc::SYS_ppoll, no_files, 0, &raw mut left, &raw const mask, size_of::<Mask>());
        }
    }
}
