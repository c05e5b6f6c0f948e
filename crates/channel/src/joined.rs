//! Processes that joined a segment by themselves, also those that have no paced thread. Each shares a lock on the first
//! byte of the segment's file, which its forked children have, too; the kernel takes it back from the killed.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// The lock's byte.
const BYTE: libc::off_t = 0;

/// This process has joined the segment for as long as what this gives is open, here or in a forked child.
pub fn join(path: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: the path is a C string.
    let file = unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it has just been opened, and nobody else has it.
    let file = unsafe { OwnedFd::from_raw_fd(file) };
    control(file.as_raw_fd(), libc::F_OFD_SETLK, libc::F_RDLCK)?;
    Ok(file)
}

/// Whether any process has.
pub fn is_joined(file: &impl AsRawFd) -> bool {
    let found = control(file.as_raw_fd(), libc::F_OFD_GETLK, libc::F_WRLCK);
    found.is_ok_and(|lock| lock.l_type != libc::F_UNLCK as libc::c_short)
}

fn control(file: RawFd, command: libc::c_int, kind: libc::c_int) -> io::Result<libc::flock> {
    // SAFETY: a structure of numbers, for which zero is a value.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    (lock.l_start, lock.l_len) = (BYTE, 1);
    // SAFETY: these commands take a valid lock.
    let done = unsafe { libc::fcntl(file, command, &raw mut lock) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(lock) }
}
