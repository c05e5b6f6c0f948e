//! Starts a command in a process that is nobody's child: the program waits for its own children only, and gets no
//! SIGCHLD that it does not expect.

use std::ffi::{CStr, c_char, c_int};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use fencepost_channel_core::system_call;

use crate::signal_mask::{self, Mask};

const SIGNALS: std::ops::RangeInclusive<c_int> = 1..=64;
const ALL: Mask = !0;
/// The standard streams are not closed; where the program has closed them, the command has nothing there.
const STREAMS: std::ops::Range<c_int> = 0..3;
/// Descriptors that a kernel before 5.9 closes one by one.
const DESCRIPTORS_MAX: c_int = 1 << 16;
/// The command says by this, in place of its output, that it cannot be started.
pub const NOT_STARTED: u8 = 0;

/// The action of the kernel for a signal: by zeros, the default one.
type Action = [u64; 4];

/// Starts it in a session of its own, with `output` as its standard output and without input, other descriptors,
/// blocked or ignored signals. The descriptor of `output` is not a standard stream's.
pub fn start(command: &CStr, arguments: &[&CStr], output: BorrowedFd<'_>) -> io::Result<()> {
    debug_assert!(!STREAMS.contains(&output.as_raw_fd()));
    let mut pointers: Vec<*const c_char> = arguments.iter().map(|argument| argument.as_ptr()).collect();
    pointers.push(ptr::null());
    // No handler of the program may run in its copy.
    let before = signal_mask::change(libc::SIG_SETMASK, ALL);
    // What is copied is not told when its child ends, and sends no signal when it ends itself.
    // SAFETY: a copy of this thread, on a copy of its stack; it makes system calls only.
    let copy = unsafe { copy_process(0) };
    if copy == 0 {
        // SAFETY: as above.
        let grandchild = unsafe { copy_process(libc::SIGCHLD) };
        if grandchild == 0 {
            // SAFETY: this is the copy's copy; the command and its arguments are C strings.
            unsafe { become_command(command, pointers.as_ptr(), output.as_raw_fd()) }
        }
        end(c_int::from(grandchild < 0));
    }
    let error = io::Error::last_os_error();
    signal_mask::change(libc::SIG_SETMASK, before);
    if copy < 0 {
        return Err(error);
    }
    if wait(copy) { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EAGAIN)) }
}

/// # Safety
/// What the copy does before it executes a program or ends: system calls only.
unsafe fn copy_process(signal: c_int) -> libc::c_long {
    // SAFETY: without flags and with no stack of its own, this is a fork.
    unsafe { system_call!(libc::SYS_clone, signal, 0, 0, 0, 0) }
}

/// Waits for a copy, which ends at once; returns whether it did what it was to do.
fn wait(copy: libc::c_long) -> bool {
    let mut status: c_int = 0;
    loop {
        // SAFETY: `status` is valid.
        let ended =
            unsafe { system_call!(libc::SYS_wait4, copy, &raw mut status, libc::__WALL, ptr::null_mut::<u8>()) };
        if ended == copy {
            return libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
        }
        // SAFETY: this thread's `errno`.
        match unsafe { *libc::__errno_location() } {
            libc::EINTR => {}
            // Another thread has waited for it; whether the command has started, its output tells.
            libc::ECHILD => return true,
            _ => return false,
        }
    }
}

/// # Safety
/// The process is a copy of which nobody needs anything else; the arguments are C strings, and a null pointer.
unsafe fn become_command(command: &CStr, arguments: *const *const c_char, output: c_int) -> ! {
    let default: Action = [0; 4];
    // SAFETY: all pointers are valid; the descriptors are this process's own.
    unsafe {
        system_call!(libc::SYS_setsid);
        for signal in SIGNALS {
            // Fails for those that cannot be caught.
            let (new, old, size) = (default.as_ptr(), ptr::null_mut::<Action>(), size_of::<Mask>());
            system_call!(libc::SYS_rt_sigaction, signal, new, old, size);
        }
        signal_mask::change(libc::SIG_SETMASK, 0);
        loop {
            let (here, null) = (libc::AT_FDCWD, c"/dev/null".as_ptr());
            let opened = system_call!(libc::SYS_openat, here, null, libc::O_RDWR, 0);
            if opened < 0 || opened as c_int >= STREAMS.end {
                system_call!(libc::SYS_dup3, opened, libc::STDIN_FILENO, 0);
                break;
            }
        }
        system_call!(libc::SYS_dup3, output, libc::STDOUT_FILENO, 0);
        if system_call!(libc::SYS_close_range, STREAMS.end, c_int::MAX, 0) < 0 {
            for descriptor in STREAMS.end..DESCRIPTORS_MAX {
                system_call!(libc::SYS_close, descriptor);
            }
        }
        system_call!(libc::SYS_execve, command.as_ptr(), arguments, libc::environ);
        system_call!(libc::SYS_write, libc::STDOUT_FILENO, [NOT_STARTED].as_ptr(), 1);
    }
    end(1)
}

/// Ends a copy, without what the program does when it ends.
fn end(code: c_int) -> ! {
    loop {
        // SAFETY: the system call has no precondition.
        unsafe { system_call!(libc::SYS_exit_group, code) };
    }
}
