//! What threads have done to the words that they share, kept until it is known which of these words they waited for.
//!
//! Of reads that see the same store and lead to the same block one is enough.

use super::history::{Place, Version};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    #[default]
    Read,
    Store,
    Update,
}

/// An access to a shared word.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Logged {
    /// Its place in the one sequence: that of its step. Its slot tells those of one step apart.
    pub number: u64,
    pub step: u64,
    pub address: u64,
    pub place: Place,
    pub thread: u32,
    /// The store to the word before, by its number from 1.
    pub earlier: u32,
    /// What an atomic update found and left, by its number from 1.
    pub update: u32,
    /// The block that the thread came to next, and so many steps later.
    pub outcome: u32,
    pub outcome_after: u16,
    pub kind: Kind,
}

impl Logged {
    /// Whether its instruction is known, and not only one that stored nearby later.
    pub(super) fn is_exact(&self) -> bool {
        self.place.0 != 0
    }
}

/// Reads whose likes are not logged again.
const KNOWN: usize = 64;

/// What a read had to say.
type Said = (Place, u64, u64, u32);

struct OfThread {
    /// Reads whose outcome is to come, with the store and, if updates, the value that they saw.
    reads: Vec<(Logged, u64, u64)>,
    /// Of what is in the log already.
    open: Vec<u32>,
    known: Box<[Said; KNOWN]>,
}

pub(super) struct Log {
    all: Vec<Logged>,
    updates: Vec<(u64, u64)>,
    threads: Vec<OfThread>,
}

impl Log {
    pub(super) fn new(threads: usize) -> Self {
        let thread = |_| OfThread { reads: Vec::new(), open: Vec::new(), known: Box::new([((0, 0), 0, 0, 0); KNOWN]) };
        Self { all: Vec::new(), updates: Vec::new(), threads: (0..threads).map(thread).collect() }
    }

    /// What an atomic update found and left.
    pub(super) fn updates(&mut self, access: &mut Logged, update: (u64, u64)) {
        self.updates.push(update);
        access.update = self.updates.len() as u32;
    }

    /// A read, or an update that changes nothing, with the value that it found.
    pub(super) fn read(&mut self, access: Logged, seen: Version, found: u64) {
        self.threads[access.thread as usize].reads.push((access, seen.number, found));
    }

    /// A store, or an update; its number from 1.
    pub(super) fn store(&mut self, access: Logged) -> u32 {
        if access.kind == Kind::Update {
            self.threads[access.thread as usize].open.push(self.all.len() as u32);
        }
        self.all.push(access);
        self.all.len() as u32
    }

    /// A thread comes to a block.
    #[inline]
    pub(super) fn go_on(&mut self, thread: usize, step: u64, block: u32) {
        let state = &self.threads[thread];
        if !state.reads.is_empty() || !state.open.is_empty() {
            self.lead_to(thread, step, block);
        }
    }

    fn lead_to(&mut self, thread: usize, step: u64, block: u32) {
        let state = &mut self.threads[thread];
        let after = |from: u64| (step - from).min(u16::MAX.into()) as u16;
        for at in state.open.drain(..) {
            let access = &mut self.all[at as usize];
            (access.outcome, access.outcome_after) = (block, after(access.step));
        }
        for (mut access, seen, found) in state.reads.drain(..) {
            let said: Said = (access.place, access.address, seen, block);
            let (id, slot) = access.place;
            let known = &mut state.known[(id as usize ^ usize::from(slot) ^ access.address as usize >> 2) % KNOWN];
            if *known != said {
                *known = said;
                (access.outcome, access.outcome_after) = (block, after(access.step));
                if access.kind == Kind::Update {
                    self.updates.push((found, found));
                    access.update = self.updates.len() as u32;
                }
                self.all.push(access);
            }
        }
    }

    /// The last store to a word before a place in the one sequence.
    pub(super) fn last_before(&self, mut at: u32, number: u64) -> Version {
        while let Some(store) = at.checked_sub(1).map(|at| &self.all[at as usize]) {
            if store.number < number {
                return Version { number: store.number, thread: store.thread as usize, step: store.step };
            }
            at = store.earlier;
        }
        Version::default()
    }

    pub(super) fn update(&self, access: &Logged) -> Option<(u64, u64)> {
        access.update.checked_sub(1).map(|at| self.updates[at as usize])
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// What an access with this number from 0 found, if it is an update.
    pub(super) fn found(&self, at: usize) -> Option<u64> {
        self.update(&self.all[at]).map(|(old, _)| old)
    }

    /// As if other reads had come in between.
    #[cfg(test)]
    pub(super) fn forget_known(&mut self) {
        self.threads.iter_mut().for_each(|state| state.known.fill(((0, 0), 0, 0, 0)));
    }

    /// Reads that are not in the log yet.
    pub(super) fn reads_to_come(&self) -> impl Iterator<Item = &Logged> {
        self.threads.iter().flat_map(|state| &state.reads).map(|(access, ..)| access)
    }

    /// Forgets the accesses with these numbers from 0. Gives the new number from 1 of each old one; if it is gone, of
    /// the store to the word before it, or 0.
    pub(super) fn forget(&mut self, is_gone: impl Fn(usize) -> bool) -> Vec<u32> {
        let updates = std::mem::take(&mut self.updates);
        let mut new = vec![0; self.all.len() + 1];
        let mut kept = 0;
        for at in 0..self.all.len() {
            let mut access = self.all[at];
            access.earlier = new[access.earlier as usize];
            if is_gone(at) {
                new[at + 1] = access.earlier;
                continue;
            }
            if let Some(update) = access.update.checked_sub(1) {
                self.updates(&mut access, updates[update as usize]);
            }
            self.all[kept] = access;
            kept += 1;
            new[at + 1] = kept as u32;
        }
        self.all.truncate(kept);
        for state in &mut self.threads {
            state.open.retain_mut(|open| {
                let is_kept = !is_gone(*open as usize);
                *open = new[*open as usize + 1].wrapping_sub(1);
                is_kept
            });
        }
        new
    }

    pub(super) fn get(&self, at: usize) -> &Logged {
        &self.all[at]
    }

    /// Where an access with this number from 0 was; the log is to be sorted then.
    pub(super) fn place(&mut self, at: usize, number: u64, step: u64, place: Place, address: u64) {
        let access = &mut self.all[at];
        (access.number, access.step, access.place, access.address) = (number, step, place, address);
    }

    /// In the one sequence: no store can be looked up any more.
    pub(super) fn sort(&mut self) {
        for state in &mut self.threads {
            self.all.extend(state.reads.drain(..).map(|(access, ..)| access));
        }
        // A store whose instruction is not known was made before those of its step.
        self.all.sort_by_key(|access| (access.number, access.place.1, access.place.0));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Logged> {
        self.all.iter()
    }
}
