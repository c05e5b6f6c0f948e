//! Which words more than one thread touches while one of them stores to it.

use rustc_hash::FxHashMap;

use super::walk::What;
use crate::code::{Program, SlotKind};
use crate::event::Event;

/// Bytes of a word.
pub(super) const WORD_BYTES: u64 = 4;
const PAGE_WORDS: usize = 1024;

/// The word that an address lies in.
pub(super) fn word_of(address: u64) -> u64 {
    address / WORD_BYTES
}

const NOBODY: u16 = 0;
const SEVERAL: u16 = u16::MAX;

#[derive(Clone)]
struct Page {
    /// The only thread that has touched each word, from 1.
    owner: [u16; PAGE_WORDS],
    is_stored: [bool; PAGE_WORDS],
}

/// The words of a process, from when it has a second thread.
pub(super) struct Sharing<'a> {
    program: &'a Program,
    pages: FxHashMap<u64, Box<Page>>,
    has_begun: bool,
    /// Whether each thread is inside a synchronisation function, whose own words are no business of ours.
    in_call: FxHashMap<usize, bool>,
}

impl<'a> Sharing<'a> {
    pub(super) fn new(program: &'a Program) -> Self {
        Self { program, pages: FxHashMap::default(), has_begun: false, in_call: FxHashMap::default() }
    }

    pub(super) fn take_in(&mut self, thread: usize, what: What<'_>) {
        match what {
            What::Event(Event::ThreadStart { .. }) => self.has_begun |= thread > 0,
            What::Event(Event::CallBegin) => _ = self.in_call.insert(thread, true),
            What::Event(Event::CallEnd) => _ = self.in_call.insert(thread, false),
            What::Event(_) => {}
            What::Block { id, slots } => {
                if !self.has_begun || self.in_call.get(&thread).copied().unwrap_or_default() {
                    return;
                }
                for (slot, &value) in self.program.block(id).slots.iter().zip(slots) {
                    if let SlotKind::Load | SlotKind::Store | SlotKind::Update = slot.kind {
                        self.touch(thread, value, u64::from(slot.size), slot.kind.writes());
                    }
                }
            }
        }
    }

    fn touch(&mut self, thread: usize, address: u64, size: u64, stores: bool) {
        let last = word_of(address + size.max(1) - 1);
        let mut word = word_of(address);
        while word <= last {
            let page = self
                .pages
                .entry(word / PAGE_WORDS as u64)
                .or_insert_with(|| Box::new(Page { owner: [NOBODY; PAGE_WORDS], is_stored: [false; PAGE_WORDS] }));
            let at = (word % PAGE_WORDS as u64) as usize;
            let own = thread as u16 + 1;
            let owner = &mut page.owner[at];
            *owner = if *owner == NOBODY || *owner == own { own } else { SEVERAL };
            page.is_stored[at] |= stores;
            word += 1;
        }
    }

    pub(super) fn is_shared(&self, word: u64) -> bool {
        let at = (word % PAGE_WORDS as u64) as usize;
        self.pages.get(&(word / PAGE_WORDS as u64)).is_some_and(|page| page.owner[at] == SEVERAL && page.is_stored[at])
    }
}
