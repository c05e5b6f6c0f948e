//! Who has a place of the segment: a thread of this host, known by its number.
//!
//! `free → live → closed → reaped → free`. A thread takes a free place and closes it when it ends; whoever needs a
//! place, or keeps the segment, reaps closed ones, and live ones whose thread is gone. Each step is one
//! compare-and-swap, so a thread that is killed leaves a state that says what to do.

use std::sync::atomic::Ordering;

use super::words::{Word, Words};

/// What a place's word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// One more each time that the place is taken, so that two holders are told apart.
    pub generation: u32,
    /// How far its life is.
    pub phase: Phase,
    /// The thread's number in the host's kernel; 0 where it is free.
    pub thread: u32,
}

/// How far the life of a place is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nobody's.
    Free,
    /// Its thread writes it.
    Live,
    /// Its thread will not write it again; its totals have to be kept.
    Closed,
    /// This thread keeps its totals, and frees it then.
    Reaped,
}

const PHASES: [Phase; 4] = [Phase::Free, Phase::Live, Phase::Closed, Phase::Reaped];
const THREAD_BITS: u32 = 32;
const PHASE_BITS: u32 = 2;
const GENERATIONS: u32 = 1 << (64 - THREAD_BITS - PHASE_BITS);

impl Holder {
    fn of(word: u64) -> Holder {
        let phase = PHASES[(word >> THREAD_BITS) as usize & (PHASES.len() - 1)];
        Holder { generation: (word >> (THREAD_BITS + PHASE_BITS)) as u32, phase, thread: word as u32 }
    }

    fn word(self) -> u64 {
        let phase = PHASES.iter().position(|phase| *phase == self.phase).unwrap_or(0) as u64;
        (u64::from(self.generation) << (THREAD_BITS + PHASE_BITS)) | (phase << THREAD_BITS) | u64::from(self.thread)
    }
}

/// A place.
#[derive(Clone, Copy)]
pub struct Place<'a>(Words<'a>);

impl<'a> Place<'a> {
    /// The place whose word is the first of these.
    pub fn new(words: Words<'a>) -> Place<'a> {
        Place(words.part(0, 1))
    }

    fn word(self) -> &'a Word {
        self.0.word(0)
    }

    /// Who has it.
    pub fn holder(self) -> Holder {
        Holder::of(self.0.load(0))
    }

    /// Takes it for `thread` if it is free.
    pub fn take(self, thread: u32) -> Option<Holder> {
        let free = self.holder();
        if free.phase != Phase::Free {
            return None;
        }
        let generation = (free.generation + 1) % GENERATIONS;
        self.step(free, Holder { generation, phase: Phase::Live, thread })
    }

    /// Its thread will not write it again. The thread's own calls of it are the only ones that may follow each other.
    pub fn close(self, mine: Holder) {
        self.step(mine, Holder { phase: Phase::Closed, ..mine });
    }

    /// Takes over what `holder` left, for `thread`; `None` if another was quicker.
    pub fn reap(self, holder: Holder, thread: u32) -> Option<Holder> {
        self.step(holder, Holder { phase: Phase::Reaped, thread, ..holder })
    }

    /// Frees it; `mine` is what `reap` gave.
    pub fn free(self, mine: Holder) {
        self.step(mine, Holder { phase: Phase::Free, thread: 0, ..mine });
    }

    fn step(self, from: Holder, to: Holder) -> Option<Holder> {
        let swapped = self.word().compare_exchange(from.word(), to.word(), Ordering::AcqRel, Ordering::Acquire);
        self.0.publish();
        swapped.ok().map(|_| to)
    }
}
