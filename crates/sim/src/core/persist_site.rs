//! The persist site of what a thread dispatches.

use super::callers::Callers;
use super::thread::Thread;
use crate::cache::persist_sites::{PersistSites, SiteId, SiteKey};
use fencepost_isa::micro_op::{DecodedBlock, Operation};

/// The site of the persist `operation` that `thread` dispatches on `core`.
pub(super) fn site(
    sites: &mut PersistSites,
    callers: &mut Callers,
    core: usize,
    thread: &Thread,
    blocks: &[DecodedBlock],
    operation: Operation,
) -> SiteId {
    let is_inserted = !thread.extra.is_empty();
    let key = match (thread.block, is_inserted) {
        (0, _) => {
            let block = match thread.caller(blocks, |_| true, |_| None) {
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
            let caller = callers.of(core, thread, blocks);
            SiteKey { block, micro_op, caller, operation, is_inserted }
        }
    };
    sites.number(key)
}
