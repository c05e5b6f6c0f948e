//! The persist site of what a thread dispatches.

use super::thread::Thread;
use crate::cache::persist_sites::{FoundCaller, PersistSites, SiteId, SiteKey};
use fencepost_isa::micro_op::{DecodedBlock, Operation};

/// The site of the persist `operation` that `thread` dispatches on `core`.
pub(super) fn site(
    sites: &mut PersistSites,
    core: usize,
    thread: &Thread,
    blocks: &[DecodedBlock],
    operation: Operation,
) -> SiteId {
    let is_inserted = !thread.extra.is_empty();
    let key = match (thread.block, is_inserted) {
        (0, _) => {
            let block = match thread.caller(blocks, None) {
                0 => thread.last_block(),
                caller => caller,
            };
            let decoded = &blocks[block as usize];
            let micro_op = decoded.unsplit_number((decoded.micro_ops.len() as u32).saturating_sub(1));
            SiteKey { block, micro_op, caller: 0, operation, is_inserted }
        }
        (block, _) => {
            let at = if is_inserted { thread.persists_at } else { thread.micro_op };
            let micro_op = blocks[block as usize].unsplit_number(at);
            let caller = caller(sites.last_caller(core), thread, blocks);
            SiteKey { block, micro_op, caller, operation, is_inserted }
        }
    };
    sites.number(key)
}

/// The block that called the function in which `thread` is in a block; 0 if its frame does not show that. What was
/// walked through before is not walked through again.
fn caller(last: &mut FoundCaller, thread: &Thread, blocks: &[DecodedBlock]) -> u32 {
    let is_known = last.thread == thread.id.0 && last.frame == thread.frame_number;
    let block = thread.caller(blocks, is_known.then_some((last.step, last.block)));
    *last = FoundCaller { thread: thread.id.0, frame: thread.frame_number, step: thread.step(), block };
    block
}
