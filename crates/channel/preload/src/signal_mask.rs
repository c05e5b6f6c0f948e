//! The calling thread's signal mask, by system calls: our own hooks replace the functions of the C library.

use std::marker::PhantomData;
use std::ptr;

use fencepost_channel_core::system_call;
use fencepost_channel_core::trigger::SIGNAL;

/// Signals as bits, as the kernel has them.
pub type Mask = u64;

/// The trigger's signal.
pub const OURS: Mask = 1 << (SIGNAL - 1);

const MASK_BYTES: usize = size_of::<Mask>();

/// Changes the mask as `how` says; returns the one before.
pub fn change(how: libc::c_int, mask: Mask) -> Mask {
    let mut before: Mask = 0;
    // SAFETY: both masks are valid, and as long as the kernel's are.
    unsafe { system_call!(libc::SYS_rt_sigprocmask, how, &raw const mask, &raw mut before, MASK_BYTES) };
    before
}

/// The mask.
pub fn current() -> Mask {
    let mut mask: Mask = 0;
    let none = ptr::null::<Mask>();
    // SAFETY: the mask is valid, and as long as the kernel's are.
    unsafe { system_call!(libc::SYS_rt_sigprocmask, libc::SIG_BLOCK, none, &raw mut mask, MASK_BYTES) };
    mask
}

/// While it lives, the trigger's signal waits. It belongs to its thread.
pub struct Blocked {
    before: Mask,
    thread: PhantomData<*const ()>,
}

impl Blocked {
    /// Blocks it.
    pub fn new() -> Blocked {
        Blocked { before: change(libc::SIG_BLOCK, OURS), thread: PhantomData }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        if self.before & OURS == 0 {
            change(libc::SIG_UNBLOCK, OURS);
        }
    }
}
