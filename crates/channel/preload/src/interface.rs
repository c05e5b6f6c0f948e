//! The C interface, as `include/mchannel.h` describes it.

use std::ffi::{CStr, c_char, c_int};

use crate::channel::Refusal;
use crate::hooks::signals;
use crate::process::Missing;
use crate::server;
use crate::{channel, handler, hooks, process, rules};

fn missing(missing: Missing) -> c_int {
    match missing {
        Missing::Unserved(refusal) => unserved(refusal),
        Missing::Unreadable => -libc::EACCES,
        Missing::Wrong => -libc::EPROTO,
    }
}

fn unserved(refusal: server::Refusal) -> c_int {
    match refusal {
        server::Refusal::Privileged => -libc::EPERM,
        server::Refusal::NoCommand => -libc::ENOENT,
        server::Refusal::NoProcess => -libc::EAGAIN,
        server::Refusal::Ended => -libc::EINVAL,
        server::Refusal::Silent => -libc::ETIMEDOUT,
    }
}

fn refusal(refusal: Refusal) -> c_int {
    match refusal {
        Refusal::NoSegment => -libc::ENODEV,
        Refusal::NoRule => -libc::ENOENT,
        Refusal::NoRow => -libc::EAGAIN,
        Refusal::NoMemory => -libc::ENOMEM,
        Refusal::NoMeter => -libc::ENODATA,
        Refusal::IsOpen => -libc::EBUSY,
    }
}

/// # Safety
/// `path` is null or a C string, and no other thread changes the environment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mchannel_init(path: *const c_char) -> c_int {
    // SAFETY: as the caller promises.
    let path = (!path.is_null()).then(|| unsafe { CStr::from_ptr(path) });
    match process::join(path) {
        Ok(_) => {
            hooks::install();
            0
        }
        Err(error) => missing(error),
    }
}

/// # Safety
/// `name` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mchannel_open(name: *const c_char) -> c_int {
    let Some(segment) = process::segment() else { return -libc::ENODEV };
    let mut rule = None;
    if !name.is_null() {
        // SAFETY: as the caller promises.
        rule = rules::rule_named(segment, unsafe { CStr::from_ptr(name) }.to_bytes());
        if rule.is_none() {
            return -libc::ENOENT;
        }
        // A thread that is preloaded has one already, by the first rule that matched.
        close();
    }
    if !channel::is_open() {
        signals::begin_thread(false);
    }
    match channel::open(rule) {
        Ok(()) => 0,
        Err(Refusal::IsOpen) => refusal(Refusal::IsOpen),
        Err(error) => {
            signals::end_thread();
            refusal(error)
        }
    }
}

/// Ends the calling thread's channel.
#[unsafe(no_mangle)]
pub extern "C" fn mchannel_close() -> c_int {
    if !channel::is_open() {
        return -libc::ENODEV;
    }
    close();
    0
}

/// The thread runs on unpaced, with the signal mask that the program believes it has.
fn close() {
    if channel::is_open() {
        channel::close();
        signals::end_thread();
    }
}

/// Ends the calling thread's window if it is over; returns for how many nanoseconds it was paused.
#[unsafe(no_mangle)]
pub extern "C" fn mchannel_sched() -> i64 {
    handler::schedule().map_or(-i64::from(libc::ENODEV), |pause| pause.as_nanos() as i64)
}

/// The calling thread used so many bytes more.
#[unsafe(no_mangle)]
pub extern "C" fn mchannel_account(bytes: u64) -> c_int {
    process::set_reports();
    if !channel::is_open() {
        return -libc::ENODEV;
    }
    channel::report(bytes);
    0
}
