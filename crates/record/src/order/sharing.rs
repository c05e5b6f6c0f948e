//! Which words more than one thread touches while one of them stores to it.

use std::cell::Cell;

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

/// Numbers of pages, in the order in which they came.
struct PageNumbers {
    numbers: FxHashMap<u64, u32>,
    /// The last ones that were looked up, also those that are not there.
    recent: Box<[Cell<(u64, u32)>]>,
}

const RECENT: usize = 512;
const ABSENT: u32 = u32::MAX;

impl PageNumbers {
    fn new() -> Self {
        Self { numbers: FxHashMap::default(), recent: vec![Cell::new((u64::MAX, ABSENT)); RECENT].into() }
    }

    #[inline(always)]
    fn find(&self, page: u64) -> u32 {
        let recent = &self.recent[page as usize % RECENT];
        let (known, number) = recent.get();
        if known == page {
            return number;
        }
        self.look_up(page)
    }

    #[cold]
    fn look_up(&self, page: u64) -> u32 {
        let number = self.numbers.get(&page).copied().unwrap_or(ABSENT);
        self.recent[page as usize % RECENT].set((page, number));
        number
    }

    fn add(&mut self, page: u64) -> u32 {
        let number = self.numbers.len() as u32;
        self.numbers.insert(page, number);
        self.recent[page as usize % RECENT].set((page, number));
        number
    }
}

/// Of a word: the only thread that has touched it, from 1, and whether any has stored to it.
type Uses = u16;

const NOBODY: Uses = 0;
const SEVERAL: Uses = 0x7fff;
const STORED: Uses = 0x8000;

/// The words of a process, from when it has a second thread.
pub(super) struct Sharing<'a> {
    program: &'a Program,
    numbers: PageNumbers,
    pages: Vec<[Uses; PAGE_WORDS]>,
    has_begun: bool,
    /// Whether threads come one after the other, so that the first one says when it creates others.
    are_apart: bool,
    /// Whether each thread is inside a synchronisation function, whose own words are no business of ours.
    in_call: Vec<bool>,
}

impl<'a> Sharing<'a> {
    pub(super) fn new(program: &'a Program, threads: usize, are_apart: bool) -> Self {
        let in_call = vec![false; threads];
        Self { program, numbers: PageNumbers::new(), pages: Vec::new(), has_begun: false, are_apart, in_call }
    }

    #[inline]
    pub(super) fn take_in(&mut self, thread: usize, what: What<'_>) {
        match what {
            What::Event(Event::ThreadStart { .. }) => self.has_begun |= thread > 0,
            What::Event(Event::ThreadCreate { .. }) => self.has_begun |= self.are_apart,
            What::Event(Event::CallBegin) => self.in_call[thread] = true,
            What::Event(Event::CallEnd) => self.in_call[thread] = false,
            What::Event(_) => {}
            What::Block { id, slots } => {
                if slots.is_empty() || !self.has_begun || self.in_call[thread] {
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

    #[inline]
    fn touch(&mut self, thread: usize, address: u64, size: u64, stores: bool) {
        // Threads beyond that share what they touch.
        let own = (thread + 1).min(usize::from(SEVERAL)) as Uses;
        let stored = if stores { STORED } else { 0 };
        let last = word_of(address.saturating_add(size.max(1) - 1));
        let mut word = word_of(address);
        while word <= last {
            let page = word / PAGE_WORDS as u64;
            let number = match self.numbers.find(page) {
                ABSENT => {
                    self.pages.push([NOBODY; PAGE_WORDS]);
                    self.numbers.add(page)
                }
                number => number,
            };
            let end = last.min((page + 1) * PAGE_WORDS as u64 - 1);
            let first = (word % PAGE_WORDS as u64) as usize;
            for uses in &mut self.pages[number as usize][first..=first + (end - word) as usize] {
                let owner = *uses & SEVERAL;
                let owner = if owner == NOBODY || owner == own { own } else { SEVERAL };
                let new = *uses & STORED | stored | owner;
                if new != *uses {
                    *uses = new;
                }
            }
            word = end + 1;
        }
    }

    /// The shared ones among them.
    pub(super) fn finish(self) -> SharedWords {
        let mut shared = SharedWords { numbers: PageNumbers::new(), pages: Vec::new(), count: 0 };
        let mut pages: Vec<(u64, u32)> = self.numbers.numbers.into_iter().collect();
        pages.sort_unstable();
        for (page, number) in pages {
            let uses = &self.pages[number as usize];
            if !uses.contains(&(SEVERAL | STORED)) {
                continue;
            }
            shared.numbers.add(page);
            let mut words = PageOfShared { bits: [0; GROUPS], before: [0; GROUPS] };
            for (group, uses) in uses.chunks(GROUP_WORDS).enumerate() {
                let is_shared = |uses: &Uses| *uses == SEVERAL | STORED;
                words.before[group] = shared.count;
                words.bits[group] = uses.iter().rev().fold(0, |bits, uses| bits << 1 | u64::from(is_shared(uses)));
                shared.count += words.bits[group].count_ones();
            }
            shared.pages.push(words);
        }
        shared
    }
}

const GROUP_WORDS: usize = 64;
const GROUPS: usize = PAGE_WORDS / GROUP_WORDS;

struct PageOfShared {
    /// A bit for each word.
    bits: [u64; GROUPS],
    /// Shared words before each 64.
    before: [u32; GROUPS],
}

/// Words that threads share, by their numbers from 0.
pub(super) struct SharedWords {
    numbers: PageNumbers,
    pages: Vec<PageOfShared>,
    count: u32,
}

impl SharedWords {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.count as usize
    }

    /// The number of a word, if it is shared.
    #[inline(always)]
    pub(super) fn number(&self, word: u64) -> Option<usize> {
        let page = self.numbers.find(word / PAGE_WORDS as u64);
        if page == ABSENT {
            return None;
        }
        let page = &self.pages[page as usize];
        let at = (word % PAGE_WORDS as u64) as usize;
        let (group, bit) = (at / GROUP_WORDS, at % GROUP_WORDS);
        let bits = page.bits[group];
        if bits >> bit & 1 == 0 {
            return None;
        }
        let below = bits & ((1 << bit) - 1);
        Some((page.before[group] + below.count_ones()) as usize)
    }
}
