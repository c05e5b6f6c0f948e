//! A segment's file, mapped: shared memory, an ordinary file, or a DAX device.

use std::ffi::CStr;
use std::io;

use crate::segment::{Coherence, Word, Words};

/// Maps the whole file. It stays mapped for as long as the process lives. Does not allocate.
pub fn map(path: &CStr, coherence: Coherence) -> io::Result<Words<'static>> {
    // SAFETY: the path is a C string; the file is closed below.
    let file = unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    let mapped = map_file(file, coherence);
    // SAFETY: ours; a mapping outlives it.
    unsafe { libc::close(file) };
    mapped
}

fn map_file(file: libc::c_int, coherence: Coherence) -> io::Result<Words<'static>> {
    // SAFETY: `lseek` has no precondition. It gives the size of DAX devices too, which `fstat` does not.
    let size = unsafe { libc::lseek(file, 0, libc::SEEK_END) };
    let size = usize::try_from(size).map_err(|_| io::Error::last_os_error())?;
    if size == 0 {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
    }
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address that the kernel chooses.
    let memory = unsafe { libc::mmap(std::ptr::null_mut(), size, access, libc::MAP_SHARED, file, 0) };
    if memory == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping is that long, page-aligned, and never unmapped. Other processes change it, which atomic words
    // allow. If the file is cut short, touching what it lost is a SIGBUS, not a wrong value.
    let words = unsafe { std::slice::from_raw_parts(memory.cast::<Word>(), size / size_of::<Word>()) };
    Ok(Words::new(words, coherence))
}
