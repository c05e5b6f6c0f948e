//! Counters of the kernel and the processor, opened for the calling thread. Nothing here allocates or takes a lock.

use crate::system_call;

/// A software event of the kernel, as the kind of [`Attributes`].
pub const SOFTWARE: u32 = 1;
/// What happens in the program's own code only: it needs no privilege, and overflows nowhere else.
pub const OF_THE_PROGRAM: u64 = 1 << 5 | 1 << 6;

/// The beginning of `struct perf_event_attr`; the kernel takes what is missing as zero.
#[repr(C)]
#[derive(Default)]
pub struct Attributes {
    /// Whose event it is: `type` of the kernel.
    pub kind: u32,
    /// Of this structure.
    pub size: u32,
    /// Which event.
    pub config: u64,
    /// Events between two overflows; 0 for a counter that only counts.
    pub sample_period: u64,
    /// What is written down at an overflow.
    pub sample_type: u64,
    /// What reading the counter gives beside its value.
    pub read_format: u64,
    /// What is left out, and more.
    pub flags: u64,
    /// Overflows between two signals.
    pub wakeup_events: u32,
    /// Of breakpoints only.
    pub breakpoint_type: u32,
    /// More of which event.
    pub config_1: u64,
}

/// A counter of the calling thread, wherever it runs; its file is closed where the thread executes another program.
pub fn open(attributes: Attributes) -> Option<libc::c_int> {
    const CLOSE_ON_EXEC: libc::c_ulong = 8;
    let attributes = Attributes { size: size_of::<Attributes>() as u32, ..attributes };
    // SAFETY: the attributes are as long as they say; the calling thread on any processor, in no group.
    let opened = unsafe { system_call!(libc::SYS_perf_event_open, &raw const attributes, 0, -1, -1, CLOSE_ON_EXEC) };
    libc::c_int::try_from(opened).ok().filter(|file| *file >= 0)
}
