//! Which rule a thread falls under. Does not allocate: threads change their names, and handlers notice.

use fencepost_channel_core::pattern::matches;
use fencepost_channel_core::segment::Segment;
use fencepost_channel_core::system_call;

use crate::process;

const PATH_BYTES: usize = 4096;

/// The name of the calling thread, as the kernel has it, padded with zeros.
pub fn thread_name() -> [u64; 2] {
    let mut name = [0u8; 16];
    // SAFETY: the kernel writes 16 bytes.
    unsafe { system_call!(libc::SYS_prctl, libc::PR_GET_NAME, name.as_mut_ptr(), 0, 0, 0) };
    let [low, high] = [0, 8].map(|at| u64::from_le_bytes(std::array::from_fn(|byte| name[at + byte])));
    [low, high]
}

/// The rule for all of the program, or else the first one that the calling thread's program and name match.
pub fn rule_of(segment: Segment<'_>, name: [u64; 2]) -> Option<usize> {
    if let Some(rule) = process::rule() {
        return Some(rule);
    }
    let mut path = [0u8; PATH_BYTES];
    let program = program(&mut path);
    let bytes: [u8; 16] = std::array::from_fn(|at| name[at / 8].to_le_bytes()[at % 8]);
    let thread = bytes.split(|byte| *byte == 0).next().unwrap_or(&[]);
    (0..segment.rule_count()).find(|index| {
        let [_, of_program, of_thread] = segment.rule_texts(*index);
        matches(of_program.bytes(), program) && matches(of_thread.bytes(), thread)
    })
}

/// The rule of this name.
pub fn rule_named(segment: Segment<'_>, name: &[u8]) -> Option<usize> {
    (0..segment.rule_count()).find(|index| segment.rule_texts(*index)[0].bytes() == name)
}

/// The file name of the program that runs.
fn program(path: &mut [u8]) -> &[u8] {
    // SAFETY: the buffer is valid for its length.
    let length = unsafe {
        let link = c"/proc/self/exe".as_ptr();
        system_call!(libc::SYS_readlinkat, libc::AT_FDCWD, link, path.as_mut_ptr(), path.len())
    };
    let path = &path[..usize::try_from(length).unwrap_or(0)];
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(&[])
}
