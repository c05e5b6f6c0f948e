//! Memory straight from the kernel. The program's own allocator may be held by the very thread that we interrupt, or,
//! in the child of a fork, by a thread that is not there. All that is allocated here is a few words for each channel.

use std::alloc::{GlobalAlloc, Layout};
use std::ptr;

use fencepost_channel_core::system_call;

const PAGE: usize = 4096;

/// A mapping for each allocation.
struct Mappings;

#[global_allocator]
static ALLOCATOR: Mappings = Mappings;

// SAFETY: each allocation is a mapping of its own, as long as its layout asks for and aligned to pages; it stays until
// it is given back. What needs more than that is refused.
unsafe impl GlobalAlloc for Mappings {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() > PAGE {
            return ptr::null_mut();
        }
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping where the kernel chooses.
        let memory = unsafe { system_call!(libc::SYS_mmap, ptr::null_mut::<u8>(), layout.size(), access, kind, -1, 0) };
        let memory = memory as *mut libc::c_void;
        if memory == libc::MAP_FAILED { ptr::null_mut() } else { memory.cast() }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: `alloc` made this mapping, of this size.
        unsafe { system_call!(libc::SYS_munmap, memory, layout.size()) };
    }
}
