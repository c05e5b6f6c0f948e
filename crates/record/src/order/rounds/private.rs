//! Accesses to words that no other thread has stored to, and those of records without turns: of neither is it asked
//! what they saw.

use super::Rounds;
use crate::code::SlotKind;
use crate::order::history::Act;
use crate::order::outlines::Access;
use crate::order::updates::update_of;

impl Rounds<'_> {
    /// A thread reads a word: whether no other one has stored to it.
    #[inline(always)]
    pub(super) fn reads_private(&mut self, thread: usize, word: u64) -> bool {
        let state = self.words.state(word);
        let is_private = state.is_untouched() || state.is_own(thread);
        if is_private {
            self.threads[thread].read_private(word);
        }
        is_private
    }

    /// A thread updates a word: whether that is its business alone. An atomic update is, if it changes nothing: it is a
    /// fence on the thread's stack, or made in vain. One that is not atomic is a store, but one under a lock may be
    /// where threads take from.
    pub(super) fn updates_privately(
        &mut self,
        thread: usize,
        step: u64,
        (id, access): (u32, Access),
        word: u64,
        slots: &[u64],
    ) -> bool {
        match update_of(self.program.block(id), access.slot.into(), slots) {
            Some((old, new)) => old == new && self.reads_private(thread, word),
            None => self.threads[thread].history.counts().locks == 0 && self.words.store(thread, step, word),
        }
    }

    /// Nobody knows what it saw, nor on all machines whether it changes anything.
    pub(super) fn touch_without_order(&mut self, thread: usize, access: Access, word: u64) {
        let number = self.words.share(thread, word, None);
        let (is_alone, _) = self.words.meet(thread, number);
        if is_alone {
            return;
        }
        let (state, reads) = (&mut self.threads[thread], access.kind == SlotKind::Load);
        state.digest(word << 20 ^ u64::from(!reads) << 60);
        if reads {
            state.history.look_at_others();
        } else {
            state.history.change(Act::Stores);
        }
    }
}
