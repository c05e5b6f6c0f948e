//! Binds the calling thread to processors and to a memory node, where its rule asks for that.

use fencepost_channel_core::segment::{PROCESSOR_WORDS, Segment};
use fencepost_channel_core::system_call;

const MPOL_BIND: i32 = 2;
const NODE_WORDS: usize = 16;

/// What cannot be had stays as it is: the launcher has looked at processors and nodes before. Does not allocate.
pub fn bind(segment: Segment<'_>, rule: usize) {
    let processors = segment.rule_processors(rule);
    if processors.iter().any(|word| *word != 0) {
        // SAFETY: the mask is valid for its length.
        unsafe { system_call!(libc::SYS_sched_setaffinity, 0, PROCESSOR_WORDS * 8, processors.as_ptr()) };
    }
    let Some(node) = segment.rule_node(rule).map(|node| node as usize) else { return };
    let mut nodes = [0u64; NODE_WORDS];
    let Some(word) = nodes.get_mut(node / 64) else { return };
    *word = 1 << (node % 64);
    // Whatever the thread touches first from now on comes from there; the kernel counts one bit more than there are.
    // SAFETY: the mask is valid for its length.
    unsafe { system_call!(libc::SYS_set_mempolicy, MPOL_BIND, nodes.as_ptr(), NODE_WORDS * 64 + 1) };
}
