//! Signals: the program may use the trigger's signal itself, and cannot block it from us.

use std::ffi::{c_int, c_void};

use crate::next::next;

next!(sigaction_next = c"sigaction" as fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int);

/// Looks up what is replaced here.
pub fn find() {
    sigaction_next::NEXT.find();
}

/// Hands a signal that no trigger sent to the program's own handler.
///
/// # Safety
/// The arguments are what the kernel gave a handler.
pub unsafe fn forward(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {}
